/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * First the registers of packages and platform, each from the CPU that is awake most, then core by core.
 * Between CPUs the sweep looks at the clock: when its time is up, what is left becomes a gap,
 * and the next turn begins there. A CPU that took longer than SLOW_NS is left alone for a while, and what it
 * answered is dropped: nobody knows when it was true.
 *
 * A thread that slept through keeps its MPERF: that it did not move is a fact, so its span is advanced
 * without asking it. Granted residency did move, so a core's span stands still with its counters until it is
 * read again.
 */

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#include "cstated/macro.h"
#include "sampler/msr-sweep.h"

#define NS_PER_S         1000000000ull
#define SLOW_NS          (100ull * 1000000ull)
#define RETRY_NS         (30 * NS_PER_S)
#define BACKOFF_FIRST_NS (8 * NS_PER_S)
#define BACKOFF_LEVELS   3 /* 8, 16, 32, 60 s */
#define BACKOFF_MAX_NS   (60 * NS_PER_S)

/* What one turn needs at hand. */
typedef struct Turn {
        MsrSweep *s;
        SourceTurn *turn;
        const Machine *m;
        uint64_t deadline_ns;
        uint64_t tsc, ns; /* at the begin, for sleepers */
        uint32_t own_cpu; /* kernel id */
} Turn;

static uint64_t now_ns(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * NS_PER_S + (uint64_t) ts.tv_nsec;
}

static int init_threads(MsrSweep *s, const Machine *m) {
        s->thread_first = calloc(m->n_cores + 2, sizeof(uint32_t));
        s->threads = calloc(m->n_cpus + 1, sizeof(uint32_t));
        if (!s->thread_first || !s->threads)
                return -ENOMEM;
        /* Counting sort by core: after the second loop thread_first[c + 1] is where core c's threads begin.
         */
        for (uint32_t i = 0; i < m->n_cpus; i++)
                s->thread_first[m->cpus[i].core + 1]++;
        for (uint32_t c = 0, sum = 0; c <= m->n_cores; c++) {
                uint32_t n = s->thread_first[c + 1];

                s->thread_first[c + 1] = sum;
                sum += n;
        }
        for (uint32_t i = 0; i < m->n_cpus; i++)
                s->threads[s->thread_first[m->cpus[i].core + 1]++] = i;
        return 0;
}

int msr_sweep_init(MsrSweep *s, const Machine *m) {
        int r;

        for (unsigned i = 0; i < SCOPE_N; i++) {
                uint32_t n = machine_n_entities(m, (Scope) i);

                s->stamps[i] = calloc(n + 1, sizeof(MsrStamp));
                if (!s->stamps[i])
                        return -ENOMEM;
                for (uint32_t e = 0; e < n; e++)
                        s->stamps[i][e].tsc_reason = s->stamps[i][e].ns_reason = REASON_GAP;
        }
        s->backoff = calloc(m->n_cpus + 1, sizeof(MsrBackoff));
        s->usable = calloc(m->n_cpus + 1, sizeof(bool));
        s->woken = calloc(m->n_cores + 1, sizeof(bool));
        if (!s->backoff || !s->usable || !s->woken)
                return -ENOMEM;
        s->invariant_tsc = m->n_idents > 0 && m->idents[0].invariant_tsc;
        r = init_threads(s, m);
        return r < 0 ? r : wake_plan_init(&s->plan, m);
}

void msr_sweep_deinit(MsrSweep *s) {
        msr_set_deinit(&s->set);
        wake_plan_deinit(&s->plan);
        for (unsigned i = 0; i < SCOPE_N; i++)
                free(s->stamps[i]);
        free(s->thread_first);
        free(s->threads);
        free(s->backoff);
        free(s->usable);
        free(s->woken);
        *s = (MsrSweep){};
}

#define FOR_EACH_COLUMN(c, s, scope)                                                                        \
        for (MsrColumn *c = (s)->set.columns + (s)->set.first[scope];                                       \
                c < (s)->set.columns + (s)->set.first[(scope) + 1]; c++)

