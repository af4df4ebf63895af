/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The writer. It alone changes the file: machines (topo), epochs, events, labels and ticks. Trouble with the
 * disk is a state of the store (degraded), never an error of the caller: sampling goes on.
 *
 * A tick's sequence number is the store's own and only ever grows; wall time orders nothing.
 */

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "store/schema.h"
#include "store/store.h"

enum {
        STMT_TOPO_INSERT,
        STMT_TOPO_NEWEST,
        STMT_EPOCH_INSERT,
        STMT_EVENT_INSERT,
        STMT_LABEL_CLOSE,
        STMT_LABEL_INSERT,
        STMT_LABEL_DELETE,
        STMT_TICK_INSERT,
        STMT_TICK_EXPIRE,
        STMT_METRIC_INSERT,
        STMT_N,
};

static const DbStatement store_statements[STMT_N] = {
        [STMT_TOPO_INSERT] = { "topo insert", "INSERT INTO topo (t, json) VALUES (?, ?)"},
        [STMT_TOPO_NEWEST] = { "topo newest", "SELECT id, json FROM topo ORDER BY id DESC LIMIT 1"},
        [STMT_EPOCH_INSERT] = { "epoch insert", "INSERT INTO epoch (t, boot_id) VALUES (?, ?)"},
        [STMT_EVENT_INSERT] = { "event insert",
                "INSERT INTO event (t, kind, cpu, text) VALUES (?, ?, nullif(?, -1), ?)"},
        [STMT_LABEL_CLOSE] = { "label close", "UPDATE label SET t1 = ?3, meta = coalesce(?4, meta) WHERE "
                                             "name = ?1 AND t0 = ?2 AND t1 IS NULL"},
        [STMT_LABEL_INSERT] = { "label insert",
                "INSERT INTO label (name, t0, t1, meta) VALUES (?, ?, nullif(?, 0), ?)"},
        [STMT_LABEL_DELETE] = { "label delete", "DELETE FROM label WHERE name = ?"},
        [STMT_TICK_INSERT] = { "tick insert",
                "INSERT INTO tick (seq, t0, t1, dt, topo, epoch, b) VALUES (?, ?, ?, ?, ?, ?, ?)"},
        [STMT_TICK_EXPIRE] = { "tick expire",
                "DELETE FROM tick WHERE seq IN (SELECT seq FROM tick ORDER BY seq LIMIT 600) AND t1 < ?"},
        [STMT_METRIC_INSERT] = { "metric insert", "INSERT OR IGNORE INTO metric (id, scope, name, unit, "
                                                 "scale, kind) VALUES (?, ?, ?, ?, 1, ?)"},
};

struct Store {
        StoreConfig config;
        char *path;
        sqlite3 *db; /* NULL while the file cannot be opened */
        sqlite3_stmt *stmts[STMT_N];

        char *machine_json; /* of the current machine, for a reopened file */
        char boot_id[40];
        int64_t topo; /* 0: the machine has no row yet */
        int64_t epoch;
        uint32_t sample_epoch;
        bool has_epoch;
        uint64_t next_seq;
        uint8_t *buffer; /* one tick's blob */
        size_t buffer_size;
        StoreFigures figures;
};

const char *store_tier_name(StoreTier t) {
        static const char *const names[] = {"raw", "1m", "1h"};

        return names[t];
}

static void store_trouble(Store *s, const char *doing, int error) {
        s->figures.degraded = true;
        (void) snprintf(s->figures.problem, sizeof(s->figures.problem), "%s: %s%s%s", doing,
                strerror(-error), s->db ? ": " : "", s->db ? sqlite3_errmsg(s->db) : "");
}

static void store_well(Store *s, uint64_t now_us) {
        s->figures.degraded = false;
        s->figures.problem[0] = '\0';
        s->figures.last_commit_us = now_us;
        s->figures.commits++;
}

static void store_detach(Store *s) {
        db_finalize_all(s->stmts, STMT_N);
        s->db = db_close(s->db);
}

static const char *field_kind_text(FieldKind k) {
        static const char *const names[] = {
                [FIELD_COUNTER] = "counter",
                [FIELD_GAUGE] = "gauge",
                [FIELD_SPAN] = "span",
                [FIELD_DERIVED] = "derived",
        };

        return names[k];
}

static const char *field_unit_text(FieldUnit u) {
        static const char *const names[] = {
                [FIELD_UNIT_COUNT] = "1",
                [FIELD_UNIT_TICK] = "1024 ticks",
                [FIELD_UNIT_NS] = "ns",
                [FIELD_UNIT_USEC] = "us",
                [FIELD_UNIT_ENERGY] = "energy unit",
                [FIELD_UNIT_CELSIUS] = "C",
                [FIELD_UNIT_JIFFY] = "jiffy",
                [FIELD_UNIT_TIME] = "time unit",
                [FIELD_UNIT_BYTE] = "B",
        };

        return names[u];
}

