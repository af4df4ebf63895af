/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cstatectl query: history as the daemon's /api/v1/query gives it; options are its parameters. */

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "client/conn.h"
#include "cstated/api.h"

static void print_help(void) {
        puts("usage: cstatectl [WHERE] query --metric ID,... [OPTION]...\n\n"
             "History of metrics. Ids are those of /api/v1/catalogue (busy, c6, pc6,\n"
             "pkg_watts, irq, idle_time, ...).\n\n"
             "      --metric ID,...     which metrics (repeatable)\n"
             "      --scope SCOPE       system, package, core, cpu: add up to there\n"
             "      --package LIST      only these packages (0-1)\n"
             "      --core LIST         only these cores\n"
             "      --cpu LIST          only these CPUs\n"
             "      --state NAME        only this idle state (C6)\n"
             "      --start TIME        -15m (default), now-1h, 2026-10-25T02:30:00+02:00,\n"
             "                          unix seconds or milliseconds\n"
             "      --end TIME          now (default)\n"
             "      --step SPAN         one value every SPAN (10s, 1m)\n"
             "      --points N          or so many values\n"
             "      --agg LIST          mean (default), min, max, stddev, sum, count\n"
             "      --format FORMAT     csv (default), rows, columns (JSON)\n"
             "      --time-format F     iso (default for csv), ms, s");
}

const struct option options_query[] = {
        { "metric", required_argument, NULL, 1 }, { "scope", required_argument, NULL, 1 },
        { "package", required_argument, NULL, 1 }, { "core", required_argument, NULL, 1 },
        { "cpu", required_argument, NULL, 1 }, { "state", required_argument, NULL, 1 },
        { "start", required_argument, NULL, 1 }, { "end", required_argument, NULL, 1 },
        { "step", required_argument, NULL, 1 }, { "points", required_argument, NULL, 1 },
        { "agg", required_argument, NULL, 1 }, { "format", required_argument, NULL, 1 },
        { "time-format", required_argument, NULL, 1 }, { "help", no_argument, NULL, 'h' }, {},
};

typedef struct Params {
        QueryParam params[API_PARAMS_MAX];
        size_t n;
} Params;

static bool has(const Params *p, const char *key) {
        for (size_t i = 0; i < p->n; i++)
                if (strcmp(p->params[i].key, key) == 0)
                        return true;
        return false;
}

static int add(Params *p, const char *key, const char *value) {
        if (p->n >= ARRAY_SIZE(p->params)) {
                ctl_error("more than %d options", API_PARAMS_MAX);
                return -E2BIG;
        }
        p->params[p->n++] =
                (QueryParam){ .key = strcmp(key, "time-format") == 0 ? "time_format" : key, .value = value };
        return 0;
}

static int parse_options(int argc, char **argv, Params *p) {
        int c, index, r;

        optind = 0;
        while ((c = getopt_long(argc, argv, "", options_query, &index)) >= 0) {
                if (c == 'h') {
                        print_help();
                        return 1;
                }
                r = c == 1 ? add(p, options_query[index].name, optarg) : -EINVAL;
                if (r < 0)
                        return r;
        }
        if (optind < argc) {
                ctl_error("unexpected argument \"%s\"", argv[optind]);
                return -EINVAL;
        }
        if (!has(p, "metric")) {
                ctl_error("--metric is missing: which metric?");
                return -EINVAL;
        }
        r = has(p, "format") ? 0 : add(p, "format", "csv");
        if (r == 0 && !has(p, "time_format") && strcmp(p->params[p->n - 1].value, "csv") == 0)
                r = add(p, "time-format", "iso");
        return r;
}

int cmd_query(const Ctl *ctl, int argc, char **argv) {
        _cleanup_(conn_closep) Conn *conn = NULL;
        Params p = {};
        int r;

        r = parse_options(argc, argv, &p);
        if (r < 0)
                return ctl_usage_error("query ");
        if (r > 0)
                return ctl_finish_stdout();
        if (ctl->local) {
                ctl_error("--local keeps no history to query");
                return CTL_EXIT_USAGE;
        }
        r = conn_open(ctl, 0, &conn);
        if (r == CTL_EXIT_OK)
                r = conn_get_to(conn, API_ROUTE_QUERY, p.params, p.n, stdout);
        if (r == CTL_EXIT_OK)
                r = ctl_finish_stdout();
        return r;
}
