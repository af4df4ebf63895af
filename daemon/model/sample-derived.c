/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fields that no register holds: c1, demotion, the bound on break wakeups, and what sampling itself cost.
 *
 * c1 and demotion compare a CPU with its core. The core may have been left unread for many ticks while it slept, so
 * what its CPUs did is summed up (CpuSpan) until the core's counters have a difference again: both sides cover the time
 * since the core's last baseline.
 *
 * c1 = TSC - MPERF - c3 - c6 - c7 where there is no MSR 0x660; readings are some us apart, so that down to -1 % of the
 * span it is 0, below that no value. Where each thread is read as it goes idle, its readings and the core's (made by
 * the thread that came last) are of different times: then the share of time it was awake in its span is taken for that
 * of the core's span, which is exact for a thread that slept and for the one that read the core.
 *
 * Demotion = requested - granted: the share of its time that the least willing thread asked for a state of C6 or deeper
 * (a core sleeps only as deep as all its threads ask), times the core's span, less c6 + c7. A thread that slept through
 * has no say: what it asked for is known at its exit only.
 */

#include "cstated/macro.h"

#include "model/sample-private.h"

#define C6_HINT 0x20
#define C6_HINT_PHI 0x10 /* Knights Landing, Knights Mill: C6 is MWAIT 0x10 */

/* One column of the sample in work; empty where the layout lacks it. */
typedef struct Column {
        int64_t *values;
        uint8_t *reasons;
        const Base *base; /* NULL for derived ones */
} Column;

static Column column_at(SampleDelta *d, const LayoutColumn *c) {
        if (!c)
                return (Column){};
        return (Column){
                .values = d->values + c->offset,
                .reasons = d->reasons + c->offset,
                .base = c->offset < d->n_raw ? d->base + c->offset : NULL,
        };
}

static Column column_of(SampleDelta *d, FieldId f) {
        return column_at(d, layout_find(&d->layout, f, 0));
}

static void put(SampleDelta *d, const Column *c, uint32_t e, Reason r, int64_t value) {
        size_t slot = (size_t) (c->values - d->values) + e;

        c->values[e] = r == REASON_NONE ? value : 0;
        c->reasons[e] = (uint8_t) r;
        if (r != REASON_ASLEEP) {
                d->settled[slot] = c->values[e];
                d->settled_reasons[slot] = (uint8_t) r;
        }
}

/* What one counter adds to a sum: its value; nothing while it is still to come; else the sum is spoilt. */
static void add_or_spoil(
        const Column *c, uint32_t e, uint64_t mono_ns, double factor, double *sum, uint8_t *bad) {
        if (c->reasons[e] == REASON_NONE)
                *sum += (double) c->values[e] * factor;
        else if (*bad == REASON_NONE && !base_is_pending(&c->base[e], mono_ns))
                *bad = c->reasons[e];
}

/* ---- c1 ---- */

static void gather_tsc(SampleDelta *d, const TickHeader *h, const Column *tsc, const Column *mperf) {
        for (uint32_t i = 0; i < d->machine->n_cpus; i++) {
                CpuSpan *s = &d->spans[i];

                if (tsc->reasons[i] == REASON_NONE) {
                        s->tsc += tsc->values[i];
                        s->c1_res_tsc += tsc->values[i];
                        if (mperf->values && mperf->reasons[i] == REASON_NONE)
                                s->mperf += mperf->values[i];
                        else if (mperf->values && s->mperf_bad == REASON_NONE)
                                s->mperf_bad = mperf->reasons[i];
                } else if (!base_is_pending(&tsc->base[i], h->mono_ns)) {
                        s->tsc_bad = s->tsc_bad ? s->tsc_bad : tsc->reasons[i];
                        s->c1_res_bad = s->c1_res_bad ? s->c1_res_bad : tsc->reasons[i];
                }
        }
}

