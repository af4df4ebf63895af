/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The little of sqlite that the store uses: opening, one translation of result codes, statement sets that
 * are prepared and finalised by loops, binds that are all checked. Private to daemon/store.
 */

#include <stdint.h>

#include <sqlite3.h>

#include "cstated/macro.h"

typedef enum DbOpen {
        DB_OPEN_WRITE,  /* create where absent */
        DB_OPEN_READ,   /* read-only; a database that nobody can write to (no -wal beside it) is opened as
                           immutable */
        DB_OPEN_SHARED, /* a second connection beside the writer of this process: query_only */
} DbOpen;

/* sqlite's result as -errno: the one place that knows. 0 for OK, ROW and DONE. */
int db_errno(int code);
int db_open(const char *path, DbOpen how, sqlite3 **ret);
/* NULL ok; returns NULL. */
sqlite3 *db_close(sqlite3 *db);
int db_exec(sqlite3 *db, const char *sql);
/* A formatted statement; names in it are our own. */
int db_execf(sqlite3 *db, const char *format, ...) _printf_(2, 3);
/* The integer a one-value query gives; -ENODATA without a row. */
int db_query_i64(sqlite3 *db, const char *sql, int64_t *ret);

typedef struct DbStatement {
        const char *name; /* for messages */
        const char *sql;
} DbStatement;

/* Prepares table[0..n) into ret[0..n); on failure none is left. */
int db_prepare_all(sqlite3 *db, const DbStatement *table, size_t n, sqlite3_stmt **ret);
void db_finalize_all(sqlite3_stmt **stmts, size_t n);

/*
 * Binds from parameter 1 on, by type letters: i int64_t, d double, t const char * (NULL binds null; must
 * outlive the step), b const void *, size_t (likewise). Resets the statement first.
 */
int db_bind(sqlite3_stmt *s, const char *types, ...);
/* Runs a statement that returns no row, and resets it. */
int db_run(sqlite3_stmt *s);
/* 1: a row stands; 0: no more, reset; <0: reset. */
int db_step(sqlite3_stmt *s);
void db_reset(sqlite3_stmt *s);
static inline void db_resetp(sqlite3_stmt **s) {
        if (*s)
                db_reset(*s);
}
#define _cleanup_reset_ _cleanup_(db_resetp)

/* BEGIN IMMEDIATE ... COMMIT; a failed commit rolls back. */
int db_begin(sqlite3 *db);
int db_commit(sqlite3 *db);
void db_rollback(sqlite3 *db);
