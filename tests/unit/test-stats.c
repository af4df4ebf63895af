/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <math.h>

#include "query/stats.h"

static void assert_near(double a, double b) {
        assert_true(fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)) + 1e-12);
}

static void test_known_values(void **state) {
        static const double values[] = { 2, 4, 4, 4, 5, 5, 7, 9 };
        Stats s = STATS_INIT;

        for (size_t i = 0; i < 8; i++)
                stats_add(&s, values[i]);
        assert_int_equal(s.n, 8);
        assert_near(s.mean, 5);
        assert_near(s.min, 2);
        assert_near(s.max, 9);
        assert_near(s.sum, 40);
        assert_near(stats_stddev(&s), sqrt(32.0 / 7));
        assert_near(stats_stddev_percent(&s), 100 * sqrt(32.0 / 7) / 5);
}

static void test_few_values(void **state) {
        Stats s = STATS_INIT;

        assert_true(isnan(stats_stddev(&s)));
        stats_add(&s, 3);
        assert_true(isnan(stats_stddev(&s)));
        stats_add(&s, 5);
        assert_near(stats_stddev(&s), sqrt(2));
        assert_true(isnan(stats_stddev_percent(&s)));
}

static void test_not_a_value(void **state) {
        Stats s = STATS_INIT;

        stats_add(&s, NAN);
        stats_add(&s, INFINITY);
        assert_int_equal(s.n, 0);
        stats_add(&s, 1);
        assert_near(s.mean, 1);
}

/* However a stream is cut, merging the parts gives the whole. */
static void test_merge_equals_whole(void **state) {
        for (unsigned cut = 0; cut <= 40; cut++) {
                Stats whole = STATS_INIT, first = STATS_INIT, second = STATS_INIT;

                for (unsigned i = 0; i < 40; i++) {
                        double v = 1e9 + (i * 7919 % 101) * 0.25;

                        stats_add(&whole, v);
                        stats_add(i < cut ? &first : &second, v);
                }
                stats_merge(&first, &second);
                assert_int_equal(first.n, 40);
                assert_near(first.mean, whole.mean);
                assert_near(first.min, whole.min);
                assert_near(first.max, whole.max);
                /* a naive sum of squares has lost all digits at 1e9 */
                assert_true(fabs(stats_stddev(&first) - stats_stddev(&whole)) < 1e-6);
        }
}

/* Batches of any length, with values that are none in between, are the same as one value after the other. */
static void test_many_equal_one_by_one(void **state) {
        Stats one = STATS_INIT, many = STATS_INIT;

        for (size_t n = 0; n < 70; n++) {
                double values[70];

                for (size_t i = 0; i < n; i++) {
                        values[i] = i % 9 == 4 ? NAN : 1e9 + (double) ((i * 7919 + n * 104729) % 1013) * 0.25;
                        stats_add(&one, values[i]);
                }
                stats_add_many(&many, values, n);
                assert_int_equal(many.n, one.n);
                assert_near(many.mean, one.mean);
                assert_near(many.min, one.min);
                assert_near(many.max, one.max);
                assert_near(many.sum, one.sum);
                assert_true(n < 2 || fabs(stats_stddev(&many) - stats_stddev(&one)) < 1e-6);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_known_values),
                cmocka_unit_test(test_few_values),
                cmocka_unit_test(test_not_a_value),
                cmocka_unit_test(test_merge_equals_whole),
                cmocka_unit_test(test_many_equal_one_by_one),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