/* What the columns mean, for a person who opens the file. */
static int store_write_metrics(Store *s) {
        sqlite3_stmt *q = s->stmts[STMT_METRIC_INSERT];
        int r = db_begin(s->db);

        for (unsigned i = 1; r == 0 && i < FIELD_N; i++) {
                const FieldSpec *f = field_spec((FieldId) i);

                r = db_bind(q, "itttt", (int64_t) i, scope_name(f->scope), f->name, field_unit_text(f->unit),
                        field_kind_text(f->kind));
                if (r == 0)
                        r = db_run(q);
        }
        if (r < 0) {
                db_rollback(s->db);
                return r;
        }
        return db_commit(s->db);
}

/* 0, STORE_E_*, or -errno with the store left without a file. */
static int store_attach(Store *s) {
        int64_t newest;
        int r;

        r = db_open(s->path, DB_OPEN_WRITE, &s->db);
        if (r < 0)
                return r;
        r = schema_open(s->db);
        if (r == SCHEMA_OURS)
                r = db_prepare_all(s->db, store_statements, STMT_N, s->stmts);
        else if (r > 0) {
                store_detach(s);
                return r == SCHEMA_NEWER ? STORE_E_NEWER : STORE_E_FOREIGN;
        }
        if (r == 0)
                r = store_write_metrics(s);
        if (r == 0)
                r = db_query_i64(s->db, "SELECT coalesce(max(seq), 0) FROM tick", &newest);
        if (r < 0) {
                store_trouble(s, "opening", r);
                store_detach(s);
                return r;
        }
        s->next_seq = MAX(s->next_seq, (uint64_t) newest + 1);
        s->topo = 0;
        s->has_epoch = false;
        return 0;
}

int store_open(const StoreConfig *c, uint64_t now_us, Store **ret) {
        _cleanup_(store_closep) Store *s = NULL;
        int r;

        s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        s->config = *c;
        s->next_seq = 1;
        s->path = strdup(c->path);
        if (!s->path)
                return -ENOMEM;
        (void) snprintf(s->figures.path, sizeof(s->figures.path), "%s", c->path);
        r = store_attach(s);
        if (r > 0 || r == -ENOMEM)
                return r;
        if (r < 0 && !s->figures.degraded)
                store_trouble(s, "opening", r);
        *ret = TAKE_PTR(s);
        return r;
}

Store *store_close(Store *s) {
        if (!s)
                return NULL;
        store_detach(s);
        free(s->path);
        free(s->machine_json);
        free(s->buffer);
        free(s);
        return NULL;
}

/* The current machine's topo row; the newest one serves where it says the same. */
static int store_ensure_topo(Store *s, uint64_t now_us) {
        sqlite3_stmt *q = s->stmts[STMT_TOPO_NEWEST];
        int r;

        if (s->topo > 0)
                return 0;
        r = db_step(q);
        if (r < 0)
                return r;
        if (r > 0 && strcmp((const char *) sqlite3_column_text(q, 1) ?: "", s->machine_json) == 0) {
                s->topo = sqlite3_column_int64(q, 0);
                db_reset(q);
                return 0;
        }
        db_reset(q);
        q = s->stmts[STMT_TOPO_INSERT];
        r = db_bind(q, "it", (int64_t) now_us, s->machine_json);
        if (r == 0)
                r = db_run(q);
        if (r == 0)
                s->topo = sqlite3_last_insert_rowid(s->db);
        return r;
}

static int store_ensure_epoch(Store *s, const SampleHeader *h) {
        sqlite3_stmt *q = s->stmts[STMT_EPOCH_INSERT];
        int r;

        if (s->has_epoch && s->sample_epoch == h->epoch)
                return 0;
        r = db_bind(q, "it", (int64_t) h->end_us, s->boot_id);
        if (r == 0)
                r = db_run(q);
        if (r < 0)
                return r;
        s->epoch = sqlite3_last_insert_rowid(s->db);
        s->sample_epoch = h->epoch;
        s->has_epoch = true;
        return 0;
}

int store_set_machine(Store *s, const Machine *m, uint64_t now_us) {
        char *json = machine_to_json(m);

        if (!json)
                return -ENOMEM;
        free(s->machine_json);
        s->machine_json = json;
        (void) snprintf(s->boot_id, sizeof(s->boot_id), "%s", m->boot_id);
        s->topo = 0;
        return 0;
}

static int store_pack_tick(Store *s, const Sample *sample, size_t *ret_n) {
        size_t n = sample->layout->n_values, size = n * (sizeof(int64_t) + 1);

        if (size > s->buffer_size) {
                uint8_t *b = realloc(s->buffer, size);

                if (!b)
                        return -ENOMEM;
                s->buffer = b;
                s->buffer_size = size;
        }
        memcpy(s->buffer, sample->values, n * sizeof(int64_t));
        memcpy(s->buffer + n * sizeof(int64_t), sample->reasons, n);
        *ret_n = size;
        return 0;
}

