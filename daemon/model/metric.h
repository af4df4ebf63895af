/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Values of metrics from samples: numerator and denominator gathered over the entities of one scope below another,
 * and the quotient. A window's value is sum(numerator) / sum(denominator), never a mean of ratios. Two kinds of metric
 * combine otherwise on the way up: watts are quotients that are added (every member must have one: half a machine's
 * watts are not its watts), and lazily read residencies are each member's last settled quotient, weighted alike.
 */

#include "cstated/catalogue.h"
#include "model/sample.h"

/* What is summed before anything is divided; in base units of the fields (ticks already >> FIELD_TICK_SHIFT). */
typedef struct MetricSum {
        double num;   /* scaled to joules, seconds, counts, ticks, degrees */
        double den;   /* ticks, ns, jiffies; ns for DEN_TIME; readings for gauges */
        double parts; /* METRIC_SUM_WATTS of a wider scope: sum of quotients x weight */
        double weight; /* their time; 0: num / den counts */
        int64_t count;/* the exact integer sum of counters */
        uint32_t n;   /* entities (or ticks) that had a value */
        uint32_t n_settled; /* of these, ones asleep whose last settled span stands in */
        Reason reason;/* why there is none, of the first that had none */
} MetricSum;

/* The fields that give a metric in one layout. */
typedef struct MetricUse {
        FieldId numerator;
        MetricDenominator den;
        FieldId denominator;
        bool is_alternative;
} MetricUse;

/* False where the layout can never give this metric, *ret untouched then. */
bool metric_use(const MetricSpec *m, const Layout *l, MetricUse *ret);
/* True where the layout can ever give this metric (directly or by its alternative). */
bool metric_available(const MetricSpec *m, const Layout *l);
/* The scope its fields are read at: m->scope, or another (cor_watts by core on AMD, node_watts by package). */
Scope metric_scope(const MetricSpec *m, const Layout *l);
/* "stat", "bound", "perf" ... where the alternative field is in use, else NULL. */
const char *metric_method(const MetricSpec *m, const Layout *l);
/*
 * Whether column (field, instance) of one CPU belongs to the metric: for metrics that are not by state but whose fields
 * are, all states of the CPU, polling ones apart where METRIC_NO_POLL says so. entity: of the field's scope.
 */
bool metric_counts_instance(
        const MetricSpec *m, const Machine *machine, FieldId field, uint32_t entity, uint8_t instance);

/*
 * Gathers one sample's metric for entity e of scope `scope` (metric_scope() or a wider one); instance: the index of an
 * idle state in the set of e's first CPU (other CPUs are matched by its name), 0 elsewhere. Adds to *sum.
 */
void metric_gather(
        const MetricSpec *m, const Sample *s, Scope scope, uint32_t e, uint8_t instance, MetricSum *sum);

/* The same for the idle state of that name, wherever its index is. */
void metric_gather_state(
        const MetricSpec *m, const Sample *s, Scope scope, uint32_t e, const char *state, MetricSum *sum);

/*
 * The value of what was gathered: REASON_NONE and *ret, or the reason. Ratios outside the metric's range by more than
 * a tolerance of 0.5 % are out-of-range; within it they are clamped. tsc_hz: the machine's. Never infinite or NaN.
 */
Reason metric_value(const MetricSpec *m, const MetricSum *sum, uint64_t tsc_hz, double *ret);

/*
 * Many ticks at once: v holds n quotients num / den and then their values; NAN where metric_value() would have given a
 * reason, and where the quotient was NAN.
 */
void metric_values(const MetricSpec *m, uint64_t tsc_hz, double *v, size_t n);

/* Joules, seconds, counts ... a unit of the column. */
double metric_base_units(const LayoutColumn *c);
