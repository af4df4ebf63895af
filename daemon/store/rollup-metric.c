/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Columns come as metrics come: two or five a metric, in the tables of both tiers, under a name that a
 * person can read. A column that exists is never given another meaning.
 */

#include <errno.h>
#include <string.h>

#include "store/rollup-rows.h"
#include "store/schema.h"
#include "store/writer.h"

double rollup_column_scale(const StoreMachine *m, FieldId field, uint8_t instance) {
        const LayoutColumn *c = layout_find(&m->machine->layout, field, instance);

        return c ? c->scale : 1;
}

/* A column name that is free: the field's, the state's, and a number where that is not enough. */
static void metric_name(const RollupTable *t, FieldId field, const char *state, char *ret, size_t size) {
        char clean[16];
        size_t n = 0;
        bool taken = true;

        for (; state[n] && n < sizeof(clean) - 1; n++)
                clean[n] = ((state[n] | 0x20) >= 'a' && (state[n] | 0x20) <= 'z') ||
                                           (state[n] >= '0' && state[n] <= '9')
                                   ? state[n]
                                   : '_';
        clean[n] = '\0';
        for (unsigned k = 1; taken && k < 1000; k++) {
                char number[16] = "";

                if (k > 1)
                        (void) snprintf(number, sizeof(number), "_v%u", k);
                (void) snprintf(
                        ret, size, "%s%s%s%s", field_spec(field)->name, clean[0] ? "_" : "", clean, number);
                taken = false;
                for (size_t i = 0; i < t->n; i++)
                        taken = taken || strcasecmp(t->metrics[i].column, ret) == 0;
        }
}

static const struct {
        const char *suffix, *type;
} cell_columns[] = { { "", "INTEGER" }, { "_n", "INTEGER" }, { "_m2", "REAL" }, { "_min", "INTEGER" },
        { "_max", "INTEGER" } };

static size_t n_cell_columns(const RollupMetric *m) {
        return rollup_has_spread(m->field) ? ARRAY_SIZE(cell_columns) : 2;
}

/* An empty table is made anew with all its columns: adding three hundred one by one takes a third of a
 * second. */
static int remake_table(Store *s, RollupScope scope, StoreTier tier) {
        const RollupTable *t = &s->rollups.tables[scope];
        sqlite3_str *text = sqlite3_str_new(s->db);
        char *columns;
        int r;

        for (size_t i = 0; i < t->n; i++)
                for (size_t k = 0; k < n_cell_columns(&t->metrics[i]); k++)
                        sqlite3_str_appendf(text, ", \"%w%s\" %s", t->metrics[i].column,
                                cell_columns[k].suffix, cell_columns[k].type);
        columns = sqlite3_str_finish(text);
        if (!columns)
                return -ENOMEM;
        r = db_execf(s->db, "DROP TABLE %s", rollup_table_name(scope, tier));
        if (r == 0)
                r = schema_make_rollup(s->db, scope, tier, columns);
        sqlite3_free(columns);
        return r;
}

/* Columns for the metrics from `first` on. */
static int add_columns(Store *s, RollupScope scope, StoreTier tier, size_t first) {
        const RollupTable *t = &s->rollups.tables[scope];
        const char *name = rollup_table_name(scope, tier);
        char text[64];
        int64_t any;
        int r = 0;

        (void) snprintf(text, sizeof(text), "SELECT 1 FROM %s LIMIT 1", name);
        if (db_query_i64(s->db, text, &any) == -ENODATA)
                return remake_table(s, scope, tier);
        for (size_t i = first; i < t->n; i++)
                for (size_t k = 0; r == 0 && k < n_cell_columns(&t->metrics[i]); k++)
                        r = db_execf(s->db, "ALTER TABLE %s ADD COLUMN \"%s%s\" %s", name,
                                t->metrics[i].column, cell_columns[k].suffix, cell_columns[k].type);
        return r;
}

