/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <errno.h>
#include <stdlib.h>

#include <zlib.h>

#include "cstated/timespan.h"
#include "store/chunk.h"
#include "tests/unit/store-fixture.h"

#define BASE_US (1700000000ULL * USEC_PER_SEC)

typedef struct Rows {
        Fixture f;
        TickRows rows;
        uint8_t *records;
} Rows;

static void rows_init(Rows *r, uint32_t n_cpus, size_t n) {
        fixture_init(&r->f, n_cpus, 1, 1);
        r->rows = (TickRows){
                .stride = tick_rows_stride(r->f.layout.n_values),
                .n = n,
                .n_values = r->f.layout.n_values,
        };
        r->records = calloc(n, r->rows.stride);
        assert_non_null(r->records);
        r->rows.records = r->records;
        for (size_t i = 0; i < n; i++) {
                const Sample *s = fixture_sample(&r->f, BASE_US, i + 1);
                TickRecord h = {s->h.start_us, s->h.end_us, s->h.dt_ns};

                tick_record_write(
                        r->records + i * r->rows.stride, &h, s->values, s->reasons, r->rows.n_values);
        }
}

static void rows_deinit(Rows *r) {
        free(r->records);
        fixture_deinit(&r->f);
}

static void check_column(Chunk *c, const Rows *r, const LayoutColumn *column) {
        uint32_t n_entities = r->f.layout.n_entities[field_spec(column->field)->scope];
        int64_t *v = calloc(n_entities * c->n, sizeof(*v));
        uint8_t *reasons = calloc(n_entities * c->n, 1);

        assert_true(v && reasons);
        assert_int_equal(chunk_column(c, column->field, column->instance, v, reasons), 0);
        for (uint32_t e = 0; e < n_entities; e++)
                for (size_t i = 0; i < c->n; i++) {
                        Reason reason = fixture_reason(i + 1, column->offset + e);

                        assert_int_equal(reasons[e * c->n + i], reason);
                        assert_int_equal(
                                v[e * c->n + i], reason ? 0 : fixture_value(i + 1, column->offset + e));
                }
        free(v);
        free(reasons);
}

static void test_round_trip(void **state) {
        static const size_t lengths[] = {1, 2, 59, 60, 600, CODEC_TICKS_MAX};

        for (size_t k = 0; k < ARRAY_SIZE(lengths); k++) {
                uint64_t *t = calloc(3 * lengths[k], sizeof(*t));
                uint8_t *bytes;
                size_t size;
                _cleanup_(chunk_deinit) Chunk c = {};
                Rows r;

                assert_non_null(t);
                rows_init(&r, 5, lengths[k]);
                assert_int_equal(chunk_encode(&r.f.layout, &r.rows, &bytes, &size), 0);
                assert_int_equal(chunk_open_memory(&c, bytes, size), 0);
                assert_int_equal(c.n, lengths[k]);
                assert_int_equal(c.n_columns, r.f.layout.n_columns + 1);
                assert_int_equal(chunk_times(&c, t, t + c.n, t + 2 * c.n), 0);
                for (size_t i = 0; i < c.n; i++) {
                        assert_int_equal(t[i], BASE_US + i * USEC_PER_SEC);
                        assert_int_equal(t[c.n + i], BASE_US + (i + 1) * USEC_PER_SEC);
                        assert_int_equal(t[2 * c.n + i], NSEC_PER_SEC + i + 1);
                }
                for (size_t i = 0; i < r.f.layout.n_columns; i++) {
                        assert_int_equal(c.columns[i + 1].field, r.f.layout.columns[i].field);
                        assert_int_equal(c.columns[i + 1].instance, r.f.layout.columns[i].instance);
                        check_column(&c, &r, &r.f.layout.columns[i]);
                }
                assert_int_equal(chunk_column(&c, FIELD_C7, 0, NULL, NULL), -ENODATA);
                free(bytes);
                free(t);
                rows_deinit(&r);
        }
}

