/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What stands in a cell: which entity it is about, its value, turbostat's rounding. */

#include <math.h>
#include <string.h>

#include "client/columns.h"
#include "cstated/num.h"

static bool same_id(json_t *a, json_t *b, const char *key) {
        json_t *x = json_object_get(a, key), *y = json_object_get(b, key);

        /* A key the wider entity does not carry (die of a one-die package) matches anything. */
        return !x || !y || json_is_null(x) || json_is_null(y) || json_equal(x, y);
}

static bool is_part_of(json_t *entity, json_t *cpu, Scope scope) {
        return same_id(entity, cpu, "package") && same_id(entity, cpu, "die") &&
                (scope < SCOPE_CORE || same_id(entity, cpu, "core")) &&
                (scope != SCOPE_MODULE || same_id(entity, cpu, "module"));
}

/* The entity of a scope this cpu stands for: NULL where another CPU of it comes first. */
static json_t *entity_of_first_cpu(json_t *snapshot, json_t *cpu, Scope scope) {
        json_t *entities = columns_entities(snapshot, scope), *entity = NULL, *other;
        size_t i;

        for (i = 0; i < json_array_size(entities) && !entity; i++)
                if (is_part_of(json_array_get(entities, i), cpu, scope))
                        entity = json_array_get(entities, i);
        if (!entity)
                return NULL;
        json_array_foreach(columns_entities(snapshot, SCOPE_CPU), i, other)
                if (is_part_of(entity, other, scope))
                        return other == cpu ? entity : NULL;
        return NULL;
}

static json_t *column_value(const Column *c, json_t *entity) {
        switch (c->kind) {
        case COLUMN_IDLE:
                return json_object_get(json_object_get(json_object_get(entity, "idle"), c->state), c->key);
        case COLUMN_WAKEUP:
                return json_object_get(json_object_get(entity, "wakeups"), c->key);
        case COLUMN_METRIC:
        case COLUMN_TOPOLOGY:
        default:
                return json_object_get(entity, c->key);
        }
}

static int column_decimals(const Column *c) {
        if (c->joules)
                return 2;
        if (c->kind == COLUMN_WAKEUP)
                return 1;
        switch (c->unit) {
        case UNIT_PERCENT:
        case UNIT_POINT:
        case UNIT_WATT:
                return 2;
        case UNIT_MHZ:
        case UNIT_COUNT:
        case UNIT_CELSIUS:
        case UNIT_SECOND:
        case UNIT_MICROSECOND:
        case UNIT_BYTE:
        default:
                return 0;
        }
}

static void number_text(
        const Column *c, json_t *snapshot, json_t *value, ColumnFormat format, char *buf, size_t size) {
        double seconds = json_number_value(json_object_get(snapshot, "interval_ms")) / 1000,
               v = json_number_value(value);
        char full[NUM_DOUBLE_MAX];

        if (json_is_integer(value) && c->kind != COLUMN_WAKEUP && !c->joules && c->unit == UNIT_COUNT) {
                (void) snprintf(buf, size, "%lld", (long long) json_integer_value(value));
                return;
        }
        if (c->joules)
                v *= seconds;
        else if (c->kind == COLUMN_WAKEUP)
                v = seconds > 0 ? v / seconds : NAN;
        if (format == COLUMN_FORMAT_FULL) {
                (void) num_format_double(v, 6, full);
                (void) snprintf(buf, size, "%s", full);
        } else
                (void) num_format_fixed(v, column_decimals(c), buf, size);
}

/* Where a row's value lies: the cpu itself, the core or package it stands first in, or the system row. */
static json_t *row_entity(const Column *c, json_t *snapshot, json_t *cpu) {
        if (!cpu)
                return json_object_get(snapshot, "system");
        if (c->kind != COLUMN_METRIC || c->scope == SCOPE_CPU)
                return cpu;
        if (c->scope == SCOPE_SYSTEM)
                return NULL;
        return entity_of_first_cpu(snapshot, cpu, c->scope);
}

bool column_text(
        const Column *c, json_t *snapshot, json_t *cpu, ColumnFormat format, char *buf, size_t size) {
        json_t *entity, *value;

        buf[0] = '\0';
        entity = row_entity(c, snapshot, cpu);
        if (!entity)
                return false;
        value = column_value(c, entity);
        if (c->kind == COLUMN_TOPOLOGY) {
                if (cpu && json_is_integer(value))
                        (void) snprintf(buf, size, "%lld", (long long) json_integer_value(value));
                else
                        (void) snprintf(buf, size, "-");
        } else if (json_is_number(value))
                number_text(c, snapshot, value, format, buf, size);
        else
                (void) snprintf(buf, size, "%s", format == COLUMN_FORMAT_TABLE ? "-" : "");
        return true;
}
