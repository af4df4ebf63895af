/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <errno.h>

#include "tests/unit/machine-fixture.h"

static Machine *machine_full(void) {
        Machine *m = fixture_machine(2, 3, 2);

        m->idle_sets[0].states[3].disabled = true;
        m->pkg_cst_config = 0x8000000000008403;
        m->has_pkg_cst_config = true;
        m->has_bugs = true;
        (void) snprintf(m->bugs, sizeof(m->bugs), "spectre_v1 clflush_monitor");
        m->cpus[5].idle_set = UINT16_MAX;
        m->modules = calloc(1, sizeof(*m->modules));
        m->modules[0] = (MachineModule){ .id = 8, .package = 1, .first_cpu = 3 };
        m->n_modules = 1;
        m->cpus[3].module = 0;
        fixture_column(m, FIELD_MPERF, 0);
        fixture_column(m, FIELD_IDLE_USAGE, 3);
        fixture_column(m, FIELD_ENERGY_RAM, 0)->scale = 15.3e-6;
        layout_add(&m->layout, FIELD_ENERGY_PKG, 0)->range = 262143328851;
        machine_finish_layout(m);
        return m;
}

static void assert_same(const Machine *a, const Machine *b) {
        assert_string_equal(a->host, b->host);
        assert_string_equal(a->boot_id, b->boot_id);
        assert_string_equal(a->bugs, b->bugs);
        assert_int_equal(a->pkg_cst_config, b->pkg_cst_config);
        assert_int_equal(a->n_cpus, b->n_cpus);
        assert_memory_equal(a->cpus, b->cpus, a->n_cpus * sizeof(*a->cpus));
        assert_memory_equal(a->cores, b->cores, a->n_cores * sizeof(*a->cores));
        assert_memory_equal(a->packages, b->packages, a->n_packages * sizeof(*a->packages));
        assert_memory_equal(a->modules, b->modules, a->n_modules * sizeof(*a->modules));
        assert_int_equal(a->idle_sets[0].n_states, b->idle_sets[0].n_states);
        assert_int_equal(a->idle_sets[0].states[0].mwait_hint, b->idle_sets[0].states[0].mwait_hint);
        assert_string_equal(a->idle_sets[0].states[3].name, b->idle_sets[0].states[3].name);
        assert_true(b->idle_sets[0].states[3].disabled);
        assert_string_equal(a->idents[0].brand, b->idents[0].brand);
        assert_int_equal(a->idents[0].mwait_substates[3], b->idents[0].mwait_substates[3]);
        assert_true(layout_equal(&a->layout, &b->layout));
        assert_int_equal(a->layout.n_values, b->layout.n_values);
}

static void test_round_trip(void **state) {
        _cleanup_(machine_freep) Machine *m = machine_full(), *back = NULL, *copy = NULL;
        _cleanup_free_ char *json = machine_to_json(m), *again = NULL;

        assert_int_equal(machine_validate(m), 0);
        assert_non_null(json);
        assert_int_equal(machine_from_json(json, strlen(json), &back), 0);
        assert_same(m, back);
        again = machine_to_json(back);
        assert_string_equal(json, again);
        copy = machine_copy(m);
        assert_same(m, copy);
        assert_ptr_not_equal(copy->cpus, m->cpus);
}

/* The text with the first `from` replaced by `to` must be refused and leave *ret alone. */
static void assert_refused(const char *json, const char *from, const char *to) {
        const char *at = strstr(json, from);
        _cleanup_free_ char *bad = NULL;
        Machine *ret = (Machine *) &bad;

        assert_non_null(at);
        bad = malloc(strlen(json) + strlen(to) + 1);
        memcpy(bad, json, (size_t) (at - json));
        strcpy(bad + (at - json), to);
        strcat(bad, at + strlen(from));
        if (machine_from_json(bad, strlen(bad), &ret) != -EBADMSG)
                fail_msg("accepted: %s -> %s", from, to);
        assert_ptr_equal(ret, &bad);
}

