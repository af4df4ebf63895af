/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A machine as JSON and back. Tables of members say what each struct holds, one encoder and one decoder walk them, so
 * that the two cannot drift apart. The decoder reads frames of another process and rows of files from elsewhere: every
 * member must be there, of its type and range, every index must point at something, every array must be sorted as
 * machine.h says; what look-ups and loops rely on is checked here once and nowhere else.
 */

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cstated/macro.h"
#include "cstated/num.h"

#include "base/json-writer.h"
#include "model/machine.h"

typedef enum MemberType {
        MEMBER_U8,
        MEMBER_U16,
        MEMBER_U32,
        MEMBER_I32,
        MEMBER_U64,     /* below 2^63 */
        MEMBER_HEX64,   /* as text: all 64 bits */
        MEMBER_BOOL,
        MEMBER_STRING,
        MEMBER_DOUBLE,
        MEMBER_INDEX16, /* all ones: null */
        MEMBER_INDEX32,
} MemberType;

typedef struct Member {
        const char *key;
        MemberType type;
        uint16_t offset, size;
} Member;

#define MEMBER(struct_, type_, name_) \
        { #name_, MEMBER_##type_, offsetof(struct_, name_), sizeof(((struct_ *) NULL)->name_) }

static const Member machine_members[] = {
        MEMBER(Machine, U32, generation),
        MEMBER(Machine, STRING, boot_id),
        MEMBER(Machine, STRING, host),
        MEMBER(Machine, STRING, kernel),
        MEMBER(Machine, STRING, idle_driver),
        MEMBER(Machine, STRING, idle_governor),
        MEMBER(Machine, STRING, bugs),
        MEMBER(Machine, BOOL, has_bugs),
        MEMBER(Machine, BOOL, hypervisor),
        MEMBER(Machine, U64, tsc_hz),
        MEMBER(Machine, U32, user_hz),
        MEMBER(Machine, HEX64, pkg_cst_config),
        MEMBER(Machine, BOOL, has_pkg_cst_config),
};

static const Member cpu_members[] = {
        MEMBER(MachineCpu, U32, id),
        MEMBER(MachineCpu, U32, package),
        MEMBER(MachineCpu, U32, core),
        MEMBER(MachineCpu, INDEX32, module),
        MEMBER(MachineCpu, U16, thread),
        MEMBER(MachineCpu, INDEX16, idle_set),
        MEMBER(MachineCpu, U16, ident),
};

static const Member core_members[] = {
        MEMBER(MachineCore, I32, id),
        MEMBER(MachineCore, U32, package),
        MEMBER(MachineCore, U32, first_cpu),
};

static const Member module_members[] = {
        MEMBER(MachineModule, I32, id),
        MEMBER(MachineModule, U32, package),
        MEMBER(MachineModule, U32, first_cpu),
};

static const Member package_members[] = {
        MEMBER(MachinePackage, I32, package),
        MEMBER(MachinePackage, I32, die),
        MEMBER(MachinePackage, U32, first_cpu),
};

static const Member state_members[] = {
        MEMBER(IdleState, STRING, name),
        MEMBER(IdleState, STRING, desc),
        MEMBER(IdleState, U32, exit_latency_us),
        MEMBER(IdleState, U32, target_residency_us),
        MEMBER(IdleState, I32, mwait_hint),
        MEMBER(IdleState, BOOL, disabled),
        MEMBER(IdleState, BOOL, is_poll),
};

static const Member ident_members[] = {
        MEMBER(CpuIdent, STRING, vendor),
        MEMBER(CpuIdent, STRING, brand),
        MEMBER(CpuIdent, STRING, uarch),
        MEMBER(CpuIdent, STRING, hypervisor_vendor),
        MEMBER(CpuIdent, U32, family),
        MEMBER(CpuIdent, U32, model),
        MEMBER(CpuIdent, U32, stepping),
        MEMBER(CpuIdent, U32, signature),
        MEMBER(CpuIdent, U32, microcode),
        MEMBER(CpuIdent, U32, max_leaf),
        MEMBER(CpuIdent, U32, max_extended_leaf),
        MEMBER(CpuIdent, BOOL, hypervisor),
        MEMBER(CpuIdent, BOOL, has_monitor),
        MEMBER(CpuIdent, BOOL, has_clflush),
        MEMBER(CpuIdent, BOOL, hybrid),
        MEMBER(CpuIdent, BOOL, has_aperfmperf),
        MEMBER(CpuIdent, BOOL, has_dts),
        MEMBER(CpuIdent, BOOL, has_pkg_dts),
        MEMBER(CpuIdent, BOOL, has_arat),
        MEMBER(CpuIdent, BOOL, invariant_tsc),
        MEMBER(CpuIdent, BOOL, amd_rapl),
        MEMBER(CpuIdent, U32, mwait_smallest),
        MEMBER(CpuIdent, U32, mwait_largest),
        MEMBER(CpuIdent, BOOL, mwait_emx),
        MEMBER(CpuIdent, BOOL, mwait_ibe),
        MEMBER(CpuIdent, U32, tsc_ratio_den),
        MEMBER(CpuIdent, U32, tsc_ratio_num),
        MEMBER(CpuIdent, U32, crystal_hz),
        MEMBER(CpuIdent, U32, base_mhz),
        MEMBER(CpuIdent, U32, max_mhz),
        MEMBER(CpuIdent, U32, bus_mhz),
        MEMBER(CpuIdent, U32, topology_leaf),
        MEMBER(CpuIdent, U32, n_cpus),
};

static const Member column_members[] = {
        MEMBER(LayoutColumn, U8, width),
        MEMBER(LayoutColumn, U64, range),
        MEMBER(LayoutColumn, DOUBLE, scale),
        MEMBER(LayoutColumn, U8, source),
};

/* ---- out ---- */

static uint64_t load_unsigned(const void *p, uint16_t size) {
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;

        switch (size) {
        case 1:
                return memcpy(&u8, p, 1), u8;
        case 2:
                return memcpy(&u16, p, 2), u16;
        case 4:
                return memcpy(&u32, p, 4), u32;
        default:
                return memcpy(&u64, p, 8), u64;
        }
}

static void encode_member(JsonWriter *j, const Member *m, const void *object) {
        const void *p = (const char *) object + m->offset;
        uint64_t u = m->type == MEMBER_STRING ? 0 : load_unsigned(p, m->size);
        char text[24];
        double d;

        jw_key(j, m->key);
        switch (m->type) {
        case MEMBER_STRING:
                jw_string_n(j, p, strnlen(p, m->size));
                break;
        case MEMBER_BOOL:
                jw_bool(j, u != 0);
                break;
        case MEMBER_I32:
                jw_i64(j, (int32_t) (uint32_t) u);
                break;
        case MEMBER_DOUBLE:
                memcpy(&d, p, sizeof(d));
                jw_double(j, d, 17);
                break;
        case MEMBER_HEX64:
                (void) snprintf(text, sizeof(text), "0x%llx", (unsigned long long) u);
                jw_string(j, text);
                break;
        case MEMBER_INDEX16:
        case MEMBER_INDEX32:
                if (u == (m->type == MEMBER_INDEX16 ? UINT16_MAX : UINT32_MAX)) {
                        jw_null(j);
                        break;
                }
                jw_u64(j, u);
                break;
        case MEMBER_U8:
        case MEMBER_U16:
        case MEMBER_U32:
        case MEMBER_U64:
        default:
                jw_u64(j, u);
        }
}

static void encode_members(JsonWriter *j, const Member *members, size_t n, const void *object) {
        for (size_t i = 0; i < n; i++)
                encode_member(j, &members[i], object);
}

#define ENCODE_ARRAY(j, key, members, array, n) \
        encode_array(j, key, members, ARRAY_SIZE(members), array, n, sizeof(*(array)))

static void encode_array(
        JsonWriter *j, const char *key, const Member *members, size_t n_members, const void *array, size_t n, size_t size) {
        jw_key(j, key);
        jw_begin_array(j);
        for (size_t i = 0; i < n; i++) {
                jw_begin_object(j);
                encode_members(j, members, n_members, (const char *) array + i * size);
                jw_end_object(j);
        }
        jw_end_array(j);
}

static void encode_idle_sets(JsonWriter *j, const Machine *m) {
        jw_key(j, "idle_sets");
        jw_begin_array(j);
        for (uint32_t i = 0; i < m->n_idle_sets; i++) {
                jw_begin_object(j);
                ENCODE_ARRAY(j, "states", state_members, m->idle_sets[i].states, m->idle_sets[i].n_states);
                jw_end_object(j);
        }
        jw_end_array(j);
}

static void encode_idents(JsonWriter *j, const Machine *m) {
        jw_key(j, "idents");
        jw_begin_array(j);
        for (uint32_t i = 0; i < m->n_idents; i++) {
                const CpuIdent *c = &m->idents[i];

                jw_begin_object(j);
                encode_members(j, ident_members, ARRAY_SIZE(ident_members), c);
                jw_key_u64(j, "core_type", c->core_type);
                jw_key(j, "mwait_substates");
                jw_begin_array(j);
                for (size_t k = 0; k < ARRAY_SIZE(c->mwait_substates); k++)
                        jw_u64(j, c->mwait_substates[k]);
                jw_end_array(j);
                jw_end_object(j);
        }
        jw_end_array(j);
}

static void encode_layout(JsonWriter *j, const Layout *l) {
        jw_key(j, "columns");
        jw_begin_array(j);
        for (size_t i = 0; i < l->n_columns; i++) {
                jw_begin_object(j);
                jw_key_string(j, "field", field_spec(l->columns[i].field)->name);
                jw_key_u64(j, "instance", l->columns[i].instance);
                encode_members(j, column_members, ARRAY_SIZE(column_members), &l->columns[i]);
                jw_end_object(j);
        }
        jw_end_array(j);
}

char *machine_to_json(const Machine *m) {
        JsonWriter j = JSON_WRITER_INIT;

        jw_begin_object(&j);
        encode_members(&j, machine_members, ARRAY_SIZE(machine_members), m);
        ENCODE_ARRAY(&j, "packages", package_members, m->packages, m->n_packages);
        ENCODE_ARRAY(&j, "modules", module_members, m->modules, m->n_modules);
        ENCODE_ARRAY(&j, "cores", core_members, m->cores, m->n_cores);
        ENCODE_ARRAY(&j, "cpus", cpu_members, m->cpus, m->n_cpus);
        jw_key(&j, "offline");
        jw_begin_array(&j);
        for (uint32_t i = 0; i < m->n_offline; i++)
                jw_u64(&j, m->offline[i]);
        jw_end_array(&j);
        encode_idle_sets(&j, m);
        encode_idents(&j, m);
        encode_layout(&j, &m->layout);
        jw_end_object(&j);
        return jw_take(&j, NULL);
}

/* ---- in ---- */

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

static int decode_members(const json_t *object, const Member *members, size_t n, void *ret) {
        if (!json_is_object(object))
                return -EBADMSG;
        for (size_t i = 0; i < n; i++) {
                const json_t *v = json_object_get(object, members[i].key);
                char *p = (char *) ret + members[i].offset;
                uint64_t u;
                int r;

                if (members[i].type == MEMBER_STRING) {
                        r = decode_string(v, p, members[i].size);
                } else {
                        r = decode_number(v, &members[i], &u);
                        if (r == 0)
                                store_unsigned(p, members[i].size, u);
                }
                if (r < 0)
                        return r;
        }
        return 0;
}

#define DECODE_ARRAY(object, key, members, max, ret, ret_n) \
        decode_array(object, key, members, ARRAY_SIZE(members), max, ret, sizeof(**(ret)), ret_n)

/* *ret is the machine's own array from the start, so that a failure leaves nothing behind. */
static int decode_array(const json_t *object, const char *key, const Member *members, size_t n_members, size_t max,
        void *ret, size_t size, uint32_t *ret_n) {
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
                int r = decode_members(json_array_get(a, i), members, n_members, items + i * size);

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
                        if (decode_members(json_array_get(states, k), state_members, ARRAY_SIZE(state_members),
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
        int r = DECODE_ARRAY(object, "idents", ident_members, MACHINE_IDENTS_MAX, &m->idents, &m->n_idents);

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
        if (decode_unsigned(json_object_get(object, "instance"), IDLE_STATES_MAX - 1, &instance) < 0 ||
                decode_members(object, column_members, ARRAY_SIZE(column_members), &c) < 0)
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
        int r = decode_members(root, machine_members, ARRAY_SIZE(machine_members), m);

        if (r == 0)
                r = DECODE_ARRAY(root, "packages", package_members, MACHINE_CPUS_MAX, &m->packages, &m->n_packages);
        if (r == 0)
                r = DECODE_ARRAY(root, "modules", module_members, MACHINE_CPUS_MAX, &m->modules, &m->n_modules);
        if (r == 0)
                r = DECODE_ARRAY(root, "cores", core_members, MACHINE_CPUS_MAX, &m->cores, &m->n_cores);
        if (r == 0)
                r = DECODE_ARRAY(root, "cpus", cpu_members, MACHINE_CPUS_MAX, &m->cpus, &m->n_cpus);
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
