/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <errno.h>

#include "tests/unit/sample-rig.h"

#define JOULE_14 (1 << 14) /* counts of 2^-14 J */

/* Energy by package and everything that is read of cores and CPUs. */
static Machine *machine_full(void) {
        Machine *m = fixture_machine(2, 4, 2);

        for (FieldId f = FIELD_CPU_TSC; f <= FIELD_SMI; f++)
                fixture_column(m, f, 0);
        fixture_column(m, FIELD_IRQ, 0);
        fixture_column(m, FIELD_IDLE_NS, 0);
        for (uint8_t k = 0; k < 4; k++) {
                fixture_column(m, FIELD_IDLE_TIME, k);
                fixture_column(m, FIELD_IDLE_USAGE, k);
        }
        fixture_column(m, FIELD_CORE_TSC, 0);
        fixture_column(m, FIELD_C6, 0);
        fixture_column(m, FIELD_PKG_TSC, 0);
        fixture_column(m, FIELD_PKG_NS, 0);
        fixture_column(m, FIELD_PC6, 0);
        fixture_column(m, FIELD_ENERGY_PKG, 0)->scale = 1.0 / JOULE_14;
        fixture_column(m, FIELD_ENERGY_RAM, 0)->scale = 15.3e-6;
        fixture_column(m, FIELD_PKG_TEMP, 0);
        machine_finish_layout(m);
        return m;
}

static void start(Rig *r) {
        *r = (Rig){};
        rig_machine(r, machine_full());
        rig_wait(r, 100);
        assert_int_equal(rig_push(r), SAMPLE_E_FIRST);
}

static void core_asleep(Rig *r, uint32_t core, Reason reason) {
        rig_reason(r, FIELD_CORE_TSC, 0, core, reason);
        rig_reason(r, FIELD_C6, 0, core, reason);
}

static void cpu_asleep(Rig *r, uint32_t cpu, Reason reason) {
        for (FieldId f = FIELD_CPU_TSC; f <= FIELD_SMI; f++)
                rig_reason(r, f, 0, cpu, reason);
        rig_reason(r, FIELD_IDLE_NS, 0, cpu, reason);
        for (uint8_t k = 0; k < 4; k++)
                rig_reason(r, FIELD_IDLE_TIME, k, cpu, reason);
}

static void test_c10_first_has_no_difference(void **state) {
        Rig r;

        start(&r);
        assert_true(r.s->h.is_first);
        assert_int_equal(r.s->h.dt_ns, 0);
        assert_int_equal(r.s->h.start_us, r.s->h.end_us);
        assert_null_for(&r, FIELD_MPERF, 0, 0, REASON_FIRST);
        assert_null_for(&r, FIELD_CPU_TSC, 0, 0, REASON_FIRST);
        assert_null_for(&r, FIELD_ENERGY_PKG, 0, 1, REASON_FIRST);
        assert_null_for(&r, FIELD_SELF_READS, 0, 0, REASON_FIRST);
        assert_null_for(&r, FIELD_C1, 0, 0, REASON_FIRST);
        assert_null_for(&r, FIELD_DEMOTION, 0, 0, REASON_FIRST);
        assert_value(&r, FIELD_PKG_TEMP, 0, 0, 0);
        rig_deinit(&r);
}

static void test_c10_time_is_measured(void **state) {
        Rig r;

        start(&r);
        rig_wait(&r, 1.7);
        rig_add(&r, FIELD_ENERGY_PKG, 0, 0, 170 * JOULE_14);
        assert_int_equal(rig_push(&r), 0);
        assert_int_equal(r.s->h.dt_ns, 1700000000);
        assert_int_equal(r.s->h.end_us - r.s->h.start_us, 1700000);
        assert_value(&r, FIELD_PKG_NS, 0, 0, 1700000000);
        assert_value(&r, FIELD_ENERGY_PKG, 0, 0, 170 * JOULE_14);
        rig_deinit(&r);
}

static void test_c10_too_short_is_joined_to_the_next(void **state) {
        Rig r;

        start(&r);
        rig_wait(&r, 0.001);
        rig_add(&r, FIELD_ENERGY_PKG, 0, 0, 2 * JOULE_14);
        assert_int_equal(rig_push(&r), SAMPLE_E_SHORT);
        assert_null(r.s);
        rig_wait(&r, 0.999);
        rig_add(&r, FIELD_ENERGY_PKG, 0, 0, 98 * JOULE_14);
        assert_int_equal(rig_push(&r), 0);
        assert_int_equal(r.s->h.dt_ns, RIG_SECOND);
        assert_value(&r, FIELD_ENERGY_PKG, 0, 0, 100 * JOULE_14);
        rig_deinit(&r);
}

static void test_c01_one_zone_wraps(void **state) {
        Rig r;

        start(&r);
        rig_set(&r, FIELD_ENERGY_PKG, 0, 0, 1000);
        rig_set(&r, FIELD_ENERGY_RAM, 0, 0, UINT32_MAX - 10);
        rig_wait(&r, 1);
        assert_int_equal(rig_push(&r), 0);
        rig_wait(&r, 1);
        rig_add(&r, FIELD_ENERGY_PKG, 0, 0, 100 * JOULE_14);
        rig_set(&r, FIELD_ENERGY_RAM, 0, 0, 196078 - 11);
        assert_int_equal(rig_push(&r), 0);
        assert_value(&r, FIELD_ENERGY_PKG, 0, 0, 100 * JOULE_14);
        assert_value(&r, FIELD_ENERGY_RAM, 0, 0, 196078); /* 3 J at 15.3 uJ */
        rig_deinit(&r);
}