static void test_damaged_input(void **state) {
        static const char *const damage[][2] = {
                { "{", "[" },
                { "\"generation\":1", "\"generation\":-1" },
                { "\"generation\":1", "\"generation\":4294967296" },
                { "\"generation\":1", "\"generation\":1.5" },
                { "\"generation\":1", "\"generation\":\"1\"" },
                { "\"generation\":1,", "" },
                { "\"generation\":1,", "\"generation\":1,\"generation\":1," },
                { "\"boot_id\":\"5ad0", "\"boot_id\":\"0000000000000000000005ad0" },
                { "\"pkg_cst_config\":\"0x8", "\"pkg_cst_config\":\"0xz" },
                { "\"has_bugs\":true", "\"has_bugs\":1" },
                { "\"cpus\":[{\"id\":0", "\"cpus\":[{\"id\":1" },
                { "\"cpus\":[{\"id\":0", "\"cpus\":[{\"id\":65536" },
                { "\"cpus\":[{\"id\":0,\"package\":0", "\"cpus\":[{\"id\":0,\"package\":2" },
                { "\"cpus\":[{\"id\":0,\"package\":0", "\"cpus\":[{\"id\":0,\"package\":1" },
                { "\"cpus\":[{\"id\":0,\"package\":0,\"core\":0", "\"cpus\":[{\"id\":0,\"package\":0,\"core\":6" },
                { "\"cpus\":[{\"id\":0,\"package\":0,\"core\":0,\"module\":null",
                        "\"cpus\":[{\"id\":0,\"package\":0,\"core\":0,\"module\":1" },
                { "\"idle_set\":0,\"ident\":0", "\"idle_set\":1,\"ident\":0" },
                { "\"idle_set\":0,\"ident\":0", "\"idle_set\":0,\"ident\":1" },
                { "\"packages\":[{\"package\":0,\"die\":-1,\"first_cpu\":0",
                        "\"packages\":[{\"package\":0,\"die\":-1,\"first_cpu\":12" },
                { "\"packages\":[{\"package\":0", "\"packages\":[{\"package\":1" },
                { "\"packages\":[{\"package\":0,\"die\":-1", "\"packages\":[{\"package\":0,\"die\":-2" },
                { "\"cores\":[{\"id\":0", "\"cores\":[{\"id\":1" },
                { "\"cores\":[{\"id\":0,\"package\":0,\"first_cpu\":0",
                        "\"cores\":[{\"id\":0,\"package\":0,\"first_cpu\":1" },
                { "\"modules\":[{\"id\":8,\"package\":1", "\"modules\":[{\"id\":8,\"package\":0" },
                { "\"offline\":[]", "\"offline\":[3,3]" },
                { "\"offline\":[]", "\"offline\":{}" },
                { "\"offline\":[]", "\"offline\":[-1]" },
                { "\"name\":\"POLL\"", "\"name\":\"POLLPOLLPOLLPOLL\"" },
                { "\"name\":\"POLL\"", "\"name\":null" },
                { "\"mwait_substates\":[0,2", "\"mwait_substates\":[2" },
                { "\"core_type\":0", "\"core_type\":3" },
                { "\"field\":\"mperf\"", "\"field\":\"mperv\"" },
                { "\"field\":\"mperf\"", "\"field\":\"c1\"" },
                { "\"field\":\"mperf\"", "\"field\":\"\"" },
                { "\"field\":\"mperf\"", "\"field\":\"energy_ram\"" },
                { "\"instance\":3", "\"instance\":16" },
                { "\"width\":64", "\"width\":0" },
                { "\"width\":64", "\"width\":65" },
                { "\"scale\":1", "\"scale\":0" },
                { "\"scale\":1", "\"scale\":-1" },
                { "\"range\":262143328851", "\"range\":9223372036854775808" },
        };
        _cleanup_(machine_freep) Machine *m = machine_full();
        _cleanup_free_ char *json = machine_to_json(m);

        for (size_t i = 0; i < ARRAY_SIZE(damage); i++)
                assert_refused(json, damage[i][0], damage[i][1]);
}

