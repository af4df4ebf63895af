/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "api/cpu-json.h"
#include "model/errata.h"

/* A hybrid: CPUs 0-3 P cores with SMT, 4-5 E cores in one module, CPU 6 offline. */
static void hybrid_fill(Machine *m) {
        static MachineCpu cpus[6] = {
                { .id = 0 },
                { .id = 1, .thread = 1 },
                { .id = 2, .core = 1 },
                { .id = 3, .core = 1, .thread = 1 },
                { .id = 4, .core = 2, .ident = 1, .idle_set = 1 },
                { .id = 5, .core = 3, .ident = 1, .idle_set = 1 },
        };
        static MachineCore cores[4];
        static MachinePackage packages[1] = { { .package = 0, .die = -1 } };
        static IdleSet sets[2] = {
                {.n_states = 2,
                        .states =
                                {
                                        {.name = "POLL",
                                                .desc = "CPUIDLE CORE POLL IDLE",
                                                .mwait_hint = -1,
                                                .is_poll = true},
                                        {.name = "C10",
                                                .desc = "MWAIT 0x60",
                                                .exit_latency_us = 230,
                                                .target_residency_us = 700,
                                                .mwait_hint = 0x60,
                                                .disabled = true},
                                }},
                {.n_states = 1, .states = {{.name = "POLL", .mwait_hint = -1, .is_poll = true}}},
        };
        static CpuIdent idents[2];
        static uint32_t offline[1] = { 6 };

        idents[0] = (CpuIdent){
                .vendor = "GenuineIntel",
                .brand = "12th Gen Intel(R) Core(TM)",
                .uarch = "Alder Lake",
                .family = 6,
                .model = 0x97,
                .stepping = 2,
                .signature = 0x90672,
                .hybrid = true,
                .has_monitor = true,
                .has_clflush = true,
                .mwait_smallest = 64,
                .mwait_largest = 64,
                .mwait_substates = { 0, 2, 0, 2, 0, 1, 0, 1 },
                .tsc_ratio_den = 2,
                .tsc_ratio_num = 166,
                .crystal_hz = 38400000,
                .core_type = CORE_TYPE_PERFORMANCE,
                .microcode = 0x2c,
        };
        idents[1] = idents[0];
        idents[1].core_type = CORE_TYPE_EFFICIENT;
        (void) snprintf(m->kernel, sizeof(m->kernel), "6.1.0");
        (void) snprintf(m->idle_driver, sizeof(m->idle_driver), "intel_idle");
        (void) snprintf(m->idle_governor, sizeof(m->idle_governor), "menu");
        (void) snprintf(m->bugs, sizeof(m->bugs), "spectre_v1 swapgs");
        m->has_bugs = true;
        m->tsc_hz = 3187000000;
        m->n_cpus = 6;
        m->n_cores = 4;
        m->n_packages = 1;
        m->n_idle_sets = 2;
        m->n_idents = 2;
        m->n_offline = 1;
        m->cpus = cpus;
        m->cores = cores;
        m->packages = packages;
        m->idle_sets = sets;
        m->idents = idents;
        m->offline = offline;
}

static Reason unread = REASON_NONE;

static json_t *json_of(const Machine *m) {
        JsonWriter j = JSON_WRITER_INIT;
        json_error_t error;
        json_t *root;

        assert_int_equal(cpu_json_write(&j, m, unread), 0);
        root = json_loads(j.buf, JSON_REJECT_DUPLICATES, &error);
        if (!root)
                fail_msg("%s in %s", error.text, j.buf);
        jw_deinit(&j);
        return root;
}

static json_t *at(json_t *o, const char *path) {
        char copy[128], *save = NULL;

        (void) snprintf(copy, sizeof(copy), "%s", path);
        for (char *p = strtok_r(copy, ".", &save); p; p = strtok_r(NULL, ".", &save)) {
                o = json_is_array(o) ? json_array_get(o, (size_t) (p[0] - '0')) : json_object_get(o, p);
                if (!o)
                        fail_msg("no %s", path);
        }
        return o;
}

