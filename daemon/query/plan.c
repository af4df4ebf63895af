/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From metrics to slots. Entities are matched by kernel ids and idle states by name, so that a series goes on where a
 * CPU comes back, a state's index moves or P and E cores count states differently (C11).
 */

#include <errno.h>
#include <math.h>
#include <string.h>

#include "cstated/macro.h"

#include "query/plan.h"

/* Everything one round of resolving needs. */
typedef struct Resolve {
        Plan *plan;
        const Machine *machine;
        const Layout *layout;
        bool *pass; /* CPUs the filters let through */
        size_t hint; /* where the next series probably stands */
        uint32_t *targets; /* entity of the target scope, of each entity of the metric's */
} Resolve;

static void want_field(Plan *p, FieldId field) {
        if (field == FIELD_NONE)
                return;
        for (size_t i = 0; i < p->n_fields; i++)
                if (p->fields[i] == field)
                        return;
        p->fields[p->n_fields++] = field;
}

int plan_init(Plan *p, const QuerySpec *spec) {
        *p = (Plan){ .spec = spec, .n_metrics = spec->n_metrics > 0 ? spec->n_metrics : metric_catalogue_n };
        p->metrics = calloc(p->n_metrics, sizeof(*p->metrics));
        if (!p->metrics)
                return -ENOMEM;
        for (size_t i = 0; i < p->n_metrics; i++) {
                const MetricSpec *m = spec->n_metrics > 0 ? spec->metrics[i] : &metric_catalogue[i];

                p->metrics[i] = m;
                want_field(p, m->numerator);
                want_field(p, m->denominator);
                want_field(p, m->alt_numerator);
                want_field(p, m->alt_denominator);
        }
        return 0;
}

void plan_deinit(Plan *p) {
        free(p->metrics);
        free(p->series);
        free(p->members);
        *p = (Plan){};
}

static bool in_list(const uint32_t *ids, size_t n, int64_t id) {
        size_t low = 0, high = n;

        if (n == 0)
                return true;
        while (low < high) {
                size_t mid = low + (high - low) / 2;

                if (ids[mid] == id)
                        return true;
                if (ids[mid] < id)
                        low = mid + 1;
                else
                        high = mid;
        }
        return false;
}

static void resolve_filters(Resolve *r) {
        const QuerySpec *q = r->plan->spec;
        const Machine *m = r->machine;

        for (uint32_t i = 0; i < m->n_cpus; i++)
                r->pass[i] = in_list(q->cpus, q->n_cpus, m->cpus[i].id) &&
                        in_list(q->cores, q->n_cores, m->cores[m->cpus[i].core].id) &&
                        in_list(q->packages, q->n_packages, m->packages[m->cpus[i].package].package);
}

/* Marks the entities of a scope that hold a CPU the filters let through. */
static void resolve_entities(const Resolve *r, Scope scope, bool *ret) {
        memset(ret, 0, machine_n_entities(r->machine, scope) * sizeof(*ret));
        for (uint32_t i = 0; i < r->machine->n_cpus; i++) {
                uint32_t e = r->pass[i] ? machine_parent(r->machine, SCOPE_CPU, i, scope) : UINT32_MAX;

                if (e != UINT32_MAX)
                        ret[e] = true;
        }
}

static void series_ids(Series *s, const Machine *m, uint32_t e) {
        uint32_t package = UINT32_MAX;

        s->package = s->die = s->module = s->core = s->cpu = -1;
        switch (s->scope) {
        case SCOPE_CPU:
                s->cpu = m->cpus[e].id;
                s->core = m->cores[m->cpus[e].core].id;
                package = m->cpus[e].package;
                break;
        case SCOPE_CORE:
                s->core = m->cores[e].id;
                package = m->cores[e].package;
                break;
        case SCOPE_MODULE:
                s->module = m->modules[e].id;
                package = m->modules[e].package;
                break;
        case SCOPE_PACKAGE:
                package = e;
                break;
        case SCOPE_SYSTEM:
        default:
                break;
        }
        if (package != UINT32_MAX) {
                s->package = m->packages[package].package;
                s->die = m->packages[package].die;
        }
}

