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

/* Four sums side by side: one would wait for itself at every step. */
static double sum_of(const double *v, size_t n) {
        double sum[4] = {};
        size_t i = 0;

        for (; i + 4 <= n; i += 4)
                for (size_t k = 0; k < 4; k++)
                        sum[k] += v[i + k];
        for (; i < n; i++)
                sum[0] += v[i];
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static size_t drop_not_finite(double *values, size_t n) {
        size_t m = 0;

        for (size_t i = 0; i < n; i++)
                if (isfinite(values[i]))
                        values[m++] = values[i];
        return m;
}

void stats_add_many(Stats *s, double *values, size_t n) {
        Stats part = STATS_INIT;

        part.sum = sum_of(values, n);
        if (!isfinite(part.sum)) { /* one of them is not, or all of them together are too much */
                n = drop_not_finite(values, n);
                part.sum = sum_of(values, n);
        }
        if (n == 0)
                return;
        part.n = n;
        part.mean = part.sum / (double) n;
        part.min = part.max = values[0];
        for (size_t i = 0; i < n; i++) {
                double delta = values[i] - part.mean;

                part.min = values[i] < part.min ? values[i] : part.min;
                part.max = values[i] > part.max ? values[i] : part.max;
                values[i] = delta * delta;
        }
        part.m2 = sum_of(values, n);
        stats_merge(s, &part);
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
