/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A query's rows come step by step; OpenMetrics wants each series whole. So points are kept by series (24
 * bytes each) until the metric is read. A step without a value is no point, and adds nothing to a counter.
 */

#include <errno.h>
#include <string.h>

#include "client/om-history.h"
#include "cstated/macro.h"
#include "cstated/num.h"

#define SUM(metric_, scope_) .metric = metric_, .scope = scope_
#define SHARE(metric_, scope_) .metric = metric_, .scope = scope_, .mean = true, .share = true
#define LABEL(label_, value_) .label = label_, .value = value_
#define PC(n) { SHARE("pc" #n, "package"), LABEL("state", "pc" #n) }

const OmHistoryFamily om_history_families[] = {
        { .name = "cstated_package_cpuidle_state_seconds",
                .unit = "seconds",
                .help = "Time the package's CPUs together spent in an idle state as the kernel asked for "
                        "it.",
                .metrics = { { SUM("idle_time", "package") } } },
        { .name = "cstated_package_cstate_seconds",
                .unit = "seconds",
                .help = "Time the package was granted a state.",
                .metrics = { PC(2), PC(3), PC(6), PC(7), PC(8), PC(9), PC(10) } },
        { .name = "cstated_rapl_joules",
                .unit = "joules",
                .help = "Energy by zone; core and uncore are parts of package, dram is not, psys is the "
                        "whole platform.",
                .metrics = { { SUM("pkg_watts", "package"), LABEL("zone", "package") },
                        { SUM("ram_watts", "package"), LABEL("zone", "dram") },
                        { SUM("cor_watts", "package"), LABEL("zone", "core") },
                        { SUM("gfx_watts", "package"), LABEL("zone", "uncore") },
                        { SUM("sys_watts", "system"), LABEL("zone", "psys") } } },
        { .name = "cstated_package_temperature_celsius",
                .unit = "celsius",
                .gauge = true,
                .help = "Temperature of the package.",
                .metrics = { { SUM("pkg_temp", "package"), .mean = true } } },
        { .name = "cstated_package_idle_wakeups",
                .help = "Sleeps of the package's CPUs that ended, by cause.",
                .metrics = { { SUM("wakeups_interrupt", "package"), LABEL("cause", "interrupt") },
                        { SUM("wakeups_store", "package"), LABEL("cause", "store") } } },
        { .name = "cstated_package_idle_break_wakeups",
                .help = "Sleeps of the package's CPUs that ended for nothing; method bound is a lower "
                        "bound.",
                .metrics = { { SUM("wakeups_break", "package") } } },
        { .name = "cstated_package_interrupts",
                .help = "Interrupts the package's CPUs serviced.",
                .metrics = { { SUM("irq", "package") } } },
        { .name = "cstated_smi",
                .help = "System management interrupts, counted by every CPU and added up.",
                .metrics = { { SUM("smi", "system") } } },
        { .name = "cstated_cpuidle_state_seconds",
                .unit = "seconds",
                .wide = true,
                .help = "Time the CPU spent in an idle state as the kernel asked for it.",
                .metrics = { { SUM("idle_time", "cpu") } } },
        { .name = "cstated_cpuidle_state_usage",
                .wide = true,
                .help = "How often the kernel asked for an idle state.",
                .metrics = { { SUM("idle_usage", "cpu") } } },
        { .name = "cstated_cpuidle_state_above",
                .wide = true,
                .help = "Sleeps shorter than the state's target residency.",
                .metrics = { { SUM("idle_above", "cpu") } } },
        { .name = "cstated_cpuidle_state_below",
                .wide = true,
                .help = "Sleeps long enough for a deeper state.",
                .metrics = { { SUM("idle_below", "cpu") } } },
        { .name = "cstated_core_cstate_seconds",
                .unit = "seconds",
                .wide = true,
                .help = "Time the core was granted a state.",
                .metrics = { { SHARE("c3", "core"), LABEL("state", "c3") },
                        { SHARE("c6", "core"), LABEL("state", "c6") },
                        { SHARE("c7", "core"), LABEL("state", "c7") } } },
        { .name = "cstated_cpu_unhalted_seconds",
                .unit = "seconds",
                .wide = true,
                .help = "Time the CPU was in C0.",
                .metrics = { { SHARE("busy", "cpu") } } },
        { .name = "cstated_idle_break_wakeups",
                .wide = true,
                .help = "Sleeps of the CPU that ended for nothing.",
                .metrics = { { SUM("wakeups_break", "cpu") } } },
        { .name = "cstated_cpu_interrupts",
                .wide = true,
                .help = "Interrupts the CPU serviced.",
                .metrics = { { SUM("irq", "cpu") } } },
        {},
};

