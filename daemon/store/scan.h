/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The iterator's inside: what raw and rolled scans share. Private to daemon/store. */

#include "store/reader.h"
#include "store/rollup-table.h"

struct StoreScan {
        StoreReader *reader;
        StoreScanSpec spec;
        FieldId *fields;

        /* the machine that the block is laid out for; key: its topo row, or minus its serial in the writer's
         * memory */
        const Machine *machine;
        int64_t machine_key;
        Layout layout;

        StoreBlock block;
        size_t capacity; /* rows the arrays below hold */
        size_t slots;    /* columns they hold */
        uint64_t start_us[CODEC_TICKS_MAX], end_us[CODEC_TICKS_MAX], dt_ns[CODEC_TICKS_MAX];
        int64_t *values, *min, *max;
        uint8_t *reasons;
        uint32_t *n_ticks;
        double *m2;

        /* raw */
        Chunk chunk;
        sqlite3_blob *blob; /* the chunk's bytes while it is decoded */
        uint8_t *buffer;
        size_t buffer_size;
        uint64_t next_seq, last_seq; /* of the file's chunks in the window; last < next: look again */

        /* rolled */
        uint64_t next_unit, end_unit; /* minutes or hours */
        RollupTables tables;
        sqlite3_stmt *selects[ROLLUP_SCOPES];
        int *positions[ROLLUP_SCOPES]; /* metric -> column of its sum in the select, -1 */
        unsigned generation;           /* of the file that all this is about */
};

/* Lays the block out, where the machine is another one: the columns asked for that `samples` has, and ratios
 * where rolled. */
void scan_set_machine(StoreScan *s, int64_t key, const Machine *m, const Layout *samples);
/* Value arrays for n rows of the layout. */
int scan_reserve(StoreScan *s, size_t n);

int scan_raw_next(StoreScan *s, const StoreBlock **ret);
int scan_rollup_init(StoreScan *s);
int scan_rollup_next(StoreScan *s, const StoreBlock **ret);
