/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the files of the read side share: the connection, its statements, the machines seen. Private to
 * daemon/store. */

#include "store/db.h"
#include "store/store.h"

enum {
        READ_TOPO,
        READ_TOPO_NEWEST,
        READ_TICK_FIRST,
        READ_TICK_NEXT,
        READ_LABELS,
        READ_LABELS_NAMED,
        READ_EVENTS,
        READ_BOUNDS_RAW,
        READ_N,
};

#define READER_MACHINES_MAX 8

typedef struct ReaderMachine {
        int64_t topo;
        Machine *machine;
        Layout layout; /* of its samples */
} ReaderMachine;

struct StoreReader {
        sqlite3 *db;
        sqlite3_stmt *stmts[READ_N];
        uint64_t deadline_ns;                         /* CLOCK_MONOTONIC, 0: none */
        ReaderMachine *machines[READER_MACHINES_MAX]; /* most recently used first; blocks borrow from them */
        ReaderMachine *newest;
};

bool reader_past_deadline(const StoreReader *r);
/* The machine of a topo row, cached; borrowed until READER_MACHINES_MAX others were asked for. -EBADMSG: no
 * such row or damaged. */
int reader_machine(StoreReader *r, int64_t topo, const ReaderMachine **ret);
