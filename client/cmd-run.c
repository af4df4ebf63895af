/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cstatectl run: a command and what it cost. It starts just after an interval has ended, so that the
 * daemon's intervals inside it hold nothing else; the window is those (two or more), else the intervals that
 * cover it. The report goes to stderr, as time(1)'s and perf-stat(1)'s do: stdout is the command's.
 */

#include <errno.h>
#include <string.h>

#include "client/child.h"
#include "client/conn.h"
#include "client/run-report.h"
#include "client/table.h"
#include "client/window.h"
#include "cstated/num.h"
#include "cstated/timespan.h"

#define RUNS_MAX 1000
#define EXIT_OURS 125 /* as env(1) */
#define WHOLE_MIN 2

const struct option options_run[] = {
        { "label", required_argument, NULL, 'l' },
        { "repeat", required_argument, NULL, 'r' },
        { "out", required_argument, NULL, 'o' },
        { "all", no_argument, NULL, 'a' },
        { "json", no_argument, NULL, 'j' },
        { "quiet", no_argument, NULL, 'q' },
        { "help", no_argument, NULL, 'h' },
        {},
};

typedef struct Run {
        const char *label, *out;
        uint32_t repeat;
        bool all, json, quiet;
        char **argv;
        char *command; /* argv as one text */
        Conn *conn;
        uint64_t interval_usec;
        json_int_t tick_ms; /* end of the last interval seen */
        RunFigures *runs;
        size_t n;
        int status;
} Run;

static void print_help(void) {
        puts("usage: cstatectl [WHERE] run [OPTION]... [--] CMD [ARG]...\n\n"
             "Runs CMD and prints what its time cost: joules, watts, residencies, wakeups;\n"
             "on stderr, since stdout is CMD's. Says so where the CPUs were mostly idle and\n"
             "CMD waited. CMD starts when the daemon's present interval has ended; measured\n"
             "are the whole intervals in it, or, where there are not two, those that cover it.\n\n"
             "  -l, --label LABEL   keep each run's window under that name (compare, show)\n"
             "  -r, --repeat N      run it N times: mean and spread over the runs\n"
             "  -o, --out FILE      write the report there\n"
             "      --all           metrics in which nothing happened, too\n"
             "      --json          the report as JSON\n"
             "  -q, --quiet         no progress on the terminal\n\n"
             "Exit status: CMD's (of the last run); 125 cstatectl failed, 126 CMD could not\n"
             "be run, 127 there is no CMD.");
}

static int parse_options(int argc, char **argv, Run *r) {
        int c;

        optind = 0;
        while ((c = getopt_long(argc, argv, "+l:r:o:q", options_run, NULL)) >= 0)
                switch (c) {
                case 'l':
                        r->label = optarg;
                        break;
                case 'r':
                        if (num_parse_u32(optarg, &r->repeat) < 0 || r->repeat < 1 || r->repeat > RUNS_MAX) {
                                ctl_error("--repeat: a number from 1 to %d", RUNS_MAX);
                                return -EINVAL;
                        }
                        break;
                case 'o':
                        r->out = optarg;
                        break;
                case 'a':
                        r->all = true;
                        break;
                case 'j':
                        r->json = true;
                        break;
                case 'q':
                        r->quiet = true;
                        break;
                case 'h':
                        print_help();
                        return 1;
                default:
                        return -EINVAL;
                }
        if (optind == argc) {
                ctl_error("which command?");
                return -EINVAL;
        }
        r->argv = argv + optind;
        return 0;
}

static char *join(char **argv) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                return NULL;
        for (size_t i = 0; argv[i]; i++)
                (void) fprintf(f, "%s%s", i > 0 ? " " : "", argv[i]);
        if (fclose(f) == 0)
                return text;
        free(text);
        return NULL;
}

