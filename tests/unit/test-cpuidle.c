/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <errno.h>
#include <sys/resource.h>

#include "tests/unit/source-fixture.h"

#define CPU "sys/devices/system/cpu"

static int setup(void **state) {
        static SourceFixture f;

        f = (SourceFixture){};
        fixture_init(&f.fixture);
        *state = &f;
        return 0;
}

static int teardown(void **state) {
        SourceFixture *f = *state;

        source_fixture_stop(f);
        fixture_deinit(&f->fixture);
        return 0;
}

static void intel_cpu(Fixture *f, unsigned cpu) {
        fixture_state(f, cpu, 0, "POLL", "CPUIDLE CORE POLL IDLE", 0, 0);
        fixture_state(f, cpu, 1, "C1", "MWAIT 0x00", 2, 2);
        fixture_state(f, cpu, 2, "C6", "MWAIT 0x20", 133, 600);
}

static void intel_machine(SourceFixture *f) {
        fixture_write(&f->fixture, "0,5\n", CPU "/online");
        fixture_write(&f->fixture, "intel_idle\n", CPU "/cpuidle/current_driver");
        fixture_write(&f->fixture, "menu\n", CPU "/cpuidle/current_governor_ro");
        intel_cpu(&f->fixture, 0);
        intel_cpu(&f->fixture, 5);
}

static uint64_t value(const SourceFixture *f, FieldId field, unsigned state, uint32_t cpu) {
        return source_fixture_value(f, field, (uint8_t) state, cpu);
}

static Reason reason(const SourceFixture *f, FieldId field, unsigned state, uint32_t cpu) {
        return source_fixture_reason(f, field, (uint8_t) state, cpu);
}

static void test_discovery(void **state) {
        SourceFixture *f = *state;
        const IdleSet *set;

        intel_machine(f);
        source_fixture_start(f, &source_ops_cpuidle);
        assert_non_null(f->source);
        assert_int_equal(f->status.state, SOURCE_OK);
        assert_string_equal(f->machine->idle_driver, "intel_idle");
        assert_string_equal(f->machine->idle_governor, "menu");
        assert_int_equal(f->machine->n_idle_sets, 1); /* both CPUs share it */
        assert_int_equal(f->machine->cpus[1].idle_set, 0);
        set = &f->machine->idle_sets[0];
        assert_int_equal(set->n_states, 3);
        assert_true(set->states[0].is_poll);
        assert_int_equal(set->states[0].mwait_hint, -1);
        assert_int_equal(set->states[1].mwait_hint, 0);
        assert_int_equal(set->states[2].mwait_hint, 0x20);
        assert_int_equal(set->states[2].exit_latency_us, 133);
        assert_int_equal(set->states[2].target_residency_us, 600);
        assert_int_equal(f->status.n_counters, 1 + 3 * 5);
}

/* acpi_idle's wording, ten states and more, directories that are no state (C16). */
static void test_c16_odd_trees(void **state) {
        SourceFixture *f = *state;
        char name[16];

        fixture_write(&f->fixture, "0-1\n", CPU "/online");
        for (unsigned k = 0; k < 11; k++) {
                (void) snprintf(name, sizeof(name), "C%u_ACPI", k);
                fixture_state(&f->fixture, 0, k, name, "ACPI FFH MWAIT 0x51", k, k);
        }
        fixture_write(&f->fixture, "1\n", CPU "/cpu0/cpuidle/state1/s2idle/usage");
        fixture_write(&f->fixture, "x\n", CPU "/cpu0/cpuidle/driver/something");
        fixture_write(&f->fixture, "x\n", CPU "/cpu0/cpuidle/state/name");
        fixture_write(&f->fixture, "x\n", CPU "/cpu0/cpuidle/state1x/name");
        source_fixture_start(f, &source_ops_cpuidle);
        assert_int_equal(f->machine->idle_sets[0].n_states, 11);
        for (unsigned k = 0; k < 11; k++) { /* in the order of numbers: state10 comes last */
                (void) snprintf(name, sizeof(name), "C%u_ACPI", k);
                assert_string_equal(f->machine->idle_sets[0].states[k].name, name);
        }
        assert_int_equal(f->machine->idle_sets[0].states[9].mwait_hint, 0x51);
        assert_string_equal(f->machine->idle_driver, "");
        /* CPU 1 has no cpuidle at all: no error, no value */
        assert_int_equal(f->machine->cpus[1].idle_set, UINT16_MAX);
        assert_true(source_fixture_turn(f, 0) >= 0);
        assert_int_equal(reason(f, FIELD_IDLE_TIME, 0, 1), REASON_NOT_APPLICABLE);
        assert_int_equal(reason(f, FIELD_IDLE_TIME, 0, 0), REASON_NONE);
}

