/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cstatectl top: the last interval, live. One request an interval, when it is due; keys are answered from
 * what is there. Where stdout is no terminal the same lines go out plain, one block an interval.
 */

#include <errno.h>
#include <string.h>
#include <time.h>

#include "client/conn.h"
#include "client/top-screen.h"
#include "cstated/api.h"
#include "cstated/num.h"
#include "cstated/timespan.h"

#define WIDTH_PLAIN 200
#define CONTROL_C 3
#define RETRY_MIN_USEC (20 * USEC_PER_MSEC)

const struct option options_top[] = {
        { "interval", required_argument, NULL, 'i' },
        { "num_iterations", required_argument, NULL, 'n' },
        { "sort", required_argument, NULL, 's' },
        { "filter", required_argument, NULL, 'f' },
        { "help", no_argument, NULL, 'h' },
        {},
};

typedef struct Top {
        TopView view;
        TopFrame frame;
        Conn *conn;
        json_t *snapshot;
        uint64_t interval_usec; /* of --local; with a daemon the least time between two frames, 0: its own */
        uint64_t n_iterations, n_shown;
        uint64_t end_ms, due_usec;
        uint64_t wall_usec, cpu_usec; /* at the last measure of our own cost */
        bool is_local;
} Top;

static void print_help(void) {
        puts("usage: cstatectl [WHERE] top [OPTION]...\n\n"
             "The last interval, live: the system, the packages, then the CPUs, those with\n"
             "break wakeups (100/s or more) and the busiest first. Where stdout is no\n"
             "terminal: plain lines.\n\n"
             "  -i, --interval SEC      a new frame at most every SEC seconds (--local: the\n"
             "                          sampling interval)\n"
             "  -n, --num_iterations N  end after N frames\n"
             "  -s, --sort KEY          hot (default), busy, break, wake, c6, demotion, cpu\n"
             "  -f, --filter WHICH      CPUs 0-3,8; package p1; busier than 5 percent: >5\n\n"
             "Keys: q quit; s, S next and previous sort; h u b w 6 d c sort by hot, busy,\n"
             "break, wake, c6, demotion, cpu; r reverse; / filter (Esc: none); space pause;\n"
             "arrows, Page Up/Down, Home scroll.\n"
             "It costs one request an interval: about 5 ms of CPU for 64 CPUs.");
}

static int parse_sort(const char *text, TopSort *ret) {
        static const char *const names[TOP_SORT_N] = {
                [TOP_SORT_HOT] = "hot",
                [TOP_SORT_BUSY] = "busy",
                [TOP_SORT_BREAK] = "break",
                [TOP_SORT_WAKE] = "wake",
                [TOP_SORT_C6] = "c6",
                [TOP_SORT_DEMOTION] = "demotion",
                [TOP_SORT_CPU] = "cpu",
        };

        for (TopSort s = 0; s < TOP_SORT_N; s++)
                if (strcmp(names[s], text) == 0) {
                        *ret = s;
                        return 0;
                }
        ctl_error("--sort: \"%s\" is none of hot, busy, break, wake, c6, demotion, cpu", text);
        return -EINVAL;
}

static int parse_interval(const char *text, uint64_t *ret) {
        if (timespan_parse(text, ret) == 0 && *ret >= 100 * USEC_PER_MSEC && *ret <= 60 * USEC_PER_SEC)
                return 0;
        ctl_error("--interval: from 0.1 to 60 seconds");
        return -EINVAL;
}

static int parse_filter(const char *text, TopView *v) {
        if (strlen(text) < sizeof(v->filter) && top_filter_is_valid(text)) {
                (void) snprintf(v->filter, sizeof(v->filter), "%s", text);
                return 0;
        }
        ctl_error("--filter: \"%s\" is no CPU list, pN or >PERCENT", text);
        return -EINVAL;
}

