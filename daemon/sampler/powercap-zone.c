/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names as the kernel makes them (drivers/powercap/intel_rapl_common.c): a top zone is "package-N",
 * "package-N-die-M" where a package has several dies, or "psys"; below it stand "core", "uncore", "dram".
 * Other control types (dtpm, a firmware's own) use any name.
 */

#include <string.h>

#include "cstated/macro.h"
#include "cstated/num.h"
#include "sampler/powercap-zone.h"

/* Digits up to the end or a '-', as an id; moves *p. */
static bool scan_id(const char **p, int32_t *ret) {
        const char *begin = *p;
        uint64_t v;

        if (!num_scan_u64(p, begin + strlen(begin), &v) || *p - begin > 9 || (**p != '\0' && **p != '-'))
                return false;
        *ret = (int32_t) v;
        return true;
}

static bool skip(const char **p, const char *prefix) {
        size_t n = strlen(prefix);

        if (strncmp(*p, prefix, n) != 0)
                return false;
        *p += n;
        return true;
}

static bool parse_package(const char *name, ZoneName *ret) {
        const char *p = name;
        int32_t package, die = -1;

        if (!skip(&p, "package-") || !scan_id(&p, &package))
                return false;
        if (*p != '\0' && (!skip(&p, "-die-") || !scan_id(&p, &die) || *p != '\0'))
                return false;
        *ret = (ZoneName){ZONE_PACKAGE, package, die};
        return true;
}

ZoneName zone_name_parse(const char *name) {
        static const struct {
                const char *name;
                ZoneDomain domain;
        } known[] = {
                {"package", ZONE_PACKAGE},
                {"dram", ZONE_DRAM},
                {"core", ZONE_CORE},
                {"uncore", ZONE_UNCORE},
                {"psys", ZONE_PSYS},
        };
        ZoneName z = {ZONE_OPAQUE, -1, -1};

        if (parse_package(name, &z))
                return z;
        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                if (strcmp(name, known[i].name) == 0)
                        z.domain = known[i].domain;
        return z;
}

ZoneControl zone_control(const char *dir) {
        static const struct {
                const char *prefix;
                ZoneControl control;
        } known[] = {
                {"intel-rapl:", ZONE_CONTROL_RAPL},
                {"intel-rapl-mmio:", ZONE_CONTROL_RAPL_MMIO},
                {"intel-rapl-tpmi:", ZONE_CONTROL_RAPL_TPMI},
        };

        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                if (strncmp(dir, known[i].prefix, strlen(known[i].prefix)) == 0)
                        return known[i].control;
        return ZONE_CONTROL_OTHER;
}

bool zone_is_dir(const char *dir) {
        const char *colon = strchr(dir, ':');

        return colon && colon != dir && colon[1] >= '0' && colon[1] <= '9';
}

bool zone_is_child(const char *dir, const char *parent) {
        size_t n = strlen(parent);

        return strncmp(dir, parent, n) == 0 && dir[n] == ':' && !strchr(dir + n + 1, ':');
}

FieldId zone_field(ZoneDomain d) {
        switch (d) {
        case ZONE_PACKAGE:
                return FIELD_ENERGY_PKG;
        case ZONE_DRAM:
                return FIELD_ENERGY_RAM;
        case ZONE_CORE:
                return FIELD_ENERGY_COR;
        case ZONE_UNCORE:
                return FIELD_ENERGY_GFX;
        case ZONE_PSYS:
                return FIELD_ENERGY_SYS;
        case ZONE_OPAQUE:
                break;
        }
        return FIELD_NONE;
}
