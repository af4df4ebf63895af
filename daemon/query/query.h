/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Runs a QuerySpec over the store: one pass, bounded memory, rows handed out as they are complete. Ratios
 * aggregate as sum(num)/sum(den); min, max and stddev are over the ticks (raw) of a bucket.
 */

#include "query/compare.h"
#include "query/query-spec.h"
#include "store/store.h"

typedef struct QueryRow {
        /* bucket start; without step the tick's end (of rollups: the minute's or hour's start) */
        uint64_t time_us;
        const MetricSpec *metric;
        Scope scope;
        int64_t package, die, module, core, cpu; /* kernel ids, -1 where wider or none */
        const char *state;                       /* idle state name or NULL */
        const char *method; /* "stat", "bound": what stands in for the metric's own counters; NULL: those */
        Reason reason;      /* REASON_NONE: values count */
        double mean, min, max, stddev; /* counters: per second; NAN where not asked for or unknown */
        double sum;                    /* joules, seconds; NAN where the metric has no sum */
        bool is_count;                 /* the sum is sum_count, exact */
        int64_t sum_count;
        uint64_t count; /* ticks with a value */
} QueryRow;

typedef struct QueryInfo {
        uint64_t start_us, end_us, step_us;
        StoreTier tier;
        uint64_t samples, expected, gaps;
} QueryInfo;

typedef struct Query Query;

enum {
        /* more than QUERY_POINTS_MAX points a series, or the byte budget: error filled (how to ask better) */
        QUERY_E_TOO_MANY = 1,
        QUERY_E_NO_SUCH = 3, /* a filter names what the machine does not have: error filled */
};
/* The spec is borrowed until query_free(). A refusal of the store (-EBADMSG, -ETIME) is forwarded. */
int query_new(StoreReader *r, const QuerySpec *spec, Query **ret, QueryError *ret_error);
Query *query_free(Query *q);
DEFINE_CLEANUP(Query *, query_free);
/*
 * 1: *ret is the next row (borrowed); 0: end; 2: a slice of work is done and no row is ready yet (call
 * again); <0.
 */
int query_next(Query *q, const QueryRow **ret);
/* Valid after the end (samples, gaps) or at once (window, step, tier). Rollups count their rows. */
void query_info(const Query *q, QueryInfo *ret);
/* How many series the spec has on that machine; QUERY_E_TOO_MANY with the error filled. */
int query_count_series(const QuerySpec *spec, const Machine *m, size_t *ret, QueryError *ret_error);
/* Series known so far: rows a bucket has at most. */
size_t query_n_series(const Query *q);
/* Has any machine of the window, so far, given this metric? */
bool query_has_metric(const Query *q, const MetricSpec *m);
/* Of the last machine seen; all unknown before the first block. */
void query_facts(const Query *q, CompareFacts *ret);
