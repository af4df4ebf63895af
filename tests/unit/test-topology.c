/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <errno.h>

#include "sampler/topology.h"
#include "tests/unit/sysfs-fixture.h"

#define CPU "sys/devices/system/cpu"

static int setup(void **state) {
        static Fixture f;

        fixture_init(&f);
        *state = &f;
        return 0;
}

static int teardown(void **state) {
        fixture_deinit(*state);
        return 0;
}

/* Whatever sysfs says, the machine made of it must pass the reader at the other end of the wire. */
static Machine *read_machine(Fixture *f) {
        _cleanup_(machine_freep) Machine *there = NULL;
        _cleanup_free_ char *json = NULL;
        Machine *m = NULL;

        assert_int_equal(topology_read(f->sysfs, NULL, &m), 0);
        json = machine_to_json(m);
        assert_non_null(json);
        assert_int_equal(machine_from_json(json, strlen(json), &there), 0);
        assert_int_equal(there->n_cores, m->n_cores);
        return m;
}

/* -1 where firmware or a hypervisor tells nothing, ids that are not small, a CPU whose files are missing. */
static void test_odd_ids(void **state) {
        static const int odd[] = { -1, 0, 65535, 1000000, -1 };
        _cleanup_(machine_freep) Machine *m = NULL;
        Fixture *f = *state;

        fixture_write(f, "0-5\n", CPU "/online");
        for (unsigned i = 0; i < 5; i++)
                fixture_cpu(f, i, odd[i], odd[(i + 1) % 5], odd[(i + 2) % 5], odd[(i + 3) % 5]);
        m = read_machine(f);
        assert_int_equal(m->n_cpus, 6);
        assert_int_equal(m->n_packages, 4);
        for (uint32_t i = 0; i < m->n_cpus; i++) {
                assert_true(m->cpus[i].package < m->n_packages);
                assert_true(m->cpus[i].core < m->n_cores);
        }
}

static void test_no_online_list(void **state) {
        Machine *m = NULL;

        assert_int_equal(topology_read(((Fixture *) *state)->sysfs, NULL, &m), -ENOENT);
        assert_null(m);
}

/* Gaps, no CPU 0, SMT siblings far apart, core ids that repeat in each package (C14). */
static void test_ids_have_gaps(void **state) {
        static const unsigned ids[] = { 1, 8, 9, 152, 153 };
        static const int packages[] = { 0, 0, 1, 0, 1 }, cores[] = { 0, 4, 4, 0, 4 };
        _cleanup_(machine_freep) Machine *m = NULL;
        Fixture *f = *state;

        fixture_write(f, "1,8-9,152-153\n", CPU "/online");
        fixture_write(f, "0-1,8-9,152-155\n", CPU "/present");
        for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
                fixture_cpu(f, ids[i], packages[i], 0, cores[i], cores[i] * 4);
        m = read_machine(f);
        assert_int_equal(m->n_cpus, 5);
        assert_int_equal(m->n_cores, 3);
        assert_int_equal(m->n_packages, 2);
        assert_int_equal(m->n_modules, 0); /* clusters of one core */
        assert_int_equal(m->n_offline, 3);
        assert_int_equal(m->offline[0], 0);
        assert_int_equal(m->offline[2], 155);
        assert_int_equal(machine_cpu_index(m, 153), 4);
        assert_int_equal(machine_cpu_index(m, 0), UINT32_MAX);
        assert_int_equal(m->packages[1].package, 1);
        assert_int_equal(m->packages[1].die, -1);
        assert_int_equal(m->packages[1].first_cpu, 2);
        assert_int_equal(m->cores[m->cpus[0].core].id, 0);
        assert_int_equal(m->cpus[3].core, m->cpus[0].core); /* 152 is 1's sibling */
        assert_int_equal(m->cpus[3].thread, 1);
        assert_int_equal(m->cpus[4].core, m->cpus[2].core);
        assert_int_not_equal(m->cpus[1].core, m->cpus[2].core); /* core 4 of both packages */
        assert_int_equal(m->cpus[0].module, UINT32_MAX);
        assert_int_equal(m->cpus[0].idle_set, UINT16_MAX);
        assert_int_equal(m->layout.n_entities[SCOPE_CPU], 5);
        assert_int_equal(m->layout.n_entities[SCOPE_CORE], 3);
        assert_int_equal(m->layout.n_entities[SCOPE_PACKAGE], 2);
}

