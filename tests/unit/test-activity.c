/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whom the remote readers must not wake: asleep only where nothing seen contradicts and enough is known. */

#include "tests/unit/test.h"

#include "sampler/source.h"

#define KNOWN (ACTIVITY_IRQ_KNOWN | ACTIVITY_BUSY_KNOWN | ACTIVITY_USAGE_KNOWN)

static void test_asleep_when_nothing_moved(void **state) {
        assert_true(activity_slept(KNOWN));
        /* a machine without cpuidle */
        assert_true(activity_slept(ACTIVITY_IRQ_KNOWN | ACTIVITY_BUSY_KNOWN));
}

static void test_awake_when_anything_moved(void **state) {
        assert_false(activity_slept(KNOWN | ACTIVITY_USAGE));
        assert_false(activity_slept(
                KNOWN | ACTIVITY_IRQ)); /* busy all along: usage stands still, the timer does not */
        assert_false(activity_slept(KNOWN | ACTIVITY_BUSY)); /* busy all along without a tick (nohz_full) */
        assert_false(activity_slept(ACTIVITY_IRQ_KNOWN | ACTIVITY_BUSY_KNOWN | ACTIVITY_IRQ));
}

static void test_unknown_is_not_asleep(void **state) {
        assert_false(activity_slept(0));
        assert_false(activity_slept(ACTIVITY_USAGE_KNOWN));
        assert_false(activity_slept(ACTIVITY_USAGE_KNOWN | ACTIVITY_IRQ_KNOWN));
        assert_false(activity_slept(ACTIVITY_USAGE_KNOWN | ACTIVITY_BUSY_KNOWN));
}

static void test_idletrace_alone_decides(void **state) {
        assert_true(activity_slept(ACTIVITY_TRACE_KNOWN));
        assert_true(activity_slept(KNOWN | ACTIVITY_BUSY |
                                   ACTIVITY_TRACE_KNOWN)); /* the tick that counted it busy was before */
        assert_false(activity_slept(KNOWN | ACTIVITY_TRACE_KNOWN | ACTIVITY_TRACE));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_asleep_when_nothing_moved),
                cmocka_unit_test(test_awake_when_anything_moved),
                cmocka_unit_test(test_unknown_is_not_asleep),
                cmocka_unit_test(test_idletrace_alone_decides),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
