/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* One turn over the registers of a MsrSweep: what every order of reading them needs (msr-sweep.c, local-sweep.c). */

#include "sampler/msr-sweep.h"

/* What one turn needs at hand. */
typedef struct MsrTurn {
        MsrSweep *s;
        SourceTurn *turn;
        const Machine *m;
        uint64_t deadline_ns;
        uint64_t tsc, ns; /* at the begin, for sleepers */
        uint32_t own_cpu; /* kernel id */
} MsrTurn;

#define MSR_FOR_EACH_COLUMN(c, s, scope)                                                                    \
        for (MsrColumn *c = (s)->set.columns + (s)->set.first[scope];                                       \
                c < (s)->set.columns + (s)->set.first[(scope) + 1]; c++)

/* Takes the time, and says which CPUs may be asked. */
void msr_turn_begin(MsrTurn *t, MsrSweep *s, SourceTurn *turn);
/* The turn's time is up: what is not read yet becomes a gap. */
bool msr_turn_is_late(const MsrTurn *t);
/* Slots and stamp of an entity that nobody asks. */
void msr_turn_skip(MsrTurn *t, Scope scope, uint32_t e, Reason reason);
/* One register into its slot. Negative where the CPU as a whole cannot be read. */
int msr_turn_read_slot(MsrTurn *t, MsrColumn *c, uint32_t e, uint32_t cpu);
/* All registers of one entity, from this CPU. 0; -EAGAIN: dropped, too slow; or the error of the CPU. */
int msr_turn_read_group(MsrTurn *t, Scope scope, uint32_t e, uint32_t cpu);
/* Atom-type cores count C7 in C6 too; read in this order, the difference never falls. */
void msr_turn_split_c6(MsrTurn *t, uint32_t core);
