/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Columns come from the catalogue; this file adds only turbostat's order and its habit of printing a core's values in
 * the row of the core's first thread. Which state names exist is read from the snapshot itself.
 */

#include <errno.h>
#include <string.h>

#include "client/columns.h"
#include "cstated/macro.h"

/* Ids in print order; the two marks stand for one column for every idle state. */
#define IDLE_COUNTS "idle counts"
#define IDLE_PERCENT "idle percent"
#define WAKEUPS "wakeups"

static const char *const order[] = {
        "avg_mhz",
        "busy",
        "bzy_mhz",
        "tsc_mhz",
        "irq",
        "nmi",
        "smi",
        IDLE_COUNTS,
        IDLE_PERCENT,
        "c1",
        WAKEUPS,
        "c3",
        "c6",
        "c7",
        "mod_c6",
        "core_temp",
        "demotion",
        "pkg_temp",
        "pc2",
        "pc3",
        "pc6",
        "pc7",
        "pc8",
        "pc9",
        "pc10",
        "pkg_watts",
        "cor_watts",
        "gfx_watts",
        "ram_watts",
        "pkg_throttle",
        "ram_throttle",
        "sys_watts",
};

static const struct {
        const char *key, *name;
} wakeup_columns[] = {
        { "total", "Wake/s" },
        { "store", "Store/s" },
        { "break", "Break/s" },
};

static const struct {
        const char *key, *format;
        MetricUnit unit;
        bool is_default;
} idle_counts[] = {
        { "usage", "%s", UNIT_COUNT, true },
        { "above", "%s-", UNIT_COUNT, false },
        { "below", "%s+", UNIT_COUNT, false },
        { "rejected", "%s!", UNIT_COUNT, false },
};

json_t *columns_entities(json_t *snapshot, Scope s) {
        static const char *const names[SCOPE_N] = {
                [SCOPE_PACKAGE] = "packages",
                [SCOPE_MODULE] = "modules",
                [SCOPE_CORE] = "cores",
                [SCOPE_CPU] = "cpus",
        };

        return names[s] ? json_object_get(snapshot, names[s]) : NULL;
}

static bool any_has(json_t *array, const char *key) {
        json_t *e;
        size_t i;

        json_array_foreach(array, i, e)
                if (json_object_get(e, key))
                        return true;
        return false;
}

static Column *columns_add(ColumnSet *set, ColumnKind kind, Scope scope, const char *key, const char *name) {
        Column *c;

        if (set->n >= COLUMNS_MAX)
                return NULL;
        c = &set->columns[set->n++];
        *c = (Column){ .kind = kind, .scope = scope, .shown = true, .is_default = true };
        (void) snprintf(c->key, sizeof(c->key), "%s", key);
        (void) snprintf(c->name, sizeof(c->name), "%s", name);
        return c;
}

/* turbostat names a level only where there is more than one of it. */
static void add_topology(json_t *snapshot, ColumnSet *set) {
        json_t *packages = columns_entities(snapshot, SCOPE_PACKAGE), *first = json_array_get(packages, 0), *p;
        bool has_packages = false, has_dies = false;
        size_t i;

        json_array_foreach(packages, i, p) {
                if (!json_equal(json_object_get(p, "package"), json_object_get(first, "package")))
                        has_packages = true;
                if (json_equal(json_object_get(p, "package"), json_object_get(first, "package")) && i > 0)
                        has_dies = true;
        }
        if (has_packages)
                (void) columns_add(set, COLUMN_TOPOLOGY, SCOPE_CPU, "package", "Package");
        if (has_dies)
                (void) columns_add(set, COLUMN_TOPOLOGY, SCOPE_CPU, "die", "Die");
        if (json_array_size(columns_entities(snapshot, SCOPE_CORE)) > 1)
                (void) columns_add(set, COLUMN_TOPOLOGY, SCOPE_CPU, "core", "Core");
        if (json_array_size(columns_entities(snapshot, SCOPE_CPU)) > 1)
                (void) columns_add(set, COLUMN_TOPOLOGY, SCOPE_CPU, "cpu", "CPU");
}

