/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* One turn of reading the probed registers as the wake plan says, bounded in time. x86 only (local RDTSC).
 */

#include "sampler/msr-probe.h"
#include "sampler/wake-plan.h"

/* When a group of registers was read: TSC and CLOCK_MONOTONIC, half-way between the first and the last of
 * them. */
typedef struct MsrStamp {
        uint64_t tsc, ns;
        uint8_t tsc_reason, ns_reason; /* Reason */
} MsrStamp;

typedef struct MsrBackoff {
        uint64_t until_ns;
        uint8_t level;
} MsrBackoff;

typedef struct MsrSweep {
        MsrReadFn read; /* of the source: the device, or events that stand for registers */
        void *userdata;
        MsrSet set;
        WakePlan plan;
        bool invariant_tsc;

        MsrStamp *stamps[SCOPE_N]; /* by entity */
        uint32_t *thread_first;    /* by core: index into threads; n_cores + 1 of them */
        uint32_t *threads;         /* CPU indices grouped by core */
        MsrBackoff *backoff;       /* by CPU */
        bool *usable;              /* by CPU, this turn */
        bool *woken;               /* by core, this turn */
        uint32_t first_package, first_core; /* a turn begins with */

        bool has_failed; /* some register failed since the begin: slots with retry_ns set still do */
        int denied;      /* errno of a CPU that refused us in the last turn, 0: none */
} MsrSweep;

/* read, userdata and set are filled already; allocates the rest. */
int msr_sweep_init(MsrSweep *s, const Machine *m);
void msr_sweep_deinit(MsrSweep *s);
/* Plans and reads; slots and stamps then hold the turn's values and reasons. Adds to the turn's read and
 * wake counts. */
void msr_sweep_run(MsrSweep *s, SourceTurn *turn);
