/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * First the registers of packages and platform, each from the CPU that is awake most, then core by core.
 * Between CPUs the sweep looks at the clock: when its time is up, what is left becomes a gap,
 * and the next turn begins there.
 *
 * A thread that slept through keeps its MPERF: that it did not move is a fact, so its span is advanced
 * without asking it. Granted residency did move, so a core's span stands still with its counters until it is
 * read again.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cstated/macro.h"
#include "sampler/msr-turn.h"

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

/* Of all that is narrower than a package. */
static bool has_gauges_only(const MsrSet *set) {
        for (size_t i = set->first[SCOPE_MODULE]; i < set->n_columns; i++)
                if (field_spec(set->columns[i].r.field)->kind != FIELD_GAUGE)
                        return false;
        return true;
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
        if (r == 0)
                r = wake_plan_init(&s->plan, m);
        s->plan.can_wait = has_gauges_only(&s->set);
        return r;
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

#define READERS_MAX 4 /* CPUs of a package that are tried in one turn */

/* An offline reader hands over to another CPU of its package. */
static void read_package(MsrTurn *t, uint32_t package) {
        uint32_t cpu = t->s->plan.package_reader[package], tried[READERS_MAX];
        bool has_system = cpu == t->s->plan.system_reader && cpu != WAKE_PLAN_NONE;
        unsigned n = 0;

        msr_turn_skip(t, SCOPE_PACKAGE, package, REASON_GAP);
        if (msr_turn_is_late(t))
                return;
        while (cpu != WAKE_PLAN_NONE && n < READERS_MAX) {
                int r = msr_turn_read_group(t, SCOPE_PACKAGE, package, cpu);

                if (r == 0 && has_system)
                        r = msr_turn_read_group(t, SCOPE_SYSTEM, 0, cpu);
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
static void skip_cpu(MsrTurn *t, uint32_t cpu) {
        MsrStamp *stamp = &t->s->stamps[SCOPE_CPU][cpu];

        if (wake_plan_is_due(&t->s->plan, t->turn, cpu)) {
                msr_turn_skip(t, SCOPE_CPU, cpu, REASON_GAP);
                return;
        }
        msr_turn_skip(t, SCOPE_CPU, cpu, REASON_ASLEEP);
        stamp->ns = t->ns;
        stamp->ns_reason = REASON_NONE;
        if (t->s->invariant_tsc) {
                stamp->tsc = t->tsc;
                stamp->tsc_reason = REASON_NONE;
        }
}

/* A thread's registers, and what it answers for; it stays due unless all of it came. */
static void read_thread(MsrTurn *t, uint32_t cpu, uint32_t core) {
        uint32_t module = t->m->cpus[cpu].module;

        if (msr_turn_read_group(t, SCOPE_CPU, cpu, cpu) < 0)
                return;
        if (t->s->plan.core_reader[core] == cpu) {
                if (msr_turn_read_group(t, SCOPE_CORE, core, cpu) < 0)
                        return;
                msr_turn_split_c6(t, core);
                wake_plan_core_done(&t->s->plan, core, t->ns);
        }
        if (module < t->m->n_modules && t->s->plan.module_reader[module] == cpu)
                (void) msr_turn_read_group(t, SCOPE_MODULE, module, cpu);
        wake_plan_cpu_done(&t->s->plan, cpu);
}

static bool has_due_thread(const MsrTurn *t, uint32_t core) {
        for (uint32_t i = t->s->thread_first[core]; i < t->s->thread_first[core + 1]; i++)
                if (wake_plan_is_due(&t->s->plan, t->turn, t->s->threads[i]))
                        return true;
        return false;
}

static void read_core(MsrTurn *t, uint32_t core) {
        bool sleeps = t->s->plan.core_reader[core] == WAKE_PLAN_NONE && !has_due_thread(t, core);

        msr_turn_skip(t, SCOPE_CORE, core, sleeps ? REASON_ASLEEP : REASON_GAP);
        for (uint32_t i = t->s->thread_first[core]; i < t->s->thread_first[core + 1]; i++) {
                uint32_t cpu = t->s->threads[i];

                skip_cpu(t, cpu);
                if (t->s->plan.read_cpu[cpu] && t->s->usable[cpu] && !msr_turn_is_late(t))
                        read_thread(t, cpu, core);
        }
}

/* What nobody comes to read in this turn. */
static void begin_wider(MsrTurn *t) {
        msr_turn_skip(t, SCOPE_SYSTEM, 0, REASON_GAP);
        for (uint32_t i = 0; i < t->m->n_modules; i++)
                msr_turn_skip(t, SCOPE_MODULE, i,
                        t->s->plan.module_reader[i] == WAKE_PLAN_NONE ? REASON_ASLEEP : REASON_GAP);
}

/* The core that a sleeping package's reader is of: it is read in the same breath, so that it wakes once. */
static uint32_t core_with_package(const MsrTurn *t, uint32_t package) {
        uint32_t reader = t->s->plan.package_reader[package];

        if (reader == WAKE_PLAN_NONE || !t->turn->activity[reader].slept)
                return WAKE_PLAN_NONE;
        return t->m->cpus[reader].core;
}

static void sweep_packages(MsrTurn *t) {
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
static void sweep_cores(MsrTurn *t) {
        uint32_t first = t->m->n_cores > 0 ? t->s->first_core % t->m->n_cores : 0;
        bool was_late = false;

        for (uint32_t i = 0; i < t->m->n_cores; i++) {
                uint32_t core = (first + i) % t->m->n_cores;

                if (core != core_with_package(t, t->m->cores[core].package))
                        read_core(t, core);
                if (!was_late && msr_turn_is_late(t)) {
                        was_late = true;
                        t->s->first_core = core;
                }
        }
}

void msr_sweep_run(MsrSweep *s, SourceTurn *turn) {
        MsrTurn t;

        msr_turn_begin(&t, s, turn);
        wake_plan_make(&s->plan, turn, s->usable);
        begin_wider(&t);
        sweep_packages(&t);
        sweep_cores(&t);
}