static void put_c1(
        SampleDelta *d, const Column *c1, const Column *span, uint32_t cpu, Reason r, int64_t v, int64_t tsc) {
        if (r == REASON_NONE && (v < -(tsc / 100) || v > tsc + tsc / 100))
                r = REASON_OUT_OF_RANGE;
        put(d, c1, cpu, r, MAX(v, INT64_C(0)));
        put(d, span, cpu, r, tsc);
}

/* From MSR 0x660. */
static void derive_c1_read(
        SampleDelta *d, const TickHeader *h, const Column *res, const Column *c1, const Column *span) {
        for (uint32_t i = 0; i < d->machine->n_cpus; i++) {
                CpuSpan *s = &d->spans[i];
                Reason r = (Reason) res->reasons[i];

                if (r == REASON_NONE)
                        r = (Reason) s->c1_res_bad;
                put_c1(d, c1, span, i, r, res->values[i], s->c1_res_tsc);
                if (base_is_pending(&res->base[i], h->mono_ns))
                        continue;
                s->c1_res_tsc = 0;
                s->c1_res_bad = REASON_NONE;
        }
}

/* c3 + c6 + c7 of a core, as far as the layout has them. */
static Reason core_granted(const Column deep[3], uint32_t core, int64_t *ret) {
        int64_t sum = 0;

        for (unsigned k = 0; k < 3; k++) {
                if (!deep[k].values)
                        continue;
                if (deep[k].reasons[core] != REASON_NONE)
                        return (Reason) deep[k].reasons[core];
                sum += deep[k].values[core];
        }
        *ret = sum;
        return REASON_NONE;
}

/* How long a thread was awake, of a time that is its core's span too: its own clock may have stopped elsewhere. */
static int64_t awake_of(const CpuSpan *s, int64_t core_span, int64_t *ret_time) {
        int64_t off = core_span > s->tsc ? core_span - s->tsc : s->tsc - core_span;

        *ret_time = s->tsc;
        if (off <= core_span / 1000 || s->tsc <= 0)
                return s->mperf;
        *ret_time = core_span;
        return (int64_t) ((double) s->mperf / (double) s->tsc * (double) core_span);
}

/* What TSC, MPERF and the core's deep states leave. */
static void derive_c1_left(
        SampleDelta *d, const TickHeader *h, const Column *tsc, const Column *c1, const Column *span) {
        Column core_tsc = column_of(d, FIELD_CORE_TSC);
        const Column deep[3] = { column_of(d, FIELD_C3), column_of(d, FIELD_C6), column_of(d, FIELD_C7) };

        for (uint32_t i = 0; i < d->machine->n_cpus; i++) {
                CpuSpan *s = &d->spans[i];
                uint32_t core = d->machine->cpus[i].core;
                bool pending = base_is_pending(&core_tsc.base[core], h->mono_ns);
                int64_t granted = 0, awake = 0, time = s->tsc;
                Reason r = pending ? (Reason) core_tsc.reasons[core] : core_granted(deep, core, &granted);

                if (r == REASON_NONE && tsc->reasons[i] != REASON_NONE)
                        r = (Reason) tsc->reasons[i];
                if (r == REASON_NONE)
                        r = (Reason) (s->tsc_bad ? s->tsc_bad : s->mperf_bad);
                if (r == REASON_NONE)
                        awake = awake_of(s, core_tsc.values[core], &time);
                put_c1(d, c1, span, i, r, time - awake - granted, time);
                if (pending)
                        continue;
                s->tsc = s->mperf = 0;
                s->tsc_bad = s->mperf_bad = REASON_NONE;
        }
}

static void derive_c1(SampleDelta *d, const TickHeader *h) {
        Column c1 = column_of(d, FIELD_C1), span = column_of(d, FIELD_C1_SPAN);
        Column tsc = column_of(d, FIELD_CPU_TSC), mperf = column_of(d, FIELD_MPERF),
               res = column_of(d, FIELD_C1_RES);

        if (!c1.values || !span.values)
                return;
        gather_tsc(d, h, &tsc, &mperf);
        if (res.values)
                derive_c1_read(d, h, &res, &c1, &span);
        else
                derive_c1_left(d, h, &tsc, &c1, &span);
}

/* ---- demotion ---- */

