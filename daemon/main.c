/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Command line of cstated. Options override the configuration and go through the same parsers; they are
 * applied again at each reload.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "cstated/api.h"
#include "cstated/log.h"
#include "cstated/num.h"
#include "daemon.h"
#include "sampler/sampler.h"

#define OVERRIDES_MAX 64

enum {
        OPT_CONFIG = 256,
        OPT_DB,
        OPT_LISTEN,
        OPT_INTERVAL,
        OPT_WAKE_POLICY,
        OPT_SOURCES,
        OPT_RECORD,
        OPT_REPLAY,
        OPT_PRINT_CONFIG,
        OPT_CHECK_CONFIG,
        OPT_VERSION,
};

/* An option that stands for a key. */
typedef struct Override {
        const char *what, *section, *key;
        char *value;
} Override;

static const char *arg_config;
static Override arg_overrides[OVERRIDES_MAX];
static size_t arg_n_overrides;
static const char *arg_record, *arg_replay;
static bool arg_print_config, arg_check_config;

static void help(void) {
        (void) printf("usage: cstated [OPTION]...\n"
                      "\n"
                      "Samples idle states, wakeups and power; keeps the history; serves it.\n"
                      "Stays in the foreground. Options override the configuration.\n"
                      "\n"
                      "  --config FILE        instead of %s;\n"
                      "                       FILE.d/*.conf are read after it\n"
                      "  --db FILE            the history [%s]\n"
                      "  --listen ADDRESS     SOCKET or HOST:PORT, repeatable\n"
                      "                       [%s]\n"
                      "  --interval DURATION  between samples, 100ms to 60s [1s]\n"
                      "  --wake-policy NAME   local, lazy or always\n"
                      "  --sources LIST       cpuidle,irq or all but some: -perf,-idletrace\n"
                      "  --record FILE        also write what is sampled to FILE\n"
                      "  --replay FILE        serve a recorded FILE instead of sampling\n"
                      "  --print-config       print the configuration in force and exit\n"
                      "  --check-config       say whether the configuration is valid and exit\n"
                      "  --version            print the version and exit\n"
                      "  -h, --help           this text\n"
                      "\n"
                      "Exit status: 0 stopped, 1 failure, 2 usage, 78 configuration or database.\n",
                CSTATED_DEFAULT_CONFIG, CSTATED_DEFAULT_DB, CSTATED_DEFAULT_SOCKET);
}

/* "./x.db" means the same after every change of directory. malloc'd. */
static char *absolute(const char *path) {
        _cleanup_free_ char *cwd = NULL;
        char *full;

        if (path[0] == '/' || path[0] == '\0')
                return strdup(path);
        cwd = getcwd(NULL, 0);
        if (!cwd || asprintf(&full, "%s/%s", cwd, path) < 0)
                return NULL;
        return full;
}

static int add_override(const char *what, const char *section, const char *key, char *value) {
        if (!value) {
                log_error("out of memory");
                return -ENOMEM;
        }
        if (arg_n_overrides == OVERRIDES_MAX) {
                free(value);
                log_error("too many options");
                return -EINVAL;
        }
        arg_overrides[arg_n_overrides++] = (Override){ what, section, key, value };
        return 0;
}

static int add_listen(const char *value) {
        /* A socket may be named relative to here; HOST:PORT holds no slash. */
        return add_override(
                "--listen", "Http", "Listen", strchr(value, '/') ? absolute(value) : strdup(value));
}

/* 0: go on; 1: done, exit 0; <0: usage. */
static int parse_option(int opt) {
        switch (opt) {
        case 'h':
                help();
                return 1;
        case OPT_VERSION:
                (void) printf("cstated %s\n", CSTATED_VERSION);
                return 1;
        case OPT_CONFIG:
                arg_config = optarg;
                return 0;
        case OPT_DB:
                return add_override("--db", "Store", "Path", absolute(optarg));
        case OPT_LISTEN:
                return add_listen(optarg);
        case OPT_INTERVAL:
                return add_override("--interval", "Sampler", "Interval", strdup(optarg));
        case OPT_WAKE_POLICY:
                return add_override("--wake-policy", "Sampler", "WakePolicy", strdup(optarg));
        case OPT_SOURCES:
                return add_override("--sources", "Sampler", "Sources", strdup(optarg));
        case OPT_RECORD:
                arg_record = optarg;
                return 0;
        case OPT_REPLAY:
                arg_replay = optarg;
                return 0;
        case OPT_PRINT_CONFIG:
                arg_print_config = true;
                return 0;
        case OPT_CHECK_CONFIG:
                arg_check_config = true;
                return 0;
        default:
                return -EINVAL;
        }
}

static int parse_arguments(int argc, char **argv) {
        static const struct option options[] = {
                { "config", required_argument, NULL, OPT_CONFIG },
                { "db", required_argument, NULL, OPT_DB },
                { "listen", required_argument, NULL, OPT_LISTEN },
                { "interval", required_argument, NULL, OPT_INTERVAL },
                { "wake-policy", required_argument, NULL, OPT_WAKE_POLICY },
                { "sources", required_argument, NULL, OPT_SOURCES },
                { "record", required_argument, NULL, OPT_RECORD },
                { "replay", required_argument, NULL, OPT_REPLAY },
                { "print-config", no_argument, NULL, OPT_PRINT_CONFIG },
                { "check-config", no_argument, NULL, OPT_CHECK_CONFIG },
                { "version", no_argument, NULL, OPT_VERSION },
                { "help", no_argument, NULL, 'h' },
                {},
        };
        int opt, r;

        while ((opt = getopt_long(argc, argv, "h", options, NULL)) >= 0) {
                r = parse_option(opt);
                if (r != 0)
                        return r;
        }
        if (optind < argc) {
                log_error("'%s': cstated takes options only", argv[optind]);
                return -EINVAL;
        }
        if (arg_record && arg_replay) {
                log_error("--record and --replay exclude each other");
                return -EINVAL;
        }
        return 0;
}

