/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A hand on a SampleDelta: set cumulative counters, let time go by, read differences. */

#include <assert.h>

#include "tests/unit/machine-fixture.h"

#include "model/sample.h"

#define RIG_SECOND 1000000000ULL
#define RIG_HZ 2100000000ULL

typedef struct Rig {
        SampleDelta *d;
        Tick *t;
        const Machine *m;
        const Sample *s;
} Rig;

/* Takes m; the tick of the new machine keeps the header and starts with all values 0. */
static inline void rig_machine(Rig *r, Machine *m) {
        TickHeader h = { .seq = 1, .interval_ns = RIG_SECOND, .real_us = 1700000000000000 };
        int code;

        if (r->t)
                h = r->t->h;
        if (!r->d)
                r->d = sample_delta_new();
        tick_free(r->t);
        r->t = tick_new(m->layout.n_values);
        r->t->h = h;
        r->t->h.generation = m->generation;
        code = sample_delta_set_machine(r->d, m);
        assert(code == 0);
        (void) code;
        r->m = sample_delta_machine(r->d);
}

static inline void rig_deinit(Rig *r) {
        sample_delta_free(r->d);
        tick_free(r->t);
}

/* Time goes by: monotonic, boot and wall clock and the TSC together; spans of every scope advance unless asleep. */
static inline void rig_wait(Rig *r, double seconds) {
        uint64_t ns = (uint64_t) (seconds * 1e9 + 0.5), ticks = (uint64_t) (seconds * (double) RIG_HZ + 0.5);
        const Layout *l = &r->m->layout;

        r->t->h.seq++;
        r->t->h.mono_ns += ns;
        r->t->h.boot_ns += ns;
        r->t->h.real_us += ns / 1000;
        r->t->h.tsc += ticks;
        for (size_t i = 0; i < l->n_columns; i++) {
                const FieldSpec *f = field_spec(l->columns[i].field);

                if (f->kind != FIELD_SPAN)
                        continue;
                for (uint32_t e = 0; e < l->n_entities[f->scope]; e++)
                        r->t->values[l->columns[i].offset + e] =
                                f->unit == FIELD_UNIT_TICK ? r->t->h.tsc : r->t->h.mono_ns;
        }
}

static inline size_t rig_slot(const Rig *r, FieldId f, uint8_t instance, uint32_t e) {
        const LayoutColumn *c = layout_find(&r->m->layout, f, instance);

        assert(c);
        return c->offset + e;
}

static inline void rig_add(Rig *r, FieldId f, uint8_t instance, uint32_t e, uint64_t delta) {
        r->t->values[rig_slot(r, f, instance, e)] += delta;
}

static inline void rig_set(Rig *r, FieldId f, uint8_t instance, uint32_t e, uint64_t value) {
        r->t->values[rig_slot(r, f, instance, e)] = value;
}

static inline void rig_reason(Rig *r, FieldId f, uint8_t instance, uint32_t e, Reason reason) {
        r->t->reasons[rig_slot(r, f, instance, e)] = (uint8_t) reason;
}

static inline int rig_push(Rig *r) {
        return sample_delta_push(r->d, r->t, &r->s);
}

static inline Reason rig_get(const Rig *r, FieldId f, uint8_t instance, uint32_t e, int64_t *ret) {
        const LayoutColumn *c = layout_find(r->s->layout, f, instance);

        assert(c);
        *ret = r->s->values[c->offset + e];
        return (Reason) r->s->reasons[c->offset + e];
}

static inline Reason rig_get_settled(const Rig *r, FieldId f, uint8_t instance, uint32_t e, int64_t *ret) {
        const LayoutColumn *c = layout_find(r->s->layout, f, instance);

        assert(c);
        *ret = r->s->settled[c->offset + e];
        return (Reason) r->s->settled_reasons[c->offset + e];
}

/* Needs cmocka.h */
#define assert_value(r, field, instance, e, expected) \
        do { \
                int64_t value_; \
                assert_int_equal(rig_get(r, field, instance, e, &value_), REASON_NONE); \
                assert_int_equal(value_, expected); \
        } while (0)
#define assert_near(r, field, instance, e, expected, tolerance) \
        do { \
                int64_t value_; \
                assert_int_equal(rig_get(r, field, instance, e, &value_), REASON_NONE); \
                if (value_ < (int64_t) (expected) - (int64_t) (tolerance) || \
                        value_ > (int64_t) (expected) + (int64_t) (tolerance)) \
                        fail_msg("%lld is not %lld", (long long) value_, (long long) (expected)); \
        } while (0)
#define assert_null_for(r, field, instance, e, expected_reason) \
        do { \
                int64_t value_; \
                assert_int_equal(rig_get(r, field, instance, e, &value_), expected_reason); \
                assert_int_equal(value_, 0); \
        } while (0)
