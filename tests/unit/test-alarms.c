/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Break storms and lost deep idle: begun, spread, over; by trace and by bound. */

#include "tests/unit/test.h"

#include "model/alarms.h"
#include "tests/unit/sample-rig.h"

enum { POLL, C1, C1E, C6 };

typedef struct World {
        Rig rig;
        Alarms *alarms;
        AlarmRules rules;
        AlarmEvent events[ALARM_N];
        size_t n;
} World;

static void add_by_state(Machine *m, FieldId f) {
        for (uint8_t i = 0; i < 4; i++)
                (void) fixture_column(m, f, i);
}

/* One package, 4 cores of 2 threads; traced or only with cpuidle and interrupts. */
static void world_init(World *w, bool traced) {
        Machine *m = fixture_machine(1, 4, 2);

        *w = (World){ .alarms = alarms_new(), .rules = ALARM_RULES_INIT };
        add_by_state(m, FIELD_IDLE_USAGE);
        add_by_state(m, FIELD_IDLE_TIME);
        (void) fixture_column(m, FIELD_IDLE_NS, 0);
        (void) fixture_column(m, FIELD_IRQ, 0);
        (void) fixture_column(m, FIELD_CORE_TSC, 0);
        (void) fixture_column(m, FIELD_C6, 0);
        if (traced) {
                add_by_state(m, FIELD_TRACE_ENTRIES);
                add_by_state(m, FIELD_TRACE_NS);
                add_by_state(m, FIELD_WAKE_BREAK);
        }
        machine_finish_layout(m);
        rig_machine(&w->rig, m);
        (void) rig_push(&w->rig);
}

static void world_deinit(World *w) {
        alarms_free(w->alarms);
        rig_deinit(&w->rig);
}

static void push(World *w) {
        (void) rig_push(&w->rig);
        assert_int_equal(alarms_push(w->alarms, &w->rules, w->rig.s, w->events, &w->n), 0);
}

/* A second in which a CPU enters C6 `entries` times and `breaks` of them end for nothing. */
static void second(World *w, const uint32_t *cpus, size_t n, uint64_t entries, uint64_t breaks) {
        rig_wait(&w->rig, 1);
        for (size_t i = 0; i < n; i++) {
                rig_add(&w->rig, FIELD_TRACE_ENTRIES, C6, cpus[i], entries);
                rig_add(&w->rig, FIELD_WAKE_BREAK, C6, cpus[i], breaks);
        }
        push(w);
}

static const uint32_t cpu3[] = { 3 }, cpus12[] = { 1, 2 };

static void test_storm_begins_after_three_and_ends_after_three(void **state) {
        World w;

        world_init(&w, true);
        for (unsigned i = 0; i < 2; i++) {
                second(&w, cpu3, 1, 2000, 1500);
                assert_int_equal(w.n, 0);
        }
        second(&w, cpu3, 1, 2000, 1500);
        assert_int_equal(w.n, 1);
        assert_int_equal(w.events[0].kind, ALARM_BREAK_STORM);
        assert_true(w.events[0].begins);
        assert_int_equal(w.events[0].cpu, 3);
        assert_string_equal(w.events[0].text, "CPU 3: 1500 breaks/s of 2000 idle exits/s in C6; 1 CPU");
        /* it goes on: nothing new */
        second(&w, cpu3, 1, 2000, 1500);
        assert_int_equal(w.n, 0);
        for (unsigned i = 0; i < 2; i++) {
                second(&w, cpu3, 1, 2000, 0);
                assert_int_equal(w.n, 0);
        }
        second(&w, cpu3, 1, 2000, 0);
        assert_int_equal(w.n, 1);
        assert_false(w.events[0].begins);
        assert_int_equal(w.events[0].cpu, -1);
        world_deinit(&w);
}

static void test_one_quiet_interval_starts_the_count_anew(void **state) {
        World w;

        world_init(&w, true);
        for (unsigned i = 0; i < 12; i++) {
                second(&w, cpu3, 1, 2000, i % 3 == 2 ? 0 : 1500);
                assert_int_equal(w.n, 0);
        }
        world_deinit(&w);
}

/* More than 10 % of exits, and more than 100 a second: both. */
static void test_share_and_rate_both_count(void **state) {
        World w;

        world_init(&w, true);
        for (unsigned i = 0; i < 5; i++) {
                second(&w, cpu3, 1, 5000, 450); /* 9 % */
                assert_int_equal(w.n, 0);
        }
        for (unsigned i = 0; i < 5; i++) {
                second(&w, cpu3, 1, 120, 100); /* no more than 100/s */
                assert_int_equal(w.n, 0);
        }
        w.rules.break_rate = 50;
        w.rules.intervals = 1;
        second(&w, cpu3, 1, 120, 100);
        assert_int_equal(w.n, 1);
        world_deinit(&w);
}

static void test_spreading_is_told_again(void **state) {
        World w;

        world_init(&w, true);
        w.rules.intervals = 1;
        second(&w, cpu3, 1, 2000, 1500);
        assert_int_equal(w.n, 1);
        second(&w, cpus12, 2, 1000, 900);
        assert_int_equal(w.n, 1);
        assert_true(strstr(w.events[0].text, "; 2 CPUs") != NULL);
        second(&w, cpus12, 2, 1000, 900);
        assert_int_equal(w.n, 0);
        world_deinit(&w);
}

