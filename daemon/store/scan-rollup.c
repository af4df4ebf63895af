/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Minutes and hours. The sys row of a unit says which machine and epoch it belongs to; a block is a run of
 * units that agree, its other rows are fetched by id range. A row of a CPU that the run's machine does not
 * have (it went offline within the minute) is left out.
 */

#include <errno.h>
#include <math.h>
#include <string.h>

#include "store/scan.h"
#include "store/writer.h"

#define RUN_MAX   64
#define RUN_CELLS 200000 /* of 37 bytes: 7 MB, however many CPUs there are */

static uint64_t unit_us(const StoreScan *s) {
        return s->spec.tier == TIER_1H ? ROLLUP_HOUR_US : ROLLUP_MINUTE_US;
}

static bool wanted(const StoreScan *s, FieldId field) {
        for (size_t i = 0; i < s->spec.n_fields; i++)
                if (s->fields[i] == field)
                        return true;
        return false;
}

static bool wants_spread(const StoreScan *s, FieldId field) {
        return rollup_has_spread(field) && !(s->spec.no_spread & 1u << field_spec(field)->scope);
}

/* SELECT id, n, and the wanted metrics' cells; none where the table has no wanted metric. */
static int prepare_select(StoreScan *s, RollupScope scope) {
        const RollupTable *t = &s->tables.tables[scope];
        int position = 2, r;
        sqlite3_str *text;
        char *sql;

        s->positions[scope] = calloc(MAX(t->n, (size_t) 1), sizeof(int));
        if (!s->positions[scope])
                return -ENOMEM;
        text = sqlite3_str_new(s->reader->db);
        sqlite3_str_appendall(text, "SELECT id, n");
        for (size_t i = 0; i < t->n; i++) {
                const char *c = t->metrics[i].column;
                bool spread = wants_spread(s, t->metrics[i].field);

                s->positions[scope][i] = -1;
                if (!wanted(s, t->metrics[i].field))
                        continue;
                s->positions[scope][i] = position;
                position += spread ? 5 : 2;
                sqlite3_str_appendf(text, ", \"%w\", \"%w_n\"", c, c);
                if (spread)
                        sqlite3_str_appendf(text, ", \"%w_m2\", \"%w_min\", \"%w_max\"", c, c, c);
        }
        sqlite3_str_appendf(
                text, " FROM %s WHERE id >= ? AND id < ?", rollup_table_name(scope, s->spec.tier));
        sql = sqlite3_str_finish(text);
        if (!sql)
                return -ENOMEM;
        r = position > 2 ? db_errno(sqlite3_prepare_v2(s->reader->db, sql, -1, &s->selects[scope], NULL))
                         : 0;
        sqlite3_free(sql);
        return r;
}

int scan_rollup_init(StoreScan *s) {
        int r;

        db_finalize_all(s->selects, ROLLUP_SCOPES);
        for (unsigned i = 0; i < ROLLUP_SCOPES; i++) {
                free(s->positions[i]);
                s->positions[i] = NULL;
        }
        if (s->end_unit == 0) {
                s->next_unit = (s->spec.start_us + unit_us(s) - 1) / unit_us(s);
                s->end_unit = s->spec.end_us / unit_us(s);
        }
        if (!s->reader->db)
                return 0;
        r = rollup_tables_load(&s->tables, s->reader->db);
        for (unsigned i = 0; r == 0 && i < ROLLUP_SCOPES; i++)
                r = prepare_select(s, (RollupScope) i);
        return r;
}

