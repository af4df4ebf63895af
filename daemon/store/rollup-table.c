/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The registry of rolled metrics, and where an entity's values lie: what writer and reader agree on. */

#include <errno.h>
#include <math.h>
#include <string.h>

#include "store/rollup-table.h"

RollupScope rollup_scope(Scope s) {
        switch (s) {
        case SCOPE_SYSTEM:
                return ROLLUP_SYS;
        case SCOPE_PACKAGE:
                return ROLLUP_PKG;
        case SCOPE_MODULE:
        case SCOPE_CORE:
        case SCOPE_CPU:
        default:
                return ROLLUP_CPU;
        }
}

const char *rollup_table_name(RollupScope scope, StoreTier tier) {
        static const char *const names[ROLLUP_SCOPES][2] = {
                [ROLLUP_CPU] = { "cpu_1m", "cpu_1h" },
                [ROLLUP_PKG] = { "pkg_1m", "pkg_1h" },
                [ROLLUP_SYS] = { "sys_1m", "sys_1h" },
        };

        return names[scope][tier == TIER_1H];
}

int64_t rollup_key(const Machine *m, Scope s, uint32_t e) {
        int64_t key = 0;

        if (s == SCOPE_PACKAGE)
                key = m->packages[e].die > 30
                              ? -1
                              : (int64_t) m->packages[e].package * 32 + m->packages[e].die + 1;
        else if (s != SCOPE_SYSTEM)
                key = m->cpus[machine_first_cpu(m, s, e)].id;
        return key >= 0 && key < ROLLUP_KEYS ? key : -1;
}

void rollup_state(const Machine *m, FieldId field, uint8_t instance, uint16_t idle_set, char ret[16]) {
        ret[0] = '\0';
        if (field_n_instances(field) > 1 && !field_is_by_state(field))
                field_bucket_name(instance, ret);
        if (!field_is_by_state(field))
                return;
        if (idle_set < m->n_idle_sets && instance < m->idle_sets[idle_set].n_states &&
                m->idle_sets[idle_set].states[instance].name[0])
                memcpy(ret, m->idle_sets[idle_set].states[instance].name, 16);
        else
                (void) snprintf(ret, 16, "state%u", (unsigned) instance);
        /* two states of one name stay two */
        for (uint8_t i = 0; idle_set < m->n_idle_sets && i < instance && i < m->idle_sets[idle_set].n_states;
                i++)
                if (strcmp(m->idle_sets[idle_set].states[i].name, ret) == 0) {
                        (void) snprintf(ret, 16, "state%u", (unsigned) instance);
                        return;
                }
}

static bool same_scale(double a, double b) {
        return fabs(a - b) <= 1e-12 * fabs(a);
}

int rollup_find(const RollupTable *t, FieldId field, const char *state, double scale) {
        for (size_t i = 0; i < t->n; i++)
                if (t->metrics[i].field == field && strcmp(t->metrics[i].state, state) == 0 &&
                        same_scale(t->metrics[i].scale, scale))
                        return (int) i;
        return -1;
}

int rollup_table_add(RollupTable *t, const RollupMetric *m) {
        RollupMetric *metrics = realloc(t->metrics, (t->n + 1) * sizeof(*metrics));

        if (!metrics)
                return -ENOMEM;
        t->metrics = metrics;
        t->metrics[t->n++] = *m;
        return 0;
}

static int table_add_row(RollupTable *t, sqlite3_stmt *q, FieldId field) {
        RollupMetric m = {
                .id = sqlite3_column_int64(q, 0),
                .field = field,
                .scale = sqlite3_column_double(q, 3),
        };

        (void) snprintf(m.state, sizeof(m.state), "%s", (const char *) sqlite3_column_text(q, 2) ?: "");
        (void) snprintf(m.column, sizeof(m.column), "%s", (const char *) sqlite3_column_text(q, 4) ?: "");
        return rollup_table_add(t, &m);
}

int rollup_tables_load(RollupTables *t, sqlite3 *db) {
        static const char text[] = "SELECT id, name, state, scale, \"column\" FROM metric WHERE \"column\" "
                                   "IS NOT NULL ORDER BY id";
        RollupTables fresh = {};
        sqlite3_stmt *q = NULL;
        int r;

        r = db_errno(sqlite3_prepare_v2(db, text, -1, &q, NULL));
        if (r < 0)
                return r;
        while ((r = db_step(q)) > 0) {
                FieldId field = field_from_name((const char *) sqlite3_column_text(q, 1) ?: "");

                if (field == FIELD_NONE) /* a newer version's */
                        continue;
                r = table_add_row(&fresh.tables[rollup_scope(field_spec(field)->scope)], q, field);
                if (r < 0)
                        break;
        }
        (void) sqlite3_finalize(q);
        if (r < 0) {
                rollup_tables_deinit(&fresh);
                return r;
        }
        rollup_tables_deinit(t);
        *t = fresh;
        return 0;
}

void rollup_tables_deinit(RollupTables *t) {
        for (unsigned i = 0; i < ROLLUP_SCOPES; i++)
                free(t->tables[i].metrics);
        *t = (RollupTables){};
}