static void test_unmitigated_is_said(void **state) {
        World w;

        world_init(&w, true);
        w.rules.intervals = 1;
        w.rules.unmitigated = true;
        second(&w, cpu3, 1, 2000, 1500);
        assert_int_equal(w.n, 1);
        assert_true(strstr(w.events[0].text, "erratum is not worked around") != NULL);
        world_deinit(&w);
}

/* Without idletrace the lower bound counts, and is labelled. */
static void test_bound(void **state) {
        World w;

        world_init(&w, false);
        w.rules.intervals = 1;
        rig_wait(&w.rig, 1);
        rig_add(&w.rig, FIELD_IDLE_USAGE, C1, 5, 300);
        rig_add(&w.rig, FIELD_IDLE_USAGE, POLL, 5, 9000);
        rig_add(&w.rig, FIELD_IRQ, 0, 5, 44);
        push(&w);
        assert_int_equal(w.n, 1);
        assert_int_equal(w.events[0].cpu, 5);
        assert_string_equal(w.events[0].text, "CPU 5: 256 breaks/s of 300 idle exits/s in C1 (bound); 1 CPU");
        world_deinit(&w);
}

/* A second in which a core's threads ask for C6 for requested and get granted (shares of the time). */
static void deep_second(World *w, uint32_t core, double requested, double granted) {
        rig_wait(&w->rig, 1);
        rig_add(&w->rig, FIELD_IDLE_TIME, C6, core, (uint64_t) (requested * 1e6));
        rig_add(&w->rig, FIELD_IDLE_TIME, C6, core + 4, (uint64_t) (requested * 1e6));
        rig_add(&w->rig, FIELD_IDLE_USAGE, C6, core, 10);
        rig_add(&w->rig, FIELD_IRQ, 0, core, 10);
        rig_add(&w->rig, FIELD_C6, 0, core, (uint64_t) (granted * (double) RIG_HZ));
        push(w);
}

static void test_deep_idle_lost(void **state) {
        World w;

        world_init(&w, false);
        for (unsigned i = 0; i < 3; i++) {
                deep_second(&w, 2, 0.9, 0.6); /* demoted, but more than half is granted */
                assert_int_equal(w.n, 0);
        }
        for (unsigned i = 0; i < 2; i++) {
                deep_second(&w, 2, 0.9, 0.2);
                assert_int_equal(w.n, 0);
        }
        deep_second(&w, 2, 0.9, 0.2);
        assert_int_equal(w.n, 1);
        assert_int_equal(w.events[0].kind, ALARM_DEEP_IDLE_LOST);
        assert_int_equal(w.events[0].cpu, 2);
        assert_string_equal(w.events[0].text, "CPU 2: C6 or deeper requested 90.0 % of the time, granted 20.0 %; 1 core");
        world_deinit(&w);
}

static void test_hardly_requested_proves_nothing(void **state) {
        World w;

        world_init(&w, false);
        w.rules.intervals = 1;
        deep_second(&w, 2, 0.04, 0);
        assert_int_equal(w.n, 0);
        world_deinit(&w);
}

/* A core that sleeps through says nothing: neither a storm's end nor a new bad interval. */
static void test_asleep_is_no_verdict(void **state) {
        World w;

        world_init(&w, false);
        deep_second(&w, 2, 0.9, 0.2);
        deep_second(&w, 2, 0.9, 0.2);
        rig_wait(&w.rig, 1);
        rig_reason(&w.rig, FIELD_C6, 0, 2, REASON_ASLEEP);
        rig_reason(&w.rig, FIELD_CORE_TSC, 0, 2, REASON_ASLEEP);
        push(&w);
        assert_int_equal(w.n, 0);
        rig_reason(&w.rig, FIELD_C6, 0, 2, REASON_NONE);
        rig_reason(&w.rig, FIELD_CORE_TSC, 0, 2, REASON_NONE);
        rig_wait(&w.rig, 1);
        rig_add(&w.rig, FIELD_IDLE_TIME, C6, 2, 1800000);
        rig_add(&w.rig, FIELD_IDLE_TIME, C6, 6, 1800000);
        rig_add(&w.rig, FIELD_C6, 0, 2, RIG_HZ * 4 / 10);
        push(&w);
        assert_int_equal(w.n, 1);
        world_deinit(&w);
}

/* Hotplug of another CPU: the run of this one goes on, under its new index. */
static void test_runs_survive_a_new_machine(void **state) {
        Machine *m;
        World w;

        world_init(&w, true);
        second(&w, cpu3, 1, 2000, 1500);
        second(&w, cpu3, 1, 2000, 1500);
        m = fixture_unplug(machine_copy(w.rig.m), 1);
        rig_machine(&w.rig, m);
        rig_set(&w.rig, FIELD_TRACE_ENTRIES, C6, 2, 4000);
        rig_set(&w.rig, FIELD_WAKE_BREAK, C6, 2, 3000);
        second(&w, (const uint32_t[]){ 2 }, 1, 2000, 1500);
        assert_int_equal(w.n, 1);
        assert_int_equal(w.events[0].cpu, 3);
        world_deinit(&w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_storm_begins_after_three_and_ends_after_three),
                cmocka_unit_test(test_one_quiet_interval_starts_the_count_anew),
                cmocka_unit_test(test_share_and_rate_both_count),
                cmocka_unit_test(test_spreading_is_told_again),
                cmocka_unit_test(test_unmitigated_is_said),
                cmocka_unit_test(test_bound),
                cmocka_unit_test(test_deep_idle_lost),
                cmocka_unit_test(test_hardly_requested_proves_nothing),
                cmocka_unit_test(test_asleep_is_no_verdict),
                cmocka_unit_test(test_runs_survive_a_new_machine),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