/* The next run of units that agree in machine and epoch. *ret_n 0: none. */
static int take_run(StoreScan *s, int64_t *ret_topo, int64_t *ret_epoch, size_t *ret_n) {
        _cleanup_reset_ sqlite3_stmt *q =
                s->reader->stmts[s->spec.tier == TIER_1H ? READ_RUN_1H : READ_RUN_1M];
        size_t n = 0;
        int r;

        r = db_bind(q, "iii", (int64_t) s->next_unit, (int64_t) s->end_unit, (int64_t) RUN_MAX);
        while (r == 0 && (r = db_step(q)) > 0) {
                uint64_t unit = (uint64_t) sqlite3_column_int64(q, 0);

                r = 0;
                if (n > 0 && (sqlite3_column_int64(q, 1) != *ret_topo ||
                                     sqlite3_column_int64(q, 2) != *ret_epoch))
                        break;
                *ret_topo = sqlite3_column_int64(q, 1);
                *ret_epoch = sqlite3_column_int64(q, 2);
                s->start_us[n] = unit * unit_us(s);
                s->end_us[n] = s->start_us[n] + unit_us(s);
                s->dt_ns[n] = (uint64_t) sqlite3_column_int64(q, 3);
                s->next_unit = unit + 1;
                n++;
        }
        *ret_n = n;
        return r;
}

/* How many units of the machine's make a block. */
static size_t run_max(const StoreScan *s) {
        return MAX(MIN(RUN_CELLS / MAX(s->layout.n_values, (size_t) 1), (size_t) RUN_MAX), (size_t) 1);
}

