/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Minutes and hours against an independent computation over the same ticks. */

#include "tests/unit/test.h"

#include <math.h>
#include <stdlib.h>

#include "cstated/timespan.h"
#include "store/rollup.h"
#include "tests/unit/store-context.h"

#define MINUTE (60 * USEC_PER_SEC)
#define HOUR   (3600 * USEC_PER_SEC)

static const FieldId fields[] = {FIELD_IRQ, FIELD_IDLE_TIME, FIELD_MPERF, FIELD_C6, FIELD_CORE_TSC,
        FIELD_ENERGY_PKG, FIELD_PKG_NS, FIELD_CPU_TSC, FIELD_RATIO_BUSY, FIELD_RATIO_PKG_WATTS};

static void maintain(Store *s, uint64_t now_us) {
        for (unsigned i = 0; i < 1000; i++)
                if (store_maintain(s, now_us) == 0)
                        return;
        fail_msg("maintenance never ends");
}

/* Ticks (first - 1, last] of a slot, the plain way. */
static void expect_cell(
        const StoreBlock *b, size_t at, size_t slot, uint64_t first, uint64_t last, bool spread) {
        long double mean, m2 = 0;
        int64_t sum = 0, min = INT64_MAX, max = INT64_MIN;
        uint64_t n = 0;

        for (uint64_t seq = first; seq <= last; seq++)
                if (fixture_reason(seq, slot) == REASON_NONE) {
                        int64_t v = fixture_value(seq, slot);

                        sum += v;
                        min = v < min ? v : min;
                        max = v > max ? v : max;
                        n++;
                }
        assert_int_equal(b->n_ticks[at], n);
        if (n == 0) {
                /* one of those there were */
                assert_true(b->reasons[at] == fixture_reason(last, slot) ||
                            b->reasons[at] == fixture_reason(last - 1, slot) ||
                            b->reasons[at] == fixture_reason(last - 2, slot));
                return;
        }
        assert_int_equal(b->reasons[at], REASON_NONE);
        assert_int_equal(b->values[at], sum);
        if (!spread) {
                assert_true(isnan(b->m2[at]));
                return;
        }
        mean = (long double) sum / n;
        for (uint64_t seq = first; seq <= last; seq++)
                if (fixture_reason(seq, slot) == REASON_NONE)
                        m2 += (fixture_value(seq, slot) - mean) * (fixture_value(seq, slot) - mean);
        assert_int_equal(b->min[at], min);
        assert_int_equal(b->max[at], max);
        assert_true(fabsl(b->m2[at] - m2) <= 1e-6L * m2 + 1e-6L);
}

static void expect_ratio(const StoreBlock *b, size_t at, size_t num, size_t den, double factor,
        uint64_t first, uint64_t last) {
        int64_t sum = 0;
        uint64_t n = 0;

        for (uint64_t seq = first; seq <= last; seq++) {
                if (fixture_reason(seq, num) || fixture_reason(seq, den) || fixture_value(seq, den) <= 0)
                        continue;
                sum += llround((double) fixture_value(seq, num) * factor / (double) fixture_value(seq, den));
                n++;
        }
        assert_int_equal(b->n_ticks[at], n);
        if (n > 0)
                assert_true(llabs(b->values[at] - sum) <= (int64_t) n);
}

static size_t slot_of(const Fixture *f, FieldId field, uint8_t instance, uint32_t e) {
        return layout_find(&f->layout, field, instance)->offset + e;
}

static void expect_block(
        const StoreBlock *b, const Fixture *f, uint64_t base, uint64_t unit, uint64_t n_ticks) {
        for (size_t i = 0; i < b->n; i++) {
                uint64_t first = (b->start_us[i] - base) / USEC_PER_SEC + 1;
                uint64_t last = (b->end_us[i] - base) / USEC_PER_SEC;

                assert_int_equal(b->end_us[i] - b->start_us[i], unit);
                assert_int_equal(b->start_us[i] % unit, 0);
                last = last < n_ticks ? last : n_ticks;
                for (size_t k = 0; k < b->layout->n_columns; k++) {
                        const LayoutColumn *c = &b->layout->columns[k];

                        for (uint32_t e = 0; e < b->layout->n_entities[field_spec(c->field)->scope]; e++) {
                                size_t at = (c->offset + e) * b->n + i;

                                if (c->field == FIELD_RATIO_BUSY)
                                        expect_ratio(b, at, slot_of(f, FIELD_MPERF, 0, e),
                                                slot_of(f, FIELD_CPU_TSC, 0, e), 1e6, first, last);
                                else if (c->field == FIELD_RATIO_PKG_WATTS)
                                        expect_ratio(b, at, slot_of(f, FIELD_ENERGY_PKG, 0, e),
                                                slot_of(f, FIELD_PKG_NS, 0, e), 1e12, first, last);
                                else
                                        expect_cell(b, at, slot_of(f, c->field, c->instance, e), first, last,
                                                rollup_has_spread(c->field));
                        }
                }
        }
}

