/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the families of /metrics share. Private to daemon/api. */

#include "api/openmetrics.h"

#define PACKAGES_MAX 256 /* (package, die) pairs that are summed up for */

/* What sums are made of: the totals, and how to read their units. */
typedef struct OmView {
        const Totals *t;
        const Machine *m;
        Service *s;
} OmView;

/* Sums over a package's entities of a narrower scope. */
typedef struct PackageSum {
        int64_t package, die;
        double value;
} PackageSum;

typedef struct PackageSums {
        PackageSum list[PACKAGES_MAX];
        size_t n;
} PackageSums;

/* False before the first sample. */
bool om_view_begin(OmView *v, Service *s);
/* Native units to seconds, joules or counts; NAN where the clock of the unit is not known. */
double om_view_value(const OmView *v, const TotalsColumn *c, int64_t n);
bool om_view_is_online(const OmView *v, Scope scope, const TotalsEntity *e);
/* Is there any column of the field? */
bool om_view_has(const OmView *v, FieldId field);
/* Ends a line with the value as the column's unit wants it. */
void om_view_put(OpenMetrics *o, const OmView *v, const TotalsColumn *c, double value);
bool om_is_poll(const char *state);

/* One line an entity of the field's own scope, with one more label (or NULL). */
void om_lines_by_entity(
        OpenMetrics *o, const OmView *v, FieldId field, const char *label, const char *value);
/* Adds a field's totals up by package. state: only that idle state; NULL: all that sleep. */
void om_sum_field(const OmView *v, FieldId field, const char *state, PackageSums *sums);
/* One line a package of such sums. */
void om_lines_by_package(OpenMetrics *o, const OmView *v, FieldId field, const char *state,
        const char *label, const char *value);

void families_info(OpenMetrics *o, Service *s, bool wide);
void families_machine(OpenMetrics *o, Service *s, bool wide);
void families_sources(OpenMetrics *o, Service *s, bool wide);
void families_self(OpenMetrics *o, Service *s, bool wide);
void families_store(OpenMetrics *o, Service *s, bool wide);