static void test_no_topology_at_all(void **state) {
        _cleanup_(machine_freep) Machine *m = NULL;
        Fixture *f = *state;

        fixture_write(f, "0-2\n", CPU "/online");
        m = read_machine(f);
        assert_int_equal(m->n_packages, 1);
        assert_int_equal(m->n_cores, 3);
        assert_int_equal(m->n_idents, 1);
        assert_false(m->has_bugs);
}

/* Two dies a package: Intel counts by die. */
static void test_intel_dies(void **state) {
        _cleanup_(machine_freep) Machine *m = NULL;
        Fixture *f = *state;

        fixture_write(f, "0-7\n", CPU "/online");
        fixture_cpuid(f, 0, "GenuineIntel");
        for (unsigned i = 0; i < 8; i++)
                fixture_cpu(f, i, (int) i / 4, (int) i / 2 % 2, (int) i % 2, -2);
        m = read_machine(f);
        assert_string_equal(m->idents[0].vendor, "GenuineIntel");
        assert_int_equal(m->n_packages, 4);
        assert_int_equal(m->packages[3].package, 1);
        assert_int_equal(m->packages[3].die, 1);
        assert_int_equal(m->packages[3].first_cpu, 6);
        assert_int_equal(m->n_cores, 8);
        assert_int_equal(machine_core_index(m, 1, 1, 0), m->cpus[6].core);
}

/* AMD counts by package, whatever the dies; cores whose ids repeat between dies stay apart. */
static void test_amd_dies(void **state) {
        _cleanup_(machine_freep) Machine *m = NULL;
        Fixture *f = *state;

        fixture_write(f, "0-7\n", CPU "/online");
        fixture_cpuid(f, 0, "AuthenticAMD");
        for (unsigned i = 0; i < 8; i++)
                fixture_cpu(f, i, 0, (int) i / 2, (int) i % 2, -2);
        m = read_machine(f);
        assert_int_equal(m->n_packages, 1);
        assert_int_equal(m->packages[0].die, -1);
        assert_int_equal(m->n_cores, 8);
}

/* One die a package is no die, also where its number is not 0. */
static void test_single_dies(void **state) {
        _cleanup_(machine_freep) Machine *m = NULL;
        Fixture *f = *state;

        fixture_write(f, "0-1\n", CPU "/online");
        fixture_cpuid(f, 0, "GenuineIntel");
        fixture_cpu(f, 0, 0, 0, 0, -2);
        fixture_cpu(f, 1, 1, 1, 0, -2);
        m = read_machine(f);
        assert_int_equal(m->n_packages, 2);
        assert_int_equal(m->packages[0].die, -1);
        assert_int_equal(m->packages[1].die, -1);
}

/* A hybrid client: P cores with SMT and an L2 each, E cores four to a module; types from the PMUs. */
static void test_modules_and_core_types(void **state) {
        _cleanup_(machine_freep) Machine *m = NULL;
        Fixture *f = *state;

        fixture_write(f, "0-11\n", CPU "/online");
        for (unsigned i = 0; i < 12; i++)
                fixture_cpu(f, i, 0, 0, i < 4 ? (int) i / 2 * 4 : (int) i + 4,
                        i < 4   ? (int) i / 2 * 8
                        : i < 8 ? 16
                                : 24);
        m = read_machine(f);
        assert_int_equal(m->n_cores, 10);
        assert_int_equal(m->n_modules, 2);
        assert_int_equal(m->modules[0].id, 16);
        assert_int_equal(m->modules[0].first_cpu, 4);
        assert_int_equal(m->modules[1].id, 24);
        assert_int_equal(m->cpus[0].module, UINT32_MAX);
        assert_int_equal(m->cpus[7].module, 0);
        assert_int_equal(m->cpus[8].module, 1);
}