/* Times with gaps, jumps back and forth and a stopped clock come back as they were. */
static void test_odd_times(void **state) {
        static const TickRecord odd[] = {
                {BASE_US, BASE_US, 0},
                {BASE_US, BASE_US + 1000003, 1000003001},
                {BASE_US + 5000000, BASE_US + 6000000, 999999999},
                {BASE_US - 3600000000, BASE_US - 3599000000, 1000000000},
                {BASE_US - 3599000000, BASE_US + 3600000000, 1000000001},
                {0, 1, UINT64_MAX},
                {UINT64_MAX / 2, UINT64_MAX / 2, 5},
        };
        uint64_t t[3][ARRAY_SIZE(odd)];
        uint8_t *bytes;
        size_t size;
        _cleanup_(chunk_deinit) Chunk c = {};
        Rows r;

        rows_init(&r, 2, ARRAY_SIZE(odd));
        for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
                memcpy(r.records + i * r.rows.stride, &odd[i], sizeof(odd[i]));
        assert_int_equal(chunk_encode(&r.f.layout, &r.rows, &bytes, &size), 0);
        assert_int_equal(chunk_open_memory(&c, bytes, size), 0);
        assert_int_equal(chunk_times(&c, t[0], t[1], t[2]), 0);
        for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
                assert_true(t[0][i] == odd[i].start_us);
                assert_true(t[1][i] == odd[i].end_us);
                assert_true(t[2][i] == odd[i].dt_ns);
        }
        free(bytes);
        rows_deinit(&r);
}

/* Reads everything there is in a chunk; 0 or the first error. */
static int read_all(const uint8_t *bytes, size_t size, const Layout *l) {
        uint64_t *t;
        int64_t *v;
        _cleanup_(chunk_deinit) Chunk c = {};
        int r;

        r = chunk_open_memory(&c, bytes, size);
        if (r < 0)
                return r;
        if (memcmp(c.n_entities, l->n_entities, sizeof(c.n_entities)) != 0)
                return -EBADMSG;
        t = calloc(3 * c.n, sizeof(*t));
        v = calloc(l->n_values * c.n, 9);
        assert_true(t && v);
        r = chunk_times(&c, t, t + c.n, t + 2 * c.n);
        for (size_t i = 0; r == 0 && i < l->n_columns; i++)
                r = chunk_column(&c, l->columns[i].field, l->columns[i].instance, v,
                        (uint8_t *) (v + l->n_values * c.n));
        free(t);
        free(v);
        return r;
}

static void test_any_damage_is_seen(void **state) {
        uint8_t *bytes, *copy;
        size_t size;
        Rows r;

        rows_init(&r, 3, 20);
        assert_int_equal(chunk_encode(&r.f.layout, &r.rows, &bytes, &size), 0);
        assert_int_equal(read_all(bytes, size, &r.f.layout), 0);
        copy = malloc(size);
        assert_non_null(copy);
        for (size_t at = 0; at < size; at++) {
                memcpy(copy, bytes, size);
                copy[at] ^= (uint8_t) (1 << at % 8);
                assert_true(read_all(copy, size, &r.f.layout) < 0);
        }
        free(copy);
        for (size_t cut = 0; cut < size; cut += 7) {
                copy = malloc(cut + 1);
                assert_non_null(copy);
                memcpy(copy, bytes, cut);
                assert_true(read_all(copy, cut, &r.f.layout) < 0);
                free(copy);
        }
        free(bytes);
        rows_deinit(&r);
}

static void test_wrong_shape_is_refused(void **state) {
        uint8_t *bytes = NULL;
        size_t size;
        Rows r;

        rows_init(&r, 2, 3);
        r.rows.n = 0;
        assert_int_equal(chunk_encode(&r.f.layout, &r.rows, &bytes, &size), -EINVAL);
        r.rows.n = 3;
        r.rows.n_values--;
        assert_int_equal(chunk_encode(&r.f.layout, &r.rows, &bytes, &size), -EINVAL);
        assert_null(bytes);
        rows_deinit(&r);
}

/* ---- columns that refer to others ---- */

static void put_value(Rows *r, FieldId field, uint32_t e, size_t tick, int64_t v, Reason reason) {
        const LayoutColumn *c = layout_find(&r->f.layout, field, 0);
        uint8_t *record = r->records + tick * r->rows.stride + sizeof(TickRecord);

        assert_non_null(c);
        memcpy(record + (c->offset + e) * 8, &v, 8);
        record[r->rows.n_values * 8 + c->offset + e] = (uint8_t) reason;
}

/* Clocks read together, and counters that are null where their clock is. */
static void rows_with_clocks(Rows *r, uint32_t n_cpus) {
        uint32_t x = 1;

        rows_init(r, n_cpus, 60);
        for (size_t i = 0; i < 60; i++)
                for (uint32_t e = 0; e < n_cpus; e++) {
                        Reason reason = e % 2 && (i * 7 + e) % 3 ? REASON_ASLEEP : REASON_NONE;
                        int64_t tsc;

                        x = x * 1664525 + 1013904223;
                        tsc = 2050781 + (int64_t) (x >> 16) % 4000;
                        put_value(r, FIELD_CPU_TSC, e, i, reason ? 0 : tsc, reason);
                        put_value(r, FIELD_CPU_NS, e, i, reason ? 0 : tsc * 10240 / 21 + x % 400, reason);
                        put_value(r, FIELD_MPERF, e, i, reason ? 0 : (int64_t) (x % 100000), reason);
                        put_value(r, FIELD_APERF, e, i, reason ? 0 : (int64_t) (x % 100000) * 13 / 10, reason);
                }
}

