/* SPDX-License-Identifier: GPL-2.0-or-later */
/* 2 packages x 4 cores x 2 threads: CPU i and i + 8 share core i; cores 0-3 are package 0. */

#include "tests/unit/test.h"

#include <stdlib.h>

#include "sampler/wake-plan.h"
#include "tests/unit/sampler-fixture.h"

#define N      16
#define CORES  8
#define SECOND 1000000000ull

typedef struct Fixture {
        Machine *m;
        WakePlan plan;
        CpuActivity activity[N];
        SourceTurn turn;
        uint64_t now;
} Fixture;

static int setup(void **state) {
        Fixture *f = calloc(1, sizeof(*f));

        assert_non_null(f);
        f->m = fixture_machine((FixtureShape){2, 0, 4, 2}, 6, 0x55, false);
        assert_int_equal(wake_plan_init(&f->plan, f->m), 0);
        f->now = 1000 * SECOND;
        f->turn = (SourceTurn){.machine = f->m, .activity = f->activity, .wake_policy = WAKE_LAZY};
        *state = f;
        return 0;
}

static int teardown(void **state) {
        Fixture *f = *state;

        wake_plan_deinit(&f->plan);
        machine_free(f->m);
        free(f);
        return 0;
}

static void all_sleep(Fixture *f) {
        for (unsigned i = 0; i < N; i++)
                f->activity[i] = (CpuActivity){.slept = true};
}

static void wake(Fixture *f, unsigned cpu, uint32_t permille) {
        f->activity[cpu] = (CpuActivity){.busy_permille = permille};
}

static void plan(Fixture *f, const bool *usable) {
        f->turn.prev_ns = f->now == 1000 * SECOND ? 0 : f->now;
        f->now += SECOND;
        f->turn.now_ns = f->now;
        wake_plan_make(&f->plan, &f->turn, usable);
}

/* Everything that was planned is read. */
static unsigned carry_out(Fixture *f) {
        unsigned n = 0;

        for (uint32_t i = 0; i < N; i++)
                if (f->plan.read_cpu[i]) {
                        wake_plan_cpu_done(&f->plan, i);
                        n++;
                }
        for (uint32_t c = 0; c < CORES; c++)
                if (f->plan.core_reader[c] != WAKE_PLAN_NONE)
                        wake_plan_core_done(&f->plan, c, f->now);
        return n;
}

static unsigned n_cores_read(const Fixture *f) {
        unsigned n = 0;

        for (uint32_t c = 0; c < CORES; c++)
                n += f->plan.core_reader[c] != WAKE_PLAN_NONE;
        return n;
}

static void begin(Fixture *f) {
        plan(f, NULL); /* a first turn knows of no sleep: it reads all */
        assert_int_equal(carry_out(f), N);
        all_sleep(f);
}

static void test_lazy_leaves_sleepers_alone(void **state) {
        Fixture *f = *state;

        begin(f);
        plan(f, NULL);
        assert_int_equal(n_cores_read(f), 0);
        assert_int_equal(carry_out(f), 0);
}

static void test_lazy_asks_the_thread_that_woke(void **state) {
        Fixture *f = *state;

        begin(f);
        wake(f, 8 + 5, 10);
        plan(f, NULL);
        assert_int_equal(n_cores_read(f), 1);
        assert_int_equal(f->plan.core_reader[5], 13);
        assert_true(f->plan.read_cpu[13]);
        assert_false(f->plan.read_cpu[5]);
        /* it left idle once: having been read, it is left alone again */
        assert_int_equal(carry_out(f), 1);
        all_sleep(f);
        plan(f, NULL);
        assert_int_equal(n_cores_read(f), 0);
}

static void test_the_busier_thread_answers_for_the_core(void **state) {
        Fixture *f = *state;

        begin(f);
        wake(f, 2, 100);
        wake(f, 10, 900);
        plan(f, NULL);
        assert_int_equal(f->plan.core_reader[2], 10);
        assert_true(f->plan.read_cpu[2]);
        assert_true(f->plan.read_cpu[10]);
}

static void test_what_was_not_read_stays_due(void **state) {
        Fixture *f = *state;

        begin(f);
        wake(f, 3, 500);
        plan(f, NULL); /* ... and the sweep was cut short */
        all_sleep(f);
        plan(f, NULL);
        assert_int_equal(f->plan.core_reader[3], 3);
        (void) carry_out(f);
        plan(f, NULL);
        assert_int_equal(n_cores_read(f), 0);
}

static void test_always_reads_all(void **state) {
        Fixture *f = *state;

        f->turn.wake_policy = WAKE_ALWAYS;
        begin(f);
        plan(f, NULL);
        assert_int_equal(n_cores_read(f), CORES);
        assert_int_equal(carry_out(f), N);
}

static void test_c09_package_reader_is_the_most_awake(void **state) {
        Fixture *f = *state;

        begin(f);
        wake(f, 6, 20);
        wake(f, 13, 700);
        plan(f, NULL);
        assert_int_equal(f->plan.package_reader[1], 13);
        assert_int_equal(f->plan.system_reader, 13);
        /* package 0 sleeps whole: one CPU of it is woken */
        assert_in_range(f->plan.package_reader[0] % 8, 0, 3);
        assert_int_equal(n_cores_read(f), 2);
}

static void test_c09_no_sleeper_reads_a_package_with_somebody_awake(void **state) {
        Fixture *f = *state;

        for (unsigned i = 0; i < N; i++) {
                begin(f);
                wake(f, i, 1);
                plan(f, NULL);
                assert_int_equal(f->plan.package_reader[i % 8 / 4], i);
                (void) carry_out(f);
                for (unsigned k = 0; k < N; k++)
                        f->activity[k] = (CpuActivity){};
        }
}

