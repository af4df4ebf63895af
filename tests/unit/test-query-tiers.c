/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One window, three tiers, whenever it is asked for: ticks, minutes and hours say the same. */

#include "tests/unit/test.h"

#include <math.h>
#include <stdlib.h>

#include <sqlite3.h>

#include "cstated/timespan.h"
#include "query/query.h"
#include "query/tier.h"
#include "tests/unit/vfs-shim.h"
#include "tests/unit/world.h"

#define MINUTE_US (60 * USEC_PER_SEC)
#define HOUR_US   (3600 * USEC_PER_SEC)
#define BASE_US   (1700000040ULL * USEC_PER_SEC) /* on a minute */
#define TICK_US   (23 * USEC_PER_SEC)            /* not in step with minutes */
#define AGES_US   (20000ULL * 24 * HOUR_US)      /* a step that holds any window */

typedef struct Result {
        QueryRow rows[32];
        char states[32][16];
        size_t n;
        QueryInfo info;
} Result;

static const char metrics[] = "busy,irq,c6,pkg_watts,core_temp,idle_usage,idle_time,avg_mhz";

/* Of the scope, NULL: of CPU 3 and what it belongs to; in one bucket, from the tier that the length of the step allows. */
static void run(World *w, const char *scope, uint64_t start_us, uint64_t end_us, StoreTier tier, Result *ret) {
        static const uint64_t steps[] = {
                [TIER_RAW] = AGES_US + 1, [TIER_1M] = AGES_US + MINUTE_US, [TIER_1H] = AGES_US
        };
        QueryParam params[] = { { "metric", metrics }, { scope ? "scope" : "cpu", scope ?: "3" },
                { "agg", "mean,min,max,stddev,sum,count" } };
        QueryError error = {};
        const QueryRow *row;
        QuerySpec spec;
        Query *q;
        int r;

        *ret = (Result) {};
        assert_int_equal(query_spec_parse(params, ARRAY_SIZE(params), w->time_us, &spec, &error), 0);
        spec.start_us = start_us;
        spec.end_us = end_us;
        spec.step_us = steps[tier];
        r = query_new(w->reader, &spec, &q, &error);
        if (r != 0)
                fail_msg("%d %s: %s", r, error.param, error.message);
        while ((r = query_next(q, &row)) > 0) {
                if (r == 2)
                        continue;
                assert_true(ret->n < ARRAY_SIZE(ret->rows));
                (void) snprintf(ret->states[ret->n], sizeof(ret->states[0]), "%s", row->state ?: "");
                ret->rows[ret->n++] = *row;
        }
        assert_int_equal(r, 0);
        query_info(q, &ret->info);
        assert_int_equal(ret->info.tier, tier);
        (void) query_free(q);
        query_spec_deinit(&spec);
}

static void expect_near(const char *what, const QueryRow *row, double a, double b, double share) {
        if (isnan(a) && isnan(b))
                return;
        if (!(fabs(a - b) <= share * fabs(b) + 1e-9))
                fail_msg("%s of %s: %.12g is not %.12g", what, row->metric->id, a, b);
}

/* spread: of metrics whose rollups keep it, which they do at a metric's own scope. */
static void expect_same(const Result *a, const Result *b, bool spread) {
        assert_int_equal(a->n, b->n);
        assert_true(a->n > 4);
        for (size_t i = 0; i < a->n; i++) {
                const QueryRow *x = &a->rows[i], *y = &b->rows[i];

                assert_ptr_equal(x->metric, y->metric);
                assert_string_equal(a->states[i], b->states[i]);
                assert_int_equal(x->cpu, y->cpu);
                assert_int_equal(x->count, y->count);
                assert_int_equal(x->sum_count, y->sum_count);
                expect_near("sum", x, x->sum, y->sum, 1e-9);
                expect_near("mean", x, x->mean, y->mean, 1e-6);
                if (!spread || strcmp(x->metric->id, "avg_mhz") == 0)
                        continue;
                expect_near("stddev", x, x->stddev, y->stddev, 2e-3);
                expect_near("min", x, x->min, y->min, 1e-3);
                expect_near("max", x, x->max, y->max, 1e-3);
        }
}

static void ask(World *w, const char *scope, uint64_t start_us, uint64_t end_us) {
        Result raw, minutes, hours;

        run(w, scope, start_us, end_us, TIER_RAW, &raw);
        run(w, scope, start_us, end_us, TIER_1M, &minutes);
        run(w, scope, start_us, end_us, TIER_1H, &hours);
        assert_in_range(raw.rows[0].count, (end_us - start_us) / TICK_US - 2, (end_us - start_us) / TICK_US + 1);
        expect_same(&minutes, &raw, false);
        expect_same(&hours, &raw, false);
        /* what the finer tiers gave counts as the part of a row that it is */
        assert_in_range(minutes.info.samples + 1, minutes.info.expected, minutes.info.expected + 2);
        assert_in_range(hours.info.samples + 1, hours.info.expected, hours.info.expected + 2);
        assert_int_equal(minutes.info.gaps, raw.info.gaps);
        assert_int_equal(hours.info.gaps, raw.info.gaps);
}

