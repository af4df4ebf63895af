/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which members of the machine's structs its JSON holds, for its encoder and its decoder alone: one table a struct, so
 * that the two cannot drift apart.
 */

#include <stddef.h>
#include <stdint.h>

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

typedef struct MemberTable {
        const Member *members;
        size_t n;
} MemberTable;

extern const MemberTable machine_members;
extern const MemberTable cpu_members;
extern const MemberTable core_members;
extern const MemberTable module_members;
extern const MemberTable package_members;
extern const MemberTable state_members;
extern const MemberTable ident_members;
extern const MemberTable column_members;
