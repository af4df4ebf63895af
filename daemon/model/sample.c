/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From ticks to samples: one difference a slot.
 *
 * A counter with a span field is only differenced where the span moved in the same tick and both baselines are of
 * the same tick; so a quotient of the two always covers the same time. Hence:
 *   - a reading whose span could not be read is not used; both baselines stay and the next difference covers both
 *     times;
 *   - an error of the counter alone, while its span moved on, ends its baseline: null now, `gap` at the next reading.
 *     That costs the counter the time of the error and one interval, and leaves its neighbours of the same span
 *     alone;
 *   - asleep keeps both baselines. MPERF and APERF are the exception: they do not count in a sleep, so a CPU asleep
 *     moved them by 0, and the TSC beside them by the time that went by. SMI and C1_RES, which share that span but
 *     are
 *     only read when awake, are counts of their own (C1 brings C1_SPAN).
 * A counter without a span has the sample's own interval as its clock: an error costs two intervals, a sleep none.
 *
 * How fast can a counter go? Faster is no value: see max_delta(). The watts are bounds of plausibility, not of any
 * machine: a register of 2^32 x 15.3 uJ at 1000 W may go unread for 65 s before the number of wraps is unknown, which
 * still admits the longest interval of 60 s.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cstated/macro.h"

#include "model/counter.h"
#include "model/sample-private.h"

#define NS 1000000000ULL
#define TICK_REST_MASK ((1u << FIELD_TICK_SHIFT) - 1)

#define GAP_EXTRA_NS (60 * NS)
#define SUSPEND_NS 100000000LL   /* BOOTTIME runs through a suspend, MONOTONIC does not */
#define CLOCK_STEP_NS 100000000LL
#define CLOCK_SLEW_DIVISOR 1000  /* NTP slews at most 500 ppm */
#define SLACK_NS 10000000ULL     /* readings of one turn lie this far apart */
#define APERF_PER_TSC 16         /* turbo over base, generously */

/* No counter moves by more in one interval; sums over all CPUs and states of a machine then fit 63 bits. */
#define DELTA_MAX (INT64_C(1) << 46)

#define MAX_PACKAGE_WATTS 1000.0
#define MAX_DRAM_WATTS 500.0
#define MAX_CORE_WATTS 100.0
#define MAX_PSYS_WATTS_PER_PACKAGE 2000.0

Tick *tick_new(size_t n_values) {
        _cleanup_(tick_freep) Tick *t = calloc(1, sizeof(*t));

        if (!t)
                return NULL;
        t->n_values = n_values;
        t->values = calloc(n_values + 1, sizeof(*t->values));
        t->reasons = calloc(n_values + 1, sizeof(*t->reasons));
        if (!t->values || !t->reasons)
                return NULL;
        return TAKE_PTR(t);
}

Tick *tick_free(Tick *t) {
        if (!t)
                return NULL;
        free(t->values);
        free(t->reasons);
        free(t);
        return NULL;
}

/* ---- bounds ---- */

static double max_watts(const SampleDelta *d, FieldId field) {
        if (field == FIELD_ENERGY_RAM)
                return MAX_DRAM_WATTS;
        if (field == FIELD_ENERGY_CORE)
                return MAX_CORE_WATTS;
        if (field == FIELD_ENERGY_SYS)
                return MAX_PSYS_WATTS_PER_PACKAGE * d->machine->n_packages;
        return MAX_PACKAGE_WATTS;
}

static double tsc_hz(const SampleDelta *d, const TickHeader *h) {
        if (d->machine->tsc_hz != 0)
                return (double) d->machine->tsc_hz;
        if (h->tsc > d->prev.tsc && h->mono_ns > d->prev.mono_ns)
                return (double) (h->tsc - d->prev.tsc) * 1e9 / (double) (h->mono_ns - d->prev.mono_ns);
        return 0;
}

static uint64_t bound(double v) {
        return v < 1 ? 1 : v < 9e18 ? (uint64_t) v : 0;
}

/*
 * The most the counter can have moved; 0: no bound. span: the difference of its span field, -1 without one (then the
 * time since the baseline and a whole interval more, since readings may be taken anywhere in an interval).
 */
