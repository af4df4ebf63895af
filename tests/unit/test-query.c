/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The engine over a real store: values that can be worked out by hand. */

#include "tests/unit/test.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "cstated/timespan.h"
#include "model/metric.h"
#include "query/collect.h"
#include "query/query.h"
#include "tests/unit/machine-fixture.h"
#include "tests/unit/world.h"

#define BASE_US  (1700000040ULL * USEC_PER_SEC) /* on a minute */
#define ROWS_MAX 20000

typedef struct Result {
        QueryRow *rows;
        size_t n;
        QueryInfo info;
} Result;

static void assert_near(double a, double b, double share) {
        if (!(fabs(a - b) <= share * fabs(b) + 1e-12))
                fail_msg("%.9g is not %.9g", a, b);
}

/*
 * Parses and runs; fails the test on any refusal. States are copied to where their name outlives the query.
 */
static Result run(World *w, const char *text) {
        static const char *const names[] = { "POLL", "C1", "C1E", "C6", "IDLE" };
        Result result = { .rows = calloc(ROWS_MAX, sizeof(QueryRow)) };
        char *copy = strdup(text);
        QueryParam params[16];
        QueryError error = {};
        const QueryRow *row;
        QuerySpec spec;
        size_t n;
        Query *q;
        int r;

        assert_int_equal(route_parse_query_string(copy, params, 16, &n), 0);
        r = query_spec_parse(params, n, w->time_us, &spec, &error);
        if (r != 0)
                fail_msg("%s: %s", error.param, error.message);
        r = query_new(w->reader, &spec, &q, &error);
        if (r != 0)
                fail_msg("%d %s: %s", r, error.param, error.message);
        while ((r = query_next(q, &row)) > 0) {
                if (r == 2)
                        continue;
                assert_true(result.n < ROWS_MAX);
                result.rows[result.n] = *row;
                for (size_t i = 0; row->state && i < ARRAY_SIZE(names); i++)
                        if (strcmp(names[i], row->state) == 0)
                                result.rows[result.n].state = names[i];
                result.n++;
        }
        assert_int_equal(r, 0);
        query_info(q, &result.info);
        (void) query_free(q);
        query_spec_deinit(&spec);
        free(copy);
        return result;
}

static char window_text[400];
static const char *window(uint64_t start_us, uint64_t end_us, const char *rest) {
        (void) snprintf(window_text, sizeof(window_text), "start=%llu&end=%llu&%s",
                (unsigned long long) (start_us / 1000), (unsigned long long) (end_us / 1000), rest);
        return window_text;
}

static int setup(void **state) {
        World *w = calloc(1, sizeof(*w));

        world_open(w, NULL, BASE_US, USEC_PER_SEC);
        *state = w;
        return 0;
}

static int teardown(void **state) {
        world_close(*state);
        free(*state);
        return 0;
}

static void test_ticks(void **state) {
        World *w = *state;
        Result r;

        world_busy(w, 3, 25);
        world_ticks(w, 10);
        r = run(w, window(BASE_US, BASE_US + 10 * USEC_PER_SEC, "metric=busy&cpu=3"));
        assert_int_equal(r.n, 10);
        for (size_t i = 0; i < 10; i++) {
                assert_int_equal(r.rows[i].time_us, BASE_US + (i + 1) * USEC_PER_SEC);
                assert_int_equal(r.rows[i].cpu, 3);
                assert_int_equal(r.rows[i].core, 1);
                assert_int_equal(r.rows[i].package, 1);
                assert_int_equal(r.rows[i].scope, SCOPE_CPU);
                assert_near(r.rows[i].mean, 25, 1e-6);
                assert_int_equal(r.rows[i].count, 1);
        }
        assert_int_equal(r.info.samples, 10);
        assert_int_equal(r.info.expected, 10);
        assert_int_equal(r.info.gaps, 0);
        assert_int_equal(r.info.tier, TIER_RAW);
        free(r.rows);
}

/* [start, end): a tick belongs to the window in which it ends, after the start. */
static void test_window_is_half_open(void **state) {
        World *w = *state;
        Result r;

        world_ticks(w, 10);
        r = run(w, window(BASE_US + 3 * USEC_PER_SEC, BASE_US + 6 * USEC_PER_SEC, "metric=busy&cpu=0"));
        assert_int_equal(r.n, 3);
        assert_int_equal(r.rows[0].time_us, BASE_US + 4 * USEC_PER_SEC);
        assert_int_equal(r.rows[2].time_us, BASE_US + 6 * USEC_PER_SEC);
        free(r.rows);
}

/*
 * A ratio over a window is sum over sum: a busy second of many ticks outweighs, a mean of ratios would not.
 */
static void test_ratio_is_sum_over_sum(void **state) {
        World *w = *state;
        Result r;

        world_busy(w, 0, 100);
        world_ticks(w, 1);
        w->step_us = 3 * USEC_PER_SEC;
        world_busy(w, 0, 20);
        world_ticks(w, 1);
        r = run(w, window(BASE_US, BASE_US + 4 * USEC_PER_SEC,
                           "metric=busy&cpu=0&points=1&agg=mean,min,max,stddev,count"));
        assert_int_equal(r.n, 1);
        assert_near(r.rows[0].mean, 40, 1e-6);
        assert_near(r.rows[0].min, 20, 1e-6);
        assert_near(r.rows[0].max, 100, 1e-6);
        assert_near(r.rows[0].stddev, 80 / sqrt(2), 1e-6);
        assert_int_equal(r.rows[0].count, 2);
        free(r.rows);
}

