/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Adding ticks to the series of a plan, and the value of what was added. No sqlite, no clock. */

#include "query/plan.h"
#include "query/query.h"

/* Room for the ticks of one run, kept between calls. */
typedef struct Fold {
        double *num, *den; /* one a tick */
        uint32_t *n;       /* members with a value */
        int64_t *room_num, *room_den;
        size_t size;

        /* members of the series in work that have a value in each tick, added up in native units */
        const int64_t *plain_num, *plain_den; /* one a tick: of the block, or room_*; NULL: none */
        uint32_t n_plain, n_timed;            /* how many these are; of them, over the tick's time */
        uint64_t plain_count, plain_den_sum;  /* over the ticks, modulo 2^64 */
        double scale;                         /* of plain_num, to base units */
} Fold;

void fold_deinit(Fold *f);
/* Adds ticks [from, to) of the block to series s. spread: their values are wanted one by one. -ENOMEM. */
int fold_run(Fold *f, Plan *p, Series *s, const StoreBlock *b, size_t from, size_t to, bool spread);
/*
 * The same where ticks stand for a rollup row that is not there: of a series whose rows would know no spread they count
 * as one value, as a row does.
 */
int fold_run_as_row(Fold *f, Plan *p, Series *s, const StoreBlock *b, size_t from, size_t to, bool spread);
/* Before the machine changes within a bucket: what members hold goes to their series. */
void fold_settle(Plan *p, Series *s);
/*
 * The bucket's row, without its time; settles members. The series is then empty, ready for the next bucket.
 */
void fold_take(Plan *p, Series *s, QueryRow *ret);
