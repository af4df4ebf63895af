/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ticks of a small machine with whatever values, reasons and clocks: each is refused, or becomes a sample whose slots
 * are a number or null with a reason, whose metrics are finite, and whose snapshot is written.
 */

#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/machine-fixture.h"

#include "api/snapshot.h"
#include "model/metric.h"

#define TICKS_MAX 64

static Machine *machine_of_all_fields(uint32_t generation) {
        Machine *m = fixture_machine(2, 2, 2);

        for (unsigned f = 1; f < FIELD_N; f++)
                if (field_spec((FieldId) f)->kind != FIELD_DERIVED)
                        for (uint8_t k = 0; k < (field_is_by_state((FieldId) f) ? 4 : 1); k++)
                                (void) layout_add(&m->layout, (FieldId) f, k);
        m->generation = generation;
        m->tsc_hz *= generation % 2; /* unknown in every other one */
        machine_finish_layout(m);
        return m;
}

/* Eats n bytes; zeros where there are no more. */
static void take(const uint8_t **data, size_t *left, void *ret, size_t n) {
        size_t k = MIN(*left, n);

        memset(ret, 0, n);
        memcpy(ret, *data, k);
        *data += k;
        *left -= k;
}

static void check_metrics(const Sample *s) {
        for (size_t i = 0; i < metric_catalogue_n; i++) {
                MetricSum sum = {};
                double v = 0;

                metric_gather(&metric_catalogue[i], s, SCOPE_SYSTEM, 0, 1, &sum);
                if (metric_value(&metric_catalogue[i], &sum, s->machine->tsc_hz, &v) == REASON_NONE && !isfinite(v))
                        abort();
        }
}

static void check_sample(const Sample *s, bool whole) {
        JsonWriter j = JSON_WRITER_INIT;

        for (size_t i = 0; i < s->layout->n_values; i++)
                if (s->reasons[i] >= REASON_N || (s->reasons[i] != REASON_NONE && s->values[i] != 0) ||
                        s->settled_reasons[i] == REASON_ASLEEP)
                        abort();
        if (!whole)
                return;
        check_metrics(s);
        if (snapshot_write(&j, s->machine, s) < 0)
                abort();
        jw_deinit(&j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        _cleanup_(sample_delta_freep) SampleDelta *d = sample_delta_new();
        _cleanup_(tick_freep) Tick *t = NULL;
        uint32_t generation = 0;
        const Sample *s;

        for (unsigned i = 0; n > 0 && i < TICKS_MAX; i++) {
                uint8_t how;

                take(&data, &n, &how, 1);
                if (!t || how % 16 == 0) {
                        Machine *m = machine_of_all_fields(++generation);
                        TickHeader h = t ? t->h : (TickHeader){};

                        tick_free(t);
                        t = tick_new(m->layout.n_values);
                        t->h = h;
                        t->h.generation = generation;
                        if (sample_delta_set_machine(d, m) < 0)
                                abort();
                }
                if (how % 16 == 1)
                        take(&data, &n, &t->h.seq, sizeof(t->h) - offsetof(TickHeader, seq));
                else {
                        t->h.seq++;
                        t->h.mono_ns += 1000000000;
                        t->h.boot_ns += 1000000000;
                        t->h.tsc += 2100000000;
                }
                t->h.generation = generation;
                /* a stretch of slots, by bytes; the others stay as they were */
                if (how & 0x40) {
                        uint16_t at;

                        take(&data, &n, &at, sizeof(at));
                        at %= (uint16_t) t->n_values;
                        take(&data, &n, t->values + at, MIN((t->n_values - at) * 8, (size_t) how * 8));
                }
                if (how & 0x80) {
                        uint16_t at;

                        take(&data, &n, &at, sizeof(at));
                        at %= (uint16_t) t->n_values;
                        take(&data, &n, t->reasons + at, MIN(t->n_values - at, (size_t) how));
                }
                if (sample_delta_push(d, t, &s) >= 0 && s)
                        check_sample(s, i % 8 == 7);
        }
        return 0;
}
