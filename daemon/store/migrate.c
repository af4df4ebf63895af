/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Version 1 kept a row a tick (values, then reasons, in the order of the machine's sample layout). Version 2
 * packs minutes; rollups are not made here: the store finds them missing and catches up. From version 3 on columns
 * of a minute may refer to each other: what there is stays as it is, only older programs must not read on.
 */

#include <errno.h>
#include <string.h>

#include "model/machine.h"
#include "model/sample.h"
#include "store/chunk.h"
#include "store/migrate.h"
#include "store/schema.h"

#define MINUTE_US 60000000LL

/* Ticks of one minute, machine and epoch while they are gathered. */
typedef struct Gather {
        sqlite3 *db;
        sqlite3_stmt *insert, *topo;
        int64_t seq, t0, t1, topo_id, epoch, minute;
        Layout layout;
        bool known; /* the layout is that machine's */
        uint8_t *records;
        size_t n;
} Gather;

static void gather_deinit(Gather *g) {
        (void) sqlite3_finalize(g->insert);
        (void) sqlite3_finalize(g->topo);
        free(g->records);
}

static int gather_flush(Gather *g) {
        TickRows rows = {
                .records = g->records,
                .stride = tick_rows_stride(g->layout.n_values),
                .n = g->n,
                .n_values = g->layout.n_values,
        };
        _cleanup_free_ uint8_t *bytes = NULL;
        size_t size;
        int r;

        if (g->n == 0)
                return 0;
        r = chunk_encode(&g->layout, &rows, &bytes, &size);
        if (r == 0)
                r = db_bind(g->insert, "iiiiiib", g->seq, g->t0, g->t1, (int64_t) g->n, g->topo_id, g->epoch,
                        bytes, size);
        g->n = 0;
        return r < 0 ? r : db_run(g->insert);
}

/* The layout of another machine's ticks. A machine that cannot be read any more loses its ticks: known stays
 * false. */
static int gather_machine(Gather *g, int64_t topo) {
        _cleanup_(machine_freep) Machine *m = NULL;
        int r;

        g->topo_id = topo;
        g->known = false;
        r = db_bind(g->topo, "i", topo);
        if (r == 0)
                r = db_step(g->topo);
        if (r > 0 && machine_from_json((const char *) sqlite3_column_text(g->topo, 0) ?: "",
                             (size_t) sqlite3_column_bytes(g->topo, 0), &m) == 0) {
                uint8_t *records;

                sample_layout(m, &g->layout);
                records = realloc(g->records, CODEC_TICKS_MAX * tick_rows_stride(g->layout.n_values));
                if (!records)
                        r = -ENOMEM;
                else {
                        g->records = records;
                        g->known = true;
                }
        }
        db_reset(g->topo);
        return r < 0 ? r : 0;
}

/* A (seq, t0, t1, dt, topo, epoch, b) row. */
static int gather_tick(Gather *g, sqlite3_stmt *q) {
        int64_t seq = sqlite3_column_int64(q, 0), t1 = sqlite3_column_int64(q, 2),
                topo = sqlite3_column_int64(q, 4);
        TickRecord record = { (uint64_t) sqlite3_column_int64(q, 1), (uint64_t) t1,
                (uint64_t) sqlite3_column_int64(q, 3) };
        const uint8_t *b = sqlite3_column_blob(q, 6);
        size_t n, stride;
        int r = 0;

        if (g->n > 0 && (topo != g->topo_id || sqlite3_column_int64(q, 5) != g->epoch ||
                                (t1 - 1) / MINUTE_US != g->minute || seq != g->seq + (int64_t) g->n ||
                                t1 < g->t1 || g->n == CODEC_TICKS_MAX))
                r = gather_flush(g);
        if (r == 0 && topo != g->topo_id)
                r = gather_machine(g, topo);
        if (r < 0)
                return r;
        n = g->layout.n_values;
        stride = tick_rows_stride(n);
        if (!g->known || !b || (size_t) sqlite3_column_bytes(q, 6) != n * 9)
                return 0;
        if (g->n == 0) {
                g->seq = seq;
                g->t0 = (int64_t) record.start_us;
                g->epoch = sqlite3_column_int64(q, 5);
                g->minute = (t1 - 1) / MINUTE_US;
        }
        g->t1 = t1;
        memcpy(g->records + g->n * stride, &record, sizeof(record));
        memcpy(g->records + g->n * stride + sizeof(record), b, n * 9);
        g->n++;
        return 0;
}

static int migrate_ticks(Gather *g, void (*progress)(void *), void *userdata) {
        sqlite3_stmt *q = NULL;
        uint64_t rows = 0;
        int r;

        r = db_errno(sqlite3_prepare_v2(g->db,
                "INSERT INTO chunk (seq, t0, t1, n, topo, epoch, b) VALUES (?, ?, ?, ?, ?, ?, ?)", -1,
                &g->insert, NULL));
        if (r == 0)
                r = db_errno(
                        sqlite3_prepare_v2(g->db, "SELECT json FROM topo WHERE id = ?", -1, &g->topo, NULL));
        if (r == 0)
                r = db_errno(sqlite3_prepare_v2(g->db,
                        "SELECT seq, t0, t1, dt, topo, epoch, b FROM tick ORDER BY seq", -1, &q, NULL));
        while (r >= 0 && (r = db_step(q)) > 0) {
                r = gather_tick(g, q);
                if (progress && ++rows % 1024 == 0)
                        progress(userdata);
        }
        (void) sqlite3_finalize(q);
        return r < 0 ? r : gather_flush(g);
}

static int migrate_1(sqlite3 *db, void (*progress)(void *), void *userdata) {
        _cleanup_(gather_deinit) Gather g = { .db = db };
        int r;

        r = db_exec(db, "DROP TABLE metric");
        if (r == 0)
                r = schema_make_packed(db);
        if (r == 0)
                r = migrate_ticks(&g, progress, userdata);
        return r < 0 ? r : db_exec(db, "DROP TABLE tick");
}

static int migrate_2(sqlite3 *db, void (*progress)(void *), void *userdata) {
        return 0;
}

/* Step i leads from version i + 1 to the next. */
static int (*const migrate_steps[SCHEMA_VERSION - 1])(sqlite3 *, void (*)(void *), void *) = {
        migrate_1,
        migrate_2,
};

int migrate(sqlite3 *db, int64_t version, void (*progress)(void *userdata), void *userdata) {
        for (; version < SCHEMA_VERSION; version++) {
                int r;

                if (version < 1)
                        return -EUCLEAN;
                if (progress)
                        progress(userdata);
                r = db_begin(db);
                if (r < 0)
                        return r;
                r = migrate_steps[version - 1](db, progress, userdata);
                if (r == 0)
                        r = db_execf(db, "PRAGMA user_version=%d", (int) version + 1);
                if (r < 0) {
                        db_rollback(db);
                        return r;
                }
                r = db_commit(db);
                if (r < 0)
                        return r;
        }
        return 0;
}