static size_t entry_of(const Chunk *c, FieldId field) {
        for (size_t i = 1; i < c->n_columns; i++)
                if (c->columns[i].field == field)
                        return i;
        fail_msg("no column of field %d", field);
        return 0;
}

static void expect_column(Chunk *c, const Rows *r, FieldId field) {
        const LayoutColumn *column = layout_find(&r->f.layout, field, 0);
        uint32_t n_entities = r->f.layout.n_entities[SCOPE_CPU];
        int64_t *v = calloc(n_entities * c->n, sizeof(*v));
        uint8_t *reasons = calloc(n_entities * c->n, 1);

        assert_true(v && reasons);
        assert_int_equal(chunk_column(c, field, 0, v, reasons), 0);
        for (uint32_t e = 0; e < n_entities; e++)
                for (size_t i = 0; i < c->n; i++) {
                        assert_int_equal(v[e * c->n + i], tick_rows_values(&r->rows, i)[column->offset + e]);
                        assert_int_equal(
                                reasons[e * c->n + i], tick_rows_reasons(&r->rows, i)[column->offset + e]);
                }
        free(v);
        free(reasons);
}

/* In whatever order they are asked for, again and again; the chunk may be opened anew with what it holds. */
static void test_references(void **state) {
        static const FieldId orders[][4] = {
                {FIELD_APERF, FIELD_CPU_NS, FIELD_CPU_TSC, FIELD_MPERF},
                {FIELD_CPU_TSC, FIELD_CPU_NS, FIELD_MPERF, FIELD_APERF},
                {FIELD_MPERF, FIELD_MPERF, FIELD_APERF, FIELD_CPU_NS},
        };
        _cleanup_(chunk_deinit) Chunk c = {};
        uint8_t *bytes;
        size_t size;
        Rows r;

        rows_with_clocks(&r, 6);
        assert_int_equal(chunk_encode(&r.f.layout, &r.rows, &bytes, &size), 0);
        for (size_t k = 0; k < ARRAY_SIZE(orders); k++) {
                assert_int_equal(chunk_open_memory(&c, bytes, size), 0);
                assert_int_equal(c.columns[entry_of(&c, FIELD_CPU_NS)].reference, entry_of(&c, FIELD_CPU_TSC));
                assert_int_equal(c.columns[entry_of(&c, FIELD_APERF)].reference, entry_of(&c, FIELD_MPERF));
                assert_int_equal(c.columns[entry_of(&c, FIELD_MPERF)].reference, entry_of(&c, FIELD_CPU_TSC));
                for (size_t i = 0; i < 4; i++)
                        expect_column(&c, &r, orders[k][i]);
        }
        free(bytes);
        rows_deinit(&r);
}

