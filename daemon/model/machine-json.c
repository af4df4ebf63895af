/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A machine from JSON. The text comes in frames of another process and in rows of files from elsewhere: every member
 * must be there, of its type and range, every index must point at something, every array must be sorted as
 * machine.h says; what look-ups and loops rely on is checked here once and nowhere else.
 */

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cstated/macro.h"
#include "cstated/num.h"

#include "model/machine-members.h"
#include "model/machine.h"

static void store_unsigned(void *p, uint16_t size, uint64_t v) {
        uint8_t u8 = (uint8_t) v;
        uint16_t u16 = (uint16_t) v;
        uint32_t u32 = (uint32_t) v;

        switch (size) {
        case 1:
                memcpy(p, &u8, 1);
                break;
        case 2:
                memcpy(p, &u16, 2);
                break;
        case 4:
                memcpy(p, &u32, 4);
                break;
        default:
                memcpy(p, &v, 8);
        }
}

static int decode_unsigned(const json_t *v, uint64_t max, uint64_t *ret) {
        if (!json_is_integer(v) || json_integer_value(v) < 0 || (uint64_t) json_integer_value(v) > max)
                return -EBADMSG;
        *ret = (uint64_t) json_integer_value(v);
        return 0;
}

static int decode_string(const json_t *v, char *p, uint16_t size) {
        size_t n = json_string_length(v);

        if (!json_is_string(v) || n >= size || memchr(json_string_value(v), '\0', n))
                return -EBADMSG;
        memcpy(p, json_string_value(v), n + 1);
        return 0;
}

static int decode_number(const json_t *v, const Member *m, uint64_t *ret) {
        json_int_t i = json_integer_value(v);
        double d = json_number_value(v);

        switch (m->type) {
        case MEMBER_BOOL:
                *ret = json_is_true(v);
                return json_is_boolean(v) ? 0 : -EBADMSG;
        case MEMBER_I32:
                *ret = (uint64_t) i;
                return json_is_integer(v) && i >= INT32_MIN && i <= INT32_MAX ? 0 : -EBADMSG;
        case MEMBER_DOUBLE:
                memcpy(ret, &d, sizeof(d));
                return json_is_number(v) && isfinite(d) ? 0 : -EBADMSG;
        case MEMBER_HEX64:
                return json_is_string(v) && num_parse_u64(json_string_value(v), ret) == 0 ? 0 : -EBADMSG;
        case MEMBER_INDEX16:
        case MEMBER_INDEX32:
                if (json_is_null(v)) {
                        *ret = UINT64_MAX;
                        return 0;
                }
                return decode_unsigned(v, MACHINE_CPU_ID_MAX - 2, ret);
        case MEMBER_U8:
        case MEMBER_U16:
        case MEMBER_U32:
        case MEMBER_U64:
        case MEMBER_STRING:
        default:
                return decode_unsigned(v, m->size < 8 ? (UINT64_C(1) << (8 * m->size)) - 1 : INT64_MAX, ret);
        }
}

static int decode_members(const json_t *object, const MemberTable *t, void *ret) {
        if (!json_is_object(object))
                return -EBADMSG;
        for (size_t i = 0; i < t->n; i++) {
                const Member *m = &t->members[i];
                const json_t *v = json_object_get(object, m->key);
                char *p = (char *) ret + m->offset;
                uint64_t u;
                int r;

                if (m->type == MEMBER_STRING) {
                        r = decode_string(v, p, m->size);
                } else {
                        r = decode_number(v, m, &u);
                        if (r == 0)
                                store_unsigned(p, m->size, u);
                }
                if (r < 0)
                        return r;
        }
        return 0;
}

#define DECODE_ARRAY(object, key, t, max, ret, ret_n) \
        decode_array(object, key, t, max, ret, sizeof(**(ret)), ret_n)