static void test_c01_powercap_range(void **state) {
        Rig r = {};
        Machine *m = fixture_machine(1, 1, 1);
        LayoutColumn *c;

        fixture_column(m, FIELD_PKG_NS, 0);
        c = fixture_column(m, FIELD_ENERGY_PKG, 0);
        c->width = 64;
        c->range = 262143328850;
        c->scale = 1e-6;
        machine_finish_layout(m);
        rig_machine(&r, m);
        rig_wait(&r, 1);
        rig_set(&r, FIELD_ENERGY_PKG, 0, 0, 262140328850);
        assert_int_equal(rig_push(&r), SAMPLE_E_FIRST);
        rig_wait(&r, 1);
        rig_set(&r, FIELD_ENERGY_PKG, 0, 0, 1999939);
        assert_int_equal(rig_push(&r), 0);
        assert_value(&r, FIELD_ENERGY_PKG, 0, 0, 4999939); /* 5.00 W */
        rig_deinit(&r);
}

/* Exactly one null where the range is unknown, and never a negative or absurd number. */
static void test_c03_range_unknown_costs_one_interval(void **state) {
        Rig r = {};
        Machine *m = fixture_machine(1, 1, 1);
        LayoutColumn *c;
        int64_t v;

        fixture_column(m, FIELD_PKG_NS, 0);
        c = fixture_column(m, FIELD_ENERGY_PKG, 0);
        c->width = 64;
        c->scale = 1e-6;
        machine_finish_layout(m);
        rig_machine(&r, m);
        rig_set(&r, FIELD_ENERGY_PKG, 0, 0, 4294967000);
        rig_wait(&r, 1);
        assert_int_equal(rig_push(&r), SAMPLE_E_FIRST);
        rig_wait(&r, 1);
        rig_set(&r, FIELD_ENERGY_PKG, 0, 0, 1193);
        assert_int_equal(rig_push(&r), 0);
        assert_int_not_equal(rig_get(&r, FIELD_ENERGY_PKG, 0, 0, &v), REASON_NONE);
        rig_wait(&r, 1);
        rig_add(&r, FIELD_ENERGY_PKG, 0, 0, 16000000);
        assert_int_equal(rig_push(&r), 0);
        assert_value(&r, FIELD_ENERGY_PKG, 0, 0, 16000000);
        rig_deinit(&r);
}

/* 163.2 W for 1795 s, polled every 60 s: the wrap at 262144 J is in it. */
static void test_c02_energy_of_a_long_run(void **state) {
        const uint64_t per_second = (uint64_t) (163.2 * JOULE_14 + 0.5);
        int64_t sum = 0, v;
        Rig r;

        start(&r);
        r.t->h.interval_ns = 60 * RIG_SECOND;
        rig_set(&r, FIELD_ENERGY_PKG, 0, 0, 4000000000);
        rig_wait(&r, 60);
        assert_int_equal(rig_push(&r), 0);
        for (unsigned left = 1795; left > 0;) {
                unsigned step = left < 60 ? left : 60;

                rig_wait(&r, step);
                rig_set(&r, FIELD_ENERGY_PKG, 0, 0,
                        (r.t->values[rig_slot(&r, FIELD_ENERGY_PKG, 0, 0)] + step * per_second) & UINT32_MAX);
                assert_int_equal(rig_push(&r), 0);
                assert_int_equal(rig_get(&r, FIELD_ENERGY_PKG, 0, 0, &v), REASON_NONE);
                sum += v;
                left -= step;
        }
        assert_in_range(sum / JOULE_14, 292955 - 292, 292955 + 292);
        rig_deinit(&r);
}

static void test_c02_pause_is_a_gap(void **state) {
        uint32_t epoch;
        Rig r;

        start(&r);
        rig_wait(&r, 1);
        assert_int_equal(rig_push(&r), 0);
        epoch = r.s->h.epoch;
        rig_wait(&r, 7200);
        rig_add(&r, FIELD_ENERGY_PKG, 0, 0, 5000);
        assert_int_equal(rig_push(&r), SAMPLE_E_FIRST);
        assert_true(r.s->h.is_first);
        assert_int_not_equal(r.s->h.epoch, epoch);
        assert_null_for(&r, FIELD_ENERGY_PKG, 0, 0, REASON_GAP);
        assert_null_for(&r, FIELD_MPERF, 0, 0, REASON_GAP);
        assert_null_for(&r, FIELD_SELF_READS, 0, 0, REASON_GAP);
        rig_wait(&r, 1);
        rig_add(&r, FIELD_ENERGY_PKG, 0, 0, 163 * JOULE_14);
        assert_int_equal(rig_push(&r), 0);
        assert_value(&r, FIELD_ENERGY_PKG, 0, 0, 163 * JOULE_14);
        rig_deinit(&r);
}

/* Within the allowed pause, yet the register may have wrapped twice: only that counter is null. */
static void test_c02_ambiguous_for_one_counter(void **state) {
        Rig r = {};
        Machine *m = fixture_machine(1, 1, 1);

        fixture_column(m, FIELD_PKG_NS, 0);
        fixture_column(m, FIELD_IRQ, 0);
        fixture_column(m, FIELD_ENERGY_PKG, 0)->scale = 15.3e-6;
        machine_finish_layout(m);
        rig_machine(&r, m);
        r.t->h.interval_ns = 60 * RIG_SECOND;
        rig_wait(&r, 60);
        assert_int_equal(rig_push(&r), SAMPLE_E_FIRST);
        rig_wait(&r, 60);
        rig_add(&r, FIELD_ENERGY_PKG, 0, 0, 1000);
        assert_int_equal(rig_push(&r), 0);
        assert_value(&r, FIELD_ENERGY_PKG, 0, 0, 1000);
        rig_wait(&r, 120);
        rig_add(&r, FIELD_ENERGY_PKG, 0, 0, 1000);
        rig_add(&r, FIELD_IRQ, 0, 0, 7);
        assert_int_equal(rig_push(&r), 0);
        assert_null_for(&r, FIELD_ENERGY_PKG, 0, 0, REASON_GAP);
        assert_value(&r, FIELD_IRQ, 0, 0, 7);
        rig_deinit(&r);
}

