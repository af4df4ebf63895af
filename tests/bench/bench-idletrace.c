/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What counting wakeups in the kernel costs: nanoseconds a hook and share of a CPU at some rates of wakeups. One process
 * pinned to the last CPU sleeps and wakes; the kernel itself counts the run time of the programs. The machine's other
 * wakeups are in the figures, hence the rate that was really seen stands in each row.
 */

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "sampler/idle-trace.h"

#define SECONDS 3

static void sleep_ns(uint64_t ns) {
        struct timespec t = { (time_t) (ns / 1000000000), (long) (ns % 1000000000) };

        (void) nanosleep(&t, NULL);
}

static uint64_t now_ns(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * 1000000000 + (uint64_t) t.tv_nsec;
}

/* Wakes a CPU `rate` times a second until it is killed. */
static pid_t start_waker(unsigned cpu, uint64_t rate) {
        pid_t pid = fork();
        cpu_set_t set;

        if (pid != 0)
                return pid;
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) prctl(PR_SET_TIMERSLACK, 1);
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        (void) sched_setaffinity(0, sizeof(set), &set);
        for (;;)
                sleep_ns(1000000000 / rate);
}

static uint64_t entries(const IdleTrace *t, uint32_t n_cpus) {
        uint64_t n = 0;

        for (uint32_t c = 0; c < n_cpus; c++) {
                IdleTraceReading r;

                idle_trace_read(idle_trace_slot(t, c), now_ns(), &r);
                for (unsigned i = 0; i < IDLE_TRACE_STATES; i++)
                        n += r.entries[i];
        }
        return n;
}

static int measure(IdleTrace *t, uint32_t n_cpus, uint64_t rate) {
        pid_t pid = rate > 0 ? start_waker(n_cpus - 1, rate) : -1;
        IdleTraceCost a, b;
        uint64_t n, t0;
        double seconds, runs;
        int r;

        sleep_ns(200000000);
        n = entries(t, n_cpus);
        t0 = now_ns();
        r = idle_trace_cost(t, &a);
        sleep_ns(SECONDS * 1000000000ULL);
        if (r >= 0)
                r = idle_trace_cost(t, &b);
        seconds = (double) (now_ns() - t0) / 1e9;
        n = entries(t, n_cpus) - n;
        if (pid > 0) {
                (void) kill(pid, SIGKILL);
                (void) waitpid(pid, NULL, 0);
        }
        if (r < 0)
                return r;
        runs = (double) (b.runs - a.runs);
        printf("%8llu asked  %8.0f idle entries/s  %9.0f hooks/s  %6.1f ns a hook  %8.4f %% of a CPU\n", (unsigned long long) rate,
                (double) n / seconds, runs / seconds, runs > 0 ? (double) (b.ns - a.ns) / runs : 0,
                100 * (double) (b.ns - a.ns) / 1e9 / seconds);
        return 0;
}

/* ---- whole wakeups, on a machine that is not idle either ---- */

#define CYCLES 50000

typedef struct Cycle {
        const char *what;
        const char *events; /* E enter, X exit, I interrupt, S task switch, W store by another CPU */
} Cycle;

static int event_run(IdleTrace *t, char event, uint64_t ns) {
        switch (event) {
        case 'E':
        case 'X':
                return idle_trace_test_run(t, "test_idle", 0, (uint64_t[]){ event == 'X' ? UINT32_MAX : 1, ns }, 2);
        case 'I':
                return idle_trace_test_run(t, "test_interrupt", 0, (uint64_t[]){ ns }, 1);
        case 'S':
                return idle_trace_test_run(t, "test_switch", 0, (uint64_t[]){ ns }, 1);
        default:
                return idle_trace_test_run(t, "test_store", 0, (uint64_t[]){ 0, ns }, 2);
        }
}

/*
 * The same bodies, run for the sequence of events that one wakeup is (BPF_PROG_TEST_RUN): this needs no CPU that is free to
 * sleep. Caches are warm and the clock is an argument, which flatters them: read it beside the live figures.
 */
static int measure_cycle(const Cycle *c) {
        static const uint64_t rates[] = { 1000, 10000, 100000 };
        _cleanup_(idle_trace_freep) IdleTrace *t = NULL;
        uint64_t now = 1000000;
        IdleTraceCost a, b;
        double ns;
        int r = idle_trace_new(1, true, &t);

        if (r >= 0)
                r = idle_trace_cost(t, &a);
        for (unsigned i = 0; i < CYCLES && r >= 0; i++)
                for (const char *e = c->events; *e && r >= 0; e++, now += 2000)
                        r = event_run(t, *e, now);
        if (r >= 0)
                r = idle_trace_cost(t, &b);
        if (r < 0)
                return r;
        ns = (double) (b.ns - a.ns) / CYCLES;
        printf("%-46s %6.1f ns a hook  %6.1f ns a wakeup ", c->what, (double) (b.ns - a.ns) / (double) (b.runs - a.runs), ns);
        for (size_t i = 0; i < ARRAY_SIZE(rates); i++)
                printf("  %.3f %%", ns * (double) rates[i] / 1e7);
        printf("\n");
        return 0;
}

static int measure_cycles(void) {
        static const Cycle cycles[] = {
                { "interrupt inside, then a task and back (HLT)", "EIXSS" },
                { "interrupt after, then a task and back (MWAIT)", "EXISS" },
                { "store, then a task and back", "EWXSS" },
                { "break: nothing at all", "EX" },
        };
        int r = 0;

        printf("one wakeup, and its share of a CPU at 1k, 10k and 100k a second\n");
        for (size_t i = 0; i < ARRAY_SIZE(cycles) && r >= 0; i++)
                r = measure_cycle(&cycles[i]);
        return r;
}

int main(void) {
        static const uint64_t rates[] = { 0, 1000, 10000, 100000 };
        uint32_t n_cpus = (uint32_t) sysconf(_SC_NPROCESSORS_ONLN);
        _cleanup_(idle_trace_freep) IdleTrace *t = NULL;
        _cleanup_close_ int stats = -1;
        int r;

        r = idle_trace_new(n_cpus, false, &t);
        if (r >= 0)
                r = stats = idle_trace_count_cost();
        if (r < 0) {
                printf("BPF tracing is not to be had here: %s\n", strerror(-r));
                return 77;
        }
        idle_trace_record(t);
        printf("wakeups counted by cause in the kernel (aim: <= 150 ns a hook; counting the run time is itself in it)\n");
        for (size_t i = 0; i < ARRAY_SIZE(rates) && r >= 0; i++)
                r = measure(t, n_cpus, rates[i]);
        if (r >= 0)
                r = measure_cycles();
        return r < 0 ? 1 : 0;
}
