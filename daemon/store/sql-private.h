/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the two halves of sql-functions share: tables and plans there, cursors in sql-cursor.c. */

#include "store/db.h"
#include "store/store.h"

enum {
        FIXED_T, /* n in cpu_agg */
        FIXED_CPU,
        FIXED_CORE,
        FIXED_PACKAGE,
        FIXED_DT,
        FIXED_N,
};

enum {
        PLAN_FROM = 1 << 0,
        PLAN_TO = 1 << 1,
        PLAN_CPU = 1 << 2,
};

#define SQL_COLUMNS_MAX 512

typedef struct SqlColumn {
        FieldId field;
        char state[16];
} SqlColumn;

typedef struct SqlTable {
        sqlite3_vtab base;
        const char *path; /* of the module's */
        bool aggregate;
        SqlColumn *columns; /* behind the fixed ones */
        size_t n;
} SqlTable;

typedef struct AggRow {
        int64_t cpu, core, package, n, dt;
        int64_t *sums, *counts; /* one a column */
} AggRow;

typedef struct SqlCursor {
        sqlite3_vtab_cursor base;
        StoreReader *reader;
        StoreScan *scan;
        const StoreBlock *block;
        size_t tick;
        uint32_t cpu;     /* index */
        int64_t only_cpu; /* id, -1: all */
        int64_t rowid;
        bool eof;
        /* cpu_agg */
        AggRow *rows;
        size_t n_rows, at;
} SqlCursor;

int sql_code(int error);
int sql_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **ret);
int sql_close(sqlite3_vtab_cursor *cursor);
int sql_filter(sqlite3_vtab_cursor *cursor, int plan, const char *used, int argc, sqlite3_value **argv);
int sql_next(sqlite3_vtab_cursor *cursor);
int sql_eof(sqlite3_vtab_cursor *cursor);
int sql_column(sqlite3_vtab_cursor *cursor, sqlite3_context *out, int i);
int sql_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret);
