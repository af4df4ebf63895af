/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Minutes and hours in SQL. A minute's rows are made from its chunk, in the same transaction; a minute lived
 * twice (a clock set back, a restart) is merged into its rows and makes its hour be made again. An hour's
 * rows are made from its minutes' when it is over. What is missing is found by its absence and made up for.
 *
 * Cells in a row: the sum; n where it is not the row's n, or minus the reason where there was no value; m2,
 * min, max where the metric has a spread. Null throughout: absent.
 */

#include <errno.h>
#include <math.h>
#include <string.h>

#include "store/rollup-rows.h"
#include "store/writer.h"

#define ROW_COLUMNS    5 /* id, topo, epoch, n, dt */
#define M2_EXACT_BELOW 1e6

/* ---- statements ---- */

void rollup_write_forget(Store *s) {
        for (unsigned i = 0; i < ROLLUP_SCOPES; i++)
                for (unsigned tier = 0; tier < 2; tier++)
                        db_finalize_all(s->rollup_stmts[i][tier], 2);
}

static void append_columns(sqlite3_str *text, const RollupTable *t) {
        sqlite3_str_appendall(text, "id, topo, epoch, n, dt");
        for (size_t i = 0; i < t->n; i++) {
                const char *c = t->metrics[i].column;

                sqlite3_str_appendf(text, ", \"%w\", \"%w_n\"", c, c);
                if (rollup_has_spread(t->metrics[i].field))
                        sqlite3_str_appendf(text, ", \"%w_m2\", \"%w_min\", \"%w_max\"", c, c, c);
        }
}

int rollup_prepare(Store *s, RollupScope scope, StoreTier tier, bool select, sqlite3_stmt **ret) {
        const RollupTable *t = &s->rollups.tables[scope];
        sqlite3_stmt **q = &s->rollup_stmts[scope][tier == TIER_1H][select];
        size_t n = ROW_COLUMNS;
        sqlite3_str *text;
        char *sql;
        int r = 0;

        if (!*q) {
                text = sqlite3_str_new(s->db);
                sqlite3_str_appendall(text, select ? "SELECT " : "INSERT OR REPLACE INTO ");
                if (!select)
                        sqlite3_str_appendf(text, "%s (", rollup_table_name(scope, tier));
                append_columns(text, t);
                for (size_t i = 0; i < t->n; i++)
                        n += rollup_has_spread(t->metrics[i].field) ? 5 : 2;
                if (select)
                        sqlite3_str_appendf(
                                text, " FROM %s WHERE id >= ? AND id < ?", rollup_table_name(scope, tier));
                else
                        sqlite3_str_appendall(text, ") VALUES (?");
                for (size_t i = 1; !select && i < n; i++)
                        sqlite3_str_appendall(text, i + 1 < n ? ", ?" : ", ?)");
                sql = sqlite3_str_finish(text);
                if (!sql)
                        return -ENOMEM;
                r = db_errno(sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, q, NULL));
                sqlite3_free(sql);
        }
        *ret = *q;
        return r;
}

/* Few numbers need more than six digits of a spread; integers of up to 2^47 take sqlite two bytes less than
 * a double. */
static double m2_stored(double m2) {
        return m2 < M2_EXACT_BELOW ? m2 : round(m2);
}

static int bind_cell(sqlite3_stmt *q, int *at, const RollupRow *row, const Rollup *c, bool spread) {
        int code = SQLITE_OK, i = *at;

        *at += spread ? 5 : 2;
        if (c->n == 0)
                return c->reason == REASON_NONE || c->reason == REASON_ABSENT
                               ? SQLITE_OK
                               : sqlite3_bind_int64(q, i + 1, -(int64_t) c->reason);
        code |= sqlite3_bind_int64(q, i, c->sum);
        if (c->n != row->n)
                code |= sqlite3_bind_int64(q, i + 1, c->n);
        if (!spread)
                return code;
        code |= sqlite3_bind_double(q, i + 2, m2_stored(c->m2));
        code |= sqlite3_bind_int64(q, i + 3, c->min);
        return code | sqlite3_bind_int64(q, i + 4, c->max);
}

int rollup_insert(Store *s, RollupScope scope, StoreTier tier, int64_t unit, const RollupRow *row) {
        const RollupTable *t = &s->rollups.tables[scope];
        int at = ROW_COLUMNS + 1, code, r;
        sqlite3_stmt *q;

        r = rollup_prepare(s, scope, tier, false, &q);
        if (r < 0)
                return r;
        (void) sqlite3_reset(q);
        code = sqlite3_clear_bindings(q);
        code |= sqlite3_bind_int64(q, 1, unit * ROLLUP_KEYS + row->key);
        code |= sqlite3_bind_int64(q, 2, row->topo);
        code |= sqlite3_bind_int64(q, 3, row->epoch);
        code |= sqlite3_bind_int64(q, 4, row->n);
        code |= sqlite3_bind_int64(q, 5, row->dt);
        for (size_t i = 0; i < t->n; i++)
                code |= bind_cell(q, &at, row, &row->cells[i], rollup_has_spread(t->metrics[i].field));
        if (code != SQLITE_OK)
                return -EINVAL;
        return db_run(q);
}

