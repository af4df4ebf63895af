/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <stdbool.h>

#include "model/pkg-cst.h"

static const char *limit(uint32_t model, uint64_t msr) {
        CpuIdent c = { .vendor = "GenuineIntel", .family = 6, .model = model };
        PkgCst p;

        assert_true(pkg_cst_decode(&c, msr, &p));
        assert_int_equal(p.limit_raw, msr & 0xf);
        return p.limit;
}

static void test_limits_by_generation(void **state) {
        assert_string_equal(limit(0x2f, 3), "pc6");
        assert_string_equal(limit(0x2f, 1), "pc1");
        assert_string_equal(limit(0x2d, 2), "pc6n");
        assert_string_equal(limit(0x3c, 2), "pc3");
        assert_string_equal(limit(0x5e, 8), "unlimited");
        assert_string_equal(limit(0x55, 3), "pc6r");
        assert_string_equal(limit(0x6a, 3), "pc6"); /* not "reserved", not "pc6r" */
        assert_string_equal(limit(0x6a, 2), "pc6");
        assert_string_equal(limit(0x37, 15), "pc7");
        assert_string_equal(limit(0x4c, 0), "unlimited");
        assert_string_equal(limit(0x5c, 8), "pc10");
        assert_string_equal(limit(0x55, 7), "unlimited");
        assert_string_equal(limit(0x55, 5), "reserved");
}

static void test_bits(void **state) {
        CpuIdent c = { .vendor = "GenuineIntel", .family = 6, .model = 0x8f };
        PkgCst p;

        assert_true(pkg_cst_decode(&c, 0x1e018402, &p));
        assert_true(p.locked && p.auto_conversion && p.c1_demotion && p.c3_demotion);
        assert_true(p.has_undemotion && p.c1_undemotion && p.c3_undemotion);
        assert_true(pkg_cst_decode(&c, 0x04000000, &p));
        assert_true(p.c1_demotion);
        assert_false(p.c3_demotion || p.locked || p.auto_conversion || p.c1_undemotion);
        c.model = 0x2e; /* Nehalem has no undemotion */
        assert_true(pkg_cst_decode(&c, 0x1e008403, &p));
        assert_false(p.has_undemotion || p.c1_undemotion);
}

static void test_no_register(void **state) {
        CpuIdent amd = { .vendor = "AuthenticAMD", .family = 0x19, .model = 0x11 };
        CpuIdent dunnington = { .vendor = "GenuineIntel", .family = 6, .model = 0x1d };
        CpuIdent unknown = { .vendor = "GenuineIntel", .family = 6, .model = 0xff };
        PkgCst p;

        assert_false(pkg_cst_decode(&amd, 3, &p));
        assert_false(pkg_cst_decode(&dunnington, 3, &p));
        /* an unknown model: the raw value, no guess */
        assert_true(pkg_cst_decode(&unknown, 0x8003, &p));
        assert_null(p.limit);
        assert_int_equal(p.limit_raw, 3);
        assert_true(p.locked);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_limits_by_generation),
                cmocka_unit_test(test_bits),
                cmocka_unit_test(test_no_register),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