/* Checks all rows of a tier, returns how many. */
static uint64_t check_tier(
        Context *c, Store *live, const Fixture *f, StoreTier tier, uint64_t base, uint64_t n_ticks) {
        StoreScanSpec spec = {.start_us = base,
                .end_us = base + 100 * HOUR,
                .tier = tier,
                .fields = fields,
                .n_fields = ARRAY_SIZE(fields)};
        uint64_t unit = tier == TIER_1H ? HOUR : MINUTE, n = 0;
        const StoreBlock *b;
        StoreScan *scan;
        StoreReader *r;
        int code;

        r = context_reader(c, live);
        assert_int_equal(store_scan_new(r, &spec, &scan), 0);
        while ((code = store_scan_next(scan, &b)) > 0) {
                expect_block(b, f, base, unit, n_ticks);
                n += b->n;
        }
        assert_int_equal(code, 0);
        (void) store_scan_free(scan);
        (void) store_reader_close(r);
        return n;
}

/* An hour's start. */
#define BASE_HOUR (472222ULL * HOUR)

static void append(Store *s, Fixture *f, uint64_t first, uint64_t last) {
        for (uint64_t i = first; i <= last; i++)
                assert_int_equal(store_append(s, fixture_sample(f, BASE_HOUR, i)), 0);
}

static void test_minutes_and_hours(void **state) {
        Context *c = *state;
        Store *s = context_store(c);
        Fixture f;

        fixture_init(&f, 5, 2, 1);
        assert_int_equal(store_set_machine(s, f.machine, BASE_HOUR), 0);
        append(s, &f, 1, 2 * 3600 + 90);
        maintain(s, BASE_HOUR + (2 * 3600 + 90) * USEC_PER_SEC);
        assert_int_equal(check_tier(c, s, &f, TIER_1M, BASE_HOUR, 2 * 3600 + 90), 121);
        assert_int_equal(check_tier(c, s, &f, TIER_1H, BASE_HOUR, 2 * 3600 + 90), 2);
        assert_int_equal(store_flush(s), 0);
        assert_int_equal(check_tier(c, s, &f, TIER_1M, BASE_HOUR, 2 * 3600 + 90), 122);
        (void) store_close(s);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM cpu_1m"), 5 * 122);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM pkg_1h"), 2 * 2);
        assert_int_equal(
                context_sql(c, "SELECT dt FROM sys_1m ORDER BY id LIMIT 1"), 60000000000 + 60 * 61 / 2);
        assert_int_equal(
                context_sql(c, "SELECT count(*) FROM v_cpu_1m WHERE busy IS NOT NULL AND idle_C6 IS NOT NULL"
                               " AND time LIKE '2023-%Z'") > 0,
                1);
        fixture_deinit(&f);
}

/* Ended and begun again within a minute, several times over: one row, as if nothing had happened. */
static void test_minute_in_pieces(void **state) {
        static const uint64_t ends[] = {7, 8, 30, 59, 60, 61, 100, 120};
        Context *c = *state;
        uint64_t next = 1;
        Fixture f;

        fixture_init(&f, 3, 1, 1);
        for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
                Store *s = context_store(c);

                assert_int_equal(store_set_machine(s, f.machine, BASE_HOUR), 0);
                append(s, &f, next, ends[i]);
                next = ends[i] + 1;
                (void) store_close(s);
        }
        assert_int_equal(check_tier(c, NULL, &f, TIER_1M, BASE_HOUR, 120), 2);
        fixture_deinit(&f);
}