static void test_counter(void **state) {
        World *w = *state;
        Result r;

        for (uint32_t i = 0; i < 8; i++)
                world_set(w, FIELD_IRQ, 0, i, 100 * (i + 1));
        world_ticks(w, 4);
        r = run(w, window(BASE_US, BASE_US + 4 * USEC_PER_SEC,
                           "metric=irq&scope=package&points=1&agg=mean,sum,max"));
        assert_int_equal(r.n, 2);
        /* package 0: CPUs 0, 1, 4, 5 */
        assert_int_equal(r.rows[0].package, 0);
        assert_near(r.rows[0].mean, 1400, 1e-9);
        assert_near(r.rows[0].max, 1400, 1e-9);
        assert_true(r.rows[0].is_count);
        assert_int_equal(r.rows[0].sum_count, 5600);
        assert_int_equal(r.rows[1].sum_count, 4 * (300 + 400 + 700 + 800));
        free(r.rows);
}

/* What a damaged file says may be any number: sums wrap, also where a tick is null. */
static void test_sums_wrap(void **state) {
        World *w = *state;
        Result r;

        world_set(w, FIELD_IRQ, 0, 3, INT64_MIN);
        world_ticks(w, 2);
        world_null(w, FIELD_IRQ, 0, 3, REASON_GAP);
        world_ticks(w, 1);
        world_set(w, FIELD_IRQ, 0, 3, INT64_MIN);
        world_ticks(w, 1);
        r = run(w, window(BASE_US, BASE_US + 4 * USEC_PER_SEC, "metric=irq&cpu=3&points=1&agg=sum"));
        assert_int_equal(r.n, 1);
        assert_true(r.rows[0].sum_count == INT64_MIN);
        free(r.rows);
}

static void test_buckets_are_aligned(void **state) {
        World *w = *state;
        Result r;

        world_ticks(w, 40);
        /* from 5 s on: buckets of 10 s begin at full 10 s of UTC */
        r = run(w, window(BASE_US + 5 * USEC_PER_SEC, BASE_US + 35 * USEC_PER_SEC,
                           "metric=irq&cpu=0&step=10s&agg=count"));
        assert_int_equal(r.n, 4);
        assert_int_equal(r.rows[0].count, 5);
        assert_int_equal(r.rows[0].time_us, BASE_US + 5 * USEC_PER_SEC);
        assert_int_equal(r.rows[1].count, 10);
        assert_int_equal(r.rows[1].time_us, BASE_US + 10 * USEC_PER_SEC);
        assert_int_equal(r.rows[3].count, 5);
        free(r.rows);
        /* points begin with the window */
        r = run(w, window(BASE_US + 5 * USEC_PER_SEC, BASE_US + 35 * USEC_PER_SEC,
                           "metric=irq&cpu=0&points=3&agg=count"));
        assert_int_equal(r.n, 3);
        for (size_t i = 0; i < 3; i++) {
                assert_int_equal(r.rows[i].count, 10);
                assert_int_equal(r.rows[i].time_us, BASE_US + (5 + 10 * i) * USEC_PER_SEC);
        }
        free(r.rows);
}

static void test_watts(void **state) {
        World *w = *state;
        Result r;

        world_set(w, FIELD_ENERGY_PKG, 0, 0, 16384 * 100); /* 100 J */
        world_set(w, FIELD_ENERGY_PKG, 0, 1, 16384 * 50);
        world_set(w, FIELD_ENERGY_RAM, 0, 0, 65536 * 5);
        world_set(w, FIELD_ENERGY_RAM, 0, 1, 65536 * 3);
        world_ticks(w, 5);
        r = run(w, window(BASE_US, BASE_US + 5 * USEC_PER_SEC,
                           "metric=pkg_watts,node_watts&points=1&agg=mean,sum,min,max"));
        assert_int_equal(r.n, 3);
        assert_near(r.rows[0].mean, 100, 1e-9);
        assert_near(r.rows[0].sum, 500, 1e-9);
        assert_near(r.rows[1].mean, 50, 1e-9);
        assert_int_equal(r.rows[2].scope, SCOPE_SYSTEM);
        assert_near(r.rows[2].mean, 158, 1e-9);
        assert_near(r.rows[2].min, 158, 1e-9);
        assert_near(r.rows[2].sum, 790, 1e-9);
        free(r.rows);
        /* upwards watts add */
        r = run(w, window(BASE_US, BASE_US + 5 * USEC_PER_SEC, "metric=pkg_watts&scope=node&points=1"));
        assert_int_equal(r.n, 1);
        assert_near(r.rows[0].mean, 150, 1e-9);
        free(r.rows);
}

/*
 * A package that was not read while it slept: its next joules cover the sleep, and the other package never
 * hides it.
 */
