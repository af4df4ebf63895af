/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The engine: blocks from the store are cut into runs of ticks that fall into the same bucket, runs are
 * folded into series, and when the bucket changes the series are handed out as rows. Memory is the series of
 * one bucket and one block, however long the window. Work is counted in values, so that a slice ends by
 * itself; no clock is read.
 *
 * Buckets: (start, start + step] by a tick's end, aligned to UTC, or to the window's start where points were
 * asked for. A clock that was set back makes a bucket appear twice, in the order things happened.
 */

#include <errno.h>
#include <stdlib.h>

#include "cstated/macro.h"
#include "cstated/num.h"
#include "cstated/timespan.h"
#include "model/metric.h"

#include "query/feed.h"
#include "query/fold.h"
#include "query/plan.h"
#include "query/query.h"
#include "query/tier.h"

#define SLICE_VALUES 500000 /* a few ms */
/*
 * A core is read at least this often: so far before the window lie the values that stand for its first
 * seconds.
 */
#define SETTLE_US (61 * USEC_PER_SEC)

struct Query {
        const QuerySpec *spec;
        StoreReader *reader;
        Plan plan;
        Fold fold;
        Feed feed;
        QueryInfo info;
        uint64_t tick_us;  /* usual length of a tick or row of the tier */
        uint64_t block_us; /* the same of the block, which may be of a finer tier */
        uint64_t fine_us;  /* covered by ticks and rows of finer tiers */
        bool spread;

        const StoreBlock *block; /* NULL: fetch the next */
        const Machine *machine;  /* to be compared only: between two slices it may go */
        CompareFacts facts;      /* of it */
        StoreTier machine_tier; /* the plan is for that machine in that tier */
        uint32_t generation;
        size_t at, run_end;   /* ticks of the block: folded up to at; the run in work ends at run_end */
        size_t series_at;     /* series the run has been folded into */
        uint64_t last_end_us; /* of the last tick seen */
        uint32_t epoch;

        bool has_bucket, is_warm, emitting, ended;
        uint64_t bucket_us; /* its first microsecond */
        size_t emit_at;
        QueryRow row;
};

Query *query_free(Query *q) {
        if (!q)
                return NULL;
        feed_deinit(&q->feed);
        plan_deinit(&q->plan);
        fold_deinit(&q->fold);
        free(q);
        return NULL;
}

void query_info(const Query *q, QueryInfo *ret) {
        *ret = q->info;
}

void query_facts(const Query *q, CompareFacts *ret) {
        *ret = q->facts;
}

size_t query_n_series(const Query *q) {
        return q->plan.n_series;
}

bool query_has_metric(const Query *q, const MetricSpec *m) {
        for (size_t i = 0; i < q->plan.n_series; i++)
                if (q->plan.series[i].metric == m)
                        return true;
        return false;
}

static int too_many_series(QueryError *error) {
        (void) query_error(error, "metric", "more than %d series: ask for fewer metrics, or scope=package",
                PLAN_SERIES_MAX);
        return QUERY_E_TOO_MANY;
}

/* Takes a block in: new machine, usual length of a tick. */
static int query_take_block(Query *q, const StoreBlock *b) {
        int r;

        q->block = b;
        q->at = q->run_end = q->series_at = 0;
        q->block_us = tier_length_us(q->feed.tier) ?: tier_tick_us(b);
        if (b->machine == q->machine && b->machine->generation == q->generation && b->epoch == q->epoch &&
                q->machine_tier == q->feed.tier)
                return 0;
        for (size_t i = 0; i < q->plan.n_series; i++)
                fold_settle(&q->plan, &q->plan.series[i]);
        r = plan_set_machine(&q->plan, b->machine, b->layout);
        compare_facts(b->machine, &q->facts);
        q->machine = b->machine;
        q->machine_tier = q->feed.tier;
        q->generation = b->machine->generation;
        q->epoch = b->epoch;
        return r;
}

/* 1: there is a block; 0: that was the last. */
static int query_fetch(Query *q) {
        const StoreBlock *b;
        int r = feed_next(&q->feed, &b);

        if (r <= 0)
                return r;
        r = query_take_block(q, b);
        return r < 0 ? r : r == PLAN_E_TOO_MANY ? -E2BIG : 1;
}

