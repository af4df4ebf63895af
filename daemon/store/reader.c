/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A read-only view of a store: machines, labels, events, bounds. Every statement is stepped to its end or
 * reset before a function returns, so that no read transaction outlives a call and the WAL can always be
 * checkpointed. The deadline works through sqlite's progress handler, so that a slow statement is cut short
 * and not only the next one refused.
 */

#include <errno.h>
#include <string.h>
#include <time.h>

#include "cstated/timespan.h"

#include "store/reader.h"
#include "store/schema.h"

static const DbStatement reader_statements[READ_N] = {
        [READ_TOPO] = { "topo", "SELECT id, json FROM topo WHERE id = ?"},
        [READ_TOPO_NEWEST] = { "topo newest", "SELECT id, json FROM topo ORDER BY id DESC LIMIT 1"},
        [READ_TICK_FIRST] = { "tick first", "SELECT min(seq), max(seq) FROM tick WHERE t1 > ? AND t1 <= ?"},
        [READ_TICK_NEXT] = { "tick next",
                "SELECT seq, t0, t1, dt, topo, epoch, b FROM tick WHERE seq >= ? AND seq <= ? ORDER BY seq"},
        [READ_LABELS] = { "labels", "SELECT name, t0, t1, meta FROM label ORDER BY t0 DESC, id DESC"},
        [READ_LABELS_NAMED] = { "labels named",
                "SELECT name, t0, t1, meta FROM label WHERE name = ? ORDER BY t0 DESC, id DESC"},
        [READ_EVENTS] = { "events", "SELECT id, t, kind, cpu, text FROM event WHERE t >= ?1 AND t < ?2 AND "
                                   "(?3 IS NULL OR kind = ?3)"
                                   " ORDER BY t DESC, id DESC LIMIT ?4"},
        [READ_BOUNDS_RAW] = { "bounds raw", "SELECT min(t1), max(t1) FROM tick"},
};

static uint64_t now_ns(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * NSEC_PER_SEC + (uint64_t) ts.tv_nsec;
}

bool reader_past_deadline(const StoreReader *r) {
        return r->deadline_ns > 0 && now_ns() >= r->deadline_ns;
}

static int reader_progress(void *userdata) {
        return reader_past_deadline(userdata);
}

int store_reader_open(const char *path, Store *live, StoreReader **ret) {
        _cleanup_(store_reader_closep) StoreReader *reader = NULL;
        int64_t version;
        int r;

        reader = calloc(1, sizeof(*reader));
        if (!reader)
                return -ENOMEM;
        r = db_open(path, live ? DB_OPEN_SHARED : DB_OPEN_READ, &reader->db);
        if (r < 0)
                return r;
        r = schema_probe(reader->db, &version);
        if (r < 0)
                return r;
        if (r == SCHEMA_EMPTY)
                return -ENOENT;
        if (r != SCHEMA_OURS)
                return r == SCHEMA_NEWER ? STORE_E_NEWER : STORE_E_FOREIGN;
        r = db_exec(reader->db, "PRAGMA mmap_size=268435456");
        if (r == 0)
                r = db_prepare_all(reader->db, reader_statements, READ_N, reader->stmts);
        if (r < 0)
                return r;
        sqlite3_progress_handler(reader->db, 1000, reader_progress, reader);
        *ret = TAKE_PTR(reader);
        return 0;
}

static ReaderMachine *reader_machine_free(ReaderMachine *m) {
        if (m)
                (void) machine_free(m->machine);
        free(m);
        return NULL;
}
DEFINE_CLEANUP(ReaderMachine *, reader_machine_free);

StoreReader *store_reader_close(StoreReader *r) {
        if (!r)
                return NULL;
        for (size_t i = 0; i < READER_MACHINES_MAX; i++)
                (void) reader_machine_free(r->machines[i]);
        (void) reader_machine_free(r->newest);
        db_finalize_all(r->stmts, READ_N);
        r->db = db_close(r->db);
        free(r);
        return NULL;
}

void store_reader_set_deadline(StoreReader *r, uint64_t usec) {
        r->deadline_ns = usec > 0 ? now_ns() + usec * NSEC_PER_USEC : 0;
}

/* From a stepped (id, json) row. */
static int reader_machine_from_row(sqlite3_stmt *q, ReaderMachine **ret) {
        _cleanup_(reader_machine_freep) ReaderMachine *m = NULL;
        const char *json = (const char *) sqlite3_column_text(q, 1);
        int r;

        if (!json)
                return -ENOMEM;
        m = calloc(1, sizeof(*m));
        if (!m)
                return -ENOMEM;
        m->topo = sqlite3_column_int64(q, 0);
        r = machine_from_json(json, (size_t) sqlite3_column_bytes(q, 1), &m->machine);
        if (r < 0)
                return r;
        sample_layout(m->machine, &m->layout);
        *ret = TAKE_PTR(m);
        return 0;
}

