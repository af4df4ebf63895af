/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include "sampler/powercap-zone.h"

static void assert_zone(const char *name, ZoneDomain domain, int32_t package, int32_t die) {
        ZoneName z = zone_name_parse(name);

        assert_int_equal(z.domain, domain);
        assert_int_equal(z.package, package);
        assert_int_equal(z.die, die);
}

static void test_c06_names(void **state) {
        assert_zone("package-0", ZONE_PACKAGE, 0, -1);
        assert_zone("package-15", ZONE_PACKAGE, 15, -1);
        assert_zone("package-1-die-3", ZONE_PACKAGE, 1, 3);
        assert_zone("package-10-die-12", ZONE_PACKAGE, 10, 12);
        assert_zone("package", ZONE_PACKAGE, -1, -1);
        assert_zone("dram", ZONE_DRAM, -1, -1);
        assert_zone("core", ZONE_CORE, -1, -1);
        assert_zone("uncore", ZONE_UNCORE, -1, -1);
        assert_zone("psys", ZONE_PSYS, -1, -1);
        assert_zone("dtpm", ZONE_OPAQUE, -1, -1);
}

static void test_c06_near_misses_stay_opaque(void **state) {
        static const char *const names[] = {
                "",
                "package-",
                "package-x",
                "package-0-",
                "package-0-die-",
                "package-0-die-x",
                "package-0-die-1-2",
                "package-99999999999",
                "package--1",
                "packages",
                "drams",
                "Package-0",
                "package-0 ",
        };

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                assert_zone(names[i], ZONE_OPAQUE, -1, -1);
}

static void test_directories(void **state) {
        assert_int_equal(zone_control("intel-rapl:0"), ZONE_CONTROL_RAPL);
        assert_int_equal(zone_control("intel-rapl-mmio:0:1"), ZONE_CONTROL_RAPL_MMIO);
        assert_int_equal(zone_control("intel-rapl-tpmi:1"), ZONE_CONTROL_RAPL_TPMI);
        assert_int_equal(zone_control("dtpm:0"), ZONE_CONTROL_OTHER);
        assert_true(zone_is_dir("intel-rapl:0"));
        assert_true(zone_is_dir("intel-rapl:0:12"));
        assert_false(zone_is_dir("intel-rapl"));
        assert_false(zone_is_dir(":0"));
        assert_false(zone_is_dir("intel-rapl:x"));
        assert_true(zone_is_child("intel-rapl:0:1", "intel-rapl:0"));
        assert_false(zone_is_child("intel-rapl:10", "intel-rapl:1"));
        assert_false(zone_is_child("intel-rapl:1:0:0", "intel-rapl:1"));
        assert_false(zone_is_child("intel-rapl-mmio:0:0", "intel-rapl:0"));
}

static void test_fields(void **state) {
        assert_int_equal(zone_field(ZONE_PACKAGE), FIELD_ENERGY_PKG);
        assert_int_equal(zone_field(ZONE_PSYS), FIELD_ENERGY_SYS);
        assert_int_equal(zone_field(ZONE_OPAQUE), FIELD_NONE);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_c06_names),
                cmocka_unit_test(test_c06_near_misses_stay_opaque),
                cmocka_unit_test(test_directories),
                cmocka_unit_test(test_fields),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
