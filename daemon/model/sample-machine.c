/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A new generation of the machine: everything is laid out anew, and what is the same entity and the same column as
 * before keeps its baseline, so that a CPU going offline costs the others nothing. An entity that went away takes its
 * baselines along: when it returns, its counters start at `first`. This is the only place that allocates.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cstated/macro.h"

#include "model/cpu-table.h"
#include "model/sample-private.h"

static void arrays_free(SampleDelta *d) {
        free(d->base);
        free(d->values);
        free(d->reasons);
        free(d->settled);
        free(d->settled_reasons);
        free(d->spans);
        free(d->core_first);
        free(d->core_next);
}

SampleDelta *sample_delta_new(void) {
        return calloc(1, sizeof(SampleDelta));
}

SampleDelta *sample_delta_free(SampleDelta *d) {
        if (!d)
                return NULL;
        arrays_free(d);
        machine_free(d->machine);
        free(d);
        return NULL;
}

const Machine *sample_delta_machine(const SampleDelta *d) {
        return d->machine;
}

/* ---- the layout of samples ---- */

/* c1 may be told from the core's counters only where every deep counter that the models have is read. */
static bool deep_counters_known(const Machine *m) {
        static const struct {
                unsigned flag;
                FieldId field;
        } deep[] = { { CPU_HAS_C3, FIELD_C3 }, { CPU_HAS_C6, FIELD_C6 }, { CPU_HAS_C7, FIELD_C7 } };
        unsigned n = 0;

        for (uint32_t i = 0; i < m->n_idents; i++) {
                const CpuModel *model = cpu_table_find(&m->idents[i]);

                if (!model)
                        return false;
                for (size_t k = 0; k < ARRAY_SIZE(deep); k++)
                        if (model->core & deep[k].flag) {
                                if (!layout_find(&m->layout, deep[k].field, 0))
                                        return false;
                                n++;
                        }
        }
        return n > 0;
}

static bool has_field(const Layout *l, FieldId f) {
        for (size_t i = 0; i < l->n_columns; i++)
                if (l->columns[i].field == f)
                        return true;
        return false;
}

void sample_layout(const Machine *m, Layout *ret) {
        const Layout *l = &m->layout;
        bool core = has_field(l, FIELD_CORE_TSC), granted = has_field(l, FIELD_C6) || has_field(l, FIELD_C7);
        bool requested = has_field(l, FIELD_TRACE_NS) ||
                         (has_field(l, FIELD_IDLE_TIME) && has_field(l, FIELD_IDLE_NS));

        *ret = *l;
        if (has_field(l, FIELD_CPU_TSC) &&
                (has_field(l, FIELD_C1_RES) ||
                        (core && has_field(l, FIELD_MPERF) && deep_counters_known(m)))) {
                (void) layout_add(ret, FIELD_C1, 0);
                (void) layout_add(ret, FIELD_C1_SPAN, 0);
        }
        if (core && granted && requested)
                (void) layout_add(ret, FIELD_DEMOTION, 0);
        if (has_field(l, FIELD_IRQ) && !has_field(l, FIELD_WAKE_BREAK))
                (void) layout_add(ret, FIELD_BOUND_BREAK, 0);
        if (has_field(l, FIELD_STAT_BUSY) && has_field(l, FIELD_STAT_IDLE))
                (void) layout_add(ret, FIELD_STAT_ALL, 0);
        for (unsigned f = FIELD_SELF_CPU_NS; f <= FIELD_SELF_SAMPLE_NS; f++)
                (void) layout_add(ret, (FieldId) f, 0);
        layout_finish(ret);
}

/* ---- generations ---- */

/* The same entity in the old machine, UINT32_MAX if it was not there. */
static uint32_t entity_before(const Machine *old, const Machine *m, Scope s, uint32_t e) {
        const MachinePackage *p;

        switch (s) {
        case SCOPE_SYSTEM:
                return 0;
        case SCOPE_PACKAGE:
                return machine_package_index(old, m->packages[e].package, m->packages[e].die);
        case SCOPE_MODULE:
                p = &m->packages[m->modules[e].package];
                return machine_module_index(old, p->package, p->die, m->modules[e].id);
        case SCOPE_CORE:
                p = &m->packages[m->cores[e].package];
                return machine_core_index(old, p->package, p->die, m->cores[e].id);
        case SCOPE_CPU:
        default:
                return machine_cpu_index(old, m->cpus[e].id);
        }
}

