/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include "cstated/macro.h"
#include "cstated/timespan.h"
#include "tests/unit/store-grid.h"

static uint64_t mix(uint64_t x) {
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        return x ^ x >> 31;
}

uint64_t grid_end(const Grid *g, uint64_t i) {
        uint64_t end = g->base_us + i * g->interval_us, random = mix(i + 1);

        if (g->jitter_us > 0)
                end += random % (2 * g->jitter_us + 1) - g->jitter_us;
        return (random >> 40) % 50 == 0 ? end + g->late_us : end;
}

const Sample *grid_sample(Fixture *f, const Grid *g, uint64_t i) {
        const Sample *s = fixture_sample(f, 0, i);

        f->sample.h.start_us = grid_end(g, i - 1);
        f->sample.h.end_us = grid_end(g, i);
        f->sample.h.dt_ns = (f->sample.h.end_us - f->sample.h.start_us) * NSEC_PER_USEC;
        return s;
}

static void check_column(const StoreBlock *b, size_t i, const LayoutColumn *to, const Fixture *f, uint64_t seq) {
        const LayoutColumn *from = layout_find(&f->layout, to->field, to->instance);
        uint32_t n = b->layout->n_entities[field_spec(to->field)->scope];

        assert_non_null(from);
        for (uint32_t k = 0; k < n; k++) {
                Reason reason = fixture_reason(seq, from->offset + k);

                assert_int_equal(b->reasons[(to->offset + k) * b->n + i], reason);
                assert_int_equal(b->values[(to->offset + k) * b->n + i],
                        reason ? 0 : fixture_value(seq, from->offset + k));
        }
}

static size_t fields_of(const Layout *l, FieldId *ret) {
        size_t n = 0;

        for (size_t k = 0; k < l->n_columns; k++)
                if (n == 0 || ret[n - 1] != l->columns[k].field)
                        ret[n++] = l->columns[k].field;
        return n;
}

uint64_t grid_check(StoreReader *r, const Fixture *f, const Grid *g, uint64_t *ret_first) {
        FieldId fields[LAYOUT_COLUMNS_MAX];
        StoreScanSpec spec = {
                .end_us = INT64_MAX, .fields = fields, .n_fields = fields_of(&f->layout, fields)
        };
        StoreScan *scan = NULL;
        const StoreBlock *b;
        uint64_t first = 0, seq = 0;
        int code;

        assert_int_equal(store_scan_new(r, &spec, &scan), 0);
        while ((code = store_scan_next(scan, &b)) > 0)
                for (size_t i = 0; i < b->n; i++) {
                        if (first == 0)
                                first = seq = (b->end_us[i] - g->base_us + g->interval_us / 2) / g->interval_us;
                        else
                                seq++;
                        assert_int_equal(b->start_us[i], grid_end(g, seq - 1));
                        assert_int_equal(b->end_us[i], grid_end(g, seq));
                        assert_int_equal(b->layout->n_columns, f->layout.n_columns);
                        for (size_t k = 0; k < b->layout->n_columns; k++)
                                check_column(b, i, &b->layout->columns[k], f, seq);
                }
        assert_int_equal(code, 0);
        (void) store_scan_free(scan);
        *ret_first = first;
        return seq;
}
