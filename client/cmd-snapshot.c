/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cstatectl snapshot: turbostat's table for the last complete interval, at once. */

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "client/conn.h"
#include "client/snapshot-print.h"
#include "client/window-snapshot.h"
#include "cstated/api.h"
#include "cstated/num.h"
#include "cstated/timespan.h"

static void print_help(void) {
        puts("usage: cstatectl [WHERE] snapshot [OPTION]...\n\n"
             "The last complete interval as turbostat prints it: a summary row, then one\n"
             "row a CPU; values of a core or package stand in the row of its first CPU.\n"
             "A value that is not there prints \"-\".\n\n"
             "  -i, --interval SEC      repeat every SEC seconds (until -n or Ctrl-C); each\n"
             "                          table covers them, from the daemon's own intervals\n"
             "  -n, --num_iterations N  print N tables\n"
             "  -S, --Summary           only the summary row\n"
             "  -q, --quiet             accepted; there is no header to leave out\n"
             "  -s, --show COLUMN,...   only these columns or groups: all, default,\n"
             "                          topology, idle, frequency, power, thermal, wake,\n"
             "                          sysfs (cpuidle), other\n"
             "  -H, --hide COLUMN,...   all but these\n"
             "  -c, --cpu LIST          only these CPUs (0-3,8), or \"core\", \"package\":\n"
             "                          the first CPU of each\n"
             "  -J, --Joules            energy of the interval instead of watts\n"
             "  -l, --list              names of the columns\n"
             "  -o, --out FILE          write there\n"
             "      --format FORMAT     table (default), tsv, csv, json");
}

static int parse_format(const char *s, SnapshotFormat *ret) {
        static const char *const names[] = { "table", "tsv", "csv", "json" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcmp(names[i], s) == 0) {
                        *ret = (SnapshotFormat) i;
                        return 0;
                }
        ctl_error("--format: \"%s\" is none of table, tsv, csv, json", s);
        return -EINVAL;
}

static int parse_interval(const char *s, uint64_t *ret) {
        uint64_t usec;

        if (timespan_parse(s, &usec) < 0 || usec < 100 * USEC_PER_MSEC || usec > 3600 * USEC_PER_SEC) {
                ctl_error("--interval: \"%s\" is no time from 0.1 to 3600 seconds (RAPL counters move once "
                          "a millisecond)",
                        s);
                return -EINVAL;
        }
        *ret = usec;
        return 0;
}

static int add_selection(SnapshotOptions *o, const char *list, bool show) {
        if (o->n_selections >= SELECTIONS_MAX) {
                ctl_error("too many --show and --hide");
                return -EINVAL;
        }
        o->selections[o->n_selections].list = list;
        o->selections[o->n_selections++].show = show;
        return 0;
}

static int parse_cpus(const char *s, SnapshotOptions *o) {
        _cleanup_free_ uint32_t *ids = NULL;
        size_t n;

        if (strcmp(s, "core") != 0 && strcmp(s, "package") != 0 &&
                num_parse_cpulist(s, 65536, &ids, &n) < 0) {
                ctl_error("--cpu: \"%s\" is no CPU list (0-3,8), \"core\" or \"package\"", s);
                return -EINVAL;
        }
        o->cpus = s;
        return 0;
}

enum { OPTION_HELP = 256, OPTION_FORMAT };

/* 0 go on, 1 help was printed, <0 wrong. */
static int parse_option(int c, SnapshotOptions *o) {
        switch (c) {
        case 'i':
                o->iterate = o->has_interval = true;
                return parse_interval(optarg, &o->interval_usec);
        case 'n':
                o->iterate = true;
                if (num_parse_u64(optarg, &o->n_iterations) < 0 || o->n_iterations == 0) {
                        ctl_error("--num_iterations: \"%s\" is no positive number", optarg);
                        return -EINVAL;
                }
                return 0;
        case 'S':
                o->summary_only = true;
                return 0;
        case 'q':
                return 0;
        case 's':
        case 'H':
                return add_selection(o, optarg, c == 's');
        case 'c':
                return parse_cpus(optarg, o);
        case 'J':
                o->joules = true;
                return 0;
        case 'l':
                o->list = true;
                return 0;
        case 'o':
                o->out = optarg;
                return 0;
        case OPTION_FORMAT:
                return parse_format(optarg, &o->format);
        case OPTION_HELP:
                print_help();
                return 1;
        default:
                return -EINVAL;
        }
}

const struct option options_snapshot[] = {
        { "interval", required_argument, NULL, 'i' },
        { "num_iterations", required_argument, NULL, 'n' },
        { "Summary", no_argument, NULL, 'S' },
        { "summary", no_argument, NULL, 'S' },
        { "quiet", no_argument, NULL, 'q' },
        { "show", required_argument, NULL, 's' },
        { "hide", required_argument, NULL, 'H' },
        { "cpu", required_argument, NULL, 'c' },
        { "Joules", no_argument, NULL, 'J' },
        { "list", no_argument, NULL, 'l' },
        { "out", required_argument, NULL, 'o' },
        { "format", required_argument, NULL, OPTION_FORMAT },
        { "help", no_argument, NULL, OPTION_HELP },
        {},
};