/* Gives an entity's slots a reason; one that failed says so until it has been read again, asleep or not. */
static void set_reason(MsrSweep *s, Scope scope, uint32_t e, Reason reason) {
        FOR_EACH_COLUMN(c, s, scope) {
                MsrSlot *slot = &c->slots[e];
                bool keep =
                        reason == REASON_ASLEEP && slot->reason != REASON_NONE && slot->reason != REASON_GAP;

                if (slot->present && !keep)
                        slot->reason = (uint8_t) reason;
        }
}

static void set_skipped(MsrSweep *s, Scope scope, uint32_t e, Reason reason) {
        set_reason(s, scope, e, reason);
        s->stamps[scope][e].tsc_reason = s->stamps[scope][e].ns_reason = (uint8_t) reason;
}

static void account(Turn *t, uint32_t cpu) {
        uint32_t core = t->m->cpus[cpu].core;

        if (t->m->cpus[cpu].id == t->own_cpu)
                return;
        t->turn->n_remote_reads++;
        t->turn->activity[cpu].asking++;
        if (!t->turn->activity[cpu].slept || t->s->woken[core])
                return;
        t->s->woken[core] = true;
        t->turn->n_wakeups++;
}

/* One register into its slot. Negative where the CPU as a whole cannot be read. */
static int read_slot(Turn *t, MsrColumn *c, uint32_t e, uint32_t cpu) {
        const MsrConvert *convert = &t->s->set.convert[t->m->cpus[cpu].package];
        MsrSlot *slot = &c->slots[e];
        uint64_t raw;
        int r;

        if (slot->retry_ns > t->ns) {
                slot->reason = REASON_ERROR;
                return 0;
        }
        account(t, cpu);
        r = t->s->read(t->s->userdata, cpu, c->r.reg, &raw);
        if (r == 0) {
                slot->retry_ns = 0;
                slot->reason = (uint8_t) msr_decode(convert, &c->r, raw, &slot->value);
                return 0;
        }
        slot->reason = (uint8_t) source_reason(-r);
        if (slot->reason == REASON_DENIED)
                t->s->denied = -r;
        if (slot->reason != REASON_ERROR)
                return r;
        t->s->has_failed = true;
        slot->retry_ns = t->ns + RETRY_NS;
        return 0;
}

/* Atom-type cores count C7 in C6 too; read in this order, the difference never falls. */
static void split_c6(Turn *t, uint32_t core) {
        MsrColumn *c6 = msr_set_find(&t->s->set, FIELD_C6), *c7 = msr_set_find(&t->s->set, FIELD_C7);

        if (!c6 || !c7 || !c6->slots[core].holds_c7 || !c7->slots[core].present)
                return;
        if (c6->slots[core].reason != REASON_NONE)
                return;
        if (c7->slots[core].reason != REASON_NONE)
                c6->slots[core].reason = c7->slots[core].reason;
        else
                c6->slots[core].value -= c7->slots[core].value;
}

static void back_off(MsrSweep *s, uint32_t cpu, uint64_t now) {
        MsrBackoff *b = &s->backoff[cpu];

        b->until_ns = now + MIN(BACKOFF_FIRST_NS << b->level, BACKOFF_MAX_NS);
        if (b->level < BACKOFF_LEVELS)
                b->level++;
}

static int read_tsc(Turn *t, uint32_t cpu, uint64_t *ret) {
        if (t->s->invariant_tsc) {
                *ret = __rdtsc();
                return 0;
        }
        account(t, cpu);
        return t->s->read(t->s->userdata, cpu, MSR_TSC, ret);
}

