/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What a query must add up. A series is one row's identity (metric, instance, entity by kernel ids) and
 * lives as long as the query; its members are the slots of one machine's blocks that feed it and are made
 * anew with each machine.
 */

#include "query/query-spec.h"
#include "query/stats.h"
#include "store/store.h"

/* One numerator over one denominator in a block. */
typedef struct Member {
        uint32_t num, den;   /* slots; den PLAN_SLOT_TIME: the tick's dt */
        double scale;        /* of the numerator, to base units */
        uint32_t spread;     /* rollups: slot of the ratio kept tick by tick, PLAN_SLOT_NONE */
        double spread_scale; /* to the metric's unit */
        /* of the current bucket, where the series adds quotients (see Series.by_member) */
        double sum_num, sum_den;
        double last; /* last settled quotient of any bucket; NAN: none yet */
} Member;

#define PLAN_SLOT_TIME UINT32_MAX
#define PLAN_SLOT_NONE UINT32_MAX

typedef struct Series {
        const MetricSpec *metric;
        Scope scope;
        int64_t package, die, module, core, cpu;
        char state[16];                   /* "" where the metric has none */
        const char *method;               /* on the current machine, static; NULL */
        uint32_t first_member, n_members; /* 0 members: not on the current machine */
        /* of one entity at the scope it is measured at: rollups then know the spread of ticks */
        bool is_own;
        bool keeps_spread; /* is_own, and they keep it */
        /* quotients of the members are added (watts) or averaged (settled residencies), not their parts */
        bool by_member;

        /* accumulated over the current bucket */
        bool touched; /* the machine had it in a tick of this bucket */
        double num, den;
        uint64_t span_ns; /* by_member: covered since the members were last settled */
        double total;     /* of the numerators, base units */
        int64_t count;    /* the same exactly, native units */
        uint64_t n;       /* ticks with a value */
        Reason reason;    /* why not, of the first without */
        Stats stats;      /* of the ticks' values, where spread is asked for */
} Series;

typedef struct Plan {
        const QuerySpec *spec;
        const MetricSpec **metrics; /* what was asked, or all that the machine has */
        size_t n_metrics;
        Series *series;
        size_t n_series, size_series;
        uint32_t *table;   /* hash of identities: 1 + index of the series, 0: empty */
        size_t table_size; /* a power of two */
        Member *members;
        size_t n_members, size_members;
        FieldId fields[FIELD_N]; /* what the store must decode */
        size_t n_fields;
        uint64_t tsc_hz;
} Plan;

enum {
        PLAN_E_TOO_MANY = 1, /* series: the query must ask for less */
};

#define PLAN_SERIES_MAX 65536 /* 16 MiB of them */

/* Fields of the metrics asked for. With no metric in the spec: of all the catalogue. -ENOMEM. */
int plan_init(Plan *p, const QuerySpec *spec);
void plan_deinit(Plan *p);
/* Resolves members (and new series) for a machine. PLAN_E_TOO_MANY, -ENOMEM. */
int plan_set_machine(Plan *p, const Machine *m, const Layout *l);
