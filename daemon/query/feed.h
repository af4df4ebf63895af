/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Blocks of a window in one tier, whose ends no row of that tier fills are filled from finer ones: the window's first
 * and last part of a minute or hour, and what has not been rolled up yet. No tick is told twice.
 */

#include "store/store.h"

#define FEED_PARTS_MAX 17 /* raw, minutes, raw, minutes, raw; the same thrice, with hours between, at the most */

typedef struct FeedPart {
        StoreTier tier;
        uint64_t start_us, end_us;
} FeedPart;

typedef struct Feed {
        StoreReader *reader;
        StoreScanSpec spec; /* its tier is the coarsest */
        FeedPart parts[FEED_PARTS_MAX];
        size_t n_parts, at;
        StoreScan *scan;
        StoreTier tier; /* of the last block */
} Feed;

/* Opens nothing yet. Up to when rows are final is asked for once, here. */
int feed_init(Feed *f, StoreReader *r, const StoreScanSpec *spec);
void feed_deinit(Feed *f);
/* As store_scan_next(). */
int feed_next(Feed *f, const StoreBlock **ret);
