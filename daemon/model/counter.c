/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One difference of one counter. Without a bound a full-width counter never wraps and a narrow one is believed to have
 * wrapped when less than half its range went by; with a bound (the most the elapsed time allows) it is believed up to
 * there. Where the bound reaches the range the number of wraps cannot be known, whatever the two readings say.
 */

#include "model/counter.h"

/* A counter without a bound that stands below this part of where it was has been reset. */
#define RESET_SHIFT 6

uint64_t counter_range(uint8_t width, uint64_t range) {
        if (range != 0)
                return range;
        return width >= 64 ? 0 : UINT64_C(1) << width;
}

static bool plausible(const CounterRule *rule, uint64_t delta) {
        if (rule->max_delta != 0)
                return delta <= rule->max_delta;
        return rule->range == 0 || delta < rule->range / 2;
}

Reason counter_delta(const CounterRule *rule, uint64_t prev, uint64_t cur, uint64_t *ret) {
        uint64_t delta;

        if (rule->range != 0 && (prev >= rule->range || cur >= rule->range))
                return REASON_OUT_OF_RANGE;
        if (rule->range != 0 && rule->max_delta >= rule->range)
                return REASON_GAP;
        if (cur >= prev) {
                delta = cur - prev;
                if (!plausible(rule, delta))
                        return REASON_OUT_OF_RANGE;
                *ret = delta;
                return REASON_NONE;
        }
        delta = cur + rule->range - prev; /* range 0: modulo 2^64, as unsigned arithmetic has it */
        if (rule->range != 0 && plausible(rule, delta)) {
                *ret = delta;
                return REASON_NONE;
        }
        if (rule->max_delta != 0 ? cur <= rule->max_delta : cur <= prev >> RESET_SHIFT)
                return REASON_RESET;
        return REASON_BACKWARDS;
}
