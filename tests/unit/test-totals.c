/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <stdlib.h>

#include "api/totals.h"
#include "tests/unit/machine-fixture.h"

typedef struct Made {
        Machine *m;
        Layout layout;
        Sample s;
} Made;

static void make(Made *made, Machine *m) {
        for (uint8_t i = 0; i < 4; i++)
                assert_non_null(fixture_column(m, FIELD_IDLE_USAGE, i));
        assert_non_null(fixture_column(m, FIELD_IRQ, 0));
        assert_non_null(fixture_column(m, FIELD_CORE_TEMP, 0));
        machine_finish_layout(m);
        *made = (Made){ .m = m };
        sample_layout(m, &made->layout);
        made->s = (Sample){
                .machine = m,
                .layout = &made->layout,
                .values = calloc(made->layout.n_values, sizeof(int64_t)),
                .reasons = calloc(made->layout.n_values, 1),
        };
}

static void unmake(Made *made) {
        free(made->s.values);
        free(made->s.reasons);
        (void) machine_free(made->m);
}

static size_t slot(const Made *made, FieldId f, uint8_t instance, uint32_t e) {
        return layout_find(&made->layout, f, instance)->offset + e;
}

static int64_t total(const Totals *t, FieldId f, uint8_t instance, int64_t cpu) {
        const TotalsEntity *entities;
        size_t n = totals_entities(t, field_spec(f)->scope, &entities);
        TotalsColumn c;

        assert_true(totals_column(t, f, instance, &c));
        for (size_t i = 0; i < n; i++)
                if (entities[i].cpu == cpu)
                        return c.seen[i] ? c.values[i] : -1;
        return -2;
}

static void test_adds(void **state) {
        _cleanup_(totals_freep) Totals *t = totals_new();
        Made made;

        make(&made, fixture_machine(1, 2, 2));
        made.s.values[slot(&made, FIELD_IRQ, 0, 1)] = 5;
        made.s.values[slot(&made, FIELD_CORE_TEMP, 0, 0)] = 40;
        made.s.h.is_first = true;
        assert_int_equal(totals_add(t, &made.s), 0);
        assert_int_equal(total(t, FIELD_IRQ, 0, 1), -1);
        made.s.h.is_first = false;
        for (int i = 0; i < 3; i++)
                assert_int_equal(totals_add(t, &made.s), 0);
        assert_int_equal(total(t, FIELD_IRQ, 0, 1), 15);
        assert_int_equal(total(t, FIELD_IRQ, 0, 0), 0);
        /* a gauge is what it was last */
        assert_int_equal(total(t, FIELD_CORE_TEMP, 0, -1), 40);
        /* null adds nothing, and says nothing of its own */
        made.s.reasons[slot(&made, FIELD_IRQ, 0, 1)] = REASON_ASLEEP;
        assert_int_equal(totals_add(t, &made.s), 0);
        assert_int_equal(total(t, FIELD_IRQ, 0, 1), 15);
        /* what no counter counts stays at the end, and is not undefined */
        made.s.reasons[slot(&made, FIELD_IRQ, 0, 1)] = REASON_NONE;
        made.s.values[slot(&made, FIELD_IRQ, 0, 1)] = INT64_MAX;
        assert_int_equal(totals_add(t, &made.s), 0);
        assert_int_equal(totals_add(t, &made.s), 0);
        assert_int_equal(total(t, FIELD_IRQ, 0, 1), INT64_MAX);
        unmake(&made);
}

/* A CPU that goes and returns goes on where it left; the others never notice. */
static void test_hotplug(void **state) {
        _cleanup_(totals_freep) Totals *t = totals_new();
        Made all, fewer;

        make(&all, fixture_machine(1, 2, 2));
        for (uint32_t i = 0; i < 4; i++)
                all.s.values[slot(&all, FIELD_IRQ, 0, i)] = 10 + i;
        assert_int_equal(totals_add(t, &all.s), 0);
        make(&fewer, fixture_unplug(fixture_machine(1, 2, 2), 1));
        for (uint32_t i = 0; i < 3; i++)
                fewer.s.values[slot(&fewer, FIELD_IRQ, 0, i)] = 100;
        assert_int_equal(totals_add(t, &fewer.s), 0);
        assert_int_equal(total(t, FIELD_IRQ, 0, 1), 11);
        assert_int_equal(total(t, FIELD_IRQ, 0, 2), 112);
        all.m->generation = 3;
        assert_int_equal(totals_add(t, &all.s), 0);
        assert_int_equal(total(t, FIELD_IRQ, 0, 1), 22);
        assert_int_equal(total(t, FIELD_IRQ, 0, 3), 126);
        assert_string_equal(totals_state_name(t, 0, 3), "C6");
        assert_null(totals_state_name(t, 0, 4));
        unmake(&all);
        unmake(&fewer);
}

/* CPUs that come after a source has gone have no total of it: its columns are not read beyond their end. */
static void test_source_goes_then_cpus_come(void **state) {
        _cleanup_(totals_freep) Totals *t = totals_new();
        Machine *m = fixture_machine(1, 20, 2);
        Made few, many = { .m = m };

        make(&few, fixture_machine(1, 2, 2));
        few.s.values[slot(&few, FIELD_IRQ, 0, 1)] = 7;
        assert_int_equal(totals_add(t, &few.s), 0);
        m->generation = 2;
        assert_non_null(fixture_column(m, FIELD_CORE_TEMP, 0));
        machine_finish_layout(m);
        sample_layout(m, &many.layout);
        many.s = (Sample){
                .machine = m,
                .layout = &many.layout,
                .values = calloc(many.layout.n_values, sizeof(int64_t)),
                .reasons = calloc(many.layout.n_values, 1),
        };
        assert_int_equal(totals_add(t, &many.s), 0);
        assert_int_equal(total(t, FIELD_IRQ, 0, 1), 7);
        for (int64_t cpu = 4; cpu < 40; cpu++)
                assert_int_equal(total(t, FIELD_IRQ, 0, cpu), -1);
        unmake(&few);
        unmake(&many);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_adds),
                cmocka_unit_test(test_hotplug),
                cmocka_unit_test(test_source_goes_then_cpus_come),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
