/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The Store's inside, for the files that make it up (store, attach, commit, rollup-write, retain) and for
 * live readers. */

#include "store/event-queue.h"
#include "store/head.h"
#include "store/rollup-table.h"
#include "store/store.h"

/* A machine while ticks of it are in memory. */
typedef struct StoreMachine {
        unsigned refs;
        uint64_t serial; /* 1, 2, ... within the process; 0: never seen by a reader */
        int64_t topo;    /* its row in the file; 0: none yet */
        uint64_t since_us;
        char *json;
        Machine *machine;
        Layout layout; /* of the ticks */
} StoreMachine;

StoreMachine *store_machine_ref(StoreMachine *m);
StoreMachine *store_machine_unref(StoreMachine *m); /* NULL ok; returns NULL */
DEFINE_CLEANUP(StoreMachine *, store_machine_unref);
/* Takes over json (malloc'd) on success. */
int store_machine_new(char *json, const Layout *layout, uint64_t since_us, StoreMachine **ret);

/* A closed minute on its way into the file; while the file is in trouble many wait. */
typedef struct Pending {
        struct Pending *next;
        StoreMachine *machine;
        uint64_t seq, epoch, epoch_us;
        uint64_t t0, t1;
        size_t n, size;
        uint8_t *bytes; /* a chunk */
} Pending;

#define CHUNK_SPAN_MAX_US  600000000ULL /* t1 - t0 of a chunk row, so that an index on t0 finds it */

/* What age is measured from (retain-clock.c). */
typedef struct RetainClock {
        uint64_t believed_us; /* the newest time that was believed; 0: nothing is known, whatever comes is */
        uint64_t ahead_us;    /* samples taken under a clock that is not believed yet */
        uint64_t last_us;     /* end of the last minute, by whatever clock */
        uint64_t saved_believed_us, saved_ahead_us;
} RetainClock;

enum {
        STMT_TOPO_INSERT,
        STMT_TOPO_NEWEST,
        STMT_META_PUT,
        STMT_EPOCH_INSERT,
        STMT_EVENT_INSERT,
        STMT_LABEL_CLOSE,
        STMT_LABEL_INSERT,
        STMT_LABEL_DELETE,
        STMT_CHUNK_INSERT,
        STMT_CHUNK_UNROLLED,
        STMT_CHUNK_OF_MINUTE,
        STMT_MINUTE_EXISTS,
        STMT_HEAD_PUT,
        STMT_HEAD_DELETE,
        STMT_HOUR_MISSING,
        STMT_HOUR_FORGET,
        STMT_EXPIRE_CHUNK,
        STMT_EXPIRE_CHUNK_ANY,
        STMT_EXPIRE_CPU_1M,
        STMT_EXPIRE_PKG_1M,
        STMT_EXPIRE_SYS_1M,
        STMT_EXPIRE_CPU_1H,
        STMT_EXPIRE_PKG_1H,
        STMT_EXPIRE_SYS_1H,
        STMT_EXPIRE_EVENT,
        STMT_CUT_EVENT,
        STMT_EXPIRE_TOPO,
        STMT_N,
};

struct Store {
        StoreConfig config;
        char *path, *head_path;
        sqlite3 *db; /* NULL while the file cannot be had */
        sqlite3_stmt *stmts[STMT_N];
        RollupTables rollups;
        int64_t metrics_topo; /* the file knows the metrics of that machine; 0: none */
        uint32_t page_size;
        sqlite3_stmt *rollup_stmts[ROLLUP_SCOPES][2]
                                  [2]; /* [scope][1m, 1h][insert, select] prepared when needed */
        int wal_pages;                 /* after the last commit */
        uint64_t inode, device;        /* of the file that db has open */
        unsigned generation;           /* + 1 whenever db becomes another file; readers follow */
        bool suspect;                  /* somebody saw damage: move the file aside */
        bool numbered;                 /* next_seq and epoch follow on what the file holds */

        uint64_t last_serial;
        StoreMachine *machine; /* current, NULL before the first */
        Head *head;
        bool adopted;             /* what an earlier process left was looked at */
        uint64_t next_seq;        /* of the open minute's first tick */
        uint64_t epoch, epoch_us; /* current number */
        uint32_t sample_epoch;
        bool has_epoch;
        uint64_t first_head_us; /* end of the open minute's first tick */
        uint64_t head_ns;       /* what its ticks span */
        uint64_t last_end_us, last_durable_us;

        Pending *first, **last; /* last: where the next one is hung */
        size_t pending_bytes;
        EventQueue events;
        RetainClock clock;
        uint64_t retry_us;    /* not before, while degraded */
        int64_t unrolled_seq; /* chunks up to here were looked at for missing minutes */
        bool more_unrolled, more_hours;
        int64_t hours_checked; /* all hours before this one are there */
        StoreFigures figures;
};

