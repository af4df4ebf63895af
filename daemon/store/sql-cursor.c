/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cursors of cpu_raw (a scan, tick by tick and CPU by CPU) and cpu_agg (the sums of a scan). */

#include <errno.h>
#include <string.h>

#include "model/machine.h"
#include "store/rollup-table.h"
#include "store/sql-private.h"

int sql_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **ret) {
        const SqlTable *t = (const SqlTable *) (const void *) vtab;
        SqlCursor *c = calloc(1, sizeof(*c));

        if (!c)
                return SQLITE_NOMEM;
        if (store_reader_open(t->path, NULL, &c->reader) != 0) {
                free(c);
                return SQLITE_CANTOPEN;
        }
        *ret = &c->base;
        return SQLITE_OK;
}

static void sql_reset(SqlCursor *c) {
        for (size_t i = 0; i < c->n_rows; i++) {
                free(c->rows[i].sums);
                free(c->rows[i].counts);
        }
        free(c->rows);
        c->rows = NULL;
        c->n_rows = c->at = 0;
        c->scan = store_scan_free(c->scan);
        c->block = NULL;
        c->rowid = 0;
        c->eof = false;
}

int sql_close(sqlite3_vtab_cursor *cursor) {
        SqlCursor *c = (SqlCursor *) (void *) cursor;

        sql_reset(c);
        (void) store_reader_close(c->reader);
        free(c);
        return SQLITE_OK;
}

/* The block's slot of a column for a CPU; SIZE_MAX where this machine has none. */
static size_t sql_slot(const StoreBlock *b, const SqlColumn *column, uint32_t cpu) {
        const Machine *m = b->machine;
        const LayoutColumn *c;
        uint32_t e;

        e = machine_parent(m, SCOPE_CPU, cpu, field_spec(column->field)->scope);
        if (e == UINT32_MAX)
                return SIZE_MAX;
        for (uint8_t i = 0; i < IDLE_STATES_MAX; i++) {
                char state[16];

                rollup_state(m, column->field, i, m->cpus[cpu].idle_set, state);
                if (strcmp(state, column->state) != 0)
                        continue;
                c = layout_find(b->layout, column->field, i);
                return c ? c->offset + e : SIZE_MAX;
        }
        return SIZE_MAX;
}

/* Moves on to a CPU that is wanted, in this tick, the next, or the next block. */
static int sql_settle(SqlCursor *c) {
        for (;;) {
                int r;

                if (c->block && c->only_cpu >= 0 && c->tick < c->block->n) {
                        uint32_t i = machine_cpu_index(c->block->machine, (uint32_t) c->only_cpu);

                        c->cpu = i >= c->cpu ? i : UINT32_MAX;
                }
                if (c->block && c->tick < c->block->n && c->cpu < c->block->machine->n_cpus)
                        return SQLITE_OK;
                c->cpu = 0;
                if (c->block && ++c->tick < c->block->n)
                        continue;
                c->tick = 0;
                r = store_scan_next(c->scan, &c->block);
                if (r <= 0) {
                        c->block = NULL;
                        c->eof = true;
                        return sql_code(r);
                }
        }
}

static AggRow *agg_row(SqlCursor *c, size_t n_columns, const Machine *m, uint32_t cpu) {
        AggRow *rows;
        int64_t id = m->cpus[cpu].id;

        for (size_t i = 0; i < c->n_rows; i++)
                if (c->rows[(i + cpu) % c->n_rows].cpu == id)
                        return &c->rows[(i + cpu) % c->n_rows];
        rows = realloc(c->rows, (c->n_rows + 1) * sizeof(*rows));
        if (!rows)
                return NULL;
        c->rows = rows;
        rows[c->n_rows] = (AggRow){
                .cpu = id,
                .core = m->cores[m->cpus[cpu].core].id,
                .package = m->packages[m->cpus[cpu].package].package,
                .sums = calloc(n_columns, sizeof(int64_t)),
                .counts = calloc(n_columns, sizeof(int64_t)),
        };
        c->n_rows++;
        return rows[c->n_rows - 1].sums && rows[c->n_rows - 1].counts ? &rows[c->n_rows - 1] : NULL;
}

static int agg_block(SqlCursor *c, const SqlTable *t, const StoreBlock *b) {
        for (uint32_t cpu = 0; cpu < b->machine->n_cpus; cpu++) {
                AggRow *row = agg_row(c, t->n, b->machine, cpu);

                if (!row)
                        return SQLITE_NOMEM;
                row->n += (int64_t) b->n;
                for (size_t i = 0; i < b->n; i++)
                        row->dt += (int64_t) b->dt_ns[i];
                for (size_t k = 0; k < t->n; k++) {
                        size_t slot = sql_slot(b, &t->columns[k], cpu);

                        for (size_t i = 0; slot != SIZE_MAX && i < b->n; i++)
                                if (b->reasons[slot * b->n + i] == REASON_NONE) {
                                        row->sums[k] += b->values[slot * b->n + i];
                                        row->counts[k]++;
                                }
                }
        }
        return SQLITE_OK;
}