static void test_watts_of_a_sleeper(void **state) {
        World *w = *state;
        Result r;

        world_set(w, FIELD_ENERGY_PKG, 0, 0, 16384 * 100);
        world_set(w, FIELD_ENERGY_PKG, 0, 1, 16384 * 50);
        world_ticks(w, 2);
        world_null(w, FIELD_ENERGY_PKG, 0, 1, REASON_ASLEEP);
        world_null(w, FIELD_PKG_NS, 0, 1, REASON_ASLEEP);
        world_ticks(w, 3);
        world_set(w, FIELD_ENERGY_PKG, 0, 1, 16384 * 40);
        world_set(w, FIELD_PKG_NS, 0, 1, 4 * (int64_t) NSEC_PER_SEC);
        world_ticks(w, 1);
        r = run(w, window(BASE_US, BASE_US + 6 * USEC_PER_SEC,
                           "metric=pkg_watts&scope=node&points=1&agg=mean,sum"));
        assert_int_equal(r.n, 1);
        assert_near(r.rows[0].mean, 100 + 140.0 / 6, 1e-9);
        assert_near(r.rows[0].sum, 740, 1e-9);
        free(r.rows);
        /* denied is not asleep: half a machine's watts are not its watts */
        world_null(w, FIELD_ENERGY_PKG, 0, 1, REASON_DENIED);
        world_ticks(w, 2);
        r = run(w, window(BASE_US + 6 * USEC_PER_SEC, BASE_US + 8 * USEC_PER_SEC,
                           "metric=pkg_watts&scope=node&points=1"));
        assert_int_equal(r.n, 1);
        assert_true(isnan(r.rows[0].mean));
        assert_int_equal(r.rows[0].reason, REASON_DENIED);
        free(r.rows);
}

/*
 * Cores that sleep through are read late; the machine's C6 must count them from the first second asked for.
 */
static void test_settled_residency(void **state) {
        World *w = *state;
        int64_t second = 2100000000 / 1024;
        Result r;

        for (uint32_t c = 0; c < 4; c++) {
                world_set(w, FIELD_CORE_TSC, 0, c, second);
                world_set(w, FIELD_C6, 0, c, c == 0 ? 0 : second);
        }
        world_ticks(w, 5);
        for (uint32_t c = 1; c < 4; c++) {
                world_null(w, FIELD_CORE_TSC, 0, c, REASON_ASLEEP);
                world_null(w, FIELD_C6, 0, c, REASON_ASLEEP);
        }
        world_ticks(w, 10);
        r = run(w, window(BASE_US + 5 * USEC_PER_SEC, BASE_US + 15 * USEC_PER_SEC, "metric=c6&scope=node"));
        assert_int_equal(r.n, 10);
        for (size_t i = 0; i < r.n; i++)
                assert_near(r.rows[i].mean, 75, 1e-3);
        assert_int_equal(r.info.samples, 10);
        free(r.rows);
        /* each core by itself has no reading, and says why */
        r = run(w, window(BASE_US + 5 * USEC_PER_SEC, BASE_US + 15 * USEC_PER_SEC,
                           "metric=c6&package=1&points=1"));
        assert_int_equal(r.n, 2);
        assert_int_equal(r.rows[0].reason, REASON_ASLEEP);
        assert_true(isnan(r.rows[0].mean));
        free(r.rows);
}

static void test_temperature(void **state) {
        World *w = *state;
        Result r;

        for (uint32_t c = 0; c < 4; c++)
                world_set(w, FIELD_CORE_TEMP, 0, c, 40 + c);
        world_ticks(w, 2);
        world_set(w, FIELD_CORE_TEMP, 0, 1, 60);
        world_ticks(w, 2);
        r = run(w, window(BASE_US, BASE_US + 4 * USEC_PER_SEC,
                           "metric=core_temp&scope=node&points=1&agg=mean,max,min,sum"));
        assert_int_equal(r.n, 1);
        assert_near(r.rows[0].mean, (43 + 43 + 60 + 60) / 4.0, 1e-9);
        assert_near(r.rows[0].max, 60, 1e-9);
        assert_near(r.rows[0].min, 43, 1e-9);
        assert_true(isnan(r.rows[0].sum));
        free(r.rows);
}

static void test_states_by_name(void **state) {
        World *w = *state;
        Result r;

        for (uint32_t i = 0; i < 8; i++)
                for (uint8_t k = 0; k < 4; k++)
                        world_set(w, FIELD_IDLE_USAGE, k, i, 10 * k + 1);
        world_ticks(w, 2);
        r = run(w, window(BASE_US, BASE_US + 2 * USEC_PER_SEC,
                           "metric=idle_usage&scope=node&points=1&agg=sum"));
        assert_int_equal(r.n, 4);
        assert_string_equal(r.rows[0].state, "POLL");
        assert_int_equal(r.rows[0].sum_count, 16);
        assert_string_equal(r.rows[3].state, "C6");
        assert_int_equal(r.rows[3].sum_count, 16 * 31);
        free(r.rows);
        r = run(w, window(BASE_US, BASE_US + 2 * USEC_PER_SEC,
                           "metric=idle_usage&state=C1E&cpu=2&points=1&agg=sum"));
        assert_int_equal(r.n, 1);
        assert_int_equal(r.rows[0].sum_count, 42);
        free(r.rows);
        /* all sleeps, polling apart */
        r = run(w, window(BASE_US, BASE_US + 2 * USEC_PER_SEC, "metric=wakeups&cpu=2&points=1&agg=sum"));
        assert_int_equal(r.n, 1);
        assert_int_equal(r.rows[0].sum_count, 2 * (11 + 21 + 31));
        free(r.rows);
}

