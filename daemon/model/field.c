/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The field table and layouts. Offsets are cumulative: column c holds one value for every entity of its field's scope,
 * so a layout and the entity counts say everything about a frame's, a sample's or a chunk's shape.
 */

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cstated/field.h"
#include "cstated/macro.h"

static const FieldSpec field_table[FIELD_N] = {
#define X(id, name_, scope_, kind_, unit_, width_, span_) \
        [FIELD_##id] = { \
                .name = name_, \
                .scope = SCOPE_##scope_, \
                .kind = FIELD_##kind_, \
                .unit = FIELD_UNIT_##unit_, \
                .width = width_, \
                .span = FIELD_##span_, \
        },
        FIELD_TABLE(X)
#undef X
};

/* No machine has them all, but none can have more: layout_add() then never finds a layout full. */
#define FIELDS_BY_STATE (FIELD_IDLE_REJECTED - FIELD_IDLE_TIME + 1 + FIELD_WAKE_IMMEDIATE - FIELD_TRACE_ENTRIES + 1)
static_assert(FIELD_N - 1 + FIELDS_BY_STATE * (IDLE_STATES_MAX - 1) + SLEEP_BUCKETS - 1 <= LAYOUT_COLUMNS_MAX,
        "a layout has room for every column there is");

const FieldSpec *field_spec(FieldId id) {
        return &field_table[id];
}

bool field_is_by_state(FieldId id) {
        return (id >= FIELD_IDLE_TIME && id <= FIELD_IDLE_REJECTED) ||
                (id >= FIELD_TRACE_ENTRIES && id <= FIELD_WAKE_IMMEDIATE);
}

unsigned field_n_instances(FieldId id) {
        if (id == FIELD_SLEEP_HIST)
                return SLEEP_BUCKETS;
        return field_is_by_state(id) ? IDLE_STATES_MAX : 1;
}

void field_bucket_name(uint8_t bucket, char ret[16]) {
        uint64_t ns = 2ULL << bucket;

        if (bucket >= SLEEP_BUCKETS - 1)
                (void) snprintf(ret, 16, "+Inf");
        else
                (void) snprintf(ret, 16, "%u.%03u", (unsigned) (ns / 1000), (unsigned) (ns % 1000));
}

FieldId field_from_name(const char *name) {
        for (unsigned i = 1; i < FIELD_N; i++)
                if (strcmp(field_table[i].name, name) == 0)
                        return (FieldId) i;
        return FIELD_NONE;
}

static const char *const scope_names[SCOPE_N] = {
        [SCOPE_SYSTEM] = "system",
        [SCOPE_PACKAGE] = "package",
        [SCOPE_MODULE] = "module",
        [SCOPE_CORE] = "core",
        [SCOPE_CPU] = "cpu",
};

const char *scope_name(Scope s) {
        return scope_names[s];
}

int scope_from_name(const char *name, Scope *ret) {
        for (unsigned i = 0; i < SCOPE_N; i++)
                if (strcmp(scope_names[i], name) == 0) {
                        *ret = (Scope) i;
                        return 0;
                }
        if (strcmp(name, "node") == 0)
                *ret = SCOPE_SYSTEM;
        else if (strcmp(name, "die") == 0)
                *ret = SCOPE_PACKAGE;
        else
                return -EINVAL;
        return 0;
}

const char *reason_name(Reason r) {
        static const char *const names[REASON_N] = {
                [REASON_FIRST] = "first",
                [REASON_ABSENT] = "absent",
                [REASON_DENIED] = "denied",
                [REASON_OFFLINE] = "offline",
                [REASON_RESET] = "reset",
                [REASON_BACKWARDS] = "backwards",
                [REASON_GAP] = "gap",
                [REASON_ASLEEP] = "asleep",
                [REASON_OUT_OF_RANGE] = "out-of-range",
                [REASON_VM] = "vm",
                [REASON_NOT_APPLICABLE] = "not-applicable",
                [REASON_ERROR] = "error",
        };

        return (unsigned) r < REASON_N ? names[r] : NULL;
}

/* Derived fields stand last, wherever their ids are, so that a machine's layout is the beginning of its samples'. */
static int column_compare(const LayoutColumn *a, FieldId field, uint8_t instance) {
        bool derived = field_table[field].kind == FIELD_DERIVED;

        if ((field_table[a->field].kind == FIELD_DERIVED) != derived)
                return derived ? -1 : 1;
        if (a->field != field)
                return a->field < field ? -1 : 1;
        return (int) a->instance - (int) instance;
}

LayoutColumn *layout_add(Layout *l, FieldId field, uint8_t instance) {
        LayoutColumn *c;

        if (l->n_columns >= LAYOUT_COLUMNS_MAX)
                return NULL;
        for (size_t i = 0; i < l->n_columns; i++)
                if (column_compare(&l->columns[i], field, instance) == 0)
                        return NULL;
        c = &l->columns[l->n_columns++];
        *c = (LayoutColumn){
                .field = field,
                .instance = instance,
                .width = field_table[field].width,
                .scale = 1,
        };
        return c;
}

static int column_order(const void *a, const void *b) {
        const LayoutColumn *x = a, *y = b;

        return column_compare(x, y->field, y->instance);
}

void layout_finish(Layout *l) {
        size_t offset = 0;

        qsort(l->columns, l->n_columns, sizeof(l->columns[0]), column_order);
        for (size_t i = 0; i < l->n_columns; i++) {
                l->columns[i].offset = (uint32_t) offset;
                offset += l->n_entities[field_table[l->columns[i].field].scope];
        }
        l->n_values = offset;
}

const LayoutColumn *layout_find(const Layout *l, FieldId field, uint8_t instance) {
        size_t low = 0, high = l->n_columns;

        while (low < high) {
                size_t mid = low + (high - low) / 2;
                int order = column_compare(&l->columns[mid], field, instance);

                if (order == 0)
                        return &l->columns[mid];
                if (order < 0)
                        low = mid + 1;
                else
                        high = mid;
        }
        return NULL;
}

static bool column_equal(const LayoutColumn *a, const LayoutColumn *b) {
        return a->field == b->field && a->instance == b->instance && a->width == b->width &&
               a->range == b->range && memcmp(&a->scale, &b->scale, sizeof(a->scale)) == 0;
}

bool layout_equal(const Layout *a, const Layout *b) {
        if (a->n_columns != b->n_columns || memcmp(a->n_entities, b->n_entities, sizeof(a->n_entities)) != 0)
                return false;
        for (size_t i = 0; i < a->n_columns; i++)
                if (!column_equal(&a->columns[i], &b->columns[i]))
                        return false;
        return true;
}
