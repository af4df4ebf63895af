/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The BPF programs themselves, on this kernel: the sequences of the C twin through BPF_PROG_TEST_RUN (no machine at
 * hand has MWAIT idle, and `break` must be right all the same), then the real tracepoints against /proc/stat and perf.
 */

#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "sampler/idle-trace.h"
#include "tests/unit/idle-sequences.h"

#define SKIP_STATUS 77
#define TRACEFS "/sys/kernel/tracing"

static uint64_t now_ns(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * 1000000000 + (uint64_t) t.tv_nsec;
}

static void sleep_ns(uint64_t ns) {
        struct timespec t = { (time_t) (ns / 1000000000), (long) (ns % 1000000000) };

        (void) nanosleep(&t, NULL);
}

typedef struct Runner {
        IdleTrace *trace;
        uint32_t cpu;
} Runner;

static int run_event(void *userdata, const IdleEvent *e) {
        Runner *r = userdata;

        switch (e->kind) {
        case 'E':
        case 'X':
                return idle_trace_test_run(r->trace, "test_idle", r->cpu,
                        (uint64_t[]){ e->kind == 'X' ? UINT32_MAX : e->state, e->ns }, 2);
        case 'I':
                return idle_trace_test_run(r->trace, "test_interrupt", r->cpu, (uint64_t[]){ e->ns }, 1);
        case 'S':
                return idle_trace_test_run(r->trace, "test_switch", r->cpu, (uint64_t[]){ e->ns }, 1);
        default:
                /* the waker is another CPU where there is one */
                return idle_trace_test_run(r->trace, "test_store", 0, (uint64_t[]){ r->cpu, e->ns }, 2);
        }
}

static void check_sequence(const IdleSequence *q, uint32_t cpu) {
        static const uint32_t residency_us[IDLE_TRACE_STATES] = SEQUENCE_RESIDENCY_US;
        _cleanup_(idle_trace_freep) IdleTrace *trace = NULL;
        IdleTraceReading r;

        assert_int_equal(idle_trace_new(cpu + 1, true, &trace), 0);
        idle_trace_configure(trace, cpu, SEQUENCE_MWAIT_MASK, residency_us);
        assert_int_equal(idle_sequence_run(q, run_event, &(Runner){ trace, cpu }), 0);
        idle_trace_read(idle_trace_slot(trace, cpu), 0, &r);
        idle_sequence_check(q, &r);
}

/* On the last online CPU, so that the slot's index is not 0 by luck. */
static void test_sequences_in_the_kernel(void **state) {
        uint32_t cpu = (uint32_t) sysconf(_SC_NPROCESSORS_ONLN) - 1;

        for (size_t i = 0; i < N_IDLE_SEQUENCES; i++)
                check_sequence(&idle_sequences[i], cpu);
}

/* ---- the real tracepoints ---- */

