/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cstatectl labels: the windows that have names. */

#include <errno.h>
#include <string.h>

#include "client/conn.h"
#include "client/table.h"
#include "client/text.h"
#include "client/window.h"
#include "cstated/api.h"

const struct option options_labels[] = {
        { "delete", no_argument, NULL, 'd' },
        { "json", no_argument, NULL, 'j' },
        { "names", no_argument, NULL, 'n' },
        { "help", no_argument, NULL, 'h' },
        {},
};

typedef struct LabelsOptions {
        bool delete, json, names;
} LabelsOptions;

static void print_help(void) {
        puts("usage: cstatectl [WHERE] labels [OPTION]... [LABEL]\n\n"
             "The windows that have names, newest first; with LABEL only its own.\n\n"
             "      --delete   forget LABEL and all its windows (what was measured stays)\n"
             "      --names    only the names, one a line\n"
             "      --json     the daemon's own answer");
}

static int parse_options(int argc, char **argv, LabelsOptions *o) {
        int c;

        optind = 0;
        while ((c = getopt_long(argc, argv, "", options_labels, NULL)) >= 0)
                switch (c) {
                case 'd':
                        o->delete = true;
                        break;
                case 'j':
                        o->json = true;
                        break;
                case 'n':
                        o->names = true;
                        break;
                case 'h':
                        print_help();
                        return 1;
                default:
                        return -EINVAL;
                }
        return ctl_words(argc, argv, o->delete ? 1 : 0, 1, "LABEL");
}

/* What run and mark leave with a label. */
static void note_of(const json_t *label, char *buf, size_t size) {
        const json_t *meta = json_object_get(label, "meta");
        const char *command = json_string_value(json_object_get(meta, "command"));
        const char *note = json_string_value(json_object_get(meta, "note"));

        (void) snprintf(buf, size, "%s", command ? command : note ? note : "");
}

static int print_labels(const json_t *root) {
        static const TableColumn columns[] = { { "LABEL", 0 }, { "START", 0 }, { "LENGTH", TABLE_RIGHT },
                { "NOTE", TABLE_TRUNC } };
        _cleanup_(table_freep) Table *t = table_new(columns, ARRAY_SIZE(columns), stdout);
        json_t *l;
        size_t i;
        int r = t ? 0 : -ENOMEM;

        json_array_foreach(json_object_get(root, "labels"), i, l) {
                json_int_t start = json_integer_value(json_object_get(l, "start"));
                char time[TEXT_TIME], length[64] = "open", note[256];
                const char *cells[] = { json_string_value(json_object_get(l, "name")), time, length, note };

                text_time(start, time);
                note_of(l, note, sizeof(note));
                if (json_is_integer(json_object_get(l, "end")))
                        text_span(json_integer_value(json_object_get(l, "end")) - start, length,
                                sizeof(length));
                if (r == 0)
                        r = table_add(t, cells);
        }
        if (r == 0)
                r = table_print(t);
        return r < 0 ? CTL_EXIT_FAILURE : ctl_finish_stdout();
}

/* Each once, in the order of the newest window. */
static int print_names(const json_t *root) {
        json_t *seen = json_object(), *l;
        size_t i;

        json_array_foreach(json_object_get(root, "labels"), i, l) {
                const char *name = json_string_value(json_object_get(l, "name"));

                if (!name || json_object_get(seen, name))
                        continue;
                puts(name);
                (void) json_object_set_new(seen, name, json_true());
        }
        json_decref(seen);
        return ctl_finish_stdout();
}

static int labels(Conn *conn, const LabelsOptions *o, const QueryParam *params, size_t n) {
        json_t *root;
        int r;

        if (o->delete)
                return conn_delete(conn, API_ROUTE_LABELS, params, n);
        if (o->json) {
                r = conn_get_to(conn, API_ROUTE_LABELS, params, n, stdout);
                if (r == CTL_EXIT_OK)
                        putchar('\n');
                return r == CTL_EXIT_OK ? ctl_finish_stdout() : r;
        }
        r = conn_get_json(conn, API_ROUTE_LABELS, params, n, &root);
        if (r != CTL_EXIT_OK)
                return r;
        r = o->names ? print_names(root) : print_labels(root);
        json_decref(root);
        return r;
}

int cmd_labels(const Ctl *ctl, int argc, char **argv) {
        _cleanup_(conn_closep) Conn *conn = NULL;
        LabelsOptions o = {};
        QueryParam param;
        int r;

        r = parse_options(argc, argv, &o);
        if (r > 0)
                return ctl_finish_stdout();
        if (r < 0)
                return ctl_usage_error("labels ");
        if (o.delete && ctl->db) {
                ctl_error("--db is only read; labels are written by the daemon");
                return CTL_EXIT_USAGE;
        }
        r = ctl_needs_history(ctl, "labels");
        if (r == CTL_EXIT_OK)
                r = conn_open(ctl, 0, &conn);
        if (r != CTL_EXIT_OK)
                return r;
        param = (QueryParam){ "name", optind < argc ? argv[optind] : NULL };
        return labels(conn, &o, &param, optind < argc ? 1 : 0);
}