static uint64_t max_delta(
        const SampleDelta *d, const LayoutColumn *c, const Base *b, const TickHeader *h, int64_t span) {
        const FieldSpec *f = field_spec(c->field);
        double ns = (double) (h->mono_ns - b->mono_ns + h->interval_ns), ticks;

        switch (f->unit) {
        case FIELD_UNIT_TICK:
                ticks = span >= 0 ? (double) (span + 1) * (1 << FIELD_TICK_SHIFT) : ns * tsc_hz(d, h) / 1e9;
                ticks = ticks * 1.05 + (double) SLACK_NS * tsc_hz(d, h) / 1e9;
                if (c->field == FIELD_APERF)
                        ticks *= APERF_PER_TSC;
                return tsc_hz(d, h) > 0 ? bound(ticks) : 0;
        case FIELD_UNIT_ENERGY:
                ns = (span >= 0 ? (double) span : ns) + (double) SLACK_NS;
                return bound(max_watts(d, c->field) * ns / 1e9 / c->scale);
        case FIELD_UNIT_COUNT:
        case FIELD_UNIT_NS:
        case FIELD_UNIT_USEC:
        case FIELD_UNIT_CELSIUS:
        case FIELD_UNIT_JIFFY:
        case FIELD_UNIT_TIME:
        case FIELD_UNIT_BYTE:
        default:
                return 0;
        }
}

/* ---- one slot ---- */

static void base_set(Base *b, uint64_t value, uint64_t mono_ns) {
        if (b->state != BASE_VALID)
                b->rest = (uint16_t) (value & TICK_REST_MASK);
        b->value = value;
        b->mono_ns = mono_ns;
        b->state = BASE_VALID;
}

/* The difference to the baseline, which moves to cur whatever comes of it. */
static Reason slot_difference(SampleDelta *d, const LayoutColumn *c, Base *b, uint64_t cur, const TickHeader *h,
        int64_t span, int64_t *ret) {
        CounterRule rule = { .range = counter_range(c->width, c->range) };
        uint64_t delta = 0;
        Reason r;

        if (b->state != BASE_VALID) {
                r = b->state == BASE_NONE ? REASON_FIRST : REASON_GAP;
                base_set(b, cur, h->mono_ns);
                return r;
        }
        rule.max_delta = max_delta(d, c, b, h, span);
        r = counter_delta(&rule, b->value, cur, &delta);
        if (r == REASON_NONE && delta > DELTA_MAX)
                r = REASON_OUT_OF_RANGE;
        if (r == REASON_NONE) {
                uint64_t rest = b->rest + delta;

                base_set(b, cur, h->mono_ns);
                *ret = (int64_t) delta;
                if (field_spec(c->field)->unit == FIELD_UNIT_TICK) {
                        *ret = (int64_t) (rest >> FIELD_TICK_SHIFT);
                        b->rest = (uint16_t) (rest & TICK_REST_MASK);
                }
        } else {
                b->state = BASE_NONE;
                base_set(b, cur, h->mono_ns);
        }
        return r;
}

static void slot_put(SampleDelta *d, size_t slot, Reason r, int64_t value) {
        d->values[slot] = r == REASON_NONE ? value : 0;
        d->reasons[slot] = (uint8_t) r;
        if (r != REASON_ASLEEP) {
                d->settled[slot] = d->values[slot];
                d->settled_reasons[slot] = (uint8_t) r;
        }
}

static Reason tick_reason(const Tick *t, size_t slot) {
        return t->reasons[slot] < REASON_N ? (Reason) t->reasons[slot] : REASON_ERROR;
}

/* A reading that failed: the reason, and what becomes of the baseline. span_moved: its clock went on without it. */
static Reason slot_unread(Base *b, Reason r, bool span_moved) {
        if (r == REASON_OFFLINE)
                b->state = BASE_NONE;
        else if (span_moved && b->state == BASE_VALID)
                b->state = BASE_BROKEN;
        return r;
}