static void test_c16_nothing_there(void **state) {
        SourceFixture *f = *state;

        fixture_write(&f->fixture, "0-1\n", CPU "/online");
        fixture_write(&f->fixture, "none\n", CPU "/cpuidle/current_driver");
        source_fixture_start(f, &source_ops_cpuidle);
        assert_null(f->source);
        assert_int_equal(f->status.state, SOURCE_ABSENT);
        assert_true(strstr(f->status.hint, "virtual machine"));
        assert_string_equal(f->machine->idle_driver, "");
}

static void test_counters_move_together(void **state) {
        SourceFixture *f = *state;

        intel_machine(f);
        fixture_idle(&f->fixture, 0, 2, 100, 5000000, 3, 0);
        source_fixture_start(f, &source_ops_cpuidle);
        assert_int_equal(source_fixture_turn(f, 0), 0);
        assert_int_equal(value(f, FIELD_IDLE_USAGE, 2, 0), 100);
        assert_int_equal(value(f, FIELD_IDLE_TIME, 2, 0), 5000000);
        assert_int_equal(value(f, FIELD_IDLE_ABOVE, 2, 0), 3);
        assert_int_equal(f->activity[0].evidence, 0); /* nothing is known of the first interval */
        fixture_idle(&f->fixture, 0, 2, 101, 6000000, 4, 0);
        assert_int_equal(source_fixture_turn(f, 0), 0);
        assert_int_equal(value(f, FIELD_IDLE_USAGE, 2, 0), 101);
        assert_int_equal(value(f, FIELD_IDLE_TIME, 2, 0), 6000000);
        assert_int_equal(value(f, FIELD_IDLE_ABOVE, 2, 0), 4);
        assert_int_equal(f->activity[0].evidence, ACTIVITY_USAGE_KNOWN | ACTIVITY_USAGE);
        assert_int_equal(f->activity[1].evidence, ACTIVITY_USAGE_KNOWN);
}

/* A sleeper that we woke with N reads left idle N times at most; its times are settled all the same. */
static void test_our_own_asking_is_no_activity(void **state) {
        SourceFixture *f = *state;

        intel_machine(f);
        fixture_idle(&f->fixture, 0, 2, 100, 5000000, 3, 0);
        source_fixture_start(f, &source_ops_cpuidle);
        assert_int_equal(source_fixture_turn(f, 0), 0);
        f->asked = 4;
        fixture_idle(&f->fixture, 0, 2, 104, 6000000, 3, 0);
        assert_int_equal(source_fixture_turn(f, 0), 0);
        assert_int_equal(f->activity[0].evidence, ACTIVITY_USAGE_KNOWN);
        assert_int_equal(value(f, FIELD_IDLE_TIME, 2, 0), 6000000);
        fixture_idle(&f->fixture, 0, 2, 109, 7000000, 3, 0);
        assert_int_equal(source_fixture_turn(f, 0), 0);
        assert_int_equal(f->activity[0].evidence, ACTIVITY_USAGE_KNOWN | ACTIVITY_USAGE);
}

/* time is read where usage moved, and only there: the kernel moves both at idle exit. */
static void test_time_only_with_usage(void **state) {
        SourceFixture *f = *state;

        intel_machine(f);
        fixture_idle(&f->fixture, 0, 1, 10, 1000, 0, 0);
        source_fixture_start(f, &source_ops_cpuidle);
        assert_int_equal(source_fixture_turn(f, 0), 0);
        fixture_idle(&f->fixture, 0, 1, 10, 9999, 7, 7);
        assert_int_equal(source_fixture_turn(f, ACTIVITY_BUSY), 0);
        assert_int_equal(value(f, FIELD_IDLE_TIME, 1, 0), 1000);
        assert_int_equal(value(f, FIELD_IDLE_ABOVE, 1, 0), 0);
}