/* C11: P and E cores count the same name at different places. */
static void test_hybrid_states(void **state) {
        Machine *m = world_machine();
        IdleSet *sets = calloc(2, sizeof(*sets));
        World w;
        Result r;

        sets[0] = m->idle_sets[0];
        sets[1].n_states = 2;
        sets[1].states[0] = sets[0].states[0];
        sets[1].states[1] = sets[0].states[3]; /* C6 is state 1 there */
        free(m->idle_sets);
        m->idle_sets = sets;
        m->n_idle_sets = 2;
        for (uint32_t i = 4; i < 8; i++)
                m->cpus[i].idle_set = 1;
        world_open(&w, m, BASE_US, USEC_PER_SEC);
        for (uint32_t i = 0; i < 8; i++)
                for (uint8_t k = 0; k < 4; k++)
                        world_set(&w, FIELD_IDLE_USAGE, k, i, i < 4 ? 1 : 100);
        world_ticks(&w, 1);
        r = run(&w,
                window(BASE_US, BASE_US + USEC_PER_SEC, "metric=idle_usage&state=C6&scope=node&agg=sum"));
        assert_int_equal(r.n, 1);
        assert_int_equal(r.rows[0].sum_count, 4 * 1 + 4 * 100);
        free(r.rows);
        r = run(&w, window(BASE_US, BASE_US + USEC_PER_SEC, "metric=idle_usage&state=C1E&agg=sum"));
        assert_int_equal(r.n, 4);
        free(r.rows);
        world_close(&w);
}

/* Without cpuidle idletrace still counts polling and the default idle loop. */
static void test_nameless_states(void **state) {
        Machine *m = world_machine();
        World w;
        Result r;

        m->n_idle_sets = 0;
        for (uint32_t i = 0; i < 8; i++)
                m->cpus[i].idle_set = UINT16_MAX;
        m->layout.n_columns = 0;
        for (uint8_t i = 0; i < 2; i++) {
                assert_non_null(fixture_column(m, FIELD_TRACE_ENTRIES, i));
                assert_non_null(fixture_column(m, FIELD_TRACE_NS, i));
        }
        machine_finish_layout(m);
        world_open(&w, m, BASE_US, USEC_PER_SEC);
        for (uint32_t i = 0; i < 8; i++) {
                world_set(&w, FIELD_TRACE_ENTRIES, 0, i, 3);
                world_set(&w, FIELD_TRACE_ENTRIES, 1, i, 40);
        }
        world_ticks(&w, 1);
        r = run(&w, window(BASE_US, BASE_US + USEC_PER_SEC, "metric=idle_usage&scope=node&agg=sum"));
        assert_int_equal(r.n, 2);
        assert_string_equal(r.rows[0].state, "POLL");
        assert_int_equal(r.rows[0].sum_count, 24);
        assert_string_equal(r.rows[1].state, "IDLE");
        assert_int_equal(r.rows[1].sum_count, 320);
        free(r.rows);
        r = run(&w, window(BASE_US, BASE_US + USEC_PER_SEC, "metric=wakeups&cpu=3&agg=sum"));
        assert_int_equal(r.n, 1);
        assert_int_equal(r.rows[0].sum_count, 40);
        free(r.rows);
        world_close(&w);
}

/* C13: a CPU goes and comes back: its rows have a hole, the package's none. */
static void test_hotplug(void **state) {
        World *w = *state;
        Result r;

        world_ticks(w, 3);
        world_change(w, fixture_unplug(world_machine(), 5));
        world_ticks(w, 3);
        {
                Machine *m = world_machine();

                m->generation = 3;
                world_change(w, m);
        }
        world_ticks(w, 3);
        r = run(w, window(BASE_US, BASE_US + 9 * USEC_PER_SEC, "metric=busy&cpu=5"));
        assert_int_equal(r.n, 6);
        assert_int_equal(r.rows[2].time_us, BASE_US + 3 * USEC_PER_SEC);
        assert_int_equal(r.rows[3].time_us, BASE_US + 7 * USEC_PER_SEC);
        free(r.rows);
        r = run(w,
                window(BASE_US, BASE_US + 9 * USEC_PER_SEC, "metric=irq&scope=package&package=0&agg=count"));
        assert_int_equal(r.n, 9);
        free(r.rows);
        /* one bucket over all three machines */
        r = run(w,
                window(BASE_US, BASE_US + 9 * USEC_PER_SEC, "metric=busy&cpu=4-6&points=1&agg=mean,count"));
        assert_int_equal(r.n, 3);
        for (size_t i = 0; i < 3; i++) {
                assert_int_equal(r.rows[i].count, r.rows[i].cpu == 5 ? 6 : 9);
                assert_near(r.rows[i].mean, 10, 1e-6);
        }
        free(r.rows);
        r = run(w, window(BASE_US, BASE_US + 9 * USEC_PER_SEC, "metric=c6&scope=node&points=1"));
        assert_int_equal(r.n, 1);
        assert_near(r.rows[0].mean, 45, 1e-3);
        free(r.rows);
}

/* Of two cores one goes: what is left is still the mean of quotients, and weighs as long as it lasted. */
static void test_settled_over_hotplug(void **state) {
        World *w = *state;
        int64_t second = 2100000000 / 1024;
        Machine *m;
        Result r;

        for (uint32_t c = 0; c < 4; c++) {
                world_set(w, FIELD_CORE_TSC, 0, c, second);
                world_set(w, FIELD_C6, 0, c, second);
        }
        world_ticks(w, 30);
        m = fixture_unplug(fixture_unplug(world_machine(), 1), 5);
        world_change(w, m);
        for (uint32_t c = 0; c < 3; c++) {
                world_set(w, FIELD_CORE_TSC, 0, c, second);
                world_set(w, FIELD_C6, 0, c, 0);
        }
        world_ticks(w, 10);
        r = run(w, window(BASE_US, BASE_US + 40 * USEC_PER_SEC, "metric=c6&scope=package&package=0&points=1"));
        assert_int_equal(r.n, 1);
        assert_near(r.rows[0].mean, 75, 1e-3);
        free(r.rows);
}