#define assert_text(o, path, s) assert_string_equal(json_string_value(at(o, path)), s)
#define assert_number(o, path, n) assert_int_equal(json_integer_value(at(o, path)), n)

static void test_hybrid(void **state) {
        Machine m = {};
        json_t *root;

        hybrid_fill(&m);
        root = json_of(&m);
        assert_int_equal(json_array_size(at(root, "cpus")), 2);
        assert_number(root, "cpus.0.family", 6);
        assert_number(root, "cpus.0.model", 0x97);
        assert_number(root, "cpus.0.count", 4);
        assert_number(root, "cpus.1.count", 2);
        assert_text(root, "cpus.0.core_type", "performance");
        assert_text(root, "cpus.1.core_type", "efficient");
        assert_number(root, "cpus.0.tsc_hz", 3187000000); /* as measured */
        assert_number(root, "cpus.0.mwait.substates.1", 2);
        assert_true(json_is_true(at(root, "cpus.0.hybrid")));
        assert_true(json_is_null(at(root, "cpus.0.base_mhz")));
        assert_text(root, "bugs.1", "swapgs");
        assert_text(root, "topology.online", "0-5");
        assert_text(root, "topology.offline", "6");
        assert_text(root, "topology.packages.0.cpus", "0-5");
        assert_number(root, "topology.threads_per_core", 2);
        assert_true(json_is_null(at(root, "topology.packages.0.die")));
        json_decref(root);
}

static void test_idle_inventory_by_core_type(void **state) {
        Machine m = {};
        json_t *root;

        hybrid_fill(&m);
        root = json_of(&m);
        assert_text(root, "idle.driver", "intel_idle");
        assert_text(root, "idle.governor", "menu");
        assert_text(root, "idle.sets.0.cpus", "0-3");
        assert_text(root, "idle.sets.1.cpus", "4-5");
        assert_text(root, "idle.sets.1.core_type", "efficient");
        assert_int_equal(json_array_size(at(root, "idle.sets.0.states")), 2);
        assert_true(json_is_null(at(root, "idle.sets.0.states.0.mwait_hint")));
        assert_number(root, "idle.sets.0.states.1.mwait_hint", 0x60);
        assert_number(root, "idle.sets.0.states.1.exit_latency_us", 230);
        assert_true(json_is_true(at(root, "idle.sets.0.states.1.disabled")));
        json_decref(root);
        m.cpus[4].idle_set = 0; /* a set of both types belongs to none */
        root = json_of(&m);
        assert_true(json_is_null(at(root, "idle.sets.0.core_type")));
        assert_text(root, "idle.sets.1.core_type", "efficient");
        json_decref(root);
        m.cpus[4].idle_set = 1;
        m.n_idle_sets = 0;
        m.idle_driver[0] = '\0';
        root = json_of(&m);
        assert_true(json_is_null(at(root, "idle.driver")));
        assert_int_equal(json_array_size(at(root, "idle.sets")), 0);
        json_decref(root);
}

/* A u64 never passes through a double. */
static void test_u64(void **state) {
        JsonWriter j = JSON_WRITER_INIT;
        Machine m = {};

        hybrid_fill(&m);
        m.tsc_hz = UINT64_MAX;
        assert_int_equal(cpu_json_write(&j, &m, REASON_NONE), 0);
        assert_non_null(strstr(j.buf, "\"tsc_hz\":18446744073709551615"));
        jw_deinit(&j);
}

static void check_errata(const Machine *m, const char *clflush, const char *monitor, const char *icx) {
        json_t *root = json_of(m);

        assert_int_equal(json_array_size(at(root, "cpus.0.errata")), ERRATUM_N);
        assert_text(root, "cpus.0.errata.0.id", "clflush_monitor");
        assert_text(root, "cpus.0.errata.0.status", clflush);
        assert_text(root, "cpus.0.errata.1.id", "monitor");
        assert_text(root, "cpus.0.errata.1.status", monitor);
        assert_text(root, "cpus.0.errata.2.id", "icx143");
        assert_text(root, "cpus.0.errata.2.status", icx);
        json_decref(root);
}