static void test_cluster_that_means_nothing(void **state) {
        _cleanup_(machine_freep) Machine *m = NULL;
        Fixture *f = *state;

        fixture_write(f, "0-3\n", CPU "/online");
        for (unsigned i = 0; i < 4; i++)
                fixture_cpu(f, i, 0, 0, (int) i, i < 2 ? 65535 : -1);
        m = read_machine(f);
        assert_int_equal(m->n_modules, 0);
}

static void test_kernels_words(void **state) {
        _cleanup_(machine_freep) Machine *m = NULL;
        Fixture *f = *state;

        fixture_write(f, "0\n", CPU "/online");
        fixture_write(f,
                "processor\t: 0\nmicrocode\t: 0x37\nbugs\t\t: clflush_monitor mds\nbogomips\t: "
                "1\n\nprocessor\t: 1\n",
                "proc/cpuinfo");
        fixture_write(f, "node7\n", "proc/sys/kernel/hostname");
        fixture_write(f, "6.1.0-test\n", "proc/sys/kernel/osrelease");
        fixture_write(f, "f3b1a2c4-0000-4000-8000-000000000001\n", "proc/sys/kernel/random/boot_id");
        m = read_machine(f);
        assert_true(m->has_bugs);
        assert_string_equal(m->bugs, "clflush_monitor mds");
        assert_int_equal(m->idents[0].microcode, 0x37);
        assert_string_equal(m->host, "node7");
        assert_string_equal(m->kernel, "6.1.0-test");
        assert_int_equal(strlen(m->boot_id), 36);
}

static void test_empty_bugs_line(void **state) {
        _cleanup_(machine_freep) Machine *m = NULL;
        Fixture *f = *state;

        fixture_write(f, "0\n", CPU "/online");
        fixture_write(f, "processor\t: 0\nbugs\t\t:\nbugs_of_mine\t: monitor\n\n", "proc/cpuinfo");
        m = read_machine(f);
        assert_true(m->has_bugs);
        assert_string_equal(m->bugs, "");
}

static void test_watch(void **state) {
        TopologyWatch w = TOPOLOGY_WATCH_INIT;
        Fixture *f = *state;
        uint64_t h;

        fixture_write(f, "0-3\n", CPU "/online");
        fixture_write(f, "intel_idle\n", CPU "/cpuidle/current_driver");
        topology_watch_init(&w, f->sysfs);
        h = topology_watch_read(&w);
        assert_true(topology_watch_read(&w) == h);
        fixture_write(f, "0-2\n", CPU "/online");
        assert_true(topology_watch_read(&w) != h);
        fixture_write(f, "0-3\n", CPU "/online");
        assert_true(topology_watch_read(&w) == h);
        fixture_write(f, "acpi_idle\n", CPU "/cpuidle/current_driver");
        assert_true(topology_watch_read(&w) != h);
        topology_watch_deinit(&w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_no_online_list, setup, teardown),
                cmocka_unit_test_setup_teardown(test_ids_have_gaps, setup, teardown),
                cmocka_unit_test_setup_teardown(test_odd_ids, setup, teardown),
                cmocka_unit_test_setup_teardown(test_no_topology_at_all, setup, teardown),
                cmocka_unit_test_setup_teardown(test_intel_dies, setup, teardown),
                cmocka_unit_test_setup_teardown(test_amd_dies, setup, teardown),
                cmocka_unit_test_setup_teardown(test_single_dies, setup, teardown),
                cmocka_unit_test_setup_teardown(test_modules_and_core_types, setup, teardown),
                cmocka_unit_test_setup_teardown(test_cluster_that_means_nothing, setup, teardown),
                cmocka_unit_test_setup_teardown(test_kernels_words, setup, teardown),
                cmocka_unit_test_setup_teardown(test_empty_bugs_line, setup, teardown),
                cmocka_unit_test_setup_teardown(test_watch, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
