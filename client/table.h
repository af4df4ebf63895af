/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Tables for people, by libsmartcols: aligned, cut or wrapped to the terminal where stdout is one. */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cstated/macro.h"

typedef enum TableFlags {
        TABLE_RIGHT = 1 << 0, /* numbers */
        TABLE_TRUNC = 1 << 1, /* may be cut to fit the terminal */
        TABLE_WRAP = 1 << 2,  /* may go over several lines */
} TableFlags;

typedef struct TableColumn {
        const char *name;
        unsigned flags;
} TableColumn;

typedef struct Table Table;

#define TABLE_COLUMNS_MAX 12

/* At most TABLE_COLUMNS_MAX columns. NULL: out of memory. */
Table *table_new(const TableColumn *columns, size_t n, FILE *out);
Table *table_free(Table *t);
DEFINE_CLEANUP(Table *, table_free);
/* One text a column, copied; NULL is empty. 0, -ENOMEM. */
int table_add(Table *t, const char *const *cells);
/* 0, <0. Nothing, not even the header, where there is no row. */
int table_print(Table *t);

/* True where "±" can be printed. */
bool table_is_utf8(void);