/* More than two days are behind us; now it is asked again and again, as time goes on over more than an hour. */
static void test_whenever_it_is_asked(void **state) {
        World *w = *state;

        world_vary(w, 49 * HOUR_US / TICK_US);
        world_maintain(w);
        for (uint64_t i = 0; i < 9; i++) {
                const char *scope = i % 2 ? "package" : "system";

                world_vary(w, 1 + i * i % 29);
                if (i % 3 == 0)
                        world_maintain(w);
                if (i % 4 == 3) /* a minute in two chunks, one of them open */
                        assert_int_equal(store_flush(w->store), 0);
                ask(w, scope, BASE_US + 13 * USEC_PER_SEC + i, w->time_us);
                /* later than the last tick, and in the past */
                ask(w, scope, BASE_US, w->time_us + 3 * USEC_PER_SEC);
                ask(w, scope, BASE_US + 100 * USEC_PER_SEC, w->time_us - (i + 1) * 101 * USEC_PER_SEC);
        }
}

/* Spread of ticks, of a CPU's own metrics. */
static void test_spread(void **state) {
        World *w = *state;
        Result raw, minutes, hours;

        world_vary(w, 50 * HOUR_US / TICK_US + 5);
        world_maintain(w);
        run(w, NULL, BASE_US + USEC_PER_SEC, w->time_us, TIER_RAW, &raw);
        run(w, NULL, BASE_US + USEC_PER_SEC, w->time_us, TIER_1M, &minutes);
        run(w, NULL, BASE_US + USEC_PER_SEC, w->time_us, TIER_1H, &hours);
        expect_same(&minutes, &raw, true);
        expect_same(&hours, &raw, true);
}

/* The disk is away: minutes wait in memory, and are told all the same. */
static void test_minutes_in_memory(void **state) {
        World *w = *state;
        Result raw, minutes;
        const char *problem;

        world_vary(w, 7 * HOUR_US / TICK_US);
        world_maintain(w);
        vfs_shim.fail_write = SQLITE_FULL;
        world_vary(w, 20 * MINUTE_US / TICK_US);
        run(w, "system", BASE_US, w->time_us, TIER_RAW, &raw);
        run(w, "system", BASE_US, w->time_us, TIER_1M, &minutes);
        assert_in_range(raw.rows[0].count, (w->time_us - BASE_US) / TICK_US, (w->time_us - BASE_US) / TICK_US);
        expect_same(&minutes, &raw, false);
        assert_true(store_is_degraded(w->store, &problem));
        vfs_shim.fail_write = 0;
}

/* A machine that goes and a clock that goes back, within the last hour. */
static void test_changes(void **state) {
        World *w = *state;
        Result raw, hours;

        world_vary(w, 49 * HOUR_US / TICK_US);
        world_change(w, world_machine());
        world_vary(w, 3);
        world_gap(w, 11 * USEC_PER_SEC);
        world_vary(w, 100);
        world_change(w, world_machine());
        world_vary(w, 4);
        for (unsigned i = 0; i < 2; i++) {
                run(w, "system", BASE_US + 1, w->time_us, TIER_RAW, &raw);
                run(w, "system", BASE_US + 1, w->time_us, TIER_1H, &hours);
                expect_same(&hours, &raw, false);
                world_maintain(w);
        }
}

/* A tick over which the clock is set. */
static void set_clock(World *w, int64_t by_us) {
        w->sample.h.seq = ++w->seq;
        w->sample.h.start_us = w->time_us;
        w->time_us += TICK_US + (uint64_t) by_us;
        w->sample.h.end_us = w->time_us;
        w->sample.h.dt_ns = TICK_US * NSEC_PER_USEC;
        assert_int_equal(store_append(w->store, &w->sample), 0);
}

/* A tick in which the clock was set is as long as it was, not from one reading of the clock to the next. */
static void test_clock_set_in_a_tick(void **state) {
        World *w = *state;
        Result raw, hours;

        world_vary(w, 49 * HOUR_US / TICK_US);
        world_maintain(w);
        set_clock(w, 5 * (int64_t) HOUR_US);
        run(w, "system", BASE_US, w->time_us, TIER_RAW, &raw);
        run(w, "system", BASE_US, w->time_us, TIER_1H, &hours);
        expect_same(&hours, &raw, false);
        assert_in_range(hours.info.samples, 49, 50);
        set_clock(w, -5 * (int64_t) HOUR_US);
        world_vary(w, 2);
        run(w, "system", BASE_US, w->time_us, TIER_RAW, &raw);
        run(w, "system", BASE_US, w->time_us, TIER_1H, &hours);
        expect_same(&hours, &raw, false);
        assert_in_range(hours.info.samples, 49, 50);
}

