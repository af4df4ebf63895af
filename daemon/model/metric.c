/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From slots of a sample to the value of a metric: which fields (MetricUse), over which entities (metric_gather), and
 * what their sums are worth (metric_value). Nothing here makes up a number: a sum without members, a denominator of
 * nothing and a ratio out of its range are each a reason.
 */

#include <math.h>
#include <string.h>

#include "cstated/macro.h"

#include "model/metric.h"

#define TOLERANCE_PERCENT 0.5

/* ---- which fields ---- */

static bool layout_has(const Layout *l, FieldId f) {
        for (size_t i = 0; i < l->n_columns; i++)
                if (l->columns[i].field == f)
                        return true;
        return false;
}

bool metric_use(const MetricSpec *m, const Layout *l, MetricUse *ret) {
        MetricUse use = { .numerator = m->numerator, .den = m->den, .denominator = m->denominator };

        if (!layout_has(l, use.numerator) || (use.den == DEN_FIELD && !layout_has(l, use.denominator))) {
                if (m->alt_numerator == FIELD_NONE || m->flags & METRIC_SUM_FIELDS)
                        return false;
                use.is_alternative = true;
                use.numerator = m->alt_numerator;
                use.denominator = m->alt_denominator;
                if (use.den == DEN_FIELD && use.denominator == FIELD_NONE)
                        use.den = DEN_TIME;
                if (!layout_has(l, use.numerator) || (use.den == DEN_FIELD && !layout_has(l, use.denominator)))
                        return false;
        }
        *ret = use;
        return true;
}

bool metric_available(const MetricSpec *m, const Layout *l) {
        MetricUse use;

        return metric_use(m, l, &use);
}

Scope metric_scope(const MetricSpec *m, const Layout *l) {
        MetricUse use;

        return metric_use(m, l, &use) ? field_spec(use.numerator)->scope : m->scope;
}

const char *metric_method(const MetricSpec *m, const Layout *l) {
        MetricUse use;

        if (!metric_use(m, l, &use))
                return NULL;
        /* entries without their time: perf counted them, nothing traced them */
        if (use.numerator == FIELD_TRACE_ENTRIES && !layout_has(l, FIELD_TRACE_NS))
                return "perf";
        return use.is_alternative ? m->alt_method : NULL;
}

bool metric_counts_instance(
        const MetricSpec *m, const Machine *machine, FieldId field, uint32_t entity, uint8_t instance) {
        const IdleSet *set;

        if (!field_is_by_state(field))
                return instance < field_n_instances(field);
        set = machine_idle_set(machine, entity);
        /* Without cpuidle idletrace counts the default idle loop as state 1 and polling as state 0. */
        if (!set)
                return !(m->flags & METRIC_NO_POLL) || instance > 0;
        return instance < set->n_states && !(m->flags & METRIC_NO_POLL && set->states[instance].is_poll);
}

double metric_base_units(const LayoutColumn *c) {
        switch (field_spec(c->field)->unit) {
        case FIELD_UNIT_NS:
                return 1e-9;
        case FIELD_UNIT_USEC:
                return 1e-6;
        case FIELD_UNIT_ENERGY:
        case FIELD_UNIT_TIME:
                return c->scale;
        case FIELD_UNIT_COUNT:
        case FIELD_UNIT_TICK:
        case FIELD_UNIT_CELSIUS:
        case FIELD_UNIT_JIFFY:
        case FIELD_UNIT_BYTE:
        default:
                return 1;
        }
}

/* ---- gathering ---- */

typedef struct Gather {
        const MetricSpec *m;
        const Sample *s;
        MetricUse use;
        bool upward; /* to a wider scope than the fields' own */
        bool settled;
        uint8_t instance;
        const char *state; /* its name, NULL: the index counts */
        double quotients;  /* METRIC_SUM_WATTS, upward */
        bool is_partial;   /* a member had no value */
} Gather;

static Reason slot_read(const Gather *g, const LayoutColumn *c, uint32_t e, int64_t *ret) {
        const uint8_t *reasons = g->settled ? g->s->settled_reasons : g->s->reasons;
        const int64_t *values = g->settled ? g->s->settled : g->s->values;

        if (!c)
                return REASON_ABSENT;
        *ret = values[c->offset + e];
        return (Reason) reasons[c->offset + e];
}

