/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Adding ticks to the series of a plan, and the value of what was added. No sqlite, no clock. */

#include "query/plan.h"
#include "query/query.h"

/* Room for the ticks of one run, kept between calls. */
typedef struct Fold {
        double *num, *den; /* one a tick */
        uint32_t *n;       /* members with a value */
        size_t size;
} Fold;

void fold_deinit(Fold *f);
/* Adds ticks [from, to) of the block to series s. spread: their values are wanted one by one. -ENOMEM. */
int fold_run(Fold *f, Plan *p, Series *s, const StoreBlock *b, size_t from, size_t to, bool spread);
/* Before the machine changes within a bucket: what members hold goes to their series. */
void fold_settle(Plan *p, Series *s);
/*
 * The bucket's row, without its time; settles members. The series is then empty, ready for the next bucket.
 */
void fold_take(Plan *p, Series *s, QueryRow *ret);
