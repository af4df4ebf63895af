/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cstatectl show: a window in one table. */

#include <errno.h>
#include <string.h>

#include "client/conn.h"
#include "client/rows.h"
#include "client/text.h"
#include "client/window.h"
#include "cstated/api.h"

const struct option options_show[] = {
        { "metric", required_argument, NULL, 'p' },
        { "scope", required_argument, NULL, 'p' },
        { "package", required_argument, NULL, 'p' },
        { "core", required_argument, NULL, 'p' },
        { "cpu", required_argument, NULL, 'p' },
        { "state", required_argument, NULL, 'p' },
        { "all", no_argument, NULL, 'a' },
        { "json", no_argument, NULL, 'j' },
        { "help", no_argument, NULL, 'h' },
        {},
};

static void print_help(void) {
        puts("usage: cstatectl [WHERE] show [OPTION]... [WINDOW]\n\n"
             "One row a metric over a window: mean, spread, extremes, and in all (joules,\n"
             "counts, seconds). WINDOW is \"last 1h\", 1h or -1h, START..END, or a label (its\n"
             "newest window); default: the last 15 minutes.\n\n"
             "      --metric ID,...     only these metrics\n"
             "      --scope SCOPE       package, core, cpu: one row each (default system)\n"
             "      --package LIST      only these packages; --core, --cpu the same\n"
             "      --state NAME        only this idle state\n"
             "      --all               rows in which nothing happened, too\n"
             "      --json              the daemon's own answer");
}

static int parse_options(int argc, char **argv, Params *params, bool *all, bool *json) {
        int c, index, r;

        r = window_operands(argc, argv);
        if (r < 0)
                return r;
        optind = 0;
        while ((c = getopt_long(argc, argv, "", options_show, &index)) >= 0) {
                r = 0;
                if (c == 'h') {
                        print_help();
                        return 1;
                }
                if (c == 'a')
                        *all = true;
                else if (c == 'j')
                        *json = true;
                else
                        r = c == 'p' ? params_add(params, options_show[index].name, optarg) : -EINVAL;
                if (r < 0)
                        return r;
        }
        return ctl_words(argc, argv, 0, 2, "");
}

static int print_window(const json_t *root, bool all) {
        char start[TEXT_TIME], end[TEXT_TIME], span[64];
        const char *label = json_string_value(json_object_get(root, "label"));
        json_int_t windows = json_integer_value(json_object_get(root, "windows"));
        json_int_t from = json_integer_value(json_object_get(root, "start")),
                   to = json_integer_value(json_object_get(root, "end"));
        json_int_t samples = json_integer_value(json_object_get(root, "samples"));

        text_time(from, start);
        text_time(to, end);
        text_span(to - from, span, sizeof(span));
        if (label)
                printf("%s%s: ", label, windows > 1 ? " (the newest of its windows)" : "");
        printf("%s .. %s (%s)\n%lld samples of %lld expected, tier %s, %lld gaps\n\n", start, end, span,
                (long long) samples, (long long) json_integer_value(json_object_get(root, "expected")),
                json_string_value(json_object_get(root, "tier")) ?: "-",
                (long long) json_integer_value(json_object_get(root, "gaps")));
        if (samples == 0) {
                (void) fflush(stdout);
                ctl_error("there is no sample in this window");
                return CTL_EXIT_NO_DATA;
        }
        return summary_print(root, all, stdout) < 0 ? CTL_EXIT_FAILURE : ctl_finish_stdout();
}

int cmd_show(const Ctl *ctl, int argc, char **argv) {
        _cleanup_(conn_closep) Conn *conn = NULL;
        bool all = false, json = false;
        WindowWords words;
        Params p = {};
        json_t *root;
        int r;

        r = parse_options(argc, argv, &p, &all, &json);
        if (r > 0)
                return ctl_finish_stdout();
        if (r == 0 && optind < argc)
                r = window_params(argc - optind, argv + optind, &words, &p);
        if (r < 0)
                return ctl_usage_error("show ");
        r = ctl_needs_history(ctl, "show");
        if (r == CTL_EXIT_OK)
                r = conn_open(ctl, 0, &conn);
        if (r == CTL_EXIT_OK && json) {
                r = conn_get_to(conn, API_ROUTE_SUMMARY, p.params, p.n, stdout);
                if (r == CTL_EXIT_OK)
                        putchar('\n');
                return r == CTL_EXIT_OK ? ctl_finish_stdout() : r;
        }
        if (r == CTL_EXIT_OK)
                r = conn_get_json(conn, API_ROUTE_SUMMARY, p.params, p.n, &root);
        if (r != CTL_EXIT_OK)
                return r;
        r = print_window(root, all);
        json_decref(root);
        return r;
}
