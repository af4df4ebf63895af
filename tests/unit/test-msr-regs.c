/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Registers, units and decoding by model. Values of 0x606 are what such machines have: ESU 14 or 16, time
 * unit 10. */

#include "tests/unit/test.h"

#include "cstated/macro.h"
#include "sampler/msr-regs.h"

#define UNIT_61UJ 0x000a0e03u /* 2^-14 J, 2^-10 s */

static CpuIdent intel(uint32_t model) {
        CpuIdent c = {.vendor = "GenuineIntel",
                .family = 6,
                .model = model,
                .has_aperfmperf = true,
                .has_dts = true,
                .has_pkg_dts = true,
                .invariant_tsc = true};

        return c;
}

static const MsrRegister *find(const MsrRegister *regs, size_t n, FieldId field) {
        for (size_t i = 0; i < n; i++)
                if (regs[i].field == field)
                        return &regs[i];
        return NULL;
}

static double scale(uint32_t model, FieldId field, uint64_t unit) {
        CpuIdent c = intel(model);
        const CpuModel *row = cpu_table_find(&c);

        assert_non_null(row);
        return msr_scale(field, row, unit);
}

static void test_c04_dram_unit_by_model(void **state) {
        static const uint32_t fixed[] = {0x3f, 0x4f, 0x55, 0x57, 0x85, 0x6a, 0x6c};
        static const uint32_t from_register[] = {0x3c, 0x8f, 0xcf, 0xad, 0x5e};

        for (size_t i = 0; i < ARRAY_SIZE(fixed); i++) {
                assert_float_equal(1e6 * scale(fixed[i], FIELD_ENERGY_RAM, UNIT_61UJ), 15.3, 0.04);
                assert_float_equal(1e6 * scale(fixed[i], FIELD_ENERGY_PKG, UNIT_61UJ), 61.035, 0.001);
        }
        for (size_t i = 0; i < ARRAY_SIZE(from_register); i++)
                assert_float_equal(
                        1e6 * scale(from_register[i], FIELD_ENERGY_RAM, UNIT_61UJ), 61.035, 0.001);
}

static void test_psys_and_silvermont_units(void **state) {
        assert_float_equal(scale(0x8f, FIELD_ENERGY_SYS, UNIT_61UJ), 1.0, 0);
        assert_float_equal(1e6 * scale(0x5e, FIELD_ENERGY_SYS, UNIT_61UJ), 61.035, 0.001);
        assert_float_equal(1e6 * scale(0x37, FIELD_ENERGY_PKG, 0x00000505), 32.0, 1e-9); /* 2^5 uJ */
}

static void test_throttle_counts_time_units(void **state) {
        assert_float_equal(scale(0x55, FIELD_PKG_THROTTLE, UNIT_61UJ), 1.0 / 1024, 0);
        assert_float_equal(scale(0x55, FIELD_C6, UNIT_61UJ), 1.0, 0);
}

static void test_amd_has_its_own_registers(void **state) {
        CpuIdent c = {.vendor = "AuthenticAMD",
                .family = 0x17,
                .model = 0x31,
                .has_aperfmperf = true,
                .amd_rapl = true};
        const CpuModel *row = cpu_table_find(&c);
        MsrRegister regs[MSR_REGISTERS_MAX];
        size_t n;

        assert_non_null(row);
        n = msr_registers(&c, row, regs);
        assert_int_equal(n, 4);
        assert_int_equal(find(regs, n, FIELD_ENERGY_CORE)->reg, 0xC001029A);
        assert_int_equal(find(regs, n, FIELD_ENERGY_PKG)->reg, 0xC001029B);
        assert_int_equal(msr_unit_register(&c, row), 0xC0010299);
        assert_float_equal(1e6 * msr_scale(FIELD_ENERGY_PKG, row, 0xA1003), 15.2588, 0.0001);

        c.amd_rapl = false; /* a hypervisor that hides it */
        assert_int_equal(msr_registers(&c, row, regs), 2);
        assert_int_equal(msr_unit_register(&c, row), 0);
}

static void test_c25_unknown_model_is_architectural_only(void **state) {
        CpuIdent c = intel(0xff);
        MsrRegister regs[MSR_REGISTERS_MAX];

        assert_null(cpu_table_find(&c));
        assert_int_equal(msr_registers(&c, NULL, regs), 2);
        assert_int_equal(regs[0].reg, MSR_MPERF);
        assert_int_equal(regs[1].reg, MSR_APERF);
        c.has_aperfmperf = false;
        assert_int_equal(msr_registers(&c, NULL, regs), 0);
        assert_int_equal(msr_unit_register(&c, NULL), 0);
}

