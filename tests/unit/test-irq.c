/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <errno.h>

#include "tests/unit/source-fixture.h"

static int setup(void **state) {
        static SourceFixture f;

        f = (SourceFixture){};
        fixture_init(&f.fixture);
        fixture_write(&f.fixture, "1,8\n", "sys/devices/system/cpu/online");
        *state = &f;
        return 0;
}

static int teardown(void **state) {
        SourceFixture *f = *state;

        source_fixture_stop(f);
        fixture_deinit(&f->fixture);
        return 0;
}

static void interrupts(SourceFixture *f, const char *text) {
        fixture_write(&f->fixture, text, "proc/interrupts");
}

/* The header names the columns: CPU 1 and 8, in whichever place; a CPU that is not ours is passed over. */
static void test_columns_by_header(void **state) {
        SourceFixture *f = *state;

        interrupts(f, "           CPU1       CPU3       CPU8       \n"
                      "  0:         36          1          2  IR-IO-APIC   2-edge      timer\n"
                      "NMI:          3          1          4   Non-maskable interrupts\n"
                      "LOC:        100          1        200   Local timer interrupts\n"
                      "RES:          5          1          6   Rescheduling interrupts\n"
                      "CAL:          7          1          8   Function call interrupts\n");
        source_fixture_start(f, &source_ops_irq);
        assert_non_null(f->source);
        assert_int_equal(f->status.n_counters, 5);
        assert_int_equal(source_fixture_turn(f, 0), 0);
        assert_int_equal(source_fixture_value(f, FIELD_IRQ, 0, 0), 36 + 3 + 100 + 5 + 7);
        assert_int_equal(source_fixture_value(f, FIELD_IRQ, 0, 1), 2 + 4 + 200 + 6 + 8);
        assert_int_equal(source_fixture_value(f, FIELD_NMI, 0, 1), 4);
        assert_int_equal(source_fixture_value(f, FIELD_IRQ_LOC, 0, 0), 100);
        assert_int_equal(source_fixture_value(f, FIELD_IRQ_RES, 0, 1), 6);
        assert_int_equal(source_fixture_value(f, FIELD_IRQ_CAL, 0, 0), 7);
        assert_int_equal(source_fixture_reason(f, FIELD_IRQ, 0, 0), REASON_NONE);
}

/* Rows are 32 bits wide: one wraps, the sum's modular difference is right. */
static void test_rows_wrap(void **state) {
        SourceFixture *f = *state;
        uint32_t before;

        interrupts(f, "           CPU1       CPU8       \n"
                      " 30: 4294967290 4294967295   eth0\n"
                      "LOC: 4000000000          0   Local timer interrupts\n");
        source_fixture_start(f, &source_ops_irq);
        assert_int_equal(source_fixture_turn(f, 0), 0);
        before = (uint32_t) source_fixture_value(f, FIELD_IRQ, 0, 0);
        interrupts(f, "           CPU1       CPU8       \n"
                      " 30:          4          0   eth0\n"
                      "LOC: 4000000100          0   Local timer interrupts\n");
        assert_int_equal(source_fixture_turn(f, 0), 0);
        assert_int_equal((uint32_t) source_fixture_value(f, FIELD_IRQ, 0, 0) - before, 10 + 100);
        assert_true(source_fixture_value(f, FIELD_IRQ, 0, 0) <= UINT32_MAX);
}

/* ERR and MIS count for the machine; so does any row with fewer numbers than CPUs. */
static void test_machine_wide_rows(void **state) {
        SourceFixture *f = *state;

        interrupts(f, "           CPU1       CPU8       \n"
                      "  9:          1          2   acpi\n"
                      "ERR:         77\n"
                      "MIS:         88\n"
                      "XYZ:         99  something\n"
                      "PIN:          3          4   Posted-interrupt notification event\n");
        source_fixture_start(f, &source_ops_irq);
        assert_int_equal(f->status.n_counters, 1); /* no NMI, RES, CAL, LOC row: no such column */
        assert_int_equal(source_fixture_turn(f, 0), 0);
        assert_int_equal(source_fixture_value(f, FIELD_IRQ, 0, 0), 1 + 3);
        assert_int_equal(source_fixture_value(f, FIELD_IRQ, 0, 1), 2 + 4);
}