static void test_filters(void **state) {
        World *w = *state;
        Result r;

        for (uint32_t i = 0; i < 8; i++)
                world_set(w, FIELD_IRQ, 0, i, 1 << i);
        world_ticks(w, 1);
        r = run(w, window(BASE_US, BASE_US + USEC_PER_SEC, "metric=irq&scope=node&cpu=0-1,6&agg=sum"));
        assert_int_equal(r.n, 1);
        assert_int_equal(r.rows[0].sum_count, 1 + 2 + 64);
        free(r.rows);
        /* core ids repeat in every package */
        r = run(w, window(BASE_US, BASE_US + USEC_PER_SEC, "metric=irq&scope=core&core=1&agg=sum"));
        assert_int_equal(r.n, 2);
        assert_int_equal(r.rows[0].sum_count, 2 + 32);
        assert_int_equal(r.rows[1].package, 1);
        free(r.rows);
        /* a package counter passes with any of its CPUs */
        r = run(w, window(BASE_US, BASE_US + USEC_PER_SEC, "metric=pc6&cpu=7"));
        assert_int_equal(r.n, 1);
        assert_int_equal(r.rows[0].package, 1);
        free(r.rows);
}

static void test_gaps(void **state) {
        World *w = *state;
        Result r;

        world_ticks(w, 5);
        world_gap(w, 20 * USEC_PER_SEC);
        world_ticks(w, 5);
        r = run(w, window(BASE_US, BASE_US + 30 * USEC_PER_SEC, "metric=busy&cpu=0&step=5s&agg=count"));
        assert_int_equal(r.n, 2);
        assert_int_equal(r.info.samples, 10);
        assert_int_equal(r.info.expected, 30);
        assert_int_equal(r.info.gaps, 1);
        free(r.rows);
        /* before the first sample */
        r = run(w, window(BASE_US - 10 * USEC_PER_SEC, BASE_US + 5 * USEC_PER_SEC, "metric=busy&cpu=0"));
        assert_int_equal(r.n, 5);
        assert_int_equal(r.info.gaps, 1);
        assert_int_equal(r.info.expected, 15);
        free(r.rows);
}

/* What one tick of the engine says is what metric_value() says of the sample. */
static void test_agrees_with_metric_value(void **state) {
        World *w = *state;

        for (size_t i = 0; i < w->layout.n_values; i++)
                if (w->sample.values[i] == 0)
                        w->sample.values[i] = (int64_t) (1000 + i * 37 % 501);
        world_ticks(w, 1);
        for (size_t k = 0; k < metric_catalogue_n; k++) {
                const MetricSpec *m = &metric_catalogue[k];
                char rest[64];
                size_t n = 0;
                Result r;

                if (!metric_available(m, &w->layout) || m->instance == INSTANCE_STATE)
                        continue;
                (void) snprintf(rest, sizeof(rest), "metric=%s&scope=system&agg=mean", m->id);
                r = run(w, window(BASE_US, BASE_US + USEC_PER_SEC, rest));
                for (; n < r.n; n++) {
                        MetricSum sum = {};
                        double v = NAN;
                        Reason reason;

                        metric_gather(m, &w->sample, SCOPE_SYSTEM, 0, 0, &sum);
                        reason = metric_value(m, &sum, w->machine->tsc_hz, &v);
                        if (reason != r.rows[n].reason)
                                fail_msg("%s: reason %d, %d", m->id, reason, r.rows[n].reason);
                        if (reason == REASON_NONE)
                                assert_near(r.rows[n].mean, v, 1e-9);
                }
                assert_int_equal(n, 1);
                free(r.rows);
        }
}

/* Sums of a window by hand: each tick's own, and the spread of what the ticks are worth. */
typedef struct ByHand {
        double num, den, least, most;
        double values[64];
        size_t n;
} ByHand;

static void by_hand(ByHand *h, const World *w, const MetricSpec *m, Scope scope, uint32_t e) {
        MetricSum sum = {};
        double v;

        metric_gather(m, &w->sample, scope, e, 0, &sum);
        if (sum.n == 0)
                return;
        h->num += sum.num;
        h->den += m->kind == METRIC_COUNTER ? 1 : sum.den; /* ticks of a second */
        if (metric_value(m, &sum, w->machine->tsc_hz, &v) != REASON_NONE)
                return;
        h->least = h->n == 0 || v < h->least ? v : h->least;
        h->most = h->n == 0 || v > h->most ? v : h->most;
        h->values[h->n++] = v;
}

static double stddev_by_hand(const ByHand *h) {
        double mean = 0, sum = 0;

        for (size_t i = 0; i < h->n; i++)
                mean += h->values[i] / (double) h->n;
        for (size_t i = 0; i < h->n; i++)
                sum += (h->values[i] - mean) * (h->values[i] - mean);
        return sqrt(sum / (double) (h->n - 1));
}