int reader_machine(StoreReader *r, int64_t topo, const ReaderMachine **ret) {
        sqlite3_stmt *q = r->stmts[READ_TOPO];
        ReaderMachine *m = NULL;
        size_t at = 0;
        int code;

        while (at < READER_MACHINES_MAX - 1 && r->machines[at] && r->machines[at]->topo != topo)
                at++;
        if (r->machines[at] && r->machines[at]->topo == topo)
                m = r->machines[at];
        else {
                code = db_bind(q, "i", topo);
                if (code == 0)
                        code = db_step(q);
                if (code > 0)
                        code = reader_machine_from_row(q, &m);
                else if (code == 0)
                        code = -EBADMSG;
                db_reset(q);
                if (code < 0)
                        return code;
                (void) reader_machine_free(r->machines[at]);
        }
        memmove(&r->machines[1], &r->machines[0], at * sizeof(r->machines[0]));
        r->machines[0] = m;
        *ret = m;
        return 0;
}

int store_reader_machine(StoreReader *r, const Machine **ret) {
        sqlite3_stmt *q = r->stmts[READ_TOPO_NEWEST];
        ReaderMachine *m = NULL;
        int code;

        code = db_step(q);
        if (code > 0 && r->newest && r->newest->topo == sqlite3_column_int64(q, 0))
                code = 0;
        else if (code > 0)
                code = reader_machine_from_row(q, &m);
        db_reset(q);
        if (code < 0)
                return code;
        if (m) {
                (void) reader_machine_free(r->newest);
                r->newest = m;
        }
        *ret = r->newest ? r->newest->machine : NULL;
        return 0;
}

int store_reader_bounds(StoreReader *r, StoreTier tier, uint64_t *ret_oldest_us, uint64_t *ret_newest_us) {
        sqlite3_stmt *q = r->stmts[READ_BOUNDS_RAW];
        uint64_t oldest = 0, newest = 0;
        int code = 0;

        if (tier == TIER_RAW)
                code = db_step(q);
        if (code > 0) {
                oldest = (uint64_t) sqlite3_column_int64(q, 0);
                newest = (uint64_t) sqlite3_column_int64(q, 1);
        }
        db_reset(q);
        if (code < 0)
                return code;
        *ret_oldest_us = oldest;
        *ret_newest_us = newest;
        return 0;
}

int store_reader_labels(
        StoreReader *r, const char *name, int (*fn)(void *userdata, const StoreLabel *l), void *userdata) {
        _cleanup_reset_ sqlite3_stmt *q = r->stmts[name ? READ_LABELS_NAMED : READ_LABELS];
        int code;

        code = name ? db_bind(q, "t", name) : 0;
        if (code < 0)
                return code;
        while ((code = db_step(q)) > 0) {
                StoreLabel l = {
                        .start_us = (uint64_t) sqlite3_column_int64(q, 1),
                        .end_us = (uint64_t) sqlite3_column_int64(q, 2),
                        .meta = (char *) sqlite3_column_text(q, 3),
                };

                (void) snprintf(
                        l.name, sizeof(l.name), "%s", (const char *) sqlite3_column_text(q, 0) ?: "");
                code = fn(userdata, &l);
                if (code < 0)
                        return code;
        }
        return code;
}

int store_reader_events(StoreReader *r, uint64_t start_us, uint64_t end_us, const char *kind, size_t max,
        int (*fn)(void *userdata, const StoreEvent *e), void *userdata) {
        _cleanup_reset_ sqlite3_stmt *q = r->stmts[READ_EVENTS];
        int code;

        code = db_bind(q, "iiti", (int64_t) start_us, (int64_t) MIN(end_us, (uint64_t) INT64_MAX), kind,
                (int64_t) MIN(max, (size_t) INT64_MAX));
        if (code < 0)
                return code;
        while ((code = db_step(q)) > 0) {
                StoreEvent e = {
                        .id = (uint64_t) sqlite3_column_int64(q, 0),
                        .time_us = (uint64_t) sqlite3_column_int64(q, 1),
                        .kind = (const char *) sqlite3_column_text(q, 2) ?: "",
                        .cpu = sqlite3_column_type(q, 3) == SQLITE_NULL ? -1 : sqlite3_column_int64(q, 3),
                        .text = (const char *) sqlite3_column_text(q, 4) ?: "",
                };

                code = fn(userdata, &e);
                if (code < 0)
                        return code;
        }
        return code;
}
