/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A minute's rows from its chunk: every column of the chunk, entity by entity, and the ratios tick by tick.
 */

#include <errno.h>
#include <string.h>

#include "store/rollup-rows.h"
#include "store/writer.h"

typedef struct Minute {
        Store *store;
        const StoreMachine *machine;
        Chunk chunk;
        RollupRows scopes[ROLLUP_SCOPES];
        size_t widest; /* values that a column can have */
        int64_t *values, *denominators, *ratios;
        uint8_t *reasons, *denominator_reasons, *ratio_reasons;
        uint64_t *dt;
} Minute;

static void minute_deinit(Minute *m) {
        for (unsigned i = 0; i < ROLLUP_SCOPES; i++)
                rollup_rows_deinit(&m->scopes[i]);
        chunk_deinit(&m->chunk);
        free(m->values);
        free(m->denominators);
        free(m->ratios);
        free(m->reasons);
        free(m->denominator_reasons);
        free(m->ratio_reasons);
        free(m->dt);
}

static int minute_alloc(Minute *m) {
        const Machine *machine = m->machine->machine;
        const RollupTables *t = &m->store->rollups;
        size_t n;

        m->widest = MAX(machine->n_cpus, 1u);
        n = m->widest * m->chunk.n;
        m->values = malloc(n * 8);
        m->denominators = malloc(n * 8);
        m->ratios = malloc(n * 8);
        m->reasons = malloc(n);
        m->denominator_reasons = malloc(n);
        m->ratio_reasons = malloc(n);
        m->dt = malloc(3 * m->chunk.n * sizeof(*m->dt));
        if (!m->values || !m->denominators || !m->ratios || !m->reasons || !m->denominator_reasons ||
                !m->ratio_reasons || !m->dt)
                return -ENOMEM;
        if (rollup_rows_init(&m->scopes[ROLLUP_CPU], machine->n_cpus, &t->tables[ROLLUP_CPU]) < 0 ||
                rollup_rows_init(&m->scopes[ROLLUP_PKG], machine->n_packages, &t->tables[ROLLUP_PKG]) < 0 ||
                rollup_rows_init(&m->scopes[ROLLUP_SYS], 1, &t->tables[ROLLUP_SYS]) < 0)
                return -ENOMEM;
        return 0;
}

/* Keys and what all metrics share. */
static int minute_rows(Minute *m, int64_t epoch) {
        static const Scope scopes[ROLLUP_SCOPES] = { SCOPE_CPU, SCOPE_PACKAGE, SCOPE_SYSTEM };
        uint64_t dt = 0, *times = m->dt;
        int r;

        r = chunk_times(&m->chunk, times + m->chunk.n, times + 2 * m->chunk.n, times);
        if (r < 0)
                return r;
        for (size_t i = 0; i < m->chunk.n; i++)
                dt += m->dt[i];
        for (unsigned i = 0; i < ROLLUP_SCOPES; i++)
                for (size_t e = 0; e < m->scopes[i].n; e++) {
                        RollupRow *row = &m->scopes[i].rows[e];

                        row->key = rollup_key(m->machine->machine, scopes[i], (uint32_t) e);
                        row->topo = m->machine->topo;
                        row->epoch = epoch;
                        row->n = (int64_t) m->chunk.n;
                        row->dt = (int64_t) dt;
                }
        return 0;
}

/* Adds a column's values to their cells. */
static void minute_add(Minute *m, FieldId field, uint8_t instance, double scale, const int64_t *values,
        const uint8_t *reasons) {
        const Machine *machine = m->machine->machine;
        Scope scope = field_spec(field)->scope;
        RollupRows *rows = &m->scopes[rollup_scope(scope)];
        const RollupTable *t = &m->store->rollups.tables[rollup_scope(scope)];
        size_t n = m->chunk.n;
        int metric = -1;
        uint16_t set = 0;

        for (uint32_t e = 0; e < machine_n_entities(machine, scope); e++) {
                uint32_t row = rollup_scope(scope) == ROLLUP_CPU ? machine_first_cpu(machine, scope, e) : e;

                if (e == 0 || (field_is_by_state(field) && machine->cpus[row].idle_set != set)) {
                        char state[16];

                        set = rollup_scope(scope) == ROLLUP_CPU ? machine->cpus[row].idle_set : 0;
                        rollup_state(machine, field, instance, set, state);
                        metric = rollup_find(t, field, state, scale);
                }
                if (metric >= 0)
                        rollup_add(&rows->rows[row].cells[metric], values + e * n, reasons + e * n, n);
        }
}

/* All instances of a field added up, value by value; null where none has a value. -ENODATA. */
static int minute_gather(Minute *m, FieldId field, int64_t *values, uint8_t *reasons, bool add) {
        size_t n = machine_n_entities(m->machine->machine, field_spec(field)->scope) * m->chunk.n;
        bool any = add;

        for (size_t i = 0; i < m->machine->layout.n_columns; i++) {
                const LayoutColumn *c = &m->machine->layout.columns[i];
                int r;

                if (c->field != field)
                        continue;
                r = chunk_column(&m->chunk, field, c->instance, any ? m->ratios : values,
                        any ? m->ratio_reasons : reasons);
                if (r == -ENODATA)
                        continue;
                if (r < 0)
                        return r;
                for (size_t k = 0; any && k < n; k++)
                        if (m->ratio_reasons[k] == REASON_NONE) {
                                values[k] = (int64_t) ((uint64_t) values[k] + (uint64_t) m->ratios[k]);
                                reasons[k] = REASON_NONE;
                        }
                any = true;
        }
        return any ? 0 : -ENODATA;
}