static void test_sleeper_keeps_its_clock(void **state) {
        SourceFixture *f = *state;
        uint64_t span;

        intel_machine(f);
        source_fixture_start(f, &source_ops_cpuidle);
        assert_int_equal(source_fixture_turn(f, 0), 0);
        span = value(f, FIELD_IDLE_NS, 0, 0);
        assert_int_equal(reason(f, FIELD_IDLE_TIME, 2, 0), REASON_NONE);
        assert_int_equal(source_fixture_turn(f, ACTIVITY_IRQ_KNOWN | ACTIVITY_BUSY_KNOWN), 0);
        assert_int_equal(reason(f, FIELD_IDLE_TIME, 2, 0), REASON_ASLEEP);
        assert_int_equal(reason(f, FIELD_IDLE_NS, 0, 0), REASON_ASLEEP);
        assert_true(value(f, FIELD_IDLE_NS, 0, 0) == span);
        assert_int_equal(reason(f, FIELD_IDLE_USAGE, 2, 0), REASON_NONE); /* 0 exits are a fact */
        /* it wakes: the whole sleep at once, with its own span */
        fixture_idle(&f->fixture, 0, 2, 1, 1, 0, 0);
        assert_int_equal(source_fixture_turn(f, ACTIVITY_IRQ_KNOWN | ACTIVITY_IRQ), 0);
        assert_int_equal(reason(f, FIELD_IDLE_TIME, 2, 0), REASON_NONE);
        assert_true(value(f, FIELD_IDLE_NS, 0, 0) > span);
        assert_int_equal(reason(f, FIELD_IDLE_TIME, 0, 0), REASON_NONE);
}

/* Usage stands still on a CPU that never idled, too: the others' evidence tells. */
static void test_busy_is_not_asleep(void **state) {
        SourceFixture *f = *state;
        uint64_t span;

        intel_machine(f);
        source_fixture_start(f, &source_ops_cpuidle);
        assert_int_equal(source_fixture_turn(f, 0), 0);
        span = value(f, FIELD_IDLE_NS, 0, 0);
        assert_int_equal(source_fixture_turn(f, ACTIVITY_BUSY_KNOWN | ACTIVITY_BUSY), 0);
        assert_int_equal(reason(f, FIELD_IDLE_TIME, 2, 0), REASON_NONE);
        assert_true(value(f, FIELD_IDLE_NS, 0, 0) > span);
}

/* P and E cores have lists of their own (C11). */
static void test_c11_lists_differ(void **state) {
        SourceFixture *f = *state;

        fixture_write(&f->fixture, "0,16\n", CPU "/online");
        intel_cpu(&f->fixture, 0);
        fixture_state(&f->fixture, 0, 3, "C8", "MWAIT 0x40", 200, 800);
        fixture_state(&f->fixture, 0, 4, "C10", "MWAIT 0x60", 230, 700);
        intel_cpu(&f->fixture, 16);
        source_fixture_start(f, &source_ops_cpuidle);
        assert_int_equal(f->machine->n_idle_sets, 2);
        assert_int_equal(source_fixture_turn(f, 0), 0);
        assert_int_equal(reason(f, FIELD_IDLE_TIME, 4, 0), REASON_NONE);
        assert_int_equal(reason(f, FIELD_IDLE_TIME, 4, 1), REASON_NOT_APPLICABLE);
        assert_int_equal(reason(f, FIELD_IDLE_USAGE, 4, 1), REASON_NOT_APPLICABLE);
        assert_int_equal(reason(f, FIELD_IDLE_TIME, 2, 1), REASON_NONE);
        assert_int_equal(f->status.state, SOURCE_OK);
}

