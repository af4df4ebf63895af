/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The schema: making it, knowing ours from foreign and newer files. Private to daemon/store. */

#include "store/db.h"
#include "store/rollup-table.h"

#define SCHEMA_APPLICATION_ID 0x43535444 /* "CSTD" */
#define SCHEMA_VERSION        3
#define SCHEMA_READABLE       2 /* the oldest that readers understand as it is */

enum {
        SCHEMA_OURS,  /* of this version or older */
        SCHEMA_EMPTY, /* no table yet */
        SCHEMA_NEWER,
        SCHEMA_FOREIGN,
};

/* Tables of version 2: chunks and rollups, the latter without a metric yet. */
int schema_make_packed(sqlite3 *db);
/* One rollup table; columns: ", name TYPE"..., those of its metrics. */
int schema_make_rollup(sqlite3 *db, RollupScope scope, StoreTier tier, const char *columns);

/* Whose file is this? Reads only. SCHEMA_* and *ret_version (its user_version), or -errno. */
int schema_probe(sqlite3 *db, int64_t *ret_version);
/*
 * On a writer's connection just opened: makes the tables or migrates them (progress is called now and then
 * meanwhile, NULL ok), then journal mode and the rest. SCHEMA_OURS when done; SCHEMA_NEWER, SCHEMA_FOREIGN:
 * untouched.
 */
int schema_open(sqlite3 *db, void (*progress)(void *userdata), void *userdata);
