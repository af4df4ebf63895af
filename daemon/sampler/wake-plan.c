/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A remote reading interrupts the CPU it asks. Counters are cumulative and stand still while their core
 * sleeps, so a sleeper need not be asked: nothing is lost but the split of its granted residency over time,
 * and that comes with the next reading. Of several threads that could answer for a core or package, the one
 * that was awake most is asked: it is the least likely to be asleep just now.
 *
 * A thread that left idle and was not read (a sweep cut short) stays due, although it may sleep by now: what
 * it did is in no other place.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/wake-plan.h"

#define SPREAD_NS (15ull * 1000000000ull)

int wake_plan_init(WakePlan *p, const Machine *m) {
        *p = (WakePlan){
                .n_cpus = m->n_cpus,
                .n_cores = m->n_cores,
                .n_modules = m->n_modules,
                .n_packages = m->n_packages,
                .read_cpu = calloc(m->n_cpus + 1, sizeof(bool)),
                .unread = calloc(m->n_cpus + 1, sizeof(bool)),
                .core_reader = calloc(m->n_cores + 1, sizeof(uint32_t)),
                .module_reader = calloc(m->n_modules + 1, sizeof(uint32_t)),
                .package_reader = calloc(m->n_packages + 1, sizeof(uint32_t)),
                .core_read_ns = calloc(m->n_cores + 1, sizeof(uint64_t)),
                .system_reader = WAKE_PLAN_NONE,
        };
        if (!p->read_cpu || !p->unread || !p->core_reader || !p->module_reader || !p->package_reader ||
                !p->core_read_ns) {
                wake_plan_deinit(p);
                return -ENOMEM;
        }
        return 0;
}

void wake_plan_deinit(WakePlan *p) {
        free(p->read_cpu);
        free(p->unread);
        free(p->core_reader);
        free(p->module_reader);
        free(p->package_reader);
        free(p->core_read_ns);
        *p = (WakePlan){};
}

static bool is_usable(const bool *usable, uint32_t cpu) {
        return !usable || usable[cpu];
}

/* True where a should answer rather than b: awake before asleep, just now before in between, then the busier one. */
static bool is_better(const SourceTurn *turn, uint32_t a, uint32_t b) {
        const CpuActivity *x, *y;

        if (b == WAKE_PLAN_NONE)
                return true;
        x = &turn->activity[a];
        y = &turn->activity[b];
        if (x->slept != y->slept)
                return !x->slept;
        if ((x->asleep_since_ns == 0) != (y->asleep_since_ns == 0))
                return x->asleep_since_ns == 0;
        return x->busy_permille > y->busy_permille;
}

static void clear(uint32_t *readers, uint32_t n) {
        for (uint32_t i = 0; i < n; i++)
                readers[i] = WAKE_PLAN_NONE;
}

/* Cores fall due at different ages, so that sleepers that went to bed together are not woken together. */
static bool is_too_old(const WakePlan *p, uint32_t core, const SourceTurn *turn) {
        uint64_t interval = turn->prev_ns && turn->now_ns > turn->prev_ns ? turn->now_ns - turn->prev_ns : 0;
        uint64_t limit = WAKE_PLAN_MAX_AGE_NS - SPREAD_NS * (core % 64) / 64;

        if (p->core_read_ns[core] == 0)
                return true;
        return turn->now_ns + interval > p->core_read_ns[core] + limit;
}

bool wake_plan_is_due(const WakePlan *p, const SourceTurn *turn, uint32_t cpu) {
        bool spared = p->can_wait && turn->wake_policy == WAKE_LOCAL && turn->activity[cpu].asleep_since_ns > 0;

        return p->unread[cpu] && !spared;
}

/* Step 1: threads that have something new; each proposes itself for its core. */
static void plan_threads(WakePlan *p, const SourceTurn *turn, const bool *usable) {
        bool all = turn->wake_policy == WAKE_ALWAYS;

        for (uint32_t i = 0; i < p->n_cpus; i++) {
                uint32_t *reader = &p->core_reader[turn->machine->cpus[i].core];

                if (!turn->activity[i].slept)
                        p->unread[i] = true;
                p->read_cpu[i] = (all || wake_plan_is_due(p, turn, i)) && is_usable(usable, i);
                if (p->read_cpu[i] && is_better(turn, i, *reader))
                        *reader = i;
        }
}

/* Step 2: cores that slept through but have not been read for too long. */
static void plan_old_cores(WakePlan *p, const SourceTurn *turn, const bool *usable) {
        for (uint32_t i = 0; i < p->n_cpus; i++) {
                uint32_t core = turn->machine->cpus[i].core;

                if (p->core_reader[core] != WAKE_PLAN_NONE || !is_usable(usable, i) ||
                        !is_too_old(p, core, turn))
                        continue;
                p->core_reader[core] = i;
                p->read_cpu[i] = true;
        }
}

/* Step 3: modules and packages; first among the CPUs that are read anyway or awake, else any one. */
static void plan_wider(WakePlan *p, const SourceTurn *turn, const bool *usable) {
        const Machine *m = turn->machine;

        for (uint32_t i = 0; i < p->n_cpus; i++) {
                uint32_t *module =
                        m->cpus[i].module < p->n_modules ? &p->module_reader[m->cpus[i].module] : NULL;
                uint32_t *package = &p->package_reader[m->cpus[i].package];

                if (p->core_reader[m->cpus[i].core] == i && module && is_better(turn, i, *module))
                        *module = i;
                if (p->read_cpu[i] && is_better(turn, i, *package))
                        *package = i;
        }
        for (uint32_t i = 0; i < p->n_packages; i++) {
                if (p->package_reader[i] == WAKE_PLAN_NONE)
                        p->package_reader[i] = wake_plan_other_package_reader(turn, usable, i);
                if (p->package_reader[i] != WAKE_PLAN_NONE &&
                        is_better(turn, p->package_reader[i], p->system_reader))
                        p->system_reader = p->package_reader[i];
        }
}

uint32_t wake_plan_other_package_reader(const SourceTurn *turn, const bool *usable, uint32_t package) {
        uint32_t best = WAKE_PLAN_NONE;

        for (uint32_t i = 0; i < turn->machine->n_cpus; i++)
                if (turn->machine->cpus[i].package == package && is_usable(usable, i) &&
                        is_better(turn, i, best))
                        best = i;
        return best;
}

void wake_plan_make(WakePlan *p, const SourceTurn *turn, const bool *usable) {
        clear(p->core_reader, p->n_cores);
        clear(p->module_reader, p->n_modules);
        clear(p->package_reader, p->n_packages);
        p->system_reader = WAKE_PLAN_NONE;

        plan_threads(p, turn, usable);
        plan_old_cores(p, turn, usable);
        plan_wider(p, turn, usable);
}

void wake_plan_cpu_done(WakePlan *p, uint32_t cpu) {
        p->unread[cpu] = false;
}

void wake_plan_core_done(WakePlan *p, uint32_t core, uint64_t now_ns) {
        p->core_read_ns[core] = now_ns;
}
