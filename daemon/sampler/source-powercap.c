/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Energy from powercap zones, for the fields that no better source gives. energy_uj is in microjoules
 * already, whatever unit the register has: the scale is 1e-6 and no second correction is made. The kernel
 * computes it from a 32-bit register, so it wraps from max_energy_range_uj to (almost) 0: the column's range
 * is max_energy_range_uj + 1 where all its zones agree, else unknown, and then a decrease is no value
 * instead of a guess.
 *
 * A read makes the kernel ask the package's first CPU (one IPI), save for zones that are memory-mapped.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cstated/macro.h"
#include "sampler/powercap-probe.h"
#include "sampler/source.h"

#define NS_PER_S 1000000000ull
#define RETRY_NS (10 * NS_PER_S)

typedef struct PowercapSource {
        Source base;
        Sysfs *sysfs;
        PowercapZones zones;
        bool owns_pkg_ns, owns_sys_ns;
        bool *woken; /* by package */
} PowercapSource;

static uint64_t now_ns(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * NS_PER_S + (uint64_t) ts.tv_nsec;
}

static Source *powercap_close(Source *source) {
        PowercapSource *s = (PowercapSource *) source;

        if (!s)
                return NULL;
        powercap_zones_deinit(&s->zones);
        free(s->woken);
        free(s);
        return NULL;
}

static bool is_denied(int error) {
        return error == -EACCES || error == -EPERM;
}

static bool layout_has(const Layout *l, FieldId field) {
        for (size_t i = 0; i < l->n_columns; i++)
                if (l->columns[i].field == field)
                        return true;
        return false;
}

/* The range all zones of a field share, 0 where they do not or one is unknown. */
static uint64_t common_range(const PowercapZones *z, FieldId field) {
        uint64_t range = UINT64_MAX;

        for (uint32_t i = 0; i < z->n; i++) {
                if (z->zones[i].field != field)
                        continue;
                if (range != UINT64_MAX && z->zones[i].range_uj != range)
                        return 0;
                range = z->zones[i].range_uj;
        }
        return range == UINT64_MAX || range == 0 ? 0 : range + 1;
}

static uint32_t add_span(Layout *l, FieldId field, uint8_t index) {
        LayoutColumn *c = layout_add(l, field, 0);

        if (!c)
                return 0;
        c->source = index;
        return 1;
}

static uint32_t add_columns(PowercapSource *s, Layout *l) {
        uint32_t added = 0;

        for (uint32_t i = 0; i < s->zones.n; i++) {
                FieldId field = s->zones.zones[i].field;
                LayoutColumn *c;

                if (field == FIELD_NONE)
                        continue;
                c = layout_add(l, field, 0);
                if (!c)
                        continue; /* a package before had it */
                c->width = 64;
                c->range = common_range(&s->zones, field);
                c->scale = 1e-6;
                c->source = s->base.index;
                added += 1 + add_span(l, field_spec(field)->span, s->base.index);
        }
        return added;
}

/* What the counted zones say together; texts stay the same while nothing changes. */
static void report(const PowercapSource *s, SourceStatus *status) {
        const PowercapZone *failed = NULL;
        uint32_t counted = 0, n_failed = 0;

        for (uint32_t i = 0; i < s->zones.n; i++) {
                const PowercapZone *z = &s->zones.zones[i];

                counted += z->field != FIELD_NONE;
                if (z->field == FIELD_NONE || z->error == 0)
                        continue;
                failed = failed ? failed : z;
                n_failed++;
        }
        status->state = SOURCE_OK;
        status->error = 0;
        status->hint[0] = '\0';
        (void) snprintf(status->detail, sizeof(status->detail), "%u zones, %u counted here",
                (unsigned) s->zones.n, (unsigned) counted);
        if (!failed)
                return;
        if (is_denied(failed->error)) {
                status->state = SOURCE_DENIED;
                status->error = -failed->error;
                (void) snprintf(status->hint, sizeof(status->hint),
                        "powercap %s/energy_uj is for root since Linux 5.10: needs CAP_DAC_READ_SEARCH "
                        "or a udev rule that lets the group read it",
                        failed->dir);
                return;
        }
        status->state = n_failed == counted ? SOURCE_ERROR : SOURCE_OK;
        status->error = -failed->error;
        (void) snprintf(status->hint, sizeof(status->hint),
                "powercap %s (%s): energy_uj cannot be read (%s)", failed->dir, failed->name,
                strerrordesc_np(-failed->error));
}

static void try_zones(PowercapSource *s, const Layout *l) {
        for (uint32_t i = 0; i < s->zones.n; i++) {
                PowercapZone *z = &s->zones.zones[i];

                if (z->field != FIELD_NONE && layout_has(l, z->field))
                        powercap_zone_drop(z); /* a better source has it */
                else if (z->field != FIELD_NONE)
                        powercap_zone_try(s->sysfs, z);
        }
}

static int powercap_probe(Sysfs *sysfs, Machine *m, uint8_t index, Source **ret, SourceStatus *status) {
        PowercapSource *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        s->base = (Source){&source_ops_powercap, index};
        s->sysfs = sysfs;
        s->woken = calloc(m->n_packages + 1, sizeof(bool));
        r = s->woken ? powercap_zones_read(sysfs, m, &s->zones) : -ENOMEM;
        if (r == -ENOMEM) {
                (void) powercap_close(&s->base);
                return r;
        }
        if (r < 0) {
                source_status_set_error(status, r, "/sys/class/powercap");
        } else {
                try_zones(s, &m->layout);
                status->n_counters = add_columns(s, &m->layout);
                report(s, status);
        }
        *ret = &s->base;
        return 0;
}

