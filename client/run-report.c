/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Energy is the mean power of what was measured times how long the command took: whole intervals leave out
 * its first and last moments, the intervals that cover it reach beyond.
 */

#include <errno.h>
#include <math.h>
#include <string.h>

#include "client/rows.h"
#include "client/run-report.h"
#include "cstated/num.h"
#include "query/stats.h"

#define MOSTLY 50.0        /* % */
#define USED_ALONE 0.5     /* of a CPU: a single thread that wants less waits for something else */
#define USED_OF_MANY 0.25  /* of a CPU a thread, where there are several */

static json_t *number_or_null(double v) {
        return isfinite(v) ? json_real(v) : json_null();
}

static bool same_series(const json_t *a, const json_t *b) {
        return json_equal(json_object_get(a, "metric"), json_object_get(b, "metric")) &&
                json_equal(json_object_get(a, "scope"), json_object_get(b, "scope")) &&
                (json_object_get(a, "state") == json_object_get(b, "state") ||
                        json_equal(json_object_get(a, "state"), json_object_get(b, "state")));
}

static const json_t *find_series(const json_t *summary, const json_t *key) {
        json_t *row;
        size_t i;

        json_array_foreach(json_object_get(summary, "rows"), i, row)
                if (same_series(row, key))
                        return row;
        return NULL;
}

static json_t *report_row(const RunReport *r, const json_t *key) {
        double stddev = row_value(key, "stddev"), mean = row_value(key, "mean");
        json_int_t n = json_integer_value(json_object_get(key, "n"));
        Stats stats = STATS_INIT;

        for (size_t i = 0; i < r->n && r->n > 1; i++) {
                const json_t *row = find_series(r->runs[i].summary, key);

                if (row)
                        stats_add(&stats, row_value(row, "mean"));
        }
        if (r->n > 1) {
                mean = stats.n > 0 ? stats.mean : NAN;
                stddev = stats.n >= 3 ? stats_stddev(&stats) : NAN;
                n = (json_int_t) stats.n;
        }
        return json_pack("{sO* sO* sO* sO* so so sI}", "metric", json_object_get(key, "metric"), "state",
                json_object_get(key, "state"), "scope", json_object_get(key, "scope"), "unit",
                json_object_get(key, "unit"), "mean", number_or_null(mean), "stddev", number_or_null(stddev),
                "n", n);
}

json_t *run_report_rows(const RunReport *r) {
        json_t *rows = json_array(), *key;
        size_t i;

        if (!rows || r->n == 0)
                return rows;
        json_array_foreach(json_object_get(r->runs[0].summary, "rows"), i, key)
                if (json_array_append_new(rows, report_row(r, key)) < 0) {
                        json_decref(rows);
                        return NULL;
                }
        return rows;
}

static double mean_of(const json_t *rows, const char *metric) {
        json_t *row;
        size_t i;

        json_array_foreach((json_t *) rows, i, row)
                if (strcmp(json_string_value(json_object_get(row, "metric")) ?: "", metric) == 0)
                        return row_value(row, "mean");
        return NAN;
}

/* The share of time in the deepest states granted (C6, C7), else in the one that was asked for most. */
static double deep_share(const json_t *rows, char name[16]) {
        double c6 = mean_of(rows, "c6"), c7 = mean_of(rows, "c7"), best = NAN;
        json_t *row;
        size_t i;

        if (isfinite(c6) || isfinite(c7)) {
                (void) snprintf(name, 16, "%s", isfinite(c7) && (!isfinite(c6) || c7 > c6) ? "C7" : "C6");
                return (isfinite(c6) ? c6 : 0) + (isfinite(c7) ? c7 : 0);
        }
        json_array_foreach((json_t *) rows, i, row) {
                const char *state = json_string_value(json_object_get(row, "state"));
                double v = row_value(row, "mean");

                if (!state ||
                        strcmp(json_string_value(json_object_get(row, "metric")) ?: "", "idle_time") != 0)
                        continue;
                if (strcmp(state, "POLL") != 0 && isfinite(v) && !(v <= best)) {
                        best = v;
                        (void) snprintf(name, 16, "%s", state);
                }
        }
        return best;
}

