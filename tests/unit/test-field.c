/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <errno.h>

#include "cstated/field.h"

static void test_names_round_trip(void **state) {
        for (unsigned i = 1; i < FIELD_N; i++)
                assert_int_equal(field_from_name(field_spec((FieldId) i)->name), i);
        assert_int_equal(field_from_name("no-such-field"), FIELD_NONE);
}

static void test_spans_share_their_field_scope(void **state) {
        for (unsigned i = 1; i < FIELD_N; i++) {
                const FieldSpec *f = field_spec((FieldId) i);

                if (f->span != FIELD_NONE)
                        assert_int_equal(f->scope, field_spec(f->span)->scope);
        }
}

static void test_scopes(void **state) {
        Scope s;

        assert_int_equal(scope_from_name("node", &s), 0);
        assert_int_equal(s, SCOPE_SYSTEM);
        assert_int_equal(scope_from_name("core", &s), 0);
        assert_int_equal(s, SCOPE_CORE);
        assert_int_equal(scope_from_name("socket", &s), -EINVAL);
        assert_int_equal(s, SCOPE_CORE);
}

static void test_layout_offsets(void **state) {
        Layout l = { .n_entities = { [SCOPE_SYSTEM] = 1, [SCOPE_PACKAGE] = 2, [SCOPE_CORE] = 8, [SCOPE_CPU] = 16 } };

        assert_non_null(layout_add(&l, FIELD_C6, 0));
        assert_non_null(layout_add(&l, FIELD_IDLE_USAGE, 1));
        assert_non_null(layout_add(&l, FIELD_IDLE_USAGE, 0));
        assert_null(layout_add(&l, FIELD_IDLE_USAGE, 1));
        assert_non_null(layout_add(&l, FIELD_ENERGY_PKG, 0));
        layout_finish(&l);
        assert_int_equal(l.n_values, 16 + 16 + 8 + 2);
        assert_int_equal(layout_find(&l, FIELD_IDLE_USAGE, 0)->offset, 0);
        assert_int_equal(layout_find(&l, FIELD_IDLE_USAGE, 1)->offset, 16);
        assert_int_equal(layout_find(&l, FIELD_C6, 0)->offset, 32);
        assert_int_equal(layout_find(&l, FIELD_ENERGY_PKG, 0)->width, 32);
        assert_null(layout_find(&l, FIELD_C7, 0));
}

/* Whatever a sample derives stands behind all that was read. */
static void test_derived_last(void **state) {
        Layout l = { .n_entities = { [SCOPE_SYSTEM] = 1, [SCOPE_PACKAGE] = 2, [SCOPE_CPU] = 4 } };

        assert_non_null(layout_add(&l, FIELD_SELF_READS, 0));
        assert_non_null(layout_add(&l, FIELD_SLEEP_NS, 0));
        assert_non_null(layout_add(&l, FIELD_BOUND_BREAK, 0));
        assert_non_null(layout_add(&l, FIELD_IRQ, 0));
        layout_finish(&l);
        assert_int_equal(layout_find(&l, FIELD_IRQ, 0)->offset, 0);
        assert_int_equal(layout_find(&l, FIELD_SLEEP_NS, 0)->offset, 4);
        assert_int_equal(layout_find(&l, FIELD_BOUND_BREAK, 0)->offset, 6);
        assert_int_equal(layout_find(&l, FIELD_SELF_READS, 0)->offset, 10);
}

/* Whatever a machine has: there is a column for it. */
static void test_a_layout_is_never_full(void **state) {
        Layout l = { .n_entities = { 1, 1, 1, 1, 1 } };
        size_t n = 0;

        for (unsigned f = FIELD_NONE + 1; f < FIELD_N; f++)
                for (unsigned i = 0; i < field_n_instances((FieldId) f); i++, n++)
                        assert_non_null(layout_add(&l, (FieldId) f, (uint8_t) i));
        layout_finish(&l);
        assert_int_equal(l.n_values, n);
        for (unsigned f = FIELD_NONE + 1; f < FIELD_N; f++)
                for (unsigned i = 0; i < field_n_instances((FieldId) f); i++)
                        assert_non_null(layout_find(&l, (FieldId) f, (uint8_t) i));
}

static void test_instances(void **state) {
        char name[16];

        assert_int_equal(field_n_instances(FIELD_C6), 1);
        assert_int_equal(field_n_instances(FIELD_TRACE_NS), IDLE_STATES_MAX);
        assert_int_equal(field_n_instances(FIELD_SLEEP_HIST), SLEEP_BUCKETS);
        field_bucket_name(0, name);
        assert_string_equal(name, "0.002");
        field_bucket_name(9, name);
        assert_string_equal(name, "1.024");
        field_bucket_name(30, name);
        assert_string_equal(name, "2147483.648");
        field_bucket_name(31, name);
        assert_string_equal(name, "+Inf");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names_round_trip),
                cmocka_unit_test(test_spans_share_their_field_scope),
                cmocka_unit_test(test_scopes),
                cmocka_unit_test(test_layout_offsets),
                cmocka_unit_test(test_derived_last),
                cmocka_unit_test(test_a_layout_is_never_full),
                cmocka_unit_test(test_instances),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