static void read_stat_idle(unsigned cpu, uint64_t *ret_idle) {
        char line[512], name[16];
        FILE *f = fopen("/proc/stat", "re");

        assert_non_null(f);
        (void) snprintf(name, sizeof(name), "cpu%u ", cpu);
        while (fgets(line, sizeof(line), f))
                if (strncmp(line, name, strlen(name)) == 0) {
                        unsigned long long v[5];

                        assert_int_equal(sscanf(line + strlen(name), "%llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3], &v[4]), 5);
                        *ret_idle = v[3] + v[4];
                }
        (void) fclose(f);
}

/* Tracefs in a mount namespace of our own, where the machine has not mounted it. */
static void mount_tracefs(void) {
        if (access(TRACEFS "/events", R_OK) == 0 || unshare(CLONE_NEWNS) < 0)
                return;
        (void) mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
        (void) mount("tracefs", TRACEFS, "tracefs", 0, NULL);
}

static int tracepoint_id(const char *name) {
        char path[256];
        int id = -1;
        FILE *f;

        (void) snprintf(path, sizeof(path), TRACEFS "/events/%s/id", name);
        f = fopen(path, "re");
        if (!f)
                return -1;
        if (fscanf(f, "%d", &id) != 1)
                id = -1;
        (void) fclose(f);
        return id;
}

static int open_counter(int tracepoint, int cpu) {
        struct perf_event_attr attr = {
                .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .config = (uint64_t) tracepoint,
        };

        return (int) syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* A ring buffer of our own with power:cpu_idle on: a second witness, since perf does not count it on every CPU of every kernel. */
#define INSTANCE TRACEFS "/instances/cstated-test"

static void instance_write(const char *file, const char *text) {
        char path[256];
        FILE *f;

        (void) snprintf(path, sizeof(path), INSTANCE "/%s", file);
        f = fopen(path, "we");
        if (!f)
                return;
        (void) fputs(text, f);
        (void) fclose(f);
}

static uint64_t instance_events(unsigned cpu) {
        unsigned long long v, sum = 0;
        char path[256], line[128];
        FILE *f;

        (void) snprintf(path, sizeof(path), INSTANCE "/per_cpu/cpu%u/stats", cpu);
        f = fopen(path, "re");
        while (f && fgets(line, sizeof(line), f))
                if (sscanf(line, "entries: %llu", &v) == 1 || sscanf(line, "overrun: %llu", &v) == 1)
                        sum += v;
        if (f)
                (void) fclose(f);
        return sum;
}

#define LIVE_SECONDS 10

typedef struct LiveCpu {
        uint64_t stat_idle, ring_events;
        IdleTraceReading trace;
        uint64_t perf_events;
} LiveCpu;

static void live_read(const IdleTrace *trace, unsigned cpu, int counter, LiveCpu *ret) {
        *ret = (LiveCpu){};
        read_stat_idle(cpu, &ret->stat_idle);
        ret->ring_events = instance_events(cpu);
        idle_trace_read(idle_trace_slot(trace, cpu), now_ns(), &ret->trace);
        assert_true(ret->trace.seen);
        if (counter >= 0 && read(counter, &ret->perf_events, sizeof(uint64_t)) != sizeof(uint64_t))
                ret->perf_events = 0;
}

/* Two events an entry; a handful at the edges, and 1 %. */
static bool witness_agrees(uint64_t entries, uint64_t events) {
        double half = (double) events / 2;

        return (double) entries > 0.99 * half - 4 && (double) entries < 1.01 * half + 4;
}

/* Returns how many witnesses spoke: some kernels' perf and ftrace say nothing of cpu_idle on some CPUs. */
static unsigned live_check(unsigned cpu, const LiveCpu *a, const LiveCpu *b, double elapsed) {
        double traced = (double) (idle_totals(&b->trace).ns - idle_totals(&a->trace).ns) / 1e9;
        double stat = (double) (b->stat_idle - a->stat_idle) / (double) sysconf(_SC_CLK_TCK);
        uint64_t entries = idle_totals(&b->trace).entries - idle_totals(&a->trace).entries;
        uint64_t perf = b->perf_events - a->perf_events, ring = b->ring_events - a->ring_events;

        printf("cpu%u: idle %.3f s, /proc/stat %.2f s of %.3f s; entries %llu, perf / 2 %.1f, ring buffer / 2 %.1f\n", cpu, traced,
                stat, elapsed, (unsigned long long) entries, (double) perf / 2, (double) ring / 2);
        assert_true(traced <= elapsed * 1.01);
        assert_true(traced - stat < 0.02 * elapsed && stat - traced < 0.02 * elapsed);
        if (perf > 0)
                assert_true(witness_agrees(entries, perf));
        if (ring > 0)
                assert_true(witness_agrees(entries, ring));
        return (perf > 0) + (ring > 0);
}

/* Entries against the events that perf and a ring buffer saw (1 %), idle time against /proc/stat (2 %), over 10 s. */
static void test_live_counts(void **state) {
        _cleanup_(idle_trace_freep) IdleTrace *trace = NULL;
        unsigned n_cpus = MIN((unsigned) sysconf(_SC_NPROCESSORS_ONLN), 64u);
        LiveCpu before[64], after[64];
        unsigned n_witnesses = 0;
        uint64_t n_entries = 0;
        int counters[64], id;
        uint64_t t0, t1;

        assert_int_equal(idle_trace_new(n_cpus, false, &trace), 0);
        idle_trace_record(trace);
        id = tracepoint_id("power/cpu_idle");
        (void) mkdir(INSTANCE, 0700);
        instance_write("events/power/cpu_idle/enable", "1");
        sleep_ns(500000000);
        for (unsigned c = 0; c < n_cpus; c++) {
                counters[c] = id >= 0 ? open_counter(id, (int) c) : -1;
                live_read(trace, c, counters[c], &before[c]);
        }
        t0 = now_ns();
        sleep_ns(LIVE_SECONDS * 1000000000ULL);
        for (unsigned c = 0; c < n_cpus; c++)
                live_read(trace, c, counters[c], &after[c]);
        t1 = now_ns();
        instance_write("events/power/cpu_idle/enable", "0");
        (void) rmdir(INSTANCE);
        for (unsigned c = 0; c < n_cpus; c++) {
                n_witnesses += live_check(c, &before[c], &after[c], (double) (t1 - t0) / 1e9);
                n_entries += idle_totals(&after[c].trace).entries - idle_totals(&before[c].trace).entries;
                if (counters[c] >= 0)
                        (void) close(counters[c]);
        }
        if (n_entries == 0) { /* and /proc/stat agrees (live_check) */
                print_message("no CPU was idle within %d s: this machine is too busy\n", LIVE_SECONDS);
                skip();
        }
        if (id >= 0)
                assert_true(n_witnesses > 0);
}

static void pin(unsigned cpu) {
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        (void) sched_setaffinity(0, sizeof(set), &set);
}

#define PINGS 2000u

/* Echoes on CPU 1 until its pipe closes. */
static pid_t start_echo(int there[2], int back[2]) {
        char c;
        pid_t pid;

        assert_int_equal(pipe(there), 0);
        assert_int_equal(pipe(back), 0);
        pid = fork();
        if (pid == 0) {
                pin(1);
                (void) close(there[1]);
                while (read(there[0], &c, 1) == 1)
                        if (write(back[1], &c, 1) != 1)
                                _exit(1);
                _exit(0);
        }
        (void) close(there[0]);
        (void) close(back[1]);
        return pid;
}

/*
 * Two processes on two CPUs wake each other: each ping is one wakeup of the other's CPU. On a busy machine that CPU is
 * not always asleep; only pings that found it so count.
 */
static void test_live_ping_pong(void **state) {
        _cleanup_(idle_trace_freep) IdleTrace *trace = NULL;
        uint64_t found_asleep = 0, woken;
        IdleTraceReading before, after;
        int there[2], back[2], status;
        char c = 0;
        pid_t pid;

        if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
                skip();
        assert_int_equal(idle_trace_new(2, false, &trace), 0);
        idle_trace_record(trace);
        pid = start_echo(there, back);
        pin(0);
        idle_trace_read(idle_trace_slot(trace, 1), now_ns(), &before);
        for (unsigned i = 0; i < PINGS; i++) {
                sleep_ns(200000); /* let the other CPU fall asleep */
                idle_trace_read(idle_trace_slot(trace, 1), now_ns(), &after);
                found_asleep += after.asleep_since != 0;
                assert_int_equal(write(there[1], &c, 1), 1);
                assert_int_equal(read(back[0], &c, 1), 1);
        }
        idle_trace_read(idle_trace_slot(trace, 1), now_ns(), &after);
        (void) close(there[1]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        (void) close(back[0]);
        woken = idle_totals(&after).interrupt + idle_totals(&after).store - idle_totals(&before).interrupt -
                idle_totals(&before).store;
        printf("%u pings, %llu found cpu1 asleep; it woke %llu times\n", PINGS, (unsigned long long) found_asleep,
                (unsigned long long) woken);
        assert_true(woken * 100 >= found_asleep * 99);
        for (unsigned i = 0; i < IDLE_TRACE_STATES; i++)
                assert_true(after.brk[i] == 0); /* no MWAIT configured: no break, whatever happened */
        if (found_asleep == 0) {
                trace = idle_trace_free(trace);
                skip(); /* something keeps cpu1 awake all the time */
        }
}

/* A CPU that sleeps an interval through is shown as 100 % idle in it, not 0 % and then 200 %. */
static void test_live_long_sleep(void **state) {
        _cleanup_(idle_trace_freep) IdleTrace *trace = NULL;
        unsigned best = 0;
        IdleTraceReading a, b;

        assert_int_equal(idle_trace_new((uint32_t) sysconf(_SC_NPROCESSORS_ONLN), false, &trace), 0);
        idle_trace_record(trace);
        pin(0);
        sleep_ns(300000000);
        for (unsigned i = 0; i < 3000; i++) {
                unsigned cpu = (unsigned) sysconf(_SC_NPROCESSORS_ONLN) - 1;
                uint64_t t0 = now_ns(), t1;

                idle_trace_read(idle_trace_slot(trace, cpu), t0, &a);
                sleep_ns(1000000);
                t1 = now_ns();
                idle_trace_read(idle_trace_slot(trace, cpu), t1, &b);
                /* Slept through: the same sleep at both ends. */
                if (!a.asleep_since || a.asleep_since != b.asleep_since)
                        continue;
                best++;
                assert_true(idle_totals(&b).ns - idle_totals(&a).ns == t1 - t0);
        }
        printf("%u of 3000 intervals were slept through, each shown as 100 %%\n", best);
        if (best == 0) {
                trace = idle_trace_free(trace);
                skip(); /* something keeps that CPU awake all the time */
        }
}

/* ---- counters read by the CPU itself ---- */

static int open_tsc(unsigned cpu) {
        struct perf_event_attr attr = { .size = sizeof(attr), .config = 0 }; /* msr/tsc/ */
        FILE *f = fopen("/sys/bus/event_source/devices/msr/type", "re");
        int n;

        if (!f)
                return -1;
        n = fscanf(f, "%u", &attr.type);
        (void) fclose(f);
        return n == 1 ? (int) syscall(SYS_perf_event_open, &attr, -1, (int) cpu, -1, PERF_FLAG_FD_CLOEXEC) : -1;
}

#define TURNS 20

typedef struct LocalCheck {
        unsigned n;
        uint64_t last_ns, last_value;
        double counted[TURNS], ns[TURNS]; /* from the CPU's reading to ours */
} LocalCheck;

/* One event, read by its CPU at an idle entry and by us now: what it counted between is the time between. */
static void check_local(LocalCheck *k, const LocalReading *r, int fd) {
        uint64_t t0 = now_ns(), t1, value;

        assert_int_equal(read(fd, &value, sizeof(value)), sizeof(value));
        t1 = now_ns();
        assert_true(r->got & 1);
        assert_true(r->values[0] <= value);
        assert_true(r->ns <= t1);
        assert_true(r->ns > k->last_ns && r->values[0] > k->last_value);
        k->counted[k->n] = (double) (value - r->values[0]);
        k->ns[k->n++] = (double) (t0 + (t1 - t0) / 2 - r->ns);
        k->last_ns = r->ns;
        k->last_value = r->values[0];
}

static unsigned n_within(const LocalCheck *k, double per_ns, double ns) {
        unsigned n = 0;

        for (unsigned i = 0; i < k->n; i++)
                n += fabs(k->counted[i] / per_ns - k->ns[i]) < ns;
        return n;
}

/* At most one reading an interval, of the event's own count, by every CPU that went idle in it; none without asking. */
static void test_live_local_readings(void **state) {
        _cleanup_(idle_trace_freep) IdleTrace *trace = NULL;
        unsigned n_cpus = MIN((unsigned) sysconf(_SC_NPROCESSORS_ONLN), 8u), n_idle = 0;
        uint64_t a, b, t0, t1;
        static LocalCheck checks[8];
        double per_ns;
        IdleTraceReading before[8], after;
        LocalReading r;
        int fds[8];

        assert_int_equal(idle_trace_new(n_cpus, false, &trace), 0);
        if (idle_trace_local_error(trace) < 0 || (fds[0] = open_tsc(0)) < 0) {
                print_message("no readings at idle entry here: %d\n", idle_trace_local_error(trace));
                trace = idle_trace_free(trace);
                skip();
        }
        for (unsigned c = 0; c < n_cpus; c++) {
                sleep_ns(20000000); /* no two events count alike */
                fds[c] = c == 0 ? fds[0] : open_tsc(c);
                assert_true(fds[c] >= 0);
                assert_int_equal(idle_trace_local_event(trace, c, 0, fds[c]), 0);
                idle_trace_local_want(trace, c, &(LocalWant){ .own = 1, .core = c });
        }
        idle_trace_record(trace);
        t0 = now_ns();
        assert_int_equal(read(fds[0], &a, sizeof(a)), sizeof(a));
        sleep_ns(500000000);
        for (unsigned c = 0; c < n_cpus; c++)
                assert_false(idle_local_read(idle_trace_local_slot(trace, c), &r)); /* nobody has asked */

        for (unsigned turn = 0; turn < TURNS; turn++) {
                idle_trace_local_due(trace);
                for (unsigned c = 0; c < n_cpus; c++)
                        idle_trace_read(idle_trace_slot(trace, c), now_ns(), &before[c]);
                sleep_ns(200000000);
                for (unsigned c = 0; c < n_cpus; c++) {
                        const struct idle_local_slot *slot = idle_trace_local_slot(trace, c);

                        idle_trace_read(idle_trace_slot(trace, c), now_ns(), &after);
                        if (idle_totals(&after).entries == idle_totals(&before[c]).entries &&
                                slot->seq == 2 * checks[c].n)
                                continue;
                        n_idle++;
                        for (unsigned i = 0; slot->seq < 2 * (checks[c].n + 1) && i < 100; i++)
                                sleep_ns(1000000); /* we saw the entry before its reading */
                        assert_true(idle_local_read(slot, &r));
                        check_local(&checks[c], &r, fds[c]);
                        assert_int_equal(slot->seq, 2 * checks[c].n);
                }
        }
        /* The one clock is CLOCK_MONOTONIC, the other the event itself: its rate is taken over the whole of the test. */
        t1 = now_ns();
        assert_int_equal(read(fds[0], &b, sizeof(b)), sizeof(b));
        per_ns = (double) (b - a) / (double) (t1 - t0);
        for (unsigned c = 0; c < n_cpus; c++) {
                printf("cpu%u: %u readings in %d intervals, %u within 50 us of a remote read of the same event\n", c,
                        checks[c].n, TURNS, n_within(&checks[c], per_ns, 50000));
                /* A host that takes our virtual CPU away between clock and counter makes a reading late, hence "half";
                   another CPU's event is off by 20 ms. */
                assert_true(n_within(&checks[c], per_ns, 2e6) * 2 >= checks[c].n);
                (void) close(fds[c]);
        }
        if (n_idle == 0) {
                trace = idle_trace_free(trace);
                skip(); /* something keeps all CPUs awake */
        }
}

/* The CPU goes idle once more; the columns that it could read then. */
static uint32_t got_at_idle(IdleTrace *trace, uint32_t cpu) {
        LocalReading r;

        assert_int_equal(idle_trace_test_run(trace, "test_idle", cpu, (uint64_t[]){ UINT32_MAX, now_ns() }, 2), 0);
        assert_int_equal(idle_trace_test_run(trace, "test_idle", cpu, (uint64_t[]){ 1, now_ns() }, 2), 0);
        assert_true(idle_local_read(idle_trace_local_slot(trace, cpu), &r));
        return r.got;
}

/* An event of several CPUs is read by one at a time: the kernel adds to its count without a lock. */
static void test_one_reader_at_a_time(void **state) {
        enum { OWN = 1, CORE = 2, PACKAGE = 4 };
        uint32_t cpu = (uint32_t) sysconf(_SC_NPROCESSORS_ONLN) - 1;
        _cleanup_(idle_trace_freep) IdleTrace *trace = NULL;
        struct idle_local_slot *slot;
        int fd = open_tsc(cpu);

        assert_int_equal(idle_trace_new(cpu + 1, true, &trace), 0);
        if (idle_trace_local_error(trace) < 0 || fd < 0) {
                trace = idle_trace_free(trace);
                skip();
        }
        for (unsigned column = 0; column < 3; column++)
                assert_int_equal(idle_trace_local_event(trace, cpu, column, fd), 0);
        (void) close(fd);
        idle_trace_local_want(trace, cpu, &(LocalWant){ OWN, cpu, CORE, cpu, PACKAGE });
        slot = (struct idle_local_slot *) idle_trace_local_slot(trace, cpu);
        idle_trace_local_due(trace);
        assert_int_equal(got_at_idle(trace, cpu), OWN | CORE | PACKAGE);
        assert_int_equal(slot->core_readers + slot->package_readers, 0);
        slot->core_readers = 1; /* its sibling reads just now */
        idle_trace_local_due(trace);
        assert_int_equal(got_at_idle(trace, cpu), OWN | PACKAGE);
        slot->core_readers = 0;
        slot->package_readers = 2;
        idle_trace_local_due(trace);
        assert_int_equal(got_at_idle(trace, cpu), OWN | CORE);
        assert_int_equal(slot->core_readers, 0);
        assert_int_equal(slot->package_readers, 2);
        slot->package_readers = 0;
        idle_trace_local_due(trace); /* nobody has read the package in vain */
        assert_int_equal(got_at_idle(trace, cpu), OWN | CORE | PACKAGE);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sequences_in_the_kernel),
                cmocka_unit_test(test_live_counts),
                cmocka_unit_test(test_live_ping_pong),
                cmocka_unit_test(test_live_long_sleep),
                cmocka_unit_test(test_live_local_readings),
                cmocka_unit_test(test_one_reader_at_a_time),
        };
        IdleTrace *probe = NULL;
        int r;

        r = idle_trace_new(1, false, &probe);
        (void) idle_trace_free(probe);
        if (r < 0) {
                printf("BPF tracing is not to be had here: %s\n", strerror(-r));
                return SKIP_STATUS;
        }
        mount_tracefs();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
