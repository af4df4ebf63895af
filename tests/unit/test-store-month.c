/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Thirty days at speed, and ten of them on too small a disk: age and size are kept to, raw ticks going first, and every
 * hour's sums are those of a count kept beside it.
 */

#include "tests/unit/test.h"

#include <stdlib.h>

#include "cstated/timespan.h"
#include "tests/unit/store-context.h"

#define HOUR_US (3600 * USEC_PER_SEC)
#define BASE_US (472222ULL * HOUR_US)
#define STEP_S  10

#define RAW_US     (3 * 24 * HOUR_US)
#define MINUTES_US (20 * 24 * HOUR_US)
#define SMALL      (6u << 20)

static const FieldId fields[] = { FIELD_IRQ, FIELD_IDLE_TIME, FIELD_ENERGY_PKG, FIELD_C6 };

/* What an hour should hold, of every slot. */
typedef struct Expected {
        int64_t *sums;
        uint32_t *n;
} Expected;

/* The tier holds what its retention says, two minutes more at most. */
static void expect_age(const StoreTierFigures *t, uint64_t now_us, uint64_t retention_us) {
        assert_true(t->rows > 0);
        assert_in_range(now_us - t->oldest_us, retention_us - 120 * USEC_PER_SEC, retention_us + 120 * USEC_PER_SEC);
}

static void run(void **state, unsigned n_hours, uint64_t limit) {
        StoreScanSpec spec = { .start_us = BASE_US,
                .end_us = BASE_US + n_hours * HOUR_US,
                .tier = TIER_1H,
                .fields = fields,
                .n_fields = ARRAY_SIZE(fields) };
        Context *c = *state;
        uint64_t seq = 0, hours = 0, most = 0;
        StoreFigures figures;
        const StoreBlock *b;
        StoreScan *scan;
        StoreReader *r;
        Expected *e;
        Fixture f;
        Store *s;
        size_t n;

        c->config.raw_retention_usec = RAW_US;
        c->config.minute_retention_usec = MINUTES_US;
        c->config.max_size_bytes = limit;
        fixture_init(&f, 2, 1, 1);
        n = f.layout.n_values;
        e = calloc(n_hours, sizeof(*e));
        assert_non_null(e);
        s = context_store(c);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        for (unsigned hour = 0; hour < n_hours; hour++) {
                e[hour].sums = calloc(n, sizeof(int64_t));
                e[hour].n = calloc(n, sizeof(uint32_t));
                assert_true(e[hour].sums && e[hour].n);
                for (unsigned i = 0; i < 3600 / STEP_S; i++) {
                        Sample sample = *fixture_sample(&f, BASE_US, ++seq);

                        sample.h.start_us = BASE_US + (seq - 1) * STEP_S * USEC_PER_SEC;
                        sample.h.end_us = BASE_US + seq * STEP_S * USEC_PER_SEC;
                        sample.h.dt_ns = STEP_S * NSEC_PER_SEC;
                        assert_int_equal(store_append(s, &sample), 0);
                        for (size_t k = 0; k < n; k++)
                                if (sample.reasons[k] == REASON_NONE) {
                                        e[hour].sums[k] += sample.values[k];
                                        e[hour].n[k]++;
                                }
                }
                for (unsigned i = 0; i < 50 && store_maintain(s, BASE_US + (hour + 1) * HOUR_US) > 0; i++)
                        ;
                store_figures(s, &figures);
                most = figures.bytes > most ? figures.bytes : most;
        }
        assert_int_equal(store_flush(s), 0);
        (void) store_maintain(s, BASE_US + n_hours * HOUR_US + 1);
        store_figures(s, &figures);
        assert_false(figures.degraded);
        assert_int_equal(figures.ticks, seq);
        assert_int_equal(figures.ticks_lost, 0);
        assert_true(figures.tier[TIER_1M].rows > 0);
        if (limit == SMALL) { /* minutes had to go, so that no tick can be left */
                assert_int_equal(figures.tier[TIER_RAW].rows, 0);
                assert_true(figures.tier[TIER_1M].rows < n_hours * 60);
        } else {
                expect_age(&figures.tier[TIER_RAW], BASE_US + n_hours * HOUR_US, RAW_US);
                expect_age(&figures.tier[TIER_1M], BASE_US + n_hours * HOUR_US, MINUTES_US);
        }
        /* the limit is of pages in use; what was freed is given back a little later */
        assert_true(most < limit + (12u << 20));
        assert_true(context_sql(c, "SELECT (page_count - freelist_count) * 4096 FROM pragma_page_count, "
                                   "pragma_freelist_count") <= (int64_t) limit + 65536);

        r = context_reader(c, s);
        assert_int_equal(store_scan_new(r, &spec, &scan), 0);
        while (store_scan_next(scan, &b) > 0)
                for (size_t i = 0; i < b->n; i++, hours++) {
                        const Expected *x = &e[(b->start_us[i] - BASE_US) / HOUR_US];

                        assert_int_equal(b->start_us[i], BASE_US + hours * HOUR_US);
                        assert_int_equal(b->dt_ns[i], 3600 * NSEC_PER_SEC);
                        for (size_t k = 0; k < b->layout->n_columns; k++) {
                                const LayoutColumn *to = &b->layout->columns[k];
                                size_t from = layout_find(&f.layout, to->field, to->instance)->offset;

                                for (uint32_t m = 0; m < b->layout->n_entities[field_spec(to->field)->scope];
                                        m++) {
                                        size_t at = (to->offset + m) * b->n + i;

                                        assert_int_equal(b->n_ticks[at], x->n[from + m]);
                                        assert_int_equal(b->values[at], x->sums[from + m]);
                                }
                        }
                }
        assert_int_equal(hours, n_hours);
        (void) store_scan_free(scan);
        (void) store_reader_close(r);
        (void) store_close(s);
        for (unsigned hour = 0; hour < n_hours; hour++) {
                free(e[hour].sums);
                free(e[hour].n);
        }
        free(e);
        fixture_deinit(&f);
}

static void test_month(void **state) {
        run(state, 30 * 24, 64u << 20);
}

static void test_small_disk(void **state) {
        run(state, 10 * 24, SMALL);
}

int main(void) {
        const struct CMUnitTest tests[] = { CONTEXT_TEST(test_month), CONTEXT_TEST(test_small_disk) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
