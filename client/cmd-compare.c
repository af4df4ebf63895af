/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cstatectl compare: two windows or labels side by side. */

#include <errno.h>
#include <string.h>

#include "client/compare-print.h"
#include "client/conn.h"
#include "client/table.h"
#include "client/window.h"
#include "cstated/num.h"

const struct option options_compare[] = {
        { "metric", required_argument, NULL, 'p' }, { "scope", required_argument, NULL, 'p' },
        { "package", required_argument, NULL, 'p' }, { "core", required_argument, NULL, 'p' },
        { "cpu", required_argument, NULL, 'p' }, { "state", required_argument, NULL, 'p' },
        { "threshold", required_argument, NULL, 't' }, { "all", no_argument, NULL, 'a' },
        { "json", no_argument, NULL, 'j' }, { "help", no_argument, NULL, 'h' }, {},
};

typedef struct CompareOptions {
        Params params;
        ComparePrint print;
        bool json;
} CompareOptions;

static void print_help(void) {
        puts("usage: cstatectl [WHERE] compare [OPTION]... A B\n\n"
             "Two windows side by side: mean, spread, change. A and B are labels, times\n"
             "START..END, or spans that end now (1h). A label with several windows (run\n"
             "--repeat) counts each as one value; a single window its samples.\n"
             "Percentages change by percentage points (pp), all else by percent.\n\n"
             "      --metric ID,...     only these metrics\n"
             "      --scope SCOPE       package, core, cpu: one row each (default system)\n"
             "      --package LIST      only these packages; --core, --cpu the same\n"
             "      --state NAME        only this idle state\n"
             "      --threshold PCT     leave out changes smaller than PCT\n"
             "      --all               rows in which nothing happened, too\n"
             "      --json              the daemon's own answer");
}

static int parse_options(int argc, char **argv, CompareOptions *o) {
        int c, index, r;

        r = window_operands(argc, argv);
        if (r < 0)
                return r;
        optind = 0;
        while ((c = getopt_long(argc, argv, "", options_compare, &index)) >= 0) {
                r = 0;
                switch (c) {
                case 'p':
                        r = params_add(&o->params, options_compare[index].name, optarg);
                        break;
                case 't':
                        r = num_parse_double(optarg, &o->print.threshold);
                        if (r < 0 || o->print.threshold < 0) {
                                ctl_error("--threshold: \"%s\" is no percentage", optarg);
                                r = -EINVAL;
                        }
                        break;
                case 'a':
                        o->print.all = true;
                        break;
                case 'j':
                        o->json = true;
                        break;
                case 'h':
                        print_help();
                        return 1;
                default:
                        r = -EINVAL;
                }
                if (r < 0)
                        return r;
        }
        return ctl_words(argc, argv, 2, 2, "A or B, what to compare,");
}

int cmd_compare(const Ctl *ctl, int argc, char **argv) {
        _cleanup_(conn_closep) Conn *conn = NULL;
        CompareOptions o = {};
        char a[80], b[80];
        json_t *root;
        int r;

        r = parse_options(argc, argv, &o);
        if (r > 0)
                return ctl_finish_stdout();
        if (r == 0)
                r = params_add(&o.params, "a", window_side(argv[optind], a, sizeof(a)));
        if (r == 0)
                r = params_add(&o.params, "b", window_side(argv[optind + 1], b, sizeof(b)));
        if (r < 0)
                return ctl_usage_error("compare ");
        r = ctl_needs_history(ctl, "compare");
        if (r == CTL_EXIT_OK)
                r = conn_open(ctl, 0, &conn);
        if (r == CTL_EXIT_OK && o.json) {
                r = conn_get_to(conn, API_ROUTE_COMPARE, o.params.params, o.params.n, stdout);
                if (r == CTL_EXIT_OK)
                        putchar('\n');
                return r == CTL_EXIT_OK ? ctl_finish_stdout() : r;
        }
        if (r == CTL_EXIT_OK)
                r = conn_get_json(conn, API_ROUTE_COMPARE, o.params.params, o.params.n, &root);
        if (r != CTL_EXIT_OK)
                return r;
        o.print.utf8 = table_is_utf8();
        o.print.width = ctl_width();
        if (compare_print(root, argv[optind], argv[optind + 1], &o.print, stdout) == 0)
                puts("no row: nothing was measured in both, or no change is that large");
        json_decref(root);
        return ctl_finish_stdout();
}
