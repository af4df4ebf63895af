/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Totals are arrays over entities in order of appearance, one array a column. The way from a sample's slot
 * to its total is worked out once a machine (generation, layout), so that a tick costs one addition a value.
 */

#include <errno.h>
#include <string.h>

#include "cstated/macro.h"

#include "api/totals.h"

typedef struct Entities {
        TotalsEntity *list;
        size_t n, size;
        uint32_t *map; /* sample's entity -> list; n_map entries */
        size_t n_map;
} Entities;

typedef struct Column {
        FieldId field;
        uint8_t instance;
        double scale;
        int64_t *values;
        bool *seen;
        size_t size;
} Column;

#define IDLE_SETS_MAX 16

struct Totals {
        Entities entities[SCOPE_N];
        Column *columns;
        size_t n_columns, size_columns;
        IdleSet *sets; /* ever seen, IDLE_SETS_MAX of them */
        size_t n_sets;
        uint8_t *set_of;      /* of each CPU in order of appearance; UINT8_MAX: none */
        uint32_t *column_map; /* sample's column -> ours */
        Layout layout;        /* the maps are for this layout ... */
        uint32_t generation;  /* ... of this machine */
        bool has_machine;
};

Totals *totals_new(void) {
        return calloc(1, sizeof(Totals));
}

Totals *totals_free(Totals *t) {
        if (!t)
                return NULL;
        for (size_t i = 0; i < SCOPE_N; i++) {
                free(t->entities[i].list);
                free(t->entities[i].map);
        }
        for (size_t i = 0; i < t->n_columns; i++) {
                free(t->columns[i].values);
                free(t->columns[i].seen);
        }
        free(t->columns);
        free(t->column_map);
        free(t->sets);
        free(t->set_of);
        free(t);
        return NULL;
}

static TotalsEntity entity_ids(const Machine *m, Scope scope, uint32_t e) {
        TotalsEntity ids = { -1, -1, -1, -1, -1 };
        uint32_t package = UINT32_MAX;

        switch (scope) {
        case SCOPE_CPU:
                ids.cpu = m->cpus[e].id;
                ids.core = m->cores[m->cpus[e].core].id;
                package = m->cpus[e].package;
                break;
        case SCOPE_CORE:
                ids.core = m->cores[e].id;
                package = m->cores[e].package;
                break;
        case SCOPE_MODULE:
                ids.module = m->modules[e].id;
                package = m->modules[e].package;
                break;
        case SCOPE_PACKAGE:
                package = e;
                break;
        case SCOPE_SYSTEM:
        default:
                break;
        }
        if (package != UINT32_MAX) {
                ids.package = m->packages[package].package;
                ids.die = m->packages[package].die;
        }
        return ids;
}

/* Index of the entity, appended if it is new; searched from where it stood last. -ENOMEM. */
static int entities_index(Entities *l, const TotalsEntity *ids, size_t hint, uint32_t *ret) {
        for (size_t i = 0; i < l->n; i++) {
                size_t at = (hint + i) % l->n;

                if (memcmp(&l->list[at], ids, sizeof(*ids)) == 0) {
                        *ret = (uint32_t) at;
                        return 0;
                }
        }
        if (l->n == l->size) {
                size_t size = MAX(2 * l->size, (size_t) 16);
                TotalsEntity *list = reallocarray(l->list, size, sizeof(*list));

                if (!list)
                        return -ENOMEM;
                l->list = list;
                l->size = size;
        }
        l->list[l->n] = *ids;
        *ret = (uint32_t) l->n++;
        return 0;
}

static int map_entities(Totals *t, const Machine *m, Scope scope) {
        Entities *l = &t->entities[scope];
        uint32_t n = machine_n_entities(m, scope), *map;
        size_t hint = 0;

        map = reallocarray(l->map, MAX(n, 1u), sizeof(*map));
        if (!map)
                return -ENOMEM;
        l->map = map;
        l->n_map = n;
        for (uint32_t e = 0; e < n; e++) {
                TotalsEntity ids = entity_ids(m, scope, e);
                int r = entities_index(l, &ids, hint, &map[e]);

                if (r < 0)
                        return r;
                hint = map[e] + 1;
        }
        return 0;
}

/* Room for every entity of the column's scope. */
static int column_reserve(Totals *t, Column *c) {
        size_t n = t->entities[field_spec(c->field)->scope].size;
        int64_t *values;
        bool *seen;

        if (n <= c->size)
                return 0;
        values = reallocarray(c->values, n, sizeof(*values));
        if (!values)
                return -ENOMEM;
        c->values = values;
        seen = reallocarray(c->seen, n, sizeof(*seen));
        if (!seen)
                return -ENOMEM;
        c->seen = seen;
        memset(values + c->size, 0, (n - c->size) * sizeof(*values));
        memset(seen + c->size, 0, (n - c->size) * sizeof(*seen));
        c->size = n;
        return 0;
}

static Column *find_column(const Totals *t, FieldId field, uint8_t instance) {
        for (size_t i = 0; i < t->n_columns; i++)
                if (t->columns[i].field == field && t->columns[i].instance == instance)
                        return &t->columns[i];
        return NULL;
}