static bool is_deep(const Machine *m, uint32_t cpu, uint8_t state) {
        const IdleSet *set = machine_idle_set(m, cpu);
        const CpuIdent *c = m->cpus[cpu].ident < m->n_idents ? &m->idents[m->cpus[cpu].ident] : NULL;
        bool phi = c && c->family == 6 && (c->model == 0x57 || c->model == 0x85);

        return set && state < set->n_states && set->states[state].mwait_hint >= (phi ? C6_HINT_PHI : C6_HINT);
}

/* One source's account of every CPU. span: its clock; without one the sample's own time. */
static void gather_requested(SampleDelta *d, const TickHeader *h, unsigned by) {
        FieldId f = by == BY_IDLETRACE ? FIELD_TRACE_NS : FIELD_IDLE_TIME;
        double ns = by == BY_IDLETRACE ? 1 : 1000;
        Column span = f == FIELD_IDLE_TIME ? column_of(d, FIELD_IDLE_NS) : (Column){};

        for (uint32_t i = 0; i < d->machine->n_cpus; i++) {
                Requested *r = &d->spans[i].requested[by];

                if (span.values)
                        add_or_spoil(&span, i, h->mono_ns, 1, &r->span_ns, &r->bad);
                else
                        r->span_ns += (double) d->sample.h.dt_ns;
        }
        for (uint8_t k = 0; k < IDLE_STATES_MAX; k++) {
                Column c = column_at(d, layout_find(&d->layout, f, k));

                for (uint32_t i = 0; c.values && i < d->machine->n_cpus; i++) {
                        Requested *r = &d->spans[i].requested[by];

                        if (is_deep(d->machine, i, k))
                                add_or_spoil(&c, i, h->mono_ns, ns, &r->deep_ns, &r->bad);
                }
        }
}

/*
 * The smallest share among the core's threads that tell one. idletrace is asked first, since it knows of the sleep in
 * progress; cpuidle where idletrace does not know this CPU.
 */
static Reason core_requested(const SampleDelta *d, uint32_t core, double *ret) {
        double least = 2;

        for (uint32_t i = d->core_first[core]; i != UINT32_MAX; i = d->core_next[i]) {
                const CpuSpan *s = &d->spans[i];
                bool traced = d->has_trace && s->requested[BY_IDLETRACE].bad == REASON_NONE;
                const Requested *r = &s->requested[traced ? BY_IDLETRACE : BY_CPUIDLE];

                if (r->bad != REASON_NONE)
                        return (Reason) r->bad;
                if (r->span_ns > 0)
                        least = MIN(least, MIN(r->deep_ns / r->span_ns, 1.0));
        }
        if (least > 1)
                return REASON_ASLEEP;
        *ret = least;
        return REASON_NONE;
}

static void derive_demotion(SampleDelta *d, const TickHeader *h) {
        Column out = column_of(d, FIELD_DEMOTION), core_tsc = column_of(d, FIELD_CORE_TSC);
        const Column deep[3] = { {}, column_of(d, FIELD_C6), column_of(d, FIELD_C7) };

        if (!out.values)
                return;
        if (d->has_trace)
                gather_requested(d, h, BY_IDLETRACE);
        if (layout_find(&d->layout, FIELD_IDLE_NS, 0))
                gather_requested(d, h, BY_CPUIDLE);
        for (uint32_t e = 0; e < d->machine->n_cores; e++) {
                bool pending = base_is_pending(&core_tsc.base[e], h->mono_ns);
                int64_t granted = 0;
                double share = 0;
                Reason r = (Reason) core_tsc.reasons[e];

                if (r == REASON_NONE)
                        r = core_granted(deep, e, &granted);
                if (r == REASON_NONE)
                        r = core_requested(d, e, &share);
                put(d, &out, e, r, (int64_t) (share * (double) core_tsc.values[e]) - granted);
                for (uint32_t i = d->core_first[e]; !pending && i != UINT32_MAX; i = d->core_next[i]) {
                        for (unsigned by = 0; by < REQUESTED_N; by++)
                                d->spans[i].requested[by] = (Requested){};
                }
        }
}

