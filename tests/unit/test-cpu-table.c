/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include "cstated/macro.h"
#include "model/cpu-table.h"

static const CpuModel *find(uint32_t family, uint32_t model, uint32_t stepping, CpuCoreType type) {
        CpuIdent c = {
                .vendor = "GenuineIntel",
                .family = family,
                .model = model,
                .stepping = stepping,
                .core_type = type,
        };

        return cpu_table_find(&c);
}

static const CpuModel *intel(uint32_t model) {
        return find(6, model, 2, CORE_TYPE_NONE);
}

static void test_nehalem_and_westmere(void **state) {
        static const uint32_t models[] = { 0x1a, 0x1e, 0x1f, 0x2e, 0x25, 0x2c, 0x2f };

        for (size_t i = 0; i < ARRAY_SIZE(models); i++) {
                const CpuModel *m = intel(models[i]);

                assert_int_equal(m->core, CPU_HAS_C3 | CPU_HAS_C6);
                assert_int_equal(m->package, CPU_HAS_PC3 | CPU_HAS_PC6);
                assert_int_equal(m->rapl, 0);
                assert_int_equal(m->bclk_khz, 133333);
        }
        assert_int_equal(intel(0x1d)->core, 0);
        assert_true(intel(0x1d)->quirks & CPU_QUIRK_NO_SMI);
}

/* Only ULT has PC8 to PC10 (C12). */
static void test_haswell(void **state) {
        assert_false(intel(0x3c)->package & CPU_HAS_PC8);
        assert_true(intel(0x45)->package & CPU_HAS_PC10);
}

/* C04: the DRAM unit by model. */
static void test_dram_unit(void **state) {
        static const uint32_t fixed[] = { 0x3f, 0x4f, 0x55, 0x57, 0x85, 0x6a, 0x6c };
        static const uint32_t by_register[] = { 0x3c, 0x2d, 0x3e, 0x8f, 0xcf, 0xad, 0xaf };

        for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
                assert_true(intel(fixed[i])->quirks & CPU_QUIRK_DRAM_15UJ);
        for (size_t i = 0; i < ARRAY_SIZE(by_register); i++)
                assert_false(intel(by_register[i])->quirks & CPU_QUIRK_DRAM_15UJ);
        assert_true(intel(0x8f)->quirks & CPU_QUIRK_PSYS_1J);
        assert_false(intel(0x6a)->quirks & CPU_QUIRK_PSYS_1J);
        assert_true(intel(0x37)->quirks & CPU_QUIRK_RAPL_POW2_UJ);
}

static void test_one_number_three_cores(void **state) {
        assert_string_equal(find(6, 0x55, 4, CORE_TYPE_NONE)->uarch, "Skylake-X");
        assert_string_equal(find(6, 0x55, 7, CORE_TYPE_NONE)->uarch, "Cascade Lake-X");
        assert_string_equal(find(6, 0x55, 11, CORE_TYPE_NONE)->uarch, "Cooper Lake-X");
        assert_int_equal(find(6, 0x55, 11, CORE_TYPE_NONE)->core, CPU_HAS_C6);
}

static void test_crystals(void **state) {
        assert_int_equal(intel(0x5e)->crystal_hz, 24000000);
        assert_int_equal(intel(0x5c)->crystal_hz, 19200000);
        assert_int_equal(intel(0x5f)->crystal_hz, 25000000);
        assert_int_equal(intel(0x55)->crystal_hz, 0);
}

static void test_newest(void **state) {
        assert_int_equal(find(19, 1, 0, CORE_TYPE_NONE)->rapl, 0);
        assert_int_equal(find(19, 1, 0, CORE_TYPE_NONE)->core, CPU_HAS_C1_MSR | CPU_HAS_C6 | CPU_HAS_MC6);
        assert_true(find(18, 3, 0, CORE_TYPE_EFFICIENT)->quirks & CPU_QUIRK_C6_INCLUDES_C7);
        assert_int_equal(intel(0xb6)->package, 0);
        assert_null(find(19, 0x2f, 2, CORE_TYPE_NONE));
        assert_null(find(5, 0x2f, 2, CORE_TYPE_NONE));
}

static void test_amd_ranges(void **state) {
        CpuIdent c = { .vendor = "AuthenticAMD", .family = 0x17, .model = 0x4f };

        assert_string_equal(cpu_table_find(&c)->uarch, "Zen 2");
        assert_int_equal(cpu_table_find(&c)->rapl, CPU_RAPL_AMD);
        assert_int_equal(cpu_table_find(&c)->core, 0);
        c.model = 0xb0;
        assert_null(cpu_table_find(&c));
        c.family = 0x1b;
        assert_null(cpu_table_find(&c));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nehalem_and_westmere),
                cmocka_unit_test(test_haswell),
                cmocka_unit_test(test_dram_unit),
                cmocka_unit_test(test_one_number_three_cores),
                cmocka_unit_test(test_crystals),
                cmocka_unit_test(test_newest),
                cmocka_unit_test(test_amd_ranges),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
