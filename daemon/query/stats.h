/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Count, mean, spread and extremes of a stream of numbers, mergeable. Welford 1962 for one value, Chan,
 * Golub and LeVeque 1979 for merging: no sum of squares, which would lose everything to cancellation.
 */

#include <stddef.h>
#include <stdint.h>

typedef struct Stats {
        uint64_t n;
        double mean, m2; /* m2: sum of squared deviations from the mean */
        double min, max, sum;
} Stats;

#define STATS_INIT                                                                                          \
        {}

/* One value; one that is not finite is no value. */
void stats_add(Stats *s, double v);
/*
 * Many values at once: their mean first, then the deviations from it, which is as exact and spares a division a
 * value. The array is used up.
 */
void stats_add_many(Stats *s, double *values, size_t n);
/* Adds what `other` has seen. */
void stats_merge(Stats *s, const Stats *other);
/* Of the sample (n - 1); NAN for n < 2. */
double stats_stddev(const Stats *s);
/* 100 * stddev / |mean|, as LKP prints it: NAN for n < 3 or a mean of 0. */
double stats_stddev_percent(const Stats *s);
