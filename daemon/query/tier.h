/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Raw ticks, minutes or hours: what answers a query exactly where that is affordable, else what is close and
 * cheap.
 */

#include "query/query.h"

typedef struct TierChoice {
        StoreTier tier;
        bool answers[3]; /* whether a tier's rows are short enough for the step and reach back as far */
} TierChoice;

int tier_choose(StoreReader *r, const QuerySpec *spec, TierChoice *ret);
/*
 * The tier to take, now that the length of a tick is known (0: it is not): the chosen one, or the finest that can be
 * afforded where that one cannot, or the cheapest. n_slots: values the query adds up of each tick; spread: rows are
 * read with theirs.
 */
StoreTier tier_affordable(
        const TierChoice *c, const QuerySpec *spec, size_t n_slots, bool spread, uint64_t tick_us);
/* Length of a tier's rows, 0 of ticks. */
uint64_t tier_length_us(StoreTier tier);
/* Usual length of the block's ticks: the median. */
uint64_t tier_tick_us(const StoreBlock *b);
/* QUERY_E_TOO_MANY with the error filled where the answer would have too many points or bytes. */
int tier_check_size(StoreReader *r, const QuerySpec *spec, const QueryInfo *info, size_t n_series,
        uint64_t tick_us, QueryError *error);
