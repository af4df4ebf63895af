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
#include "store/writer.h"

#define FINAL_MINUTE \
        "coalesce((SELECT (t1 - 1) / 60000000 * 60000000 FROM chunk ORDER BY seq DESC LIMIT 1)," \
        " (SELECT (max(id) / 8192 + 1) * 60000000 FROM sys_1m), 0)"

/* And the rows, if any, behind the two units that may get more ticks yet. */
#define FINAL_AND_BEYOND(table, unit) \
        "SELECT us, coalesce((SELECT id / 8192 * " unit " FROM " table " WHERE id >= (us / " unit " + 2) * 8192" \
        " ORDER BY id LIMIT 1), 0), coalesce((SELECT (id / 8192 + 1) * " unit " FROM " table \
        " WHERE id >= (us / " unit " + 2) * 8192 ORDER BY id DESC LIMIT 1), 0) FROM final"

static const DbStatement reader_statements[READ_N] = {
        [READ_TOPO] = {"topo", "SELECT id, json FROM topo WHERE id = ?"},
        [READ_TOPO_NEWEST] = {"topo newest", "SELECT id, json FROM topo ORDER BY id DESC LIMIT 1"},
        [READ_CHUNK_RANGE] = {"chunk range", "SELECT min(seq), max(seq) FROM chunk WHERE t0 >= ?1 - "
                                             "600000000 AND t0 <= ?2 AND t1 > ?1 AND seq >= ?3"},
        [READ_CHUNK_NEXT] = {"chunk next",
                "SELECT seq, n, topo, epoch FROM chunk WHERE seq >= ? AND seq <= ? AND t1 > ? AND t0 <= ?"
                " ORDER BY seq LIMIT 1"},
        [READ_RUN_1M] = {"run 1m", "SELECT id / 8192, topo, epoch, dt FROM sys_1m WHERE id >= ? * 8192 AND "
                                   "id < ? * 8192 ORDER BY id LIMIT ?"},
        [READ_RUN_1H] = {"run 1h", "SELECT id / 8192, topo, epoch, dt FROM sys_1h WHERE id >= ? * 8192 AND "
                                   "id < ? * 8192 ORDER BY id LIMIT ?"},
        [READ_LABELS] = {"labels", "SELECT name, t0, t1, meta FROM label ORDER BY t0 DESC, id DESC"},
        [READ_LABELS_NAMED] = {"labels named",
                "SELECT name, t0, t1, meta FROM label WHERE name = ? ORDER BY t0 DESC, id DESC"},
        [READ_EVENTS] = {"events", "SELECT id, t, kind, cpu, text FROM event WHERE t >= ?1 AND t < ?2 AND "
                                   "(?3 IS NULL OR kind = ?3)"
                                   " ORDER BY t DESC, id DESC LIMIT ?4"},
        [READ_BOUNDS_RAW] = {"bounds raw",
                "SELECT (SELECT t0 FROM chunk ORDER BY t0 LIMIT 1), (SELECT max(t1) FROM chunk WHERE t0 >="
                " (SELECT max(t0) FROM chunk) - 600000000)"},
        [READ_BOUNDS_1M] = {"bounds 1m",
                "SELECT (min(id) / 8192 + 1) * 60000000, (max(id) / 8192 + 1) * 60000000 FROM sys_1m"},
        [READ_BOUNDS_1H] = {"bounds 1h",
                "SELECT (min(id) / 8192 + 1) * 3600000000, (max(id) / 8192 + 1) * 3600000000 FROM sys_1h"},
        [READ_TOPO_AT] = {"topo at",
                "SELECT coalesce((SELECT topo FROM chunk WHERE t0 >= ?1 - 600000000 AND t0 <= ?2 AND t1 > ?1"
                " ORDER BY t0 LIMIT 1),"
                " (SELECT topo FROM sys_1m WHERE id >= ?1 / 60000000 * 8192 AND id <= ?2 / 60000000 * 8192"
                " ORDER BY id LIMIT 1),"
                " (SELECT topo FROM sys_1h WHERE id >= ?1 / 3600000000 * 8192 AND id <= ?2 / 3600000000 * 8192"
                " ORDER BY id LIMIT 1), 0)"},
        /* the newest chunk's minute may get more ticks; hours are made when the next one has begun */
        [READ_FINAL_1M] = {"final 1m",
                "WITH final(us) AS (SELECT " FINAL_MINUTE ") " FINAL_AND_BEYOND("sys_1m", "60000000")},
        [READ_FINAL_1H] = {"final 1h",
                "WITH final(us) AS (SELECT min(" FINAL_MINUTE " / 3600000000 * 3600000000,"
                " coalesce((SELECT (max(id) / 8192 + 1) * 3600000000 FROM sys_1h), 0))) "
                FINAL_AND_BEYOND("sys_1h", "3600000000")},
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

static ReaderMachine *reader_machine_free(ReaderMachine *m) {
        if (m)
                (void) machine_free(m->machine);
        free(m);
        return NULL;
}
DEFINE_CLEANUP(ReaderMachine *, reader_machine_free);

static int reader_connect(StoreReader *r) {
        int64_t version;
        int code;

        code = db_open(r->path, r->live ? DB_OPEN_SHARED : DB_OPEN_READ, &r->db);
        if (code < 0)
                return code;
        code = schema_probe(r->db, &version);
        if (code == SCHEMA_EMPTY)
                return -ENOENT;
        if (code > 0)
                return code == SCHEMA_NEWER ? STORE_E_NEWER : STORE_E_FOREIGN;
        if (code == 0 && version < SCHEMA_READABLE)
                return STORE_E_OLDER;
        if (code == 0)
                code = db_prepare_all(r->db, reader_statements, READ_N, r->stmts);
        if (code == 0)
                sqlite3_progress_handler(r->db, 1000, reader_progress, r);
        return code;
}

static void reader_disconnect(StoreReader *r) {
        db_finalize_all(r->stmts, READ_N);
        r->db = db_close(r->db);
        for (size_t i = 0; i < READER_MACHINES_MAX; i++)
                r->machines[i] = reader_machine_free(r->machines[i]);
        r->newest = reader_machine_free(r->newest);
}

int reader_follow(StoreReader *r) {
        int code;

        if (!r->live || (r->generation == store_generation(r->live) && r->db))
                return 0;
        reader_disconnect(r);
        r->generation = store_generation(r->live);
        code = reader_connect(r);
        if (code != 0)
                reader_disconnect(r);
        if (code == -EUCLEAN || code == -EMEDIUMTYPE)
                store_suspect(r->live);
        return code == -ENOMEM ? code : 0;
}

int reader_error(StoreReader *r, int code) {
        if (r->live && (code == -EUCLEAN || code == -EMEDIUMTYPE))
                store_suspect(r->live);
        return code;
}

int store_reader_open(const char *path, Store *live, StoreReader **ret) {
        _cleanup_(store_reader_closep) StoreReader *reader = NULL;
        int r;

        reader = calloc(1, sizeof(*reader));
        if (!reader)
                return -ENOMEM;
        reader->live = live;
        reader->path = strdup(path);
        if (!reader->path)
                return -ENOMEM;
        if (live)
                r = reader_follow(reader);
        else
                r = reader_connect(reader);
        if (r != 0)
                return r;
        *ret = TAKE_PTR(reader);
        return 0;
}

StoreReader *store_reader_close(StoreReader *r) {
        if (!r)
                return NULL;
        reader_disconnect(r);
        free(r->path);
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
        const Machine *live = r->live ? store_live_machine(r->live) : NULL;
        ReaderMachine *m = NULL;
        sqlite3_stmt *q;
        int code;

        if (live) {
                *ret = live;
                return 0;
        }
        code = reader_follow(r);
        if (code < 0)
                return code;
        if (r->db) {
                q = r->stmts[READ_TOPO_NEWEST];
                code = db_step(q);
                if (code > 0 && r->newest && r->newest->topo == sqlite3_column_int64(q, 0))
                        code = 0;
                else if (code > 0)
                        code = reader_machine_from_row(q, &m);
                db_reset(q);
                if (code < 0)
                        return reader_error(r, code);
        }
        if (m) {
                (void) reader_machine_free(r->newest);
                r->newest = m;
        }
        *ret = r->newest ? r->newest->machine : NULL;
        return 0;
}

int store_reader_bounds(StoreReader *r, StoreTier tier, uint64_t *ret_oldest_us, uint64_t *ret_newest_us) {
        uint64_t oldest = 0, newest = 0, live_oldest, live_newest;
        sqlite3_stmt *q;
        int code;

        code = reader_follow(r);
        if (code < 0)
                return code;
        if (r->db) {
                q = r->stmts[READ_BOUNDS_RAW + tier];
                code = db_step(q);
                if (code > 0) {
                        oldest = (uint64_t) sqlite3_column_int64(q, 0);
                        newest = (uint64_t) sqlite3_column_int64(q, 1);
                }
                db_reset(q);
                if (code < 0)
                        return reader_error(r, code);
        }
        if (tier == TIER_RAW && r->live && store_live_bounds(r->live, &live_oldest, &live_newest)) {
                oldest = oldest > 0 ? MIN(oldest, live_oldest) : live_oldest;
                newest = MAX(newest, live_newest);
        }
        *ret_oldest_us = oldest;
        *ret_newest_us = newest;
        return 0;
}

int store_reader_machine_at(StoreReader *r, uint64_t start_us, uint64_t end_us, const Machine **ret) {
        sqlite3_stmt *q;
        const ReaderMachine *m;
        int64_t topo = 0;
        int code;

        *ret = NULL;
        code = reader_follow(r);
        if (code < 0 || !r->db)
                return code;
        q = r->stmts[READ_TOPO_AT];
        code = db_bind(q, "ii", (int64_t) MIN(start_us, (uint64_t) INT64_MAX),
                (int64_t) MIN(end_us, (uint64_t) INT64_MAX));
        if (code == 0)
                code = db_step(q);
        if (code > 0)
                topo = sqlite3_column_int64(q, 0);
        db_reset(q);
        if (code < 0)
                return reader_error(r, code);
        if (topo == 0)
                return 0;
        code = reader_machine(r, topo, &m);
        if (code == 0)
                *ret = m->machine;
        return code == -EBADMSG ? 0 : code;
}

int store_reader_final(StoreReader *r, StoreTier tier, StoreFinal *ret) {
        _cleanup_reset_ sqlite3_stmt *q = NULL;
        StoreFinal final = {};
        int code;

        code = reader_follow(r);
        if (code < 0)
                return code;
        if (r->db) {
                q = r->stmts[tier == TIER_1H ? READ_FINAL_1H : READ_FINAL_1M];
                code = db_step(q);
                if (code < 0)
                        return reader_error(r, code);
                if (code > 0)
                        final = (StoreFinal) {
                                .end_us = (uint64_t) sqlite3_column_int64(q, 0),
                                .resume_us = (uint64_t) sqlite3_column_int64(q, 1),
                                .resume_end_us = (uint64_t) sqlite3_column_int64(q, 2),
                        };
        }
        *ret = final;
        return 0;
}

int store_reader_labels(
        StoreReader *r, const char *name, int (*fn)(void *userdata, const StoreLabel *l), void *userdata) {
        _cleanup_reset_ sqlite3_stmt *q = NULL;
        int code;

        code = reader_follow(r);
        if (code < 0 || !r->db)
                return code;
        q = r->stmts[name ? READ_LABELS_NAMED : READ_LABELS];
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
        return reader_error(r, code);
}