static int minute_denominator(Minute *m, const RollupRatio *ratio) {
        if (ratio->denominator != FIELD_NONE)
                return minute_gather(m, ratio->denominator, m->denominators, m->denominator_reasons, false);
        for (size_t e = 0; e < machine_n_entities(m->machine->machine, field_spec(ratio->field)->scope);
                e++) {
                memcpy(m->denominators + e * m->chunk.n, m->dt, m->chunk.n * 8);
                memset(m->denominator_reasons + e * m->chunk.n, REASON_NONE, m->chunk.n);
        }
        return 0;
}

static int minute_ratio(Minute *m, const RollupRatio *ratio) {
        size_t n = machine_n_entities(m->machine->machine, field_spec(ratio->field)->scope) * m->chunk.n;
        int r;

        r = minute_gather(m, ratio->numerator, m->values, m->reasons, false);
        if (r == 0 && ratio->numerator2 != FIELD_NONE)
                r = minute_gather(m, ratio->numerator2, m->values, m->reasons, true);
        if (r == 0 && ratio->numerator3 != FIELD_NONE)
                r = minute_gather(m, ratio->numerator3, m->values, m->reasons, true);
        if (r == 0)
                r = minute_denominator(m, ratio);
        if (r < 0)
                return r == -ENODATA ? 0 : r;
        rollup_ratio_column(ratio, rollup_column_scale(m->machine, ratio->numerator, 0), m->values,
                m->reasons, m->denominators, m->denominator_reasons, n, m->ratios, m->ratio_reasons);
        minute_add(m, ratio->field, 0, ratio->scale, m->ratios, m->ratio_reasons);
        return 0;
}

static int minute_columns(Minute *m) {
        const Layout *l = &m->machine->layout;
        int r = 0;

        for (size_t i = 0; r == 0 && i < l->n_columns; i++) {
                const LayoutColumn *c = &l->columns[i];

                r = chunk_column(&m->chunk, c->field, c->instance, m->values, m->reasons);
                if (r == 0)
                        minute_add(m, c->field, c->instance,
                                rollup_column_scale(m->machine, c->field, c->instance), m->values,
                                m->reasons);
                else if (r == -ENODATA)
                        r = 0;
        }
        for (size_t i = 0; r == 0 && i < rollup_ratios_n; i++)
                if (rollup_ratio_applies(m->machine, &rollup_ratios[i]))
                        r = minute_ratio(m, &rollup_ratios[i]);
        return r;
}

/* Rows of the minute that are there already are merged in. */
static int minute_merge(Minute *m, RollupScope scope, int64_t minute) {
        const RollupTable *t = &m->store->rollups.tables[scope];
        sqlite3_stmt *q;
        int r;

        r = rollup_prepare(m->store, scope, TIER_1M, true, &q);
        if (r == 0)
                r = db_bind(q, "ii", minute * ROLLUP_KEYS, (minute + 1) * ROLLUP_KEYS);
        while (r == 0 && (r = db_step(q)) > 0) {
                int64_t key = sqlite3_column_int64(q, 0) % ROLLUP_KEYS;

                r = 0;
                for (size_t e = 0; e < m->scopes[scope].n; e++)
                        if (m->scopes[scope].rows[e].key == key)
                                rollup_merge_row(t, q, &m->scopes[scope].rows[e]);
        }
        return r;
}

int rollup_write_minute(
        Store *s, const StoreMachine *m, int64_t epoch, uint64_t t1, const uint8_t *bytes, size_t size) {
        _cleanup_(minute_deinit) Minute minute = { .store = s, .machine = m };
        int64_t number = (int64_t) ((t1 > 0 ? t1 - 1 : 0) / ROLLUP_MINUTE_US);
        int r;

        r = chunk_open_memory(&minute.chunk, bytes, size);
        if (r == 0 &&
                memcmp(minute.chunk.n_entities, m->layout.n_entities, sizeof(m->layout.n_entities)) != 0)
                r = -EBADMSG;
        if (r == 0)
                r = minute_alloc(&minute);
        if (r == 0)
                r = minute_rows(&minute, epoch);
        if (r == 0)
                r = minute_columns(&minute);
        for (unsigned scope = 0; r == 0 && scope < ROLLUP_SCOPES; scope++) {
                r = minute_merge(&minute, (RollupScope) scope, number);
                for (size_t e = 0; r == 0 && e < minute.scopes[scope].n; e++)
                        if (minute.scopes[scope].rows[e].key >= 0)
                                r = rollup_insert(s, (RollupScope) scope, TIER_1M, number,
                                        &minute.scopes[scope].rows[e]);
        }
        /* an hour that was made already has to be made again */
        if (r == 0)
                r = db_bind(s->stmts[STMT_HOUR_FORGET], "i", number / 60);
        if (r == 0)
                r = db_run(s->stmts[STMT_HOUR_FORGET]);
        if (r == 0 && sqlite3_changes(s->db) > 0)
                s->more_hours = true;
        return r;
}