static void test_suspend_is_a_fence(void **state) {
        Rig r;

        start(&r);
        rig_wait(&r, 1);
        assert_int_equal(rig_push(&r), 0);
        rig_wait(&r, 1);
        r.t->h.boot_ns += 3600 * RIG_SECOND;
        r.t->h.real_us += 3600ULL * 1000000;
        assert_int_equal(rig_push(&r), SAMPLE_E_FIRST);
        assert_null_for(&r, FIELD_MPERF, 0, 3, REASON_GAP);
        rig_deinit(&r);
}

static void test_another_sampler_is_a_fence(void **state) {
        Rig r;

        start(&r);
        rig_wait(&r, 1);
        r.t->h.seq = 1;
        assert_int_equal(rig_push(&r), SAMPLE_E_FIRST);
        assert_null_for(&r, FIELD_MPERF, 0, 3, REASON_GAP);
        rig_deinit(&r);
}

static void test_clock_step_moves_no_difference(void **state) {
        Rig r;

        start(&r);
        rig_wait(&r, 1);
        r.t->h.real_us -= 60000000;
        rig_add(&r, FIELD_IRQ, 0, 0, 5);
        assert_int_equal(rig_push(&r), 0);
        assert_true(r.s->h.clock_step);
        assert_int_equal(r.s->h.dt_ns, RIG_SECOND);
        assert_int_equal(r.s->h.end_us - r.s->h.start_us, 1000000);
        assert_value(&r, FIELD_IRQ, 0, 0, 5);
        rig_wait(&r, 1);
        r.t->h.real_us += 400; /* slewed */
        assert_int_equal(rig_push(&r), 0);
        assert_false(r.s->h.clock_step);
        rig_deinit(&r);
}

static void test_dropped_frames_lose_nothing(void **state) {
        Rig r;

        start(&r);
        rig_wait(&r, 1);
        rig_wait(&r, 1);
        rig_wait(&r, 1);
        rig_add(&r, FIELD_ENERGY_PKG, 0, 0, 300 * JOULE_14);
        assert_int_equal(rig_push(&r), 0);
        assert_int_equal(r.s->h.n_dropped, 2);
        assert_int_equal(r.s->h.dt_ns, 3 * RIG_SECOND);
        assert_value(&r, FIELD_ENERGY_PKG, 0, 0, 300 * JOULE_14);
        rig_deinit(&r);
}

/* A sleeper: busy 0 is a fact every second; what was granted comes with its whole time when the core is read again. */
static void test_asleep_spans_the_sleep(void **state) {
        int64_t v;
        Rig r;

        start(&r);
        rig_wait(&r, 1);
        rig_add(&r, FIELD_C6, 0, 1, RIG_HZ / 2);
        assert_int_equal(rig_push(&r), 0);
        core_asleep(&r, 1, REASON_ASLEEP);
        cpu_asleep(&r, 1, REASON_ASLEEP);
        for (unsigned i = 0; i < 5; i++) {
                rig_wait(&r, 1);
                assert_int_equal(rig_push(&r), 0);
                assert_value(&r, FIELD_MPERF, 0, 1, 0);
                assert_value(&r, FIELD_APERF, 0, 1, 0);
                assert_near(&r, FIELD_CPU_TSC, 0, 1, RIG_HZ >> FIELD_TICK_SHIFT, 1);
                assert_near(&r, FIELD_CPU_NS, 0, 1, RIG_SECOND, 1);
                assert_null_for(&r, FIELD_SMI, 0, 1, REASON_ASLEEP);
                assert_null_for(&r, FIELD_C6, 0, 1, REASON_ASLEEP);
                assert_null_for(&r, FIELD_CORE_TSC, 0, 1, REASON_ASLEEP);
                assert_null_for(&r, FIELD_C1, 0, 1, REASON_ASLEEP);
                assert_null_for(&r, FIELD_IDLE_TIME, 3, 1, REASON_ASLEEP);
                assert_int_equal(rig_get_settled(&r, FIELD_C6, 0, 1, &v), REASON_NONE);
                assert_in_range(v, (RIG_HZ / 2 >> FIELD_TICK_SHIFT) - 1, (RIG_HZ / 2 >> FIELD_TICK_SHIFT) + 1);
        }
        core_asleep(&r, 1, REASON_NONE);
        cpu_asleep(&r, 1, REASON_NONE);
        rig_wait(&r, 1);
        rig_add(&r, FIELD_C6, 0, 1, 6 * RIG_HZ / 100 * 99);
        rig_add(&r, FIELD_IDLE_TIME, 3, 1, 5950000);
        rig_add(&r, FIELD_SMI, 0, 1, 3);
        rig_add(&r, FIELD_MPERF, 0, 1, RIG_HZ / 100);
        assert_int_equal(rig_push(&r), 0);
        assert_near(&r, FIELD_CORE_TSC, 0, 1, 6 * RIG_HZ >> FIELD_TICK_SHIFT, 1);
        assert_near(&r, FIELD_C6, 0, 1, 6 * RIG_HZ / 100 * 99 >> FIELD_TICK_SHIFT, 1);
        assert_value(&r, FIELD_IDLE_NS, 0, 1, 6 * RIG_SECOND);
        assert_value(&r, FIELD_IDLE_TIME, 3, 1, 5950000);
        assert_value(&r, FIELD_SMI, 0, 1, 3);
        /* c1 = TSC - MPERF - c6 over all six seconds */
        assert_near(&r, FIELD_C1_SPAN, 0, 1, 6 * RIG_HZ >> FIELD_TICK_SHIFT, 8);
        assert_near(&r, FIELD_C1, 0, 1, (6 * RIG_HZ / 100 - RIG_HZ / 100) >> FIELD_TICK_SHIFT, 8);
        /* requested 5.95 of 6 s on thread 0, nothing on its sibling: the core asked for nothing */
        assert_near(&r, FIELD_DEMOTION, 0, 1, -(int64_t) (6 * RIG_HZ / 100 * 99 >> FIELD_TICK_SHIFT), 8);
        rig_deinit(&r);
}

