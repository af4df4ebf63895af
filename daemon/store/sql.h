/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* SQL for people over a store, read-only: its own tables and views, and cpu_raw, cpu_agg over the packed
 * seconds. */

#include <stddef.h>
#include <stdint.h>

#include "cstated/macro.h"

typedef struct StoreSql StoreSql;

/* STORE_E_*, -ENOENT, -errno. */
int store_sql_open(const char *path, StoreSql **ret);
StoreSql *store_sql_close(StoreSql *s);
DEFINE_CLEANUP(StoreSql *, store_sql_close);

/* The first statement of a text; *ret_rest is behind it. 1: it can be stepped; 0: there was only space;
 * -EINVAL: see store_sql_error(). */
int store_sql_prepare(StoreSql *s, const char *text, const char **ret_rest);
/* 1 a row, 0 the end, -errno (see store_sql_error()). */
int store_sql_step(StoreSql *s);
/* sqlite's words for the last failure. */
const char *store_sql_error(const StoreSql *s);

size_t store_sql_n_columns(const StoreSql *s);
const char *store_sql_column(const StoreSql *s, size_t i);

typedef enum StoreSqlType {
        STORE_SQL_NULL,
        STORE_SQL_INTEGER,
        STORE_SQL_REAL,
        STORE_SQL_TEXT,
        STORE_SQL_BLOB, /* as X'...' */
} StoreSqlType;
/* The value as text, locale-free, terminated; borrowed until the next step. */
StoreSqlType store_sql_value(StoreSql *s, size_t i, const char **ret);
/* The same as a number, where it is one. */
int64_t store_sql_i64(StoreSql *s, size_t i);
double store_sql_double(StoreSql *s, size_t i);