/* More lists than a machine holds: the others are shown with one like theirs, or none; that is said. */
static void test_many_lists(void **state) {
        SourceFixture *f = *state;

        fixture_write(&f->fixture, "0-69\n", CPU "/online");
        for (unsigned cpu = 0; cpu < 70; cpu++) {
                intel_cpu(&f->fixture, cpu);
                if (cpu < 68)
                        fixture_state(&f->fixture, cpu, 1, "C1", "MWAIT 0x00", 2 + cpu, 2);
                else
                        fixture_write(&f->fixture, "1\n", CPU "/cpu%u/cpuidle/state2/disable", cpu);
        }
        source_fixture_start(f, &source_ops_cpuidle);
        assert_int_equal(f->status.state, SOURCE_OK);
        assert_int_equal(f->status.error, EOVERFLOW);
        assert_non_null(strstr(f->status.hint, "more than 64 different lists"));
        assert_non_null(strstr(f->status.hint, "6 CPUs"));
        assert_int_equal(f->machine->n_idle_sets, MACHINE_IDLE_SETS_MAX);
        assert_int_equal(f->machine->cpus[63].idle_set, 63);
        assert_int_equal(f->machine->cpus[64].idle_set, UINT16_MAX);
        assert_int_equal(f->machine->cpus[69].idle_set, 0);
        assert_int_equal(source_fixture_turn(f, 0), 0);
        assert_int_equal(reason(f, FIELD_IDLE_TIME, 2, 69), REASON_NONE);
        assert_int_equal(reason(f, FIELD_IDLE_TIME, 2, 64), REASON_NOT_APPLICABLE);
}

static void test_more_states_than_are_kept(void **state) {
        SourceFixture *f = *state;

        fixture_write(&f->fixture, "0\n", CPU "/online");
        for (unsigned k = 0; k < IDLE_STATES_MAX; k++)
                fixture_state(&f->fixture, 0, k, k ? "Cx" : "POLL", "", k, k);
        source_fixture_start(f, &source_ops_cpuidle);
        assert_int_equal(f->status.error, 0);
        source_fixture_stop(f);
        fixture_state(&f->fixture, 0, IDLE_STATES_MAX, "Cx", "", 100, 100);
        source_fixture_start(f, &source_ops_cpuidle);
        assert_int_equal(f->status.state, SOURCE_OK);
        assert_int_equal(f->status.error, EOVERFLOW);
        assert_non_null(strstr(f->status.hint, "more than 16 idle states"));
        assert_int_equal(f->machine->idle_sets[0].n_states, IDLE_STATES_MAX);
}

static void test_cpu_vanishes_and_returns(void **state) {
        SourceFixture *f = *state;

        intel_machine(f);
        source_fixture_start(f, &source_ops_cpuidle);
        assert_int_equal(source_fixture_turn(f, 0), 0);
        fixture_write(&f->fixture, "",
                CPU "/cpu5/cpuidle/state0/usage"); /* a kept descriptor that gives nothing */
        fixture_remove(&f->fixture, CPU "/cpu5/cpuidle");
        (void) source_fixture_turn(f, 0);
        (void) source_fixture_turn(f, 0);
        assert_int_equal(reason(f, FIELD_IDLE_TIME, 2, 1), REASON_OFFLINE);
        assert_int_equal(reason(f, FIELD_IDLE_TIME, 2, 0), REASON_ASLEEP);
        intel_cpu(&f->fixture, 5);
        fixture_idle(&f->fixture, 5, 2, 1, 7, 0, 0); /* lower than before */
        (void) source_fixture_turn(f, 0);
        assert_int_equal(reason(f, FIELD_IDLE_TIME, 2, 1), REASON_NONE);
        assert_int_equal(value(f, FIELD_IDLE_TIME, 2, 1), 7);
}

static void test_switched_off_state_is_a_new_machine(void **state) {
        SourceFixture *f = *state;
        int changed = 0;

        intel_machine(f);
        source_fixture_start(f, &source_ops_cpuidle);
        assert_int_equal(source_fixture_turn(f, 0), 0);
        fixture_write(&f->fixture, "1\n", CPU "/cpu0/cpuidle/state2/disable");
        for (unsigned i = 0; i < 64; i++)
                changed += source_fixture_turn(f, 0);
        assert_int_equal(changed, 1); /* looked at once in 64 turns */
}