static void compare_by_hand(World *w, const MetricSpec *m, Scope scope, const ByHand *hands, uint64_t end_us) {
        char rest[100];
        Result r;

        (void) snprintf(rest, sizeof(rest), "metric=%s&scope=%s&points=1&agg=mean,min,max,stddev", m->id,
                scope_name(scope));
        r = run(w, window(BASE_US, end_us, rest));
        assert_int_equal(r.n, machine_n_entities(w->machine, scope));
        for (uint32_t e = 0; e < r.n; e++) {
                const ByHand *h = &hands[e];
                double scale = m->factor * (m->flags & METRIC_TSC_HZ ? (double) w->machine->tsc_hz / 1e6 : 1);

                assert_int_equal(r.rows[e].reason, REASON_NONE);
                assert_near(r.rows[e].mean, h->num / h->den * scale, 1e-12);
                assert_near(r.rows[e].min, h->least, 1e-12);
                assert_near(r.rows[e].max, h->most, 1e-12);
                assert_near(r.rows[e].stddev, stddev_by_hand(h), 1e-9);
        }
        free(r.rows);
}

/*
 * Random ticks; a fifth of the slots have a null now and then, one metric a tick without any value: the engine's loops
 * for members without a null, its careful one and the two together agree with sums made tick by tick.
 */
static void test_agrees_with_sums_by_hand(void **state) {
        static const char *const ids[] = { "busy", "irq", "bzy_mhz", "avg_mhz", "smi" };
        static const Scope scopes[] = { SCOPE_SYSTEM, SCOPE_PACKAGE, SCOPE_CPU };
        static ByHand hands[ARRAY_SIZE(ids)][ARRAY_SIZE(scopes)][8];
        World *w = *state;
        uint64_t x = 88172645463325252ULL, end_us;

        for (unsigned tick = 0; tick < 57; tick++) {
                for (size_t i = 0; i < w->layout.n_values; i++) {
                        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
                        w->sample.values[i] = (int64_t) (x % 100000);
                        w->sample.reasons[i] = i % 5 == 0 && (x >> 40) % 7 == 0 ? REASON_GAP : REASON_NONE;
                }
                for (uint32_t e = 0; e < 8; e++) {
                        const LayoutColumn *c = layout_find(&w->layout, FIELD_CPU_TSC, 0);

                        w->sample.values[c->offset + e] += 90000;
                        if (tick == 20)
                                world_null(w, FIELD_SMI, 0, e, REASON_GAP);
                }
                world_ticks(w, 1);
                for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
                        for (size_t k = 0; k < ARRAY_SIZE(scopes); k++)
                                for (uint32_t e = 0; e < machine_n_entities(w->machine, scopes[k]); e++)
                                        by_hand(&hands[i][k][e], w, metric_find(ids[i]), scopes[k], e);
        }
        end_us = w->time_us;
        for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
                for (size_t k = 0; k < ARRAY_SIZE(scopes); k++)
                        compare_by_hand(w, metric_find(ids[i]), scopes[k], hands[i][k], end_us);
}

/* C21: UTC inside, whatever TZ says; a real hour has 60 minutes on both Sundays. */
static void test_dst(void **state) {
        static const char *const hours[] = {
                "2026-03-29T01:30:00%2B01:00",
                "2026-03-29T03:30:00%2B02:00",
                "2026-10-25T02:30:00%2B02:00",
                "2026-10-25T02:30:00%2B01:00",
                "2026-10-25T03:30:00%2B01:00",
        };
        uint64_t first = 1774742400ULL * USEC_PER_SEC /* 2026-03-29T00:00Z */,
                 october = 1792882800ULL * USEC_PER_SEC;
        World w;

        assert_int_equal(setenv("TZ", "Europe/Amsterdam", 1), 0);
        tzset();
        world_open(&w, NULL, first, 60 * USEC_PER_SEC);
        world_ticks(&w, 240);
        world_gap(&w, october - w.time_us); /* 2026-10-24T23:00Z */
        world_ticks(&w, 300);
        for (size_t i = 0; i + 1 < 5; i++) {
                char text[256];
                Result r;

                if (i == 1)
                        continue;
                (void) snprintf(
                        text, sizeof(text), "metric=busy&cpu=0&start=%s&end=%s", hours[i], hours[i + 1]);
                r = run(&w, text);
                assert_int_equal(r.n, 60);
                assert_int_equal(r.info.gaps, 0);
                for (size_t k = 1; k < r.n; k++)
                        assert_int_equal(r.rows[k].time_us - r.rows[k - 1].time_us, 60 * USEC_PER_SEC);
                free(r.rows);
        }
        world_close(&w);
        assert_int_equal(unsetenv("TZ"), 0);
        tzset();
}

static int refused(World *w, const char *text, QueryError *error) {
        char *copy = strdup(text);
        QueryParam params[16];
        QuerySpec spec;
        Query *q = NULL;
        size_t n;
        int r;

        assert_int_equal(route_parse_query_string(copy, params, 16, &n), 0);
        assert_int_equal(query_spec_parse(params, n, w->time_us, &spec, error), 0);
        r = query_new(w->reader, &spec, &q, error);
        (void) query_free(q);
        query_spec_deinit(&spec);
        free(copy);
        return r;
}

/* C23: too much is refused before the first row, with what to ask instead. */
static void test_too_many_points(void **state) {
        QueryError error = {};
        World *w = *state;

        w->step_us = 100 * USEC_PER_MSEC;
        world_ticks(w, 12000);
        assert_int_equal(
                refused(w, window(BASE_US, w->time_us, "metric=busy&cpu=0"), &error), QUERY_E_TOO_MANY);
        assert_string_equal(error.param, "step");
        assert_non_null(strstr(error.message, "points=1000"));
        assert_int_equal(refused(w, window(BASE_US, w->time_us, "metric=busy&cpu=0&step=200ms"), &error), 0);
}

