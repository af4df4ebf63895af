/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cstatectl mark: give a window a name. The daemon keeps it; only its unix socket may write. */

#include <errno.h>
#include <string.h>
#include <time.h>

#include "client/conn.h"
#include "client/text.h"
#include "cstated/api.h"
#include "cstated/timespan.h"

const struct option options_mark[] = {
        { "start", required_argument, NULL, 's' }, { "end", required_argument, NULL, 'e' },
        { "note", required_argument, NULL, 'n' }, { "help", no_argument, NULL, 'h' }, {},
};

typedef struct MarkOptions {
        const char *start, *end, *note;
} MarkOptions;

static void print_help(void) {
        puts("usage: cstatectl [WHERE] mark [OPTION]... LABEL\n\n"
             "Gives a window a name for show and compare. Without options it begins now and\n"
             "stays open until \"mark LABEL --end now\". A label that exists gets one window\n"
             "more.\n\n"
             "      --start TIME   -10m, RFC 3339, unix seconds\n"
             "      --end TIME     now if --start is given; without --start it closes the\n"
             "                     window that is open\n"
             "      --note TEXT    kept with it");
}

static int parse_options(int argc, char **argv, MarkOptions *o) {
        int c;

        optind = 0;
        while ((c = getopt_long(argc, argv, "", options_mark, NULL)) >= 0)
                switch (c) {
                case 's':
                        o->start = optarg;
                        break;
                case 'e':
                        o->end = optarg;
                        break;
                case 'n':
                        o->note = optarg;
                        break;
                case 'h':
                        print_help();
                        return 1;
                default:
                        return -EINVAL;
                }
        return ctl_words(argc, argv, 1, 1, "LABEL");
}

/* The start of the label's newest open window. CTL_EXIT_*. */
static int find_open(Conn *conn, const char *label, json_int_t *ret_start) {
        const QueryParam params[] = { { "name", label } };
        json_t *root, *l;
        size_t i;
        int r;

        r = conn_get_json(conn, API_ROUTE_LABELS, params, 1, &root);
        if (r != CTL_EXIT_OK)
                return r;
        r = CTL_EXIT_NO_DATA;
        json_array_foreach(json_object_get(root, "labels"), i, l)
                if (json_is_null(json_object_get(l, "end"))) {
                        *ret_start = json_integer_value(json_object_get(l, "start"));
                        r = CTL_EXIT_OK;
                        break;
                }
        json_decref(root);
        if (r != CTL_EXIT_OK)
                ctl_error("no window of \"%s\" is open; give --start", label);
        return r;
}

static json_int_t now_ms(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_REALTIME, &t);
        return (json_int_t) t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int mark(Conn *conn, const char *label, const MarkOptions *o) {
        char start[TEXT_TIME], end[TEXT_TIME];
        json_t *body, *answer;
        json_int_t begin = now_ms(); /* whole milliseconds: closing must name the same start */
        int r = CTL_EXIT_OK;

        if (!o->start && o->end)
                r = find_open(conn, label, &begin);
        if (r != CTL_EXIT_OK)
                return r;
        body = json_pack("{ss so so* so*}", "name", label, "start",
                o->start ? json_string(o->start) : json_integer(begin), "end",
                o->end     ? json_string(o->end)
                : o->start ? json_string("now")
                           : NULL,
                "meta", o->note ? json_pack("{ss}", "note", o->note) : NULL);
        if (!body) {
                ctl_error("the label or its note is no UTF-8");
                return CTL_EXIT_USAGE;
        }
        r = conn_post(conn, API_ROUTE_LABELS, body, &answer);
        json_decref(body);
        if (r != CTL_EXIT_OK)
                return r;
        text_time(json_integer_value(json_object_get(answer, "start")), start);
        text_time(json_integer_value(json_object_get(answer, "end")), end);
        printf("%s: %s .. %s\n", label, start,
                json_is_null(json_object_get(answer, "end")) ? "(open)" : end);
        json_decref(answer);
        return ctl_finish_stdout();
}

int cmd_mark(const Ctl *ctl, int argc, char **argv) {
        _cleanup_(conn_closep) Conn *conn = NULL;
        MarkOptions o = {};
        int r;

        r = parse_options(argc, argv, &o);
        if (r > 0)
                return ctl_finish_stdout();
        if (r < 0)
                return ctl_usage_error("mark ");
        if (ctl->db) {
                ctl_error("--db is only read; labels are written by the daemon");
                return CTL_EXIT_USAGE;
        }
        r = ctl_needs_history(ctl, "mark");
        if (r == CTL_EXIT_OK)
                r = conn_open(ctl, 0, &conn);
        return r == CTL_EXIT_OK ? mark(conn, argv[optind], &o) : r;
}
