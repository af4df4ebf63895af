/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the open minute into the file: packed, queued, and written one transaction a minute (chunk, rollups,
 * expiry, events). The queue usually holds one minute for a moment; while the file is in trouble it is the
 * bounded ring that keeps history, oldest out first. Numbers of topo rows are fixed only when they are
 * written, so that a minute may land in another file than it was meant for.
 */

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "cstated/timespan.h"

#include "store/writer.h"

#define RETRY_US (10 * USEC_PER_SEC)

static bool is_damage(int error) {
        return error == -EUCLEAN || error == -EMEDIUMTYPE;
}

void store_trouble(Store *s, const char *doing, int error) {
        const char *detail = s->db && sqlite3_errcode(s->db) != SQLITE_OK ? sqlite3_errmsg(s->db) : NULL;

        if (is_damage(error))
                s->suspect = true;
        s->figures.degraded = true;
        (void) snprintf(s->figures.problem, sizeof(s->figures.problem), "%s: %s%s%s", doing,
                strerror(-error), detail ? ": " : "", detail ?: "");
}

void store_well(Store *s, uint64_t now_us) {
        s->figures.degraded = false;
        s->figures.problem[0] = '\0';
        s->figures.last_commit_us = now_us;
        s->figures.commits++;
        s->retry_us = 0;
}

/* ---- the queue ---- */

static void store_drop_first(Store *s) {
        Pending *p = s->first;

        s->first = p->next;
        if (!s->first)
                s->last = &s->first;
        s->pending_bytes -= p->size;
        (void) store_machine_unref(p->machine);
        free(p->bytes);
        free(p);
}

int store_pend(Store *s, StoreMachine *m, const HeadOwner *owner, const TickRows *rows, uint8_t *bytes,
        size_t size) {
        const TickRecord *first = tick_rows_record(rows, 0), *last = tick_rows_record(rows, rows->n - 1);
        Pending *p = calloc(1, sizeof(*p));

        if (!p) {
                free(bytes);
                return -ENOMEM;
        }
        if (m->serial == 0)
                m->serial = ++s->last_serial;
        *p = (Pending){
                .machine = store_machine_ref(m),
                .seq = owner->seq,
                .epoch = owner->epoch,
                .epoch_us = owner->epoch_us,
                .t0 = first->start_us,
                .t1 = last->end_us,
                .n = rows->n,
                .size = size,
                .bytes = bytes,
        };
        if (p->t0 > p->t1 || p->t1 - p->t0 > CHUNK_SPAN_MAX_US)
                p->t0 = p->t1 > CHUNK_SPAN_MAX_US ? p->t1 - CHUNK_SPAN_MAX_US : 0;
        *s->last = p;
        s->last = &p->next;
        s->pending_bytes += size;
        return 0;
}

/* Of the minutes that cannot be written now, as many as the ring holds. */
static void store_trim(Store *s) {
        while (s->first && s->first->next && s->pending_bytes > s->config.ring_bytes) {
                s->figures.ticks_lost += s->first->n;
                store_drop_first(s);
        }
}

/* ---- one transaction ---- */

/* The machine's topo row; the newest one serves where it says the same. */
static int commit_topo(Store *s, StoreMachine *m) {
        sqlite3_stmt *q = s->stmts[STMT_TOPO_NEWEST];
        int r;

        if (m->topo > 0)
                return 0;
        r = db_step(q);
        if (r < 0)
                return r;
        if (r > 0 && strcmp((const char *) sqlite3_column_text(q, 1) ?: "", m->json) == 0)
                m->topo = sqlite3_column_int64(q, 0);
        db_reset(q);
        if (m->topo > 0)
                return 0;
        q = s->stmts[STMT_TOPO_INSERT];
        r = db_bind(q, "it", (int64_t) m->since_us, m->json);
        if (r == 0)
                r = db_run(q);
        if (r == 0)
                m->topo = sqlite3_last_insert_rowid(s->db);
        return r;
}