static int agg_fill(SqlCursor *c, const SqlTable *t) {
        const StoreBlock *b;
        int r, code = SQLITE_OK;

        while (code == SQLITE_OK && (r = store_scan_next(c->scan, &b)) != 0)
                code = r < 0 ? sql_code(r) : agg_block(c, t, b);
        c->eof = c->n_rows == 0;
        return code;
}

/* Whole microseconds on the safe side; false where it is no number. */
static bool sql_bound(sqlite3_value *v, int64_t slack, uint64_t *ret) {
        int64_t i = sqlite3_value_int64(v);
        int type = sqlite3_value_numeric_type(v);

        if (type != SQLITE_INTEGER && type != SQLITE_FLOAT)
                return false;
        if (i > 0 || slack > 0)
                i += type == SQLITE_FLOAT || slack < 0 ? slack : 0;
        *ret = i > 0 ? (uint64_t) i : 0;
        return true;
}

int sql_filter(sqlite3_vtab_cursor *cursor, int plan, const char *used, int argc, sqlite3_value **argv) {
        SqlCursor *c = (SqlCursor *) (void *) cursor;
        const SqlTable *t = (const SqlTable *) (const void *) cursor->pVtab;
        unsigned long long mask = strtoull(used, NULL, 16);
        StoreScanSpec spec = { .end_us = INT64_MAX };
        FieldId fields[SQL_COLUMNS_MAX];
        int r;

        sql_reset(c);
        c->only_cpu = -1;
        if (plan & PLAN_FROM)
                (void) sql_bound(*argv++, t->aggregate ? 0 : -1, &spec.start_us);
        if (plan & PLAN_TO)
                (void) sql_bound(*argv++, 1, &spec.end_us);
        if (plan & PLAN_CPU && sqlite3_value_numeric_type(*argv) == SQLITE_INTEGER)
                c->only_cpu = MAX(sqlite3_value_int64(*argv), (sqlite3_int64) 0);
        for (size_t i = 0; i < t->n; i++)
                if (mask >> MIN(i + FIXED_N, (size_t) 63) & 1)
                        fields[spec.n_fields++] = t->columns[i].field;
        spec.fields = fields;
        r = store_scan_new(c->reader, &spec, &c->scan);
        if (r < 0)
                return sql_code(r);
        return t->aggregate ? agg_fill(c, t) : sql_settle(c);
}

int sql_next(sqlite3_vtab_cursor *cursor) {
        SqlCursor *c = (SqlCursor *) (void *) cursor;

        c->rowid++;
        if (c->rows) {
                c->eof = ++c->at >= c->n_rows;
                return SQLITE_OK;
        }
        c->cpu++;
        return sql_settle(c);
}

int sql_eof(sqlite3_vtab_cursor *cursor) {
        return ((SqlCursor *) (void *) cursor)->eof;
}

static void agg_column(const SqlTable *t, const AggRow *row, sqlite3_context *out, int i) {
        const int64_t fixed[FIXED_N] = { row->n, row->cpu, row->core, row->package, row->dt };

        if (i < FIXED_N)
                sqlite3_result_int64(out, fixed[i]);
        else if ((size_t) i - FIXED_N < t->n && row->counts[i - FIXED_N] > 0)
                sqlite3_result_int64(out, row->sums[i - FIXED_N]);
}

int sql_column(sqlite3_vtab_cursor *cursor, sqlite3_context *out, int i) {
        SqlCursor *c = (SqlCursor *) (void *) cursor;
        const SqlTable *t = (const SqlTable *) (const void *) cursor->pVtab;
        const StoreBlock *b = c->block;
        const MachineCpu *cpu;
        size_t slot;

        if (c->rows) {
                agg_column(t, &c->rows[c->at], out, i);
                return SQLITE_OK;
        }
        cpu = &b->machine->cpus[c->cpu];
        switch (i) {
        case FIXED_T:
                sqlite3_result_int64(out, (sqlite3_int64) b->end_us[c->tick]);
                break;
        case FIXED_CPU:
                sqlite3_result_int64(out, cpu->id);
                break;
        case FIXED_CORE:
                sqlite3_result_int64(out, b->machine->cores[cpu->core].id);
                break;
        case FIXED_PACKAGE:
                sqlite3_result_int64(out, b->machine->packages[cpu->package].package);
                break;
        case FIXED_DT:
                sqlite3_result_int64(out, (sqlite3_int64) b->dt_ns[c->tick]);
                break;
        default:
                slot = sql_slot(b, &t->columns[i - FIXED_N], c->cpu);
                if (slot != SIZE_MAX && b->reasons[slot * b->n + c->tick] == REASON_NONE)
                        sqlite3_result_int64(out, b->values[slot * b->n + c->tick]);
                break;
        }
        return SQLITE_OK;
}

int sql_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret) {
        *ret = ((SqlCursor *) (void *) cursor)->rowid;
        return SQLITE_OK;
}