typedef struct Use {
        double seconds, cpus; /* mean of the runs */
        double wanted;        /* CPUs it used or waited for */
        unsigned n_tasks;
} Use;

static Use report_use(const RunReport *r) {
        Use u = { .n_tasks = 1 };
        double cpu = 0, wait = 0;

        for (size_t i = 0; i < r->n; i++) {
                u.seconds += r->runs[i].seconds / (double) r->n;
                cpu += r->runs[i].cpu_seconds / (double) r->n;
                wait += r->runs[i].wait_seconds / (double) r->n;
                u.n_tasks = MAX(u.n_tasks, r->runs[i].n_tasks);
        }
        u.cpus = u.seconds > 0 ? cpu / u.seconds : 0;
        u.wanted = u.seconds > 0 ? (cpu + wait) / u.seconds : 0;
        return u;
}

bool run_report_verdict(const RunReport *r, const json_t *rows, char *buf, size_t size) {
        double busy = mean_of(rows, "busy"), deep;
        char name[16] = "", used[64], cpus[24];
        Use u = report_use(r);

        buf[0] = '\0';
        deep = deep_share(rows, name);
        if (u.wanted > (u.n_tasks > 1 ? USED_OF_MANY * u.n_tasks : USED_ALONE) ||
                (isfinite(busy) && busy > 100 - MOSTLY))
                return false;
        (void) num_format_fixed(u.cpus, 2, cpus, sizeof(cpus));
        if (u.n_tasks > 1)
                (void) snprintf(used, sizeof(used), "its %u threads used %s CPUs", u.n_tasks, cpus);
        else
                (void) snprintf(used, sizeof(used), "it used %s CPUs", cpus);
        if (isfinite(deep) && deep >= MOSTLY)
                (void) snprintf(buf, size, "%.0f %% in %s: %s was blocked, not slowed by idle (%s)", deep,
                        name, r->name, used);
        else if (isfinite(deep) && isfinite(busy))
                (void) snprintf(buf, size,
                        "%.0f %% idle, but only %.0f %% in %s: %s was blocked (%s), and idle CPUs did not "
                        "get deep "
                        "(cstatectl doctor)",
                        100 - busy, deep, name, r->name, used);
        return buf[0] != '\0';
}

static void print_energy(const RunReport *r, const json_t *rows, FILE *out) {
        static const struct {
                const char *metric, *name;
        } parts[] = { { "pkg_watts", "packages" }, { "ram_watts", "memory" }, { "sys_watts", "platform" } };
        double seconds = report_use(r).seconds, node = mean_of(rows, "node_watts");
        char number[ROW_TEXT];
        bool any = false;

        if (!isfinite(node))
                return;
        (void) num_format_fixed(node * seconds, 2, number, sizeof(number));
        (void) fprintf(out, "energy: %s J", number);
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
                double watts = mean_of(rows, parts[i].metric);

                if (!isfinite(watts))
                        continue;
                (void) num_format_fixed(watts * seconds, 2, number, sizeof(number));
                (void) fprintf(out, "%s%s %s J", any ? ", " : " (", parts[i].name, number);
                any = true;
        }
        (void) fprintf(out, "%s%s\n", any ? ")" : "", r->n > 1 ? " a run" : "");
}

