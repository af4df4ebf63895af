/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Inside of the cpuidle source: its states (cpuidle-sets.c), its counters on kept descriptors
 * (cpuidle-files.c). */

#include "cstated/field.h"

#include "model/machine.h"
#include "sampler/status.h"
#include "sampler/sysfs.h"

/*
 * Fills driver, governor, idle sets and each CPU's set; the status' detail says by whom. The number of
 * states of the longest list (0: no cpuidle), or -ENOMEM.
 */
int cpuidle_sets_discover(Sysfs *sysfs, Machine *m, SourceStatus *status);

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
        bool is_stale; /* above and below have not been read since usage moved */
} CpuidleSlot;

/*
 * Descriptors the source may keep: bounded by 4096 (the kernel holds some 4 KB for each) and 3/4 of
 * RLIMIT_NOFILE. Those of above and below get what usage and time leave.
 */
typedef struct CpuidleBudget {
        uint32_t n_kept, max;
        uint32_t n_extra, max_extra;
} CpuidleBudget;

void cpuidle_budget_init(CpuidleBudget *b, size_t n_slots);
/* True where above and below of this slot are cheap to read: kept, or may be. */
bool cpuidle_slot_has_extra(const CpuidleSlot *slot, const CpuidleBudget *b);
void cpuidle_slot_init(CpuidleSlot *slot);
void cpuidle_slot_deinit(CpuidleSlot *slot, CpuidleBudget *b);
/* Hands descriptors and values over; from is as after init then. */
void cpuidle_slot_move(CpuidleSlot *to, CpuidleBudget *b, CpuidleSlot *from, CpuidleBudget *b_from);
/*
 * One number of state `state` of CPU `cpu`: from the kept descriptor, else opened, and kept where `keep`
 * says so and the budget allows. -errno.
 */
int cpuidle_slot_read(CpuidleSlot *slot, CpuidleBudget *b, Sysfs *s, uint32_t cpu, unsigned state,
        CpuidleFile file, bool keep, uint64_t *ret);