/* On the terminal the line is written over by whatever comes next. */
static void progress(void *userdata, double seconds) {
        const Run *r = userdata;

        if (r->repeat > 1)
                (void) fprintf(stderr, "\r\033[Krun %zu of %u: %.0f s\r", r->n + 1, r->repeat, seconds);
        else
                (void) fprintf(stderr, "\r\033[Krunning: %.0f s\r", seconds);
}

static bool has_progress(const Run *r) {
        return !r->quiet && isatty(STDERR_FILENO);
}

static void progress_note(const Run *r, const char *note) {
        if (has_progress(r))
                (void) fprintf(stderr, "\r\033[K%s%s", note, note[0] ? "\r" : "");
}

/* Waits until an interval that ended at end_ms or later is there. CTL_EXIT_*. */
static int wait_interval(Run *r, json_int_t end_ms) {
        json_t *snapshot;
        int code;

        code = conn_next_snapshot(r->conn, end_ms > 0 ? (uint64_t) end_ms - 1 : 0, &snapshot);
        if (code != CTL_EXIT_OK)
                return code;
        r->tick_ms = json_integer_value(json_object_get(snapshot, "end"));
        json_decref(snapshot);
        return CTL_EXIT_OK;
}

static int fetch_summary(Run *r, RunFigures *f) {
        char start[24], end[24];
        Params p = {};

        (void) snprintf(start, sizeof(start), "%" JSON_INTEGER_FORMAT, f->start_ms);
        (void) snprintf(end, sizeof(end), "%" JSON_INTEGER_FORMAT, f->end_ms);
        (void) params_add(&p, "start", start);
        (void) params_add(&p, "end", end);
        return conn_get_json(r->conn, API_ROUTE_SUMMARY, p.params, p.n, &f->summary);
}

static int post_label(Run *r, const RunFigures *f) {
        json_t *body = json_pack("{ss sI sI s{ss% si sf sf}}", "name", r->label, "start", f->start_ms, "end",
                f->end_ms, "meta", "command", r->command, MIN(strlen(r->command), (size_t) 1000), "status",
                f->status, "seconds", f->seconds, "cpu_seconds", f->cpu_seconds);
        int code;

        if (!body) /* a command that is no UTF-8 */
                body = json_pack("{ss sI sI}", "name", r->label, "start", f->start_ms, "end", f->end_ms);
        if (!body) {
                ctl_error("the label is no UTF-8");
                return CTL_EXIT_USAGE;
        }
        code = conn_post(r->conn, API_ROUTE_LABELS, body, NULL);
        json_decref(body);
        return code;
}

/* The window of a run that ended: see the top of the file. */
static void choose_window(const Run *r, const ChildResult *c, json_int_t before_ms, RunFigures *f) {
        uint64_t since = c->end_us - (uint64_t) before_ms * USEC_PER_MSEC;

        f->whole = since / MAX(r->interval_usec, (uint64_t) 1) >= WHOLE_MIN;
        f->start_ms = (json_int_t) (c->start_us / USEC_PER_MSEC);
        f->end_ms = f->whole ? (json_int_t) (c->end_us / USEC_PER_MSEC) : r->tick_ms + 1;
}

/* One run. 0 go on, 1 that was the last, CTL_EXIT_* negated on errors of ours. */
static int run_once(Run *r) {
        RunFigures *f = &r->runs[r->n];
        json_int_t before_ms = r->tick_ms;
        ChildResult c;
        int code;

        code = child_run(r->argv, has_progress(r) ? progress : NULL, r, &c);
        if (code < 0 || c.error != 0) {
                ctl_error("%s: %s", r->argv[0], strerror(code < 0 ? -code : c.error));
                r->status = code < 0 ? EXIT_OURS : c.status;
                return 1;
        }
        r->status = c.status;
        progress_note(r, "waiting for the interval to end");
        code = wait_interval(r, (json_int_t) (c.end_us / USEC_PER_MSEC));
        progress_note(r, "");
        if (code != CTL_EXIT_OK)
                return -code;
        *f = (RunFigures){
                .seconds = c.seconds, .cpu_seconds = c.cpu_seconds,
                .wait_seconds = c.wait_seconds, .n_tasks = c.n_tasks, .status = c.status
        };
        choose_window(r, &c, before_ms, f);
        code = fetch_summary(r, f);
        if (code == CTL_EXIT_OK && json_integer_value(json_object_get(f->summary, "samples")) == 0) {
                ctl_error("nothing was measured while %s ran; \"cstatectl status\" may say why", r->argv[0]);
                code = CTL_EXIT_NO_DATA;
        }
        if (code == CTL_EXIT_OK && r->label)
                code = post_label(r, f);
        if (code != CTL_EXIT_OK) {
                json_decref(f->summary);
                return -code;
        }
        r->n++;
        return c.interrupted;
}

