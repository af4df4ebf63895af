/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mergeable mean and spread; see the header for the sources. All of it is numbers in, numbers out. */

#include <math.h>

#include "cstated/macro.h"

#include "query/stats.h"

void stats_add(Stats *s, double v) {
        double delta;

        if (!isfinite(v))
                return;
        s->min = s->n > 0 ? MIN(s->min, v) : v;
        s->max = s->n > 0 ? MAX(s->max, v) : v;
        s->n++;
        s->sum += v;
        delta = v - s->mean;
        s->mean += delta / (double) s->n;
        s->m2 += delta * (v - s->mean);
}

void stats_merge(Stats *s, const Stats *other) {
        double n, delta;

        if (other->n == 0)
                return;
        if (s->n == 0) {
                *s = *other;
                return;
        }
        n = (double) (s->n + other->n);
        delta = other->mean - s->mean;
        s->m2 += other->m2 + delta * delta * ((double) s->n * (double) other->n / n);
        s->mean += delta * (double) other->n / n;
        s->min = MIN(s->min, other->min);
        s->max = MAX(s->max, other->max);
        s->sum += other->sum;
        s->n += other->n;
}

double stats_stddev(const Stats *s) {
        return s->n < 2 ? NAN : sqrt(fmax(s->m2, 0) / (double) (s->n - 1));
}

double stats_stddev_percent(const Stats *s) {
        return s->n < 3 || fabs(s->mean) < 1e-300 ? NAN : 100 * stats_stddev(s) / fabs(s->mean);
}
