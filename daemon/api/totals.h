/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Monotone totals of every counter since the daemon began, for /metrics. Hardware counters wrap at 32 bits
 * and restart with their CPU; a scraper wants one that only grows, so the samples' differences are added up
 * here. Entities are known by kernel ids and are never forgotten: a CPU that returns goes on where it left.
 */

#include "model/sample.h"

typedef struct Totals Totals;

Totals *totals_new(void);
Totals *totals_free(Totals *t);
DEFINE_CLEANUP(Totals *, totals_free);

/* Adds one sample (is_first and nulls add nothing). -ENOMEM: the sample is not counted. */
int totals_add(Totals *t, const Sample *s);

/* An entity as /metrics labels it: kernel ids, -1 where wider or none. */
typedef struct TotalsEntity {
        int64_t package, die, module, core, cpu;
} TotalsEntity;

/* Entities of a scope ever seen, in order of appearance; borrowed until the next totals_add(). */
size_t totals_entities(const Totals *t, Scope s, const TotalsEntity **ret);
/* Name of a CPU's idle state as last seen, NULL where it has none; by the CPU's index above. */
const char *totals_state_name(const Totals *t, size_t cpu, uint8_t instance);
/* One column: native units (ticks >> FIELD_TICK_SHIFT); scale gives base units. Borrowed as above. */
typedef struct TotalsColumn {
        FieldId field;
        uint8_t instance;
        double scale;
        const int64_t *values; /* one an entity of the field's scope */
        const bool *seen;      /* false: never had a value, so there is nothing to show */
} TotalsColumn;
/* false where no sample had such a column. */
bool totals_column(const Totals *t, FieldId field, uint8_t instance, TotalsColumn *ret);