static void assert_rows_agree(const QueryRow *a, const QueryRow *b) {
        assert_ptr_equal(a->metric, b->metric);
        assert_int_equal(a->time_us, b->time_us);
        assert_int_equal(a->cpu, b->cpu);
        assert_int_equal(a->core, b->core);
        assert_int_equal(a->count, b->count);
        assert_near(a->mean, b->mean, 1e-5);
        assert_near(a->min, b->min, 1e-3);
        assert_near(a->max, b->max, 1e-3);
        assert_near(a->stddev, b->stddev, 1e-3);
        if (!isnan(b->sum))
                assert_near(a->sum, b->sum, 1e-5);
        assert_int_equal(a->sum_count, b->sum_count);
}

#define ALL_AGGS "agg=mean,min,max,stddev,sum,count"

/* A long window is answered from minutes, and says the same as its ticks: spread of ticks included. */
static void test_minutes_agree_with_ticks(void **state) {
        Result ticks, minutes;
        World w;

        world_open(&w, NULL, BASE_US, 10 * USEC_PER_SEC);
        world_vary(&w, 7 * 360 + 6);
        minutes = run(
                &w, window(BASE_US, BASE_US + 7 * 3600 * USEC_PER_SEC,
                            "metric=busy,irq,c6,pkg_watts,core_temp&package=0&core=1&step=10m&" ALL_AGGS));
        assert_int_equal(minutes.info.tier, TIER_1M);
        assert_int_equal(minutes.info.samples, 7 * 60);
        ticks = run(
                &w, window(BASE_US, BASE_US + 3600 * USEC_PER_SEC,
                            "metric=busy,irq,c6,pkg_watts,core_temp&package=0&core=1&step=10m&" ALL_AGGS));
        assert_int_equal(ticks.info.tier, TIER_RAW);
        /* aligned to UTC the first bucket is not whole ten minutes, the same one in both */
        assert_true(ticks.n > 30);
        for (size_t i = 0; i + 7 < ticks.n; i++)
                assert_rows_agree(&minutes.rows[i], &ticks.rows[i]);
        free(minutes.rows);
        free(ticks.rows);
        world_close(&w);
}

static void test_hours(void **state) {
        uint64_t hour = 3600 * USEC_PER_SEC, start = (BASE_US / hour + 1) * hour;
        Result ticks, hours;
        World w;

        world_open(&w, NULL, start, 60 * USEC_PER_SEC);
        world_vary(&w, 2 * 24 * 60 + 60);
        world_maintain(&w);
        hours = run(&w, window(start, start + 2 * 24 * hour,
                                "metric=busy,irq,pkg_watts&step=1h&" ALL_AGGS "&cpu=3"));
        assert_int_equal(hours.info.tier, TIER_1H);
        assert_int_equal(hours.n, 2 * 24 * 3);
        assert_int_equal(hours.info.gaps, 0);
        ticks = run(&w, window(start + 5 * hour, start + 6 * hour,
                                "metric=busy,irq,pkg_watts&points=1&" ALL_AGGS "&cpu=3"));
        assert_int_equal(ticks.info.tier, TIER_RAW);
        assert_int_equal(ticks.n, 3);
        for (size_t i = 0; i < 3; i++)
                assert_rows_agree(&hours.rows[5 * 3 + i], &ticks.rows[i]);
        free(hours.rows);
        free(ticks.rows);
        world_close(&w);
}

/* A window that begins before the database does: its hour and its minute begin earlier than its first tick, and
 * hold no more. */
static void test_young(void **state) {
        uint64_t hour = 3600 * USEC_PER_SEC, start = (BASE_US / hour + 2) * hour - 290 * USEC_PER_SEC;
        Result r;
        World w;

        world_open(&w, NULL, start, 10 * USEC_PER_SEC);
        world_vary(&w, 60);
        world_maintain(&w);
        r = run(&w, window(w.time_us - 900 * USEC_PER_SEC, w.time_us, "metric=busy&cpu=0&step=10s&agg=count"));
        assert_int_equal(r.info.tier, TIER_RAW);
        assert_int_equal(r.info.step_us, 10 * USEC_PER_SEC);
        assert_true(r.n >= 59);
        free(r.rows);
        r = run(&w, window(w.time_us - 900 * USEC_PER_SEC, w.time_us, "metric=busy&cpu=0&step=1m&agg=count"));
        assert_int_equal(r.info.step_us, 60 * USEC_PER_SEC);
        assert_true(r.n >= 10);
        free(r.rows);
        world_close(&w);
}

/* Where raw ticks have expired, minutes answer, and the step says so. */
static void test_expired_ticks(void **state) {
        Result r;
        World w;

        world_open_expiring(&w, BASE_US, 10 * USEC_PER_SEC, 3600 * USEC_PER_SEC, 86400 * USEC_PER_SEC);
        world_vary(&w, 3 * 360);
        world_maintain(&w);
        r = run(&w, window(BASE_US, BASE_US + 1800 * USEC_PER_SEC, "metric=busy&cpu=0&step=10s&agg=count"));
        assert_int_equal(r.info.tier, TIER_1M);
        assert_int_equal(r.info.step_us, 60 * USEC_PER_SEC);
        assert_int_equal(r.n, 30);
        assert_int_equal(r.rows[29].count, 6);
        assert_int_equal(r.info.expected, 30);
        assert_int_equal(r.info.gaps, 0);
        free(r.rows);
        /* without a step: a row a minute, at its start */
        r = run(&w, window(BASE_US, BASE_US + 600 * USEC_PER_SEC, "metric=busy&cpu=0"));
        assert_int_equal(r.n, 10);
        assert_int_equal(r.rows[0].time_us, BASE_US);
        free(r.rows);
        /* what is young is still raw */
        r = run(&w, window(w.time_us - 600 * USEC_PER_SEC, w.time_us, "metric=busy&cpu=0&step=10s"));
        assert_int_equal(r.info.tier, TIER_RAW);
        assert_int_equal(r.n, 60);
        free(r.rows);
        world_close(&w);
}