void rollup_read_cell(sqlite3_stmt *q, int at, int64_t row_n, bool spread, Rollup *ret) {
        int64_t n = sqlite3_column_int64(q, at + 1);

        *ret = (Rollup){.reason = REASON_ABSENT};
        if (sqlite3_column_type(q, at) == SQLITE_NULL) {
                if (n < 0 && -n < REASON_N)
                        ret->reason = (Reason) -n;
                return;
        }
        ret->reason = REASON_NONE;
        ret->n = sqlite3_column_type(q, at + 1) == SQLITE_NULL ? row_n : n;
        ret->sum = sqlite3_column_int64(q, at);
        if (!spread)
                return;
        ret->m2 = sqlite3_column_double(q, at + 2);
        ret->min = sqlite3_column_int64(q, at + 3);
        ret->max = sqlite3_column_int64(q, at + 4);
}

/* Merges a stepped row of a select statement. */
void rollup_merge_row(const RollupTable *t, sqlite3_stmt *q, RollupRow *row) {
        int64_t n = sqlite3_column_int64(q, 3);
        int at = ROW_COLUMNS;

        row->n += n;
        row->dt += sqlite3_column_int64(q, 4);
        for (size_t i = 0; i < t->n; i++) {
                bool spread = rollup_has_spread(t->metrics[i].field);
                Rollup cell;

                rollup_read_cell(q, at, n, spread, &cell);
                rollup_merge(&row->cells[i], &cell);
                at += spread ? 5 : 2;
        }
}

/* ---- rows of a table ---- */

void rollup_rows_deinit(RollupRows *r) {
        free(r->rows);
        free(r->cells);
}

int rollup_rows_init(RollupRows *r, size_t n, const RollupTable *t) {
        r->rows = calloc(MAX(n, (size_t) 1), sizeof(*r->rows));
        r->cells = calloc(MAX(n * t->n, (size_t) 1), sizeof(*r->cells));
        if (!r->rows || !r->cells)
                return -ENOMEM;
        r->n = n;
        for (size_t i = 0; i < n; i++)
                r->rows[i].cells = r->cells + i * t->n;
        return 0;
}

/* ---- an hour from its minutes ---- */

static int count_keys(Store *s, RollupScope scope, int64_t hour, int64_t *ret) {
        char text[200];

        (void) snprintf(text, sizeof(text),
                "SELECT count(DISTINCT id %% 8192) FROM %s WHERE id >= %lld AND id < %lld",
                rollup_table_name(scope, TIER_1M), (long long) (hour * 60 * ROLLUP_KEYS),
                (long long) ((hour + 1) * 60 * ROLLUP_KEYS));
        return db_query_i64(s->db, text, ret);
}

static int hour_table(Store *s, RollupScope scope, int64_t hour) {
        const RollupTable *t = &s->rollups.tables[scope];
        _cleanup_(rollup_rows_deinit) RollupRows rows = {};
        _cleanup_free_ uint16_t *row_of = NULL; /* key -> row + 1 */
        size_t n = 0;
        sqlite3_stmt *q;
        int64_t count = 0;
        int r;

        row_of = calloc(ROLLUP_KEYS, sizeof(*row_of));
        r = row_of ? rollup_prepare(s, scope, TIER_1M, true, &q) : -ENOMEM;
        if (r == 0)
                r = count_keys(s, scope, hour, &count);
        if (r == 0)
                r = rollup_rows_init(&rows, (size_t) count, t);
        if (r == 0)
                r = db_bind(q, "ii", hour * 60 * ROLLUP_KEYS, (hour + 1) * 60 * ROLLUP_KEYS);
        while (r == 0 && (r = db_step(q)) > 0) {
                int64_t key = sqlite3_column_int64(q, 0) % ROLLUP_KEYS;
                RollupRow *row;

                r = 0;
                if (row_of[key] == 0) {
                        if (n == rows.n)
                                continue;
                        row_of[key] = (uint16_t) ++n;
                        rows.rows[n - 1].key = key;
                }
                row = &rows.rows[row_of[key] - 1];
                row->topo = sqlite3_column_int64(q, 1);
                row->epoch = sqlite3_column_int64(q, 2);
                rollup_merge_row(t, q, row);
        }
        for (size_t i = 0; r == 0 && i < n; i++)
                r = rollup_insert(s, scope, TIER_1H, hour, &rows.rows[i]);
        return r;
}

int rollup_write_hour(Store *s, int64_t hour) {
        int r = 0;

        for (unsigned scope = 0; r == 0 && scope < ROLLUP_SCOPES; scope++)
                r = hour_table(s, (RollupScope) scope, hour);
        return r;
}
