/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <errno.h>

#include "tests/unit/source-fixture.h"

#define INTR "intr 100 0 1 2\nctxt 5\n"

static int setup(void **state) {
        static SourceFixture f;

        f = (SourceFixture){};
        fixture_init(&f.fixture);
        fixture_write(&f.fixture, "1,4\n", "sys/devices/system/cpu/online");
        *state = &f;
        return 0;
}

static int teardown(void **state) {
        SourceFixture *f = *state;

        source_fixture_stop(f);
        fixture_deinit(&f->fixture);
        return 0;
}

static void test_busy_and_idle_by_id(void **state) {
        SourceFixture *f = *state;

        fixture_write(&f->fixture,
                "cpu  9 9 9 9 9 9 9 9 9 9\ncpu1 10 20 30 400 50 6 7 8 10 20\ncpu4 1 0 0 7 0 0 0 0 0 "
                "0\n" INTR,
                "proc/stat");
        source_fixture_start(f, &source_ops_stat);
        assert_non_null(f->source);
        assert_int_equal(f->status.state, SOURCE_OK);
        assert_int_equal(f->status.n_counters, 2);
        assert_int_equal(source_fixture_turn(f, 0), 0);
        /* guest stands in user already */
        assert_int_equal(source_fixture_value(f, FIELD_STAT_BUSY, 0, 0), 10 + 20 + 30 + 6 + 7 + 8);
        assert_int_equal(source_fixture_value(f, FIELD_STAT_IDLE, 0, 0), 450);
        assert_int_equal(source_fixture_value(f, FIELD_STAT_BUSY, 0, 1), 1);
        assert_int_equal(source_fixture_reason(f, FIELD_STAT_BUSY, 0, 1), REASON_NONE);
        assert_int_equal(f->activity[0].evidence, 0); /* nothing is known of the first interval */
}

static void test_activity(void **state) {
        SourceFixture *f = *state;

        fixture_write(&f->fixture, "cpu1 10 0 0 100 0 0 0 0\ncpu4 10 0 0 100 0 0 0 0\n" INTR, "proc/stat");
        source_fixture_start(f, &source_ops_stat);
        assert_int_equal(source_fixture_turn(f, 0), 0);
        fixture_write(&f->fixture, "cpu1 10 0 0 200 0 0 0 0\ncpu4 35 0 0 175 0 0 0 0\n" INTR, "proc/stat");
        assert_int_equal(source_fixture_turn(f, 0), 0);
        assert_int_equal(f->activity[0].evidence, ACTIVITY_BUSY_KNOWN);
        assert_int_equal(f->activity[0].busy_permille, 0);
        assert_int_equal(f->activity[1].evidence, ACTIVITY_BUSY_KNOWN | ACTIVITY_BUSY);
        assert_int_equal(f->activity[1].busy_permille, 250);
}

static void test_iowait_can_fall(void **state) {
        SourceFixture *f = *state;

        fixture_write(&f->fixture, "cpu1 0 0 0 100 50\ncpu4 0 0 0 5000 0\n" INTR, "proc/stat");
        source_fixture_start(f, &source_ops_stat);
        assert_int_equal(source_fixture_turn(f, 0), 0);
        fixture_write(&f->fixture, "cpu1 0 0 0 100 48\ncpu4 0 0 0 7 0\n" INTR, "proc/stat");
        assert_int_equal(source_fixture_turn(f, 0), 0);
        assert_int_equal(source_fixture_value(f, FIELD_STAT_IDLE, 0, 0), 150);
        assert_int_equal(source_fixture_value(f, FIELD_STAT_IDLE, 0, 1),
                7); /* a counter that begins anew is not hidden */
}

static void test_cpu_that_left(void **state) {
        SourceFixture *f = *state;

        fixture_write(&f->fixture, "cpu1 1 0 0 1 0\ncpu4 1 0 0 1 0\n" INTR, "proc/stat");
        source_fixture_start(f, &source_ops_stat);
        fixture_write(&f->fixture, "cpu0 1 0 0 1 0\ncpu4 2 0 0 1 0\ncpu9 1 1 1 1 1\n" INTR, "proc/stat");
        assert_int_equal(source_fixture_turn(f, 0), 0);
        assert_int_equal(source_fixture_reason(f, FIELD_STAT_BUSY, 0, 0), REASON_OFFLINE);
        assert_int_equal(source_fixture_reason(f, FIELD_STAT_BUSY, 0, 1), REASON_NONE);
        assert_int_equal(source_fixture_value(f, FIELD_STAT_BUSY, 0, 1), 2);
}

static void test_damaged_text(void **state) {
        static const char *const texts[] = { "", "cpu", "cpu1", "cpu1 ", "cpux 1 2\n", "cpu4 1\n\n\n",
                "intr 5\n", "cpu1 1 2 3" };
        SourceFixture *f = *state;

        fixture_write(&f->fixture, "cpu1 1 0 0 1 0\n" INTR, "proc/stat");
        source_fixture_start(f, &source_ops_stat);
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                fixture_write(&f->fixture, texts[i], "proc/stat");
                assert_int_equal(source_fixture_turn(f, 0), 0);
        }
        assert_int_equal(source_fixture_value(f, FIELD_STAT_BUSY, 0, 0), 6);
}

static void test_absent(void **state) {
        SourceFixture *f = *state;

        source_fixture_start(f, &source_ops_stat);
        assert_null(f->source);
        assert_int_equal(f->status.state, SOURCE_ABSENT);
        assert_int_equal(f->status.error, ENOENT);
        assert_true(f->status.hint[0]);
        assert_int_equal(f->machine->layout.n_columns, 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_busy_and_idle_by_id, setup, teardown),
                cmocka_unit_test_setup_teardown(test_activity, setup, teardown),
                cmocka_unit_test_setup_teardown(test_iowait_can_fall, setup, teardown),
                cmocka_unit_test_setup_teardown(test_cpu_that_left, setup, teardown),
                cmocka_unit_test_setup_teardown(test_damaged_text, setup, teardown),
                cmocka_unit_test_setup_teardown(test_absent, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