static void test_demotion_is_requested_less_granted(void **state) {
        Rig r;

        start(&r);
        rig_wait(&r, 1);
        rig_add(&r, FIELD_IDLE_TIME, 3, 2, 900000);
        rig_add(&r, FIELD_IDLE_TIME, 3, 10, 800000); /* its sibling */
        rig_add(&r, FIELD_IDLE_TIME, 1, 10, 100000); /* C1 is no deep state */
        rig_add(&r, FIELD_C6, 0, 2, RIG_HZ / 10);
        assert_int_equal(rig_push(&r), 0);
        assert_near(&r, FIELD_DEMOTION, 0, 2, 7 * RIG_HZ / 10 >> FIELD_TICK_SHIFT, 2);
        /* the sibling sleeps through: it has no say */
        cpu_asleep(&r, 10, REASON_ASLEEP);
        rig_wait(&r, 1);
        rig_add(&r, FIELD_IDLE_TIME, 3, 2, 900000);
        rig_add(&r, FIELD_C6, 0, 2, RIG_HZ / 10 * 9);
        assert_int_equal(rig_push(&r), 0);
        assert_near(&r, FIELD_DEMOTION, 0, 2, 0, 2);
        rig_deinit(&r);
}

/* idletrace knows the sleep in progress and is asked first; a CPU it does not know is told by cpuidle. */
static void test_demotion_by_idletrace(void **state) {
        Machine *m = machine_full();
        Rig r = {};

        for (uint8_t k = 0; k < 4; k++)
                fixture_column(m, FIELD_TRACE_NS, k);
        machine_finish_layout(m);
        rig_machine(&r, m);
        for (uint8_t k = 0; k < 4; k++)
                rig_reason(&r, FIELD_TRACE_NS, k, 1, REASON_OFFLINE);
        rig_wait(&r, 1);
        assert_int_equal(rig_push(&r), SAMPLE_E_FIRST);
        rig_wait(&r, 1);
        for (uint32_t e = 0; e < 16; e++) {
                rig_add(&r, FIELD_TRACE_NS, 3, e, RIG_SECOND / 10 * 9);
                rig_add(&r, FIELD_IDLE_TIME, 3, e, 600000);
        }
        assert_int_equal(rig_push(&r), 0);
        assert_near(&r, FIELD_DEMOTION, 0, 0, 9 * RIG_HZ / 10 >> FIELD_TICK_SHIFT, 2);
        assert_near(&r, FIELD_DEMOTION, 0, 1, 6 * RIG_HZ / 10 >> FIELD_TICK_SHIFT, 2);
        rig_deinit(&r);
}

/* One counter fails for a tick: its neighbours of the same span do not notice, and it never covers a wrong time. */
static void test_error_of_one_counter(void **state) {
        Rig r;

        start(&r);
        rig_wait(&r, 1);
        rig_reason(&r, FIELD_ENERGY_PKG, 0, 0, REASON_ERROR);
        rig_add(&r, FIELD_ENERGY_RAM, 0, 0, 1000);
        rig_add(&r, FIELD_ENERGY_PKG, 0, 0, 100 * JOULE_14);
        assert_int_equal(rig_push(&r), 0);
        assert_null_for(&r, FIELD_ENERGY_PKG, 0, 0, REASON_ERROR);
        assert_value(&r, FIELD_ENERGY_RAM, 0, 0, 1000);
        assert_value(&r, FIELD_PKG_NS, 0, 0, RIG_SECOND);
        rig_reason(&r, FIELD_ENERGY_PKG, 0, 0, REASON_NONE);
        rig_wait(&r, 1);
        rig_add(&r, FIELD_ENERGY_PKG, 0, 0, 100 * JOULE_14);
        assert_int_equal(rig_push(&r), 0);
        assert_null_for(&r, FIELD_ENERGY_PKG, 0, 0, REASON_GAP);
        rig_wait(&r, 1);
        rig_add(&r, FIELD_ENERGY_PKG, 0, 0, 100 * JOULE_14);
        assert_int_equal(rig_push(&r), 0);
        assert_value(&r, FIELD_ENERGY_PKG, 0, 0, 100 * JOULE_14);
        rig_deinit(&r);
}

/* All of a package fails together with its clock: nothing is lost, the next difference covers both seconds. */
static void test_error_of_all_loses_nothing(void **state) {
        Rig r;

        start(&r);
        for (FieldId f = FIELD_PKG_NS; f <= FIELD_ENERGY_RAM; f++)
                if (layout_find(&r.m->layout, f, 0))
                        rig_reason(&r, f, 0, 0, REASON_ERROR);
        rig_wait(&r, 1);
        rig_add(&r, FIELD_ENERGY_PKG, 0, 0, 100 * JOULE_14);
        assert_int_equal(rig_push(&r), 0);
        assert_null_for(&r, FIELD_ENERGY_PKG, 0, 0, REASON_ERROR);
        memset(r.t->reasons, 0, r.t->n_values);
        rig_wait(&r, 1);
        rig_add(&r, FIELD_ENERGY_PKG, 0, 0, 100 * JOULE_14);
        assert_int_equal(rig_push(&r), 0);
        assert_value(&r, FIELD_ENERGY_PKG, 0, 0, 200 * JOULE_14);
        assert_value(&r, FIELD_PKG_NS, 0, 0, 2 * RIG_SECOND);
        rig_deinit(&r);
}

/* The clock alone fails: a reading without it is not used, and neither loses anything. */
static void test_error_of_the_span(void **state) {
        Rig r;

        start(&r);
        rig_reason(&r, FIELD_PKG_NS, 0, 0, REASON_ERROR);
        rig_wait(&r, 1);
        rig_add(&r, FIELD_ENERGY_PKG, 0, 0, 100 * JOULE_14);
        assert_int_equal(rig_push(&r), 0);
        assert_null_for(&r, FIELD_ENERGY_PKG, 0, 0, REASON_ERROR);
        rig_reason(&r, FIELD_PKG_NS, 0, 0, REASON_NONE);
        rig_wait(&r, 1);
        rig_add(&r, FIELD_ENERGY_PKG, 0, 0, 50 * JOULE_14);
        assert_int_equal(rig_push(&r), 0);
        assert_value(&r, FIELD_ENERGY_PKG, 0, 0, 150 * JOULE_14);
        assert_value(&r, FIELD_PKG_NS, 0, 0, 2 * RIG_SECOND);
        rig_deinit(&r);
}