static bool is_settled_query(const Query *q) {
        for (size_t i = 0; i < q->plan.n_series; i++) {
                const Series *s = &q->plan.series[i];

                if (s->by_member && (s->n_members > 1 || ((s->metric->flags & METRIC_SETTLED) && !s->is_own)))
                        return q->info.tier == TIER_RAW;
        }
        return false;
}

/* Whether the spread of rows is of use: a wider scope cannot know how its members moved together. */
static bool rows_have_spread(const Query *q) {
        bool own = q->plan.n_series == 0; /* a machine is yet to come */

        for (size_t i = 0; i < q->plan.n_series && !own; i++)
                own = q->plan.series[i].is_own;
        return q->spread && (own || !q->spec->has_scope);
}

/* Opens the scan of the tier and looks at its first block. */
static int query_open(Query *q, StoreTier tier) {
        StoreScanSpec scan = {
                .start_us = q->spec->start_us,
                .end_us = q->spec->end_us,
                .tier = tier,
                .fields = q->plan.fields,
                .n_fields = q->plan.n_fields,
        };
        int r;

        if (!rows_have_spread(q))
                scan.no_spread = ~0u;
        else if (q->spec->has_scope)
                scan.no_spread = ~(1u << q->spec->scope);
        q->info.tier = tier;
        feed_deinit(&q->feed);
        q->block = NULL;
        q->machine = NULL;
        if (is_settled_query(q))
                scan.start_us -= MIN(scan.start_us, SETTLE_US);
        r = feed_init(&q->feed, q->reader, &scan);
        if (r == 0)
                r = query_fetch(q);
        if (r < 0)
                return r;
        q->tick_us = tier_length_us(tier);
        if (r > 0 && tier == TIER_RAW)
                q->tick_us = q->block_us;
        return 0;
}

/* The series and members the newest machine needs, for the estimate of the cost. */
static int query_survey(Query *q, QueryError *error) {
        const Machine *m = NULL;
        Layout layout;
        int r;

        r = store_reader_machine(q->reader, &m);
        if (r < 0 || !m)
                return r < 0 && r != -ENOENT ? r : 0;
        sample_layout(m, &layout);
        r = plan_set_machine(&q->plan, m, &layout);
        return r == PLAN_E_TOO_MANY ? too_many_series(error) : r;
}

int query_count_series(const QuerySpec *spec, const Machine *m, size_t *ret, QueryError *ret_error) {
        Layout layout;
        Plan plan;
        int r;

        r = plan_init(&plan, spec);
        if (r == 0) {
                sample_layout(m, &layout);
                r = plan_set_machine(&plan, m, &layout);
        }
        if (r == 0)
                *ret = plan.n_series;
        plan_deinit(&plan);
        return r == PLAN_E_TOO_MANY ? too_many_series(ret_error) : r;
}

static bool has_offline(const Machine *m, const QuerySpec *spec) {
        for (size_t i = 0; i < spec->n_cpus; i++)
                for (uint32_t k = 0; k < m->n_offline; k++)
                        if (m->offline[k] == spec->cpus[i])
                                return true;
        return false;
}

static int compare_ids(const void *a, const void *b) {
        uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;

        return x < y ? -1 : x > y;
}

/* A filter by kernel ids names none of the machine's: says which there are. Memory may fail, then without. */
static void no_such(const Machine *m, Scope scope, QueryError *error) {
        uint32_t n = machine_n_entities(m, scope);
        _cleanup_free_ uint32_t *ids = calloc(n + 1, sizeof(*ids));
        _cleanup_free_ char *list = NULL;
        size_t k = 0;

        for (uint32_t i = 0; ids && i < n; i++)
                ids[i] = scope == SCOPE_CPU    ? m->cpus[i].id
                         : scope == SCOPE_CORE ? (uint32_t) m->cores[i].id
                                               : (uint32_t) m->packages[i].package;
        if (ids)
                qsort(ids, n, sizeof(*ids), compare_ids);
        for (uint32_t i = 0; ids && i < n; i++) /* ids of cores are a package's own, of packages a die's */
                if (i == 0 || ids[i] != ids[i - 1])
                        ids[k++] = ids[i];
        list = ids ? num_format_cpulist(ids, k) : NULL;
        (void) query_error(error, scope_name(scope), "no such %s here: there are %.200s",
                scope == SCOPE_CPU ? "CPU" : scope_name(scope), list ?: "others");
}