static const char *state_name(const Machine *m, uint32_t cpu, uint8_t state) {
        const IdleSet *set = machine_idle_set(m, cpu);

        return set && state < set->n_states ? set->states[state].name : "";
}

static void column_transfer(SampleDelta *to, const SampleDelta *from, const LayoutColumn *c) {
        const LayoutColumn *was = layout_find(&from->layout, c->field, c->instance);
        Scope s = field_spec(c->field)->scope;

        if (!was || was->width != c->width || was->range != c->range || was->scale < c->scale ||
                was->scale > c->scale)
                return;
        for (uint32_t e = 0; e < to->layout.n_entities[s]; e++) {
                uint32_t o = entity_before(from->machine, to->machine, s, e);
                size_t slot = c->offset + e, old;

                if (o == UINT32_MAX)
                        continue;
                if (field_is_by_state(c->field) && strcmp(state_name(from->machine, o, c->instance),
                                                     state_name(to->machine, e, c->instance)) != 0)
                        continue;
                old = was->offset + o;
                to->settled[slot] = from->settled[old];
                to->settled_reasons[slot] = from->settled_reasons[old];
                if (slot < to->n_raw && old < from->n_raw)
                        to->base[slot] = from->base[old];
        }
}

static void transfer(SampleDelta *to, const SampleDelta *from) {
        for (size_t i = 0; i < to->layout.n_columns; i++)
                column_transfer(to, from, &to->layout.columns[i]);
        for (uint32_t e = 0; e < to->machine->n_cpus; e++) {
                uint32_t o = machine_cpu_index(from->machine, to->machine->cpus[e].id);

                if (o != UINT32_MAX)
                        to->spans[e] = from->spans[o];
        }
        to->prev = from->prev;
        to->has_prev = from->has_prev;
        to->sample.h = from->sample.h;
}

static void link_cores(SampleDelta *d) {
        for (uint32_t e = 0; e < d->machine->n_cores; e++)
                d->core_first[e] = UINT32_MAX;
        for (uint32_t i = d->machine->n_cpus; i-- > 0;) {
                uint32_t *first = &d->core_first[d->machine->cpus[i].core];

                d->core_next[i] = *first;
                *first = i;
        }
}

static int arrays_new(SampleDelta *d) {
        size_t n = d->layout.n_values + 1;

        d->base = calloc(d->n_raw + 1, sizeof(*d->base));
        d->values = calloc(n, sizeof(*d->values));
        d->reasons = calloc(n, sizeof(*d->reasons));
        d->settled = calloc(n, sizeof(*d->settled));
        d->settled_reasons = calloc(n, sizeof(*d->settled_reasons));
        d->spans = calloc(d->machine->n_cpus + 1, sizeof(*d->spans));
        d->core_first = calloc(d->machine->n_cores + 1, sizeof(*d->core_first));
        d->core_next = calloc(d->machine->n_cpus + 1, sizeof(*d->core_next));
        if (!d->base || !d->values || !d->reasons || !d->settled || !d->settled_reasons || !d->spans ||
                !d->core_first || !d->core_next)
                return -ENOMEM;
        memset(d->reasons, REASON_FIRST, n);
        memset(d->settled_reasons, REASON_FIRST, n);
        link_cores(d);
        return 0;
}

int sample_delta_set_machine(SampleDelta *d, Machine *m) {
        _cleanup_(sample_delta_freep) SampleDelta *fresh = sample_delta_new();
        SampleDelta old;

        if (!fresh) {
                machine_free(m);
                return -ENOMEM;
        }
        fresh->machine = m;
        fresh->n_raw = m->layout.n_values;
        sample_layout(m, &fresh->layout);
        fresh->has_trace = has_field(&m->layout, FIELD_TRACE_NS);
        if (arrays_new(fresh) < 0)
                return -ENOMEM;
        if (d->machine && strcmp(d->machine->boot_id, m->boot_id) == 0)
                transfer(fresh, d);
        else
                fresh->sample.h = d->sample.h;
        old = *d;
        *d = *fresh;
        *fresh = old;
        d->sample.machine = d->machine;
        d->sample.layout = &d->layout;
        d->sample.values = d->values;
        d->sample.reasons = d->reasons;
        d->sample.settled = d->settled;
        d->sample.settled_reasons = d->settled_reasons;
        return 0;
}
