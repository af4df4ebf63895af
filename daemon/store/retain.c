/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What goes, and when: by age in each minute's transaction (a little more than comes in, so that a backlog
 * shrinks), by size and larger backlogs in bounded pieces when the daemon is idle. Freed pages are used
 * again by the next minutes; the file is made smaller only where a cut left it much too big, 256 pages a
 * step. Never VACUUM: it needs the file's size twice over.
 */

#include <errno.h>

#include "store/writer.h"

#define CHECKPOINT_PAGES 1000 /* as wal_autocheckpoint, but counted */
#define WAL_PAGES_MAX    4096
#define BACKLOG_MINUTES  16
#define CUT_CHUNKS       16
#define VACUUM_PAGES_MIN 2048

static int run_expire(
        Store *s, int stmt, uint64_t now_us, uint64_t keep_us, uint64_t unit_us, int64_t units, bool *more) {
        int64_t cutoff;
        int r;

        if (keep_us == 0 || now_us < keep_us)
                return 0;
        cutoff = (int64_t) ((now_us - keep_us) / unit_us);
        r = db_bind(s->stmts[stmt], "ii", cutoff, units);
        if (r == 0)
                r = db_run(s->stmts[stmt]);
        if (r == 0 && sqlite3_changes(s->db) > 0)
                *more = true;
        return r;
}

int retain_expire(Store *s, uint64_t now_us, int64_t minutes, bool *ret_more) {
        const StoreConfig *c = &s->config;
        bool more = false, cut = false;
        int r;

        r = run_expire(s, STMT_EXPIRE_CHUNK, now_us, c->raw_retention_usec, 1, minutes, &cut);
        more = cut && sqlite3_changes(s->db) >= minutes;
        for (int i = 0; r == 0 && i < 3; i++)
                r = run_expire(s, STMT_EXPIRE_CPU_1M + i, now_us, c->minute_retention_usec, ROLLUP_MINUTE_US,
                        minutes, &more);
        for (int i = 0; r == 0 && i < 3; i++)
                r = run_expire(s, STMT_EXPIRE_CPU_1H + i, now_us, c->hour_retention_usec, ROLLUP_HOUR_US,
                        minutes, &more);
        if (r == 0 && c->hour_retention_usec > 0 && now_us > c->hour_retention_usec) {
                r = db_bind(s->stmts[STMT_EXPIRE_EVENT], "i", (int64_t) (now_us - c->hour_retention_usec));
                if (r == 0)
                        r = db_run(s->stmts[STMT_EXPIRE_EVENT]);
        }
        if (r == 0 && s->events.next_id > EVENTS_KEPT_MAX) {
                r = db_bind(s->stmts[STMT_CUT_EVENT], "ii", (int64_t) (s->events.next_id - 1 - EVENTS_KEPT_MAX),
                        (int64_t) EVENTS_CUT_MAX);
                if (r == 0)
                        r = db_run(s->stmts[STMT_CUT_EVENT]);
        }
        if (r == 0)
                *ret_more = more;
        return r;
}

/* Raw first, then minutes, then hours. */
static int cut_oldest(Store *s) {
        sqlite3_stmt *q = s->stmts[STMT_EXPIRE_CHUNK_ANY];
        int r;

        r = db_bind(q, "i", (int64_t) CUT_CHUNKS);
        if (r == 0)
                r = db_run(q);
        if (r < 0 || sqlite3_changes(s->db) > 0)
                return r < 0 ? r : 1;
        for (int tier = 0; tier < 2; tier++) {
                int any = 0;

                for (int i = 0; i < 3; i++) {
                        q = s->stmts[(tier ? STMT_EXPIRE_CPU_1H : STMT_EXPIRE_CPU_1M) + i];
                        r = db_bind(q, "ii", INT64_MAX / ROLLUP_KEYS, (int64_t) BACKLOG_MINUTES);
                        if (r == 0)
                                r = db_run(q);
                        if (r < 0)
                                return r;
                        any |= sqlite3_changes(s->db) > 0;
                }
                if (any)
                        return 1;
        }
        return 0;
}

static int expire_piece(Store *s, uint64_t now_us, bool over_size) {
        bool more = false;
        int r;

        r = db_begin(s->db);
        if (r < 0)
                return r;
        r = retain_expire(s, retain_now(s, now_us), BACKLOG_MINUTES, &more);
        if (r == 0 && over_size) {
                r = cut_oldest(s);
                more = more || r > 0;
        }
        if (r >= 0)
                r = db_commit(s->db);
        if (r < 0)
                db_rollback(s->db);
        return r < 0 ? r : more;
}

int retain_shrink(Store *s, uint64_t now_us) {
        int64_t pages, free_pages;
        bool over_size;
        int r;

        r = db_query_i64(s->db, "PRAGMA page_count", &pages);
        if (r == 0)
                r = db_query_i64(s->db, "PRAGMA freelist_count", &free_pages);
        if (r < 0)
                return r;
        over_size = s->config.max_size_bytes > 0 &&
                    (uint64_t) (pages - free_pages) * s->page_size > s->config.max_size_bytes;
        /* while a cut goes on: the cost of a step grows with the freelist, so it is kept short */
        if (free_pages >= VACUUM_PAGES_MIN) {
                r = db_exec(s->db, "PRAGMA incremental_vacuum(256)");
                return r < 0 ? r : 1;
        }
        return expire_piece(s, now_us, over_size);
}

void retain_checkpoint(Store *s) {
        int log = 0, moved = 0, mode = SQLITE_CHECKPOINT_PASSIVE, code;

        if (!s->db || s->wal_pages < CHECKPOINT_PAGES)
                return;
        if (s->wal_pages >= WAL_PAGES_MAX) { /* somebody reads for long: take the first moment nobody does */
                mode = SQLITE_CHECKPOINT_TRUNCATE;
                (void) sqlite3_busy_timeout(s->db, 0);
        }
        code = sqlite3_wal_checkpoint_v2(s->db, NULL, mode, &log, &moved);
        (void) sqlite3_busy_timeout(s->db, 1000);
        if (code != SQLITE_OK && code != SQLITE_BUSY && code != SQLITE_LOCKED)
                store_trouble(s, "checkpoint", db_errno(code));
        if (moved > 0)
                s->figures.bytes_written += (uint64_t) moved * s->page_size;
        if (code == SQLITE_OK && moved == log)
                s->wal_pages = 0;
}
