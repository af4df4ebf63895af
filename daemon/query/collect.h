/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One window reduced to one row a series: what summary and compare are made of. Works in slices, as the
 * engine does.
 */

#include "query/compare.h"
#include "query/query.h"

typedef struct CollectRow {
        QueryRow row; /* its state points to the name below */
        char state[16];
} CollectRow;

typedef struct Collect {
        QuerySpec spec; /* one bucket; lists borrowed */
        StoreReader *reader;
        Query *query;
        CollectRow *rows;
        size_t n_rows, size_rows;
        QueryInfo info;
        CompareFacts facts; /* of the last machine of the window */
        bool is_done;
} Collect;

#define COLLECT_ROWS_MAX 50000

/* The metrics, scope and filters of spec over [start, end). The lists of spec stay borrowed. */
void collect_init(Collect *c, StoreReader *r, const QuerySpec *spec, uint64_t start_us, uint64_t end_us);
void collect_deinit(Collect *c);
/* Before any work: QUERY_E_TOO_MANY, the error filled, where the window's machine has more rows than are kept. */
int collect_check(StoreReader *r, const QuerySpec *spec, uint64_t start_us, uint64_t end_us, QueryError *ret_error);
/* 0: done; 2 (no QUERY_E_): a slice is done, call again; QUERY_E_* with the error filled; <0. */
int collect_work(Collect *c, QueryError *ret_error);
/* The row of the same series as key, NULL where the window has none. */
const QueryRow *collect_find(const Collect *c, const QueryRow *key);
