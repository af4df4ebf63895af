/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Differences of hardware counters: width, wrap, reset. A decrease is a wrap only where the wrapped difference is
 * plausible for the elapsed time, else the counter went backwards and there is no value.
 */

#include "cstated/field.h"

typedef struct CounterRule {
        uint64_t range;     /* modulus; 0 means 2^64 */
        uint64_t max_delta; /* the most the counter can move in the elapsed time; 0: no bound known */
} CounterRule;

/* The modulus of a counter that is `width` bits wide, or has a range of its own (range != 0). */
uint64_t counter_range(uint8_t width, uint64_t range);

/*
 * cur - prev under the rule. REASON_NONE and *ret set; else *ret is untouched: REASON_BACKWARDS where it fell and
 * cannot have wrapped, REASON_RESET where it fell to (nearly) zero, REASON_OUT_OF_RANGE where it rose implausibly or a
 * reading lies beyond the range, REASON_GAP where more than one wrap may have passed (max_delta >= range).
 */
Reason counter_delta(const CounterRule *rule, uint64_t prev, uint64_t cur, uint64_t *ret);
