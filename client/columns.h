/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * turbostat's columns over a snapshot: names and order of Debian's turbostat 2022.10.04, so that what parses its
 * output parses ours. A column that nothing in the snapshot fills is left out, as turbostat does.
 */

#include <jansson.h>
#include <stdbool.h>

#include "cstated/catalogue.h"

typedef enum ColumnKind {
        COLUMN_TOPOLOGY, /* Package Die Core CPU */
        COLUMN_METRIC,   /* a key of the entity's object */
        COLUMN_IDLE,     /* entity.idle[state][key] */
        COLUMN_WAKEUP,   /* entity.wakeups[key], per second */
} ColumnKind;

typedef struct Column {
        char name[32];
        ColumnKind kind;
        Scope scope;
        char key[24];
        char state[16];
        MetricUnit unit;
        MetricCategory category;
        bool shown;      /* after --show and --hide */
        bool is_default; /* without them */
        bool joules;     /* -J: watts times seconds */
} Column;

#define COLUMNS_MAX 160

typedef struct ColumnSet {
        size_t n;
        Column columns[COLUMNS_MAX];
} ColumnSet;

/* The array of the scope's entities; NULL for the system. Borrowed. */
json_t *columns_entities(json_t *snapshot, Scope s);
/* The columns this snapshot fills, in order. joules: Pkg_J instead of PkgWatt. */
void columns_from_snapshot(json_t *snapshot, bool joules, ColumnSet *ret);
/*
 * A comma list of names or groups (all, default, topology, idle, frequency, power, thermal, wake, sysfs, other). show:
 * only these; else hide these. 0, or -EINVAL with the word.
 */
int columns_select(ColumnSet *set, const char *list, bool show, bool first, char *ret_word, size_t size);

typedef enum ColumnFormat {
        COLUMN_FORMAT_TABLE, /* turbostat's rounding, "-" for null */
        COLUMN_FORMAT_FULL,  /* six digits, empty for null */
} ColumnFormat;

/*
 * The text of a column in the row of that cpu object (NULL: summary row, from snapshot.system). Cells of a core or
 * package stand only in the row of its first CPU: elsewhere the text is empty and false is returned.
 */
bool column_text(
        const Column *c, json_t *snapshot, json_t *cpu, ColumnFormat format, char *buf, size_t size);
