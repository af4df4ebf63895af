/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lists a plan keeps: fields, series and members. What they are made of is plan-resolve.c's matter. */

#include <errno.h>
#include <string.h>

#include "cstated/macro.h"

#include "query/plan-private.h"

FieldId plan_kept_ratio(const MetricSpec *m) {
        static const struct {
                const char *id;
                FieldId field;
        } kept[] = {
                { "busy", FIELD_RATIO_BUSY },
                { "c1", FIELD_RATIO_C1 },
                { "c6", FIELD_RATIO_C6 },
                { "pc6", FIELD_RATIO_PC6 },
                { "pkg_watts", FIELD_RATIO_PKG_WATTS },
                { "ram_watts", FIELD_RATIO_RAM_WATTS },
                { "wakeups", FIELD_RATIO_WAKEUPS },
        };

        for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
                if (strcmp(kept[i].id, m->id) == 0)
                        return kept[i].field;
        return FIELD_NONE;
}

static void want_field(Plan *p, FieldId field) {
        if (field == FIELD_NONE)
                return;
        for (size_t i = 0; i < p->n_fields; i++)
                if (p->fields[i] == field)
                        return;
        p->fields[p->n_fields++] = field;
}

int plan_init(Plan *p, const QuerySpec *spec) {
        size_t n = spec->n_metrics > 0 ? spec->n_metrics : metric_catalogue_n;

        *p = (Plan){ .spec = spec };
        p->metrics = calloc(n, sizeof(*p->metrics));
        if (!p->metrics)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const MetricSpec *m = spec->n_metrics > 0 ? spec->metrics[i] : &metric_catalogue[i];

                if (spec->n_metrics == 0 && m->instance == INSTANCE_BUCKET)
                        continue; /* histograms are shown to who asks for them */
                p->metrics[p->n_metrics++] = m;
                want_field(p, m->numerator);
                want_field(p, m->denominator);
                want_field(p, m->alt_numerator);
                want_field(p, m->alt_denominator);
                want_field(p, plan_kept_ratio(m));
        }
        return 0;
}

void plan_deinit(Plan *p) {
        free(p->metrics);
        free(p->series);
        free(p->table);
        free(p->members);
        *p = (Plan){};
}

static bool series_same(const Series *a, const Series *b) {
        return a->metric == b->metric && a->scope == b->scope && a->cpu == b->cpu && a->core == b->core &&
               a->module == b->module && a->package == b->package && a->die == b->die &&
               strcmp(a->state, b->state) == 0;
}

/* FNV-1a by words; the last step brings the high bits down, which are the better ones. */
static size_t series_hash(const Series *s) {
        const int64_t ids[] = { s->metric - metric_catalogue, s->scope, s->package, s->die, s->module, s->core,
                s->cpu };
        uint64_t h = 0xcbf29ce484222325ULL;

        for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
                h = (h ^ (uint64_t) ids[i]) * 0x100000001b3ULL;
        for (const char *c = s->state; *c; c++)
                h = (h ^ (uint8_t) *c) * 0x100000001b3ULL;
        return (size_t) (h ^ h >> 32);
}

/* The place of the series in the table, or the empty one where it belongs. */
static uint32_t *plan_place(const Plan *p, const Series *key) {
        size_t mask = p->table_size - 1, at = series_hash(key) & mask;

        while (p->table[at] != 0 && !series_same(&p->series[p->table[at] - 1], key))
                at = (at + 1) & mask;
        return &p->table[at];
}

/* Room for one series more; the table is at most half full. */
static int plan_grow(Plan *p) {
        size_t size = MAX(2 * p->size_series, (size_t) 64);
        Series *series;
        uint32_t *table;

        if (p->n_series < p->size_series)
                return 0;
        series = reallocarray(p->series, size, sizeof(*series));
        if (!series)
                return -ENOMEM;
        p->series = series;
        table = calloc(2 * size, sizeof(*table));
        if (!table)
                return -ENOMEM;
        free(p->table);
        p->table = table;
        p->table_size = 2 * size;
        p->size_series = size;
        for (size_t i = 0; i < p->n_series; i++)
                *plan_place(p, &p->series[i]) = (uint32_t) i + 1;
        return 0;
}

int plan_series(Plan *p, const Series *key, Series **ret) {
        uint32_t *place = p->table ? plan_place(p, key) : NULL;
        int r;

        if (!place || *place == 0) {
                if (p->n_series >= PLAN_SERIES_MAX)
                        return PLAN_E_TOO_MANY;
                r = plan_grow(p);
                if (r < 0)
                        return r;
                place = plan_place(p, key);
                p->series[p->n_series] = *key;
                *place = (uint32_t) ++p->n_series;
        }
        *ret = &p->series[*place - 1];
        return 0;
}

int plan_member(Plan *p, const Member *m) {
        if (p->n_members == p->size_members) {
                size_t size = MAX(2 * p->size_members, (size_t) 64);
                Member *members = reallocarray(p->members, size, sizeof(*members));

                if (!members)
                        return -ENOMEM;
                p->members = members;
                p->size_members = size;
        }
        p->members[p->n_members++] = *m;
        return 0;
}
