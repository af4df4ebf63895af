/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rollups that are missing are recognised by the absence of their row in the sys tables: after a migration,
 * a lost table, a merge into an hour that was closed. One minute or hour a call, each in a transaction of
 * its own.
 */

#include <errno.h>
#include <string.h>

#include "store/writer.h"

/* A (t1, epoch, chunk, topo, json) row. Chunks that cannot be read have no rollup. */
static int roll_chunk(Store *s, sqlite3_stmt *q) {
        _cleanup_(store_machine_unrefp) StoreMachine *m = NULL;
        char *json = strdup((const char *) sqlite3_column_text(q, 4) ?: "");
        int r;

        if (!json)
                return -ENOMEM;
        r = store_machine_new(json, NULL, 0, &m);
        if (r < 0) {
                free(json);
                return r == -EBADMSG ? 0 : r;
        }
        m->topo = sqlite3_column_int64(q, 3);
        r = rollup_ensure_metrics(s, m);
        if (r == 0)
                r = rollup_write_minute(s, m, sqlite3_column_int64(q, 1),
                        (uint64_t) sqlite3_column_int64(q, 0), sqlite3_column_blob(q, 2),
                        (size_t) sqlite3_column_bytes(q, 2));
        return r == -EBADMSG ? 0 : r;
}

int rollup_write_all_of_minute(Store *s, int64_t minute) {
        sqlite3_stmt *q = s->stmts[STMT_CHUNK_OF_MINUTE];
        int r = 1;

        for (int64_t i = 0; r > 0; i++) {
                r = db_bind(q, "ii", minute, i);
                if (r == 0)
                        r = db_step(q);
                if (r > 0) {
                        r = roll_chunk(s, q);
                        if (r == 0)
                                r = 1;
                }
                db_reset(q);
        }
        return r;
}

static int in_transaction(Store *s, int (*fn)(Store *s, int64_t unit), int64_t unit) {
        int r = db_begin(s->db);

        if (r == 0)
                r = fn(s, unit);
        if (r == 0)
                r = db_commit(s->db);
        if (r < 0) {
                db_rollback(s->db);
                s->metrics_topo = 0;
                (void) rollup_tables_load(&s->rollups, s->db);
        }
        return r;
}

/* 1: *ret is what the bound statement gives in that column, then 0. */
static int first_i64(sqlite3_stmt *q, int bound, int64_t ret[2]) {
        int r = bound;

        if (r == 0)
                r = db_step(q);
        if (r > 0)
                for (int i = 0; i < 2; i++)
                        ret[i] = sqlite3_column_int64(q, i);
        db_reset(q);
        return r;
}

static int64_t before(uint64_t now_us, uint64_t span_us) {
        return now_us > span_us ? (int64_t) (now_us - span_us) : 0;
}

static int catch_up_minute(Store *s, uint64_t now_us) {
        int64_t row[2];
        int r;

        r = first_i64(s->stmts[STMT_CHUNK_UNROLLED],
                db_bind(s->stmts[STMT_CHUNK_UNROLLED], "ii", s->unrolled_seq,
                        before(retain_now(s, now_us), s->config.minute_retention_usec)),
                row);
        if (r <= 0) {
                s->more_unrolled = r < 0;
                return r;
        }
        s->unrolled_seq = row[0];
        r = in_transaction(s, rollup_write_all_of_minute, row[1]);
        return r < 0 ? r : 1;
}

static int write_hour(Store *s, int64_t hour) {
        int r = rollup_write_hour(s, hour);

        return r < 0 ? r : db_run(s->stmts[STMT_EXPIRE_TOPO]);
}

int rollup_catch_up(Store *s, uint64_t now_us) {
        int64_t hour = before(now_us, 1) / (int64_t) ROLLUP_HOUR_US,
                row[2]; /* an end belongs to what it ends */
        int r;

        if (s->more_unrolled) {
                r = catch_up_minute(s, now_us);
                if (r != 0)
                        return r;
        }
        /* the last minute of an hour may be committed when the next one begins */
        if (!s->more_hours && hour == s->hours_checked)
                return 0;
        if (head_rows(s->head).n > 0 && s->first_head_us / ROLLUP_HOUR_US < (uint64_t) hour)
                hour = (int64_t) (s->first_head_us / ROLLUP_HOUR_US);
        r = first_i64(s->stmts[STMT_HOUR_MISSING],
                db_bind(s->stmts[STMT_HOUR_MISSING], "ii",
                        before(retain_now(s, now_us), s->config.hour_retention_usec) / (int64_t) ROLLUP_HOUR_US, hour),
                row);
        if (r > 0) {
                r = in_transaction(s, write_hour, row[0]);
                return r < 0 ? r : 1;
        }
        if (r == 0) {
                s->more_hours = false;
                s->hours_checked = hour;
        }
        return r;
}