/* ---- store.c ---- */

/* Where the open minute could not be a file: tries again, while it is empty. */
int store_reopen_head(Store *s, const HeadOwner *owner);

/* ---- attach.c ---- */

/* Opens s->path; makes, migrates, moves damage aside. 0, STORE_E_*, -errno (s->db NULL, figures say why). */
int store_attach(Store *s, uint64_t now_us);
void store_detach(Store *s);
/* Commits what an earlier process left in the head file or the head table. Once, when the boot id is known.
 */
int store_adopt(Store *s, const char *boot_id, uint64_t now_us);

/* A (seq, epoch, chunk, json, epoch_us) row becomes a pending minute. */
int store_adopt_chunk(Store *s, sqlite3_stmt *q);

/* ---- commit.c ---- */

/* Notes trouble: degraded, with text; damage makes the file suspect. */
void store_trouble(Store *s, const char *doing, int error);
void store_well(Store *s, uint64_t now_us);
/* Closes the open minute: packs it and hands it to the file. -ENOMEM. */
int store_close_minute(Store *s, uint64_t now_us);
/* Appends a packed minute; takes over bytes (on failure too). */
int store_pend(Store *s, StoreMachine *m, const HeadOwner *owner, const TickRows *rows, uint8_t *bytes,
        size_t size);
/* Writes what waits. 0 even where the disk refuses (figures say so). */
int store_drain(Store *s, uint64_t now_us);
int store_write_head(Store *s, uint64_t now_us);

/* ---- rollup-write.c ---- */

/* Within a transaction: makes sure that the file knows all metrics of the machine. */
int rollup_ensure_metrics(Store *s, const StoreMachine *m);
/* Within a transaction: merges a chunk's ticks into the minute's rows. -EBADMSG: the chunk is damaged. */
int rollup_write_minute(
        Store *s, const StoreMachine *m, int64_t epoch, uint64_t t1, const uint8_t *bytes, size_t size);
/* Within a transaction: makes the hour's rows from its minutes'. */
int rollup_write_hour(Store *s, int64_t hour);
/* Finalises what was prepared. */
void rollup_write_forget(Store *s);
/* Reads a cell whose sum stands in column `at` of a row of n ticks. */
void rollup_read_cell(sqlite3_stmt *q, int at, int64_t row_n, bool spread, Rollup *ret);

/* ---- rollup-catch-up.c ---- */

/*
 * Within a transaction: a minute without rows from all its chunks: the first one makes them, the others are merged
 * in.
 */
int rollup_write_all_of_minute(Store *s, int64_t minute);

/* One minute that was never rolled, or one finished hour that is missing: 1 did something, 0 nothing left.
 */
int rollup_catch_up(Store *s, uint64_t now_us);

/* ---- rollup-view.c ---- */

/* Within a transaction: the views for people, over the metrics the file knows. */
int rollup_make_views(Store *s);

/* ---- retain-clock.c ---- */

/* now_us where it is to be believed, else where the history ended. */
uint64_t retain_now(const Store *s, uint64_t now_us);
/* A minute was written. */
void retain_clock_note(Store *s, uint64_t t0, uint64_t t1);
/* Within a transaction: what a restart has to know, now and then. */
int retain_clock_save(Store *s);
int retain_clock_load(Store *s);

/* ---- retain.c ---- */

/* Within a transaction: the oldest `minutes` of each tier that are too old. *ret_more: there may be more. */
int retain_expire(Store *s, uint64_t now_us, int64_t minutes, bool *ret_more);
/* Outside: size limit, freelist. 1: more to do. */
int retain_shrink(Store *s, uint64_t now_us);
/* Outside: a checkpoint where the WAL has grown to it. */
void retain_checkpoint(Store *s);

/* ---- live.c: what readers in this process see besides the file ---- */

typedef struct LiveTicks {
        uint64_t seq; /* of the first tick */
        uint64_t epoch;
        const StoreMachine *machine;
        const Pending *pending; /* packed, or NULL: rows */
        TickRows rows;
} LiveTicks;
/* The first ticks in memory with sequence numbers from seq on that the file does not hold. False: none.
 * Borrowed until the store changes. */
bool store_live(const Store *s, uint64_t seq, LiveTicks *ret);
const PendingEvent *store_live_events(const Store *s); /* oldest first; NULL: none */
const Machine *store_live_machine(const Store *s); /* NULL before the first */
/* Of the ticks in memory: the first one's start, the last one's end. False: none. */
bool store_live_bounds(const Store *s, uint64_t *ret_oldest_us, uint64_t *ret_newest_us);
unsigned store_generation(const Store *s);
/* A reader saw damage in the file. */
void store_suspect(Store *s);
