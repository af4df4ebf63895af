/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <stdlib.h>

#include "api/openmetrics.h"
#include "cstated/api.h"
#include "cstated/timespan.h"
#include "tests/unit/machine-fixture.h"
#include "tests/unit/world.h"

#define BASE_US (1700000040ULL * USEC_PER_SEC)

static void write_sample(OpenMetrics *o) {
        om_family(o, "x_nothing", FAMILY_GAUGE, NULL, "Never seen.");
        om_family(o, "x_energy_joules", FAMILY_COUNTER, "joules", "Energy.");
        om_line(o);
        om_label(o, "zone", "a\\b\"c\nd");
        om_label_id(o, "die", -1);
        om_label_id(o, "package", 0);
        om_value(o, 1234567.0625);
        om_family(o, "x_build", FAMILY_INFO, NULL, "Version.");
        om_line(o);
        om_count(o, 1);
}

static void test_dialects(void **state) {
        JsonWriter j = JSON_WRITER_INIT;
        OpenMetrics o = { .j = &j };

        write_sample(&o);
        assert_string_equal(j.buf,
                "# HELP x_energy_joules_total Energy.\n"
                "# TYPE x_energy_joules_total counter\n"
                "x_energy_joules_total{zone=\"a\\\\b\\\"c\\nd\",package=\"0\"} 1234567.0625\n"
                "# HELP x_build_info Version.\n"
                "# TYPE x_build_info gauge\n"
                "x_build_info 1\n");
        jw_deinit(&j);
        o.is_open = true;
        write_sample(&o);
        assert_string_equal(j.buf,
                "# HELP x_energy_joules Energy.\n"
                "# TYPE x_energy_joules counter\n"
                "# UNIT x_energy_joules joules\n"
                "x_energy_joules_total{zone=\"a\\\\b\\\"c\\nd\",package=\"0\"} 1234567.0625\n"
                "# HELP x_build Version.\n"
                "# TYPE x_build info\n"
                "x_build_info 1\n");
        jw_deinit(&j);
}

static void test_accept(void **state) {
        assert_false(om_accepted(NULL));
        assert_false(om_accepted("*/*"));
        assert_false(om_accepted("text/plain;version=0.0.4;q=0.3,*/*;q=0.2"));
        assert_true(om_accepted("application/openmetrics-text"));
        assert_true(om_accepted("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3"));
        assert_false(om_accepted("application/openmetrics-text;q=0,text/plain"));
        assert_false(om_accepted("application/openmetrics-text;q=0.0"));
}

static char *metrics(World *w, const char *query) {
        Service s;
        int status;
        char *text;

        world_service(w, &s);
        text = world_get(&s, "GET", API_ROUTE_METRICS, query, NULL, true, &status, NULL);
        assert_int_equal(status, 200);
        return text;
}

static void assert_line(const char *text, const char *line) {
        const char *p = strstr(text, line);

        if (!p || p == text || p[-1] != '\n')
                fail_msg("no line \"%s\" in:\n%s", line, text);
}

/* A CPU that goes takes its own series with it and leaves the sums of its package where they are. */
static void test_hotplug(void **state) {
        char *text;
        World w;

        world_open(&w, NULL, BASE_US, USEC_PER_SEC);
        for (uint32_t i = 0; i < 8; i++)
                world_set(&w, FIELD_IRQ, 0, i, 10 * (i + 1));
        for (uint32_t p = 0; p < 2; p++)
                world_set(&w, FIELD_ENERGY_PKG, 0, p, 16384 * 50);
        world_set(&w, FIELD_IDLE_USAGE, 3, 5, 25);
        world_ticks(&w, 3);
        text = metrics(&w, "scope=cpu");
        assert_line(text, "cstated_package_interrupts_total{package=\"0\"} 420\n"); /* CPUs 0, 1, 4, 5 */
        assert_line(text, "cstated_cpu_interrupts_total{cpu=\"5\"} 180\n");
        assert_line(text, "cstated_rapl_joules_total{package=\"1\",zone=\"package\"} 150\n");
        assert_line(text, "cstated_cpuidle_state_usage_total{cpu=\"5\",state=\"C6\"} 75\n");
        assert_line(text, "cstated_package_idle_wakeups_total{package=\"0\",cause=\"unknown\"} 75\n");
        assert_line(text, "cstated_source_up{source=\"msr\"} 0\n");
        assert_null(strstr(text, "cstated_module_"));
        free(text);
        world_change(&w, fixture_unplug(world_machine(), 5));
        world_ticks(&w, 1);
        text = metrics(&w, "scope=cpu");
        assert_line(text, "cstated_package_interrupts_total{package=\"0\"} 420\n");
        assert_line(text, "cstated_package_cpus{package=\"0\"} 3\n");
        assert_line(text, "cstated_package_idle_wakeups_total{package=\"0\",cause=\"unknown\"} 75\n");
        assert_null(strstr(text, "cpu=\"5\""));
        free(text);
        text = metrics(&w, NULL);
        assert_null(strstr(text, "cpu=\""));
        assert_null(strstr(text, "core=\""));
        free(text);
        world_close(&w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_dialects),
                cmocka_unit_test(test_accept),
                cmocka_unit_test(test_hotplug),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