static bool owns(const PowercapSource *s, const Layout *l, FieldId field) {
        const LayoutColumn *c = layout_find(l, field, 0);

        return c && c->source == s->base.index;
}

static int powercap_open(Source *source, const Machine *m) {
        PowercapSource *s = (PowercapSource *) source;

        s->owns_pkg_ns = owns(s, &m->layout, FIELD_PKG_NS);
        s->owns_sys_ns = owns(s, &m->layout, FIELD_SYS_NS);
        return 0;
}

/* The kernel reads RAPL registers on the package's first CPU. */
static void account(PowercapSource *s, const PowercapZone *z, SourceTurn *turn) {
        const Machine *m = turn->machine;
        uint32_t package = z->field == FIELD_ENERGY_SYS ? 0 : z->entity;

        if (z->control != ZONE_CONTROL_RAPL || package >= m->n_packages)
                return;
        turn->n_remote_reads++;
        turn->activity[m->packages[package].first_cpu].asking++;
        if (s->woken[package] || !turn->activity[m->packages[package].first_cpu].slept)
                return;
        s->woken[package] = true;
        turn->n_wakeups++;
}

/* 1 where a zone that was denied can be read now: its range is not known yet, so the columns are made anew.
 */
static int read_zone(PowercapSource *s, PowercapZone *z, SourceTurn *turn) {
        uint8_t *reasons;
        uint64_t *values = source_values(turn, z->field, 0, &reasons), uj = 0;
        bool was_denied = is_denied(z->error);

        if (!values)
                return 0;
        if (z->retry_ns <= turn->now_ns) {
                account(s, z, turn);
                z->error = powercap_zone_read(s->sysfs, z, &uj);
                z->retry_ns = z->error < 0 ? turn->now_ns + RETRY_NS : 0;
        }
        if (z->error < 0) {
                reasons[z->entity] = (uint8_t) source_reason(-z->error);
                return 0;
        }
        values[z->entity] = uj;
        reasons[z->entity] = REASON_NONE;
        return was_denied ? 1 : 0;
}

static void set_all(const SourceTurn *turn, FieldId field, Reason reason, uint64_t value) {
        uint8_t *reasons;
        uint64_t *values = source_values(turn, field, 0, &reasons);
        uint32_t n = machine_n_entities(turn->machine, field_spec(field)->scope);

        for (uint32_t e = 0; values && e < n; e++) {
                reasons[e] = (uint8_t) reason;
                values[e] = value;
        }
}

/* Packages that have no zone in a column of ours are absent in it. */
static void begin_columns(const PowercapSource *s, const SourceTurn *turn) {
        static const FieldId fields[] = {
                FIELD_ENERGY_PKG,
                FIELD_ENERGY_RAM,
                FIELD_ENERGY_COR,
                FIELD_ENERGY_GFX,
                FIELD_ENERGY_SYS,
        };

        for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
                if (owns(s, &turn->machine->layout, fields[i]))
                        set_all(turn, fields[i], REASON_ABSENT, 0);
}

/* The zones of one package (UINT32_MAX: the platform's) and the time of their reading. */
static int read_zones(PowercapSource *s, SourceTurn *turn, uint32_t package) {
        uint64_t begin = now_ns(), end;
        uint8_t *reasons;
        uint64_t *times;
        int changed = 0;

        for (uint32_t i = 0; i < s->zones.n; i++) {
                PowercapZone *z = &s->zones.zones[i];
                bool is_mine = package == UINT32_MAX
                                       ? z->field == FIELD_ENERGY_SYS
                                       : z->field != FIELD_NONE && z->field != FIELD_ENERGY_SYS &&
                                                 z->entity == package;

                if (is_mine)
                        changed |= read_zone(s, z, turn);
        }
        end = now_ns();
        if (package == UINT32_MAX ? !s->owns_sys_ns : !s->owns_pkg_ns)
                return changed;
        times = source_values(turn, package == UINT32_MAX ? FIELD_SYS_NS : FIELD_PKG_NS, 0, &reasons);
        if (times) {
                times[package == UINT32_MAX ? 0 : package] = begin + (end - begin) / 2;
                reasons[package == UINT32_MAX ? 0 : package] = REASON_NONE;
        }
        return changed;
}

static int powercap_read(Source *source, SourceTurn *turn, SourceStatus *status) {
        PowercapSource *s = (PowercapSource *) source;
        int changed = 0;

        memset(s->woken, 0, turn->machine->n_packages * sizeof(bool));
        begin_columns(s, turn);
        for (uint32_t i = 0; i < turn->machine->n_packages; i++)
                changed |= read_zones(s, turn, i);
        changed |= read_zones(s, turn, UINT32_MAX);
        report(s, status);
        return changed;
}

const SourceOps source_ops_powercap = {
        .name = "powercap",
        .passive = false,
        .probe = powercap_probe,
        .open = powercap_open,
        .read = powercap_read,
        .close = powercap_close,
};
