/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The inventory of powercap zones: each exactly once, by its directory, and which of them are counted for
 * what. */

#include "model/machine.h"
#include "sampler/powercap-zone.h"
#include "sampler/sysfs.h"

#define POWERCAP_ZONES_MAX 4096

typedef struct PowercapZone {
        char dir[48]; /* below sys/class/powercap: identity */
        char name[48];
        uint32_t parent; /* index, UINT32_MAX: a top zone */
        ZoneControl control;
        ZoneName parsed;   /* package and die inherited from the parent */
        FieldId field;     /* FIELD_NONE: listed only */
        uint32_t entity;   /* of the field's scope */
        uint64_t range_uj; /* 0: could not be read */
        int error;         /* -errno of the last reading */
        int fd;            /* -1: not open */
        uint64_t retry_ns;
} PowercapZone;

typedef struct PowercapZones {
        uint32_t n;
        PowercapZone *zones; /* sorted by directory: parents before children */
} PowercapZones;

/*
 * Lists and attributes all zones: one zone a field and entity, intel-rapl before intel-rapl-tpmi before
 * intel-rapl-mmio, of equals the first by directory. Reads no energy. -ENOMEM, -ENOENT (no zones).
 */
int powercap_zones_read(Sysfs *sysfs, const Machine *m, PowercapZones *ret);
void powercap_zones_deinit(PowercapZones *z);

/* A counted zone's range and first reading (its error is kept); what reads 0 proves nothing and is dropped.
 */
void powercap_zone_try(Sysfs *sysfs, PowercapZone *z);
/* It stays in the list but is not counted. */
void powercap_zone_drop(PowercapZone *z);
/* Reads a zone's energy into *ret, opening it where needed. -errno. */
int powercap_zone_read(Sysfs *sysfs, PowercapZone *z, uint64_t *ret);