static int parse_options(int argc, char **argv, SnapshotOptions *o) {
        int c, r;

        optind = 0;
        while ((c = getopt_long(argc, argv, "i:n:Sqs:H:c:Jlo:", options_snapshot, NULL)) >= 0) {
                r = parse_option(c, o);
                if (r != 0)
                        return r;
        }
        if (optind < argc) {
                ctl_error("unexpected argument \"%s\"", argv[optind]);
                return -EINVAL;
        }
        return 0;
}

/*
 * How -i fits the daemon's own interval: longer, and each table is made of the store's intervals; shorter,
 * and it cannot be had. *ret: a table covers -i.
 */
static int settle_interval(const Ctl *ctl, const SnapshotOptions *o, Conn *conn, bool *ret) {
        uint64_t own;
        int r;

        *ret = false;
        if (ctl->local || !o->has_interval)
                return CTL_EXIT_OK;
        r = conn_interval(conn, &own);
        if (r != CTL_EXIT_OK)
                return r;
        *ret = 2 * o->interval_usec >= 3 * own;
        if (4 * o->interval_usec < 3 * own)
                (void) fprintf(stderr,
                        "cstatectl: the daemon samples every %g s: tables come no faster (--local samples "
                        "by itself)\n",
                        (double) own / (double) USEC_PER_SEC);
        return CTL_EXIT_OK;
}

static json_int_t end_of(const json_t *snapshot) {
        return json_integer_value(json_object_get(snapshot, "end"));
}

/* The next table: the daemon's last interval, or the last -i seconds up to its end. */
static int next_table(const SnapshotOptions *o, Conn *conn, bool is_window, uint64_t end_ms, json_t **ret) {
        json_int_t interval_ms = (json_int_t) (o->interval_usec / USEC_PER_MSEC), end, tick_ms;
        uint64_t after_ms = end_ms;
        json_t *snapshot;
        int r;

        if (end_ms > 0 && is_window)
                after_ms =
                        end_ms + (uint64_t) interval_ms - (uint64_t) MIN(interval_ms / 4, (json_int_t) 100);
        r = conn_next_snapshot(conn, after_ms, &snapshot);
        if (r != CTL_EXIT_OK || !is_window) {
                *ret = r == CTL_EXIT_OK ? snapshot : NULL;
                return r;
        }
        end = end_of(snapshot);
        tick_ms = (json_int_t) json_number_value(json_object_get(snapshot, "interval_ms"));
        json_decref(snapshot);
        /* half a tick in from the last one that must not be there */
        return window_snapshot(conn, end - interval_ms + tick_ms / 2, end, ret);
}

static bool more_tables(const SnapshotOptions *o, uint64_t n) {
        return (o->iterate && o->n_iterations == 0) || n < MAX(o->n_iterations, 1u);
}

static int run(const Ctl *ctl, const SnapshotOptions *o, FILE *out) {
        _cleanup_(conn_closep) Conn *conn = NULL;
        uint64_t end_ms = 0;
        bool is_window;
        int r;

        r = conn_open(ctl, o->interval_usec, &conn);
        if (r == CTL_EXIT_OK)
                r = settle_interval(ctl, o, conn, &is_window);
        for (uint64_t i = 0; r == CTL_EXIT_OK && more_tables(o, i); i++) {
                json_t *snapshot;

                r = next_table(o, conn, is_window, end_ms, &snapshot);
                if (r != CTL_EXIT_OK)
                        break;
                end_ms = (uint64_t) end_of(snapshot);
                r = snapshot_print(o, snapshot, i == 0, out);
                json_decref(snapshot);
                if (r == CTL_EXIT_OK && (fflush(out) != 0 || ferror(out)))
                        r = out == stdout ? ctl_finish_stdout() : CTL_EXIT_FAILURE;
                if (o->list)
                        break;
        }
        return r;
}

int cmd_snapshot(const Ctl *ctl, int argc, char **argv) {
        SnapshotOptions o = { .interval_usec = USEC_PER_SEC };
        _cleanup_(fclosep) FILE *file = NULL;
        int r;

        r = parse_options(argc, argv, &o);
        if (r < 0)
                return ctl_usage_error("snapshot ");
        if (r > 0)
                return ctl_finish_stdout();
        if (ctl->db) {
                ctl_error(
                        "snapshot is the last interval of a running daemon; ask a database with \"query\"");
                return CTL_EXIT_USAGE;
        }
        if (o.out) {
                file = fopen(o.out, "we");
                if (!file) {
                        ctl_error("%s: %s", o.out, strerror(errno));
                        return CTL_EXIT_FAILURE;
                }
        }
        return run(ctl, &o, file ? file : stdout);
}
