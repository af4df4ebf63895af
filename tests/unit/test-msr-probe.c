/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A machine of registers in a table: 2 packages x 2 cores x 2 threads; CPU i and i + 4 share core i. */

#include "tests/unit/test.h"

#include <errno.h>
#include <stdlib.h>

#include "cstated/macro.h"
#include "sampler/msr-probe.h"
#include "tests/unit/sampler-fixture.h"

#define N   8
#define ANY UINT32_MAX

typedef struct Rule {
        uint32_t cpu, reg; /* ANY */
        int error;
        uint64_t value;
} Rule;

typedef struct Registers {
        Rule rules[16]; /* the first that fits; else a number that is not 0 */
        size_t n_rules;
        unsigned n_reads;
} Registers;

static int fake_read(void *userdata, uint32_t cpu, uint32_t reg, uint64_t *ret) {
        Registers *r = userdata;

        r->n_reads++;
        assert_true(cpu < N);
        for (size_t i = 0; i < r->n_rules; i++) {
                const Rule *rule = &r->rules[i];

                if ((rule->cpu != ANY && rule->cpu != cpu) || (rule->reg != ANY && rule->reg != reg))
                        continue;
                *ret = rule->value;
                return rule->error;
        }
        *ret = reg == MSR_TEMPERATURE_TARGET ? 95u << 16
               : reg == MSR_RAPL_UNIT        ? 0xa0e03
                                             : UINT64_C(0x12345678) + reg;
        return 0;
}

static Machine *machine(uint32_t model) {
        return fixture_machine((FixtureShape){2, 0, 2, 2}, 6, model, false);
}

static int probe(MsrSet *set, Registers *regs, Machine *m) {
        const CpuModel *models[4] = {};

        for (uint32_t i = 0; i < m->n_idents && i < ARRAY_SIZE(models); i++)
                models[i] = cpu_table_find(&m->idents[i]);
        return msr_probe(set, fake_read, regs, m, models);
}

static bool is_present(MsrSet *set, FieldId field, uint32_t e) {
        MsrColumn *c = msr_set_find(set, field);

        return c && e < c->n && c->slots[e].present;
}

static bool is_noted_absent(const MsrSet *set, uint32_t reg) {
        for (size_t i = 0; i < set->n_absent; i++)
                if (set->absent[i] == reg)
                        return true;
        return false;
}

static void test_all_there(void **state) {
        Machine *m = machine(0x55);
        Registers regs = {};
        MsrSet set;

        assert_int_equal(probe(&set, &regs, m), 0);
        assert_int_equal(set.n_absent, 0);
        for (uint32_t i = 0; i < N; i++)
                assert_true(is_present(&set, FIELD_MPERF, i) && is_present(&set, FIELD_SMI, i));
        for (uint32_t i = 0; i < 4; i++)
                assert_true(is_present(&set, FIELD_C6, i) && is_present(&set, FIELD_CORE_TEMP, i));
        for (uint32_t i = 0; i < 2; i++)
                assert_true(is_present(&set, FIELD_PC6, i) && is_present(&set, FIELD_ENERGY_RAM, i));
        assert_null(msr_set_find(&set, FIELD_C3));
        assert_null(msr_set_find(&set, FIELD_ENERGY_SYS));
        assert_float_equal(1e6 * msr_set_find(&set, FIELD_ENERGY_RAM)->scale, 15.3, 0.04);
        assert_int_equal(set.convert[1].tjmax, 95);
        assert_true(m->has_pkg_cst_config);
        assert_int_equal(m->layout.n_columns, 0);
        msr_set_deinit(&set);
        machine_free(m);
}

static void test_columns_are_grouped_by_scope(void **state) {
        Machine *m = machine(0x6a);
        Registers regs = {};
        MsrSet set;

        assert_int_equal(probe(&set, &regs, m), 0);
        for (unsigned s = 0; s < SCOPE_N; s++)
                for (size_t i = set.first[s]; i < set.first[s + 1]; i++)
                        assert_int_equal(field_spec(set.columns[i].r.field)->scope, s);
        assert_int_equal(set.first[SCOPE_N], set.n_columns);
        assert_int_equal(set.first[SCOPE_PACKAGE] - set.first[SCOPE_SYSTEM], 1); /* psys, once */
        msr_set_deinit(&set);
        machine_free(m);
}

