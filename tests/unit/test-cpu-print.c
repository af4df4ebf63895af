/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "client/cpu-print.h"

/* What is printed of a JSON text; the caller's. */
static char *printed(const char *json) {
        json_error_t error;
        json_t *root = json_loads(json, 0, &error);
        char *text = NULL;
        size_t n;
        FILE *f;

        if (!root)
                fail_msg("%s", error.text);
        f = open_memstream(&text, &n);
        assert_non_null(f);
        assert_int_equal(cpu_print(root, f), 0);
        assert_int_equal(fclose(f), 0);
        json_decref(root);
        return text;
}

static void test_machine(void **state) {
        char *text = printed(
                "{\"cpus\":[{\"vendor\":\"GenuineIntel\",\"family\":6,\"model\":47,\"stepping\":2,\"brand\":"
                "\"E7- 4807\","
                "\"uarch\":\"Westmere-EX\",\"hypervisor\":false,\"hybrid\":false,\"core_type\":null,"
                "\"count\":24,"
                "\"microcode\":55,\"monitor\":true,\"mwait\":{\"interrupt_break\":true,\"substates\":[0,2,1,"
                "1,0,0,0,0]},"
                "\"aperfmperf\":true,\"invariant_tsc\":true,\"tsc_hz\":1866000000,\"errata\":["
                "{\"id\":\"clflush_monitor\",\"status\":\"unmitigated\",\"advice\":\"Update the kernel.\"},"
                "{\"id\":\"monitor\",\"status\":\"not-affected\",\"advice\":\"Fine.\"}]}],\"kernel\":\"3.10."
                "0\","
                "\"topology\":{\"cpus\":24,\"cores\":12,\"online\":\"0-23\",\"offline\":\"\",\"packages\":[{"
                "},{}]},"
                "\"idle\":{\"driver\":\"intel_idle\",\"governor\":\"menu\",\"sets\":[{\"cpus\":\"0-23\","
                "\"core_type\":null,\"states\":[{\"name\":\"C6\",\"desc\":\"MWAIT 0x20\",\"mwait_hint\":32,"
                "\"exit_latency_us\":200,\"target_residency_us\":800,\"disabled\":true}]}]},"
                "\"pkg_cst\":{\"limit\":null,\"limit_raw\":9,\"locked\":true,\"c1_demotion\":true}}");

        assert_non_null(strstr(text, "E7- 4807\n"));
        assert_non_null(strstr(
                text, "Westmere-EX, GenuineIntel family 6 model 47 (0x2f) stepping 2, microcode 0x37\n"));
        assert_non_null(strstr(text, "24 CPUs\n"));
        assert_non_null(
                strstr(text, "MONITOR/MWAIT, sub-states C1:2 C2:1 C3:1, breaks on masked interrupts\n"));
        assert_non_null(strstr(text, "TSC 1866.000 MHz"));
        assert_non_null(strstr(text, "erratum clflush_monitor: UNMITIGATED\n    Update the kernel.\n"));
        assert_non_null(strstr(text, "erratum monitor: not-affected\n"));
        assert_null(strstr(text, "Fine."));
        assert_non_null(strstr(text, "2 packages, 12 cores, 24 CPUs online (0-23)\n"));
        assert_non_null(strstr(text, "idle states by intel_idle, governor menu\n"));
        assert_non_null(strstr(text, "0x20"));
        assert_non_null(strstr(text, "disabled"));
        assert_non_null(
                strstr(text, "limit value 9 (meaning unknown) (locked), C1 demotion on, C3 demotion off\n"));
        free(text);
}

/* Nulls and missing keys print nothing made up. */
static void test_dump(void **state) {
        char *text =
                printed("{\"cpus\":[{\"vendor\":\"GenuineIotel\",\"family\":6,\"model\":47,\"stepping\":2,"
                        "\"brand\":null,\"uarch\":null,\"monitor\":false,\"mwait\":null,\"tsc_hz\":null,"
                        "\"microcode\":null,\"count\":1,\"errata\":[]}]}");

        assert_string_equal(text, "(no brand string)\n"
                                  "  unknown model, GenuineIotel family 6 model 47 (0x2f) stepping 2\n"
                                  "  1 CPU\n"
                                  "  no MONITOR/MWAIT\n");
        free(text);
}

static void test_mwait_without_leaf(void **state) {
        char *text = printed("{\"cpus\":[{\"monitor\":true,\"mwait\":{\"interrupt_break\":false,\"substates\":[0,0]}}]}");

        assert_non_null(strstr(text, "  MONITOR/MWAIT\n"));
        free(text);
}

static void test_advice_is_wrapped(void **state) {
        char *text =
                printed("{\"cpus\":[{\"errata\":[{\"id\":\"x\",\"status\":\"unknown\",\"advice\":\""
                        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb "
                        "cccccccccccccccccccccccccccccc dddddd\"}]}]}");

        for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
                assert_true(strcspn(line, "\n") < 80);
        assert_non_null(strstr(text, "\n    bbbb"));
        assert_non_null(strstr(text, " cccccccccccccccccccccccccccccc\n    dddddd\n"));
        free(text);
}

/* A limit that may not be read is not a limit that is not there. */
static void test_limit_is_denied(void **state) {
        char *text = printed("{\"cpus\":[],\"pkg_cst\":null,\"reasons\":{\"pkg_cst\":\"denied\"}}");

        assert_non_null(strstr(text, "package C-state limit unknown: reading it is denied"));
        free(text);
        text = printed("{\"cpus\":[],\"pkg_cst\":null,\"reasons\":{\"pkg_cst\":\"absent\"}}");
        assert_null(strstr(text, "package C-state limit"));
        free(text);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_machine),
                cmocka_unit_test(test_dump),
                cmocka_unit_test(test_mwait_without_leaf),
                cmocka_unit_test(test_advice_is_wrapped),
                cmocka_unit_test(test_limit_is_denied),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