static int store_insert_tick(Store *s, const SampleHeader *h, size_t size) {
        sqlite3_stmt *q = s->stmts[STMT_TICK_INSERT];
        int r;

        r = store_ensure_topo(s, h->end_us);
        if (r == 0)
                r = store_ensure_epoch(s, h);
        if (r == 0)
                r = db_bind(q, "iiiiiib", (int64_t) s->next_seq, (int64_t) h->start_us, (int64_t) h->end_us,
                        (int64_t) h->dt_ns, s->topo, s->epoch, s->buffer, size);
        return r < 0 ? r : db_run(q);
}

int store_append(Store *s, const Sample *sample) {
        size_t size;
        int r;

        if (!s->machine_json)
                return -EINVAL;
        r = store_pack_tick(s, sample, &size);
        if (r < 0)
                return r;
        s->figures.ticks++;
        if (!s->db)
                r = store_attach(s);
        if (s->db) {
                int64_t topo = s->topo, epoch = s->epoch;
                bool has_epoch = s->has_epoch;

                r = db_begin(s->db);
                if (r == 0)
                        r = store_insert_tick(s, &sample->h, size);
                if (r == 0)
                        r = db_commit(s->db);
                if (r == 0) {
                        s->next_seq++;
                        store_well(s, sample->h.end_us);
                        return 0;
                }
                store_trouble(s, "writing", r);
                db_rollback(s->db);
                s->topo = topo;
                s->epoch = epoch;
                s->has_epoch = has_epoch;
        }
        s->figures.ticks_lost++;
        return 0;
}

/* Runs one bound statement outside a transaction; the store is degraded where it fails. */
static int store_run(Store *s, int bound, sqlite3_stmt *q, const char *doing) {
        int r = bound < 0 ? bound : db_run(q);

        if (r < 0)
                store_trouble(s, doing, r);
        return r;
}

int store_event(Store *s, uint64_t time_us, const char *kind, int64_t cpu, const char *text) {
        sqlite3_stmt *q = s->stmts[STMT_EVENT_INSERT];

        if (!s->db)
                return -EROFS;
        return store_run(s, db_bind(q, "itit", (int64_t) time_us, kind, cpu, text), q, "writing an event");
}

int store_flush(Store *s) {
        return 0;
}

int store_maintain(Store *s, uint64_t now_us) {
        sqlite3_stmt *q = s->stmts[STMT_TICK_EXPIRE];
        int r;

        if (!s->db || s->config.raw_retention_usec == 0 || now_us < s->config.raw_retention_usec)
                return 0;
        r = store_run(s, db_bind(q, "i", (int64_t) (now_us - s->config.raw_retention_usec)), q, "expiring");
        if (r < 0)
                return 0;
        return sqlite3_changes(s->db) >= 600;
}

int store_label_add(Store *s, const StoreLabel *l) {
        sqlite3_stmt *q = s->stmts[STMT_LABEL_CLOSE];
        int r;

        if (!s->db)
                return -EROFS;
        if (l->end_us > 0) {
                r = store_run(s,
                        db_bind(q, "tiit", l->name, (int64_t) l->start_us, (int64_t) l->end_us, l->meta), q,
                        "writing a label");
                if (r < 0 || sqlite3_changes(s->db) > 0)
                        return r;
        }
        q = s->stmts[STMT_LABEL_INSERT];
        return store_run(s, db_bind(q, "tiit", l->name, (int64_t) l->start_us, (int64_t) l->end_us, l->meta),
                q, "writing a label");
}

int store_label_remove(Store *s, const char *name) {
        sqlite3_stmt *q = s->stmts[STMT_LABEL_DELETE];
        int r;

        if (!s->db)
                return -EROFS;
        r = store_run(s, db_bind(q, "t", name), q, "removing a label");
        if (r < 0)
                return r;
        return sqlite3_changes(s->db) > 0 ? 0 : -ENOENT;
}

static uint64_t file_bytes(const char *path, const char *suffix) {
        _cleanup_free_ char *name = NULL;
        struct stat st;

        if (asprintf(&name, "%s%s", path, suffix) < 0)
                return 0;
        return stat(name, &st) == 0 ? (uint64_t) st.st_size : 0;
}

bool store_is_degraded(const Store *s, const char **ret_problem) {
        *ret_problem = s->figures.problem;
        return s->figures.degraded;
}

void store_figures(Store *s, StoreFigures *ret) {
        static const char *const queries[] = {
                "SELECT count(*) FROM tick",
                "SELECT coalesce(min(t1), 0) FROM tick",
                "SELECT coalesce(max(t1), 0) FROM tick",
        };
        int64_t v[3] = {};

        s->figures.bytes = file_bytes(s->path, "");
        s->figures.wal_bytes = file_bytes(s->path, "-wal");
        if (s->db) {
                for (size_t i = 0; i < ARRAY_SIZE(queries); i++)
                        (void) db_query_i64(s->db, queries[i], &v[i]);
                s->figures.tier[TIER_RAW] =
                        (StoreTierFigures){(uint64_t) v[0], (uint64_t) v[1], (uint64_t) v[2]};
        }
        *ret = s->figures;
}
