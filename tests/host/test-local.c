/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters read by the CPUs themselves, with the real sources on this kernel: idletrace's programs, perf's events. A
 * virtual machine counts neither mperf nor aperf, so a /sys is shown in which the two names stand for the PMU msr's
 * tsc, and the machine is told to be a real one. Then MPERF must move exactly as the clock published beside it.
 */

#include "tests/unit/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "cstated/macro.h"
#include "sampler/source.h"
#include "sampler/topology.h"
#include "tests/host/skip.h"
#include "tests/unit/sysfs-fixture.h"

#define PMU   "sys/bus/event_source/devices/msr"
#define TURNS 50
#define INTERVAL_NS UINT64_C(200000000)

typedef struct Bed {
        Fixture fixture;
        Machine *m;
        Source *trace, *perf;
        SourceStatus trace_status, perf_status;
        Tick *tick;
        CpuActivity *activity;
        SourceTurn turn;
        uint64_t prev_ns;
} Bed;

static uint64_t now_ns(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * 1000000000 + (uint64_t) t.tv_nsec;
}

/* A /sys whose PMU msr has mperf and aperf, both of them the event tsc of this kernel's. */
static void show_events(Fixture *f) {
        _cleanup_(sysfs_freep) Sysfs *real = NULL;
        char tsc[64], possible[64];
        uint64_t type;

        assert_int_equal(sysfs_new("/", &real), 0);
        if (sysfs_read_u64(real, &type, PMU "/type") < 0 ||
                sysfs_read_line(real, tsc, sizeof(tsc), PMU "/events/tsc") < 0)
                SKIP("this kernel has no PMU msr");
        assert_true(sysfs_read_line(real, possible, sizeof(possible), "sys/devices/system/cpu/possible") >= 0);
        fixture_init(f);
        fixture_write(f, "config:0-63\n", PMU "/format/event");
        fixture_write(f, tsc, PMU "/events/mperf");
        fixture_write(f, tsc, PMU "/events/aperf");
        fixture_write(f, possible, "sys/devices/system/cpu/possible");
        (void) snprintf(tsc, sizeof(tsc), "%llu\n", (unsigned long long) type);
        fixture_write(f, tsc, PMU "/type");
}

static int setup(void **state) {
        static Bed b;
        _cleanup_(sysfs_freep) Sysfs *real = NULL;
        const LocalReads *reads;
        const char *why = NULL;

        show_events(&b.fixture);
        assert_int_equal(sysfs_new("/", &real), 0);
        assert_int_equal(topology_read(real, NULL, &b.m), 0);
        b.m->hypervisor = false;
        b.m->idents[0].invariant_tsc = true;
        assert_int_equal(source_ops_idletrace.probe(b.fixture.sysfs, b.m, 3, &b.trace, &b.trace_status), 0);
        if (b.trace_status.state != SOURCE_OK || !b.trace)
                SKIP("%s", b.trace_status.hint);
        reads = source_ops_idletrace.local(b.trace, &why);
        if (!reads)
                SKIP("%s", why);
        assert_int_equal(source_ops_perf.probe_local(b.fixture.sysfs, b.m, 4, reads, &b.perf, &b.perf_status), 0);
        if (b.perf_status.state == SOURCE_DENIED)
                SKIP("%s", b.perf_status.hint);
        assert_non_null(b.perf);
        assert_true(b.perf->is_local);
        machine_finish_layout(b.m);
        b.tick = tick_new(b.m->layout.n_values);
        b.activity = calloc(b.m->n_cpus, sizeof(*b.activity));
        assert_true(b.tick && b.activity);
        assert_int_equal(source_ops_idletrace.open(b.trace, b.m), 0);
        assert_int_equal(source_ops_perf.open(b.perf, b.m), 0);
        *state = &b;
        return 0;
}

static int teardown(void **state) {
        Bed *b = *state;

        (void) source_ops_idletrace.close(b->trace); /* in the order of the table */
        (void) source_ops_perf.close(b->perf);
        (void) tick_free(b->tick);
        free(b->activity);
        (void) machine_free(b->m);
        fixture_deinit(&b->fixture);
        return 0;
}

static void turn(Bed *b) {
        for (uint32_t i = 0; i < b->m->n_cpus; i++)
                b->activity[i] = (CpuActivity){ .asked = b->activity[i].asking };
        b->turn = (SourceTurn){
                .machine = b->m,
                .tick = b->tick,
                .activity = b->activity,
                .wake_policy = WAKE_LOCAL,
                .now_ns = now_ns(),
                .prev_ns = b->prev_ns,
        };
        b->prev_ns = b->turn.now_ns;
        assert_int_equal(source_ops_idletrace.read(b->trace, &b->turn, &b->trace_status), 0);
        for (uint32_t i = 0; i < b->m->n_cpus; i++)
                b->activity[i].slept = activity_slept(b->activity[i].evidence);
        assert_int_equal(source_ops_perf.read(b->perf, &b->turn, &b->perf_status), 0);
}