static void print_title(const RunReport *r, bool utf8, FILE *out) {
        Use u = report_use(r);
        Stats stats = STATS_INIT;
        char seconds[ROW_TEXT], cpus[ROW_TEXT], spread[ROW_TEXT];
        const RunFigures *last = &r->runs[r->n - 1];
        json_int_t n = json_integer_value(json_object_get(last->summary, "samples"));

        for (size_t i = 0; i < r->n; i++)
                stats_add(&stats, r->runs[i].seconds);
        (void) num_format_fixed(u.seconds, 2, seconds, sizeof(seconds));
        (void) num_format_fixed(u.cpus, 2, cpus, sizeof(cpus));
        row_spread(stats.mean, stats_stddev(&stats), spread);
        if (r->n > 1)
                (void) fprintf(out, "%s: %zu runs, %s s%s%s each, %s CPUs\n", r->command, r->n, seconds,
                        r->n < 3 ? "" : utf8 ? " ±" : " +-", r->n < 3 ? "" : spread, cpus);
        else
                (void) fprintf(
                        out, "%s: status %d, %s s, %s CPUs\n", r->command, last->status, seconds, cpus);
        (void) num_format_fixed(r->interval_s, r->interval_s < 1 ? 1 : 0, seconds, sizeof(seconds));
        if (last->whole)
                (void) fprintf(
                        out, "measured: the %lld whole intervals of %s s in it\n", (long long) n, seconds);
        else
                (void) fprintf(out,
                        "measured: the %lld interval%s of %s s that cover%s it, and reach beyond\n",
                        (long long) n, n == 1 ? "" : "s", seconds, n == 1 ? "s" : "");
        if (r->label)
                (void) fprintf(out, "label: %s\n", r->label);
}

int run_report_print(const RunReport *r, bool all, bool utf8, FILE *out) {
        const TableColumn columns[] = { { "METRIC", 0 }, { "MEAN", TABLE_RIGHT }, { "UNIT", 0 },
                { utf8 ? "±%STDDEV" : "+-%STDDEV", TABLE_RIGHT } };
        _cleanup_(table_freep) Table *t = table_new(columns, ARRAY_SIZE(columns), out);
        json_t *rows = run_report_rows(r), *row;
        char verdict[256];
        size_t i;
        int code = t && rows ? 0 : -ENOMEM;

        json_array_foreach(rows, i, row) {
                char name[ROW_TEXT], mean[ROW_TEXT], spread[ROW_TEXT];
                const char *cells[] = { name, mean, row_unit(row), spread };
                double m = row_value(row, "mean");

                if (code < 0 || (!all && row_is_dull(row, m)))
                        continue;
                row_name(row, name);
                row_number(row, m, mean);
                row_spread(m, row_value(row, "stddev"), spread);
                code = table_add(t, cells);
        }
        if (code == 0) {
                print_title(r, utf8, out);
                print_energy(r, rows, out);
                (void) fputc('\n', out);
                code = table_print(t);
        }
        if (code == 0 && run_report_verdict(r, rows, verdict, sizeof(verdict)))
                (void) fprintf(out, "\n%s\n", verdict);
        json_decref(rows);
        return code;
}

int run_report_json(const RunReport *r, FILE *out) {
        json_t *rows = run_report_rows(r), *runs = json_array(), *root;
        char verdict[256];
        int code;

        for (size_t i = 0; i < r->n && runs; i++) {
                const RunFigures *f = &r->runs[i];

                (void) json_array_append_new(
                        runs, json_pack("{sf sf si si sI sI sb sO*}", "seconds", f->seconds, "cpu_seconds",
                                      f->cpu_seconds, "threads", (int) f->n_tasks, "status", f->status,
                                      "start", f->start_ms, "end", f->end_ms, "whole_intervals",
                                      (int) f->whole, "summary", f->summary));
        }
        if (!rows || !runs || !run_report_verdict(r, rows, verdict, sizeof(verdict)))
                verdict[0] = '\0';
        root = json_pack("{ss* ss* so so so}", "command", r->command, "label", r->label, "runs", runs,
                "rows", rows, "verdict", verdict[0] ? json_string(verdict) : json_null());
        code = root ? json_dumpf(root, out, JSON_COMPACT | JSON_REAL_PRECISION(9)) : -ENOMEM;
        (void) fputc('\n', out);
        json_decref(root);
        return code < 0 ? -EIO : 0;
}