static void test_registers_of_models(void **state) {
        MsrRegister regs[MSR_REGISTERS_MAX];
        CpuIdent c = intel(0x55);
        size_t n = msr_registers(&c, cpu_table_find(&c), regs);

        assert_null(find(regs, n, FIELD_C3));
        assert_null(find(regs, n, FIELD_C1_RES));
        assert_int_equal(find(regs, n, FIELD_C6)->reg, MSR_CORE_C6);
        assert_int_equal(find(regs, n, FIELD_PC2)->reg, MSR_PC2);
        assert_non_null(find(regs, n, FIELD_SMI));
        assert_non_null(find(regs, n, FIELD_CORE_TEMP));

        c = intel(0x57);
        n = msr_registers(&c, cpu_table_find(&c), regs);
        assert_int_equal(find(regs, n, FIELD_C6)->reg, MSR_KNL_CORE_C6);
        assert_int_equal(find(regs, n, FIELD_APERF)->decode, MSR_DECODE_TICK_1024);

        c = intel(0x37);
        n = msr_registers(&c, cpu_table_find(&c), regs);
        assert_int_equal(find(regs, n, FIELD_PC6)->reg, MSR_PC7);

        c = intel(0x1d); /* Dunnington: no counter at all, but APERF */
        n = msr_registers(&c, cpu_table_find(&c), regs);
        assert_null(find(regs, n, FIELD_C6));
        assert_null(find(regs, n, FIELD_SMI));
}

static uint64_t decode(const MsrConvert *c, FieldId field, MsrDecode d, uint64_t raw) {
        MsrRegister r = {.field = field, .decode = d};
        uint64_t v = 0;

        assert_int_equal(msr_decode(c, &r, raw, &v), REASON_NONE);
        return v;
}

static void test_decode(void **state) {
        const MsrConvert c = {.tjmax = 96};
        const MsrRegister temp = {.field = FIELD_CORE_TEMP, .decode = MSR_DECODE_CORE_TEMP};
        uint64_t v = 7;

        assert_int_equal(decode(&c, FIELD_SMI, MSR_DECODE_PLAIN, 0xdead00000005), 5);
        assert_int_equal(decode(&c, FIELD_ENERGY_PKG, MSR_DECODE_PLAIN, 0x1ffffffff), 0xffffffff);
        assert_int_equal(decode(&c, FIELD_C6, MSR_DECODE_TICK, UINT64_C(1) << 60), UINT64_C(1) << 60);
        assert_int_equal(decode(&c, FIELD_APERF, MSR_DECODE_TICK_1024, 3), 3072);
        assert_int_equal(decode(&c, FIELD_CORE_TEMP, MSR_DECODE_CORE_TEMP, 0x80000000u | 30u << 16), 66);
        assert_int_equal(
                (int64_t) decode(&c, FIELD_CORE_TEMP, MSR_DECODE_CORE_TEMP, 0x80000000u | 120u << 16), -24);
        assert_int_equal(decode(&c, FIELD_PKG_TEMP, MSR_DECODE_PKG_TEMP, 30u << 16), 66);
        assert_int_equal(msr_decode(&c, &temp, 30u << 16, &v), REASON_ERROR); /* not marked valid */
        assert_int_equal(v, 7);
}

static void test_tweak_turns_base_ticks_into_tsc_ticks(void **state) {
        CpuIdent skl = intel(0x5e), skx = intel(0x55);
        MsrConvert c = {};

        msr_convert_set_tweak(&c, cpu_table_find(&skx), 3408000000, 3400000000);
        assert_int_equal(c.tick_div, 0); /* servers count in TSC ticks */
        msr_convert_set_tweak(&c, cpu_table_find(&skl), 3408000000, 1700000000);
        assert_int_equal(c.tick_div, 0); /* half the clock is a misread ratio */
        msr_convert_set_tweak(&c, cpu_table_find(&skl), 3408000000, 3400000000);
        assert_int_equal(decode(&c, FIELD_MPERF, MSR_DECODE_TICK, 3400000000u), 3408000000u);
        assert_int_equal(
                decode(&c, FIELD_MPERF, MSR_DECODE_TICK, UINT64_C(3400) << 50), UINT64_C(3408) << 50);
        assert_int_equal(decode(&c, FIELD_APERF, MSR_DECODE_PLAIN, 3400000000u), 3400000000u);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_c04_dram_unit_by_model),
                cmocka_unit_test(test_psys_and_silvermont_units),
                cmocka_unit_test(test_throttle_counts_time_units),
                cmocka_unit_test(test_amd_has_its_own_registers),
                cmocka_unit_test(test_c25_unknown_model_is_architectural_only),
                cmocka_unit_test(test_registers_of_models),
                cmocka_unit_test(test_decode),
                cmocka_unit_test(test_tweak_turns_base_ticks_into_tsc_ticks),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