static int parse_options(int argc, char **argv, Top *t) {
        int c, r;

        optind = 0;
        while ((c = getopt_long(argc, argv, "i:n:s:f:", options_top, NULL)) >= 0) {
                switch (c) {
                case 'i':
                        r = parse_interval(optarg, &t->interval_usec);
                        break;
                case 'n':
                        r = num_parse_u64(optarg, &t->n_iterations);
                        if (r < 0)
                                ctl_error("--num_iterations: \"%s\" is no number", optarg);
                        break;
                case 's':
                        r = parse_sort(optarg, &t->view.sort);
                        break;
                case 'f':
                        r = parse_filter(optarg, &t->view);
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
        return ctl_words(argc, argv, 0, 0, "");
}

static uint64_t now_usec(clockid_t clock) {
        struct timespec t;

        (void) clock_gettime(clock, &t);
        return (uint64_t) t.tv_sec * USEC_PER_SEC + (uint64_t) t.tv_nsec / NSEC_PER_USEC;
}

static void measure_self(Top *t) {
        uint64_t wall = now_usec(CLOCK_MONOTONIC), cpu = now_usec(CLOCK_PROCESS_CPUTIME_ID);

        if (t->wall_usec > 0 && wall > t->wall_usec)
                t->view.own_percent = 100.0 * (double) (cpu - t->cpu_usec) / (double) (wall - t->wall_usec);
        t->wall_usec = wall;
        t->cpu_usec = cpu;
}

/* Takes a new snapshot; when the next is due. */
static void take_snapshot(Top *t, json_t *snapshot) {
        uint64_t now = now_usec(CLOCK_REALTIME);

        json_decref(t->snapshot);
        t->snapshot = snapshot;
        t->end_ms = (uint64_t) json_integer_value(json_object_get(snapshot, "end"));
        t->due_usec = t->is_local ? now + t->interval_usec : conn_snapshot_due_usec(snapshot);
        if (!t->is_local && t->interval_usec > 0)
                t->due_usec = MAX(t->due_usec, now + t->interval_usec - 50 * USEC_PER_MSEC);
        t->due_usec = MIN(MAX(t->due_usec, now + RETRY_MIN_USEC),
                now + 61 * USEC_PER_SEC); /* whatever its clock says */
        measure_self(t);
}

/* 1 something new, 0 not yet; <0: -CTL_EXIT_*. */
static int fetch(Top *t) {
        json_t *snapshot;
        int r;

        r = conn_try_snapshot(t->conn, t->end_ms, &snapshot);
        if (r != CTL_EXIT_OK)
                return -r;
        if (!snapshot) {
                double ms = json_number_value(json_object_get(t->snapshot, "interval_ms"));

                t->due_usec = now_usec(CLOCK_REALTIME) + MAX((uint64_t) (ms * 50), RETRY_MIN_USEC);
                return 0;
        }
        take_snapshot(t, snapshot);
        return 1;
}

/* ---- keys ---- */

static void type_filter(TopView *v, int key) {
        size_t n = strlen(v->prompt);

        if (key == 27)
                v->typing = false;
        else if (key == SCREEN_KEY_BACKSPACE && n > 0)
                v->prompt[n - 1] = '\0';
        else if (key == '\n' && top_filter_is_valid(v->prompt)) {
                (void) snprintf(v->filter, sizeof(v->filter), "%s", v->prompt);
                v->typing = false;
                v->scroll = 0;
        } else if (key > ' ' && key < 127 && n + 1 < sizeof(v->prompt)) {
                v->prompt[n] = (char) key;
                v->prompt[n + 1] = '\0';
        }
}

static void scroll_key(TopView *v, int key, unsigned height) {
        size_t page = height > 8 ? height - 8 : 1;

        if (key == SCREEN_KEY_DOWN || key == 'j')
                v->scroll++;
        else if (key == SCREEN_KEY_UP || key == 'k')
                v->scroll -= v->scroll > 0;
        else if (key == SCREEN_KEY_PAGE_DOWN)
                v->scroll += page;
        else if (key == SCREEN_KEY_PAGE_UP)
                v->scroll -= MIN(page, v->scroll);
        else if (key == SCREEN_KEY_HOME)
                v->scroll = 0;
}

static bool sort_key(TopView *v, int key) {
        static const char keys[] = "hubw6dc"; /* in the order of TopSort */
        const char *at = key > 0 ? strchr(keys, key) : NULL;

        if (key == 's')
                v->sort = (v->sort + 1) % TOP_SORT_N;
        else if (key == 'S')
                v->sort = (v->sort + TOP_SORT_N - 1) % TOP_SORT_N;
        else if (at)
                v->sort = (TopSort) (at - keys);
        else
                return false;
        v->scroll = 0;
        return true;
}

/* False: quit. */
static bool take_key(Top *t, int key, unsigned height) {
        TopView *v = &t->view;

        if (key == SCREEN_KEY_END)
                return false;
        if (v->typing) {
                type_filter(v, key);
                return true;
        }
        if (key == 'q' || key == 'Q' || key == CONTROL_C)
                return false;
        if (key == '/') {
                v->typing = true;
                (void) snprintf(v->prompt, sizeof(v->prompt), "%s", v->filter);
        } else if (key == 27)
                v->filter[0] = '\0';
        else if (key == ' ' || key == 'p')
                v->paused = !v->paused;
        else if (key == 'r')
                v->reverse = !v->reverse;
        else if (!sort_key(v, key))
                scroll_key(v, key, height);
        return true;
}

/* ---- loops ---- */

static int draw(Top *t, Screen *s) {
        unsigned width, height;
        int r;

        screen_size(&width, &height);
        r = top_render(&t->view, t->snapshot, width, height, &t->frame);
        return r == 0 ? screen_draw(s, &t->frame) : r;
}

static int wait_ms(const Top *t) {
        uint64_t now = now_usec(CLOCK_REALTIME);

        if (t->view.paused)
                return 60000;
        return t->due_usec > now ? (int) MIN((t->due_usec - now) / USEC_PER_MSEC + 1, 60000ULL) : 0;
}

/* Until the end, or -1 with what fetch() returned. */
static int loop_screen(Top *t, Screen *s, int *ret_fetch) {
        unsigned width, height;
        int r = draw(t, s);

        while (r >= 0 && (t->n_iterations == 0 || t->n_shown < t->n_iterations)) {
                int key = screen_key(s, wait_ms(t));
                bool changed = key != SCREEN_KEY_NONE;

                screen_size(&width, &height);
                if (changed && !take_key(t, key, height))
                        break;
                if (!t->view.paused && now_usec(CLOCK_REALTIME) >= t->due_usec) {
                        *ret_fetch = fetch(t);
                        if (*ret_fetch < 0)
                                break;
                        t->n_shown += *ret_fetch > 0;
                        changed |= *ret_fetch > 0;
                }
                r = changed ? draw(t, s) : 0;
        }
        return r;
}

static int run_screen(Top *t, Screen *s) {
        int fetched = 0, r;

        r = loop_screen(t, s, &fetched);
        (void) screen_close(s);
        if (fetched < 0) /* what was said about it went with the alternate screen */
                return fetch(t) < 0 ? -fetched : CTL_EXIT_FAILURE;
        if (r >= 0)
                return CTL_EXIT_OK;
        ctl_error("the terminal: %s", strerror(-r));
        return CTL_EXIT_FAILURE;
}

static int run_plain(Top *t) {
        unsigned width = ctl_width();

        for (;;) {
                int r;

                if (top_render(&t->view, t->snapshot, width ? width : WIDTH_PLAIN, 0, &t->frame) < 0)
                        return CTL_EXIT_FAILURE;
                for (size_t i = 0; i < t->frame.n; i++)
                        puts(t->frame.lines[i].text);
                putchar('\n');
                r = ctl_finish_stdout();
                if (r != CTL_EXIT_OK || (t->n_iterations > 0 && ++t->n_shown >= t->n_iterations))
                        return r;
                do {
                        int ms = wait_ms(t);
                        struct timespec wait = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

                        (void) nanosleep(&wait, NULL);
                        r = fetch(t);
                } while (r == 0);
                if (r < 0)
                        return -r;
        }
}

int cmd_top(const Ctl *ctl, int argc, char **argv) {
        _cleanup_(conn_closep) Conn *conn = NULL;
        Top t = { .is_local = ctl->local, .view.own_percent = -1 };
        json_t *snapshot;
        Screen *screen;
        int r;

        r = parse_options(argc, argv, &t);
        if (r > 0)
                return ctl_finish_stdout();
        if (r < 0)
                return ctl_usage_error("top ");
        if (ctl->db) {
                ctl_error("top is live; ask a database with \"show\" or \"query\"");
                return CTL_EXIT_USAGE;
        }
        if (ctl->local && t.interval_usec == 0)
                t.interval_usec = USEC_PER_SEC;
        r = conn_open(ctl, t.interval_usec, &conn);
        if (r == CTL_EXIT_OK)
                r = conn_next_snapshot(conn, 0, &snapshot);
        if (r != CTL_EXIT_OK)
                return r;
        t.conn = conn;
        take_snapshot(&t, snapshot);
        t.view.place = ctl->local ? "this machine" : ctl->connect;
        screen = screen_open();
        r = screen ? run_screen(&t, screen) : run_plain(&t);
        json_decref(t.snapshot);
        top_frame_deinit(&t.frame);
        return r;
}