static void test_one_cpu(void **state) {
        SourceFixture *f = *state;

        fixture_write(&f->fixture, "1\n", "sys/devices/system/cpu/online");
        interrupts(f, "           CPU1       \n  9:          5   acpi\nERR:         77\nMIS:         88\n");
        source_fixture_start(f, &source_ops_irq);
        assert_int_equal(source_fixture_turn(f, 0), 0);
        assert_int_equal(source_fixture_value(f, FIELD_IRQ, 0, 0), 5);
}

static void test_rows_come_and_go(void **state) {
        SourceFixture *f = *state;

        interrupts(f, "           CPU1       CPU8       \n  9:          1          2   acpi\n");
        source_fixture_start(f, &source_ops_irq);
        assert_int_equal(source_fixture_turn(f, 0), 0);
        assert_int_equal(source_fixture_reason(f, FIELD_IRQ, 0, 0), REASON_NONE);
        interrupts(f, "           CPU1       CPU8       \n  9:          1          2   acpi\n 10:       "
                      "7000          0   new\n");
        assert_int_equal(source_fixture_turn(f, 0), 0);
        assert_int_equal(source_fixture_reason(f, FIELD_IRQ, 0, 0), REASON_RESET);
        assert_int_equal(f->activity[0].evidence, 0); /* unknown, not asleep */
        assert_int_equal(source_fixture_turn(f, 0), 0);
        assert_int_equal(source_fixture_reason(f, FIELD_IRQ, 0, 0), REASON_NONE);
        assert_int_equal(f->activity[0].evidence, ACTIVITY_IRQ_KNOWN);
}

static void test_activity(void **state) {
        SourceFixture *f = *state;

        interrupts(f, "           CPU1       CPU8       \n  9:          1          2   acpi\n");
        source_fixture_start(f, &source_ops_irq);
        assert_int_equal(source_fixture_turn(f, 0), 0);
        interrupts(f, "           CPU1       CPU8       \n  9:          1          3   acpi\n");
        assert_int_equal(source_fixture_turn(f, 0), 0);
        assert_int_equal(f->activity[0].evidence, ACTIVITY_IRQ_KNOWN);
        assert_int_equal(f->activity[1].evidence, ACTIVITY_IRQ_KNOWN | ACTIVITY_IRQ);
}

static void test_our_own_asking_is_no_activity(void **state) {
        SourceFixture *f = *state;

        interrupts(f, "           CPU1       CPU8       \nLOC:          5          5   timer\nCAL:          "
                      "1          2   calls\n");
        source_fixture_start(f, &source_ops_irq);
        assert_int_equal(source_fixture_turn(f, 0), 0);
        interrupts(f, "           CPU1       CPU8       \nLOC:          5          6   timer\nCAL:          "
                      "4          4   calls\n");
        f->asked = 3;
        assert_int_equal(source_fixture_turn(f, 0), 0);
        assert_int_equal(f->activity[0].evidence, ACTIVITY_IRQ_KNOWN);
        assert_int_equal(
                f->activity[1].evidence, ACTIVITY_IRQ_KNOWN | ACTIVITY_IRQ); /* a timer is not ours */
        interrupts(f, "           CPU1       CPU8       \nLOC:          5          6   timer\nCAL:          "
                      "7          8   calls\n");
        assert_int_equal(source_fixture_turn(f, 0), 0);
        assert_int_equal(f->activity[0].evidence, ACTIVITY_IRQ_KNOWN);
        assert_int_equal(
                f->activity[1].evidence, ACTIVITY_IRQ_KNOWN | ACTIVITY_IRQ); /* one call more than ours */
}

