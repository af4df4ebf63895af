/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Rollups in SQL: three wide tables a tier (cpu, pkg, sys), a row an entity and wall minute or hour, five
 * columns a metric (sum, n, m2, min, max) or two. Columns come as metrics come: a metric is a field, an idle
 * state's name where it has one, and a scale, so that a column means the same for ever. Private to
 * daemon/store.
 *
 * Row id = minute (or hour) * ROLLUP_KEYS + key; keys: CPU number; package * 32 + die + 1; 0. Values of
 * cores and modules lie in the row of their first online CPU.
 */

#include "model/machine.h"
#include "store/chunk.h"
#include "store/db.h"
#include "store/rollup.h"
#include "store/store.h"

#define ROLLUP_KEYS        8192
#define ROLLUP_METRICS_MAX 360 /* sqlite has 2000 columns a table */
#define ROLLUP_MINUTE_US   60000000ULL
#define ROLLUP_HOUR_US     3600000000ULL

typedef enum RollupScope {
        ROLLUP_CPU, /* and core, module */
        ROLLUP_PKG,
        ROLLUP_SYS,
        ROLLUP_SCOPES,
} RollupScope;

typedef struct RollupMetric {
        int64_t id;
        FieldId field;
        char state[16];
        double scale;
        char column[64];
} RollupMetric;

typedef struct RollupTable {
        RollupMetric *metrics;
        size_t n;
} RollupTable;

/* The registry of one connection: which metrics the file knows. */
typedef struct RollupTables {
        RollupTable tables[ROLLUP_SCOPES];
} RollupTables;

typedef struct RollupRow {
        int64_t key, topo, epoch, n, dt;
        Rollup *cells; /* one a metric of its table */
} RollupRow;

RollupScope rollup_scope(Scope s);
/* "cpu_1m", ... */
const char *rollup_table_name(RollupScope scope, StoreTier tier);
/* Key of an entity; -1 where there is no room for it. */
int64_t rollup_key(const Machine *m, Scope s, uint32_t e);
/*
 * The state a column of field and instance means on that idle set, or the bucket of a histogram; "" for fields
 * without.
 */
void rollup_state(const Machine *m, FieldId field, uint8_t instance, uint16_t idle_set, char ret[16]);
/* Index of a metric in its table, -1. */
int rollup_find(const RollupTable *t, FieldId field, const char *state, double scale);

/* Appends a copy. -ENOMEM. */
int rollup_table_add(RollupTable *t, const RollupMetric *m);
/* Reads the registry; *t is replaced. */
int rollup_tables_load(RollupTables *t, sqlite3 *db);
void rollup_tables_deinit(RollupTables *t);