static void test_c12_eio_drops_that_register_only(void **state) {
        Machine *m = machine(0x45);
        Registers regs = {.rules = {{ANY, MSR_PC8, -EIO, 0}}, .n_rules = 1};
        MsrSet set;

        assert_int_equal(probe(&set, &regs, m), 0);
        assert_null(msr_set_find(&set, FIELD_PC8));
        assert_int_equal(set.n_absent, 1);
        assert_true(is_noted_absent(&set, MSR_PC8));
        assert_true(is_present(&set, FIELD_PC7, 0) && is_present(&set, FIELD_PC9, 1) &&
                    is_present(&set, FIELD_PC10, 1));
        msr_set_deinit(&set);
        machine_free(m);
}

static void test_one_faulty_cpu_does_not_speak_for_its_kind(void **state) {
        Machine *m = machine(0x55);
        Registers regs = {.rules = {{0, MSR_CORE_C6, -EIO, 0}}, .n_rules = 1};
        MsrSet set;

        assert_int_equal(probe(&set, &regs, m), 0);
        assert_true(is_present(&set, FIELD_C6, 0) && is_present(&set, FIELD_C6, 3));
        msr_set_deinit(&set);
        machine_free(m);
}

static void test_packages_differ(void **state) {
        Machine *m = machine(0x55); /* package 1 is CPUs 2, 3, 6, 7; its RAM counter never counted */
        Registers regs = {
                .rules =
                        {
                                {2, MSR_ENERGY_RAM, 0, 0},
                                {3, MSR_ENERGY_RAM, 0, 0},
                                {6, MSR_ENERGY_RAM, 0, 0},
                                {7, MSR_ENERGY_RAM, 0, 0},
                        },
                .n_rules = 4,
        };
        MsrSet set;

        assert_int_equal(probe(&set, &regs, m), 0);
        assert_true(is_present(&set, FIELD_ENERGY_RAM, 0));
        assert_false(is_present(&set, FIELD_ENERGY_RAM, 1));
        assert_int_equal(msr_set_find(&set, FIELD_ENERGY_RAM)->slots[1].reason, REASON_ABSENT);
        assert_true(is_present(&set, FIELD_ENERGY_PKG, 1));
        msr_set_deinit(&set);
        machine_free(m);
}

static void test_c08_zeros_of_a_hypervisor_prove_nothing(void **state) {
        Machine *m = machine(0x55);
        Registers regs = {.rules = {{ANY, ANY, 0, 0}}, .n_rules = 1};
        MsrSet set;

        m->hypervisor = true;
        assert_int_equal(probe(&set, &regs, m), 0);
        assert_int_equal(set.n_columns, 0);
        assert_true(set.zero_in_vm);
        assert_false(m->has_pkg_cst_config);
        msr_set_deinit(&set);
        machine_free(m);
}

static void test_zero_residency_is_a_value_on_bare_metal(void **state) {
        Machine *m = machine(0x55);
        Registers regs = {
                .rules = {{ANY, MSR_PC6, 0, 0}, {ANY, MSR_ENERGY_PKG, 0, 0}, {ANY, MSR_MPERF, 0, 0}},
                .n_rules = 3};
        MsrSet set;

        assert_int_equal(probe(&set, &regs, m), 0);
        assert_true(is_present(&set, FIELD_PC6, 0)); /* never entered: the firmware's limit, perhaps */
        assert_null(msr_set_find(&set, FIELD_ENERGY_PKG));
        assert_null(msr_set_find(&set, FIELD_MPERF));
        assert_false(set.zero_in_vm);
        msr_set_deinit(&set);
        machine_free(m);
}

static void test_c25_unknown_model(void **state) {
        Machine *m = machine(0xff);
        Registers regs = {};
        MsrSet set;

        assert_int_equal(probe(&set, &regs, m), 0);
        assert_int_equal(set.n_columns, 2);
        assert_non_null(msr_set_find(&set, FIELD_MPERF));
        assert_non_null(msr_set_find(&set, FIELD_APERF));
        assert_int_equal(regs.n_reads, 3); /* TSC, MPERF, APERF: nothing model-specific was touched */
        msr_set_deinit(&set);
        machine_free(m);
}

static void test_denied_is_told(void **state) {
        Machine *m = machine(0x55);
        Registers regs = {.rules = {{ANY, ANY, -EPERM, 0}}, .n_rules = 1};
        MsrSet set;

        assert_int_equal(probe(&set, &regs, m), -EPERM);
        assert_int_equal(set.n_columns, 0);
        msr_set_deinit(&set);
        machine_free(m);
}