/* While the clock stands before the history, the history is told as ever: also what only rows have kept. */
static void test_clock_set_back(void **state) {
        World *w = *state;
        uint64_t end_us;
        Result minutes[2], hours[2];

        world_vary(w, 49 * HOUR_US / TICK_US + 7);
        world_maintain(w);
        end_us = w->time_us;
        run(w, "system", BASE_US, end_us, TIER_1M, &minutes[0]);
        run(w, "system", BASE_US, end_us, TIER_1H, &hours[0]);
        set_clock(w, -60 * (int64_t) HOUR_US);
        world_vary(w, 9);
        assert_int_equal(store_flush(w->store), 0);
        world_vary(w, 1);
        run(w, "system", BASE_US, end_us, TIER_1M, &minutes[1]);
        run(w, "system", BASE_US, end_us, TIER_1H, &hours[1]);
        assert_in_range(minutes[0].rows[0].count, 40 * HOUR_US / TICK_US, 50 * HOUR_US / TICK_US);
        expect_same(&minutes[1], &minutes[0], false);
        expect_same(&hours[1], &hours[0], false);
}

/* The same where the clock was ahead and is right now: its rows lie in the future, and no tick of today is lost. */
static void test_clock_was_ahead(void **state) {
        World *w = *state;
        Result raw, minutes, hours;

        world_vary(w, 49 * HOUR_US / TICK_US);
        set_clock(w, 1000 * (int64_t) HOUR_US);
        world_vary(w, 3 * HOUR_US / TICK_US);
        world_maintain(w);
        set_clock(w, -1003 * (int64_t) HOUR_US);
        for (uint64_t i = 0; i < 7; i++) {
                world_vary(w, 1 + 37 * i);
                world_maintain(w);
                run(w, "system", BASE_US, w->time_us, TIER_RAW, &raw);
                run(w, "system", BASE_US, w->time_us, TIER_1M, &minutes);
                run(w, "system", BASE_US, w->time_us, TIER_1H, &hours);
                expect_same(&minutes, &raw, false);
                expect_same(&hours, &raw, false);
        }
}

static int setup_expiring(void **state) {
        World *w = calloc(1, sizeof(*w));

        assert_non_null(w);
        vfs_shim_install();
        world_open_expiring(w, BASE_US, TICK_US, 2 * HOUR_US, AGES_US);
        *state = w;
        return 0;
}

static int setup(void **state) {
        World *w = calloc(1, sizeof(*w));

        assert_non_null(w);
        vfs_shim_install();
        world_open(w, NULL, BASE_US, TICK_US);
        *state = w;
        return 0;
}

static int teardown(void **state) {
        world_close(*state);
        vfs_shim_remove();
        free(*state);
        return 0;
}

/* A window that is too dear by ticks is asked of minutes, then of hours, where these are good enough for the step. */
static void test_affordable(void **state) {
        const TierChoice all = { .tier = TIER_RAW, .answers = { false, true, true } };
        const TierChoice minutes = { .tier = TIER_RAW, .answers = { false, true, false } };
        const TierChoice hours = { .tier = TIER_RAW, .answers = { false, false, true } };
        QuerySpec hour = { .end_us = HOUR_US }, day = { .end_us = 24 * HOUR_US };

        assert_int_equal(tier_affordable(&all, &hour, 12000, true, USEC_PER_SEC), TIER_RAW);
        assert_int_equal(tier_affordable(&all, &day, 1300, true, USEC_PER_SEC), TIER_RAW);
        assert_int_equal(tier_affordable(&all, &day, 12000, true, USEC_PER_SEC), TIER_1H);
        assert_int_equal(tier_affordable(&hours, &day, 12000, true, USEC_PER_SEC), TIER_1H);
        /* ten ticks a second: minutes are worth it, though not cheap */
        assert_int_equal(tier_affordable(&minutes, &day, 12000, false, USEC_PER_SEC / 10), TIER_1M);
        /* a tick in ten seconds: minutes with their spread would cost more */
        assert_int_equal(tier_affordable(&minutes, &day, 100000, true, 10 * USEC_PER_SEC), TIER_RAW);
        assert_int_equal(tier_affordable(&all, &day, 12000, true, 0), TIER_RAW);
        assert_int_equal(tier_affordable(&(TierChoice) { .tier = TIER_1M, .answers = { false, true, true } }, &day,
                                 12000, false, USEC_PER_SEC), TIER_1H);
        assert_int_equal(
                tier_affordable(&(TierChoice) { .tier = TIER_RAW }, &day, 12000, false, USEC_PER_SEC), TIER_RAW);
}

#define TIER_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TIER_TEST(test_whenever_it_is_asked),
                TIER_TEST(test_spread),
                TIER_TEST(test_minutes_in_memory),
                TIER_TEST(test_changes),
                TIER_TEST(test_clock_set_in_a_tick),
                cmocka_unit_test_setup_teardown(test_clock_set_back, setup_expiring, teardown),
                TIER_TEST(test_clock_was_ahead),
                cmocka_unit_test(test_affordable),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
