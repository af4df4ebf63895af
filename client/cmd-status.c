/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cstatectl status: is it well, what can it see, what does it cost. */

#include <errno.h>
#include <getopt.h>
#include <libsmartcols.h>
#include <string.h>

#include "client/conn.h"
#include "client/text.h"
#include "cstated/api.h"
#include "cstated/num.h"
#include "cstated/timespan.h"

static void print_help(void) {
        puts("usage: cstatectl [WHERE] status [--json]\n\n"
             "Health of the daemon, the state of every source with what would bring a\n"
             "missing one, the store, and what measuring costs.\n\n"
             "      --json    the daemon's own answer");
}

static double number(json_t *o, const char *key) {
        return json_number_value(json_object_get(o, key));
}

static void print_head(json_t *root) {
        char span[64];
        json_t *problem;
        size_t i;

        timespan_format((uint64_t) number(root, "uptime_s") * USEC_PER_SEC, span, sizeof(span));
        printf("cstated %s on %s: %s\n", text_of(root, "version"), text_of(root, "host"), text_of(root, "health"));
        json_array_foreach(json_object_get(root, "problems"), i, problem) printf("  problem: %s\n",
                json_string_value(problem) ? json_string_value(problem) : text_of(problem, "text"));
        json_array_foreach(json_object_get(root, "notes"), i, problem) printf("  note: %s\n",
                json_string_value(problem) ? json_string_value(problem) : text_of(problem, "text"));
        printf("up %s, interval %.0f ms, wake policy %s\n\n", span, number(root, "interval_ms"),
                text_of(root, "wake_policy"));
}

static int print_sources(json_t *sources) {
        struct libscols_table *table = scols_new_table();
        json_t *source;
        size_t i;
        int r = 0;

        if (!table)
                return -ENOMEM;
        if (!scols_table_new_column(table, "SOURCE", 0, 0) ||
                !scols_table_new_column(table, "STATE", 0, 0) ||
                !scols_table_new_column(table, "WHAT", 0, SCOLS_FL_WRAP))
                r = -ENOMEM;
        json_array_foreach(sources, i, source) {
                struct libscols_line *line = scols_table_new_line(table, NULL);
                const char *hint = text_of(source, "hint");

                if (!line || scols_line_set_data(line, 0, text_of(source, "name")) < 0 ||
                        scols_line_set_data(line, 1, text_of(source, "state")) < 0 ||
                        scols_line_set_data(line, 2, *hint ? hint : text_of(source, "detail")) < 0)
                        r = -ENOMEM;
        }
        if (r == 0)
                r = scols_print_table(table);
        scols_unref_table(table);
        return r;
}

static void print_store(json_t *store) {
        char bytes[32];

        if (!json_is_object(store))
                return;
        (void) num_format_fixed(number(store, "bytes") / (1 << 20), 1, bytes, sizeof(bytes));
        printf("\nstore: %s, %s MiB\n", text_of(store, "path"), bytes);
        if (*text_of(store, "problem"))
                printf("  problem: %s\n", text_of(store, "problem"));
}

static void print_self(json_t *self, double uptime_s) {
        char share[32], rss[32];

        if (!json_is_object(self))
                return;
        (void) num_format_fixed(
                uptime_s > 0 ? 100 * number(self, "cpu_seconds") / uptime_s : 0, 3, share, sizeof(share));
        (void) num_format_fixed(number(self, "rss_bytes") / (1 << 20), 1, rss, sizeof(rss));
        printf("cost: %s %% of a CPU, %s MiB, %.0f remote reads, %.0f wakeups caused, %.0f ticks missed, "
               "last sample %.0f us\n",
                share, rss, number(self, "remote_reads"), number(self, "wakeups_caused"),
                number(self, "missed_ticks"), number(self, "sample_us"));
}

static int print_status(json_t *root) {
        print_head(root);
        if (print_sources(json_object_get(root, "sources")) < 0)
                return CTL_EXIT_FAILURE;
        print_store(json_object_get(root, "store"));
        print_self(json_object_get(root, "self"), number(root, "uptime_s"));
        return ctl_finish_stdout();
}

const struct option options_status[] = {
        { "json", no_argument, NULL, 'j' }, { "help", no_argument, NULL, 'h' }, {},
};

int cmd_status(const Ctl *ctl, int argc, char **argv) {
        _cleanup_(conn_closep) Conn *conn = NULL;
        bool json = false;
        json_t *root;
        int c, r;

        optind = 0;
        while ((c = getopt_long(argc, argv, "", options_status, NULL)) >= 0) {
                if (c == 'h') {
                        print_help();
                        return ctl_finish_stdout();
                }
                if (c != 'j')
                        return ctl_usage_error("status ");
                json = true;
        }
        if (optind < argc) {
                ctl_error("unexpected argument \"%s\"", argv[optind]);
                return ctl_usage_error("status ");
        }
        r = conn_open(ctl, 100 * USEC_PER_MSEC, &conn);
        if (r == CTL_EXIT_OK && json) {
                r = conn_get_to(conn, API_ROUTE_STATUS, NULL, 0, stdout);
                if (r == CTL_EXIT_OK) {
                        putchar('\n');
                        r = ctl_finish_stdout();
                }
                return r;
        }
        if (r == CTL_EXIT_OK)
                r = conn_get_json(conn, API_ROUTE_STATUS, NULL, 0, &root);
        if (r != CTL_EXIT_OK)
                return r;
        r = print_status(root);
        json_decref(root);
        return r;
}
