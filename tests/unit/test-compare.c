/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <math.h>

#include "query/compare.h"
#include "tests/unit/machine-fixture.h"

static CompareSide side(const double *values, size_t n) {
        Stats s = STATS_INIT;
        CompareSide ret;

        for (size_t i = 0; i < n; i++)
                stats_add(&s, values[i]);
        compare_side_from_stats(&s, s.mean, n > 0 ? REASON_NONE : REASON_ABSENT, &ret);
        return ret;
}

static void assert_near(double a, double b) {
        if (!(fabs(a - b) < 1e-9))
                fail_msg("%.12g is not %.12g", a, b);
}

static void test_percent_of_watts(void **state) {
        CompareSide a = side((double[]){ 190, 200, 210 }, 3), b = side((double[]){ 250, 250 }, 2);
        CompareRow row;

        compare_row(metric_find("pkg_watts"), &a, &b, &row);
        assert_false(row.points);
        assert_near(row.change, 25);
        assert_near(row.a.stddev, 10);
        assert_near(row.a.stddev_percent, 5);
        assert_int_equal(row.a.n, 3);
        /* a spread needs three */
        assert_true(isnan(row.b.stddev));
        assert_true(isnan(row.b.stddev_percent));
        assert_near(row.b.mean, 250);
}

static void test_points_of_shares(void **state) {
        CompareSide a = side((double[]){ 95 }, 1), b = side((double[]){ 20 }, 1);
        CompareRow row;

        compare_row(metric_find("c6"), &a, &b, &row);
        assert_true(row.points);
        assert_near(row.change, -75);
        compare_row(metric_find("demotion"), &a, &b, &row);
        assert_true(row.points);
}

static void test_unknown_stays_unknown(void **state) {
        CompareSide a = side(NULL, 0), b = side((double[]){ 5 }, 1), zero = side((double[]){ 0 }, 1);
        CompareRow row;

        compare_row(metric_find("irq"), &a, &b, &row);
        assert_true(isnan(row.change));
        assert_true(isnan(row.a.mean));
        assert_int_equal(row.a.reason, REASON_ABSENT);
        compare_row(metric_find("irq"), &b, &a, &row);
        assert_true(isnan(row.change));
        /* percent of nothing is no number either */
        compare_row(metric_find("irq"), &zero, &b, &row);
        assert_true(isnan(row.change));
        assert_near(row.a.mean, 0);
        compare_row(metric_find("irq"), &b, &zero, &row);
        assert_near(row.change, -100);
}

static void test_warnings(void **state) {
        char w[COMPARE_WARNINGS_MAX][COMPARE_WARNING_SIZE];
        Machine *m = fixture_machine(1, 2, 2);
        CompareFacts a, b, none = {};

        compare_facts(m, &a);
        b = a;
        assert_int_equal(compare_warnings(&a, &b, w), 0);
        assert_int_equal(compare_warnings(&a, &none, w), 0);
        m->idents[0].microcode = 0x2006e05;
        (void) strcpy(m->kernel, "6.12.1");
        (void) strcpy(m->idle_governor, "teo");
        m->idle_sets[0].states[3].disabled = true;
        m->idents[0].model = 0x6a;
        compare_facts(m, &b);
        assert_int_equal(compare_warnings(&a, &b, w), 5);
        assert_non_null(strstr(w[0], "CPU model"));
        assert_non_null(strstr(w[1], "0x2006e05"));
        assert_non_null(strstr(w[2], "6.12.1"));
        assert_non_null(strstr(w[3], "teo"));
        assert_non_null(strstr(w[4], "C6(disabled)"));
        (void) machine_free(m);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_percent_of_watts),
                cmocka_unit_test(test_points_of_shares),
                cmocka_unit_test(test_unknown_stays_unknown),
                cmocka_unit_test(test_warnings),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
