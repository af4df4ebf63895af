/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPUs with known sleeps, read as the kernel shows them: times at exit, /proc/stat in steps of 10 ms. */

#include "tests/unit/test.h"

#include "cstated/macro.h"

#include "sampler/cpuidle-lag.h"

#define MS 1000000ULL
#define SECOND (1000 * MS)

/* A CPU that sleeps and is awake in turns. */
typedef struct Sim {
        uint64_t now, edge;    /* edge: when the present phase ends */
        bool asleep;
        uint64_t phase_start;
        uint64_t idle, time, usage; /* true idle time; accounted sleeps; exits */
        uint64_t seed, sleep_max, awake_max;
        bool is_regular;
} Sim;

static uint64_t draw(Sim *s, uint64_t max) {
        s->seed = s->seed * 6364136223846793005ULL + 1442695040888963407ULL;
        return s->is_regular ? max : (s->seed >> 33) % max + 1;
}

static void advance(Sim *s, uint64_t to) {
        while (s->edge <= to) {
                if (s->asleep) {
                        s->idle += s->edge - s->now;
                        s->time += s->edge - s->phase_start;
                        s->usage++;
                }
                s->now = s->phase_start = s->edge;
                s->asleep = !s->asleep;
                s->edge += draw(s, s->asleep ? s->sleep_max : s->awake_max);
        }
        if (s->asleep)
                s->idle += to - s->now;
        s->now = to;
}

typedef struct Result {
        double shown, real, highest, lowest; /* idle shares */
} Result;

/* Reads once a second; a second without an exit is asleep, as the source has it. */
static Result run(Sim *s, unsigned n_seconds, bool has_stat) {
        uint64_t usage, span_first = 0, span, time_first, time, idle_first, now_first = 10 * SECOND;
        Result result = { .lowest = 2 };
        CpuidleLag lag = {};

        s->edge = draw(s, s->sleep_max);
        advance(s, now_first);
        usage = s->usage;
        idle_first = s->idle;
        time = time_first = s->time;
        for (unsigned i = 0; i <= n_seconds; i++) {
                CpuidleReading r = { .jiffy_ns = 10 * MS };
                uint64_t before = lag.span_ns, time_before = time;

                advance(s, now_first + i * SECOND);
                r.now_ns = s->now;
                r.time_ns = time = s->time;
                r.n_exits = s->usage - usage;
                r.stat_idle_ns = has_stat ? s->idle / (10 * MS) * (10 * MS) : UINT64_MAX;
                if (i > 0 && s->usage == usage) {
                        cpuidle_lag_sleep(&lag, s->now);
                        continue;
                }
                usage = s->usage;
                span = cpuidle_lag_settle(&lag, &r);
                if (i == 0)
                        span_first = span;
                if (i < 3)
                        continue;
                assert_true(span >= before);
                if (span > before) {
                        double share = (double) (time - time_before) / (double) (span - before);

                        result.highest = share > result.highest ? share : result.highest;
                        result.lowest = share < result.lowest ? share : result.lowest;
                }
        }
        result.shown = (double) (time - time_first) / (double) (lag.span_ns - span_first);
        result.real = (double) (s->idle - idle_first) / (double) (n_seconds * SECOND);
        return result;
}

/* Wakes for 1 ms at most every few seconds, or about once an interval, or often: always shown nearly 100 %
 * idle. */
static void test_sleepers(void **state) {
        static const uint64_t sleeps[] = { 7 * SECOND, 3 * SECOND, 1100 * MS, 900 * MS, 400 * MS, 100 * MS,
                20 * MS, 3 * MS };

        for (size_t i = 0; i < ARRAY_SIZE(sleeps); i++) {
                Sim s = {
                        .asleep = true, .seed = i + 1, .sleep_max = sleeps[i], .awake_max = sleeps[i] / 1000
                };
                Result r = run(&s, 600, true);

                assert_true(r.highest <= 1.0);
                assert_true(r.shown - r.real < 0.01 && r.real - r.shown < 0.01);
                assert_true(r.lowest > 0.93);
        }
}