/* Filters that nothing passes are an error in the question; CPUs that are merely offline are not. */
static int check_filters(const Query *q, const Machine *newest, QueryError *error) {
        const Machine *m = q->machine ? q->machine : newest;
        const QuerySpec *spec = q->spec;

        if (q->plan.n_series > 0 || !m || (newest && has_offline(newest, spec)))
                return 0;
        if (spec->state[0])
                (void) query_error(
                        error, "state", "no CPU of this machine has an idle state '%s'", spec->state);
        else if (spec->n_cpus > 0)
                no_such(m, SCOPE_CPU, error);
        else if (spec->n_cores > 0)
                no_such(m, SCOPE_CORE, error);
        else if (spec->n_packages > 0)
                no_such(m, SCOPE_PACKAGE, error);
        else
                return 0;
        return QUERY_E_NO_SUCH;
}

static uint64_t window_now(const Query *q) {
        return q->spec->now_us > 0 ? MIN(q->spec->end_us, q->spec->now_us) : q->spec->end_us;
}

static int check_newest(Query *q, QueryError *error) {
        const Machine *newest = NULL;
        int r = store_reader_machine(q->reader, &newest);

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        /* where the machine gives none of the metrics at all, no filter is to blame */
        for (size_t i = 0; newest && i < q->plan.n_metrics; i++) {
                Layout layout;

                sample_layout(newest, &layout);
                if (metric_available(q->plan.metrics[i], &layout))
                        return check_filters(q, newest, error);
        }
        return 0;
}

static int query_begin(Query *q, QueryError *error) {
        TierChoice choice;
        StoreTier tier;
        int r;

        r = query_survey(q, error);
        if (r != 0)
                return r;
        r = tier_choose(q->reader, q->spec, &choice);
        if (r == 0)
                r = query_open(q, choice.tier);
        if (r == 0) {
                tier = tier_affordable(&choice, q->spec, q->plan.n_members, rows_have_spread(q), q->tick_us);
                if (tier != choice.tier)
                        r = query_open(q, tier);
        }
        if (r == -E2BIG)
                return too_many_series(error);
        if (r < 0)
                return r;
        r = check_newest(q, error);
        if (r != 0)
                return r;
        if (q->info.tier != TIER_RAW && q->info.step_us > 0 && q->info.step_us < q->tick_us)
                q->info.step_us = q->tick_us;
        if (q->tick_us > 0 && window_now(q) > q->spec->start_us)
                q->info.expected = (window_now(q) - q->spec->start_us + q->tick_us / 2) / q->tick_us;
        return tier_check_size(q->reader, q->spec, &q->info, q->plan.n_series, q->tick_us, error);
}

int query_new(StoreReader *r, const QuerySpec *spec, Query **ret, QueryError *ret_error) {
        _cleanup_(query_freep) Query *q = calloc(1, sizeof(*q));
        int code;

        if (!q)
                return -ENOMEM;
        q->spec = spec;
        q->reader = r;
        q->spread = spec->aggs & (AGG_MIN | AGG_MAX | AGG_STDDEV);
        q->info =
                (QueryInfo){ .start_us = spec->start_us, .end_us = spec->end_us, .step_us = spec->step_us };
        code = plan_init(&q->plan, spec);
        if (code == 0)
                code = query_begin(q, ret_error);
        if (code != 0)
                return code;
        *ret = TAKE_PTR(q);
        return 0;
}

/* Without a step a tick is a bucket, and so is a row: the ticks that stand for one that is not there yet are, too. */
static uint64_t bucket_step(const Query *q) {
        return q->info.step_us > 0 || q->info.tier == TIER_RAW ? q->info.step_us : q->tick_us;
}

/* First microsecond of the bucket that holds a tick ending at end. */
static uint64_t bucket_of(const Query *q, uint64_t end) {
        uint64_t anchor = q->spec->points > 0 ? q->spec->start_us : 0, step = bucket_step(q);

        if (step == 0)
                return end;
        /* (start, start + step]: an end on the border belongs to the bucket before */
        return anchor + (end - anchor - (end > anchor)) / step * step;
}

static bool is_warm(const Query *q, size_t i) {
        return q->block->end_us[i] <= q->spec->start_us;
}

static void note_gap(Query *q, uint64_t start, uint64_t end) {
        if (end > start && end - start > q->tick_us + q->tick_us / 2)
                q->info.gaps++;
}

