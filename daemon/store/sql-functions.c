/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two eponymous virtual tables over StoreScan. Their columns are those of the newest machine; older ticks
 * that lack one give null. Constraints are hints to the scan, sqlite checks every row again.
 */

#include <errno.h>
#include <string.h>

#include "model/machine.h"
#include "store/rollup-table.h"
#include "store/sql-functions.h"
#include "store/store.h"

enum {
        FIXED_T, /* n in cpu_agg */
        FIXED_CPU,
        FIXED_CORE,
        FIXED_PACKAGE,
        FIXED_DT,
        FIXED_N,
};

enum {
        PLAN_FROM = 1 << 0,
        PLAN_TO = 1 << 1,
        PLAN_CPU = 1 << 2,
};

#define SQL_COLUMNS_MAX 512

typedef struct SqlColumn {
        FieldId field;
        char state[16];
} SqlColumn;

typedef struct SqlTable {
        sqlite3_vtab base;
        const char *path; /* of the module's */
        bool aggregate;
        SqlColumn *columns; /* behind the fixed ones */
        size_t n;
} SqlTable;

typedef struct AggRow {
        int64_t cpu, core, package, n, dt;
        int64_t *sums, *counts; /* one a column */
} AggRow;

typedef struct SqlCursor {
        sqlite3_vtab_cursor base;
        StoreReader *reader;
        StoreScan *scan;
        const StoreBlock *block;
        size_t tick;
        uint32_t cpu;     /* index */
        int64_t only_cpu; /* id, -1: all */
        int64_t rowid;
        bool eof;
        /* cpu_agg */
        AggRow *rows;
        size_t n_rows, at;
} SqlCursor;

typedef struct SqlModule {
        char *path;
        bool aggregate;
} SqlModule;

static int sql_code(int error) {
        return error == -ENOMEM ? SQLITE_NOMEM : error < 0 || error > 0 ? SQLITE_ERROR : SQLITE_OK;
}

/* ---- columns ---- */

static bool sql_has(const SqlTable *t, FieldId field, const char *state) {
        for (size_t i = 0; i < t->n; i++)
                if (t->columns[i].field == field && strcmp(t->columns[i].state, state) == 0)
                        return true;
        return false;
}

/* All fields of CPUs, modules and cores, a column for each state's name. */
static int sql_collect(SqlTable *t, const Machine *m) {
        Layout l;

        sample_layout(m, &l);
        t->columns = calloc(SQL_COLUMNS_MAX, sizeof(*t->columns));
        if (!t->columns)
                return -ENOMEM;
        for (size_t i = 0; i < l.n_columns; i++) {
                FieldId field = l.columns[i].field;
                unsigned n_sets = field_is_by_state(field) ? MAX(m->n_idle_sets, 1u) : 1;

                if (rollup_scope(field_spec(field)->scope) != ROLLUP_CPU)
                        continue;
                for (unsigned set = 0; set < n_sets && t->n < SQL_COLUMNS_MAX; set++) {
                        char state[16];

                        rollup_state(m, field, l.columns[i].instance, (uint16_t) set, state);
                        if (sql_has(t, field, state))
                                continue;
                        t->columns[t->n].field = field;
                        memcpy(t->columns[t->n++].state, state, sizeof(state));
                }
        }
        return 0;
}

static int sql_declare(sqlite3 *db, const SqlTable *t) {
        sqlite3_str *text = sqlite3_str_new(db);
        char *sql;
        int code;

        sqlite3_str_appendf(text,
                "CREATE TABLE x(%s INTEGER, cpu INTEGER, core INTEGER, package INTEGER, dt INTEGER",
                t->aggregate ? "n" : "t");
        for (size_t i = 0; i < t->n; i++)
                sqlite3_str_appendf(text, ", \"%w%s%w\" INTEGER", field_spec(t->columns[i].field)->name,
                        t->columns[i].state[0] ? "_" : "", t->columns[i].state);
        sqlite3_str_appendall(text, t->aggregate ? ", t_from INTEGER HIDDEN, t_to INTEGER HIDDEN)" : ")");
        sql = sqlite3_str_finish(text);
        if (!sql)
                return SQLITE_NOMEM;
        code = sqlite3_declare_vtab(db, sql);
        sqlite3_free(sql);
        return code;
}

static int sql_disconnect(sqlite3_vtab *vtab) {
        SqlTable *t = (SqlTable *) (void *) vtab;

        free(t->columns);
        free(t);
        return SQLITE_OK;
}

static int sql_connect(
        sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **ret, char **ret_error) {
        _cleanup_(store_reader_closep) StoreReader *reader = NULL;
        const SqlModule *module = aux;
        const Machine *m = NULL;
        SqlTable *t;
        int r, code;

        r = store_reader_open(module->path, NULL, &reader);
        if (r == 0)
                r = store_reader_machine(reader, &m);
        if (r == 0 && !m)
                r = -ENODATA;
        if (r != 0) {
                *ret_error =
                        sqlite3_mprintf("%s", r == -ENODATA ? "no data yet" : "the database cannot be read");
                return sql_code(r);
        }
        t = calloc(1, sizeof(*t));
        if (!t)
                return SQLITE_NOMEM;
        t->path = module->path;
        t->aggregate = module->aggregate;
        r = sql_collect(t, m);
        code = r < 0 ? sql_code(r) : sql_declare(db, t);
        if (code != SQLITE_OK) {
                (void) sql_disconnect(&t->base);
                return code;
        }
        *ret = &t->base;
        return SQLITE_OK;
}

