/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What a person asks, checked: from key=value parameters to a QuerySpec. Pure. Every refusal names the parameter and
 * says what would be right.
 */

#include "cstated/catalogue.h"

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
#define QUERY_POINTS_MAX 11000

typedef struct QuerySpec {
        const MetricSpec *metrics[QUERY_METRICS_MAX];
        size_t n_metrics;
        bool has_scope;
        Scope scope;             /* has_scope false: each metric's own */
        uint32_t *packages, *cores, *cpus; /* cpulist filters, NULL: all */
        size_t n_packages, n_cores, n_cpus;
        char state[16];          /* idle state by name, "" all */
        uint64_t start_us, end_us;
        uint64_t step_us;        /* 0: one value over the whole window or raw ticks, see query.h */
        uint32_t points;         /* 0: not given */
        unsigned aggs;           /* QueryAgg, default AGG_MEAN */
        QueryFormat format;
        QueryTimeFormat time_format;
} QuerySpec;

typedef struct QueryError {
        char param[32];
        char message[256];
} QueryError;

void query_spec_deinit(QuerySpec *q);
/* 0, or -EINVAL with *ret_error filled and nothing to free. now_us: for relative times and the default window (15 min). */
int query_spec_parse(const QueryParam *params, size_t n, uint64_t now_us, QuerySpec *ret, QueryError *ret_error);