/* *ret is the machine's own array from the start, so that a failure leaves nothing behind. */
static int decode_array(const json_t *object, const char *key, const MemberTable *t, size_t max, void *ret,
        size_t size, uint32_t *ret_n) {
        const json_t *a = json_object_get(object, key);
        size_t n = json_array_size(a);
        char *items;

        if (!json_is_array(a) || n > max)
                return -EBADMSG;
        items = calloc(n + 1, size);
        if (!items)
                return -ENOMEM;
        memcpy(ret, &items, sizeof(items));
        *ret_n = (uint32_t) n;
        for (size_t i = 0; i < n; i++) {
                int r = decode_members(json_array_get(a, i), t, items + i * size);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int decode_offline(const json_t *object, Machine *m) {
        const json_t *a = json_object_get(object, "offline");
        size_t n = json_array_size(a);

        if (!json_is_array(a) || n > MACHINE_CPU_ID_MAX)
                return -EBADMSG;
        m->offline = calloc(n + 1, sizeof(*m->offline));
        if (!m->offline)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                uint64_t u;

                if (decode_unsigned(json_array_get(a, i), MACHINE_CPU_ID_MAX - 1, &u) < 0 ||
                        (i > 0 && u <= m->offline[i - 1]))
                        return -EBADMSG;
                m->offline[i] = (uint32_t) u;
        }
        m->n_offline = (uint32_t) n;
        return 0;
}

static int decode_idle_sets(const json_t *object, Machine *m) {
        const json_t *a = json_object_get(object, "idle_sets");
        size_t n = json_array_size(a);

        if (!json_is_array(a) || n > MACHINE_IDLE_SETS_MAX)
                return -EBADMSG;
        m->idle_sets = calloc(n + 1, sizeof(*m->idle_sets));
        if (!m->idle_sets)
                return -ENOMEM;
        m->n_idle_sets = (uint32_t) n;
        for (size_t i = 0; i < n; i++) {
                const json_t *states = json_object_get(json_array_get(a, i), "states");
                IdleSet *set = &m->idle_sets[i];

                if (!json_is_array(states) || json_array_size(states) > IDLE_STATES_MAX)
                        return -EBADMSG;
                set->n_states = (uint32_t) json_array_size(states);
                for (uint32_t k = 0; k < set->n_states; k++)
                        if (decode_members(json_array_get(states, k), &state_members,
                                    &set->states[k]) < 0)
                                return -EBADMSG;
        }
        return 0;
}

static int decode_ident_extras(const json_t *object, CpuIdent *c) {
        const json_t *substates = json_object_get(object, "mwait_substates");
        uint64_t u;

        if (decode_unsigned(json_object_get(object, "core_type"), CORE_TYPE_EFFICIENT, &u) < 0)
                return -EBADMSG;
        c->core_type = (CpuCoreType) u;
        if (!json_is_array(substates) || json_array_size(substates) != ARRAY_SIZE(c->mwait_substates))
                return -EBADMSG;
        for (size_t k = 0; k < ARRAY_SIZE(c->mwait_substates); k++) {
                if (decode_unsigned(json_array_get(substates, k), UINT8_MAX, &u) < 0)
                        return -EBADMSG;
                c->mwait_substates[k] = (uint8_t) u;
        }
        return 0;
}

static int decode_idents(const json_t *object, Machine *m) {
        const json_t *a = json_object_get(object, "idents");
        int r = DECODE_ARRAY(object, "idents", &ident_members, MACHINE_IDENTS_MAX, &m->idents, &m->n_idents);

        for (uint32_t i = 0; r == 0 && i < m->n_idents; i++)
                r = decode_ident_extras(json_array_get(a, i), &m->idents[i]);
        return r;
}

static int decode_column(const json_t *object, Layout *l) {
        const char *name = json_string_value(json_object_get(object, "field"));
        FieldId field = name ? field_from_name(name) : FIELD_NONE;
        LayoutColumn c = {}, *added;
        uint64_t instance;

        if (field == FIELD_NONE || field_spec(field)->kind == FIELD_DERIVED)
                return -EBADMSG;
        if (decode_unsigned(json_object_get(object, "instance"), field_n_instances(field) - 1, &instance) < 0 ||
                decode_members(object, &column_members, &c) < 0)
                return -EBADMSG;
        if (c.width < 1 || c.width > 64 || !(c.scale > 0))
                return -EBADMSG;
        added = layout_add(l, field, (uint8_t) instance);
        if (!added)
                return -EBADMSG;
        added->width = c.width;
        added->range = c.range;
        added->scale = c.scale;
        added->source = c.source;
        return 0;
}

static int decode_layout(const json_t *object, Machine *m) {
        const json_t *a = json_object_get(object, "columns");

        if (!json_is_array(a) || json_array_size(a) > LAYOUT_COLUMNS_MAX)
                return -EBADMSG;
        for (size_t i = 0; i < json_array_size(a); i++) {
                int r = decode_column(json_array_get(a, i), &m->layout);

                if (r < 0)
                        return r;
        }
        machine_finish_layout(m);
        return 0;
}

static int decode_machine(const json_t *root, Machine *m) {
        int r = decode_members(root, &machine_members, m);

        if (r == 0)
                r = DECODE_ARRAY(
                        root, "packages", &package_members, MACHINE_CPUS_MAX, &m->packages, &m->n_packages);
        if (r == 0)
                r = DECODE_ARRAY(
                        root, "modules", &module_members, MACHINE_CPUS_MAX, &m->modules, &m->n_modules);
        if (r == 0)
                r = DECODE_ARRAY(root, "cores", &core_members, MACHINE_CPUS_MAX, &m->cores, &m->n_cores);
        if (r == 0)
                r = DECODE_ARRAY(root, "cpus", &cpu_members, MACHINE_CPUS_MAX, &m->cpus, &m->n_cpus);
        if (r == 0)
                r = decode_offline(root, m);
        if (r == 0)
                r = decode_idle_sets(root, m);
        if (r == 0)
                r = decode_idents(root, m);
        if (r == 0)
                r = decode_layout(root, m);
        if (r == 0)
                r = machine_validate(m);
        return r;
}

int machine_from_json(const char *json, size_t n, Machine **ret) {
        _cleanup_(machine_freep) Machine *m = machine_new();
        json_t *root;
        int r;

        if (!m)
                return -ENOMEM;
        root = json_loadb(json, n, JSON_REJECT_DUPLICATES, NULL);
        if (!root)
                return -EBADMSG;
        r = decode_machine(root, m);
        json_decref(root);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(m);
        return 0;
}
