/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Values of metrics from samples: numerator and denominator gathered over the entities of one scope below another,
 * and the quotient. A window's value is sum(numerator) / sum(denominator), never a mean of ratios.
 */

#include "cstated/catalogue.h"
#include "model/sample.h"

/* What is summed before anything is divided; in base units of the fields (ticks already >> FIELD_TICK_SHIFT). */
typedef struct MetricSum {
        double num;   /* scaled to joules, seconds, counts, ticks, degrees */
        double den;   /* ticks, ns, jiffies; seconds for DEN_TIME */
        double parts; /* METRIC_SUM_WATTS: the quotients added so far */
        int64_t count;/* the exact integer sum of counters */
        uint32_t n;   /* entities (or ticks) that had a value */
        Reason reason;/* why there is none, of the first that had none */
} MetricSum;

/* True where the layout can ever give this metric (directly or by its alternative). */
bool metric_available(const MetricSpec *m, const Layout *l);
/* "stat", "bound" ... where the alternative field is in use, else NULL. */
const char *metric_method(const MetricSpec *m, const Layout *l);

/*
 * Gathers one sample's metric for entity e of scope `scope` (the metric's own or a wider one); instance: idle state
 * index. Adds to *sum.
 */
void metric_gather(const MetricSpec *m, const Sample *s, Scope scope, uint32_t e, uint8_t instance, MetricSum *sum);

/*
 * The value of what was gathered: REASON_NONE and *ret, or the reason. Ratios outside the metric's range by more than
 * a tolerance of 0.5 % are out-of-range; within it they are clamped. tsc_hz: the machine's.
 */
Reason metric_value(const MetricSpec *m, const MetricSum *sum, uint64_t tsc_hz, double *ret);
