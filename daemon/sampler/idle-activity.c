/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Nobody knows better who slept than who saw one and the same sleep at both turns. A sleep that we broke ourselves by
 * reading the CPU's registers is no evidence that it woke: who counted that would ask a sleeper for ever, once it was
 * asked.
 */

#include "sampler/idle-activity.h"

#define ASKING_NS 100000 /* what answering one remote read may keep a sleeper awake */

/* It sleeps, and our own reads explain what woke it since. */
static bool only_answered_us(
        const IdleTotals *before, const IdleTotals *now, uint64_t elapsed_ns, uint32_t asked) {
        uint64_t slept_ns = now->ns - before->ns;

        return before->valid && now->entries - before->entries <= asked &&
                slept_ns + (uint64_t) asked * ASKING_NS >= elapsed_ns;
}

uint64_t idle_halted_since(const IdleSet *set, uint32_t state, uint64_t asleep_since) {
        return set && state < set->n_states && set->states[state].is_poll ? 0 : asleep_since;
}

uint8_t idle_activity(
        IdleTotals *before, const IdleTraceReading *r, uint64_t prev_ns, uint64_t now_ns, uint32_t asked) {
        IdleTotals now = { .valid = true }, was = *before;

        for (unsigned i = 0; i < IDLE_TRACE_STATES; i++) {
                now.entries += r->entries[i];
                now.ns += r->ns[i];
        }
        *before = now;
        if (!r->seen || prev_ns == 0)
                return 0;
        if (!r->asleep_since)
                return ACTIVITY_TRACE_KNOWN | ACTIVITY_TRACE;
        if (r->asleep_since > prev_ns && !only_answered_us(&was, &now, now_ns - prev_ns, asked))
                return ACTIVITY_TRACE_KNOWN | ACTIVITY_TRACE;
        return ACTIVITY_TRACE_KNOWN;
}