static void test_no_core_goes_unread_for_more_than_a_minute(void **state) {
        Fixture *f = *state;
        uint64_t last[CORES];
        unsigned total = 0;

        begin(f);
        for (unsigned c = 0; c < CORES; c++)
                last[c] = f->now;
        for (unsigned i = 0; i < 600; i++) {
                unsigned n;

                plan(f, NULL);
                n = n_cores_read(f);
                total += n;
                for (unsigned c = 0; c < CORES; c++) {
                        if (f->plan.core_reader[c] != WAKE_PLAN_NONE)
                                last[c] = f->now;
                        assert_true(f->now - last[c] < WAKE_PLAN_MAX_AGE_NS);
                }
                (void) carry_out(f);
        }
        assert_in_range(total, CORES * 10, CORES * 600 / 44);
}

/* Temperatures lose nothing by waiting: with local whoever sleeps just now is left alone, but for the minute. */
static void test_local_spares_who_sleeps_just_now(void **state) {
        Fixture *f = *state;
        unsigned n = 0;

        begin(f);
        f->turn.wake_policy = WAKE_LOCAL;
        f->plan.can_wait = true;
        wake(f, 2, 300);
        f->activity[2].asleep_since_ns = f->now; /* and sleeps again */
        wake(f, 3, 300);
        plan(f, NULL);
        assert_false(wake_plan_is_due(&f->plan, &f->turn, 2));
        assert_false(f->plan.read_cpu[2]);
        assert_int_equal(f->plan.core_reader[2], WAKE_PLAN_NONE);
        assert_true(f->plan.read_cpu[3]);
        assert_int_equal(carry_out(f), 1);
        for (unsigned i = 0; i < 60; i++) {
                plan(f, NULL);
                n += f->plan.read_cpu[2];
                (void) carry_out(f);
        }
        assert_in_range(n, 1, 2);
        /* counters are worth a wakeup once, as ever */
        f->activity[2].slept = false;
        f->plan.can_wait = false;
        plan(f, NULL);
        assert_true(f->plan.read_cpu[2]);
        f->plan.can_wait = true;
        f->turn.wake_policy = WAKE_LAZY;
        plan(f, NULL);
        assert_true(f->plan.read_cpu[2]);
}

static void test_who_is_awake_just_now_answers_for_the_package(void **state) {
        Fixture *f = *state;

        begin(f);
        wake(f, 1, 900);
        f->activity[1].asleep_since_ns = f->now;
        wake(f, 9, 20);
        plan(f, NULL);
        assert_int_equal(f->plan.package_reader[0], 9);
        assert_int_equal(f->plan.core_reader[1], 9);
        assert_true(f->plan.read_cpu[1]); /* lazy: it left idle */
}

static void test_unusable_cpus_are_not_asked(void **state) {
        Fixture *f = *state;
        bool usable[N];

        begin(f);
        for (unsigned i = 0; i < N; i++)
                usable[i] = i != 1 && i / 4 % 2 != 1; /* package 1 is gone, CPU 1 too slow */
        wake(f, 1, 900);
        wake(f, 2, 100);
        wake(f, 4, 100);
        plan(f, usable);
        assert_false(f->plan.read_cpu[1]);
        assert_true(f->plan.unread[1]);
        assert_int_equal(f->plan.package_reader[0], 2);
        assert_int_equal(f->plan.package_reader[1], WAKE_PLAN_NONE);
        assert_int_equal(f->plan.system_reader, 2);
        usable[2] = false;
        assert_int_not_equal(wake_plan_other_package_reader(&f->turn, usable, 0), 2);
        assert_int_equal(wake_plan_other_package_reader(&f->turn, usable, 1), WAKE_PLAN_NONE);
}

static void test_modules_are_read_with_a_core_of_theirs(void **state) {
        Fixture *f = *state;

        wake_plan_deinit(&f->plan);
        f->m->n_modules = 2;
        f->m->modules = calloc(2, sizeof(*f->m->modules));
        assert_non_null(f->m->modules);
        for (unsigned i = 0; i < N; i++)
                f->m->cpus[i].module = i % 8 / 4;
        assert_int_equal(wake_plan_init(&f->plan, f->m), 0);
        begin(f);
        wake(f, 7, 30);
        plan(f, NULL);
        assert_int_equal(f->plan.module_reader[1], 7);
        assert_int_equal(f->plan.module_reader[0], WAKE_PLAN_NONE);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_lazy_leaves_sleepers_alone, setup, teardown),
                cmocka_unit_test_setup_teardown(test_lazy_asks_the_thread_that_woke, setup, teardown),
                cmocka_unit_test_setup_teardown(
                        test_the_busier_thread_answers_for_the_core, setup, teardown),
                cmocka_unit_test_setup_teardown(test_what_was_not_read_stays_due, setup, teardown),
                cmocka_unit_test_setup_teardown(test_always_reads_all, setup, teardown),
                cmocka_unit_test_setup_teardown(test_c09_package_reader_is_the_most_awake, setup, teardown),
                cmocka_unit_test_setup_teardown(
                        test_c09_no_sleeper_reads_a_package_with_somebody_awake, setup, teardown),
                cmocka_unit_test_setup_teardown(
                        test_no_core_goes_unread_for_more_than_a_minute, setup, teardown),
                cmocka_unit_test_setup_teardown(test_local_spares_who_sleeps_just_now, setup, teardown),
                cmocka_unit_test_setup_teardown(
                        test_who_is_awake_just_now_answers_for_the_package, setup, teardown),
                cmocka_unit_test_setup_teardown(test_unusable_cpus_are_not_asked, setup, teardown),
                cmocka_unit_test_setup_teardown(
                        test_modules_are_read_with_a_core_of_theirs, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
