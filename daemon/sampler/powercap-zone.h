/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What a powercap zone's name means. Pure; identity is a zone's directory, never its name, which may come
 * twice. */

#include <stdbool.h>
#include <stdint.h>

#include "cstated/field.h"

typedef enum ZoneDomain {
        ZONE_OPAQUE, /* a name we do not know ("dtpm", ...): listed, never counted */
        ZONE_PACKAGE,
        ZONE_DRAM,
        ZONE_CORE,
        ZONE_UNCORE,
        ZONE_PSYS,
} ZoneDomain;

typedef enum ZoneControl {
        ZONE_CONTROL_OTHER,
        ZONE_CONTROL_RAPL,      /* intel-rapl (Intel and AMD, by MSR) */
        ZONE_CONTROL_RAPL_MMIO, /* intel-rapl-mmio: the same packages once more */
        ZONE_CONTROL_RAPL_TPMI, /* intel-rapl-tpmi: where the MSRs are gone */
} ZoneControl;

typedef struct ZoneName {
        ZoneDomain domain;
        int32_t package; /* -1: the name does not say (a child has its parent's) */
        int32_t die;     /* -1: none */
} ZoneName;

/* "package-0", "package-1-die-3", "dram", "core", "uncore", "psys", anything else. "package" alone: package
 * -1. */
ZoneName zone_name_parse(const char *name);
/* "intel-rapl:0:1" -> RAPL; whatever is before the first colon decides. */
ZoneControl zone_control(const char *dir);
/* True for "<control>:N[:M...]", the directories of zones (control types have no colon). */
bool zone_is_dir(const char *dir);
/* True where `dir` lies right below `parent`: "intel-rapl:0:1" below "intel-rapl:0". */
bool zone_is_child(const char *dir, const char *parent);
/* The field that a domain's energy is, FIELD_NONE for none. */
FieldId zone_field(ZoneDomain d);
