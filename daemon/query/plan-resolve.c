/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From metrics to slots. Entities are matched by kernel ids and idle states by name, so that a series goes
 * on where a CPU comes back, a state's index moves or P and E cores count states differently (C11).
 */

#include <errno.h>
#include <math.h>
#include <string.h>

#include "cstated/macro.h"
#include "model/metric.h"

#include "query/plan-private.h"
#include "store/rollup.h"

/* Everything one round of resolving needs. */
typedef struct Resolve {
        Plan *plan;
        const Machine *machine;
        const Layout *layout;
        bool *pass[SCOPE_N]; /* entities that hold a CPU the filters let through */
} Resolve;

/* One field over another, entities sorted by the target they belong to. */
typedef struct Term {
        FieldId num, den_field, ratio; /* ratio: kept by rollups, FIELD_NONE */
        MetricDenominator den;
        uint32_t *order, *first; /* order[first[t]] .. order[first[t + 1] - 1] are target t's */
} Term;

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

/* An entity wider than a filter passes with any CPU in it. */
static int resolve_filters(Resolve *r) {
        const QuerySpec *q = r->plan->spec;
        const Machine *m = r->machine;

        for (unsigned s = 0; s < SCOPE_N; s++) {
                r->pass[s] = calloc(MAX(machine_n_entities(m, (Scope) s), 1u), sizeof(bool));
                if (!r->pass[s])
                        return -ENOMEM;
        }
        for (uint32_t i = 0; i < m->n_cpus; i++) {
                if (!in_list(q->cpus, q->n_cpus, m->cpus[i].id) ||
                        !in_list(q->cores, q->n_cores, m->cores[m->cpus[i].core].id) ||
                        !in_list(q->packages, q->n_packages, m->packages[m->cpus[i].package].package))
                        continue;
                for (unsigned s = 0; s < SCOPE_N; s++) {
                        uint32_t e = machine_parent(m, SCOPE_CPU, i, (Scope) s);

                        if (e != UINT32_MAX)
                                r->pass[s][e] = true;
                }
        }
        return 0;
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

/*
 * The slots of one entity's numerator and denominator; 0 where the layout lacks them, 1 where they were
 * added.
 */
static int add_slots(Resolve *r, const Term *t, uint8_t instance, uint32_t e) {
        const LayoutColumn *n = layout_find(r->layout, t->num, instance), *d = NULL, *ratio;
        Member m;
        int code;

        if (!n)
                return 0;
        if (t->den == DEN_FIELD) {
                /* a clock has no instances */
                d = layout_find(r->layout, t->den_field, field_is_by_state(t->den_field) ? instance : 0);
                if (!d)
                        return 0;
        }
        ratio = t->ratio != FIELD_NONE ? layout_find(r->layout, t->ratio, 0) : NULL;
        m = (Member){
                .num = n->offset + e,
                .den = d ? d->offset + e : PLAN_SLOT_TIME,
                .scale = metric_base_units(n),
                .spread = ratio ? ratio->offset + e : PLAN_SLOT_NONE,
                .spread_scale = ratio ? ratio->scale : 1,
                .last = NAN,
        };
        code = plan_member(r->plan, &m);
        return code < 0 ? code : 1;
}

/*
 * Without cpuidle idletrace counts the default idle loop as state 1 and polling as state 0; snapshot names
 * them so too.
 */
static const char *const nameless[] = { "POLL", "IDLE" };

static int bucket_index(const char *name) {
        for (uint8_t i = 0; i < SLEEP_BUCKETS; i++) {
                char bucket[16];

                field_bucket_name(i, bucket);
                if (strcmp(bucket, name) == 0)
                        return i;
        }
        return -1;
}

static int state_index(const Machine *m, uint32_t cpu, const char *name) {
        if (machine_idle_set(m, cpu))
                return machine_state_index(m, cpu, name);
        for (unsigned i = 0; i < ARRAY_SIZE(nameless); i++)
                if (strcmp(nameless[i], name) == 0)
                        return (int) i;
        return -1;
}

/* One entity: its state of that name, all its states that sleep, or just its one slot. */
static int add_entity(Resolve *r, const MetricSpec *m, const Term *t, const char *state, uint32_t e) {
        int code = 0;

        if (field_n_instances(t->num) == 1)
                return add_slots(r, t, 0, e);
        if (state[0]) {
                int i = field_is_by_state(t->num) ? state_index(r->machine, e, state) : bucket_index(state);

                return i < 0 ? 0 : add_slots(r, t, (uint8_t) i, e);
        }
        for (uint8_t i = 0; i < IDLE_STATES_MAX && code >= 0; i++)
                if (metric_counts_instance(m, r->machine, t->num, e, i))
                        code = add_slots(r, t, i, e);
        return code;
}

/*
 * Sorts the entities of the term's field by target (counting sort); those without one, or filtered out, are
 * left out.
 */
static int term_sort(Resolve *r, Term *t, Scope scope) {
        Scope from = field_spec(t->num)->scope;
        uint32_t n = machine_n_entities(r->machine, from), n_targets = machine_n_entities(r->machine, scope);

        t->order = calloc(MAX(n, 1u), sizeof(*t->order));
        t->first = calloc(n_targets + 2, sizeof(*t->first));
        if (!t->order || !t->first)
                return -ENOMEM;
        for (unsigned pass = 0; pass < 2; pass++) {
                for (uint32_t e = 0; e < n; e++) {
                        uint32_t target = from == scope ? e : machine_parent(r->machine, from, e, scope);

                        if (target == UINT32_MAX || !r->pass[from][e])
                                continue;
                        /*
                         * first round: sizes, two places up; second: fill, which moves the starts into place
                         */
                        if (pass == 0)
                                t->first[target + 2]++;
                        else
                                t->order[t->first[target + 1]++] = e;
                }
                for (uint32_t k = 2; pass == 0 && k < n_targets + 2; k++)
                        t->first[k] += t->first[k - 1];
        }
        return 0;
}

/* The fields in use, and (SUM_FIELDS) the second ones. Returns how many. */
static size_t metric_terms(const MetricSpec *m, const Layout *l, Term ret[2]) {
        MetricUse use;
        size_t n = 0;

        if (!metric_use(m, l, &use))
                return 0;
        ret[n++] = (Term){ .num = use.numerator, .den = use.den, .den_field = use.denominator };
        if (field_spec(plan_kept_ratio(m))->scope == field_spec(use.numerator)->scope)
                ret[0].ratio = plan_kept_ratio(m);
        if ((m->flags & METRIC_SUM_FIELDS) && layout_find(l, m->alt_numerator, 0))
                ret[n++] = (Term){ .num = m->alt_numerator, .den = m->den, .den_field = m->alt_denominator };
        return n;
}

/* All series of one metric and one state ("" none): members are added target by target. */
static int resolve_group(
        Resolve *r, const MetricSpec *m, Scope scope, const char *state, const Term *terms, size_t n_terms) {
        for (uint32_t target = 0; target < machine_n_entities(r->machine, scope); target++) {
                Series key = { .metric = m, .scope = scope }, *s;
                size_t first = r->plan->n_members;
                int code;

                for (size_t i = 0; i < n_terms; i++)
                        for (uint32_t k = terms[i].first[target]; k < terms[i].first[target + 1]; k++) {
                                code = add_entity(r, m, &terms[i], state, terms[i].order[k]);
                                if (code < 0)
                                        return code;
                        }
                if (r->plan->n_members == first)
                        continue;
                series_ids(&key, r->machine, target);
                (void) snprintf(key.state, sizeof(key.state), "%s", state);
                code = plan_series(r->plan, &key, &s);
                if (code != 0)
                        return code;
                s->first_member = (uint32_t) first;
                s->method = metric_method(m, r->layout);
                s->n_members = (uint32_t) (r->plan->n_members - first);
                s->is_own = n_terms == 1 && field_spec(terms[0].num)->scope == scope;
                s->keeps_spread = s->is_own && (terms[0].ratio != FIELD_NONE ||
                                                       (s->n_members == 1 && rollup_has_spread(terms[0].num)));
                /* one core that is left of two is told as two were: both may fall into one bucket */
                s->by_member = (m->flags & METRIC_SUM_WATTS) ||
                               ((m->flags & METRIC_SETTLED) && m->kind == METRIC_RATIO &&
                                       (s->n_members > 1 || !s->is_own));
        }
        return 0;
}

/* Was the name met before state k of set i? */
static bool state_is_known(const Machine *m, uint32_t i, uint32_t k) {
        const char *name = m->idle_sets[i].states[k].name;

        for (uint32_t a = 0; a <= i; a++)
                for (uint32_t b = 0; b < (a < i ? m->idle_sets[a].n_states : k); b++)
                        if (strcmp(m->idle_sets[a].states[b].name, name) == 0)
                                return true;
        return false;
}

/* The names that CPUs without cpuidle count under, where no set has them. */
static int resolve_nameless(
        Resolve *r, const MetricSpec *m, Scope scope, const Term *terms, size_t n_terms) {
        const Machine *machine = r->machine;
        bool any = false;
        int code = 0;

        for (uint32_t i = 0; i < machine->n_cpus && !any; i++)
                any = !machine_idle_set(machine, i);
        for (unsigned i = 0; any && i < ARRAY_SIZE(nameless) && code == 0; i++) {
                bool known = false;

                for (uint32_t a = 0; a < machine->n_idle_sets && !known; a++)
                        for (uint32_t b = 0; b < machine->idle_sets[a].n_states && !known; b++)
                                known = strcmp(machine->idle_sets[a].states[b].name, nameless[i]) == 0;
                if (!known)
                        code = resolve_group(r, m, scope, nameless[i], terms, n_terms);
        }
        return code;
}

/* A group for each name of an idle state, in the order of the sets. */
static int resolve_states(Resolve *r, const MetricSpec *m, Scope scope, const Term *terms, size_t n_terms) {
        const Machine *machine = r->machine;

        if (r->plan->spec->state[0])
                return resolve_group(r, m, scope, r->plan->spec->state, terms, n_terms);
        for (uint32_t i = 0; i < machine->n_idle_sets; i++)
                for (uint32_t k = 0; k < machine->idle_sets[i].n_states; k++) {
                        const char *name = machine->idle_sets[i].states[k].name;
                        int code;

                        if (!name[0] || state_is_known(machine, i, k))
                                continue;
                        code = resolve_group(r, m, scope, name, terms, n_terms);
                        if (code != 0)
                                return code;
                }
        return resolve_nameless(r, m, scope, terms, n_terms);
}

/* A group for each bucket of a histogram. */
static int resolve_buckets(Resolve *r, const MetricSpec *m, Scope scope, const Term *terms, size_t n_terms) {
        int code = 0;

        for (uint8_t i = 0; i < SLEEP_BUCKETS && code == 0; i++) {
                char name[16];

                field_bucket_name(i, name);
                code = resolve_group(r, m, scope, name, terms, n_terms);
        }
        return code;
}

static int resolve_metric(Resolve *r, const MetricSpec *m) {
        const QuerySpec *q = r->plan->spec;
        Scope own = m->flags & METRIC_SUM_FIELDS ? m->scope : metric_scope(m, r->layout);
        Scope scope = q->has_scope ? q->scope : own;
        Term terms[2] = {};
        size_t n, sorted = 0;
        int code = 0;

        if (scope > own || (q->state[0] && m->instance != INSTANCE_STATE))
                return 0;
        n = metric_terms(m, r->layout, terms);
        for (; sorted < n && code == 0; sorted++)
                code = term_sort(r, &terms[sorted], scope);
        if (code == 0 && m->instance == INSTANCE_STATE)
                code = resolve_states(r, m, scope, terms, n);
        else if (code == 0 && m->instance == INSTANCE_BUCKET)
                code = resolve_buckets(r, m, scope, terms, n);
        else if (code == 0)
                code = resolve_group(r, m, scope, "", terms, n);
        for (size_t i = 0; i < n; i++) {
                free(terms[i].order);
                free(terms[i].first);
        }
        return code;
}

int plan_set_machine(Plan *p, const Machine *m, const Layout *l) {
        Resolve r = { .plan = p, .machine = m, .layout = l };
        int code;

        for (size_t i = 0; i < p->n_series; i++)
                p->series[i].n_members = 0;
        p->n_members = 0;
        p->tsc_hz = m->tsc_hz;
        code = resolve_filters(&r);
        for (size_t i = 0; i < p->n_metrics && code == 0; i++)
                code = resolve_metric(&r, p->metrics[i]);
        for (unsigned s = 0; s < SCOPE_N; s++)
                free(r.pass[s]);
        return code;
}