static void test_reset_and_backwards(void **state) {
        Rig r;

        start(&r);
        rig_set(&r, FIELD_MPERF, 0, 0, RIG_HZ);
        rig_set(&r, FIELD_ENERGY_PKG, 0, 0, 3000000000);
        rig_set(&r, FIELD_C6, 0, 0, RIG_HZ / 2);
        rig_wait(&r, 1);
        assert_int_equal(rig_push(&r), 0);
        rig_wait(&r, 1);
        rig_set(&r, FIELD_MPERF, 0, 0, RIG_HZ / 1000);
        rig_set(&r, FIELD_ENERGY_PKG, 0, 0, 2900000000);
        rig_set(&r, FIELD_C6, 0, 0, 400 * RIG_HZ);
        assert_int_equal(rig_push(&r), 0);
        assert_null_for(&r, FIELD_MPERF, 0, 0, REASON_RESET);
        assert_null_for(&r, FIELD_ENERGY_PKG, 0, 0, REASON_BACKWARDS);
        assert_null_for(&r, FIELD_C6, 0, 0, REASON_OUT_OF_RANGE);
        assert_null_for(&r, FIELD_C1, 0, 0, REASON_OUT_OF_RANGE);
        rig_wait(&r, 1);
        rig_add(&r, FIELD_MPERF, 0, 0, RIG_HZ / 10);
        rig_add(&r, FIELD_ENERGY_PKG, 0, 0, 50 * JOULE_14);
        assert_int_equal(rig_push(&r), 0);
        assert_near(&r, FIELD_MPERF, 0, 0, RIG_HZ / 10 >> FIELD_TICK_SHIFT, 1);
        assert_value(&r, FIELD_ENERGY_PKG, 0, 0, 50 * JOULE_14);
        rig_deinit(&r);
}

/* Where the sampler says reset, the value is the new baseline: one interval is lost, not two. */
static void test_reset_by_the_sampler(void **state) {
        Rig r;

        start(&r);
        rig_set(&r, FIELD_IRQ, 0, 3, 1000);
        rig_wait(&r, 1);
        assert_int_equal(rig_push(&r), 0);
        rig_set(&r, FIELD_IRQ, 0, 3, 70);
        rig_reason(&r, FIELD_IRQ, 0, 3, REASON_RESET);
        rig_reason(&r, FIELD_IDLE_NS, 0, 3, REASON_RESET);
        rig_set(&r, FIELD_IDLE_TIME, 1, 3, 30000000);
        rig_reason(&r, FIELD_IDLE_TIME, 1, 3, REASON_RESET);
        rig_wait(&r, 1);
        assert_int_equal(rig_push(&r), 0);
        assert_null_for(&r, FIELD_IRQ, 0, 3, REASON_RESET);
        assert_null_for(&r, FIELD_IDLE_TIME, 1, 3, REASON_RESET);
        rig_reason(&r, FIELD_IRQ, 0, 3, REASON_NONE);
        rig_reason(&r, FIELD_IDLE_NS, 0, 3, REASON_NONE);
        rig_reason(&r, FIELD_IDLE_TIME, 1, 3, REASON_NONE);
        rig_add(&r, FIELD_IRQ, 0, 3, 5);
        rig_add(&r, FIELD_IDLE_TIME, 1, 3, 900000);
        rig_wait(&r, 1);
        assert_int_equal(rig_push(&r), 0);
        assert_value(&r, FIELD_IRQ, 0, 3, 5);
        assert_value(&r, FIELD_IDLE_TIME, 1, 3, 900000);
        assert_value(&r, FIELD_IDLE_NS, 0, 3, RIG_SECOND);
        rig_deinit(&r);
}

/* Copies the tick's values into the new machine's layout by kernel id. */
static void swap_machine(Rig *r, Machine *m) {
        Tick *old = r->t;
        Layout before = r->m->layout;
        _cleanup_(machine_freep) Machine *was = machine_copy(r->m);

        r->t = tick_new(0);
        r->t->h = old->h;
        rig_machine(r, m);
        for (size_t i = 0; i < r->m->layout.n_columns; i++) {
                const LayoutColumn *c = &r->m->layout.columns[i], *o = layout_find(&before, c->field, c->instance);
                Scope s = field_spec(c->field)->scope;

                for (uint32_t e = 0; o && e < r->m->layout.n_entities[s]; e++) {
                        uint32_t from = e;

                        if (s == SCOPE_CPU)
                                from = machine_cpu_index(was, r->m->cpus[e].id);
                        else if (s == SCOPE_CORE)
                                from = machine_core_index(was, r->m->packages[r->m->cores[e].package].package, -1,
                                        r->m->cores[e].id);
                        if (from != UINT32_MAX)
                                r->t->values[c->offset + e] = old->values[o->offset + from];
                }
        }
        tick_free(old);
}

