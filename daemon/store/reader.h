/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the files of the read side share: the connection, its statements, the machines seen. Private to
 * daemon/store. */

#include "store/db.h"
#include "store/store.h"

enum {
        READ_TOPO,
        READ_TOPO_NEWEST,
        READ_CHUNK_RANGE,
        READ_CHUNK_NEXT,
        READ_RUN_1M,
        READ_RUN_1H,
        READ_LABELS,
        READ_LABELS_NAMED,
        READ_EVENTS,
        READ_BOUNDS_RAW,
        READ_BOUNDS_1M,
        READ_BOUNDS_1H,
        READ_FINAL_1M,
        READ_FINAL_1H,
        READ_TOPO_AT,
        READ_N,
};

#define READER_MACHINES_MAX 8

typedef struct ReaderMachine {
        int64_t topo;
        Machine *machine;
        Layout layout; /* of its samples */
} ReaderMachine;

struct StoreReader {
        char *path;
        Store *live;
        unsigned generation; /* of the file, as the writer counts */
        sqlite3 *db;         /* NULL: live, and there is no file to be read */
        sqlite3_stmt *stmts[READ_N];
        uint64_t deadline_ns;                         /* CLOCK_MONOTONIC, 0: none */
        uint64_t n_damaged;                           /* chunks passed over */
        ReaderMachine *machines[READER_MACHINES_MAX]; /* most recently used first; blocks borrow from them */
        ReaderMachine *newest;
};

bool reader_past_deadline(const StoreReader *r);
/* The file the writer has now. 0; -errno, r->db NULL. 0 with r->db NULL where only memory can be read. */
int reader_follow(StoreReader *r);
/* Passes an error on, and tells the writer of damage. */
int reader_error(StoreReader *r, int code);
/* The machine of a topo row, cached; borrowed until READER_MACHINES_MAX others were asked for. -EBADMSG:
 * none, or damaged. */
int reader_machine(StoreReader *r, int64_t topo, const ReaderMachine **ret);
