/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A turn over the registers of a MsrSweep where CPUs read them themselves as they go idle (WAKE_LOCAL): readings are
 * merged into slots and stamps, and only who is awake, or was not heard of for a minute, is asked. x86 only.
 */

#include "sampler/local-reads.h"
#include "sampler/msr-sweep.h"

/* What there is to know of a package, core, CPU, ... between turns. */
typedef struct LocalEntity {
        uint32_t cpu;     /* index of the CPU whose events these are: the one a remote read goes to */
        uint32_t columns; /* registers it has, as bits of a reading */
        uint32_t needed;  /* those without which a reading is none: all but C1, a count of its own that may be late */
        uint64_t read_ns; /* time of the last reading, whoever made it; 0: none */
        uint32_t got;     /* columns that a CPU has ever read by itself */
        bool moved;       /* one of its CPUs left idle since that reading */
} LocalEntity;

typedef struct LocalSweep {
        const LocalReads *reads;
        uint32_t first_reg; /* column of a register: reg - first_reg, the bit in LocalReading.got */

        LocalEntity *entities[SCOPE_N];
        uint32_t *newest[SCOPE_N];   /* by entity, this turn: the CPU whose reading is the newest, UINT32_MAX: none */
        LocalReading *readings;      /* by CPU */
        uint64_t *heard_ns;          /* by CPU: its reading before this turn's */
        uint64_t *heard_running;
        bool *alive;                 /* by CPU: that time has been seen to go on */
        uint64_t *covered_ns;        /* by CPU: its stamp stands for all up to here */
        bool *asked;                 /* by CPU: read remotely in this turn, so it is awake */
        uint64_t prev_tsc, prev_ns;  /* a pair of the turn before, to turn ns into TSC */
        uint64_t opened_ns;          /* readings from before are of other events */
        bool has_dead;               /* events that do not count any more: open them anew */
} LocalSweep;

/* s->set and the machine's entities are final. cpu_of says on which CPU an entity's events were opened. -ENOMEM. */
int local_sweep_init(LocalSweep *l, MsrSweep *s, const Machine *m, const LocalReads *reads, uint32_t first_reg,
        uint32_t (*cpu_of)(void *userdata, Scope scope, uint32_t e), void *userdata);
void local_sweep_deinit(LocalSweep *l);
/* Events go on in a new machine: what was heard of its CPUs still holds. */
void local_sweep_adopt(LocalSweep *l, const Machine *m, const LocalSweep *old, const Machine *m_old);
/* As msr_sweep_run(): slots and stamps then hold the turn's values and reasons. */
void local_sweep_run(LocalSweep *l, MsrSweep *s, SourceTurn *turn);