/*
 * The sampler knows that a counter began anew (rows of /proc/interrupts came or went): the next difference is from
 * here.
 */
static void slot_restart(SampleDelta *d, size_t slot, uint64_t value, uint64_t mono_ns) {
        Base *b = &d->base[slot];

        b->state = BASE_NONE;
        base_set(b, value, mono_ns);
        slot_put(d, slot, REASON_RESET, 0);
}

static bool counts_only_awake(FieldId f) {
        return f == FIELD_MPERF || f == FIELD_APERF;
}

/* SMI and C1_RES: read only when awake while their span goes on; they are no quotients of it. */
static bool has_own_clock(FieldId f) {
        return f == FIELD_SMI || f == FIELD_C1_RES;
}

static void counter_slot(
        SampleDelta *d, const Tick *t, const LayoutColumn *c, const LayoutColumn *span, uint32_t e) {
        size_t slot = c->offset + e;
        Base *b = &d->base[slot];
        Reason r = tick_reason(t, slot),
               span_reason = span ? (Reason) d->reasons[span->offset + e] : REASON_NONE;
        bool span_read = !span || d->base[span->offset + e].mono_ns == t->h.mono_ns;
        int64_t value = 0, span_value = -1;

        if (r == REASON_RESET) {
                slot_restart(d, slot, t->values[slot], t->h.mono_ns);
                return;
        }
        if (r == REASON_ASLEEP && counts_only_awake(c->field) && b->state == BASE_VALID && span_read) {
                b->mono_ns = t->h.mono_ns;
                slot_put(d, slot, REASON_NONE, 0);
                return;
        }
        if (r == REASON_NONE && !span_read)
                r = slot_unread(b, span_reason, false);
        else if (r == REASON_ASLEEP)
                r = slot_unread(b, r, span && span_read && !has_own_clock(c->field));
        else if (r != REASON_NONE)
                r = slot_unread(b, r, span_read);
        else {
                bool paired = span && !has_own_clock(c->field);

                if (paired && span_reason == REASON_NONE)
                        span_value = d->values[span->offset + e];
                r = slot_difference(d, c, b, t->values[slot], &t->h, span_value, &value);
                /* The span lost its own difference (first, backwards): there is nothing to hold this against. */
                if (paired && r == REASON_NONE)
                        r = span_reason;
        }
        slot_put(d, slot, r, value);
}

/*
 * A span: like a counter, but an error keeps its baseline; and the clock of a CPU that sleeps goes on by the
 * tick's own
 * measure where the sampler did not say by how much.
 */
static void span_slot(SampleDelta *d, const Tick *t, const LayoutColumn *c, uint32_t e) {
        size_t slot = c->offset + e;
        Base *b = &d->base[slot];
        Reason r = tick_reason(t, slot);
        uint64_t cur = t->values[slot];
        int64_t value = 0;

        if (r == REASON_RESET) {
                slot_restart(d, slot, cur, t->h.mono_ns);
                return;
        }
        if (r == REASON_ASLEEP && b->state == BASE_VALID && d->has_prev) {
                if (c->field == FIELD_CPU_TSC && t->h.tsc > d->prev.tsc) {
                        cur = b->value + (t->h.tsc - d->prev.tsc);
                        r = REASON_NONE;
                } else if (c->field == FIELD_CPU_NS) {
                        cur = b->value + (t->h.mono_ns - d->prev.mono_ns);
                        r = REASON_NONE;
                }
        }
        if (r == REASON_NONE)
                r = slot_difference(d, c, b, cur, &t->h, -1, &value);
        else
                r = slot_unread(b, r, false);
        slot_put(d, slot, r, value);
}

static void column_sample(SampleDelta *d, const Tick *t, const LayoutColumn *c) {
        const FieldSpec *f = field_spec(c->field);
        const LayoutColumn *span = f->span == FIELD_NONE ? NULL : layout_find(&d->machine->layout, f->span, 0);
        uint32_t n = d->machine->layout.n_entities[f->scope];

        for (uint32_t e = 0; e < n; e++) {
                size_t slot = c->offset + e;

                switch (f->kind) {
                case FIELD_COUNTER:
                        counter_slot(d, t, c, span, e);
                        break;
                case FIELD_SPAN:
                        span_slot(d, t, c, e);
                        break;
                case FIELD_GAUGE:
                case FIELD_DERIVED:
                default:
                        slot_put(d, slot, tick_reason(t, slot), (int64_t) t->values[slot]);
                }
        }
}