/* ---- configuration ---- */

static void report(void *userdata, bool fatal, const char *file, unsigned line, const char *text) {
        char where[512] = "";

        if (file && line)
                (void) snprintf(where, sizeof(where), "%s:%u: ", file, line);
        else if (file)
                (void) snprintf(where, sizeof(where), "%s: ", file);
        log_message(fatal ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING, "%s%s", where, text);
}

static const ConfigReport config_report = { .fn = report };

/* An option's own errors are usage; the files' are configuration. */
static int check_overrides(void) {
        Config c;
        int r = config_init(&c);

        for (size_t i = 0; r >= 0 && i < arg_n_overrides; i++)
                r = config_set(&c, arg_overrides[i].what, arg_overrides[i].section, arg_overrides[i].key,
                        arg_overrides[i].value, false, &config_report);
        config_deinit(&c);
        return r;
}

static int apply_overrides(Config *c) {
        bool first_listen = true;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < arg_n_overrides; i++) {
                const Override *o = &arg_overrides[i];
                bool listen = strcmp(o->key, "Listen") == 0;

                r = config_set(
                        c, o->what, o->section, o->key, o->value, listen && first_listen, &config_report);
                first_listen = first_listen && !listen;
        }
        return r;
}

static int load_config(void *userdata, Config *ret) {
        Config c;
        int r;

        r = config_init(&c);
        if (r < 0)
                return r;
        r = config_load(
                &c, arg_config ? arg_config : CSTATED_DEFAULT_CONFIG, arg_config != NULL, &config_report);
        if (r >= 0)
                r = apply_overrides(&c);
        if (r >= 0)
                r = config_validate(&c, &config_report);
        if (r < 0) {
                config_deinit(&c);
                return r;
        }
        *ret = c;
        return 0;
}

/* ---- running ---- */

static int open_file(const char *path, int flags) {
        int fd = open(path, flags | O_CLOEXEC | O_NOCTTY, 0644);

        if (fd < 0)
                log_error("%s: %s", path, strerror(errno));
        return fd;
}

static int sample(const Config *c, const Launch *l, int record_fd) {
        SamplerConfig s = SAMPLER_CONFIG_INIT;

        s.interval_usec = c->interval_usec;
        s.wake_policy = c->wake_policy;
        s.wake_policy_set = c->wake_policy_set;
        s.disabled_sources = c->disabled_sources;
        s.record_fd = record_fd;
        return sampler_main(&s, l->socket_fd);
}

/*
 * What a careless shell left open is no business of ours: a file that is held, a socket whose peer waits for its end.
 * It is told by its lack of FD_CLOEXEC, which all that we open has, and what systemd passes is given (NOTIFY_SOCKET= is
 * a name). After --config and --replay were opened, which may be a shell's own /dev/fd/63.
 */
static void close_inherited(void) {
        DIR *d = opendir("/proc/self/fd");
        struct dirent *e;
        uint32_t fd;

        (void) sd_listen_fds(0);
        while (d && (e = readdir(d)))
                if (num_parse_u32(e->d_name, &fd) == 0 && fd > STDERR_FILENO && (int) fd != dirfd(d) &&
                        (fcntl((int) fd, F_GETFD) & FD_CLOEXEC) == 0)
                        (void) close((int) fd);
        if (d)
                (void) closedir(d);
}

static int run(Config *c) {
        _cleanup_close_ int record_fd = -1, replay_fd = -1;
        Launch l = LAUNCH_INIT;
        int r;

        if (arg_record && (record_fd = open_file(arg_record, O_WRONLY | O_CREAT | O_TRUNC)) < 0)
                return EXIT_FAILURE;
        if (arg_replay && (replay_fd = open_file(arg_replay, O_RDONLY)) < 0)
                return EXIT_FAILURE;
        close_inherited();
        r = launch(c, replay_fd < 0, &l);
        if (r == 0 && l.is_sampler)
                r = sample(c, &l, record_fd);
        else if (r == 0) {
                /* The sampler writes it. */
                if (record_fd >= 0)
                        (void) close(TAKE_FD(record_fd));
                r = daemon_run(&(DaemonOptions){
                        .config = c, .launch = &l, .replay_fd = replay_fd, .load = load_config });
        }
        launch_deinit(&l);
        return r;
}

int main(int argc, char **argv) {
        Config c;
        int r;

        log_open("cstated", LOG_LEVEL_INFO);
        r = parse_arguments(argc, argv);
        if (r > 0)
                return EXIT_SUCCESS;
        if (r < 0 || check_overrides() < 0)
                return CSTATED_EXIT_USAGE;
        if (load_config(NULL, &c) < 0)
                return CSTATED_EXIT_CONFIG;
        if (arg_print_config)
                config_print(&c, stdout);
        r = EXIT_SUCCESS;
        if (!arg_print_config && !arg_check_config)
                r = run(&c);
        config_deinit(&c);
        for (size_t i = 0; i < arg_n_overrides; i++)
                free(arg_overrides[i].value);
        return r;
}
