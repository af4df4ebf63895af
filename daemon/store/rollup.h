/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What a minute or an hour keeps of a value: how many ticks had one, their exact sum, the sum of squared
 * deviations from their mean, the extremes. Pure.
 */

#include "cstated/field.h"

typedef struct Rollup {
        int64_t n; /* ticks with a value; 0: none, and why: */
        Reason reason;
        int64_t sum;
        double m2; /* never a sum of squares: two samples of a TSC overflow an int64 */
        int64_t min, max;
} Rollup;

/* Adds n ticks of one column. */
void rollup_add(Rollup *r, const int64_t *values, const uint8_t *reasons, size_t n);
/* Chan, Golub, LeVeque (1979): the two as if they had been one. */
void rollup_merge(Rollup *r, const Rollup *other);

/* A ratio that people compare, kept as a value of its own since its spread does not follow from its parts.
 */
typedef struct RollupRatio {
        FieldId field;                  /* FIELD_RATIO_* */
        FieldId numerator;              /* all its instances are added */
        FieldId numerator2, numerator3; /* likewise, FIELD_NONE */
        FieldId denominator;            /* FIELD_NONE: the tick's own length in ns */
        double factor;                  /* to the ratio's unit */
        double scale;                   /* of the stored integer: unit = integer * scale */
} RollupRatio;
/* Of two ways to one field, the first that a layout allows counts. */
extern const RollupRatio rollup_ratios[];
extern const size_t rollup_ratios_n;

/* The integer of the ratio, tick by tick: round(num * factor / den / scale); null where either part is, or
 * den <= 0. */
void rollup_ratio_column(const RollupRatio *ratio, double num_scale, const int64_t *num,
        const uint8_t *num_reasons, const int64_t *den, const uint8_t *den_reasons, size_t n, int64_t *ret,
        uint8_t *ret_reasons);

/* Whether rollups keep m2, min and max of the field: not of clocks, histograms and numerators whose ratio is kept. */
bool rollup_has_spread(FieldId field);