static int report(const Run *r) {
        const char *slash = strrchr(r->argv[0], '/');
        const RunReport report = { .command = r->command,
                .name = slash ? slash + 1 : r->argv[0],
                .label = r->label,
                .interval_s = (double) r->interval_usec / (double) USEC_PER_SEC,
                .runs = r->runs,
                .n = r->n };
        _cleanup_(fclosep) FILE *file = NULL;
        FILE *out = stderr;
        int code;

        if (r->n == 0)
                return 0;
        (void) fflush(stdout);
        if (r->out) {
                out = file = fopen(r->out, "we");
                if (!file) {
                        ctl_error("%s: %s", r->out, strerror(errno));
                        return -EIO;
                }
        } else if (!r->json)
                (void) fputc('\n', out);
        code = r->json ? run_report_json(&report, out)
                       : run_report_print(&report, r->all, table_is_utf8(), out);
        if (fflush(out) != 0 && errno != EPIPE)
                code = -errno;
        if (code < 0)
                ctl_error("the report could not be written: %s", strerror(-code));
        return code;
}

static int run_all(Run *r) {
        int code;

        code = conn_interval(r->conn, &r->interval_usec);
        if (code == CTL_EXIT_OK)
                code = wait_interval(r, 0);
        if (code == CTL_EXIT_OK) {
                progress_note(r, "waiting for an interval to begin");
                code = wait_interval(r, r->tick_ms + 1);
                progress_note(r, "");
        }
        if (code != CTL_EXIT_OK)
                return -code;
        do
                code = run_once(r);
        while (code == 0 && r->n < r->repeat);
        return MIN(code, 0);
}

int cmd_run(const Ctl *ctl, int argc, char **argv) {
        _cleanup_(conn_closep) Conn *conn = NULL;
        _cleanup_free_ RunFigures *runs = NULL;
        _cleanup_free_ char *command = NULL;
        Run r = { .repeat = 1, .status = EXIT_OURS };
        int code;

        code = parse_options(argc, argv, &r);
        if (code > 0)
                return ctl_finish_stdout();
        if (code < 0) {
                (void) ctl_usage_error("run ");
                return EXIT_OURS;
        }
        if (ctl->db || ctl->local) {
                ctl_error("run needs a daemon that measures while the command runs");
                return EXIT_OURS;
        }
        if (conn_open(ctl, 0, &conn) != CTL_EXIT_OK)
                return EXIT_OURS;
        if (r.label && !conn_is_writable(conn)) {
                ctl_error("labels are written over the daemon's unix socket only");
                return EXIT_OURS;
        }
        r.conn = conn;
        r.runs = runs = calloc(r.repeat, sizeof(*runs));
        r.command = command = join(r.argv);
        if (!runs || !command)
                return EXIT_OURS;
        code = run_all(&r);
        if (report(&r) < 0 || code < 0)
                r.status = code < 0 && r.n == 0 ? EXIT_OURS : r.status == 0 ? EXIT_OURS : r.status;
        for (size_t i = 0; i < r.n; i++)
                json_decref(r.runs[i].summary);
        return r.status;
}