/* CPU 5 goes at t=3, is back at t=6 with smaller counters: nothing negative, the others and the package go on. */
static void test_c13_cpu_goes_and_returns(void **state) {
        Rig r;

        start(&r);
        for (unsigned t = 1; t <= 8; t++) {
                bool there;

                if (t == 3)
                        swap_machine(&r, fixture_unplug(machine_full(), 5));
                if (t == 6) {
                        Machine *m = machine_full();

                        m->generation = 3;
                        swap_machine(&r, m);
                }
                rig_wait(&r, 1);
                there = machine_cpu_index(r.m, 5) != UINT32_MAX;
                for (uint32_t i = 0; i < r.m->n_cpus; i++)
                        rig_add(&r, FIELD_IRQ, 0, i, 10 + r.m->cpus[i].id);
                if (t == 6)
                        rig_set(&r, FIELD_IRQ, 0, machine_cpu_index(r.m, 5), 1);
                rig_add(&r, FIELD_ENERGY_PKG, 0, 1, 100 * JOULE_14);
                assert_int_equal(rig_push(&r), 0);
                assert_value(&r, FIELD_ENERGY_PKG, 0, 1, 100 * JOULE_14);
                for (uint32_t i = 0; i < r.m->n_cpus; i++) {
                        if (r.m->cpus[i].id == 5 && t == 6)
                                assert_null_for(&r, FIELD_IRQ, 0, i, REASON_FIRST);
                        else
                                assert_value(&r, FIELD_IRQ, 0, i, 10 + r.m->cpus[i].id);
                }
                assert_int_equal(there, t < 3 || t >= 6);
        }
        rig_deinit(&r);
}

static void test_offline_within_a_generation(void **state) {
        Rig r;

        start(&r);
        rig_wait(&r, 1);
        rig_reason(&r, FIELD_IRQ, 0, 5, REASON_OFFLINE);
        assert_int_equal(rig_push(&r), 0);
        assert_null_for(&r, FIELD_IRQ, 0, 5, REASON_OFFLINE);
        rig_reason(&r, FIELD_IRQ, 0, 5, REASON_NONE);
        rig_wait(&r, 1);
        assert_int_equal(rig_push(&r), 0);
        assert_null_for(&r, FIELD_IRQ, 0, 5, REASON_FIRST);
        rig_deinit(&r);
}

static void test_another_boot_starts_anew(void **state) {
        Machine *m = machine_full();
        uint32_t epoch;
        Rig r;

        start(&r);
        rig_wait(&r, 1);
        assert_int_equal(rig_push(&r), 0);
        epoch = r.s->h.epoch;
        m->boot_id[0] = 'x';
        rig_machine(&r, m);
        rig_wait(&r, 1);
        assert_int_equal(rig_push(&r), SAMPLE_E_FIRST);
        assert_int_not_equal(r.s->h.epoch, epoch);
        assert_null_for(&r, FIELD_IRQ, 0, 0, REASON_FIRST);
        rig_deinit(&r);
}

/* The driver changes: state 3 is another state now, and its counts are not the old one's. */
static void test_state_index_moves(void **state) {
        Machine *m = machine_full();
        Rig r;

        start(&r);
        rig_wait(&r, 1);
        assert_int_equal(rig_push(&r), 0);
        m->generation++;
        (void) snprintf(m->idle_sets[0].states[3].name, sizeof(m->idle_sets[0].states[3].name), "C3_ACPI");
        swap_machine(&r, m);
        rig_wait(&r, 1);
        assert_int_equal(rig_push(&r), 0);
        assert_null_for(&r, FIELD_IDLE_USAGE, 3, 0, REASON_FIRST);
        assert_value(&r, FIELD_IDLE_USAGE, 1, 0, 0);
        rig_deinit(&r);
}

static void test_bound_break(void **state) {
        Machine *m = machine_full();
        Rig r = {};

        m->cpus[1].idle_set = UINT16_MAX;
        rig_machine(&r, m);
        rig_wait(&r, 1);
        assert_int_equal(rig_push(&r), SAMPLE_E_FIRST);
        rig_wait(&r, 1);
        rig_add(&r, FIELD_IDLE_USAGE, 0, 0, 1000); /* POLL does not count */
        rig_add(&r, FIELD_IDLE_USAGE, 1, 0, 300);
        rig_add(&r, FIELD_IDLE_USAGE, 3, 0, 200);
        rig_add(&r, FIELD_IRQ, 0, 0, 180);
        rig_add(&r, FIELD_IDLE_USAGE, 1, 2, 100);
        rig_add(&r, FIELD_IRQ, 0, 2, 180);
        assert_int_equal(rig_push(&r), 0);
        assert_value(&r, FIELD_BOUND_BREAK, 0, 0, 320);
        assert_value(&r, FIELD_BOUND_BREAK, 0, 2, 0);
        assert_null_for(&r, FIELD_BOUND_BREAK, 0, 1, REASON_NOT_APPLICABLE);
        rig_deinit(&r);
}

static void test_c1_needs_every_deep_counter(void **state) {
        Machine *m = machine_full();
        Layout l;

        sample_layout(m, &l);
        assert_non_null(layout_find(&l, FIELD_C1, 0));
        m->idents[0].model = 0x3f; /* Haswell-EP has C3 and C7 too, and they are not read */
        sample_layout(m, &l);
        assert_null(layout_find(&l, FIELD_C1, 0));
        m->idents[0].model = 0xfe; /* nobody knows what it has */
        sample_layout(m, &l);
        assert_null(layout_find(&l, FIELD_C1, 0));
        fixture_column(m, FIELD_C1_RES, 0);
        machine_finish_layout(m);
        sample_layout(m, &l);
        assert_non_null(layout_find(&l, FIELD_C1, 0));
        machine_free(m);
}

static void test_c1_slightly_negative_is_nothing(void **state) {
        Rig r;

        start(&r);
        rig_wait(&r, 1);
        rig_add(&r, FIELD_C6, 0, 0, RIG_HZ / 1000 * 1005);
        rig_add(&r, FIELD_C6, 0, 1, RIG_HZ / 1000 * 1020);
        assert_int_equal(rig_push(&r), 0);
        assert_value(&r, FIELD_C1, 0, 0, 0);
        assert_null_for(&r, FIELD_C1, 0, 1, REASON_OUT_OF_RANGE);
        rig_deinit(&r);
}