static void test_cpu_leaves_the_header(void **state) {
        SourceFixture *f = *state;

        interrupts(f, "           CPU1       CPU8       \n  9:          1          2   acpi\n");
        source_fixture_start(f, &source_ops_irq);
        interrupts(f, "           CPU8       \n  9:          2   acpi\n");
        assert_int_equal(source_fixture_turn(f, 0), 0);
        assert_int_equal(source_fixture_reason(f, FIELD_IRQ, 0, 0), REASON_OFFLINE);
        assert_int_equal(source_fixture_value(f, FIELD_IRQ, 0, 1), 2);
}

/* More text than the buffer begins with, every cell known: 64 CPUs, 400 rows. */
static void test_large_table(void **state) {
        SourceFixture *f = *state;
        _cleanup_free_ char *text = malloc(1 << 20);
        size_t n = 0;

        assert_non_null(text);
        fixture_write(&f->fixture, "0-63\n", "sys/devices/system/cpu/online");
        n += (size_t) sprintf(text + n, "     ");
        for (unsigned c = 0; c < 64; c++)
                n += (size_t) sprintf(text + n, "CPU%-8u", c);
        n += (size_t) sprintf(text + n, "\n");
        for (unsigned row = 0; row < 400; row++) {
                n += (size_t) sprintf(text + n, "%3u: ", row);
                for (unsigned c = 0; c < 64; c++)
                        n += (size_t) sprintf(text + n, "%10u ", row % 64 == c ? row : 0);
                n += (size_t) sprintf(text + n, "  IR-PCI-MSI 1-edge      nvme0q%u\n", row);
        }
        interrupts(f, text);
        source_fixture_start(f, &source_ops_irq);
        assert_int_equal(source_fixture_turn(f, 0), 0);
        for (unsigned c = 0; c < 64; c++) {
                uint64_t sum = 0;

                for (unsigned row = c; row < 400; row += 64)
                        sum += row;
                assert_int_equal(source_fixture_value(f, FIELD_IRQ, 0, c), sum);
        }
}

static void test_damaged_text(void **state) {
        static const char *const texts[] = { "", "\n", "no header\n", "CPUx\n", "CPU1\n:\n",
                "CPU1 CPU8\n 9: 1", "CPU1 CPU8\n9\n" };
        SourceFixture *f = *state;

        interrupts(f, "           CPU1       CPU8       \n  9:          1          2   acpi\n");
        source_fixture_start(f, &source_ops_irq);
        assert_int_equal(source_fixture_turn(f, 0), 0);
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                interrupts(f, texts[i]);
                (void) source_fixture_turn(f, 0);
                assert_int_not_equal(source_fixture_reason(f, FIELD_IRQ, 0, 0), REASON_NONE);
        }
        interrupts(f, "           CPU1       CPU8       \n  9:          1          2   acpi\n");
        (void) source_fixture_turn(f, 0);
        assert_int_equal(source_fixture_turn(f, 0), 0);
        assert_int_equal(source_fixture_reason(f, FIELD_IRQ, 0, 0), REASON_NONE);
        assert_int_equal(f->status.state, SOURCE_OK);
}

static void test_absent(void **state) {
        SourceFixture *f = *state;

        source_fixture_start(f, &source_ops_irq);
        assert_null(f->source);
        assert_int_equal(f->status.state, SOURCE_ABSENT);
        assert_int_equal(f->status.error, ENOENT);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_columns_by_header, setup, teardown),
                cmocka_unit_test_setup_teardown(test_rows_wrap, setup, teardown),
                cmocka_unit_test_setup_teardown(test_machine_wide_rows, setup, teardown),
                cmocka_unit_test_setup_teardown(test_one_cpu, setup, teardown),
                cmocka_unit_test_setup_teardown(test_rows_come_and_go, setup, teardown),
                cmocka_unit_test_setup_teardown(test_activity, setup, teardown),
                cmocka_unit_test_setup_teardown(test_our_own_asking_is_no_activity, setup, teardown),
                cmocka_unit_test_setup_teardown(test_cpu_leaves_the_header, setup, teardown),
                cmocka_unit_test_setup_teardown(test_large_table, setup, teardown),
                cmocka_unit_test_setup_teardown(test_damaged_text, setup, teardown),
                cmocka_unit_test_setup_teardown(test_absent, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