/* More entries that are referred to than are kept: what an entry refers to stays while it is decoded. */
static void test_many_references(void **state) {
        static const struct {
                FieldId field, reference;
        } referring[] = {
                { FIELD_CPU_NS, FIELD_CPU_TSC },
                { FIELD_IDLE_TIME, FIELD_IDLE_NS },
                { FIELD_CORE_NS, FIELD_CORE_TSC },
                { FIELD_ENERGY_CORE, FIELD_CORE_NS },
                { FIELD_MC6, FIELD_MODULE_TSC },
                { FIELD_PKG_NS, FIELD_PKG_TSC },
                { FIELD_ENERGY_PKG, FIELD_PKG_NS },
                { FIELD_ENERGY_SYS, FIELD_SYS_NS },
        };
        Layout l = { .n_entities = { 1, 1, 1, 1, 1 } };
        _cleanup_(chunk_deinit) Chunk c = {};
        uint8_t *records, *bytes, reasons[60];
        int64_t v[60];
        TickRows rows = { .n = 60 };
        uint32_t x = 1;
        size_t size;

        for (size_t i = 0; i < ARRAY_SIZE(referring); i++) {
                (void) layout_add(&l, referring[i].field, 0);
                (void) layout_add(&l, referring[i].reference, 0);
        }
        (void) layout_add(&l, FIELD_MPERF, 0);
        (void) layout_add(&l, FIELD_APERF, 0);
        layout_finish(&l);
        rows.n_values = l.n_values;
        rows.stride = tick_rows_stride(l.n_values);
        records = calloc(rows.n, rows.stride);
        assert_non_null(records);
        rows.records = records;
        for (size_t i = 0; i < rows.n; i++) {
                TickRecord h = { BASE_US + i, BASE_US + i + 1, 1000 };
                uint8_t none[32] = {};
                int64_t all[32];

                x = x * 1664525 + 1013904223;
                for (size_t k = 0; k < l.n_values; k++) /* multiples of each other */
                        all[k] = (int64_t) (x >> 8) * (int64_t) (k + 1);
                tick_record_write(records + i * rows.stride, &h, all, none, l.n_values);
        }
        assert_int_equal(chunk_encode(&l, &rows, &bytes, &size), 0);
        assert_int_equal(chunk_open_memory(&c, bytes, size), 0);
        assert_int_not_equal(c.columns[entry_of(&c, FIELD_MPERF)].reference, 0);
        assert_int_equal(chunk_column(&c, FIELD_CPU_NS, 0, v, reasons), 0);
        for (size_t i = 1; i < ARRAY_SIZE(referring); i++)
                assert_int_equal(chunk_column(&c, referring[i].reference, 0, v, reasons), 0);
        assert_int_equal(chunk_column(&c, FIELD_MPERF, 0, v, reasons), 0);
        for (size_t i = 0; i < rows.n; i++)
                assert_int_equal(v[i], tick_rows_values(&rows, i)[layout_find(&l, FIELD_MPERF, 0)->offset]);
        free(bytes);
        free(records);
}

static void set_reference(uint8_t *bytes, const Chunk *c, size_t entry, uint8_t reference) {
        uint32_t crc;

        bytes[32 + entry * 12 + 3] = reference;
        crc = (uint32_t) crc32_z(0, bytes + 8, c->data - 8);
        for (unsigned i = 0; i < 4; i++)
                bytes[4 + i] = (uint8_t) (crc >> 8 * i);
}

/* References to oneself, to what comes later, to another scope, in a row without end: refused, whatever the sums say. */
static void test_hostile_references(void **state) {
        _cleanup_(chunk_deinit) Chunk c = {};
        size_t size, tsc, ns, mperf, aperf, core;
        uint8_t *bytes, reasons[6 * 60];
        int64_t v[6 * 60];
        Rows r;

        rows_with_clocks(&r, 6);
        assert_int_equal(chunk_encode(&r.f.layout, &r.rows, &bytes, &size), 0);
        assert_int_equal(chunk_open_memory(&c, bytes, size), 0);
        tsc = entry_of(&c, FIELD_CPU_TSC);
        ns = entry_of(&c, FIELD_CPU_NS);
        mperf = entry_of(&c, FIELD_MPERF);
        aperf = entry_of(&c, FIELD_APERF);
        core = entry_of(&c, FIELD_C6);
        assert_true(tsc < ns && ns < mperf && mperf < aperf && aperf < core);
        set_reference(bytes, &c, ns, (uint8_t) ns);
        assert_int_equal(chunk_open_memory(&c, bytes, size), -EBADMSG);
        set_reference(bytes, &c, ns, (uint8_t) core);
        assert_int_equal(chunk_open_memory(&c, bytes, size), -EBADMSG);
        set_reference(bytes, &c, ns, 0); /* its columns cannot do without */
        assert_int_equal(chunk_open_memory(&c, bytes, size), 0);
        assert_int_equal(chunk_column(&c, FIELD_CPU_NS, 0, v, reasons), -EBADMSG);
        set_reference(bytes, &c, ns, (uint8_t) tsc);
        set_reference(bytes, &c, core, (uint8_t) aperf);
        assert_int_equal(chunk_open_memory(&c, bytes, size), 0);
        assert_int_equal(chunk_column(&c, FIELD_C6, 0, v, reasons), -EBADMSG);
        set_reference(bytes, &c, mperf, (uint8_t) ns); /* aperf -> mperf -> ns -> tsc */
        assert_int_equal(chunk_open_memory(&c, bytes, size), 0);
        assert_int_equal(chunk_column(&c, FIELD_APERF, 0, v, reasons), -EBADMSG);
        free(bytes);
        rows_deinit(&r);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_round_trip),
                cmocka_unit_test(test_odd_times),
                cmocka_unit_test(test_any_damage_is_seen),
                cmocka_unit_test(test_wrong_shape_is_refused),
                cmocka_unit_test(test_references),
                cmocka_unit_test(test_many_references),
                cmocka_unit_test(test_hostile_references),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
