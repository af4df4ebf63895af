/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The powercap class: control types, zones, and the links by which the class directory names them. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "node.h"

static size_t control_length(const Zone *z) {
        return strcspn(z->dir, ":");
}

static bool same_control(const Zone *a, const Zone *b) {
        return control_length(a) == control_length(b) && strncmp(a->dir, b->dir, control_length(a)) == 0;
}

/* The zone whose prefix first names the i-th control type. */
static const Zone *control_zone(const Machine *m, unsigned index) {
        for (unsigned i = 0; i < m->n_zones; i++) {
                bool seen = false;

                for (unsigned k = 0; k < i; k++)
                        seen |= same_control(&m->zones[k], &m->zones[i]);
                if (!seen && index-- == 0)
                        return &m->zones[i];
        }
        return NULL;
}

unsigned powercap_controls(const Machine *m) {
        unsigned n = 0;

        while (control_zone(m, n))
                n++;
        return n;
}

void powercap_control_name(const Machine *m, unsigned i, char name[64]) {
        const Zone *z = control_zone(m, i);

        (void) snprintf(name, 64, "%.*s", z ? (int) control_length(z) : 0, z ? z->dir : "");
}

bool powercap_in_control(const Machine *m, unsigned control, const Zone *zone) {
        const Zone *z = control_zone(m, control);

        return z && same_control(z, zone);
}

static void zone_path(const Machine *m, const Zone *z, Buf *b) {
        if (z->parent >= 0)
                zone_path(m, &m->zones[z->parent], b);
        else
                buf_printf(b, "../../devices/virtual/powercap/%.*s", (int) control_length(z), z->dir);
        buf_printf(b, "/%s", z->dir);
}

static int render_link(const Machine *m, Node n, Buf *b) {
        char name[64];

        if (n.a == 1 && n.b < m->n_zones)
                zone_path(m, &m->zones[n.b], b);
        else {
                powercap_control_name(m, n.b, name);
                buf_printf(b, "../../devices/virtual/powercap/%s", name);
        }
        return 0;
}

static int render_zone(
        const Machine *m, Node n, int64_t t_ns, Buf *b, uint64_t *ret_value, bool *ret_counts) {
        const Zone *z = &m->zones[n.b];

        if (n.b >= m->n_zones || m->files[FILE_POWERCAP].hidden)
                return -ENODEV;
        switch (n.c) {
        case ZONE_FILE_NAME:
                buf_printf(b, "%s\n", z->name);
                return 0;
        case ZONE_FILE_ENERGY:
                if (z->read_errno != 0)
                        return -z->read_errno;
                *ret_value = zone_energy_uj(m, z, t_ns);
                *ret_counts = true;
                buf_printf(b, "%" PRIu64 "\n", *ret_value);
                return 0;
        case ZONE_FILE_RANGE:
                buf_printf(b, "%" PRIu64 "\n", z->range_uj);
                return 0;
        case ZONE_FILE_ENABLED:
                buf_printf(b, "1\n");
                return 0;
        case 4:
                buf_printf(b, "long_term\n");
                return 0;
        case 6:
                buf_printf(b, "999424\n");
                return 0;
        default:
                buf_printf(b, "%u\n", m->profile->tdp_watts * 1000000);
                return 0;
        }
}

int powercap_render(Machine *m, Node n, int64_t t_ns, Buf *b, uint64_t *ret_value, bool *ret_counts) {
        switch ((int) n.kind) {
        case NODE_CLASS_LINK:
                return render_link(m, n, b);
        case NODE_CONTROL_FILE:
                buf_printf(b, "1\n");
                return 0;
        case NODE_ZONE_FILE:
                return render_zone(m, n, t_ns, b, ret_value, ret_counts);
        default:
                return -EINVAL;
        }
}