/* The numerator of one entity: a slot, or the sum over the idle states that count. */
static Reason numerator_read(const Gather *g, FieldId field, uint32_t e, double *ret, int64_t *ret_count) {
        const Layout *l = g->s->layout;
        bool one = g->m->instance == INSTANCE_STATE || g->m->instance == INSTANCE_BUCKET;
        unsigned from = 0, to = field_n_instances(field);
        bool found = false;
        int64_t v = 0;

        *ret = 0;
        *ret_count = 0;
        if (one)
                from = g->instance, to = from + 1;
        for (unsigned k = from; k < to; k++) {
                const LayoutColumn *c = layout_find(l, field, (uint8_t) k);
                Reason r;

                if (!c)
                        continue;
                if (!one &&
                        !metric_counts_instance(g->m, g->s->machine, field, e, (uint8_t) k))
                        continue;
                r = slot_read(g, c, e, &v);
                if (r != REASON_NONE)
                        return r;
                *ret += (double) v * metric_base_units(c);
                *ret_count += v;
                found = true;
        }
        return found ? REASON_NONE : REASON_ABSENT;
}

static Reason denominator_read(const Gather *g, MetricDenominator den, FieldId field, uint32_t e, double *ret) {
        int64_t v = 0;
        Reason r = REASON_NONE;

        if (den == DEN_FIELD)
                r = slot_read(g, layout_find(g->s->layout, field, 0), e, &v);
        else
                v = den == DEN_TIME ? (int64_t) g->s->h.dt_ns : 1;
        *ret = (double) v;
        return r;
}

static bool is_asleep(const Gather *g, FieldId field, uint32_t e) {
        const LayoutColumn *c = layout_find(g->s->layout, field, g->instance);

        return c && g->s->reasons[c->offset + e] == REASON_ASLEEP;
}

static void miss(Gather *g, MetricSum *sum, Reason r) {
        g->is_partial = true;
        if (sum->reason == REASON_NONE)
                sum->reason = r;
}

static void add_gauge(const Gather *g, MetricSum *sum, double v) {
        if (g->m->flags & METRIC_MAX_UP) {
                sum->num = sum->n > 0 ? MAX(sum->num, v) : v;
                sum->den = 1;
        } else {
                sum->num += v;
                sum->den += 1;
        }
        sum->n++;
}

static void gather_fields(
        Gather *g, MetricDenominator den, FieldId num, FieldId den_field, uint32_t e, MetricSum *sum) {
        double n, d, dt = (double) g->s->h.dt_ns;
        int64_t count;
        Reason r = numerator_read(g, num, e, &n, &count);

        if (r == REASON_NONE)
                r = denominator_read(g, den, den_field, e, &d);
        if (r != REASON_NONE) {
                miss(g, sum, r);
                return;
        }
        if (g->m->kind == METRIC_GAUGE) {
                add_gauge(g, sum, n);
                return;
        }
        if (g->upward && g->m->kind == METRIC_RATIO && g->m->flags & (METRIC_SUM_WATTS | METRIC_SETTLED)) {
                if (!(d > 0)) {
                        miss(g, sum, REASON_GAP);
                        return;
                }
                if (g->m->flags & METRIC_SUM_WATTS) {
                        g->quotients += n / d;
                } else {
                        /* each settled span stretched or cut to the sample's own length */
                        n *= dt / d;
                        d = dt;
                }
        }
        sum->num += n;
        sum->den += d;
        sum->count += count;
        sum->n++;
        sum->n_settled += g->settled && is_asleep(g, num, e);
}

static void gather_entity(Gather *g, uint32_t e, uint8_t instance, MetricSum *sum) {
        g->instance = instance;
        if (g->state) {
                int k = machine_state_index(g->s->machine, e, g->state);

                if (k < 0)
                        return; /* this CPU has no such state */
                g->instance = (uint8_t) k;
        }
        gather_fields(g, g->use.den, g->use.numerator, g->use.denominator, e, sum);
        if (g->m->flags & METRIC_SUM_FIELDS && layout_has(g->s->layout, g->m->alt_numerator))
                gather_fields(g, g->m->den, g->m->alt_numerator, g->m->alt_denominator, e, sum);
}

static const char *state_name(const Machine *m, uint32_t cpu, uint8_t instance) {
        const IdleSet *set = machine_idle_set(m, cpu);

        return set && instance < set->n_states ? set->states[instance].name : NULL;
}

