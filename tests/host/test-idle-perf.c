/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Idle entries by perf on this kernel, on a machine without cpuidle made of files: against what BPF counts, and left
 * alone while they sleep.
 */

#include "tests/unit/test.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#include "sampler/idle-perf.h"
#if HAVE_BPF
#include "sampler/idle-trace.h"
#endif
#include "tests/unit/machine-fixture.h"
#include "tests/unit/sysfs-fixture.h"

#define SKIP_STATUS 77
#define TRACEFS "/sys/kernel/tracing"
#define ID "sys/kernel/tracing/events/power/cpu_idle/id"
#define SECOND 1000000000ULL

static char tracepoint[32]; /* power:cpu_idle on this kernel, "" none */

/* In a mount namespace of our own, where the machine has not mounted it. */
static void tracepoint_find(void) {
        FILE *f;

        if (access(TRACEFS "/events", R_OK) < 0 && unshare(CLONE_NEWNS) == 0) {
                (void) mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
                (void) mount("tracefs", TRACEFS, "tracefs", 0, NULL);
        }
        f = fopen(TRACEFS "/events/power/cpu_idle/id", "re");
        if (f && !fgets(tracepoint, sizeof(tracepoint), f))
                tracepoint[0] = '\0';
        if (f)
                (void) fclose(f);
}

static uint64_t now_ns(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * SECOND + (uint64_t) t.tv_nsec;
}

typedef struct Bed {
        Fixture fixture;
        Machine *machine;
        IdlePerf *perf;
        SourceStatus status;
        Tick *tick;
        CpuActivity activity[1];
        SourceTurn turn;
} Bed;

/* One CPU (0), no idle driver. */
static void bed_start(Bed *b, const char *id) {
        memset(b, 0, sizeof(*b));
        fixture_init(&b->fixture);
        if (id)
                fixture_write(&b->fixture, id, ID);
        b->machine = fixture_machine(1, 1, 1);
        b->machine->n_idle_sets = 0;
        b->machine->cpus[0].idle_set = UINT16_MAX;
}

static void bed_stop(Bed *b) {
        (void) idle_perf_free(b->perf);
        (void) machine_free(b->machine);
        (void) tick_free(b->tick);
        fixture_deinit(&b->fixture);
}

static void bed_open(Bed *b) {
        assert_int_equal(idle_perf_new(b->fixture.sysfs, b->machine, 3, &b->status, &b->perf), 0);
        assert_non_null(b->perf);
        assert_int_equal(b->status.n_counters, 2);
        assert_string_equal(b->machine->idle_sets[0].states[1].name, "IDLE");
        layout_finish(&b->machine->layout);
        assert_int_equal(idle_perf_open(b->perf, b->machine), 0);
        b->tick = tick_new(b->machine->layout.n_values);
}

static void bed_turn(Bed *b, bool slept) {
        b->activity[0] = (CpuActivity){ .slept = slept };
        b->turn = (SourceTurn){ .machine = b->machine, .tick = b->tick, .activity = b->activity,
                .wake_policy = WAKE_LAZY, .now_ns = now_ns(), .prev_ns = b->turn.now_ns };
        idle_perf_read(b->perf, &b->turn);
}

static Reason entries(const Bed *b, uint8_t state, uint64_t *ret) {
        const LayoutColumn *c = layout_find(&b->machine->layout, FIELD_TRACE_ENTRIES, state);

        assert_non_null(c);
        *ret = b->tick->values[c->offset];
        return (Reason) b->tick->reasons[c->offset];
}

static void test_not_where_cpuidle_counts(void **state) {
        Bed b;

        bed_start(&b, tracepoint);
        fixture_write(&b.fixture, "0\n", "sys/devices/system/cpu/cpu0/cpuidle/state0/usage");
        assert_int_equal(idle_perf_new(b.fixture.sysfs, b.machine, 3, &b.status, &b.perf), 0);
        assert_null(b.perf);
        assert_int_equal(b.machine->n_idle_sets, 0);
        assert_int_equal(b.machine->layout.n_columns, 0);
        bed_stop(&b);
}

static void test_not_without_tracefs(void **state) {
        Bed b;

        bed_start(&b, NULL);
        assert_int_equal(idle_perf_new(b.fixture.sysfs, b.machine, 3, &b.status, &b.perf), 0);
        assert_null(b.perf);
        bed_stop(&b);
        bed_start(&b, "4000000000\n"); /* no such tracepoint */
        assert_int_equal(idle_perf_new(b.fixture.sysfs, b.machine, 3, &b.status, &b.perf), 0);
        assert_null(b.perf);
        bed_stop(&b);
}

