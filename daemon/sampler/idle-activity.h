/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* From readings of a CPU's slot to whether it slept through, as the sources that would wake it want to know. Pure. */

#include "sampler/idle-trace.h"
#include "sampler/source.h"

/* Of a CPU at the turn before, all states together. */
typedef struct IdleTotals {
        uint64_t entries, ns;
        bool valid;
} IdleTotals;

/*
 * The sleep in progress in a state of the set, 0: none. POLL is none to the counters of a CPU: MPERF goes on in it, and
 * with idle=poll it may last longer than an interval.
 */
uint64_t idle_halted_since(const IdleSet *set, uint32_t state, uint64_t asleep_since);

/*
 * ACTIVITY_TRACE_KNOWN, and ACTIVITY_TRACE where the CPU was awake between the turns at prev_ns (0: none) and now_ns;
 * 0 where nothing is known. asked: our own remote reads of it in the turn at prev_ns, each of which may have broken its
 * sleep once and for a moment. *before is brought up to date.
 */
uint8_t idle_activity(
        IdleTotals *before, const IdleTraceReading *r, uint64_t prev_ns, uint64_t now_ns, uint32_t asked);