static int map_column(Totals *t, const LayoutColumn *from, uint32_t *ret) {
        Column *c = find_column(t, from->field, from->instance);

        if (!c) {
                if (t->n_columns == t->size_columns) {
                        size_t size = MAX(2 * t->size_columns, (size_t) 32);
                        Column *columns = reallocarray(t->columns, size, sizeof(*columns));

                        if (!columns)
                                return -ENOMEM;
                        t->columns = columns;
                        t->size_columns = size;
                }
                c = &t->columns[t->n_columns++];
                *c = (Column){ .field = from->field, .instance = from->instance };
        }
        c->scale = from->scale;
        *ret = (uint32_t) (c - t->columns);
        return 0;
}

/* Columns that this machine does not give have room for its entities too: they are still shown. */
static int columns_reserve(Totals *t) {
        int r = 0;

        for (size_t i = 0; i < t->n_columns && r == 0; i++)
                r = column_reserve(t, &t->columns[i]);
        return r;
}

/* Index of a set with these names, kept for CPUs that have gone. UINT8_MAX: no room. */
static uint8_t keep_set(Totals *t, const IdleSet *set) {
        for (size_t i = 0; i < t->n_sets; i++) {
                bool same = t->sets[i].n_states == set->n_states;

                for (uint32_t k = 0; k < set->n_states && same; k++)
                        same = strcmp(t->sets[i].states[k].name, set->states[k].name) == 0;
                if (same)
                        return (uint8_t) i;
        }
        if (t->n_sets == IDLE_SETS_MAX)
                return UINT8_MAX;
        t->sets[t->n_sets] = *set;
        return (uint8_t) t->n_sets++;
}

static int map_states(Totals *t, const Machine *m) {
        const Entities *l = &t->entities[SCOPE_CPU];
        uint8_t *set_of;

        if (!t->sets)
                t->sets = calloc(IDLE_SETS_MAX, sizeof(*t->sets));
        set_of = realloc(t->set_of, MAX(l->size, (size_t) 1));
        if (!set_of || !t->sets)
                return -ENOMEM;
        t->set_of = set_of;
        for (uint32_t i = 0; i < m->n_cpus; i++) {
                uint16_t set = m->cpus[i].idle_set;

                set_of[l->map[i]] = set < m->n_idle_sets ? keep_set(t, &m->idle_sets[set]) : UINT8_MAX;
        }
        return 0;
}

static int map_machine(Totals *t, const Sample *s) {
        uint32_t *map;
        int r;

        if (t->has_machine && t->generation == s->machine->generation && layout_equal(&t->layout, s->layout))
                return 0;
        t->has_machine = false;
        for (unsigned scope = 0; scope < SCOPE_N; scope++) {
                r = map_entities(t, s->machine, (Scope) scope);
                if (r < 0)
                        return r;
        }
        r = map_states(t, s->machine);
        if (r < 0)
                return r;
        map = reallocarray(t->column_map, MAX(s->layout->n_columns, (size_t) 1), sizeof(*map));
        if (!map)
                return -ENOMEM;
        t->column_map = map;
        for (size_t i = 0; i < s->layout->n_columns; i++) {
                r = map_column(t, &s->layout->columns[i], &map[i]);
                if (r < 0)
                        return r;
        }
        r = columns_reserve(t);
        if (r < 0)
                return r;
        t->layout = *s->layout;
        t->generation = s->machine->generation;
        t->has_machine = true;
        return 0;
}

int totals_add(Totals *t, const Sample *s) {
        int r = map_machine(t, s);

        if (r < 0 || s->h.is_first)
                return r;
        for (size_t i = 0; i < s->layout->n_columns; i++) {
                const LayoutColumn *from = &s->layout->columns[i];
                const FieldSpec *field = field_spec(from->field);
                Column *c = &t->columns[t->column_map[i]];
                const Entities *l = &t->entities[field->scope];

                for (size_t e = 0; e < l->n_map; e++) {
                        int64_t v = s->values[from->offset + e];

                        if (s->reasons[from->offset + e] != REASON_NONE)
                                continue;
                        c->seen[l->map[e]] = true;
                        if (field->kind == FIELD_GAUGE)
                                c->values[l->map[e]] = v;
                        else if (v > 0 && __builtin_add_overflow(c->values[l->map[e]], v, &c->values[l->map[e]]))
                                c->values[l->map[e]] = INT64_MAX; /* a total never falls */
                }
        }
        return 0;
}

size_t totals_entities(const Totals *t, Scope s, const TotalsEntity **ret) {
        *ret = t->entities[s].list;
        return t->entities[s].n;
}

const char *totals_state_name(const Totals *t, size_t cpu, uint8_t instance) {
        /* without cpuidle idletrace counts polling and the default idle loop */
        static const char *const nameless[] = { "POLL", "IDLE" };
        uint8_t set = cpu < t->entities[SCOPE_CPU].n ? t->set_of[cpu] : UINT8_MAX;

        if (set == UINT8_MAX)
                return cpu < t->entities[SCOPE_CPU].n && instance < ARRAY_SIZE(nameless) ? nameless[instance]
                                                                                         : NULL;
        return set < t->n_sets && instance < t->sets[set].n_states ? t->sets[set].states[instance].name
                                                                   : NULL;
}

bool totals_column(const Totals *t, FieldId field, uint8_t instance, TotalsColumn *ret) {
        const Column *c = find_column(t, field, instance);

        if (!c)
                return false;
        *ret = (TotalsColumn){
                .field = field,
                .instance = instance,
                .scale = c->scale,
                .values = c->values,
                .seen = c->seen,
        };
        return true;
}
