/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Columns come as metrics come: two or five a metric, in the tables of both tiers, under a name that a
 * person can read. A column that exists is never given another meaning.
 */

#include <errno.h>
#include <string.h>

#include "store/rollup-rows.h"
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

static int add_columns(Store *s, RollupScope scope, const char *name, bool spread) {
        static const struct {
                const char *suffix, *type;
        } columns[] = {{"", "INTEGER"}, {"_n", "INTEGER"}, {"_m2", "REAL"}, {"_min", "INTEGER"},
                {"_max", "INTEGER"}};

        for (unsigned tier = TIER_1M; tier <= TIER_1H; tier++)
                for (size_t i = 0; i < (spread ? ARRAY_SIZE(columns) : 2); i++) {
                        int r = db_execf(s->db, "ALTER TABLE %s ADD COLUMN \"%s%s\" %s",
                                rollup_table_name(scope, (StoreTier) tier), name, columns[i].suffix,
                                columns[i].type);

                        if (r < 0)
                                return r;
                }
        return 0;
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

/* 1: it was new. */
static int ensure_metric(Store *s, FieldId field, const char *state, double scale) {
        static const char text[] = "INSERT INTO metric (scope, name, state, unit, scale, kind, \"column\") "
                                   "VALUES (?, ?, ?, ?, ?, ?, ?)";
        const FieldSpec *f = field_spec(field);
        RollupScope scope = rollup_scope(f->scope);
        RollupTable *t = &s->rollups.tables[scope];
        sqlite3_stmt *q = NULL;
        char name[48];
        int r;

        if (rollup_find(t, field, state, scale) >= 0 || t->n >= ROLLUP_METRICS_MAX)
                return 0;
        metric_name(t, field, state, name, sizeof(name));
        r = add_columns(s, scope, name, rollup_has_spread(field));
        if (r == 0)
                r = db_errno(sqlite3_prepare_v2(s->db, text, -1, &q, NULL));
        if (r == 0)
                r = db_bind(q, "ttttdtt", scope_name(f->scope), f->name, state, unit_text(f->unit), scale,
                        kind_text(f->kind), name);
        if (r == 0)
                r = db_run(q);
        (void) sqlite3_finalize(q);
        if (r == 0)
                r = rollup_tables_load(&s->rollups, s->db);
        return r < 0 ? r : 1;
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

/* Index into the sets' names: UINT16_MAX (no cpuidle) counts as one set more. */
static int ensure_column(Store *s, const StoreMachine *m, const LayoutColumn *c) {
        unsigned n_sets = rollup_is_by_state(c->field) ? m->machine->n_idle_sets + 1 : 1;
        int any = 0;

        for (unsigned set = 0; set < n_sets; set++) {
                char state[16];
                int r;

                /* nameless states only where a CPU has no set */
                if (n_sets > 1 && set + 1 == n_sets)
                        break;
                rollup_state(m->machine, c->field, c->instance, (uint16_t) set, state);
                r = ensure_metric(s, c->field, state, rollup_column_scale(m, c->field, c->instance));
                if (r < 0)
                        return r;
                any |= r;
        }
        return any;
}

int rollup_ensure_metrics(Store *s, const StoreMachine *m) {
        int any = 0, r = 0;

        if (s->metrics_topo == m->topo)
                return 0;
        for (size_t i = 0; r >= 0 && i < m->layout.n_columns; i++) {
                r = ensure_column(s, m, &m->layout.columns[i]);
                any |= r > 0;
        }
        for (size_t i = 0; r >= 0 && i < rollup_ratios_n; i++)
                if (rollup_ratio_applies(m, &rollup_ratios[i])) {
                        r = ensure_metric(s, rollup_ratios[i].field, "", rollup_ratios[i].scale);
                        any |= r > 0;
                }
        if (r >= 0 && any) {
                rollup_write_forget(s);
                r = rollup_make_views(s);
        }
        if (r < 0)
                return r;
        s->metrics_topo = m->topo;
        return 0;
}
