/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Between fold.c, which knows nulls, rollup rows and buckets, and fold-plain.c, which has the loops that cost. */

#include "query/fold.h"

void fold_plain_begin(Fold *f);
/*
 * Adds ticks [from, to) of a raw block's member that has a value in each of them: to what the Fold keeps of plain
 * members, or, by_member, to the ticks' num, den and n. False where it has not, or the series is a gauge or of rollups:
 * nothing was done then.
 */
bool fold_plain(Fold *f, Series *s, Member *m, const StoreBlock *b, size_t from, size_t to);
/* All members were plain: the ticks into the series. The Fold's num and den are used up. */
void fold_plain_all(Fold *f, const Plan *p, Series *s, const StoreBlock *b, size_t from, size_t to, bool spread);
/* Some were, perhaps none: they are added to the ticks' num, den and n. */
void fold_plain_some(Fold *f, const Series *s, const StoreBlock *b, size_t from, size_t to);
