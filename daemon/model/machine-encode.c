/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A machine as JSON text. */

#include <string.h>

#include "cstated/macro.h"

#include "base/json-writer.h"
#include "model/machine-members.h"
#include "model/machine.h"

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

static void encode_members(JsonWriter *j, const MemberTable *t, const void *object) {
        for (size_t i = 0; i < t->n; i++)
                encode_member(j, &t->members[i], object);
}

#define ENCODE_ARRAY(j, key, t, array, n) encode_array(j, key, t, array, n, sizeof(*(array)))

static void encode_array(
        JsonWriter *j, const char *key, const MemberTable *t, const void *array, size_t n, size_t size) {
        jw_key(j, key);
        jw_begin_array(j);
        for (size_t i = 0; i < n; i++) {
                jw_begin_object(j);
                encode_members(j, t, (const char *) array + i * size);
                jw_end_object(j);
        }
        jw_end_array(j);
}

static void encode_idle_sets(JsonWriter *j, const Machine *m) {
        jw_key(j, "idle_sets");
        jw_begin_array(j);
        for (uint32_t i = 0; i < m->n_idle_sets; i++) {
                jw_begin_object(j);
                ENCODE_ARRAY(j, "states", &state_members, m->idle_sets[i].states, m->idle_sets[i].n_states);
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
                encode_members(j, &ident_members, c);
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
                encode_members(j, &column_members, &l->columns[i]);
                jw_end_object(j);
        }
        jw_end_array(j);
}

char *machine_to_json(const Machine *m) {
        JsonWriter j = JSON_WRITER_INIT;

        jw_begin_object(&j);
        encode_members(&j, &machine_members, m);
        ENCODE_ARRAY(&j, "packages", &package_members, m->packages, m->n_packages);
        ENCODE_ARRAY(&j, "modules", &module_members, m->modules, m->n_modules);
        ENCODE_ARRAY(&j, "cores", &core_members, m->cores, m->n_cores);
        ENCODE_ARRAY(&j, "cpus", &cpu_members, m->cpus, m->n_cpus);
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