/* ---- break wakeups, bounded ---- */

static bool has_mwait(const IdleSet *set) {
        for (uint32_t i = 0; set && i < set->n_states; i++)
                if (set->states[i].mwait_hint >= 0)
                        return true;
        return false;
}

/* Each interrupt ends at most one sleep, so that at least this many exits had another cause. */
static Reason bound_break(
        SampleDelta *d, const Column usage[IDLE_STATES_MAX], const Column *irq, uint32_t cpu, int64_t *ret) {
        const IdleSet *set = machine_idle_set(d->machine, cpu);
        int64_t exits = 0;

        if (!has_mwait(set))
                return REASON_NOT_APPLICABLE;
        for (uint32_t k = 0; k < set->n_states; k++) {
                if (set->states[k].is_poll)
                        continue;
                if (!usage[k].values)
                        return REASON_ABSENT;
                if (usage[k].reasons[cpu] != REASON_NONE)
                        return (Reason) usage[k].reasons[cpu];
                exits += usage[k].values[cpu];
        }
        if (irq->reasons[cpu] != REASON_NONE)
                return (Reason) irq->reasons[cpu];
        *ret = MAX(exits - irq->values[cpu], INT64_C(0));
        return REASON_NONE;
}

static void derive_bound_break(SampleDelta *d) {
        Column out = column_of(d, FIELD_BOUND_BREAK), irq = column_of(d, FIELD_IRQ), usage[IDLE_STATES_MAX];

        if (!out.values)
                return;
        for (uint8_t k = 0; k < IDLE_STATES_MAX; k++)
                usage[k] = column_at(d, layout_find(&d->layout, FIELD_IDLE_USAGE, k));
        for (uint32_t i = 0; i < d->machine->n_cpus; i++) {
                int64_t v = 0;
                Reason r = bound_break(d, usage, &irq, i, &v);

                put(d, &out, i, r, v);
        }
}

/* ---- /proc/stat ---- */

static void derive_stat(SampleDelta *d) {
        Column out = column_of(d, FIELD_STAT_ALL);
        Column busy = column_of(d, FIELD_STAT_BUSY), idle = column_of(d, FIELD_STAT_IDLE);

        for (uint32_t i = 0; out.values && i < d->machine->n_cpus; i++)
                put(d, &out, i, (Reason) (busy.reasons[i] ? busy.reasons[i] : idle.reasons[i]),
                        busy.values[i] + idle.values[i]);
}

/* ---- self ---- */

static void derive_self(SampleDelta *d, const TickHeader *h, bool is_first) {
        const TickHeader *p = &d->prev;
        const struct {
                FieldId field;
                uint64_t prev, cur;
        } counters[] = {
                { FIELD_SELF_CPU_NS, p->self_cpu_ns, h->self_cpu_ns },
                { FIELD_SELF_READS, p->self_reads, h->self_reads },
                { FIELD_SELF_WAKEUPS, p->self_wakeups, h->self_wakeups },
                { FIELD_SELF_MISSED, p->self_missed, h->self_missed },
        };
        Column c;

        for (size_t i = 0; i < ARRAY_SIZE(counters); i++) {
                Reason r = is_first ? (d->has_prev ? REASON_GAP : REASON_FIRST) :
                        counters[i].cur < counters[i].prev ? REASON_RESET : REASON_NONE;

                c = column_of(d, counters[i].field);
                if (c.values)
                        put(d, &c, 0, r, (int64_t) (counters[i].cur - counters[i].prev));
        }
        c = column_of(d, FIELD_SELF_SAMPLE_NS);
        if (c.values)
                put(d, &c, 0, REASON_NONE, (int64_t) MIN(h->sample_ns, (uint64_t) INT64_MAX));
}

void sample_derive(SampleDelta *d, const TickHeader *h, bool is_first) {
        derive_c1(d, h);
        derive_demotion(d, h);
        derive_bound_break(d);
        derive_stat(d);
        derive_self(d, h, is_first);
}