/* The clock goes back by ten minutes: those minutes are lived twice, and their hour is made again. */
static void test_minute_lived_twice(void **state) {
        Context *c = *state;
        Store *s = context_store(c);
        Fixture f;

        fixture_init(&f, 2, 1, 1);
        assert_int_equal(store_set_machine(s, f.machine, BASE_HOUR), 0);
        append(s, &f, 1, 3600 + 60);
        maintain(s, BASE_HOUR + HOUR + MINUTE);
        assert_int_equal(context_sql(c, "SELECT n FROM sys_1h"), 3600);
        for (uint64_t i = 1; i <= 660; i++) /* begins at BASE_HOUR + 50 minutes, again */
                assert_int_equal(store_append(s, fixture_sample(&f, BASE_HOUR + 50 * MINUTE, i)), 0);
        assert_int_equal(store_flush(s), 0);
        maintain(s, BASE_HOUR + HOUR + MINUTE);
        assert_int_equal(context_sql(c, "SELECT n FROM sys_1h"), 3600 + 600);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM sys_1m"), 61);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM sys_1m WHERE n = 120"), 11);
        assert_int_equal(context_sql(c, "SELECT sum(n) FROM chunk"), 3600 + 60 + 660);
        assert_int_equal(context_sql(c, "SELECT sum(n) FROM cpu_1m"), 2 * (3600 + 60 + 660));
        (void) store_close(s);
        fixture_deinit(&f);
}

static void test_missing_rollups_come_back(void **state) {
        Context *c = *state;
        Store *s = context_store(c);
        Fixture f;

        fixture_init(&f, 3, 1, 1);
        assert_int_equal(store_set_machine(s, f.machine, BASE_HOUR), 0);
        append(s, &f, 1, 1830);
        (void) store_close(s);
        s = context_store(c);
        assert_int_equal(store_set_machine(s, f.machine, BASE_HOUR), 0);
        append(s, &f, 1831, 3 * 3600);
        (void) store_close(s);
        (void) context_sql(c, "DELETE FROM sys_1m WHERE id / 8192 % 7 < 4");
        (void) context_sql(c, "DELETE FROM cpu_1m WHERE NOT EXISTS (SELECT 1 FROM sys_1m s WHERE s.id = "
                              "cpu_1m.id / 8192 * 8192)");
        (void) context_sql(c, "DELETE FROM pkg_1m WHERE NOT EXISTS (SELECT 1 FROM sys_1m s WHERE s.id = "
                              "pkg_1m.id / 8192 * 8192)");
        (void) context_sql(c, "DELETE FROM sys_1h");
        s = context_store(c);
        maintain(s, BASE_HOUR + 3 * HOUR + MINUTE);
        (void) store_close(s);
        assert_int_equal(check_tier(c, NULL, &f, TIER_1M, BASE_HOUR, 3 * 3600), 180);
        assert_int_equal(check_tier(c, NULL, &f, TIER_1H, BASE_HOUR, 3 * 3600), 3);
        fixture_deinit(&f);
}

/* Another set of idle states and another energy unit: other columns; old rows keep theirs. */
static void test_machine_changes_columns(void **state) {
        Context *c = *state;
        Store *s = context_store(c);
        Fixture f[2];
        LayoutColumn *energy;

        fixture_init(&f[0], 2, 1, 1);
        fixture_init(&f[1], 2, 1, 2);
        (void) strcpy(f[1].machine->idle_sets[0].states[2].name, "C6P");
        energy = (LayoutColumn *) (uintptr_t) layout_find(&f[1].machine->layout, FIELD_ENERGY_PKG, 0);
        energy->scale = 0.5;
        assert_int_equal(store_set_machine(s, f[0].machine, BASE_HOUR), 0);
        append(s, &f[0], 1, 60);
        assert_int_equal(store_set_machine(s, f[1].machine, BASE_HOUR + MINUTE), 0);
        append(s, &f[1], 61, 120);
        (void) store_close(s);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM cpu_1m WHERE idle_time_C6 IS NOT NULL AND "
                                        "idle_time_C6P IS NULL"),
                2);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM pkg_1m WHERE energy_pkg IS NULL AND "
                                        "energy_pkg_v2 IS NOT NULL"),
                1);
        assert_int_equal(context_sql(c, "SELECT count(DISTINCT topo) FROM sys_1m"), 2);
        fixture_deinit(&f[0]);
        fixture_deinit(&f[1]);
}

static void test_merge_is_exact(void **state) {
        uint8_t none[100] = {};
        int64_t v[100];
        Rollup all = {}, parts = {};

        for (size_t i = 0; i < 100; i++)
                v[i] = (int64_t) 4e18 / 100 + (int64_t) (i * i); /* a sum of squares would overflow */
        rollup_add(&all, v, none, 100);
        for (size_t i = 0; i < 100; i += 10) {
                Rollup part = {};

                rollup_add(&part, v + i, none, 10);
                rollup_merge(&parts, &part);
        }
        assert_int_equal(all.n, 100);
        assert_int_equal(parts.n, 100);
        assert_int_equal(all.sum, parts.sum);
        assert_int_equal(all.min, v[0]);
        assert_int_equal(all.max, v[99]);
}