static void test_regular_wakers(void **state) {
        static const uint64_t sleeps[] = { 2500 * MS, 990 * MS, 333 * MS, 50 * MS };

        for (size_t i = 0; i < ARRAY_SIZE(sleeps); i++) {
                Sim s = { .asleep = true,
                        .is_regular = true,
                        .sleep_max = sleeps[i],
                        .awake_max = sleeps[i] / 100 };
                Result r = run(&s, 300, true);

                assert_true(r.highest <= 1.0);
                assert_true(r.shown - r.real < 0.01 && r.real - r.shown < 0.01);
                assert_true(r.lowest > 0.95);
        }
}

/* Half busy at every rate of exits: the mean is right to a percent. */
static void test_half_busy(void **state) {
        static const uint64_t sleeps[] = { 3 * SECOND, 700 * MS, 100 * MS, 5 * MS, MS / 10 };

        for (size_t i = 0; i < ARRAY_SIZE(sleeps); i++) {
                Sim s = { .asleep = true, .seed = 7, .sleep_max = sleeps[i], .awake_max = sleeps[i] };
                Result r = run(&s, 1000, true);

                assert_true(r.highest <= 1.0);
                assert_true(r.shown - r.real < 0.015 && r.real - r.shown < 0.015);
        }
}

/* Without /proc/stat it cannot be right in each interval, but it is never impossible. */
static void test_without_stat(void **state) {
        Sim s = { .asleep = true, .seed = 3, .sleep_max = 900 * MS, .awake_max = MS };
        Result r = run(&s, 300, false);

        assert_true(r.highest <= 1.0);
        assert_true(r.shown > 0.9);
}

/* Two accounts that differ for ever: the shares stay within a few percent, and the lag does not pile up. */
static void test_accounts_that_disagree(void **state) {
        CpuidleLag lag = {};
        uint64_t span = 0, before = 0;

        for (uint64_t i = 1; i < 500; i++) {
                CpuidleReading r = {
                        .now_ns = i * SECOND,
                        .time_ns = i * 900 * MS,
                        .n_exits = 200,
                        .stat_idle_ns = i * 950 * MS,
                        .jiffy_ns = 10 * MS,
                };

                before = span;
                span = cpuidle_lag_settle(&lag, &r);
                if (i > 1)
                        assert_true(span - before == SECOND);
        }
}

/* Found asleep: the sleep it shows at its first exit began an hour ago. A new baseline, then all is right.
 */
static void test_sleep_from_before(void **state) {
        CpuidleReading r = {
                .now_ns = SECOND, .stat_idle_ns = 3600 * SECOND, .jiffy_ns = 10 * MS, .time_ns = 7
        };
        CpuidleLag lag = {};

        (void) cpuidle_lag_settle(&lag, &r);
        assert_false(lag.is_restarted);
        cpuidle_lag_sleep(&lag, 2 * SECOND);
        r = (CpuidleReading){ .now_ns = 3 * SECOND,
                .stat_idle_ns = 3602 * SECOND,
                .jiffy_ns = 10 * MS,
                .n_exits = 1,
                .time_ns = 3601 * SECOND };
        assert_true(cpuidle_lag_settle(&lag, &r) == 3 * SECOND);
        assert_true(lag.is_restarted);
        r.now_ns += SECOND;
        r.stat_idle_ns += SECOND / 2;
        r.time_ns += SECOND / 2;
        assert_true(cpuidle_lag_settle(&lag, &r) == 4 * SECOND);
        assert_false(lag.is_restarted);
}

/* A CPU that comes back with lower counters begins anew. */
static void test_reset(void **state) {
        CpuidleReading r = {
                .now_ns = SECOND, .time_ns = 500 * MS, .n_exits = 3, .stat_idle_ns = 0, .jiffy_ns = 10 * MS
        };
        CpuidleLag lag = {};

        (void) cpuidle_lag_settle(&lag, &r);
        r.now_ns = 2 * SECOND;
        r.time_ns = 7;
        assert_true(cpuidle_lag_settle(&lag, &r) == 2 * SECOND);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sleepers),
                cmocka_unit_test(test_regular_wakers),
                cmocka_unit_test(test_half_busy),
                cmocka_unit_test(test_without_stat),
                cmocka_unit_test(test_accounts_that_disagree),
                cmocka_unit_test(test_sleep_from_before),
                cmocka_unit_test(test_reset),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