static void test_what_another_source_gives_is_not_asked(void **state) {
        Machine *m = machine(0x55);
        Registers regs = {};
        MsrSet set;

        assert_non_null(layout_add(&m->layout, FIELD_C6, 0));
        assert_int_equal(probe(&set, &regs, m), 0);
        assert_null(msr_set_find(&set, FIELD_C6));
        assert_non_null(msr_set_find(&set, FIELD_PC6));
        msr_set_deinit(&set);
        machine_free(m);
}

/* Numerator and denominator are read together or not at all. */
static void test_no_counter_beside_the_clock_of_another_source(void **state) {
        Machine *m = machine(0x6a);
        Registers regs = {};
        MsrSet set;

        assert_non_null(layout_add(&m->layout, FIELD_CPU_TSC, 0));
        assert_non_null(layout_add(&m->layout, FIELD_MPERF, 0));
        assert_non_null(layout_add(&m->layout, FIELD_APERF, 0));
        assert_int_equal(probe(&set, &regs, m), 0);
        assert_null(msr_set_find(&set, FIELD_C1_RES));
        assert_true(is_present(&set, FIELD_SMI, 3)); /* a count of its own */
        assert_true(is_present(&set, FIELD_C6, 3));  /* its clock is core_tsc */
        assert_true(is_present(&set, FIELD_PC6, 1));
        msr_set_deinit(&set);
        machine_free(m);
}

static void test_c11_core_types_have_their_own_registers(void **state) {
        Machine *m = machine(0x97); /* cores 2 and 3 are E cores without C7 here */
        Registers regs = {};
        MsrSet set;

        free(m->idents);
        m->idents = calloc(2, sizeof(*m->idents));
        assert_non_null(m->idents);
        m->n_idents = 2;
        for (unsigned i = 0; i < 2; i++)
                m->idents[i] = (CpuIdent){.vendor = "GenuineIntel",
                        .family = 6,
                        .model = 0x97,
                        .hybrid = true,
                        .has_aperfmperf = i == 0,
                        .core_type = i ? CORE_TYPE_EFFICIENT : CORE_TYPE_PERFORMANCE};
        for (uint32_t i = 0; i < N; i++)
                m->cpus[i].ident = m->cpus[i].core >= 2;
        assert_int_equal(probe(&set, &regs, m), 0);
        assert_true(is_present(&set, FIELD_MPERF, 0) && is_present(&set, FIELD_MPERF, 5));
        assert_false(is_present(&set, FIELD_MPERF, 2) || is_present(&set, FIELD_MPERF, 7));
        assert_false(msr_set_find(&set, FIELD_C6)->slots[0].holds_c7);
        assert_true(msr_set_find(&set, FIELD_C6)->slots[3].holds_c7);
        msr_set_deinit(&set);
        machine_free(m);
}

static void assert_base(uint32_t leaf_mhz, uint64_t platform_info, int error, uint64_t hz) {
        Machine *m = machine(0x5e);
        Registers regs = {.rules = {{ANY, MSR_PLATFORM_INFO, error, platform_info}}, .n_rules = 1};
        MsrSet set;

        m->tsc_hz = 3408000000;
        m->idents[0].base_mhz = leaf_mhz;
        assert_int_equal(probe(&set, &regs, m), 0);
        assert_int_equal(set.convert[0].tick_div, hz);
        msr_set_deinit(&set);
        machine_free(m);
}

static void test_base_clock_from_msr_or_leaf(void **state) {
        assert_base(3400, 34u << 8, 0, 3400000000);
        assert_base(0, 34u << 8, 0, 3400000000);
        assert_base(3400, 0, -EIO, 3400000000);
        assert_base(3392, 34u << 8, 0, 3392000000);
        assert_base(2400, 34u << 8, 0, 3400000000); /* the leaf speaks of another core type */
        assert_base(0, 0, -EIO, 0);                 /* unknown: no correction */
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_all_there),
                cmocka_unit_test(test_columns_are_grouped_by_scope),
                cmocka_unit_test(test_c12_eio_drops_that_register_only),
                cmocka_unit_test(test_one_faulty_cpu_does_not_speak_for_its_kind),
                cmocka_unit_test(test_packages_differ),
                cmocka_unit_test(test_c08_zeros_of_a_hypervisor_prove_nothing),
                cmocka_unit_test(test_zero_residency_is_a_value_on_bare_metal),
                cmocka_unit_test(test_c25_unknown_model),
                cmocka_unit_test(test_base_clock_from_msr_or_leaf),
                cmocka_unit_test(test_denied_is_told),
                cmocka_unit_test(test_what_another_source_gives_is_not_asked),
                cmocka_unit_test(test_no_counter_beside_the_clock_of_another_source),
                cmocka_unit_test(test_c11_core_types_have_their_own_registers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
