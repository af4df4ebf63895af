/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Exposition text in both dialects: OpenMetrics 1.0 and Prometheus text 0.0.4. Private to daemon/api and its
 * tests.
 */

#include "api/route.h"

typedef enum FamilyType { FAMILY_COUNTER, FAMILY_GAUGE, FAMILY_INFO, FAMILY_HISTOGRAM } FamilyType;

typedef struct OpenMetrics {
        JsonWriter *j;      /* used as a text buffer */
        bool is_open;       /* OpenMetrics; else 0.0.4 */
        const char *name, *unit, *help; /* of the family in work */
        FamilyType type;
        bool is_new; /* its head is written with its first line, so that no family is empty */
        unsigned n_labels;  /* of the line in work */
} OpenMetrics;

/* Begins a family: HELP, TYPE and (OpenMetrics) UNIT. name without _total or _info; unit NULL or its last word. */
void om_family(OpenMetrics *o, const char *name, FamilyType type, const char *unit, const char *help);
/* One line: om_line(), any number of labels, one value. */
void om_line(OpenMetrics *o);
/* The same for histograms, whose lines differ in their names: "_bucket", "_count", "_sum". */
void om_line_of(OpenMetrics *o, const char *suffix);
void om_label(OpenMetrics *o, const char *name, const char *value);
void om_label_id(OpenMetrics *o, const char *name, int64_t id); /* nothing for id < 0 */
void om_value(OpenMetrics *o, double v);                        /* not finite: NaN */
void om_count(OpenMetrics *o, int64_t v);

/* True where the Accept header takes OpenMetrics. */
bool om_accepted(const char *accept);

/* One or a few families each; in the order they are shown. wide: those of CPUs and cores too. */
typedef void (*OmFamilyFn)(OpenMetrics *o, Service *s, bool wide);
extern const OmFamilyFn om_families[];
extern const size_t om_families_n;
