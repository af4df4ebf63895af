/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * /sys/class/powercap is flat: "intel-rapl:0:1" is a child of "intel-rapl:0". A host may show the same
 * package through several control types; counting both would double it, so a field of an entity belongs to
 * one zone only. psys holds the packages and is the platform's; core and uncore lie inside their package.
 * AMD's "core" zone is the energy of one core (the MSR behind it is per core) and belongs to no field of
 * ours.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cstated/macro.h"
#include "sampler/powercap-probe.h"

#define POWERCAP_DIR "sys/class/powercap"

static uint32_t find_parent(const PowercapZones *z, const char *dir) {
        for (uint32_t i = 0; i < z->n; i++)
                if (zone_is_child(dir, z->zones[i].dir))
                        return i;
        return UINT32_MAX;
}

static void read_zone(Sysfs *sysfs, PowercapZones *z, const char *dir) {
        PowercapZone *zone = &z->zones[z->n];
        int r;

        *zone = (PowercapZone){.fd = -1, .parent = UINT32_MAX, .entity = UINT32_MAX};
        if (strlen(dir) >= sizeof(zone->dir))
                return;
        (void) snprintf(zone->dir, sizeof(zone->dir), "%s", dir);
        r = sysfs_read_line(sysfs, zone->name, sizeof(zone->name), POWERCAP_DIR "/%s/name", dir);
        if (r == -ENOENT)
                return; /* not a zone after all */
        if (r < 0)
                (void) snprintf(zone->name, sizeof(zone->name), "%s", dir);
        zone->control = zone_control(dir);
        zone->parsed = zone_name_parse(zone->name);
        z->n++;
}

/* A child is of its parent's package. */
static void inherit(PowercapZones *z) {
        for (uint32_t i = 0; i < z->n; i++) {
                PowercapZone *zone = &z->zones[i];

                zone->parent = find_parent(z, zone->dir);
                if (zone->parent == UINT32_MAX || zone->parsed.domain == ZONE_PACKAGE)
                        continue;
                zone->parsed.package = z->zones[zone->parent].parsed.package;
                zone->parsed.die = z->zones[zone->parent].parsed.die;
        }
}

/* The package a zone is of: with its die, without where the machine counts none, or the only one there is.
 */
static uint32_t find_package(const Machine *m, const ZoneName *name) {
        uint32_t e;

        if (name->package < 0)
                return m->n_packages == 1 ? 0 : UINT32_MAX;
        e = machine_package_index(m, name->package, name->die);
        if (e != UINT32_MAX)
                return e;
        for (uint32_t i = 0; i < m->n_packages; i++) {
                const MachinePackage *p = &m->packages[i];

                if (p->package == name->package && (p->die < 0 || (name->die < 0 && p->die == 0)))
                        return i;
        }
        return UINT32_MAX;
}

static bool is_amd(const Machine *m) {
        return m->n_idents > 0 && m->idents[0].amd_rapl;
}

static bool is_taken(const PowercapZones *z, FieldId field, uint32_t entity) {
        for (uint32_t i = 0; i < z->n; i++)
                if (z->zones[i].field == field && z->zones[i].entity == entity)
                        return true;
        return false;
}

static void attribute(PowercapZones *z, PowercapZone *zone, const Machine *m) {
        FieldId field = zone_field(zone->parsed.domain);
        uint32_t entity;

        if (field == FIELD_NONE || (zone->parsed.domain == ZONE_CORE && is_amd(m)))
                return;
        entity = field == FIELD_ENERGY_SYS ? 0 : find_package(m, &zone->parsed);
        if (entity == UINT32_MAX || is_taken(z, field, entity))
                return;
        zone->field = field;
        zone->entity = entity;
}

static void attribute_all(PowercapZones *z, const Machine *m) {
        static const ZoneControl order[] = {
                ZONE_CONTROL_RAPL, ZONE_CONTROL_RAPL_TPMI, ZONE_CONTROL_RAPL_MMIO};

        for (size_t k = 0; k < ARRAY_SIZE(order); k++)
                for (uint32_t i = 0; i < z->n; i++)
                        if (z->zones[i].control == order[k])
                                attribute(z, &z->zones[i], m);
}

int powercap_zone_read(Sysfs *sysfs, PowercapZone *z, uint64_t *ret) {
        if (z->fd < 0) {
                int fd = sysfs_open(sysfs, POWERCAP_DIR "/%s/energy_uj", z->dir);

                if (fd < 0)
                        return fd;
                z->fd = fd;
        }
        return sysfs_pread_u64(z->fd, ret);
}

void powercap_zone_try(Sysfs *sysfs, PowercapZone *z) {
        uint64_t uj = 0;

        if (sysfs_read_u64(sysfs, &z->range_uj, POWERCAP_DIR "/%s/max_energy_range_uj", z->dir) < 0)
                z->range_uj = 0;
        z->error = powercap_zone_read(sysfs, z, &uj);
        if (z->error == 0 && uj == 0)
                z->error = powercap_zone_read(sysfs, z, &uj);
        if (z->error == -ENOENT || (z->error == 0 && uj == 0))
                powercap_zone_drop(z);
}

void powercap_zone_drop(PowercapZone *z) {
        if (z->fd >= 0)
                (void) close(z->fd);
        z->fd = -1;
        z->field = FIELD_NONE;
}

int powercap_zones_read(Sysfs *sysfs, const Machine *m, PowercapZones *ret) {
        PowercapZones z = {};
        char **names;
        size_t n;
        int r;

        r = sysfs_list(sysfs, zone_is_dir, &names, &n, POWERCAP_DIR);
        if (r < 0)
                return r;
        z.zones = calloc(MIN(n, (size_t) POWERCAP_ZONES_MAX) + 1, sizeof(z.zones[0]));
        for (size_t i = 0; z.zones && i < MIN(n, (size_t) POWERCAP_ZONES_MAX); i++)
                read_zone(sysfs, &z, names[i]);
        sysfs_names_free(names, n);
        if (!z.zones || z.n == 0) {
                r = z.zones ? -ENOENT : -ENOMEM;
                free(z.zones);
                return r;
        }
        inherit(&z);
        attribute_all(&z, m);
        *ret = z;
        return 0;
}

void powercap_zones_deinit(PowercapZones *z) {
        for (uint32_t i = 0; i < z->n; i++)
                powercap_zone_drop(&z->zones[i]);
        free(z->zones);
        *z = (PowercapZones){};
}