/* The fields of a row of /api/v1/query's CSV that are used here. */
typedef enum Field { F_TIME, F_PACKAGE, F_DIE, F_CORE, F_CPU, F_STATE, F_VALUE, F_COUNT, F_METHOD, F_N } Field;

static const char *const field_names[F_N] = {
        [F_TIME] = "time", [F_PACKAGE] = "package", [F_DIE] = "die", [F_CORE] = "core", [F_CPU] = "cpu",
        [F_STATE] = "state", [F_METHOD] = "method",
        [F_COUNT] = "count", [F_VALUE] = NULL, /* mean or sum */
};

#define CSV_FIELDS_MAX 24

typedef struct Point {
        uint64_t time_ms, count; /* count: samples; 0 where nobody asked */
        double value;
} Point;

typedef struct Series {
        char labels[160];
        Point *points;
        size_t n, size;
} Series;

typedef struct History {
        Series *series;
        size_t n, size, at; /* at: where the next row's series probably is */
        int columns[F_N];
} History;

static void history_deinit(History *h) {
        for (size_t i = 0; i < h->n; i++)
                free(h->series[i].points);
        free(h->series);
}

/* Splits a line in place; no field of ours is quoted (names of idle states have no comma). */
static size_t split(char *line, char *fields[CSV_FIELDS_MAX]) {
        size_t n = 0;

        for (char *p = line; p && n < CSV_FIELDS_MAX;) {
                char *comma = strchr(p, ',');

                fields[n++] = p;
                if (comma)
                        *comma++ = '\0';
                p = comma;
        }
        return n;
}

static int read_header(History *h, const OmHistoryMetric *m, char *line) {
        char *fields[CSV_FIELDS_MAX];
        size_t n = split(line, fields);

        for (Field f = 0; f < F_N; f++) {
                const char *name = f == F_VALUE ? m->mean ? "mean" : "sum" : field_names[f];

                h->columns[f] = -1;
                for (size_t i = 0; i < n; i++)
                        if (strcmp(fields[i], name) == 0)
                                h->columns[f] = (int) i;
        }
        return h->columns[F_TIME] < 0 || h->columns[F_VALUE] < 0 ? -EBADMSG : 0;
}

static const char *field(const History *h, char *const *fields, size_t n, Field f) {
        int at = h->columns[f];

        return at >= 0 && (size_t) at < n ? fields[at] : "";
}

static void add_label(char *labels, size_t size, const char *name, const char *value) {
        size_t n = strlen(labels);

        if (value[0] && !strpbrk(value, "\"\\\n"))
                (void) snprintf(labels + n, size - n, "%s%s=\"%s\"", n > 0 ? "," : "", name, value);
}

/* In the order of /metrics. */
static void row_labels(const History *h, const OmHistoryMetric *m, char *const *fields, size_t n,
        char *labels, size_t size) {
        labels[0] = '\0';
        if (strcmp(m->scope, "cpu") != 0) {
                add_label(labels, size, "package", field(h, fields, n, F_PACKAGE));
                add_label(labels, size, "die", field(h, fields, n, F_DIE));
                add_label(labels, size, "core", field(h, fields, n, F_CORE));
        } else
                add_label(labels, size, "cpu", field(h, fields, n, F_CPU));
        add_label(labels, size, "state", field(h, fields, n, F_STATE));
        if (m->label)
                add_label(labels, size, m->label, m->value);
        add_label(labels, size, "method", field(h, fields, n, F_METHOD));
}

static Series *find_series(History *h, const char *labels) {
        for (size_t i = 0; i < h->n; i++) {
                size_t at = (h->at + i) % h->n;

                if (strcmp(h->series[at].labels, labels) == 0) {
                        h->at = at + 1;
                        return &h->series[at];
                }
        }
        if (h->n == h->size) {
                size_t size = MAX(2 * h->size, (size_t) 16);
                Series *series = reallocarray(h->series, size, sizeof(*series));

                if (!series)
                        return NULL;
                h->series = series;
                h->size = size;
        }
        h->series[h->n] = (Series){};
        (void) snprintf(h->series[h->n].labels, sizeof(h->series[0].labels), "%s", labels);
        h->at = h->n + 1;
        return &h->series[h->n++];
}

