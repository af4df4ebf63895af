/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cstatectl export: history for other programs, as CSV or as OpenMetrics text. */

#include <errno.h>
#include <string.h>
#include <time.h>

#include "client/conn.h"
#include "client/om-history.h"
#include "client/window.h"
#include "cstated/catalogue.h"
#include "cstated/timespan.h"

#define STEP_DEFAULT_USEC (15 * USEC_PER_SEC) /* what Prometheus scrapes by */
#define WINDOW_DEFAULT_USEC (3600 * USEC_PER_SEC)

const struct option options_export[] = {
        { "format", required_argument, NULL, 'f' },
        { "start", required_argument, NULL, 's' },
        { "end", required_argument, NULL, 'e' },
        { "step", required_argument, NULL, 'S' },
        { "scope", required_argument, NULL, 'c' },
        { "metric", required_argument, NULL, 'm' },
        { "help", no_argument, NULL, 'h' },
        {},
};

typedef struct Export {
        const char *scope, *metric;
        bool openmetrics;
        uint64_t start_usec, end_usec, step_usec;
} Export;

static void print_help(void) {
        puts("usage: cstatectl [WHERE] export --format csv|openmetrics [OPTION]...\n\n"
             "History for other programs, on stdout.\n\n"
             "      --format csv         rows of /api/v1/query, all metrics\n"
             "      --format openmetrics the names of /metrics with timestamps, for\n"
             "                           promtool tsdb create-blocks-from openmetrics\n"
             "      --start TIME         -1h (default), RFC 3339, unix seconds\n"
             "      --end TIME           now (default)\n"
             "      --step SPAN          one value every SPAN (openmetrics: 15s; csv: each\n"
             "                           sample)\n"
             "      --scope cpu          single CPUs and cores, too (csv: add up to system,\n"
             "                           package, core or cpu)\n"
             "      --metric ID,...      csv: only these");
}

static uint64_t now_usec(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_REALTIME, &t);
        return (uint64_t) t.tv_sec * USEC_PER_SEC + (uint64_t) t.tv_nsec / NSEC_PER_USEC;
}

static int parse_time(const char *option, const char *text, uint64_t *ret) {
        if (timespan_parse_instant(text, now_usec(), ret) == 0)
                return 0;
        ctl_error("--%s: \"%s\" is no time: RFC 3339 with offset, unix seconds, -1h", option, text);
        return -EINVAL;
}

static int parse_format(const char *text, Export *e) {
        e->openmetrics = strcmp(text, "openmetrics") == 0;
        if (e->openmetrics || strcmp(text, "csv") == 0)
                return 0;
        ctl_error("--format: csv or openmetrics");
        return -EINVAL;
}

static int parse_step(const char *text, Export *e) {
        if (timespan_parse(text, &e->step_usec) == 0 && e->step_usec >= 100 * USEC_PER_MSEC)
                return 0;
        ctl_error("--step: \"%s\" is no duration such as 15s, 1m, from 100ms on", text);
        return -EINVAL;
}

static int parse_option(int c, Export *e) {
        switch (c) {
        case 'f':
                return parse_format(optarg, e);
        case 's':
                return parse_time("start", optarg, &e->start_usec);
        case 'e':
                return parse_time("end", optarg, &e->end_usec);
        case 'S':
                return parse_step(optarg, e);
        case 'c':
                e->scope = optarg;
                return 0;
        case 'm':
                e->metric = optarg;
                return 0;
        case 'h':
                print_help();
                return 1;
        default:
                return -EINVAL;
        }
}

static int settle(Export *e, bool has_format) {
        if (!has_format) {
                ctl_error("--format is missing: csv or openmetrics");
                return -EINVAL;
        }
        if (e->end_usec == 0)
                e->end_usec = now_usec();
        if (e->start_usec == 0)
                e->start_usec = e->end_usec - WINDOW_DEFAULT_USEC;
        if (!e->openmetrics)
                return 0;
        if (e->metric || (e->scope && strcmp(e->scope, "cpu") != 0 && strcmp(e->scope, "package") != 0)) {
                ctl_error("openmetrics takes no --metric, and --scope package or cpu");
                return -EINVAL;
        }
        /* whole steps, so that each value is of a whole step */
        if (e->step_usec == 0)
                e->step_usec = STEP_DEFAULT_USEC;
        e->start_usec -= e->start_usec % e->step_usec;
        e->end_usec -= e->end_usec % e->step_usec;
        if (e->start_usec >= e->end_usec) {
                ctl_error("there is no whole step of --step between --start and --end");
                return -EINVAL;
        }
        return 0;
}

static int parse_options(int argc, char **argv, Export *e) {
        bool has_format = false;
        int c, r;

        optind = 0;
        while ((c = getopt_long(argc, argv, "", options_export, NULL)) >= 0) {
                r = parse_option(c, e);
                if (r != 0)
                        return r;
                has_format |= c == 'f';
        }
        r = ctl_words(argc, argv, 0, 0, "");
        return r < 0 ? r : settle(e, has_format);
}