/* Counts the ticks [at, run_end) and the holes between them. */
static void query_count(Query *q) {
        for (size_t i = q->at; i < q->run_end; i++) {
                uint64_t before = q->last_end_us > 0 ? q->last_end_us : q->spec->start_us;

                if (q->block_us > 0 &&
                        q->block->start_us[i] > before + (q->last_end_us > 0 ? q->block_us / 2 : q->block_us))
                        q->info.gaps++;
                q->last_end_us = q->block->end_us[i];
                if (q->feed.tier == q->info.tier)
                        q->info.samples++;
                else
                        q->fine_us += q->block->dt_ns[i] / NSEC_PER_USEC; /* the wall clock may have been set in it */
        }
}

/*
 * Finds the next run. False: it belongs to another bucket than the one being filled, whose rows must go
 * first.
 */
static bool query_begin_run(Query *q) {
        bool warm = is_warm(q, q->at);
        uint64_t bucket = warm ? 0 : bucket_of(q, q->block->end_us[q->at]);

        if (q->has_bucket && (warm != q->is_warm || bucket != q->bucket_us || bucket_step(q) == 0))
                return false;
        q->has_bucket = true;
        q->is_warm = warm;
        q->bucket_us = bucket;
        q->series_at = 0;
        q->run_end = q->at + 1;
        while (q->run_end < q->block->n && is_warm(q, q->run_end) == warm &&
                (warm || (bucket_step(q) > 0 && bucket_of(q, q->block->end_us[q->run_end]) == bucket)))
                q->run_end++;
        if (!warm)
                query_count(q);
        return true;
}

/* Folds the run into the remaining series until the budget is used up. */
static int query_fold(Query *q, int64_t *budget) {
        size_t n = q->run_end - q->at;

        for (; q->series_at<q->plan.n_series && * budget> 0; q->series_at++) {
                Series *s = &q->plan.series[q->series_at];
                bool spread = q->spread && !q->is_warm;
                int r;

                if (q->feed.tier == q->info.tier)
                        r = fold_run(&q->fold, &q->plan, s, q->block, q->at, q->run_end, spread);
                else
                        r = fold_run_as_row(&q->fold, &q->plan, s, q->block, q->at, q->run_end, spread);
                if (r < 0)
                        return r;
                *budget -= (int64_t) (n * s->n_members + 8);
        }
        if (q->series_at == q->plan.n_series) {
                q->at = q->run_end;
                if (q->at == q->block->n)
                        q->block = NULL;
        }
        return 0;
}

/* The next row of the full bucket; false after the last. */
static bool query_emit(Query *q, const QueryRow **ret) {
        for (; q->emit_at < q->plan.n_series; q->emit_at++) {
                Series *s = &q->plan.series[q->emit_at];

                if (!s->touched)
                        continue;
                fold_take(&q->plan, s, &q->row);
                if (q->is_warm)
                        continue;
                q->row.time_us = bucket_step(q) > 0 ? MAX(q->bucket_us, q->spec->start_us) : q->bucket_us;
                *ret = &q->row;
                q->emit_at++;
                return true;
        }
        q->emitting = q->has_bucket = false;
        return false;
}

static void query_end(Query *q) {
        q->ended = true;
        if (q->tick_us > 0)
                q->info.samples += (q->fine_us + q->tick_us / 2) / q->tick_us;
        if (q->last_end_us > 0)
                note_gap(q, q->last_end_us, window_now(q));
        else if (q->info.expected > 0)
                q->info.gaps = 1;
        q->emit_at = 0;
        q->emitting = q->has_bucket;
}

int query_next(Query *q, const QueryRow **ret) {
        int64_t budget = SLICE_VALUES;
        int r;

        for (;;) {
                if (q->emitting && query_emit(q, ret))
                        return 1;
                if (q->ended)
                        return 0;
                if (budget <= 0)
                        return 2;
                if (!q->block) {
                        r = query_fetch(q);
                        if (r < 0)
                                return r;
                        if (r == 0)
                                query_end(q);
                        else
                                budget -= (int64_t) (q->block->n * q->block->layout->n_values + 1000);
                        continue;
                }
                if (q->at == q->run_end && !query_begin_run(q)) {
                        q->emit_at = 0;
                        q->emitting = true;
                        continue;
                }
                r = query_fold(q, &budget);
                if (r < 0)
                        return r;
        }
}