static uint64_t value(const Bed *b, FieldId f, uint32_t e) {
        return b->tick->values[layout_find(&b->m->layout, f, 0)->offset + e];
}

static uint8_t reason(const Bed *b, FieldId f, uint32_t e) {
        return b->tick->reasons[layout_find(&b->m->layout, f, 0)->offset + e];
}

static uint64_t entries(const Bed *b, uint32_t cpu) {
        uint64_t n = 0;

        for (uint8_t k = 0; k < IDLE_STATES_MAX; k++) {
                const LayoutColumn *c = layout_find(&b->m->layout, FIELD_TRACE_ENTRIES, k);

                n += c ? b->tick->values[c->offset + cpu] : 0;
        }
        return n;
}

typedef struct Seen {
        uint64_t entries, mperf, tsc;
        bool valid;
} Seen;

typedef struct Sums {
        unsigned n_idle, n_slept, n_awake; /* turns of a CPU: it went idle, slept through, neither */
        unsigned n_asked;                  /* remote reads of the third kind */
        unsigned n_pairs, n_exact;
} Sums;

/* What one turn says of one CPU. */
static void look(const Bed *b, uint32_t cpu, Seen *seen, Sums *sums) {
        Seen now = { entries(b, cpu), value(b, FIELD_MPERF, cpu), value(b, FIELD_CPU_TSC, cpu), true };
        const CpuActivity *a = &b->activity[cpu];

        if (seen->valid && now.entries > seen->entries)
                sums->n_idle++;
        else if (a->slept)
                sums->n_slept++;
        else
                sums->n_awake++;
        /* Whoever went idle in the interval has read itself; whoever sleeps is left alone. */
        if (a->slept || (seen->valid && now.entries > seen->entries))
                assert_int_equal(a->asking, 0);
        sums->n_asked += a->asking;
        if (a->asking == 0)
                assert_int_equal(reason(b, FIELD_CPU_TSC, cpu), REASON_NONE);
        if (reason(b, FIELD_MPERF, cpu) != REASON_NONE) {
                seen->entries = now.entries; /* its clock went on, MPERF stood still: no pair */
                seen->valid = false;
                return;
        }
        if (seen->valid) {
                int64_t off = (int64_t) ((now.mperf - seen->mperf) - (now.tsc - seen->tsc));

                sums->n_pairs++;
                sums->n_exact += off < (int64_t) b->m->tsc_hz / 20000 && -off < (int64_t) b->m->tsc_hz / 20000;
        }
        *seen = now;
}

/*
 * Ten seconds. The event counts the TSC, so every difference of it is that of its clock, whoever read it; a host that
 * takes our virtual CPU away between the two shows as one that is not (50 us), hence "most".
 */
static void test_live(void **state) {
        Bed *b = *state;
        Seen *seen = calloc(b->m->n_cpus, sizeof(*seen));
        uint64_t remote = 0, wakeups = 0;
        Sums sums = {};

        assert_non_null(seen);
        turn(b); /* the first one knows nobody and asks all */
        for (uint32_t i = 0; i < b->m->n_cpus; i++)
                seen[i] = (Seen){ entries(b, i), value(b, FIELD_MPERF, i), value(b, FIELD_CPU_TSC, i), true };
        for (unsigned k = 1; k < TURNS; k++) {
                struct timespec t = { .tv_nsec = (long) INTERVAL_NS };

                (void) nanosleep(&t, NULL);
                turn(b);
                for (uint32_t i = 0; i < b->m->n_cpus; i++)
                        look(b, i, &seen[i], &sums);
                remote += b->turn.n_remote_reads;
                wakeups += b->turn.n_wakeups;
        }
        free(seen);
        printf("turns of a CPU: %u went idle in, %u slept through, %u awake all the time; remote reads %llu "
               "(of the last kind: %u), wakeups caused %llu; %u of %u differences within 50 us of the clock\n",
                sums.n_idle, sums.n_slept, sums.n_awake, (unsigned long long) remote, sums.n_asked,
                (unsigned long long) wakeups, sums.n_exact, sums.n_pairs);
        assert_int_equal(remote, sums.n_asked);
        assert_int_equal(wakeups, 0);
        assert_true(sums.n_exact * 10 >= sums.n_pairs * 8);
        assert_true(sums.n_pairs > 0);
        if (sums.n_idle + sums.n_slept == 0) {
                print_message("something kept all CPUs awake: nothing was seen\n");
                skip();
        }
}

