/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sums of a minute. The mean is taken first and the deviations from it after, over values that lie side by
 * side: two short passes are both more exact and faster than Welford's one.
 */

#include <math.h>

#include "cstated/macro.h"
#include "cstated/timespan.h"

#include "store/rollup.h"

const RollupRatio rollup_ratios[] = {
        {FIELD_RATIO_BUSY, FIELD_MPERF, FIELD_NONE, FIELD_NONE, FIELD_CPU_TSC, 100, 1e-4},
        {FIELD_RATIO_BUSY, FIELD_STAT_BUSY, FIELD_NONE, FIELD_NONE, FIELD_STAT_ALL, 100, 1e-4},
        {FIELD_RATIO_C1, FIELD_C1, FIELD_NONE, FIELD_NONE, FIELD_C1_SPAN, 100, 1e-4},
        {FIELD_RATIO_WAKEUPS, FIELD_WAKE_INTERRUPT, FIELD_WAKE_STORE, FIELD_WAKE_BREAK, FIELD_NONE, 1e9,
                1e-3},
        {FIELD_RATIO_C6, FIELD_C6, FIELD_NONE, FIELD_NONE, FIELD_CORE_TSC, 100, 1e-4},
        {FIELD_RATIO_PC6, FIELD_PC6, FIELD_NONE, FIELD_NONE, FIELD_PKG_TSC, 100, 1e-4},
        {FIELD_RATIO_PKG_WATTS, FIELD_ENERGY_PKG, FIELD_NONE, FIELD_NONE, FIELD_PKG_NS, 1e9, 1e-3},
        {FIELD_RATIO_RAM_WATTS, FIELD_ENERGY_RAM, FIELD_NONE, FIELD_NONE, FIELD_PKG_NS, 1e9, 1e-3},
};
const size_t rollup_ratios_n = ARRAY_SIZE(rollup_ratios);

static void rollup_of_all(Rollup *r, const int64_t *v, size_t n) {
        int64_t sum = 0, min = v[0], max = v[0];
        double mean, m2 = 0;

        for (size_t i = 0; i < n; i++) {
                sum = (int64_t) ((uint64_t) sum + (uint64_t) v[i]);
                min = MIN(min, v[i]);
                max = MAX(max, v[i]);
        }
        if (min != max) {
                mean = (double) sum / (double) n;
                for (size_t i = 0; i < n; i++) {
                        double d = (double) v[i] - mean;

                        m2 += d * d;
                }
        }
        *r = (Rollup){.n = (int64_t) n, .sum = sum, .m2 = m2, .min = min, .max = max};
}

void rollup_add(Rollup *r, const int64_t *values, const uint8_t *reasons, size_t n) {
        int64_t dense[64];
        Rollup part;

        for (size_t i = 0; i < n;) {
                size_t m = 0, from = i;

                for (; i < n && i - from < ARRAY_SIZE(dense); i++)
                        if (reasons[i] == REASON_NONE)
                                dense[m++] = values[i];
                        else if (r->n == 0)
                                r->reason = (Reason) reasons[i];
                if (m == 0)
                        continue;
                rollup_of_all(&part, dense, m);
                rollup_merge(r, &part);
        }
}

void rollup_merge(Rollup *r, const Rollup *other) {
        double delta, n = (double) r->n + (double) other->n;

        if (other->n == 0) {
                if (r->n == 0 && other->reason != REASON_NONE)
                        r->reason = other->reason;
                return;
        }
        if (r->n == 0) {
                *r = *other;
                r->reason = REASON_NONE;
                return;
        }
        delta = (double) other->sum / (double) other->n - (double) r->sum / (double) r->n;
        r->m2 += other->m2 + delta * delta * ((double) r->n * (double) other->n / n);
        r->sum = (int64_t) ((uint64_t) r->sum + (uint64_t) other->sum);
        r->n += other->n;
        r->min = MIN(r->min, other->min);
        r->max = MAX(r->max, other->max);
}

void rollup_ratio_column(const RollupRatio *ratio, double num_scale, const int64_t *num,
        const uint8_t *num_reasons, const int64_t *den, const uint8_t *den_reasons, size_t n, int64_t *ret,
        uint8_t *ret_reasons) {
        double factor = ratio->factor * num_scale / ratio->scale;

        for (size_t i = 0; i < n; i++) {
                ret_reasons[i] = num_reasons[i] != REASON_NONE ? num_reasons[i] : den_reasons[i];
                if (ret_reasons[i] == REASON_NONE && den[i] <= 0)
                        ret_reasons[i] = REASON_OUT_OF_RANGE;
                ret[i] = ret_reasons[i] == REASON_NONE ? llround((double) num[i] * factor / (double) den[i])
                                                       : 0;
        }
}

bool rollup_has_spread(FieldId field) {
        const FieldSpec *f = field_spec(field);

        if (f->kind == FIELD_SPAN || field == FIELD_C1_SPAN || field == FIELD_SLEEP_HIST ||
                field == FIELD_SLEEP_NS)
                return false;
        return f->unit != FIELD_UNIT_TICK && f->unit != FIELD_UNIT_ENERGY;
}