static int commit_epoch(Store *s, uint64_t epoch, uint64_t epoch_us, const char *boot_id) {
        sqlite3_stmt *q = s->stmts[STMT_EPOCH_INSERT];
        int r = db_bind(q, "iit", (int64_t) epoch, (int64_t) epoch_us, boot_id);

        return r < 0 ? r : db_run(q);
}

/* While older chunks may lack their rollup, a minute that has none yet may have more chunks than this one.
 */
static int commit_rollup(Store *s, const Pending *p) {
        int64_t minute = (int64_t) ((p->t1 > 0 ? p->t1 - 1 : 0) / ROLLUP_MINUTE_US);
        sqlite3_stmt *q = s->stmts[STMT_MINUTE_EXISTS];
        int r = 1;

        if (s->more_unrolled) {
                r = db_bind(q, "i", minute);
                if (r == 0)
                        r = db_step(q);
                db_reset(q);
        }
        if (r == 0)
                return rollup_write_all_of_minute(s, minute);
        if (r < 0)
                return r;
        return rollup_write_minute(s, p->machine, (int64_t) p->epoch, p->t1, p->bytes, p->size);
}

static int commit_chunk(Store *s, const Pending *p) {
        sqlite3_stmt *q = s->stmts[STMT_CHUNK_INSERT];
        int r;

        r = commit_topo(s, p->machine);
        if (r == 0)
                r = commit_epoch(s, p->epoch, p->epoch_us, p->machine->machine->boot_id);
        if (r == 0)
                r = db_bind(q, "iiiiiib", (int64_t) p->seq, (int64_t) p->t0, (int64_t) p->t1, (int64_t) p->n,
                        p->machine->topo, (int64_t) p->epoch, p->bytes, p->size);
        if (r == 0)
                r = db_run(q);
        if (r == 0)
                r = rollup_ensure_metrics(s, p->machine);
        if (r == 0)
                r = commit_rollup(s, p);
        if (r == 0)
                r = db_run(s->stmts[STMT_HEAD_DELETE]);
        return r;
}

static int commit_events(Store *s) {
        sqlite3_stmt *q = s->stmts[STMT_EVENT_INSERT];

        for (const PendingEvent *e = s->events.first; e; e = e->next) {
                int r = db_bind(q, "iitit", (int64_t) e->id, (int64_t) e->time_us, e->kind, e->cpu, e->text);

                if (r == 0)
                        r = db_run(q);
                if (r < 0)
                        return r;
        }
        return 0;
}

static void store_count_writes(Store *s) {
        int pages = 0, high = 0;

        (void) sqlite3_db_status(s->db, SQLITE_DBSTATUS_CACHE_WRITE, &pages, &high, 1);
        s->figures.bytes_written += (uint64_t) pages * s->page_size;
}

/* The first of the queue (NULL: only events) in a transaction of its own. */
static int store_commit_one(Store *s, Pending *p, uint64_t now_us) {
        int64_t topo = p ? p->machine->topo : 0;
        bool more;
        int r;

        r = db_begin(s->db);
        if (r == 0 && p)
                r = commit_chunk(s, p);
        if (r == 0)
                r = commit_events(s);
        if (r == 0 && p)
                r = retain_expire(s, retain_now(s, now_us), 2, &more);
        if (r == 0 && p)
                r = retain_clock_save(s);
        if (r == 0)
                r = db_commit(s->db);
        if (r < 0) {
                store_trouble(s, "writing", r);
                db_rollback(s->db);
                if (p)
                        p->machine->topo = topo;
                /* columns may have been added and taken back */
                (void) rollup_tables_load(&s->rollups, s->db);
                s->metrics_topo = 0;
                s->clock.saved_believed_us = 0;
                return r;
        }
        store_count_writes(s);
        event_queue_clear(&s->events, now_us);
        if (p)
                retain_clock_note(s, p->t0, p->t1);
        store_well(s, now_us);
        retain_checkpoint(s);
        return 0;
}

/* Whether somebody removed or replaced the file under us. */
static bool store_file_is_gone(const Store *s) {
        struct stat st;

        return stat(s->path, &st) < 0 ? errno == ENOENT : st.st_ino != s->inode || st.st_dev != s->device;
}