static void test_every_erratum_is_listed(void **state) {
        Machine m = {};

        hybrid_fill(&m);
        check_errata(&m, "not-affected", "not-affected", "not-affected");
        m.idents[0].model = 0x2f;
        check_errata(&m, "unmitigated", "not-affected", "not-affected");
        (void) snprintf(m.bugs, sizeof(m.bugs), "clflush_monitor");
        check_errata(&m, "mitigated", "not-affected", "not-affected");
        m.has_bugs = false;
        check_errata(&m, "unknown", "not-affected", "not-affected");
        m.idents[0].model = 0x6a;
        check_errata(&m, "not-affected", "not-affected", "advisory");
}

static void test_summary(void **state) {
        ErratumProblem problems[ERRATUM_N];
        Machine m = {};

        hybrid_fill(&m);
        assert_int_equal(errata_summary(&m, problems), 0);
        m.idents[0].model = m.idents[1].model = 0xbd;
        assert_int_equal(errata_summary(&m, problems), 1); /* once, though both core types have it */
        assert_int_equal(problems[0].id, ERRATUM_MONITOR);
        assert_non_null(strstr(problems[0].text, "06_BDH"));
        assert_non_null(strstr(problems[0].text, "6.1.0"));
        m.has_bugs = false;
        assert_int_equal(errata_summary(&m, problems), 0);
}

static void test_pkg_cst(void **state) {
        Machine m = {};
        json_t *root;

        hybrid_fill(&m);
        root = json_of(&m);
        assert_true(json_is_null(at(root, "pkg_cst")));
        assert_text(root, "reasons.pkg_cst", "absent");
        json_decref(root);
        unread = REASON_DENIED; /* not there and not allowed to look are two answers */
        root = json_of(&m);
        assert_text(root, "reasons.pkg_cst", "denied");
        json_decref(root);
        unread = REASON_NONE;
        m.hypervisor = true;
        root = json_of(&m);
        assert_text(root, "reasons.pkg_cst", "vm");
        json_decref(root);
        m.has_pkg_cst_config = true;
        m.pkg_cst_config = 0x04008003;
        root = json_of(&m);
        assert_text(root, "pkg_cst.limit", "pc6");
        assert_true(json_is_true(at(root, "pkg_cst.locked")));
        assert_true(json_is_true(at(root, "pkg_cst.c1_demotion")));
        assert_true(json_is_false(at(root, "pkg_cst.c3_demotion")));
        assert_null(json_object_get(root, "reasons"));
        json_decref(root);
        m.idents[0].model = 0xff;
        root = json_of(&m);
        assert_true(json_is_null(at(root, "pkg_cst.limit")));
        assert_number(root, "pkg_cst.limit_raw", 3);
        json_decref(root);
        (void) snprintf(m.idents[0].vendor, sizeof(m.idents[0].vendor), "AuthenticAMD");
        root = json_of(&m);
        assert_text(root, "reasons.pkg_cst", "not-applicable");
        json_decref(root);
}

static void test_dump(void **state) {
        CpuidDumpGroup g = {.ident = {.vendor = "GenuineIntel",
                                    .family = 6,
                                    .model = 0x2f,
                                    .has_clflush = true,
                                    .n_cpus = 24}};
        JsonWriter j = JSON_WRITER_INIT;
        json_t *root;

        assert_int_equal(cpu_json_write_dump(&j, &g, 1), 0);
        root = json_loads(j.buf, 0, NULL);
        assert_non_null(root);
        assert_number(root, "cpus.0.count", 24);
        assert_text(root, "cpus.0.errata.0.status", "unknown");
        assert_true(json_is_null(at(root, "cpus.0.mwait")));
        assert_true(json_is_null(at(root, "cpus.0.uarch")));
        assert_null(json_object_get(root, "idle"));
        json_decref(root);
        jw_deinit(&j);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_hybrid),
                cmocka_unit_test(test_idle_inventory_by_core_type),
                cmocka_unit_test(test_u64),
                cmocka_unit_test(test_every_erratum_is_listed),
                cmocka_unit_test(test_summary),
                cmocka_unit_test(test_pkg_cst),
                cmocka_unit_test(test_dump),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