static void test_rejected_in_turns(void **state) {
        SourceFixture *f = *state;

        intel_machine(f);
        source_fixture_start(f, &source_ops_cpuidle);
        assert_int_equal(source_fixture_turn(f, 0), 0);
        fixture_write(&f->fixture, "12\n", CPU "/cpu5/cpuidle/state1/rejected");
        for (unsigned i = 0; i < 64; i++)
                (void) source_fixture_turn(f, 0);
        assert_int_equal(value(f, FIELD_IDLE_REJECTED, 1, 1), 12);
}

/* Few descriptors: all is read all the same, and no more are kept than the limit leaves room for. */
static void test_descriptors_run_short(void **state) {
        SourceFixture *f = *state;
        struct rlimit limit, small;

        intel_machine(f);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
        small = (struct rlimit){ .rlim_cur = 12, .rlim_max = limit.rlim_max };
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
        source_fixture_start(f, &source_ops_cpuidle);
        assert_true(source_fixture_turn(f, 0) >= 0);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        for (unsigned i = 1; i < 10; i++) {
                fixture_idle(&f->fixture, 5, 2, i, i * 10, i, 0);
                assert_true(source_fixture_turn(f, 0) >= 0);
                assert_int_equal(value(f, FIELD_IDLE_TIME, 2, 1), i * 10);
        }
        assert_int_equal(f->status.state, SOURCE_OK);
}

/* Old kernels have neither above nor below nor rejected: no such column, no error. */
static void test_old_kernel(void **state) {
        SourceFixture *f = *state;

        fixture_write(&f->fixture, "0\n", CPU "/online");
        intel_cpu(&f->fixture, 0);
        for (unsigned k = 0; k < 3; k++) {
                fixture_remove(&f->fixture, CPU "/cpu0/cpuidle/state%u/above", k);
                fixture_remove(&f->fixture, CPU "/cpu0/cpuidle/state%u/below", k);
                fixture_remove(&f->fixture, CPU "/cpu0/cpuidle/state%u/rejected", k);
        }
        source_fixture_start(f, &source_ops_cpuidle);
        assert_null(layout_find(&f->machine->layout, FIELD_IDLE_ABOVE, 1));
        assert_int_equal(source_fixture_turn(f, 0), 0);
        assert_int_equal(reason(f, FIELD_IDLE_TIME, 1, 0), REASON_NONE);
        assert_int_equal(f->status.n_counters, 1 + 3 * 2);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_discovery, setup, teardown),
                cmocka_unit_test_setup_teardown(test_c16_odd_trees, setup, teardown),
                cmocka_unit_test_setup_teardown(test_c16_nothing_there, setup, teardown),
                cmocka_unit_test_setup_teardown(test_counters_move_together, setup, teardown),
                cmocka_unit_test_setup_teardown(test_our_own_asking_is_no_activity, setup, teardown),
                cmocka_unit_test_setup_teardown(test_time_only_with_usage, setup, teardown),
                cmocka_unit_test_setup_teardown(test_sleeper_keeps_its_clock, setup, teardown),
                cmocka_unit_test_setup_teardown(test_busy_is_not_asleep, setup, teardown),
                cmocka_unit_test_setup_teardown(test_c11_lists_differ, setup, teardown),
                cmocka_unit_test_setup_teardown(test_many_lists, setup, teardown),
                cmocka_unit_test_setup_teardown(test_more_states_than_are_kept, setup, teardown),
                cmocka_unit_test_setup_teardown(test_cpu_vanishes_and_returns, setup, teardown),
                cmocka_unit_test_setup_teardown(test_switched_off_state_is_a_new_machine, setup, teardown),
                cmocka_unit_test_setup_teardown(test_rejected_in_turns, setup, teardown),
                cmocka_unit_test_setup_teardown(test_descriptors_run_short, setup, teardown),
                cmocka_unit_test_setup_teardown(test_old_kernel, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
