/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include "model/counter.h"

#define RANGE 262143328850ULL

static void test_c01_powercap_wraps(void **state) {
        CounterRule rule = { .range = RANGE, .max_delta = 1000000000 };
        uint64_t d;

        assert_int_equal(counter_delta(&rule, 262140328850, 1999939, &d), REASON_NONE);
        assert_int_equal(d, 4999939); /* uJ in 1 s: 5.00 W */
        assert_int_equal(counter_delta(&rule, 1000000, 101000000, &d), REASON_NONE);
        assert_int_equal(d, 100000000);
}

static void test_c03_underflow_of_a_log(void **state) {
        /* 2^64 - 18446744073447456768 mJ backwards on a range of 262143328.85 mJ, 3 s at up to 1 kW */
        CounterRule rule = { .range = 262143329, .max_delta = 3000000 };
        uint64_t back = 0 - UINT64_C(18446744073447456768), d;

        assert_int_equal(back, 262094848);
        assert_int_equal(counter_delta(&rule, 262094848 + 10000, 10000, &d), REASON_NONE);
        assert_in_range(d, 47500, 49500);
}

static void test_c03_range_unknown(void **state) {
        CounterRule rule = { .range = 0, .max_delta = 1000000000 };
        uint64_t d = 42;

        assert_int_equal(counter_delta(&rule, 4294967000, 1193, &d), REASON_RESET);
        assert_int_equal(counter_delta(&rule, UINT64_C(3) << 40, UINT64_C(2) << 40, &d), REASON_BACKWARDS);
        assert_int_equal(d, 42);
        assert_int_equal(counter_delta(&rule, 1193, 5001193, &d), REASON_NONE);
        assert_int_equal(d, 5000000);
}

static void test_c02_longer_than_a_wrap(void **state) {
        CounterRule rule = { .range = UINT64_C(1) << 32, .max_delta = UINT64_C(1) << 32 };
        uint64_t d = 42;

        assert_int_equal(counter_delta(&rule, 5, 6, &d), REASON_GAP);
        assert_int_equal(counter_delta(&rule, 6, 5, &d), REASON_GAP);
        assert_int_equal(d, 42);
}

static void test_reset_is_no_wrap(void **state) {
        CounterRule rule = { .range = UINT64_C(1) << 32, .max_delta = 10000000 };
        uint64_t d = 42;

        assert_int_equal(counter_delta(&rule, 2000000000, 300, &d), REASON_RESET);
        assert_int_equal(counter_delta(&rule, 2000000000, 1900000000, &d), REASON_BACKWARDS);
        assert_int_equal(counter_delta(&rule, 2000000000, 3000000000, &d), REASON_OUT_OF_RANGE);
        assert_int_equal(counter_delta(&rule, 2000000000, UINT64_C(1) << 32, &d), REASON_OUT_OF_RANGE);
        assert_int_equal(d, 42);
        assert_int_equal(counter_delta(&rule, UINT32_MAX, 0, &d), REASON_NONE);
        assert_int_equal(d, 1);
}

static void test_full_width(void **state) {
        CounterRule rule = {};
        uint64_t d = 42;

        assert_int_equal(counter_delta(&rule, 0, UINT64_MAX, &d), REASON_NONE);
        assert_int_equal(d, UINT64_MAX);
        assert_int_equal(counter_delta(&rule, UINT64_MAX, 0, &d), REASON_RESET);
        assert_int_equal(counter_delta(&rule, UINT64_MAX, UINT64_MAX - 1, &d), REASON_BACKWARDS);
        assert_int_equal(counter_delta(&rule, 7, 7, &d), REASON_NONE);
        assert_int_equal(d, 0);
}

static void test_narrow_without_bound(void **state) {
        CounterRule rule = { .range = UINT64_C(1) << 32 };
        uint64_t d = 42;

        assert_int_equal(counter_delta(&rule, 4294967290, 10, &d), REASON_NONE);
        assert_int_equal(d, 16);
        assert_int_equal(counter_delta(&rule, 10, 4294967290, &d), REASON_OUT_OF_RANGE);
        assert_int_equal(counter_delta(&rule, 1000000, 3, &d), REASON_RESET);
        assert_int_equal(counter_delta(&rule, 1000000, 900000, &d), REASON_BACKWARDS);
}

static void test_range(void **state) {
        assert_int_equal(counter_range(64, 0), 0);
        assert_int_equal(counter_range(32, 0), UINT64_C(1) << 32);
        assert_int_equal(counter_range(48, 0), UINT64_C(1) << 48);
        assert_int_equal(counter_range(64, RANGE), RANGE);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_c01_powercap_wraps),
                cmocka_unit_test(test_c03_underflow_of_a_log),
                cmocka_unit_test(test_c03_range_unknown),
                cmocka_unit_test(test_c02_longer_than_a_wrap),
                cmocka_unit_test(test_reset_is_no_wrap),
                cmocka_unit_test(test_full_width),
                cmocka_unit_test(test_narrow_without_bound),
                cmocka_unit_test(test_range),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