/* Threads that read themselves: the core's readings are those of the one that went idle last. */
static void test_c1_where_thread_and_core_stop_at_different_times(void **state) {
        uint64_t now;
        Rig r;

        start(&r);
        rig_wait(&r, 1);
        now = r.t->h.tsc;
        rig_set(&r, FIELD_CPU_TSC, 0, 1, now - 3 * RIG_HZ / 10); /* awake for a fifth of 0.7 s */
        rig_add(&r, FIELD_MPERF, 0, 1, 7 * RIG_HZ / 50);
        rig_set(&r, FIELD_CPU_TSC, 0, 9, now - RIG_HZ / 10); /* its sibling slept */
        rig_reason(&r, FIELD_MPERF, 0, 9, REASON_ASLEEP);
        rig_add(&r, FIELD_C6, 0, 1, 6 * RIG_HZ / 10);
        assert_int_equal(rig_push(&r), 0);
        assert_near(&r, FIELD_C1_SPAN, 0, 1, RIG_HZ >> FIELD_TICK_SHIFT, 8);
        assert_near(&r, FIELD_C1, 0, 1, RIG_HZ / 5 >> FIELD_TICK_SHIFT, 8);
        assert_near(&r, FIELD_C1, 0, 9, 4 * RIG_HZ / 10 >> FIELD_TICK_SHIFT, 8);
        /* The next second makes up for the time left out: nothing is lost, nothing counted twice. */
        rig_wait(&r, 1);
        r.t->reasons[rig_slot(&r, FIELD_MPERF, 0, 9)] = REASON_NONE;
        rig_add(&r, FIELD_MPERF, 0, 1, 13 * RIG_HZ / 50);
        rig_add(&r, FIELD_C6, 0, 1, 6 * RIG_HZ / 10);
        assert_int_equal(rig_push(&r), 0);
        assert_near(&r, FIELD_CPU_TSC, 0, 1, 13 * RIG_HZ / 10 >> FIELD_TICK_SHIFT, 8);
        assert_near(&r, FIELD_C1, 0, 1, RIG_HZ / 5 >> FIELD_TICK_SHIFT, 8);
        assert_near(&r, FIELD_C1, 0, 9, 4 * RIG_HZ / 10 >> FIELD_TICK_SHIFT, 8);
        rig_deinit(&r);
}

static void test_c1_of_its_own_register(void **state) {
        Machine *m = machine_full();
        Rig r = {};

        fixture_column(m, FIELD_C1_RES, 0);
        machine_finish_layout(m);
        rig_machine(&r, m);
        rig_wait(&r, 1);
        assert_int_equal(rig_push(&r), SAMPLE_E_FIRST);
        cpu_asleep(&r, 0, REASON_ASLEEP);
        rig_reason(&r, FIELD_C1_RES, 0, 0, REASON_ASLEEP);
        rig_wait(&r, 1);
        assert_int_equal(rig_push(&r), 0);
        assert_null_for(&r, FIELD_C1, 0, 0, REASON_ASLEEP);
        memset(r.t->reasons, 0, r.t->n_values);
        rig_wait(&r, 1);
        rig_add(&r, FIELD_C1_RES, 0, 0, RIG_HZ / 2);
        assert_int_equal(rig_push(&r), 0);
        assert_near(&r, FIELD_C1, 0, 0, RIG_HZ / 2 >> FIELD_TICK_SHIFT, 1);
        assert_near(&r, FIELD_C1_SPAN, 0, 0, 2 * RIG_HZ >> FIELD_TICK_SHIFT, 4);
        rig_deinit(&r);
}

static void test_stale_and_misfit_ticks(void **state) {
        Rig r;

        start(&r);
        rig_wait(&r, 1);
        r.t->h.generation = 77;
        assert_int_equal(rig_push(&r), SAMPLE_E_STALE);
        assert_null(r.s);
        r.t->h.generation = 1;
        r.t->n_values--;
        assert_int_equal(rig_push(&r), -EBADMSG);
        r.t->n_values++;
        assert_int_equal(rig_push(&r), 0);
        r.t->reasons[0] = 200; /* no reason of ours */
        rig_wait(&r, 1);
        assert_int_equal(rig_push(&r), 0);
        assert_int_equal(r.s->reasons[0], REASON_ERROR);
        rig_deinit(&r);
}

static void test_self(void **state) {
        Rig r;

        start(&r);
        rig_wait(&r, 1);
        r.t->h.self_cpu_ns += 1500000;
        r.t->h.self_reads += 12;
        r.t->h.sample_ns = 900000;
        assert_int_equal(rig_push(&r), 0);
        assert_value(&r, FIELD_SELF_CPU_NS, 0, 0, 1500000);
        assert_value(&r, FIELD_SELF_READS, 0, 0, 12);
        assert_value(&r, FIELD_SELF_WAKEUPS, 0, 0, 0);
        assert_value(&r, FIELD_SELF_SAMPLE_NS, 0, 0, 900000);
        rig_deinit(&r);
}

/* ---- a property: over any stretch without a fence, differences add up to last - first ---- */

static uint64_t random_state;

static uint64_t random_below(uint64_t n) {
        random_state ^= random_state << 13;
        random_state ^= random_state >> 7;
        random_state ^= random_state << 17;
        return random_state % n;
}

/* A slot's stretch: its true (never wrapping) count at the stretch's first reading, and the sum since. */
typedef struct Walk {
        uint64_t true_count, first_count, first_span, span_count;
        int64_t sum, span_sum;
        bool open;
} Walk;

static void walk_check(Walk *w, const Rig *r, FieldId f, FieldId span, uint32_t e) {
        bool ticks = field_spec(f)->unit == FIELD_UNIT_TICK;
        int64_t v, sv;
        Reason reason = rig_get(r, f, 0, e, &v);
        Reason span_reason = rig_get(r, span, 0, e, &sv);
        int64_t expected;

        if (reason == REASON_FIRST || reason == REASON_GAP) {
                *w = (Walk){ .true_count = w->true_count, .first_count = w->true_count, .open = true,
                        .span_count = w->span_count, .first_span = w->span_count };
                return;
        }
        if (reason == REASON_ERROR)
                w->open = false;
        if (reason != REASON_NONE || !w->open)
                return;
        assert_int_equal(span_reason, REASON_NONE);
        w->sum += v;
        w->span_sum += sv;
        expected = ticks ? (int64_t) ((w->true_count >> FIELD_TICK_SHIFT) - (w->first_count >> FIELD_TICK_SHIFT)) :
                           (int64_t) (w->true_count - w->first_count);
        assert_int_equal(w->sum, expected);
        /* the other side of the quotient covers the very same time */
        expected = field_spec(span)->unit == FIELD_UNIT_TICK ?
                (int64_t) ((w->span_count >> FIELD_TICK_SHIFT) - (w->first_span >> FIELD_TICK_SHIFT)) :
                (int64_t) (w->span_count - w->first_span);
        assert_int_equal(w->span_sum, expected);
}