/* ---- a tick ---- */

typedef enum Fence {
        FENCE_NONE,
        FENCE_FIRST,
        FENCE_GAP,
        FENCE_SHORT,
} Fence;

static int64_t clock_moved(uint64_t a, uint64_t b, uint64_t prev_a, uint64_t prev_b) {
        return (int64_t) ((a - b) - (prev_a - prev_b));
}

static bool beyond(int64_t v, int64_t limit) {
        return v > limit || v < -limit;
}

static Fence fence_before(const SampleDelta *d, const TickHeader *h) {
        const TickHeader *p = &d->prev;

        if (!d->has_prev)
                return FENCE_FIRST;
        if (h->seq <= p->seq || h->mono_ns < p->mono_ns)
                return FENCE_GAP; /* another sampler */
        if (beyond(clock_moved(h->boot_ns, h->mono_ns, p->boot_ns, p->mono_ns), SUSPEND_NS))
                return FENCE_GAP;
        if (h->mono_ns - p->mono_ns > 2 * h->interval_ns + GAP_EXTRA_NS)
                return FENCE_GAP;
        return h->mono_ns - p->mono_ns < SAMPLE_MIN_NS ? FENCE_SHORT : FENCE_NONE;
}

static void cross_epoch(SampleDelta *d) {
        for (size_t i = 0; i < d->n_raw; i++)
                if (d->base[i].state == BASE_VALID)
                        d->base[i].state = BASE_BROKEN;
        memset(d->settled, 0, d->layout.n_values * sizeof(*d->settled));
        memset(d->settled_reasons, REASON_GAP, d->layout.n_values);
        memset(d->spans, 0, d->machine->n_cpus * sizeof(*d->spans));
}

static void header_fill(SampleDelta *d, const TickHeader *h, Fence fence) {
        SampleHeader *s = &d->sample.h;
        int64_t step = clock_moved(h->real_us * 1000, h->mono_ns, d->prev.real_us * 1000, d->prev.mono_ns);

        s->seq++;
        s->generation = h->generation;
        s->is_first = fence != FENCE_NONE;
        s->epoch += s->is_first;
        s->dt_ns = s->is_first ? 0 : h->mono_ns - d->prev.mono_ns;
        s->end_us = h->real_us;
        s->start_us = h->real_us - MIN(h->real_us, (s->dt_ns + 500) / 1000);
        s->n_dropped =
                s->is_first || h->seq - d->prev.seq > UINT32_MAX ? 0 : (uint32_t) (h->seq - d->prev.seq - 1);
        s->clock_step = d->has_prev && beyond(step, CLOCK_STEP_NS + (int64_t) (s->dt_ns / CLOCK_SLEW_DIVISOR));
}

int sample_delta_push(SampleDelta *d, const Tick *t, const Sample **ret) {
        Fence fence;

        if (!d->machine)
                return -EBADMSG;
        if (t->h.generation != d->machine->generation) {
                *ret = NULL;
                return SAMPLE_E_STALE;
        }
        if (t->n_values != d->n_raw)
                return -EBADMSG;
        fence = fence_before(d, &t->h);
        if (fence == FENCE_SHORT) {
                *ret = NULL;
                return SAMPLE_E_SHORT;
        }
        if (fence == FENCE_GAP)
                cross_epoch(d);
        header_fill(d, &t->h, fence);
        for (size_t i = 0; i < d->machine->layout.n_columns; i++)
                column_sample(d, t, &d->machine->layout.columns[i]);
        sample_derive(d, &t->h, fence != FENCE_NONE);
        d->prev = t->h;
        d->has_prev = true;
        *ret = &d->sample;
        return fence == FENCE_NONE ? 0 : SAMPLE_E_FIRST;
}
