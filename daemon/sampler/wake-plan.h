/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Who is read in this turn, so that measuring wakes as little as possible. Pure: activity and times in, a
 * plan out; remembers between turns who left idle and has not been read since. Shared by every source that
 * has to reach other CPUs, so that their readings agree.
 */

#include "sampler/source.h"

#define WAKE_PLAN_NONE       UINT32_MAX
#define WAKE_PLAN_MAX_AGE_NS (60ull * 1000000000ull) /* no core goes unread for longer */

typedef struct WakePlan {
        uint32_t n_cpus, n_cores, n_modules, n_packages;
        /*
         * What is read of threads, cores and modules loses nothing by waiting (temperatures): with WAKE_LOCAL whoever
         * sleeps just now is not woken for it, though it may have left idle before.
         */
        bool can_wait;

        /* this turn; indices of CPUs, or WAKE_PLAN_NONE for what is left asleep (or cannot be read at all)
         */
        bool *read_cpu;        /* by CPU: its own registers */
        uint32_t *core_reader; /* by core */
        uint32_t *module_reader;
        uint32_t *package_reader; /* never asleep: a package that sleeps whole costs one wake */
        uint32_t system_reader;

        /* between turns */
        bool *unread;           /* by CPU: left idle since its last reading */
        uint64_t *core_read_ns; /* by core, 0: never */
} WakePlan;

int wake_plan_init(WakePlan *p, const Machine *m);
void wake_plan_deinit(WakePlan *p);

/*
 * The plan of a turn. usable[cpu] is false for CPUs that must not be asked now (offline, too slow); NULL:
 * all may be. lazy (and local, for what CPUs do not read themselves): a core is read where a thread of it left
 * idle since its last reading, or before its reading gets older than WAKE_PLAN_MAX_AGE_NS, these spread over
 * 15 s. always: every core.
 */
void wake_plan_make(WakePlan *p, const SourceTurn *turn, const bool *usable);

/* It left idle since its last reading and is worth a wakeup. */
bool wake_plan_is_due(const WakePlan *p, const SourceTurn *turn, uint32_t cpu);
/* That a CPU's own registers, a core's registers were read; else they stay due. */
void wake_plan_cpu_done(WakePlan *p, uint32_t cpu);
void wake_plan_core_done(WakePlan *p, uint32_t core, uint64_t now_ns);
/* The next best reader of a package after one that failed (NONE: no other). */
uint32_t wake_plan_other_package_reader(const SourceTurn *turn, const bool *usable, uint32_t package);