static int add_point(Series *s, const Point *p) {
        if (s->n == s->size) {
                size_t size = MAX(2 * s->size, (size_t) 64);
                Point *points = reallocarray(s->points, size, sizeof(*points));

                if (!points)
                        return -ENOMEM;
                s->points = points;
                s->size = size;
        }
        s->points[s->n++] = *p;
        return 0;
}

static int read_row(History *h, const OmHistoryMetric *m, char *line) {
        char *fields[CSV_FIELDS_MAX], labels[160];
        size_t n = split(line, fields);
        Point p = {};
        Series *s;

        if (num_parse_u64(field(h, fields, n, F_TIME), &p.time_ms) < 0)
                return -EBADMSG;
        if (num_parse_double(field(h, fields, n, F_VALUE), &p.value) < 0)
                return 0; /* null */
        if (num_parse_u64(field(h, fields, n, F_COUNT), &p.count) < 0)
                p.count = 0;
        row_labels(h, m, fields, n, labels, sizeof(labels));
        s = find_series(h, labels);
        return s ? add_point(s, &p) : -ENOMEM;
}

static int read_body(History *h, const OmHistoryMetric *m, char *body) {
        char *save = NULL, *line = strtok_r(body, "\r\n", &save);
        int r;

        r = line ? read_header(h, m, line) : -EBADMSG;
        while (r == 0 && (line = strtok_r(NULL, "\r\n", &save)))
                r = read_row(h, m, line);
        return r;
}

static void write_head(const OmHistoryFamily *f, FILE *out) {
        (void) fprintf(out, "# TYPE %s %s\n", f->name, f->gauge ? "gauge" : "counter");
        if (f->unit)
                (void) fprintf(out, "# UNIT %s %s\n", f->name, f->unit);
        (void) fprintf(out, "# HELP %s %s\n", f->name, f->help);
}

static void write_point(
        const OmHistoryFamily *f, const Series *s, uint64_t time_ms, double value, FILE *out) {
        char number[NUM_DOUBLE_MAX];

        (void) num_format_double(value, 15, number);
        (void) fprintf(out, "%s%s%s%s%s %s %llu.%03llu\n", f->name, f->gauge ? "" : "_total",
                s->labels[0] ? "{" : "", s->labels, s->labels[0] ? "}" : "", number,
                (unsigned long long) time_ms / 1000, (unsigned long long) time_ms % 1000);
}

/* Seconds of a share: a step with half of the samples that others have was measured for half of it. */
static double share_seconds(const Point *p, uint64_t count_max, uint64_t step_ms) {
        double covered = count_max > 0 ? (double) p->count / (double) count_max : 1;

        return p->value / 100 * covered * (double) step_ms / 1000;
}

/* A point stands at the end of its step; a counter also at 0 where it begins. */
static int write_series(const OmHistoryFamily *f, const OmHistoryMetric *m, const Series *s, uint64_t step_ms,
        FILE *out) {
        uint64_t count_max = 0;
        double total = 0;

        for (size_t i = 0; i < s->n; i++)
                count_max = MAX(count_max, s->points[i].count);
        if (!f->gauge && s->n > 0)
                write_point(f, s, s->points[0].time_ms, 0, out);
        for (size_t i = 0; i < s->n; i++) {
                const Point *p = &s->points[i];

                total += m->share ? share_seconds(p, count_max, step_ms) : p->value;
                write_point(f, s, p->time_ms + step_ms, f->gauge ? p->value : total, out);
        }
        return (int) s->n;
}

int om_history_write(const OmHistoryFamily *f, const OmHistoryMetric *m, char *body, uint64_t step_ms,
        bool *has_head, FILE *out) {
        History h = {};
        int r, n = 0;

        r = read_body(&h, m, body);
        for (size_t i = 0; i < h.n && r == 0; i++) {
                if (!*has_head)
                        write_head(f, out);
                *has_head = true;
                n += write_series(f, m, &h.series[i], step_ms, out);
        }
        history_deinit(&h);
        return r < 0 ? r : n;
}
