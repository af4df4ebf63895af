/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <errno.h>

#include "watchdog.h"

static void test_unset(void **state) {
        Watchdog w = { .enabled = true };

        assert_int_equal(watchdog_plan(NULL, NULL, 42, 1000000, &w), 0);
        assert_false(w.enabled);
        assert_int_equal(w.timer_usec, 0);
        assert_false(watchdog_may_ping(&w, 10, 5, 9));
}

static void test_garbage(void **state) {
        static const char *const bad[] = { "", "0", "-1", "abc", "30s", "1e6", " 400000", "400000 ",
                "99999999999999999999999", "18446744073709551615" };

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                Watchdog w = { .enabled = true };

                assert_int_equal(watchdog_plan(bad[i], NULL, 42, 1000000, &w), -EINVAL);
                assert_false(w.enabled);
        }
}

static void test_pid(void **state) {
        Watchdog w;

        assert_int_equal(watchdog_plan("400000", "41", 42, 1000000, &w), 0);
        assert_false(w.enabled);
        assert_int_equal(watchdog_plan("400000", "42", 42, 1000000, &w), 0);
        assert_true(w.enabled);
        assert_int_equal(watchdog_plan("400000", "x", 42, 1000000, &w), -EINVAL);
        assert_false(w.enabled);
}

/* Shorter than the interval: a timer at half of it, and frames may be three intervals old. */
static void test_impatient(void **state) {
        Watchdog w;

        assert_int_equal(watchdog_plan("400000", NULL, 42, 1000000, &w), 0);
        assert_int_equal(w.timeout_usec, 400000);
        assert_int_equal(w.timer_usec, 200000);
        assert_int_equal(w.max_age_usec, 3000000);
        assert_true(watchdog_may_ping(&w, 5000000, 0, 2000001));
        assert_false(watchdog_may_ping(&w, 5000000, 0, 2000000));
        /* no frame yet: from the start on */
        assert_true(watchdog_may_ping(&w, 2999999, 0, 0));
        assert_false(watchdog_may_ping(&w, 3000000, 0, 0));
}

/* Longer than two intervals: frames alone. Between one and two: half of it is shorter still. */
static void test_patient(void **state) {
        Watchdog w;

        assert_int_equal(watchdog_plan("30000000", NULL, 42, 1000000, &w), 0);
        assert_int_equal(w.timer_usec, 0);
        assert_int_equal(w.max_age_usec, 30000000);
        assert_int_equal(watchdog_plan("2000000", NULL, 42, 1000000, &w), 0);
        assert_int_equal(w.timer_usec, 0);
        assert_int_equal(watchdog_plan("1999999", NULL, 42, 1000000, &w), 0);
        assert_int_equal(w.timer_usec, 999999);
        assert_int_equal(watchdog_plan("30000000", NULL, 42, 60000000, &w), 0);
        assert_int_equal(w.timer_usec, 15000000);
        assert_int_equal(w.max_age_usec, 180000000);
}

/* Whatever is asked, no busy loop comes of it. */
static void test_floor(void **state) {
        Watchdog w;

        assert_int_equal(watchdog_plan("1", NULL, 42, 1000000, &w), 0);
        assert_true(w.timer_usec >= 10000);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_unset),
                cmocka_unit_test(test_garbage),
                cmocka_unit_test(test_pid),
                cmocka_unit_test(test_impatient),
                cmocka_unit_test(test_patient),
                cmocka_unit_test(test_floor),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