/* A sleeper is not asked and its count is not lost; awake again it is. */
static void test_left_asleep(void **state) {
        uint64_t first, value;
        Bed b;

        bed_start(&b, tracepoint);
        bed_open(&b);
        bed_turn(&b, false);
        assert_int_equal(entries(&b, 1, &first), REASON_NONE);
        assert_int_equal(b.turn.n_remote_reads, 1);
        assert_int_equal(b.activity[0].asking, 1);
        for (int i = 0; i < 3; i++) {
                bed_turn(&b, true);
                assert_int_equal(entries(&b, 1, &value), REASON_ASLEEP);
                assert_true(value == first);
                assert_int_equal(b.turn.n_remote_reads, 0);
                assert_int_equal(b.turn.n_wakeups, 0);
                assert_int_equal(b.activity[0].asking, 0);
        }
        bed_turn(&b, false);
        assert_int_equal(entries(&b, 1, &value), REASON_NONE);
        assert_true(value >= first);
        bed_stop(&b);
}

static void test_new_machine_keeps_counting(void **state) {
        uint64_t first, value;
        Bed b;

        bed_start(&b, tracepoint);
        bed_open(&b);
        (void) usleep(200000);
        bed_turn(&b, false);
        assert_int_equal(entries(&b, 1, &first), REASON_NONE);
        assert_int_equal(idle_perf_open(b.perf, b.machine), 0);
        bed_turn(&b, false);
        assert_int_equal(entries(&b, 1, &value), REASON_NONE);
        assert_true(value >= first);
        bed_stop(&b);
}

#if HAVE_BPF
static uint64_t traced(const IdleTrace *t, unsigned state) {
        IdleTraceReading r;

        idle_trace_read(idle_trace_slot(t, 0), now_ns(), &r);
        return r.entries[state];
}

/* perf and BPF see the same entries of state 1 on CPU 0 (some kernels' perf sees none elsewhere). */
static void test_same_as_bpf(void **state) {
        _cleanup_(idle_trace_freep) IdleTrace *trace = NULL;
        uint64_t perf_before, perf, bpf_before, bpf;
        cpu_set_t other, all;
        Bed b;

        if (idle_trace_new(1, false, &trace) < 0)
                skip();
        idle_trace_record(trace);
        bed_start(&b, tracepoint);
        bed_open(&b);
        assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
        CPU_ZERO(&other);
        CPU_SET((size_t) sysconf(_SC_NPROCESSORS_ONLN) - 1, &other);
        (void) sched_setaffinity(0, sizeof(other), &other);
        (void) usleep(300000);
        bpf_before = traced(trace, 1);
        bed_turn(&b, false);
        assert_int_equal(entries(&b, 1, &perf_before), REASON_NONE);
        (void) usleep(4000000);
        bpf = traced(trace, 1) - bpf_before;
        bed_turn(&b, false);
        assert_int_equal(entries(&b, 1, &perf), REASON_NONE);
        perf -= perf_before;
        (void) sched_setaffinity(0, sizeof(all), &all);
        printf("cpu0 in 4 s: perf %llu entries of state 1, BPF %llu\n", (unsigned long long) perf,
                (unsigned long long) bpf);
        bed_stop(&b);
        if (bpf == 0) {
                trace = idle_trace_free(trace);
                skip(); /* something keeps cpu0 awake */
        }
        assert_true((double) perf > 0.99 * (double) bpf - 4 && (double) perf < 1.01 * (double) bpf + 4);
}
#endif

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_not_where_cpuidle_counts),
                cmocka_unit_test(test_not_without_tracefs),
                cmocka_unit_test(test_left_asleep),
                cmocka_unit_test(test_new_machine_keeps_counting),
#if HAVE_BPF
                cmocka_unit_test(test_same_as_bpf),
#endif
        };
        Bed b;
        bool can;

        tracepoint_find();
        if (!tracepoint[0]) {
                printf("no tracefs here: no power:cpu_idle for perf\n");
                return SKIP_STATUS;
        }
        bed_start(&b, tracepoint);
        can = idle_perf_new(b.fixture.sysfs, b.machine, 3, &b.status, &b.perf) == 0 && b.perf;
        bed_stop(&b);
        if (!can) {
                printf("perf may not count tracepoints here\n");
                return SKIP_STATUS;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
