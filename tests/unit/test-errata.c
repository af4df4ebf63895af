/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <stdbool.h>
#include <stdio.h>

#include "cstated/macro.h"
#include "model/errata.h"
#include "tests/unit/fake-cpuid.h"

#define MONITOR (1u << 3)
#define CLFLUSH (1u << 19)

static CpuIdent cpu(const char *vendor, uint32_t signature, uint32_t ecx1, uint32_t edx1) {
        FakeCpuid f;
        CpuIdent c;

        fake_init(&f, vendor, 0xb, signature);
        *fake_leaf(&f, 1) = (CpuidRegs){ .eax = signature, .ecx = ecx1, .edx = edx1 };
        cpuid_decode(fake_read, &f, &c);
        return c;
}

/* The machine of the 2014 report: E7-4807, Westmere-EX A2. */
static void test_e7_4807(void **state) {
        CpuIdent c = cpu("GenuineIntel", 0x000206f2, MONITOR, CLFLUSH);

        assert_string_equal(c.uarch, "Westmere-EX");
        assert_int_equal(c.stepping, 2);
        assert_int_equal(erratum_classify(ERRATUM_CLFLUSH_MONITOR, &c, "clflush_monitor cpu_meltdown\n"),
                ERRATUM_MITIGATED);
        assert_int_equal(erratum_classify(ERRATUM_CLFLUSH_MONITOR, &c, "cpu_meltdown clflush_monitor"),
                ERRATUM_MITIGATED);
        assert_int_equal(erratum_classify(ERRATUM_CLFLUSH_MONITOR, &c, "cpu_meltdown spectre_v1"),
                ERRATUM_UNMITIGATED);
        assert_int_equal(erratum_classify(ERRATUM_CLFLUSH_MONITOR, &c, ""), ERRATUM_UNMITIGATED);
        assert_int_equal(erratum_classify(ERRATUM_CLFLUSH_MONITOR, &c, NULL), ERRATUM_UNKNOWN);
        assert_int_equal(erratum_classify(ERRATUM_MONITOR, &c, "monitor"), ERRATUM_NOT_AFFECTED);
}

/* A part of a token is no token: "monitor" stands inside "clflush_monitor". */
static void test_whole_tokens(void **state) {
        CpuIdent goldmont = cpu("GenuineIntel", 0x000506c9, MONITOR, CLFLUSH);
        CpuIdent dunnington = cpu("GenuineIntel", 0x000106d1, MONITOR, CLFLUSH);

        assert_int_equal(erratum_classify(ERRATUM_MONITOR, &goldmont, "clflush_monitor spectre_v1"),
                ERRATUM_UNMITIGATED);
        assert_int_equal(
                erratum_classify(ERRATUM_MONITOR, &goldmont, "monitor2 monito"), ERRATUM_UNMITIGATED);
        assert_int_equal(
                erratum_classify(ERRATUM_MONITOR, &goldmont, "spectre_v1\tmonitor"), ERRATUM_MITIGATED);
        assert_int_equal(erratum_classify(ERRATUM_CLFLUSH_MONITOR, &dunnington, "monitor clflush_monitor_x"),
                ERRATUM_UNMITIGATED);
}

static void test_exactly_these_models(void **state) {
        for (uint32_t model = 0; model <= 0xff; model++) {
                CpuIdent c =
                        cpu("GenuineIntel", 0x600 | (model & 0xf) << 4 | model >> 4 << 16, MONITOR, CLFLUSH);
                bool clflush = model == 0x1d || model == 0x2e || model == 0x2f;
                bool monitor = model == 0x5c || model == 0xbd;

                assert_int_equal(c.model, model);
                assert_int_equal(erratum_classify(ERRATUM_CLFLUSH_MONITOR, &c, NULL),
                                 clflush ? ERRATUM_UNKNOWN : ERRATUM_NOT_AFFECTED);
                assert_int_equal(erratum_classify(ERRATUM_MONITOR, &c, NULL),
                                 monitor ? ERRATUM_UNKNOWN : ERRATUM_NOT_AFFECTED);
                assert_int_equal(erratum_classify(ERRATUM_ICX143, &c, NULL),
                                 model == 0x6a ? ERRATUM_ADVISORY : ERRATUM_NOT_AFFECTED);
        }
}

/* Firmware that hides MONITOR: CLFLUSH decides for one erratum, MWAIT for the other, as in the kernel. */
static void test_monitor_hidden(void **state) {
        CpuIdent c = cpu("GenuineIntel", 0x000206f2, 0, CLFLUSH);

        assert_false(c.has_monitor);
        assert_int_equal(erratum_classify(ERRATUM_CLFLUSH_MONITOR, &c, ""), ERRATUM_UNMITIGATED);
        c = cpu("GenuineIntel", 0x000206f2, MONITOR, 0);
        assert_int_equal(erratum_classify(ERRATUM_CLFLUSH_MONITOR, &c, ""), ERRATUM_NOT_AFFECTED);
        c = cpu("GenuineIntel", 0x000506c9, 0, CLFLUSH);
        assert_int_equal(erratum_classify(ERRATUM_MONITOR, &c, ""), ERRATUM_NOT_AFFECTED);
        c = cpu("GenuineIntel", 0x000b06d1, MONITOR, CLFLUSH);
        assert_int_equal(erratum_classify(ERRATUM_MONITOR, &c, "monitor"), ERRATUM_MITIGATED);
}

/* The kernel sets its bit by model in virtual machines too. */
static void test_virtual_nehalem_ex(void **state) {
        CpuIdent c = cpu("GenuineIntel", 0x000206e6, 1u << 31, CLFLUSH);

        assert_true(c.hypervisor);
        assert_string_equal(c.uarch, "Nehalem-EX");
        assert_int_equal(
                erratum_classify(ERRATUM_CLFLUSH_MONITOR, &c, "clflush_monitor"), ERRATUM_MITIGATED);
        assert_int_equal(erratum_classify(ERRATUM_CLFLUSH_MONITOR, &c, "spectre_v1"), ERRATUM_UNMITIGATED);
}

static void test_other_vendors(void **state) {
        static const char *const vendors[] = {
                "GenuineIotel", "AuthenticAMD", "CentaurHauls", "  Shanghai  "};

        for (size_t i = 0; i < ARRAY_SIZE(vendors); i++) {
                CpuIdent c = cpu(vendors[i], 0x000206f2, MONITOR, CLFLUSH);

                for (unsigned e = 0; e < ERRATUM_N; e++)
                        assert_int_equal(erratum_classify((ErratumId) e, &c, "clflush_monitor monitor"),
                                ERRATUM_NOT_AFFECTED);
        }
}

static void test_every_status_has_words(void **state) {
        for (unsigned e = 0; e < ERRATUM_N; e++)
                for (unsigned s = ERRATUM_NOT_AFFECTED; s <= ERRATUM_ADVISORY; s++) {
                        assert_true(strlen(erratum_advice((ErratumId) e, (ErratumStatus) s)) > 20);
                        assert_non_null(erratum_status_name((ErratumStatus) s));
                }
        assert_string_equal(erratum_name(ERRATUM_CLFLUSH_MONITOR), "clflush_monitor");
        assert_string_equal(erratum_status_name(ERRATUM_NOT_AFFECTED), "not-affected");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_e7_4807),
                cmocka_unit_test(test_whole_tokens),
                cmocka_unit_test(test_exactly_these_models),
                cmocka_unit_test(test_monitor_hidden),
                cmocka_unit_test(test_virtual_nehalem_ex),
                cmocka_unit_test(test_other_vendors),
                cmocka_unit_test(test_every_status_has_words),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
