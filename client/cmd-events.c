/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cstatectl events: what happened, oldest first as a log is read. */

#include <errno.h>
#include <string.h>

#include "client/conn.h"
#include "client/table.h"
#include "client/text.h"
#include "client/window.h"
#include "cstated/api.h"

const struct option options_events[] = {
        { "start", required_argument, NULL, 'p' }, { "end", required_argument, NULL, 'p' },
        { "kind", required_argument, NULL, 'p' }, { "limit", required_argument, NULL, 'p' },
        { "json", no_argument, NULL, 'j' }, { "help", no_argument, NULL, 'h' }, {},
};

static void print_help(void) {
        puts("usage: cstatectl [WHERE] events [OPTION]...\n\n"
             "What happened to the machine and to the daemon: hotplug, suspend, sources that\n"
             "come and go, counter resets, break storms, gaps. Oldest first.\n\n"
             "      --start TIME     -1d (default), now-1h, RFC 3339, unix seconds\n"
             "      --end TIME       now (default)\n"
             "      --kind KIND      only this kind\n"
             "      --limit N        the newest N (default 1000)\n"
             "      --json           the daemon's own answer, newest first");
}

static int parse_options(int argc, char **argv, Params *p, bool *json) {
        int c, index, r;

        optind = 0;
        while ((c = getopt_long(argc, argv, "", options_events, &index)) >= 0) {
                r = 0;
                if (c == 'h') {
                        print_help();
                        return 1;
                }
                if (c == 'j')
                        *json = true;
                else
                        r = c == 'p' ? params_add(p, options_events[index].name, optarg) : -EINVAL;
                if (r < 0)
                        return r;
        }
        r = params_has(p, "start") ? 0 : params_add(p, "start", "-1d");
        return r < 0 ? r : ctl_words(argc, argv, 0, 0, "");
}

static int print_events(const json_t *root) {
        static const TableColumn columns[] = { { "TIME", 0 }, { "KIND", 0 }, { "CPU", TABLE_RIGHT },
                { "WHAT", TABLE_WRAP } };
        json_t *events = json_object_get(root, "events");
        _cleanup_(table_freep) Table *t = table_new(columns, ARRAY_SIZE(columns), stdout);
        int r = t ? 0 : -ENOMEM;

        for (size_t i = json_array_size(events); i > 0 && r == 0; i--) {
                json_t *e = json_array_get(events, i - 1), *cpu = json_object_get(e, "cpu");
                char time[TEXT_TIME], id[24] = "";
                const char *cells[] = { time, json_string_value(json_object_get(e, "kind")), id,
                        json_string_value(json_object_get(e, "text")) };

                text_time(json_integer_value(json_object_get(e, "time")), time);
                if (json_is_integer(cpu))
                        (void) snprintf(id, sizeof(id), "%lld", (long long) json_integer_value(cpu));
                r = table_add(t, cells);
        }
        if (r == 0)
                r = table_print(t);
        if (r < 0)
                return CTL_EXIT_FAILURE;
        if (json_array_size(events) == 0)
                puts("nothing happened in this window");
        if (json_is_true(json_object_get(root, "truncated")))
                puts("(older ones are left out: --limit, --end)");
        return ctl_finish_stdout();
}

int cmd_events(const Ctl *ctl, int argc, char **argv) {
        _cleanup_(conn_closep) Conn *conn = NULL;
        bool json = false;
        Params p = {};
        json_t *root;
        int r;

        r = parse_options(argc, argv, &p, &json);
        if (r > 0)
                return ctl_finish_stdout();
        if (r < 0)
                return ctl_usage_error("events ");
        r = ctl_needs_history(ctl, "events");
        if (r == CTL_EXIT_OK)
                r = conn_open(ctl, 0, &conn);
        if (r == CTL_EXIT_OK && json) {
                r = conn_get_to(conn, API_ROUTE_EVENTS, p.params, p.n, stdout);
                if (r == CTL_EXIT_OK)
                        putchar('\n');
                return r == CTL_EXIT_OK ? ctl_finish_stdout() : r;
        }
        if (r == CTL_EXIT_OK)
                r = conn_get_json(conn, API_ROUTE_EVENTS, p.params, p.n, &root);
        if (r != CTL_EXIT_OK)
                return r;
        r = print_events(root);
        json_decref(root);
        return r;
}
