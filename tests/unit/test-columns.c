/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <errno.h>
#include <stdio.h>

#include "client/columns.h"

/* Two packages, three cores, SMT on the first core; C6 in watts and percent where it belongs. */
static const char snapshot_text[] =
        "{\"start\":0,\"end\":2000,\"interval_ms\":2000,"
        "\"system\":{\"busy\":5.5,\"irq\":60,\"c6\":90,\"pkg_watts\":210.5,\"ram_watts\":20,"
        "\"idle\":{\"C1\":{\"time\":1,\"usage\":6},\"C6_X\":{\"time\":93,\"usage\":9}},\"wakeups\":{\"break\":8}},"
        "\"packages\":[{\"package\":0,\"pkg_watts\":100.25,\"ram_watts\":null,\"reasons\":{\"ram_watts\":\"denied\"}},"
        "{\"package\":1,\"pkg_watts\":110.25,\"ram_watts\":20}],"
        "\"cores\":[{\"package\":0,\"core\":0,\"c6\":94},{\"package\":0,\"core\":1,\"c6\":91.234},"
        "{\"package\":1,\"core\":0,\"c6\":null}],"
        "\"cpus\":["
        "{\"cpu\":0,\"core\":0,\"package\":0,\"busy\":1.234,\"irq\":10,\"idle\":{\"C1\":{\"time\":0.5,\"usage\":1},"
        "\"C6_X\":{\"time\":99.5,\"usage\":2}},\"wakeups\":{\"total\":8,\"interrupt\":3,\"store\":1,\"break\":4,\"method\":\"bound\"}},"
        "{\"cpu\":4,\"core\":0,\"package\":0,\"busy\":0,\"irq\":20},"
        "{\"cpu\":1,\"core\":1,\"package\":0,\"busy\":2,\"irq\":30},"
        "{\"cpu\":9,\"core\":0,\"package\":1,\"busy\":18.766,\"irq\":0}]}";

typedef struct Fixture {
        json_t *root;
        ColumnSet set;
} Fixture;

static int setup(void **state) {
        static Fixture f;

        f.root = json_loads(snapshot_text, 0, NULL);
        assert_non_null(f.root);
        columns_from_snapshot(f.root, false, &f.set);
        *state = &f;
        return 0;
}

static int teardown(void **state) {
        json_decref(((Fixture *) *state)->root);
        return 0;
}

static void shown(const ColumnSet *set, char *buf, size_t size) {
        buf[0] = '\0';
        for (size_t i = 0; i < set->n; i++)
                if (set->columns[i].shown)
                        (void) snprintf(buf + strlen(buf), size - strlen(buf), "%s ", set->columns[i].name);
}

static const Column *column(const Fixture *f, const char *name) {
        for (size_t i = 0; i < f->set.n; i++)
                if (strcmp(f->set.columns[i].name, name) == 0)
                        return &f->set.columns[i];
        return NULL;
}

static const char *text(const Fixture *f, const char *name, size_t cpu) {
        static char buf[64];
        json_t *row = json_array_get(json_object_get(f->root, "cpus"), cpu);

        if (!column_text(column(f, name), f->root, row, COLUMN_FORMAT_TABLE, buf, sizeof(buf)))
                return "(none)";
        return buf;
}

/* turbostat's names in turbostat's order; what nothing fills is left out. */
static void test_order(void **state) {
        Fixture *f = *state;
        char names[512];

        shown(&f->set, names, sizeof(names));
        assert_string_equal(names,
                "Package Core CPU Busy% IRQ C1 C6X C1% C6X% Wake/s Store/s Break/s CPU%c6 PkgWatt RAMWatt ");
}

static void test_cells(void **state) {
        Fixture *f = *state;

        assert_string_equal(text(f, "Busy%", 0), "1.23");
        assert_string_equal(text(f, "IRQ", 1), "20");
        assert_string_equal(text(f, "C6X%", 0), "99.50");
        assert_string_equal(text(f, "C6X", 0), "2");
        assert_string_equal(text(f, "C6X%", 1), "-");
        assert_string_equal(text(f, "Wake/s", 0), "4.0");
        assert_string_equal(text(f, "Break/s", 0), "2.0");
        /* a core's and a package's values stand with their first CPU only */
        assert_string_equal(text(f, "CPU%c6", 0), "94.00");
        assert_string_equal(text(f, "CPU%c6", 1), "(none)");
        assert_string_equal(text(f, "CPU%c6", 2), "91.23");
        assert_string_equal(text(f, "CPU%c6", 3), "-");
        assert_string_equal(text(f, "PkgWatt", 0), "100.25");
        assert_string_equal(text(f, "PkgWatt", 2), "(none)");
        assert_string_equal(text(f, "RAMWatt", 0), "-");
        assert_string_equal(text(f, "RAMWatt", 3), "20.00");
}

static void test_summary_row(void **state) {
        Fixture *f = *state;
        char buf[64];

        assert_true(column_text(column(f, "CPU"), f->root, NULL, COLUMN_FORMAT_TABLE, buf, sizeof(buf)));
        assert_string_equal(buf, "-");
        assert_true(column_text(column(f, "PkgWatt"), f->root, NULL, COLUMN_FORMAT_TABLE, buf, sizeof(buf)));
        assert_string_equal(buf, "210.50");
        assert_true(column_text(column(f, "Break/s"), f->root, NULL, COLUMN_FORMAT_TABLE, buf, sizeof(buf)));
        assert_string_equal(buf, "4.0");
}

static void test_joules(void **state) {
        Fixture *f = *state;
        char buf[64];

        columns_from_snapshot(f->root, true, &f->set);
        assert_null(column(f, "PkgWatt"));
        assert_true(column_text(column(f, "Pkg_J"), f->root, NULL, COLUMN_FORMAT_TABLE, buf, sizeof(buf)));
        assert_string_equal(buf, "421.00");
        assert_non_null(column(f, "RAM_J"));
}

static void test_show_and_hide(void **state) {
        Fixture *f = *state;
        char names[512], word[32];

        assert_int_equal(columns_select(&f->set, "power,CPU", true, true, word, sizeof(word)), 0);
        shown(&f->set, names, sizeof(names));
        assert_string_equal(names, "CPU PkgWatt RAMWatt ");
        assert_int_equal(columns_select(&f->set, "Busy%", true, false, word, sizeof(word)), 0);
        assert_int_equal(columns_select(&f->set, "RAMWatt", false, false, word, sizeof(word)), 0);
        shown(&f->set, names, sizeof(names));
        assert_string_equal(names, "CPU Busy% PkgWatt ");
        /* turbostat's own columns that this machine lacks are no error; misspelt ones are */
        assert_int_equal(columns_select(&f->set, "CoreThr,Pkg%pc6", true, false, word, sizeof(word)), 0);
        assert_int_equal(columns_select(&f->set, "CPU,Bussy%", true, false, word, sizeof(word)), -EINVAL);
        assert_string_equal(word, "Bussy%");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_order, setup, teardown),
                cmocka_unit_test_setup_teardown(test_cells, setup, teardown),
                cmocka_unit_test_setup_teardown(test_summary_row, setup, teardown),
                cmocka_unit_test_setup_teardown(test_joules, setup, teardown),
                cmocka_unit_test_setup_teardown(test_show_and_hide, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