/* turbostat's short form of a state's name: cut at '-', without '_'; and, since awk splits at blanks, cut there too. */
static void short_state(const char *name, char *buf, size_t size) {
        size_t n = 0;

        for (; *name && *name != '-' && *name != ' ' && n + 1 < size; name++)
                if (*name != '_')
                        buf[n++] = *name;
        buf[n] = '\0';
}

/* States of all CPUs in order of first appearance (P and E cores differ). */
static size_t collect_states(json_t *snapshot, const char *states[], size_t max) {
        json_t *cpu, *state;
        const char *name;
        size_t i, n = 0;

        json_array_foreach(columns_entities(snapshot, SCOPE_CPU), i, cpu) {
                json_object_foreach(json_object_get(cpu, "idle"), name, state) {
                        size_t k = 0;

                        while (k < n && strcmp(states[k], name) != 0)
                                k++;
                        if (k == n && n < max)
                                states[n++] = name;
                }
        }
        return n;
}

static void add_idle(json_t *snapshot, bool percent, ColumnSet *set) {
        const char *states[2 * IDLE_STATES_MAX];
        size_t n = collect_states(snapshot, states, ARRAY_SIZE(states));
        char name[32], state[16];
        Column *c;

        for (size_t i = 0; i < n; i++) {
                short_state(states[i], state, sizeof(state));
                for (size_t k = 0; k < (percent ? 1 : ARRAY_SIZE(idle_counts)); k++) {
                        (void) snprintf(name, sizeof(name), "%s%s", state,
                                percent ? "%" : idle_counts[k].format + 2);
                        c = columns_add(
                                set, COLUMN_IDLE, SCOPE_CPU, percent ? "time" : idle_counts[k].key, name);
                        if (!c)
                                return;
                        (void) snprintf(c->state, sizeof(c->state), "%s", states[i]);
                        c->unit = percent ? UNIT_PERCENT : idle_counts[k].unit;
                        c->category = CATEGORY_REQUESTED;
                        c->is_default = c->shown = percent || idle_counts[k].is_default;
                }
        }
}

static void add_wakeups(json_t *snapshot, ColumnSet *set) {
        if (!any_has(columns_entities(snapshot, SCOPE_CPU), "wakeups"))
                return;
        for (size_t i = 0; i < ARRAY_SIZE(wakeup_columns); i++) {
                Column *c = columns_add(
                        set, COLUMN_WAKEUP, SCOPE_CPU, wakeup_columns[i].key, wakeup_columns[i].name);

                if (c)
                        c->category = CATEGORY_WAKE;
        }
}

static void joule_name(char *name) {
        char *w = strstr(name, "Watt");

        if (w)
                strcpy(w, "_J");
}

static void add_metric(json_t *snapshot, const MetricSpec *m, bool joules, ColumnSet *set) {
        Scope scope = m->scope;
        bool present = scope == SCOPE_SYSTEM
                               ? json_object_get(json_object_get(snapshot, "system"), m->id) != NULL
                               : any_has(columns_entities(snapshot, scope), m->id);
        Column *c;

        /* AMD counts core energy by core, Intel by package, under one name. */
        if (!present && strcmp(m->id, "cor_watts") == 0)
                for (scope = SCOPE_PACKAGE; scope <= SCOPE_CORE && !present; scope += present ? 0 : 1)
                        present = any_has(columns_entities(snapshot, scope), m->id);
        if (!present || !m->column)
                return;
        c = columns_add(set, COLUMN_METRIC, scope, m->id, m->column);
        if (!c)
                return;
        c->unit = m->unit;
        c->category = m->category;
        if (joules && m->unit == UNIT_WATT) {
                c->joules = true;
                joule_name(c->name);
        }
}

