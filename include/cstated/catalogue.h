/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The words that store, JSON, OpenMetrics, CLI columns, documentation and completion share: scopes, reasons for a
 * missing value, and the catalogue of metrics (daemon/model/catalogue.c, the one place that adds a metric). Ids,
 * column names and reason names are public interface.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cstated/field.h"

typedef enum MetricKind {
        METRIC_COUNTER, /* snapshot: events of the interval; query: mean per second, sum the count */
        METRIC_GAUGE,   /* a momentary reading */
        METRIC_RATIO,   /* sum(numerator) / sum(denominator) */
} MetricKind;

typedef enum MetricCategory {
        CATEGORY_REQUESTED, /* what cpuidle asked for */
        CATEGORY_GRANTED,   /* what the hardware did */
        CATEGORY_POWER,
        CATEGORY_WAKE,
        CATEGORY_THERMAL,
        CATEGORY_SELF,      /* what measuring cost */
} MetricCategory;

typedef enum MetricUnit {
        UNIT_PERCENT,
        UNIT_MHZ,
        UNIT_COUNT,
        UNIT_WATT,
        UNIT_CELSIUS,
        UNIT_POINT,  /* percentage points, signed */
        UNIT_SECOND,
        UNIT_MICROSECOND,
        UNIT_BYTE,
} MetricUnit;

/* What selects within a metric. */
typedef enum MetricInstance {
        INSTANCE_NONE,
        INSTANCE_STATE, /* an idle state of the CPU; instance = state index, named by the machine's idle sets */
        INSTANCE_BUCKET, /* a bucket of a histogram, named by its upper bound (field_bucket_name()) */
        INSTANCE_CAUSE, /* one of wakeups' causes: its fields are counted by idle state and added up */
} MetricInstance;

/* How a numerator becomes a value. */
typedef enum MetricDenominator {
        DEN_NONE,  /* counter or gauge: the numerator itself */
        DEN_FIELD, /* denominator field of the same entity */
        DEN_TIME,  /* elapsed nanoseconds of the sample (no metric of its own has it; alternatives may) */
} MetricDenominator;

enum {
        METRIC_TSC_HZ = 1 << 0,   /* multiply by the machine's TSC frequency in MHz */
        METRIC_MAX_UP = 1 << 1,   /* aggregated upwards by maximum, not by sum (temperatures) */
        METRIC_SETTLED = 1 << 2,  /* aggregated upwards from each entity's last settled span (lazy readings) */
        METRIC_SUM_WATTS = 1 << 3,/* upwards: the ratios are added, not averaged (watts) */
        METRIC_SIGNED = 1 << 4,   /* may be negative */
        METRIC_SUM_FIELDS = 1 << 5, /* node_watts: the alternative is no stand-in but added where the layout has it */
        METRIC_NO_POLL = 1 << 6,  /* idle states that poll do not count */
};

typedef struct MetricSpec {
        const char *id;     /* "pc6" */
        /*
         * turbostat's column, "Pkg%pc6"; NULL where it has none. idle states: "%s%%", "%s", "%s-", "%s+" with the
         * state's name
         */
        const char *column;
        Scope scope;        /* where it is measured; aggregates upwards */
        MetricKind kind;
        MetricUnit unit;
        MetricCategory category;
        MetricInstance instance;
        FieldId numerator;
        MetricDenominator den;
        FieldId denominator;      /* DEN_FIELD only */
        double factor;            /* of numerator / denominator in the fields' base units: 100 for percent */
        /* used (and labelled alt_method) where the layout lacks the numerator; FIELD_NONE: no alternative */
        FieldId alt_numerator;
        FieldId alt_denominator;  /* FIELD_NONE where the numerator has one: the sample's time, DEN_TIME */
        const char *alt_method;   /* "stat" */
        unsigned flags;
        const char *sources;      /* "msr,perf" */
        const char *help;         /* one sentence */
} MetricSpec;

extern const MetricSpec metric_catalogue[];
extern const size_t metric_catalogue_n;

/* The metric of that id, NULL if there is none. */
const MetricSpec *metric_find(const char *id);

const char *metric_kind_name(MetricKind k);
const char *metric_unit_name(MetricUnit u); /* "%", "MHz", "1", "W", "C", "pp", "s", "us", "B" */
const char *metric_category_name(MetricCategory c);
