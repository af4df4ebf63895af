/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Inside of the cpuidle source: its counters on kept descriptors (cpuidle-files.c) and what they mean (source-cpuidle.c). */

#include "sampler/sysfs.h"
#include "cstated/field.h"

typedef enum CpuidleFile {
        CPUIDLE_USAGE,
        CPUIDLE_TIME,
        CPUIDLE_ABOVE,
        CPUIDLE_BELOW,
        CPUIDLE_N_KEPT, /* files whose descriptor is worth keeping */
        CPUIDLE_REJECTED = CPUIDLE_N_KEPT,
        CPUIDLE_DISABLE,
} CpuidleFile;

/* The files of one CPU's one state, and what was read from them last. */
typedef struct CpuidleSlot {
        int fds[CPUIDLE_N_KEPT];
        uint64_t values[CPUIDLE_N_KEPT];
        uint64_t rejected;
} CpuidleSlot;

/* Descriptors the source may keep: bounded by 4096 (the kernel holds some 4 KB for each) and 3/4 of RLIMIT_NOFILE. */
typedef struct CpuidleBudget {
        uint32_t n_kept, max;
} CpuidleBudget;

void cpuidle_budget_init(CpuidleBudget *b);
void cpuidle_slot_init(CpuidleSlot *slot);
void cpuidle_slot_deinit(CpuidleSlot *slot, CpuidleBudget *b);
/*
 * One number of state `state` of CPU `cpu`: from the kept descriptor, else opened, and kept where `keep` says so and
 * the budget allows. -errno.
 */
int cpuidle_slot_read(CpuidleSlot *slot, CpuidleBudget *b, Sysfs *s, uint32_t cpu, unsigned state, CpuidleFile file,
        bool keep, uint64_t *ret);