/* A machine that has everything: ticks are whole, and of the minutes what fits, which is said. */
static void test_fullest_machine(void **state) {
        Context *c = *state;
        FieldId all[FIELD_N];
        StoreScanSpec spec = {.end_us = INT64_MAX, .fields = all};
        const uint64_t base = 1700000040ULL * USEC_PER_SEC;
        const StoreBlock *b;
        StoreFigures figures;
        StoreReader *r;
        StoreScan *scan;
        uint64_t n = 0;
        Fixture f;
        Store *s;

        for (unsigned i = FIELD_NONE + 1; i < FIELD_N; i++)
                all[spec.n_fields++] = (FieldId) i;
        fixture_init_machine(&f, fixture_fullest_machine());
        s = context_store(c);
        assert_int_equal(store_set_machine(s, f.machine, base), 0);
        for (uint64_t i = 1; i <= 180; i++)
                assert_int_equal(store_append(s, fixture_sample(&f, base, i)), 0);
        store_figures(s, &figures);
        assert_false(figures.degraded);
        assert_in_range(figures.metrics_left_out, 1, 60);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM cpu_1m"), 4 * 3);
        r = context_reader(c, s);
        assert_int_equal(store_scan_new(r, &spec, &scan), 0);
        while (store_scan_next(scan, &b) > 0)
                for (size_t i = 0; i < b->n; i++, n++)
                        for (size_t k = 0; k < b->layout->n_columns; k++) {
                                const LayoutColumn *to = &b->layout->columns[k];
                                size_t slot = layout_find(&f.layout, to->field, to->instance)->offset;

                                if (b->layout->n_entities[field_spec(to->field)->scope] == 0)
                                        continue;
                                assert_int_equal(b->reasons[to->offset * b->n + i], fixture_reason(n + 1, slot));
                                assert_int_equal(b->values[to->offset * b->n + i],
                                        fixture_reason(n + 1, slot) ? 0 : fixture_value(n + 1, slot));
                        }
        assert_int_equal(n, 180);
        (void) store_scan_free(scan);
        (void) store_reader_close(r);
        (void) store_close(s);
        fixture_deinit(&f);
}

/* What a block of a wide machine's rows takes is bounded; its rows come in smaller blocks, none is left out. */
static void test_wide_machine(void **state) {
        Context *c = *state;
        Store *s = context_store(c);
        StoreScanSpec spec = { .start_us = BASE_HOUR, .end_us = BASE_HOUR + HOUR, .tier = TIER_1M };
        FieldId all[FIELD_N - 1];
        uint64_t next = BASE_HOUR;
        const StoreBlock *b;
        StoreScan *scan;
        StoreReader *r;
        Fixture f;
        int code;

        for (unsigned i = 1; i < FIELD_N; i++)
                all[i - 1] = (FieldId) i;
        spec.fields = all;
        spec.n_fields = ARRAY_SIZE(all);
        fixture_init(&f, 500, 2, 1);
        assert_in_range(f.layout.n_values, 4000, 40000);
        assert_int_equal(store_set_machine(s, f.machine, BASE_HOUR), 0);
        for (uint64_t i = 0; i < 60; i++)
                assert_int_equal(store_append(s, fixture_sample(&f, BASE_HOUR, 60 * i + 30)), 0);
        assert_int_equal(store_flush(s), 0);
        r = context_reader(c, s);
        assert_int_equal(store_scan_new(r, &spec, &scan), 0);
        while ((code = store_scan_next(scan, &b)) > 0) {
                assert_in_range(b->n * b->layout->n_values, 4000, 200000);
                for (size_t i = 0; i < b->n; i++, next += MINUTE)
                        assert_int_equal(b->start_us[i], next);
        }
        assert_int_equal(code, 0);
        assert_int_equal(next, BASE_HOUR + HOUR);
        (void) store_scan_free(scan);
        (void) store_reader_close(r);
        (void) store_close(s);
        fixture_deinit(&f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                CONTEXT_TEST(test_minutes_and_hours),
                CONTEXT_TEST(test_minute_in_pieces),
                CONTEXT_TEST(test_minute_lived_twice),
                CONTEXT_TEST(test_missing_rollups_come_back),
                CONTEXT_TEST(test_machine_changes_columns),
                CONTEXT_TEST(test_fullest_machine),
                CONTEXT_TEST(test_wide_machine),
                cmocka_unit_test(test_merge_is_exact),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
