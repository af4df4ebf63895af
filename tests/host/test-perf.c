/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The perf source on this kernel's PMU `msr`. A virtual machine has no other PMU of ours and the source
 * would rightly stay out of it, so the machine is told to be a real one: what is tested is the way from an
 * event to a column.
 */

#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cstated/macro.h"
#include "sampler/perf-event.h"
#include "sampler/source.h"
#include "sampler/topology.h"
#include "tests/host/skip.h"

typedef struct Bed {
        Sysfs *sysfs;
        Machine *m;
        Source *source;
        SourceStatus status;
        Tick *tick;
        CpuActivity *activity;
} Bed;

static int setup(void **state) {
        static Bed b;
        const PerfEventName smi = { FIELD_SMI, "msr", "smi" };
        PerfEvent e;

        assert_int_equal(sysfs_new("/", &b.sysfs), 0);
        assert_int_equal(topology_read(b.sysfs, NULL, &b.m), 0);
        if (perf_event_describe(b.sysfs, &smi, &e) < 0)
                SKIP("this kernel's PMU msr has no event smi");
        if (sysfs_exists(b.sysfs, "dev/cpu/%u/msr", b.m->cpus[0].id))
                SKIP("the MSR device is there, so perf is not wanted");
        b.m->hypervisor = false;
        b.m->idents[0].invariant_tsc = true;
        assert_int_equal(source_ops_perf.probe(b.sysfs, b.m, 4, &b.source, &b.status), 0);
        if (b.status.state == SOURCE_DENIED)
                SKIP("%s", b.status.hint);
        assert_int_equal(b.status.state, SOURCE_OK);
        assert_non_null(b.source);
        layout_finish(&b.m->layout);
        b.tick = tick_new(b.m->layout.n_values);
        b.activity = calloc(b.m->n_cpus, sizeof(*b.activity));
        assert_true(b.tick && b.activity);
        assert_int_equal(source_ops_perf.open(b.source, b.m), 0);
        *state = &b;
        return 0;
}

static int teardown(void **state) {
        Bed *b = *state;

        (void) source_ops_perf.close(b->source);
        (void) tick_free(b->tick);
        free(b->activity);
        (void) machine_free(b->m);
        (void) sysfs_free(b->sysfs);
        return 0;
}

static void turn(Bed *b, uint64_t now_ns, uint64_t prev_ns) {
        SourceTurn t = {
                .machine = b->m,
                .tick = b->tick,
                .activity = b->activity,
                .wake_policy = WAKE_ALWAYS,
                .now_ns = now_ns,
                .prev_ns = prev_ns,
        };

        assert_int_equal(source_ops_perf.read(b->source, &t, &b->status), 0);
}

static void test_every_cpu_has_a_value_and_its_clocks(void **state) {
        Bed *b = *state;
        const LayoutColumn *smi = layout_find(&b->m->layout, FIELD_SMI, 0);
        const LayoutColumn *tsc = layout_find(&b->m->layout, FIELD_CPU_TSC, 0);
        _cleanup_free_ uint64_t *before = NULL;

        assert_true(smi && tsc && layout_find(&b->m->layout, FIELD_CPU_NS, 0));
        assert_int_equal(smi->width, 64);
        assert_int_equal(smi->source, 4);
        turn(b, 1, 0);
        before = calloc(b->m->n_cpus, sizeof(*before));
        assert_non_null(before);
        for (uint32_t i = 0; i < b->m->n_cpus; i++)
                before[i] = b->tick->values[tsc->offset + i];
        turn(b, 2, 1);
        for (uint32_t i = 0; i < b->m->n_cpus; i++) {
                assert_int_equal(b->tick->reasons[smi->offset + i], REASON_NONE);
                assert_int_equal(b->tick->reasons[tsc->offset + i], REASON_NONE);
                assert_true(b->tick->values[tsc->offset + i] > before[i]);
        }
}

static size_t n_wide_columns(const Layout *l) {
        size_t n = 0;

        for (size_t i = 0; i < l->n_columns; i++)
                n += field_spec(l->columns[i].field)->scope <= SCOPE_PACKAGE;
        return n;
}

static void test_sleepers_are_left_alone(void **state) {
        Bed *b = *state;
        const LayoutColumn *smi = layout_find(&b->m->layout, FIELD_SMI, 0);

        for (uint32_t i = 0; i < b->m->n_cpus; i++)
                b->activity[i] = (CpuActivity){ .slept = true };
        SourceTurn t = { .machine = b->m,
                .tick = b->tick,
                .activity = b->activity,
                .wake_policy = WAKE_LAZY,
                .now_ns = 3,
                .prev_ns = 2 };

        assert_int_equal(source_ops_perf.read(b->source, &t, &b->status), 0);
        /* A package that sleeps whole costs one wake, for its own counters and the system's, where there are any. */
        assert_true(t.n_wakeups <= b->m->n_packages);
        assert_true(t.n_remote_reads <= n_wide_columns(&b->m->layout) * b->m->n_packages);
        for (uint32_t i = 0; i < b->m->n_cpus; i++)
                assert_int_equal(b->tick->reasons[smi->offset + i], REASON_ASLEEP);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_cpu_has_a_value_and_its_clocks),
                cmocka_unit_test(test_sleepers_are_left_alone),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