void columns_from_snapshot(json_t *snapshot, bool joules, ColumnSet *ret) {
        ret->n = 0;
        add_topology(snapshot, ret);
        for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
                const MetricSpec *m;

                if (strcmp(order[i], IDLE_COUNTS) == 0)
                        add_idle(snapshot, false, ret);
                else if (strcmp(order[i], IDLE_PERCENT) == 0)
                        add_idle(snapshot, true, ret);
                else if (strcmp(order[i], WAKEUPS) == 0)
                        add_wakeups(snapshot, ret);
                else if ((m = metric_find(order[i])))
                        add_metric(snapshot, m, joules, ret);
        }
}

static bool column_in_group(const Column *c, const char *group) {
        bool idle = c->kind == COLUMN_IDLE;

        if (strcmp(group, "all") == 0)
                return true;
        if (strcmp(group, "default") == 0)
                return c->is_default;
        if (strcmp(group, "topology") == 0)
                return c->kind == COLUMN_TOPOLOGY;
        if (strcmp(group, "sysfs") == 0 || strcmp(group, "cpuidle") == 0)
                return idle;
        if (strcmp(group, "idle") == 0)
                return (idle && c->unit == UNIT_PERCENT) ||
                       (c->kind == COLUMN_METRIC && c->category == CATEGORY_GRANTED && c->unit != UNIT_MHZ);
        if (strcmp(group, "frequency") == 0)
                return c->kind == COLUMN_METRIC && (c->unit == UNIT_MHZ || strcmp(c->key, "busy") == 0);
        if (strcmp(group, "power") == 0)
                return c->kind == COLUMN_METRIC && c->category == CATEGORY_POWER;
        if (strcmp(group, "thermal") == 0)
                return c->kind == COLUMN_METRIC && c->category == CATEGORY_THERMAL;
        if (strcmp(group, "wake") == 0)
                return c->kind == COLUMN_WAKEUP;
        if (strcmp(group, "other") == 0)
                return c->kind == COLUMN_METRIC &&
                       (strcmp(c->key, "irq") == 0 || strcmp(c->key, "nmi") == 0 ||
                               strcmp(c->key, "smi") == 0);
        return false;
}

/* Columns of turbostat that we do not have: naming them is no error, so that its command lines work. */
static bool is_foreign_column(const char *word) {
        static const char *const names[] = {
                "usec",
                "Time_Of_Day_Seconds",
                "Package",
                "Die",
                "L3",
                "Node",
                "Core",
                "CPU",
                "APIC",
                "X2APIC",
                "IPC",
                "CoreThr",
                "GFX%rc6",
                "GFXMHz",
                "GFXAMHz",
                "Totl%C0",
                "Any%C0",
                "GFX%C0",
                "CPUGFX%",
                "CPU%LPI",
                "SYS%LPI",
                "UncMHz",
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcmp(names[i], word) == 0)
                        return true;
        for (size_t i = 0; i < metric_catalogue_n; i++)
                if (metric_catalogue[i].column && strcmp(metric_catalogue[i].column, word) == 0)
                        return true;
        return false;
}

static bool is_group(const char *word) {
        static const char *const groups[] = {
                "all",
                "default",
                "topology",
                "sysfs",
                "cpuidle",
                "idle",
                "frequency",
                "power",
                "thermal",
                "wake",
                "other",
        };

        for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
                if (strcmp(groups[i], word) == 0)
                        return true;
        return false;
}

int columns_select(ColumnSet *set, const char *list, bool show, bool first, char *ret_word, size_t size) {
        _cleanup_free_ char *copy = strdup(list);
        char *save = NULL;

        if (!copy)
                return -ENOMEM;
        for (size_t i = 0; show && first && i < set->n; i++)
                set->columns[i].shown = false;
        for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
                bool known = is_group(word) || is_foreign_column(word);

                for (size_t i = 0; i < set->n; i++)
                        if (strcmp(set->columns[i].name, word) == 0 ||
                                column_in_group(&set->columns[i], word)) {
                                set->columns[i].shown = show;
                                known = true;
                        }
                if (!known) {
                        (void) snprintf(ret_word, size, "%s", word);
                        return -EINVAL;
                }
        }
        return 0;
}