/* All registers of one entity, from this CPU. 0; -EAGAIN: dropped, too slow; or the error of the CPU. */
static int read_group(Turn *t, Scope scope, uint32_t e, uint32_t cpu) {
        MsrStamp *stamp = &t->s->stamps[scope][e];
        uint64_t begin_ns = now_ns(), begin_tsc = __rdtsc(), end_ns, end_tsc;
        bool any = false;
        int r;

        FOR_EACH_COLUMN(c, t->s, scope) {
                if (!c->slots[e].present)
                        continue;
                r = read_slot(t, c, e, cpu);
                if (r < 0) {
                        set_skipped(t->s, scope, e, source_reason(-r));
                        return r;
                }
                any = true;
        }
        if (!any)
                return 0;
        if (read_tsc(t, cpu, &end_tsc) < 0)
                return -EIO;
        end_ns = now_ns();
        if (end_ns - begin_ns > SLOW_NS) {
                back_off(t->s, cpu, end_ns);
                set_skipped(t->s, scope, e, REASON_GAP);
                return -EAGAIN;
        }
        t->s->backoff[cpu].level = 0;
        *stamp = (MsrStamp){
                .tsc = t->s->invariant_tsc ? begin_tsc + (end_tsc - begin_tsc) / 2 : end_tsc,
                .ns = begin_ns + (end_ns - begin_ns) / 2,
        };
        return 0;
}

static bool is_late(const Turn *t) {
        return now_ns() > t->deadline_ns;
}

#define READERS_MAX 4 /* CPUs of a package that are tried in one turn */

/* An offline reader hands over to another CPU of its package. */
static void read_package(Turn *t, uint32_t package) {
        uint32_t cpu = t->s->plan.package_reader[package], tried[READERS_MAX];
        bool has_system = cpu == t->s->plan.system_reader && cpu != WAKE_PLAN_NONE;
        unsigned n = 0;

        set_skipped(t->s, SCOPE_PACKAGE, package, REASON_GAP);
        if (is_late(t))
                return;
        while (cpu != WAKE_PLAN_NONE && n < READERS_MAX) {
                int r = read_group(t, SCOPE_PACKAGE, package, cpu);

                if (r == 0 && has_system)
                        r = read_group(t, SCOPE_SYSTEM, 0, cpu);
                if (r == 0 || r == -EAGAIN)
                        break;
                t->s->usable[cpu] = false;
                tried[n++] = cpu;
                cpu = wake_plan_other_package_reader(t->turn, t->s->usable, package);
        }
        while (n > 0) /* their own registers will say for themselves what is wrong */
                t->s->usable[tried[--n]] = true;
}

/* Nobody asked this thread: it slept, and then MPERF stood still while time went on; or it should have been
 * asked. */
static void skip_cpu(Turn *t, uint32_t cpu) {
        MsrStamp *stamp = &t->s->stamps[SCOPE_CPU][cpu];

        if (t->s->plan.unread[cpu]) {
                set_skipped(t->s, SCOPE_CPU, cpu, REASON_GAP);
                return;
        }
        set_skipped(t->s, SCOPE_CPU, cpu, REASON_ASLEEP);
        stamp->ns = t->ns;
        stamp->ns_reason = REASON_NONE;
        if (t->s->invariant_tsc) {
                stamp->tsc = t->tsc;
                stamp->tsc_reason = REASON_NONE;
        }
}

/* A thread's registers, and what it answers for; it stays due unless all of it came. */
static void read_thread(Turn *t, uint32_t cpu, uint32_t core) {
        uint32_t module = t->m->cpus[cpu].module;

        if (read_group(t, SCOPE_CPU, cpu, cpu) < 0)
                return;
        if (t->s->plan.core_reader[core] == cpu) {
                if (read_group(t, SCOPE_CORE, core, cpu) < 0)
                        return;
                split_c6(t, core);
                wake_plan_core_done(&t->s->plan, core, t->ns);
        }
        if (module < t->m->n_modules && t->s->plan.module_reader[module] == cpu)
                (void) read_group(t, SCOPE_MODULE, module, cpu);
        wake_plan_cpu_done(&t->s->plan, cpu);
}

