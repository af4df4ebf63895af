/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cstatectl cpu: who the CPUs are and what is wrong with them. From the daemon; where none runs at the
 * default place, from this very process, since identification needs no privilege; or from the text of
 * another machine.
 */

#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "api/cpu-json.h"
#include "client/conn.h"
#include "client/cpu-print.h"
#include "cstated/api.h"
#include "cstated/timespan.h"
#include "model/cpuid-dump.h"

static void print_help(void) {
        puts("usage: cstatectl [WHERE] cpu [--json] [--dump FILE]\n\n"
             "The CPUs of this machine: model, errata of MONITOR/MWAIT and whether the\n"
             "kernel works around them, topology, idle states. Without a daemon they are\n"
             "identified from here.\n\n"
             "      --json       as /api/v1/cpu has it\n"
             "      --dump FILE  another machine's CPUs, from the text of \"cpuid -r\" or of\n"
             "                   /proc/cpuinfo; - is standard input");
}

/* JSON text to stdout as it is, or for a person. */
static int show(const char *body, size_t n, bool json) {
        json_t *root;
        int r;

        if (json) {
                (void) fwrite(body, 1, n, stdout);
                putchar('\n');
                return ctl_finish_stdout();
        }
        root = json_loadb(body, n, 0, NULL);
        r = root ? cpu_print(root, stdout) : -EBADMSG;
        json_decref(root);
        if (r < 0) {
                ctl_error("cannot show the answer: %s", strerror(-r));
                return CTL_EXIT_FAILURE;
        }
        return ctl_finish_stdout();
}

/* Feeds the whole file; prints what is wrong. */
static int dump_read(const char *path, FILE *f, CpuidDump *d) {
        char piece[16384];
        size_t n;
        int r = 0;

        while (r == 0 && (n = fread(piece, 1, sizeof(piece), f)) > 0)
                r = cpuid_dump_feed(d, piece, n);
        if (r == 0 && ferror(f)) {
                ctl_error("%s: %s", path, strerror(errno));
                return CTL_EXIT_FAILURE;
        }
        if (r == 0)
                r = cpuid_dump_finish(d);
        if (r == 0)
                return CTL_EXIT_OK;
        ctl_error("%s: %s", path, cpuid_dump_error(d));
        return CTL_EXIT_FAILURE;
}

static int show_dump(const char *path, bool json) {
        _cleanup_(cpuid_dump_freep) CpuidDump *d = cpuid_dump_new();
        _cleanup_(fclosep) FILE *f = NULL;
        const CpuidDumpGroup *groups;
        JsonWriter j = JSON_WRITER_INIT;
        size_t n;
        int r;

        if (strcmp(path, "-") != 0) {
                f = fopen(path, "re");
                if (!f) {
                        ctl_error("%s: %s", path, strerror(errno));
                        return CTL_EXIT_FAILURE;
                }
        }
        if (!d) {
                ctl_error("%s", strerror(ENOMEM));
                return CTL_EXIT_FAILURE;
        }
        r = dump_read(f ? path : "standard input", f ? f : stdin, d);
        if (r != CTL_EXIT_OK)
                return r;
        groups = cpuid_dump_groups(d, &n);
        if (cpu_json_write_dump(&j, groups, n) < 0) {
                ctl_error("%s", strerror(ENOMEM));
                r = CTL_EXIT_FAILURE;
        } else
                r = show(j.buf, j.n, json);
        jw_deinit(&j);
        return r;
}

/* No place was named and nobody listens at the default one. */
static bool must_look_here(const Ctl *ctl) {
        struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = CSTATED_DEFAULT_SOCKET };
        const char *e = getenv("CSTATED_CONNECT");
        _cleanup_close_ int fd = -1;

        if (ctl->connect || ctl->db || ctl->local || (e && *e))
                return false;
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        return fd < 0 || connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0;
}

static int show_machine(const Ctl *ctl, bool json) {
        _cleanup_(conn_closep) Conn *conn = NULL;
        _cleanup_free_ char *body = NULL;
        Ctl where = *ctl;
        size_t n;
        int r;

        where.local = ctl->local || must_look_here(ctl);
        r = conn_open(&where, 100 * USEC_PER_MSEC, &conn);
        if (r == CTL_EXIT_OK)
                r = conn_get(conn, API_ROUTE_CPU, NULL, 0, &body, &n);
        if (r != CTL_EXIT_OK)
                return r;
        return show(body, n, json);
}

const struct option options_cpu[] = {
        { "json", no_argument, NULL, 'j' },
        { "dump", required_argument, NULL, 'd' },
        { "help", no_argument, NULL, 'h' },
        {},
};

int cmd_cpu(const Ctl *ctl, int argc, char **argv) {
        const char *dump = NULL;
        bool json = false;
        int c;

        optind = 0;
        while ((c = getopt_long(argc, argv, "", options_cpu, NULL)) >= 0)
                switch (c) {
                case 'j':
                        json = true;
                        break;
                case 'd':
                        dump = optarg;
                        break;
                case 'h':
                        print_help();
                        return ctl_finish_stdout();
                default:
                        return ctl_usage_error("cpu ");
                }
        if (optind < argc) {
                ctl_error("unexpected argument \"%s\"", argv[optind]);
                return ctl_usage_error("cpu ");
        }
        return dump ? show_dump(dump, json) : show_machine(ctl, json);
}
