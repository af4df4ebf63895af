/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/om-history.h"

static const OmHistoryFamily joules = { .name = "x_joules", .unit = "joules", .help = "Energy." };
static const OmHistoryFamily plain = { .name = "x_celsius", .gauge = true, .help = "Heat." };

static int write(const OmHistoryFamily *f, const OmHistoryMetric *m, const char *body, char **ret) {
        bool has_head = false;
        char *copy = strdup(body);
        size_t size;
        FILE *out = open_memstream(ret, &size);
        int r = om_history_write(f, m, copy, 10000, &has_head, out);

        assert_int_equal(fclose(out), 0);
        assert_int_equal(has_head, r > 0);
        free(copy);
        return r;
}

static void check(const OmHistoryFamily *f, const OmHistoryMetric *m, const char *body, int n, const char *want) {
        char *text;

        assert_int_equal(write(f, m, body, &text), n);
        assert_string_equal(text, want);
        free(text);
}

/* Rows come step by step, series stay together; a null adds nothing and is no point. */
static void test_counter(void **state) {
        const OmHistoryMetric m = { .metric = "pkg_watts", .scope = "package", .label = "zone", .value = "package" };

        check(&joules, &m,
                "time,metric,scope,package,die,module,core,cpu,state,sum,method,reason\n"
                "20000,pkg_watts,package,0,,,,,,400.5,,\n20000,pkg_watts,package,1,2,,,,,100,,\n"
                "30000,pkg_watts,package,0,,,,,,,,gap\n30000,pkg_watts,package,1,2,,,,,100,,\n"
                "40000,pkg_watts,package,0,,,,,,1.25,,\n",
                4,
                "# TYPE x_joules counter\n# UNIT x_joules joules\n# HELP x_joules Energy.\n"
                "x_joules_total{package=\"0\",zone=\"package\"} 0 20.000\n"
                "x_joules_total{package=\"0\",zone=\"package\"} 400.5 30.000\n"
                "x_joules_total{package=\"0\",zone=\"package\"} 401.75 50.000\n"
                "x_joules_total{package=\"1\",die=\"2\",zone=\"package\"} 0 20.000\n"
                "x_joules_total{package=\"1\",die=\"2\",zone=\"package\"} 100 30.000\n"
                "x_joules_total{package=\"1\",die=\"2\",zone=\"package\"} 200 40.000\n");
}

static void test_share(void **state) {
        const OmHistoryMetric m = { .metric = "c6", .scope = "core", .mean = true, .share = true };

        check(&joules, &m, "time,metric,package,core,mean\n20000,c6,0,3,50\n30000,c6,0,3,100\n", 2,
                "# TYPE x_joules counter\n# UNIT x_joules joules\n# HELP x_joules Energy.\n"
                "x_joules_total{package=\"0\",core=\"3\"} 0 20.000\n"
                "x_joules_total{package=\"0\",core=\"3\"} 5 30.000\n"
                "x_joules_total{package=\"0\",core=\"3\"} 15 40.000\n");
}

/* A daemon that began within a step measured only a part of it. */
static void test_part_of_a_step(void **state) {
        const OmHistoryMetric m = { .metric = "c6", .scope = "core", .mean = true, .share = true };

        check(&joules, &m, "time,core,mean,count\n20000,3,80,5\n30000,3,80,10\n", 2,
                "# TYPE x_joules counter\n# UNIT x_joules joules\n# HELP x_joules Energy.\n"
                "x_joules_total{core=\"3\"} 0 20.000\nx_joules_total{core=\"3\"} 4 30.000\n"
                "x_joules_total{core=\"3\"} 12 40.000\n");
}

static void test_gauge(void **state) {
        const OmHistoryMetric m = { .metric = "pkg_temp", .scope = "system", .mean = true };

        check(&plain, &m, "time,mean\r\n1796085334123,45.5\r\n", 1,
                "# TYPE x_celsius gauge\n# HELP x_celsius Heat.\nx_celsius 45.5 1796085344.123\n");
}

static void test_nothing(void **state) {
        const OmHistoryMetric m = { .metric = "c7", .scope = "core" };
        static const char *const bad[] = { "", "time,mean\n", "sum\n", "time,sum\nnoon,5\n", "time,sum\n,5\n" };
        char *text;

        check(&joules, &m, "time,sum\n", 0, "");
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                assert_int_equal(write(&joules, &m, bad[i], &text), -EBADMSG);
                free(text);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_counter),
                cmocka_unit_test(test_share),
                cmocka_unit_test(test_part_of_a_step),
                cmocka_unit_test(test_gauge),
                cmocka_unit_test(test_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