static const char *unit_text(FieldUnit u) {
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

static const char *kind_text(FieldKind k) {
        static const char *const names[] = {
                [FIELD_COUNTER] = "counter",
                [FIELD_GAUGE] = "gauge",
                [FIELD_SPAN] = "span",
                [FIELD_DERIVED] = "derived",
        };

        return names[k];
}

static int ensure_metric(Store *s, FieldId field, const char *state, double scale) {
        static const char text[] = "INSERT INTO metric (scope, name, state, unit, scale, kind, \"column\") "
                                   "VALUES (?, ?, ?, ?, ?, ?, ?)";
        const FieldSpec *f = field_spec(field);
        RollupTable *t = &s->rollups.tables[rollup_scope(f->scope)];
        RollupMetric m = { .field = field, .scale = scale };
        sqlite3_stmt *q = NULL;
        int r;

        if (rollup_find(t, field, state, scale) >= 0)
                return 0;
        if (t->n >= ROLLUP_METRICS_MAX) {
                s->figures.metrics_left_out++;
                return 0;
        }
        (void) snprintf(m.state, sizeof(m.state), "%s", state);
        metric_name(t, field, state, m.column, sizeof(m.column));
        r = db_errno(sqlite3_prepare_v2(s->db, text, -1, &q, NULL));
        if (r == 0)
                r = db_bind(q, "ttttdtt", scope_name(f->scope), f->name, state, unit_text(f->unit), scale,
                        kind_text(f->kind), m.column);
        if (r == 0)
                r = db_run(q);
        (void) sqlite3_finalize(q);
        m.id = sqlite3_last_insert_rowid(s->db);
        return r < 0 ? r : rollup_table_add(t, &m);
}

static bool layout_has(const Layout *l, FieldId field) {
        for (size_t i = 0; i < l->n_columns; i++)
                if (l->columns[i].field == field)
                        return true;
        return false;
}

static bool ratio_possible(const StoreMachine *m, const RollupRatio *r) {
        return layout_has(&m->layout, r->numerator) &&
               (r->denominator == FIELD_NONE || layout_has(&m->layout, r->denominator));
}

bool rollup_ratio_applies(const StoreMachine *m, const RollupRatio *r) {
        if (r > rollup_ratios && r[-1].field == r->field && ratio_possible(m, r - 1))
                return false;
        return ratio_possible(m, r);
}

/* Each name that the column has on one of the idle sets. */
static int ensure_column(Store *s, const StoreMachine *m, const LayoutColumn *c) {
        unsigned n_sets = field_is_by_state(c->field) ? MAX(m->machine->n_idle_sets, 1u) : 1;
        int r = 0;

        for (unsigned set = 0; r == 0 && set < n_sets; set++) {
                char state[16];

                rollup_state(m->machine, c->field, c->instance, (uint16_t) set, state);
                r = ensure_metric(s, c->field, state, rollup_column_scale(m, c->field, c->instance));
        }
        return r;
}

int rollup_ensure_metrics(Store *s, const StoreMachine *m) {
        size_t before[ROLLUP_SCOPES];
        bool any = false;
        int r = 0;

        if (s->metrics_topo == m->topo)
                return 0;
        s->figures.metrics_left_out = 0;
        for (unsigned i = 0; i < ROLLUP_SCOPES; i++)
                before[i] = s->rollups.tables[i].n;
        for (size_t i = 0; r == 0 && i < m->layout.n_columns; i++)
                r = ensure_column(s, m, &m->layout.columns[i]);
        for (size_t i = 0; r == 0 && i < rollup_ratios_n; i++)
                if (rollup_ratio_applies(m, &rollup_ratios[i]))
                        r = ensure_metric(s, rollup_ratios[i].field, "", rollup_ratios[i].scale);
        for (unsigned i = 0; i < ROLLUP_SCOPES; i++) {
                if (s->rollups.tables[i].n == before[i])
                        continue;
                any = true;
                for (unsigned tier = TIER_1M; r == 0 && tier <= TIER_1H; tier++)
                        r = add_columns(s, (RollupScope) i, (StoreTier) tier, before[i]);
        }
        if (any)
                rollup_write_forget(s);
        if (r == 0 && any)
                r = rollup_make_views(s);
        if (r == 0)
                s->metrics_topo = m->topo;
        return r;
}