/* The machine is read anew, as after a CPU elsewhere has come: the counts of those that stayed go on. */
static void test_counts_survive_a_new_machine(void **state) {
        Bed *b = *state;
        _cleanup_(machine_freep) Machine *old = machine_copy(b->m);
        _cleanup_free_ uint64_t *before = calloc(b->m->n_cpus, sizeof(*before));
        Source *perf = NULL;
        const char *why;

        assert_true(old && before);
        turn(b);
        for (uint32_t i = 0; i < b->m->n_cpus; i++)
                before[i] = value(b, FIELD_MPERF, i);
        b->m->layout = (Layout){};
        assert_int_equal(source_ops_idletrace.reprobe(b->trace, b->m, &b->trace_status), 0);
        assert_int_equal(source_ops_perf.probe_local(b->fixture.sysfs, b->m, 4,
                                 source_ops_idletrace.local(b->trace, &why), &perf, &b->perf_status), 0);
        assert_non_null(perf);
        machine_finish_layout(b->m);
        assert_int_equal(source_ops_idletrace.open(b->trace, b->m), 0);
        source_ops_perf.adopt(perf, b->m, b->perf, old);
        (void) source_ops_perf.close(b->perf);
        b->perf = perf;
        assert_int_equal(source_ops_perf.open(perf, b->m), 0);
        for (unsigned k = 0; k < 3; k++) {
                struct timespec t = { .tv_nsec = (long) INTERVAL_NS };

                turn(b);
                for (uint32_t i = 0; i < b->m->n_cpus; i++) {
                        assert_true(value(b, FIELD_MPERF, i) >= before[i]);
                        before[i] = value(b, FIELD_MPERF, i);
                }
                (void) nanosleep(&t, NULL);
        }
}

/*
 * C1's register is a thread's, its event a core's: with two threads in a core the kernel counts the first one's for
 * both, and lets one of them read it. Then it is left out.
 */
static void test_c1_is_no_event_of_a_second_thread(void **state) {
        static const char core[] = "sys/bus/event_source/devices/cstate_core";
        static const bool smt[] = { false, true };
        Bed *b = *state;
        _cleanup_(machine_freep) Machine *m = machine_copy(b->m);
        char tsc[64], type[64];
        const char *why;

        assert_true(m && m->n_cpus >= 1);
        assert_int_equal(sysfs_read_line(b->fixture.sysfs, tsc, sizeof(tsc), PMU "/events/mperf"), 0);
        assert_int_equal(sysfs_read_line(b->fixture.sysfs, type, sizeof(type), PMU "/type"), 0);
        fixture_write(&b->fixture, "config:0-63\n", "%s/format/event", core);
        fixture_write(&b->fixture, type, "%s/type", core);
        fixture_write(&b->fixture, tsc, "%s/events/c1-residency", core);
        for (size_t k = 0; k < ARRAY_SIZE(smt); k++) {
                SourceStatus status = {};
                Source *perf = NULL;

                m->layout = (Layout){};
                m->n_cores = smt[k] ? (m->n_cpus + 1) / 2 : m->n_cpus;
                for (uint32_t i = 0; i < m->n_cpus; i++)
                        m->cpus[i].core = i % m->n_cores;
                assert_int_equal(source_ops_perf.probe_local(b->fixture.sysfs, m, 4,
                                         source_ops_idletrace.local(b->trace, &why), &perf, &status), 0);
                assert_non_null(perf);
                assert_int_equal(layout_find(&m->layout, FIELD_C1_RES, 0) != NULL, m->n_cores == m->n_cpus);
                (void) source_ops_perf.close(perf);
        }
}

/* Fewer files than CPUs: no counters of some CPUs only, but the other way for all. */
static void test_too_few_files(void **state) {
        Bed *b = *state;
        _cleanup_(machine_freep) Machine *m = machine_copy(b->m);
        SourceStatus status = {};
        struct rlimit old, few;
        Source *perf = NULL;
        const char *why;
        int next = dup(STDOUT_FILENO);

        assert_true(m && next >= 0);
        (void) close(next);
        m->layout = (Layout){};
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
        few = (struct rlimit){ (rlim_t) next + m->n_cpus + 1, old.rlim_max };
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        assert_int_equal(source_ops_perf.probe_local(b->fixture.sysfs, m, 4,
                                 source_ops_idletrace.local(b->trace, &why), &perf, &status), 0);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
        assert_null(perf);
        assert_int_equal(status.error, EMFILE);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_live),
                cmocka_unit_test(test_counts_survive_a_new_machine),
                cmocka_unit_test(test_c1_is_no_event_of_a_second_thread),
                cmocka_unit_test(test_too_few_files),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