static void walk_machine(uint64_t seed) {
        Walk c6[8] = {}, pkg[2] = {};
        Rig r = {};

        random_state = seed * 2654435761u + 88172645463325252u;
        rig_machine(&r, machine_full());
        r.t->h.mono_ns = random_below(1u << 30);
        r.t->h.tsc = random_below(1u << 30);
        for (unsigned e = 0; e < 2; e++)
                pkg[e].true_count = random_below(UINT64_C(1) << 32);
        for (unsigned i = 0; i < 400; i++) {
                double dt = 0.06 + (double) random_below(2000) / 1000;
                unsigned skip = random_below(20) == 0 ? 1 + (unsigned) random_below(3) : 0;

                memset(r.t->reasons, 0, r.t->n_values);
                for (unsigned k = 0; k <= skip; k++) {
                        rig_wait(&r, dt);
                        for (unsigned e = 0; e < 8; e++)
                                c6[e].true_count += random_below((uint64_t) (dt * (double) RIG_HZ));
                        for (unsigned e = 0; e < 2; e++)
                                pkg[e].true_count += random_below((uint64_t) (dt * 500 * JOULE_14));
                }
                for (uint32_t e = 0; e < 8; e++) {
                        rig_set(&r, FIELD_C6, 0, e, c6[e].true_count);
                        if (random_below(3) == 0)
                                core_asleep(&r, e, REASON_ASLEEP);
                        else if (random_below(30) == 0)
                                core_asleep(&r, e, REASON_ERROR);
                        else if (random_below(30) == 0)
                                rig_reason(&r, FIELD_C6, 0, e, REASON_ERROR);
                        c6[e].span_count = r.t->values[rig_slot(&r, FIELD_CORE_TSC, 0, e)];
                }
                for (uint32_t e = 0; e < 2; e++) {
                        rig_set(&r, FIELD_ENERGY_PKG, 0, e, pkg[e].true_count & UINT32_MAX);
                        if (random_below(20) == 0)
                                rig_reason(&r, FIELD_ENERGY_PKG, 0, e, REASON_ERROR);
                        pkg[e].span_count = r.t->values[rig_slot(&r, FIELD_PKG_NS, 0, e)];
                }
                if (random_below(40) == 0)
                        r.t->h.boot_ns += 5 * RIG_SECOND;
                if (random_below(25) == 0) {
                        Machine *m = machine_full();

                        m->generation = r.m->generation + 1;
                        swap_machine(&r, m);
                        for (uint32_t e = 0; e < 8; e++)
                                core_asleep(&r, e, REASON_NONE);
                }
                assert_in_range(rig_push(&r), 0, SAMPLE_E_FIRST);
                for (uint32_t e = 0; e < 8; e++)
                        walk_check(&c6[e], &r, FIELD_C6, FIELD_CORE_TSC, e);
                for (uint32_t e = 0; e < 2; e++)
                        walk_check(&pkg[e], &r, FIELD_ENERGY_PKG, FIELD_PKG_NS, e);
        }
        rig_deinit(&r);
}

static void test_differences_add_up(void **state) {
        for (uint64_t seed = 1; seed <= 20; seed++)
                walk_machine(seed);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_c10_first_has_no_difference),
                cmocka_unit_test(test_c10_time_is_measured),
                cmocka_unit_test(test_c10_too_short_is_joined_to_the_next),
                cmocka_unit_test(test_c01_one_zone_wraps),
                cmocka_unit_test(test_c01_powercap_range),
                cmocka_unit_test(test_c03_range_unknown_costs_one_interval),
                cmocka_unit_test(test_c02_energy_of_a_long_run),
                cmocka_unit_test(test_c02_pause_is_a_gap),
                cmocka_unit_test(test_c02_ambiguous_for_one_counter),
                cmocka_unit_test(test_suspend_is_a_fence),
                cmocka_unit_test(test_another_sampler_is_a_fence),
                cmocka_unit_test(test_clock_step_moves_no_difference),
                cmocka_unit_test(test_dropped_frames_lose_nothing),
                cmocka_unit_test(test_asleep_spans_the_sleep),
                cmocka_unit_test(test_demotion_is_requested_less_granted),
                cmocka_unit_test(test_demotion_by_idletrace),
                cmocka_unit_test(test_error_of_one_counter),
                cmocka_unit_test(test_error_of_all_loses_nothing),
                cmocka_unit_test(test_error_of_the_span),
                cmocka_unit_test(test_reset_and_backwards),
                cmocka_unit_test(test_reset_by_the_sampler),
                cmocka_unit_test(test_c13_cpu_goes_and_returns),
                cmocka_unit_test(test_offline_within_a_generation),
                cmocka_unit_test(test_another_boot_starts_anew),
                cmocka_unit_test(test_state_index_moves),
                cmocka_unit_test(test_bound_break),
                cmocka_unit_test(test_c1_needs_every_deep_counter),
                cmocka_unit_test(test_c1_slightly_negative_is_nothing),
                cmocka_unit_test(test_c1_where_thread_and_core_stop_at_different_times),
                cmocka_unit_test(test_c1_of_its_own_register),
                cmocka_unit_test(test_stale_and_misfit_ticks),
                cmocka_unit_test(test_self),
                cmocka_unit_test(test_differences_add_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