/* The file again: after damage, after it could not be opened, after it was taken away. */
static int store_reattach(Store *s, uint64_t now_us) {
        if (s->db && !s->suspect && !store_file_is_gone(s))
                return 0;
        store_detach(s);
        return store_attach(s, now_us);
}

/* 0: the first of the queue is done with; -errno: it is still there. */
static int store_drain_one(Store *s, uint64_t now_us) {
        int r = store_reattach(s, now_us);

        if (r == 0 && (s->first || s->events.first))
                r = store_commit_one(s, s->first, now_us);
        if (r != 0 && (r != -EEXIST || !s->first)) /* a sequence number that is taken was written before */
                return r < 0 ? r : -EIO;
        if (s->first)
                store_drop_first(s);
        return 0;
}

int store_drain(Store *s, uint64_t now_us) {
        bool waiting = s->figures.degraded && s->retry_us > now_us && s->retry_us - now_us <= RETRY_US;
        unsigned moved = 0;
        int r = 0;

        while (r == 0 && (s->suspect || !waiting) && (s->first || s->events.first || s->suspect || !s->db)) {
                r = store_drain_one(s, now_us);
                if (r < 0 && s->suspect && moved++ == 0)
                        r = 0; /* into a new file, then */
        }
        if (r < 0)
                s->retry_us = now_us + RETRY_US;
        store_trim(s);
        return r == -ENOMEM ? r : 0;
}

/* ---- the open minute ---- */

/* Rollups that are due, a few at a time: nobody calls store_maintain() while a file is replayed. */
static int store_roll_up(Store *s, uint64_t now_us) {
        int r = s->db && !s->figures.degraded;

        for (unsigned i = 0; i < 4 && r > 0; i++)
                r = rollup_catch_up(s, now_us);
        if (r < 0)
                store_trouble(s, "rolling up", r);
        return r == -ENOMEM ? r : 0;
}

int store_close_minute(Store *s, uint64_t now_us) {
        TickRows rows = head_rows(s->head);
        HeadOwner owner;
        uint8_t *bytes;
        size_t size;
        int r;

        if (rows.n == 0)
                return 0;
        r = chunk_encode(&s->machine->layout, &rows, &bytes, &size);
        if (r == 0)
                r = store_pend(s, s->machine, head_owner(s->head), &rows, bytes, size);
        if (r < 0)
                return r;
        owner = *head_owner(s->head);
        owner.seq += rows.n;
        s->next_seq = owner.seq;
        r = store_drain(s, now_us);
        /* only now: until the commit a kill finds the minute in the head */
        head_restart(s->head, &owner);
        if (!head_is_file(s->head) && store_reopen_head(s, &owner) == -ENOMEM)
                return -ENOMEM;
        s->last_durable_us = now_us;
        return r < 0 ? r : store_roll_up(s, now_us);
}

/* DurableHead=: the open minute so far, for a power cut. */
int store_write_head(Store *s, uint64_t now_us) {
        TickRows rows = head_rows(s->head);
        const HeadOwner *owner = head_owner(s->head);
        sqlite3_stmt *q = s->stmts[STMT_HEAD_PUT];
        _cleanup_free_ uint8_t *bytes = NULL;
        int64_t topo = s->machine->topo;
        size_t size;
        int r;

        s->last_durable_us = now_us;
        if (!s->db || rows.n == 0 || s->figures.degraded)
                return 0;
        r = chunk_encode(&s->machine->layout, &rows, &bytes, &size);
        if (r < 0)
                return r;
        r = db_begin(s->db);
        if (r == 0)
                r = commit_topo(s, s->machine);
        if (r == 0)
                r = commit_epoch(s, owner->epoch, owner->epoch_us, owner->boot_id);
        if (r == 0)
                r = db_bind(q, "iiib", (int64_t) owner->seq, s->machine->topo, (int64_t) owner->epoch, bytes,
                        size);
        if (r == 0)
                r = db_run(q);
        if (r == 0)
                r = db_commit(s->db);
        if (r < 0) {
                store_trouble(s, "writing the open minute", r);
                db_rollback(s->db);
                s->machine->topo = topo;
        } else
                store_count_writes(s);
        return 0;
}