/* Index of the unit in the run, n where it is not. */
static size_t run_index(const StoreScan *s, size_t n, uint64_t start_us) {
        size_t low = 0, high = n;

        while (low < high) {
                size_t mid = low + (high - low) / 2;

                if (s->start_us[mid] < start_us)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low < n && s->start_us[low] == start_us ? low : n;
}

static void clear_block(StoreScan *s, size_t n) {
        size_t all = s->layout.n_values * n;

        memset(s->values, 0, all * sizeof(*s->values));
        memset(s->reasons, REASON_OFFLINE, all);
        memset(s->n_ticks, 0, all * sizeof(*s->n_ticks));
        for (size_t i = 0; i < all; i++)
                s->m2[i] = NAN;
        memset(s->min, 0, all * sizeof(*s->min));
        memset(s->max, 0, all * sizeof(*s->max));
}

static void put_cell(StoreScan *s, size_t at, const Rollup *c, bool spread) {
        s->values[at] = c->sum;
        s->reasons[at] = (uint8_t) (c->n > 0 ? REASON_NONE : c->reason);
        s->n_ticks[at] = (uint32_t) c->n;
        if (!spread || c->n == 0)
                return;
        s->m2[at] = c->m2;
        s->min[at] = c->min;
        s->max[at] = c->max;
}

/* The entity of the scope whose values stand in the row of that key; UINT32_MAX: none. */
static uint32_t entity_of(const Machine *m, Scope scope, int64_t key) {
        uint32_t cpu;

        if (scope == SCOPE_SYSTEM)
                return 0;
        if (scope == SCOPE_PACKAGE)
                return machine_package_index(m, (int32_t) (key / 32), (int32_t) (key % 32) - 1);
        cpu = machine_cpu_index(m, (uint32_t) key);
        if (cpu == UINT32_MAX || scope == SCOPE_CPU)
                return cpu;
        if (scope == SCOPE_CORE)
                return m->cores[m->cpus[cpu].core].first_cpu == cpu ? m->cpus[cpu].core : UINT32_MAX;
        return m->cpus[cpu].module != UINT32_MAX && m->modules[m->cpus[cpu].module].first_cpu == cpu
                       ? m->cpus[cpu].module
                       : UINT32_MAX;
}

/* Where a column's cells of that row stand in the select; -1. Remembered from row to row while the idle set
 * stays. */
typedef struct Finder {
        uint32_t set; /* + 1; 0: not looked for yet */
        int position;
} Finder;

static int find_position(
        const StoreScan *s, RollupScope scope, const LayoutColumn *c, uint16_t set, Finder *f) {
        char state[16];
        int metric;

        if (f->set == set + 1u)
                return f->position;
        rollup_state(s->machine, c->field, c->instance, set, state);
        metric = rollup_find(&s->tables.tables[scope], c->field, state, c->scale);
        f->set = set + 1u;
        f->position = metric >= 0 ? s->positions[scope][metric] : -1;
        return f->position;
}

static void take_row(StoreScan *s, RollupScope scope, sqlite3_stmt *q, size_t n, Finder *finders) {
        int64_t id = sqlite3_column_int64(q, 0), key = id % ROLLUP_KEYS, ticks = sqlite3_column_int64(q, 1);
        size_t i = run_index(s, n, (uint64_t) (id / ROLLUP_KEYS) * unit_us(s));
        uint32_t entity[SCOPE_N];
        uint16_t set = 0;

        if (i == n)
                return;
        for (unsigned e = 0; e < SCOPE_N; e++)
                entity[e] = rollup_scope((Scope) e) == scope ? entity_of(s->machine, (Scope) e, key)
                                                             : UINT32_MAX;
        if (scope == ROLLUP_CPU && entity[SCOPE_CPU] != UINT32_MAX)
                set = s->machine->cpus[entity[SCOPE_CPU]].idle_set;
        for (size_t k = 0; k < s->layout.n_columns; k++) {
                const LayoutColumn *c = &s->layout.columns[k];
                Scope own = field_spec(c->field)->scope;
                Rollup cell = {.reason = REASON_ABSENT};
                int position;

                if (entity[own] == UINT32_MAX)
                        continue;
                position = find_position(s, scope, c, field_is_by_state(c->field) ? set : 0, &finders[k]);
                if (position >= 0)
                        rollup_read_cell(q, position, ticks, wants_spread(s, c->field), &cell);
                put_cell(s, (c->offset + entity[own]) * n + i, &cell, wants_spread(s, c->field));
        }
}

static int take_table(StoreScan *s, RollupScope scope, size_t n) {
        Finder finders[LAYOUT_COLUMNS_MAX] = {};
        _cleanup_reset_ sqlite3_stmt *q = s->selects[scope];
        int r;

        if (!q)
                return 0;
        r = db_bind(q, "ii", (int64_t) (s->start_us[0] / unit_us(s)) * ROLLUP_KEYS,
                (int64_t) (s->start_us[n - 1] / unit_us(s) + 1) * ROLLUP_KEYS);
        while (r == 0 && (r = db_step(q)) > 0) {
                take_row(s, scope, q, n, finders);
                r = 0;
        }
        return r;
}

int scan_rollup_next(StoreScan *s, const StoreBlock **ret) {
        int64_t topo = 0, epoch = 0;
        const ReaderMachine *m;
        size_t n;
        int r;

        if (!s->reader->db || s->next_unit >= s->end_unit)
                return 0;
        r = take_run(s, &topo, &epoch, &n);
        if (r < 0 || n == 0)
                return r;
        r = reader_machine(s->reader, topo, &m);
        if (r < 0)
                return r;
        scan_set_machine(s, topo, m->machine, &m->layout);
        if (n > run_max(s)) { /* the rest is another run */
                n = run_max(s);
                s->next_unit = s->start_us[n - 1] / unit_us(s) + 1;
        }
        r = scan_reserve(s, run_max(s));
        if (r < 0)
                return r;
        clear_block(s, n);
        for (unsigned scope = 0; r == 0 && scope < ROLLUP_SCOPES; scope++)
                r = take_table(s, (RollupScope) scope, n);
        if (r < 0)
                return r;
        s->block = (StoreBlock){
                .machine = s->machine,
                .layout = &s->layout,
                .epoch = (uint32_t) epoch,
                .n = n,
                .start_us = s->start_us,
                .end_us = s->end_us,
                .dt_ns = s->dt_ns,
                .values = s->values,
                .reasons = s->reasons,
                .n_ticks = s->n_ticks,
                .m2 = s->m2,
                .min = s->min,
                .max = s->max,
        };
        *ret = &s->block;
        return 1;
}