static bool has_unread_thread(const Turn *t, uint32_t core) {
        for (uint32_t i = t->s->thread_first[core]; i < t->s->thread_first[core + 1]; i++)
                if (t->s->plan.unread[t->s->threads[i]])
                        return true;
        return false;
}

static void read_core(Turn *t, uint32_t core) {
        bool sleeps = t->s->plan.core_reader[core] == WAKE_PLAN_NONE && !has_unread_thread(t, core);

        set_skipped(t->s, SCOPE_CORE, core, sleeps ? REASON_ASLEEP : REASON_GAP);
        for (uint32_t i = t->s->thread_first[core]; i < t->s->thread_first[core + 1]; i++) {
                uint32_t cpu = t->s->threads[i];

                skip_cpu(t, cpu);
                if (t->s->plan.read_cpu[cpu] && t->s->usable[cpu] && !is_late(t))
                        read_thread(t, cpu, core);
        }
}

/* What nobody comes to read in this turn. */
static void begin_wider(Turn *t) {
        set_skipped(t->s, SCOPE_SYSTEM, 0, REASON_GAP);
        for (uint32_t i = 0; i < t->m->n_modules; i++)
                set_skipped(t->s, SCOPE_MODULE, i,
                        t->s->plan.module_reader[i] == WAKE_PLAN_NONE ? REASON_ASLEEP : REASON_GAP);
}

/* The core that a sleeping package's reader is of: it is read in the same breath, so that it wakes once. */
static uint32_t core_with_package(const Turn *t, uint32_t package) {
        uint32_t reader = t->s->plan.package_reader[package];

        if (reader == WAKE_PLAN_NONE || !t->turn->activity[reader].slept)
                return WAKE_PLAN_NONE;
        return t->m->cpus[reader].core;
}

static void sweep_packages(Turn *t) {
        for (uint32_t i = 0; i < t->m->n_packages; i++) {
                uint32_t package = (t->s->first_package + i) % t->m->n_packages;
                uint32_t core = core_with_package(t, package);

                read_package(t, package);
                if (core != WAKE_PLAN_NONE)
                        read_core(t, core);
        }
        t->s->first_package++;
}

/* A sweep that ran out of time goes on from there in the next turn. */
static void sweep_cores(Turn *t) {
        uint32_t first = t->m->n_cores > 0 ? t->s->first_core % t->m->n_cores : 0;
        bool was_late = false;

        for (uint32_t i = 0; i < t->m->n_cores; i++) {
                uint32_t core = (first + i) % t->m->n_cores;

                if (core != core_with_package(t, t->m->cores[core].package))
                        read_core(t, core);
                if (!was_late && is_late(t)) {
                        was_late = true;
                        t->s->first_core = core;
                }
        }
}

/* Half of the interval is the turn's, a quarter the sweep's at least: a first turn opens files for long. */
static uint64_t deadline(const SourceTurn *turn, uint64_t begin_ns) {
        uint64_t interval = turn->tick->h.interval_ns;

        return interval ? MAX(turn->now_ns + interval / 2, begin_ns + interval / 4) : UINT64_MAX;
}

void msr_sweep_run(MsrSweep *s, SourceTurn *turn) {
        int own = sched_getcpu();
        Turn t = {
                .s = s,
                .turn = turn,
                .m = turn->machine,
                .tsc = __rdtsc(),
                .ns = now_ns(),
                .own_cpu = own < 0 ? UINT32_MAX : (uint32_t) own,
        };

        t.deadline_ns = deadline(turn, t.ns);
        for (uint32_t i = 0; i < t.m->n_cpus; i++)
                s->usable[i] = s->backoff[i].until_ns <= t.ns;
        memset(s->woken, 0, t.m->n_cores * sizeof(bool));
        s->denied = 0;
        wake_plan_make(&s->plan, turn, s->usable);
        begin_wider(&t);
        sweep_packages(&t);
        sweep_cores(&t);
}
