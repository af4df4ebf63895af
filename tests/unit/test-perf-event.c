/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <errno.h>

#include "sampler/perf-event.h"
#include "tests/unit/sysfs-fixture.h"

static void test_event_terms(void **state) {
        uint64_t config = 7;

        assert_int_equal(perf_event_parse("event=0x02", "config:0-63", &config), 0);
        assert_int_equal(config, 2);
        assert_int_equal(perf_event_parse("event=0x14", "config:0-7", &config), 0);
        assert_int_equal(config, 0x14);
        assert_int_equal(perf_event_parse("event=0x02,umask=0x1", "config:0-7", &config), -EOPNOTSUPP);
        assert_int_equal(perf_event_parse("umask=0x02", "config:0-7", &config), -EOPNOTSUPP);
        assert_int_equal(perf_event_parse("event=0x02", "config1:0-7", &config), -EOPNOTSUPP);
        assert_int_equal(perf_event_parse("event=", "config:0-7", &config), -EOPNOTSUPP);
        assert_int_equal(config, 0x14);
}

static void test_scales(void **state) {
        double v = 7;

        assert_int_equal(perf_scale_parse("2.3283064365386962890625e-10", &v), 0);
        assert_float_equal(v * 4294967296.0, 1.0, 1e-12);
        assert_int_equal(perf_scale_parse("1.0", &v), 0);
        assert_float_equal(v, 1.0, 0);
        assert_int_equal(perf_scale_parse("2e+3", &v), 0);
        assert_float_equal(v, 2000.0, 1e-9);
        assert_int_equal(perf_scale_parse("", &v), -EINVAL);
        assert_int_equal(perf_scale_parse("e-3", &v), -EINVAL);
        assert_int_equal(perf_scale_parse("1e", &v), -EINVAL);
        assert_int_equal(perf_scale_parse("1e-9999", &v), -EINVAL);
        assert_int_equal(perf_scale_parse("-1.0", &v), -EINVAL);
        assert_int_equal(perf_scale_parse("0", &v), -EINVAL);
        assert_float_equal(v, 2000.0, 1e-9);
}

static void test_describe(void **state) {
        const PerfEventName pkg = { FIELD_ENERGY_PKG, "power", "energy-pkg" };
        const PerfEventName ram = { FIELD_ENERGY_RAM, "power", "energy-ram" };
        const PerfEventName c6 = { FIELD_C6, "cstate_core", "c6-residency" };
        Fixture f;
        PerfEvent e;

        fixture_init(&f);
        fixture_write(&f, "21\n", "sys/bus/event_source/devices/power/type");
        fixture_write(&f, "config:0-7\n", "sys/bus/event_source/devices/power/format/event");
        fixture_write(&f, "event=0x02\n", "sys/bus/event_source/devices/power/events/energy-pkg");
        fixture_write(&f, "2.3283064365386962890625e-10\n",
                "sys/bus/event_source/devices/power/events/energy-pkg.scale");
        fixture_write(&f, "22\n", "sys/bus/event_source/devices/cstate_core/type");
        fixture_write(&f, "config:0-63\n", "sys/bus/event_source/devices/cstate_core/format/event");
        fixture_write(&f, "event=0x02\n", "sys/bus/event_source/devices/cstate_core/events/c6-residency");

        assert_int_equal(perf_event_describe(f.sysfs, &pkg, &e), 0);
        assert_int_equal(e.type, 21);
        assert_int_equal(e.config, 2);
        assert_float_equal(e.scale * 4294967296.0, 1.0, 1e-12);
        assert_int_equal(perf_event_describe(f.sysfs, &c6, &e), 0);
        assert_int_equal(e.type, 22);
        assert_float_equal(e.scale, 1.0, 0);
        assert_int_equal(perf_event_describe(f.sysfs, &ram, &e), -ENOENT);
        fixture_deinit(&f);
}

/* Each field once, but for the two names of a package's residency. */
static void test_table(void **state) {
        for (size_t i = 0; i < perf_event_names_n; i++)
                for (size_t k = 0; k < i; k++)
                        if (perf_event_names[i].field == perf_event_names[k].field) {
                                assert_string_equal(perf_event_names[i].event, perf_event_names[k].event);
                                assert_string_not_equal(perf_event_names[i].pmu, perf_event_names[k].pmu);
                                assert_int_equal(
                                        field_spec(perf_event_names[i].field)->scope, SCOPE_PACKAGE);
                        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_event_terms),
                cmocka_unit_test(test_scales),
                cmocka_unit_test(test_describe),
                cmocka_unit_test(test_table),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