static bool series_same(const Series *a, const Series *b) {
        return a->metric == b->metric && a->scope == b->scope && a->cpu == b->cpu && a->core == b->core &&
                a->module == b->module && a->package == b->package && a->die == b->die && strcmp(a->state, b->state) == 0;
}

/* The series of that identity, made if it is new. Borrowed until the next call. */
static int resolve_series(Resolve *r, const Series *key, Series **ret) {
        Plan *p = r->plan;

        for (size_t i = 0; i < p->n_series; i++) {
                size_t at = r->hint + i < p->n_series ? r->hint + i : r->hint + i - p->n_series;

                if (series_same(&p->series[at], key)) {
                        r->hint = at + 1;
                        *ret = &p->series[at];
                        return 0;
                }
        }
        if (p->n_series >= PLAN_SERIES_MAX)
                return PLAN_E_TOO_MANY;
        if (p->n_series == p->size_series) {
                size_t size = MAX(2 * p->size_series, (size_t) 64);
                Series *series = reallocarray(p->series, size, sizeof(*series));

                if (!series)
                        return -ENOMEM;
                p->series = series;
                p->size_series = size;
        }
        p->series[p->n_series] = *key;
        r->hint = p->n_series + 1;
        *ret = &p->series[p->n_series++];
        return 0;
}

static int add_member(Plan *p, const Member *m) {
        if (p->n_members == p->size_members) {
                size_t size = MAX(2 * p->size_members, (size_t) 64);
                Member *members = reallocarray(p->members, size, sizeof(*members));

                if (!members)
                        return -ENOMEM;
                p->members = members;
                p->size_members = size;
        }
        p->members[p->n_members++] = *m;
        return 0;
}