/* A filter that names what is not there is an error in the question; a CPU that is offline is none. */
static void test_no_such_cpu(void **state) {
        static const struct {
                const char *query, *param, *said;
        } cases[] = {
                { "metric=busy&cpu=99", "cpu", "no such CPU here: there are 0-7" },
                { "metric=c6&core=77", "core", "no such core here: there are 0-1" },
                { "metric=pc6&package=5", "package", "no such package here: there are 0-1" },
                { "metric=idle_time&state=C99", "state", "no CPU of this machine has an idle state 'C99'" },
        };
        World *w = *state;
        QueryError error;
        Result r;

        world_ticks(w, 3);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                assert_int_equal(refused(w, cases[i].query, &error), QUERY_E_NO_SUCH);
                assert_string_equal(error.param, cases[i].param);
                assert_string_equal(error.message, cases[i].said);
        }
        world_change(w, fixture_unplug(world_machine(), 5));
        world_ticks(w, 2);
        r = run(w, "metric=busy&cpu=5&start=-2s");
        assert_int_equal(r.n, 0);
        assert_int_equal(r.info.samples, 2);
        free(r.rows);
        r = run(w, "metric=busy&cpu=5&start=-5s");
        assert_int_equal(r.n, 3);
        free(r.rows);
        /* this machine has no C7 at all: no filter's fault */
        r = run(w, "metric=c7&cpu=99");
        assert_int_equal(r.n, 0);
        free(r.rows);
}

/* Hotplug between two slices: the machine of the block at hand is no more, what was said of it is. */
static void test_machine_goes_between_slices(void **state) {
        QuerySpec spec = { .metrics = { metric_find("busy") }, .n_metrics = 1, .has_scope = true };
        World *w = *state;
        QueryError error;
        Collect c;
        Machine *m;
        int r;

        world_ticks(w, 3);
        spec.now_us = w->time_us;
        collect_init(&c, w->reader, &spec, w->time_us - 2 * w->step_us, w->time_us);
        assert_int_equal(collect_work(&c, &error), 2);
        m = world_machine();
        (void) snprintf(m->idle_governor, sizeof(m->idle_governor), "another");
        m->generation++;
        world_change(w, m);
        m = world_machine();
        m->generation += 2;
        world_change(w, m);
        while ((r = collect_work(&c, &error)) == 2)
                ;
        assert_int_equal(r, 0);
        assert_int_equal(c.info.samples, 2);
        assert_true(c.facts.known);
        assert_int_equal(c.facts.n_cpus, 8);
        assert_string_equal(c.facts.governor, m->idle_governor);
        collect_deinit(&c);
}

static void test_empty_store(void **state) {
        World *w = *state;
        Result r = run(w, "metric=busy");

        assert_int_equal(r.n, 0);
        assert_int_equal(r.info.samples, 0);
        free(r.rows);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_ticks, setup, teardown),
                cmocka_unit_test_setup_teardown(test_window_is_half_open, setup, teardown),
                cmocka_unit_test_setup_teardown(test_ratio_is_sum_over_sum, setup, teardown),
                cmocka_unit_test_setup_teardown(test_counter, setup, teardown),
                cmocka_unit_test_setup_teardown(test_sums_wrap, setup, teardown),
                cmocka_unit_test_setup_teardown(test_buckets_are_aligned, setup, teardown),
                cmocka_unit_test_setup_teardown(test_watts, setup, teardown),
                cmocka_unit_test_setup_teardown(test_watts_of_a_sleeper, setup, teardown),
                cmocka_unit_test_setup_teardown(test_settled_residency, setup, teardown),
                cmocka_unit_test_setup_teardown(test_temperature, setup, teardown),
                cmocka_unit_test_setup_teardown(test_states_by_name, setup, teardown),
                cmocka_unit_test(test_hybrid_states),
                cmocka_unit_test(test_nameless_states),
                cmocka_unit_test_setup_teardown(test_hotplug, setup, teardown),
                cmocka_unit_test_setup_teardown(test_settled_over_hotplug, setup, teardown),
                cmocka_unit_test_setup_teardown(test_filters, setup, teardown),
                cmocka_unit_test_setup_teardown(test_gaps, setup, teardown),
                cmocka_unit_test_setup_teardown(test_agrees_with_metric_value, setup, teardown),
                cmocka_unit_test_setup_teardown(test_agrees_with_sums_by_hand, setup, teardown),
                cmocka_unit_test(test_dst),
                cmocka_unit_test_setup_teardown(test_too_many_points, setup, teardown),
                cmocka_unit_test(test_minutes_agree_with_ticks),
                cmocka_unit_test(test_hours),
                cmocka_unit_test(test_expired_ticks),
                cmocka_unit_test(test_young),
                cmocka_unit_test_setup_teardown(test_no_such_cpu, setup, teardown),
                cmocka_unit_test_setup_teardown(test_empty_store, setup, teardown),
                cmocka_unit_test_setup_teardown(test_machine_goes_between_slices, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