static void test_truncated_input(void **state) {
        _cleanup_(machine_freep) Machine *m = machine_full();
        _cleanup_free_ char *json = machine_to_json(m);
        Machine *ret = NULL;

        for (size_t n = 0; n < strlen(json); n += 7)
                assert_int_equal(machine_from_json(json, n, &ret), -EBADMSG);
        assert_null(ret);
}

static void test_no_cpus_is_no_machine(void **state) {
        _cleanup_(machine_freep) Machine *m = machine_new();
        _cleanup_free_ char *json = machine_to_json(m);
        Machine *ret = NULL;

        assert_int_equal(machine_validate(m), -EBADMSG);
        assert_int_equal(machine_from_json(json, strlen(json), &ret), -EBADMSG);
}

static void test_look_ups(void **state) {
        _cleanup_(machine_freep) Machine *m = machine_full();

        assert_int_equal(machine_cpu_index(m, 11), 11);
        assert_int_equal(machine_cpu_index(m, 12), UINT32_MAX);
        assert_int_equal(machine_core_index(m, 1, -1, 2), 5);
        assert_int_equal(machine_core_index(m, 1, -1, 3), UINT32_MAX);
        assert_int_equal(machine_core_index(m, 2, -1, 0), UINT32_MAX);
        assert_int_equal(machine_package_index(m, 1, -1), 1);
        assert_int_equal(machine_package_index(m, 1, 0), UINT32_MAX);
        assert_int_equal(machine_module_index(m, 1, -1, 8), 0);
        assert_int_equal(machine_state_index(m, 0, "C6"), 3);
        assert_int_equal(machine_state_index(m, 0, "C7"), -1);
        assert_int_equal(machine_state_index(m, 5, "C6"), -1);
        assert_int_equal(machine_parent(m, SCOPE_CPU, 9, SCOPE_CORE), 3);
        assert_int_equal(machine_parent(m, SCOPE_CPU, 9, SCOPE_PACKAGE), 1);
        assert_int_equal(machine_parent(m, SCOPE_CPU, 9, SCOPE_SYSTEM), 0);
        assert_int_equal(machine_parent(m, SCOPE_CPU, 3, SCOPE_MODULE), 0);
        assert_int_equal(machine_parent(m, SCOPE_CPU, 2, SCOPE_MODULE), UINT32_MAX);
        assert_int_equal(machine_parent(m, SCOPE_CORE, 4, SCOPE_PACKAGE), 1);
        assert_int_equal(machine_parent(m, SCOPE_PACKAGE, 1, SCOPE_PACKAGE), 1);
}

/* C14: ids are what the kernel says, with gaps; CPU 0 may be missing. */
static void test_c14_gaps_in_ids(void **state) {
        static const uint32_t ids[] = { 1, 8, 9, 152, 153 };
        _cleanup_(machine_freep) Machine *m = fixture_machine(1, 5, 1), *back = NULL;
        _cleanup_free_ char *json = NULL;

        for (uint32_t i = 0; i < 5; i++) {
                m->cpus[i].id = ids[i];
                m->cores[i].id = (int32_t) (i * 8);
        }
        json = machine_to_json(m);
        assert_int_equal(machine_from_json(json, strlen(json), &back), 0);
        assert_int_equal(machine_cpu_index(back, 153), 4);
        assert_int_equal(machine_cpu_index(back, 0), UINT32_MAX);
        assert_int_equal(machine_core_index(back, 0, -1, 32), 4);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_round_trip),
                cmocka_unit_test(test_damaged_input),
                cmocka_unit_test(test_truncated_input),
                cmocka_unit_test(test_no_cpus_is_no_machine),
                cmocka_unit_test(test_look_ups),
                cmocka_unit_test(test_c14_gaps_in_ids),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
