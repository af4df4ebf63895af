/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Rows of rollup tables on their way in and out of SQL. Private to daemon/store. */

#include "store/rollup-table.h"
#include "store/writer.h"

typedef struct RollupRows {
        RollupRow *rows;
        Rollup *cells;
        size_t n;
} RollupRows;

int rollup_rows_init(RollupRows *r, size_t n, const RollupTable *t);
void rollup_rows_deinit(RollupRows *r);

/* The kept statement that inserts (replaces) a row, or selects those with id in [?, ?). */
int rollup_prepare(Store *s, RollupScope scope, StoreTier tier, bool select, sqlite3_stmt **ret);
/* unit: number of the minute or hour. */
int rollup_insert(Store *s, RollupScope scope, StoreTier tier, int64_t unit, const RollupRow *row);
/* Merges a stepped row of a select statement. */
void rollup_merge_row(const RollupTable *t, sqlite3_stmt *q, RollupRow *row);

/* Of a column, as the machine has it; 1 where it has none. */
double rollup_column_scale(const StoreMachine *m, FieldId field, uint8_t instance);
bool rollup_ratio_applies(const StoreMachine *m, const RollupRatio *r);