/* To what model/metric.h calls base units: joules, seconds, counts, ticks, degrees. */
static double numerator_scale(const LayoutColumn *c) {
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

/* The slots of one entity's numerator and denominator; false where the layout lacks them. */
static bool member_slots(const Resolve *r, FieldId num, MetricDenominator den, FieldId den_field, uint8_t instance,
        uint32_t e, Member *ret) {
        const LayoutColumn *n = layout_find(r->layout, num, instance), *d = NULL;

        if (!n)
                return false;
        if (den == DEN_FIELD) {
                /* a clock has no instances */
                d = layout_find(r->layout, den_field, instance) ?: layout_find(r->layout, den_field, 0);
                if (!d)
                        return false;
        }
        *ret = (Member){
                .num = n->offset + e,
                .den = d ? d->offset + e : PLAN_SLOT_TIME,
                .scale = numerator_scale(n),
                .last = NAN,
        };
        return true;
}

static int add_entity(Resolve *r, const MetricSpec *m, uint32_t e, uint8_t instance) {
        Member member;
        int code = 0;

        if (member_slots(r, m->numerator, m->den, m->denominator, instance, e, &member))
                code = add_member(r->plan, &member);
        else if (!(m->flags & METRIC_SUM_FIELDS) && m->alt_numerator != FIELD_NONE) {
                MetricDenominator den = m->alt_denominator == FIELD_NONE ? m->den : DEN_FIELD;

                if (member_slots(r, m->alt_numerator, den, m->alt_denominator, instance, e, &member))
                        code = add_member(r->plan, &member);
        }
        /* a second field that is added, not a stand-in */
        if (code == 0 && (m->flags & METRIC_SUM_FIELDS) && m->alt_numerator != FIELD_NONE &&
                member_slots(r, m->alt_numerator, m->den, m->alt_denominator, instance, e, &member))
                code = add_member(r->plan, &member);
        return code;
}

/* All series of one metric and one state ("" none): members are added target by target. */
static int resolve_group(Resolve *r, const MetricSpec *m, Scope scope, const char *state, const bool *pass) {
        uint32_t n_entities = machine_n_entities(r->machine, m->scope), n_targets = machine_n_entities(r->machine, scope);

        for (uint32_t t = 0; t < n_targets; t++) {
                size_t first = r->plan->n_members;
                /* entities of a target stand together or not; where the scopes agree there is just one */
                uint32_t from = scope == m->scope ? t : 0, to = scope == m->scope ? t + 1 : n_entities;
                Series key = { .metric = m, .scope = scope }, *s;
                int code;

                for (uint32_t e = from; e < to; e++) {
                        int instance = 0;

                        if (r->targets[e] != t || !pass[e])
                                continue;
                        if (state[0])
                                instance = machine_state_index(r->machine, e, state);
                        if (instance < 0)
                                continue;
                        code = add_entity(r, m, e, (uint8_t) instance);
                        if (code < 0)
                                return code;
                }
                if (r->plan->n_members == first)
                        continue;
                series_ids(&key, r->machine, t);
                (void) snprintf(key.state, sizeof(key.state), "%s", state);
                code = resolve_series(r, &key, &s);
                if (code != 0)
                        return code;
                s->first_member = (uint32_t) first;
                s->n_members = (uint32_t) (r->plan->n_members - first);
                s->by_member = (m->flags & METRIC_SUM_WATTS) ||
                        ((m->flags & METRIC_SETTLED) && s->n_members > 1 && m->kind == METRIC_RATIO);
        }
        return 0;
}

/* Calls resolve_group for each name of an idle state, in the order of the sets. */
static int resolve_states(Resolve *r, const MetricSpec *m, Scope scope, const bool *pass) {
        const Machine *machine = r->machine;

        if (r->plan->spec->state[0])
                return resolve_group(r, m, scope, r->plan->spec->state, pass);
        for (uint32_t i = 0; i < machine->n_idle_sets; i++)
                for (uint32_t k = 0; k < machine->idle_sets[i].n_states; k++) {
                        const char *name = machine->idle_sets[i].states[k].name;
                        bool known = false;
                        int code;

                        for (uint32_t a = 0; a <= i && !known; a++)
                                for (uint32_t b = 0; b < (a < i ? machine->idle_sets[a].n_states : k) && !known; b++)
                                        known = strcmp(machine->idle_sets[a].states[b].name, name) == 0;
                        if (known || !name[0])
                                continue;
                        code = resolve_group(r, m, scope, name, pass);
                        if (code != 0)
                                return code;
                }
        return 0;
}

static int resolve_metric(Resolve *r, const MetricSpec *m) {
        const QuerySpec *q = r->plan->spec;
        Scope scope = q->has_scope ? q->scope : m->scope;
        uint32_t n = machine_n_entities(r->machine, m->scope);
        _cleanup_free_ uint32_t *targets = NULL;
        _cleanup_free_ bool *pass = NULL;

        if (scope > m->scope || n == 0)
                return 0;
        targets = calloc(n, sizeof(*targets));
        pass = calloc(n, sizeof(*pass));
        if (!targets || !pass)
                return -ENOMEM;
        for (uint32_t e = 0; e < n; e++)
                targets[e] = scope == m->scope ? e : machine_parent(r->machine, m->scope, e, scope);
        resolve_entities(r, m->scope, pass);
        r->targets = targets;
        if (m->instance == INSTANCE_STATE)
                return resolve_states(r, m, scope, pass);
        return q->state[0] ? 0 : resolve_group(r, m, scope, "", pass);
}

int plan_set_machine(Plan *p, const Machine *m, const Layout *l) {
        Resolve r = { .plan = p, .machine = m, .layout = l };
        _cleanup_free_ bool *pass = NULL;

        pass = calloc(MAX(m->n_cpus, 1u), sizeof(*pass));
        if (!pass)
                return -ENOMEM;
        r.pass = pass;
        resolve_filters(&r);
        for (size_t i = 0; i < p->n_series; i++)
                p->series[i].n_members = 0;
        p->n_members = 0;
        p->tsc_hz = m->tsc_hz;
        for (size_t i = 0; i < p->n_metrics; i++) {
                int code = resolve_metric(&r, p->metrics[i]);

                if (code != 0)
                        return code;
        }
        return 0;
}