/* ---- plans ---- */

static int plan_of(const SqlTable *t, const struct sqlite3_index_constraint *c) {
        int from = FIXED_N + (int) t->n;

        if (t->aggregate) {
                if (c->op != SQLITE_INDEX_CONSTRAINT_EQ)
                        return 0;
                return c->iColumn == from ? PLAN_FROM : c->iColumn == from + 1 ? PLAN_TO : 0;
        }
        if (c->iColumn == FIXED_CPU && c->op == SQLITE_INDEX_CONSTRAINT_EQ)
                return PLAN_CPU;
        if (c->iColumn != FIXED_T)
                return 0;
        switch (c->op) {
        case SQLITE_INDEX_CONSTRAINT_GT:
        case SQLITE_INDEX_CONSTRAINT_GE:
                return PLAN_FROM;
        case SQLITE_INDEX_CONSTRAINT_LT:
        case SQLITE_INDEX_CONSTRAINT_LE:
                return PLAN_TO;
        default:
                return 0;
        }
}

/* idxNum: which of from, to, cpu are given, in this order; idxStr: the columns used, as sqlite counts them.
 */
static int sql_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info) {
        const SqlTable *t = (const SqlTable *) (const void *) vtab;
        int which[3] = { -1, -1, -1 }, n = 0;

        for (int i = 0; i < info->nConstraint; i++) {
                int plan = plan_of(t, &info->aConstraint[i]);

                if (plan && !info->aConstraint[i].usable && t->aggregate)
                        return SQLITE_CONSTRAINT;
                for (int k = 0; k < 3; k++)
                        if (plan == 1 << k && info->aConstraint[i].usable && which[k] < 0)
                                which[k] = i;
        }
        info->estimatedCost = 1e9;
        info->estimatedRows = 1000000;
        for (int k = 0; k < 3; k++) {
                if (which[k] < 0)
                        continue;
                info->idxNum |= 1 << k;
                info->aConstraintUsage[which[k]].argvIndex = ++n;
                info->aConstraintUsage[which[k]].omit = t->aggregate;
                info->estimatedCost /= 100;
                info->estimatedRows /= 10;
        }
        info->idxStr = sqlite3_mprintf("%llx", (unsigned long long) info->colUsed);
        info->needToFreeIdxStr = 1;
        return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

/* ---- cursors ---- */

static int sql_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **ret) {
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

static int sql_close(sqlite3_vtab_cursor *cursor) {
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

static int sql_filter(
        sqlite3_vtab_cursor *cursor, int plan, const char *used, int argc, sqlite3_value **argv) {
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

static int sql_next(sqlite3_vtab_cursor *cursor) {
        SqlCursor *c = (SqlCursor *) (void *) cursor;

        c->rowid++;
        if (c->rows) {
                c->eof = ++c->at >= c->n_rows;
                return SQLITE_OK;
        }
        c->cpu++;
        return sql_settle(c);
}

static int sql_eof(sqlite3_vtab_cursor *cursor) {
        return ((SqlCursor *) (void *) cursor)->eof;
}

static void agg_column(const SqlTable *t, const AggRow *row, sqlite3_context *out, int i) {
        const int64_t fixed[FIXED_N] = { row->n, row->cpu, row->core, row->package, row->dt };

        if (i < FIXED_N)
                sqlite3_result_int64(out, fixed[i]);
        else if ((size_t) i - FIXED_N < t->n && row->counts[i - FIXED_N] > 0)
                sqlite3_result_int64(out, row->sums[i - FIXED_N]);
}

static int sql_column(sqlite3_vtab_cursor *cursor, sqlite3_context *out, int i) {
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

static int sql_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *ret) {
        *ret = ((SqlCursor *) (void *) cursor)->rowid;
        return SQLITE_OK;
}

static void sql_module_free(void *userdata) {
        SqlModule *m = userdata;

        free(m->path);
        free(m);
}

int sql_functions_register(sqlite3 *db, const char *path) {
        static const sqlite3_module methods = {
                .xConnect = sql_connect, /* no xCreate: it exists by its name alone */
                .xBestIndex = sql_best_index,
                .xDisconnect = sql_disconnect,
                .xOpen = sql_open,
                .xClose = sql_close,
                .xFilter = sql_filter,
                .xNext = sql_next,
                .xEof = sql_eof,
                .xColumn = sql_column,
                .xRowid = sql_rowid,
        };
        static const char *const names[] = { "cpu_raw", "cpu_agg" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                SqlModule *m = calloc(1, sizeof(*m));
                int code;

                if (m)
                        m->path = strdup(path);
                if (!m || !m->path) {
                        free(m);
                        return -ENOMEM;
                }
                m->aggregate = i == 1;
                code = sqlite3_create_module_v2(db, names[i], &methods, m, sql_module_free);
                if (code != SQLITE_OK)
                        return db_errno(code);
        }
        return 0;
}