static void gather(const MetricSpec *m, const Sample *s, Scope scope, uint32_t e, uint8_t instance,
        const char *state, MetricSum *sum) {
        Gather g = { .m = m, .s = s, .state = state };
        uint32_t n = sum->n;
        Scope own;

        if (!metric_use(m, s->layout, &g.use)) {
                miss(&g, sum, REASON_ABSENT);
                return;
        }
        own = field_spec(g.use.numerator)->scope;
        if (scope > own) {
                miss(&g, sum, REASON_NOT_APPLICABLE);
                return;
        }
        g.upward = scope < own;
        g.settled = g.upward && m->flags & METRIC_SETTLED;
        if (g.upward && m->instance == INSTANCE_STATE && !state)
                g.state = state_name(s->machine, machine_first_cpu(s->machine, scope, e), instance);
        if (!g.upward)
                gather_entity(&g, e, instance, sum);
        for (uint32_t i = 0; g.upward && i < machine_n_entities(s->machine, own); i++)
                if (machine_parent(s->machine, own, i, scope) == e)
                        gather_entity(&g, i, instance, sum);
        if (!(m->flags & METRIC_SUM_WATTS && g.upward))
                return;
        if (g.is_partial || s->h.dt_ns == 0) {
                sum->n = n;
                return;
        }
        sum->parts += g.quotients * (double) s->h.dt_ns;
        sum->weight += (double) s->h.dt_ns;
}

void metric_gather(
        const MetricSpec *m, const Sample *s, Scope scope, uint32_t e, uint8_t instance, MetricSum *sum) {
        gather(m, s, scope, e, instance, NULL, sum);
}

void metric_gather_state(
        const MetricSpec *m, const Sample *s, Scope scope, uint32_t e, const char *state, MetricSum *sum) {
        gather(m, s, scope, e, 0, state, sum);
}

/* ---- the value ---- */

/* What a metric's values lie in; beyond it by up to the tolerance they are clamped. */
typedef struct Range {
        double low, high, tolerance;
} Range;

static Range metric_range(const MetricSpec *m) {
        bool is_signed = m->flags & METRIC_SIGNED;

        if (m->kind != METRIC_RATIO)
                return (Range){ -INFINITY, INFINITY, 0 };
        if (m->unit != UNIT_PERCENT && m->unit != UNIT_POINT)
                return (Range){ is_signed ? -INFINITY : 0, INFINITY, 0 };
        return (Range){ is_signed ? -100 : 0, 100, TOLERANCE_PERCENT };
}

Reason metric_value(const MetricSpec *m, const MetricSum *sum, uint64_t tsc_hz, double *ret) {
        Range range = metric_range(m);
        double v;

        if (sum->n == 0)
                return sum->reason != REASON_NONE ? sum->reason : REASON_ABSENT;
        if (m->flags & METRIC_TSC_HZ && tsc_hz == 0)
                return REASON_ABSENT;
        if (m->kind == METRIC_COUNTER)
                v = sum->num;
        else if (sum->weight > 0)
                v = sum->parts / sum->weight;
        else if (sum->den > 0)
                v = sum->num / sum->den;
        else /* a CPU that never ran has no frequency; else no time went by */
                return m->denominator == FIELD_MPERF ? REASON_ASLEEP : REASON_GAP;
        v *= m->factor;
        if (m->flags & METRIC_TSC_HZ)
                v *= (double) tsc_hz / 1e6;
        if (!isfinite(v) || v < range.low - range.tolerance || v > range.high + range.tolerance)
                return REASON_OUT_OF_RANGE;
        *ret = MIN(MAX(v, range.low), range.high);
        return REASON_NONE;
}

void metric_values(const MetricSpec *m, uint64_t tsc_hz, double *v, size_t n) {
        double scale = m->flags & METRIC_TSC_HZ ? (double) tsc_hz / 1e6 : 1;
        Range range = metric_range(m);

        for (size_t i = 0; i < n; i++) {
                double x = v[i] * m->factor * scale;

                x = x < range.low - range.tolerance || x > range.high + range.tolerance ? NAN : x;
                x = x < range.low ? range.low : x;
                x = x > range.high ? range.high : x;
                v[i] = isfinite(x) && scale > 0 ? x : NAN;
        }
}
