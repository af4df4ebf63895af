/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What a person asks, checked: from key=value parameters to a QuerySpec. Pure. Every refusal names the
 * parameter and says what would be right.
 */

#include "cstated/catalogue.h"
#include "cstated/macro.h"

typedef struct QueryParam {
        const char *key, *value; /* decoded */
} QueryParam;

typedef enum QueryAgg {
        AGG_MEAN = 1 << 0,
        AGG_MIN = 1 << 1,
        AGG_MAX = 1 << 2,
        AGG_STDDEV = 1 << 3,
        AGG_SUM = 1 << 4,
        AGG_COUNT = 1 << 5,
} QueryAgg;

typedef enum QueryFormat { QUERY_ROWS, QUERY_COLUMNS, QUERY_CSV } QueryFormat;
typedef enum QueryTimeFormat { QUERY_TIME_MS, QUERY_TIME_S, QUERY_TIME_ISO } QueryTimeFormat;

#define QUERY_METRICS_MAX 64
#define QUERY_POINTS_MAX  11000

typedef struct QuerySpec {
        const MetricSpec *metrics[QUERY_METRICS_MAX];
        size_t n_metrics;
        bool has_scope;
        Scope scope;                       /* has_scope false: each metric's own */
        uint32_t *packages, *cores, *cpus; /* cpulist filters, NULL: all */
        size_t n_packages, n_cores, n_cpus;
        char state[16]; /* idle state by name, "" all */
        uint64_t start_us, end_us;
        uint64_t now_us;  /* when it was asked: nothing is expected of later */
        uint64_t step_us; /* 0: each tick (or rollup row) by itself */
        /* not 0: step_us was made of it, and buckets begin at start_us; else they are aligned to UTC */
        uint32_t points;
        unsigned aggs; /* QueryAgg, default AGG_MEAN */
        QueryFormat format;
        QueryTimeFormat time_format;
} QuerySpec;

typedef struct QueryError {
        char param[32];
        char message[256];
} QueryError;

/* Which route asks: each has its own parameters, and refuses the others'. */
typedef enum QueryForm {
        QUERY_FORM_QUERY,   /* metric= is required */
        QUERY_FORM_SUMMARY, /* no step, agg; metric= optional; label= is the route's */
        QUERY_FORM_COMPARE, /* no window: a= and b= are the route's */
        QUERY_FORM_EVENTS,  /* a window; kind= and limit= are the route's */
} QueryForm;

void query_spec_deinit(QuerySpec *q);
/*
 * 0, or -EINVAL with *ret_error filled and nothing to free, -ENOMEM. now_us: for relative times and the
 * default window (15 min).
 */
int query_spec_parse(
        const QueryParam *params, size_t n, uint64_t now_us, QuerySpec *ret, QueryError *ret_error);
/* The same for another route's parameters; those that are the route's own are let through unread. */
int query_spec_parse_form(QueryForm form, const QueryParam *params, size_t n, uint64_t now_us,
        QuerySpec *ret, QueryError *ret_error);
/*
 * "START..END" or "START/END", each an instant, half-open. -EINVAL with *ret_error filled (param as given).
 */
int query_window_parse(const char *param, const char *text, uint64_t now_us, uint64_t *ret_start_us,
        uint64_t *ret_end_us, QueryError *ret_error);
/* Fills the error; returns -EINVAL. */
int query_error(QueryError *e, const char *param, const char *format, ...) _printf_(3, 4);