typedef struct WindowText {
        char start[24], end[24], step[24];
} WindowText;

static int add_window(const Export *e, WindowText *w, Params *p) {
        int r;

        (void) snprintf(
                w->start, sizeof(w->start), "%llu", (unsigned long long) (e->start_usec / USEC_PER_MSEC));
        (void) snprintf(w->end, sizeof(w->end), "%llu", (unsigned long long) (e->end_usec / USEC_PER_MSEC));
        r = params_add(p, "start", w->start);
        if (r == 0)
                r = params_add(p, "end", w->end);
        if (r == 0 && e->step_usec > 0) {
                (void) snprintf(w->step, sizeof(w->step), "%llums",
                        (unsigned long long) (e->step_usec / USEC_PER_MSEC));
                r = params_add(p, "step", w->step);
        }
        return r;
}

/* Ids of all that can be asked at that scope, our own cost left out. */
static char *all_metrics(const char *scope_text) {
        Scope scope = SCOPE_SYSTEM;
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                return NULL;
        (void) (scope_text && scope_from_name(scope_text, &scope));
        for (size_t i = 0; i < metric_catalogue_n; i++)
                if (metric_catalogue[i].category != CATEGORY_SELF && metric_catalogue[i].scope >= scope)
                        (void) fprintf(f, "%s%s", ftell(f) > 0 ? "," : "", metric_catalogue[i].id);
        if (fclose(f) == 0)
                return text;
        free(text);
        return NULL;
}

static int export_csv(const Export *e, Conn *conn) {
        _cleanup_free_ char *all = e->metric ? NULL : all_metrics(e->scope);
        WindowText w;
        Params p = {};

        if (!e->metric && !all)
                return CTL_EXIT_FAILURE;
        (void) params_add(&p, "metric", e->metric ? e->metric : all);
        (void) params_add(&p, "format", "csv");
        (void) params_add(&p, "time_format", "iso");
        if (e->scope)
                (void) params_add(&p, "scope", e->scope);
        (void) add_window(e, &w, &p);
        return conn_get_to(conn, API_ROUTE_QUERY, p.params, p.n, stdout);
}

/* The points of one metric, or <0: -CTL_EXIT_*. */
static int export_metric(
        const Export *e, Conn *conn, const OmHistoryFamily *f, const OmHistoryMetric *m, bool *has_head) {
        _cleanup_free_ char *body = NULL;
        WindowText w;
        Params p = {};
        size_t size;
        int r;

        (void) params_add(&p, "metric", m->metric);
        (void) params_add(&p, "scope", m->scope);
        (void) params_add(&p, "agg", m->share ? "mean,count" : m->mean ? "mean" : "sum");
        (void) params_add(&p, "format", "csv");
        (void) params_add(&p, "time_format", "ms");
        (void) add_window(e, &w, &p);
        r = conn_get(conn, API_ROUTE_QUERY, p.params, p.n, &body, &size);
        if (r != CTL_EXIT_OK)
                return -r;
        r = om_history_write(f, m, body, e->step_usec / USEC_PER_MSEC, has_head, stdout);
        if (r >= 0)
                return r;
        ctl_error("%s: %s", m->metric, strerror(-r));
        return -CTL_EXIT_FAILURE;
}

static int export_openmetrics(const Export *e, Conn *conn) {
        bool wide = e->scope && strcmp(e->scope, "cpu") == 0;
        long long n = 0;

        for (const OmHistoryFamily *f = om_history_families; f->name; f++) {
                bool has_head = false;

                if (f->wide && !wide)
                        continue;
                for (size_t i = 0; i < OM_HISTORY_METRICS_MAX && f->metrics[i].metric; i++) {
                        int r = export_metric(e, conn, f, &f->metrics[i], &has_head);

                        if (r < 0)
                                return -r;
                        n += r;
                }
        }
        puts("# EOF");
        if (n > 0)
                return CTL_EXIT_OK;
        (void) ctl_finish_stdout();
        ctl_error("there is nothing in this window");
        return CTL_EXIT_NO_DATA;
}

int cmd_export(const Ctl *ctl, int argc, char **argv) {
        _cleanup_(conn_closep) Conn *conn = NULL;
        Export e = {};
        int r;

        r = parse_options(argc, argv, &e);
        if (r > 0)
                return ctl_finish_stdout();
        if (r < 0)
                return ctl_usage_error("export ");
        r = ctl_needs_history(ctl, "export");
        if (r == CTL_EXIT_OK)
                r = conn_open(ctl, 0, &conn);
        if (r == CTL_EXIT_OK)
                r = e.openmetrics ? export_openmetrics(&e, conn) : export_csv(&e, conn);
        return r == CTL_EXIT_OK ? ctl_finish_stdout() : r;
}
