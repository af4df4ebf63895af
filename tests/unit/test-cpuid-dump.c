/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "model/cpuid-dump.h"
#include "model/errata.h"

#define BLANKS "                                "
#define CORPUS FIXTURES "/../fuzz/corpus/cpuid-dump/"

/* Feeds a corpus file in small pieces and finishes; the dump is the caller's. */
static int dump_file(const char *name, CpuidDump **ret) {
        _cleanup_(fclosep) FILE *f = NULL;
        char path[512], piece[37];
        CpuidDump *d = cpuid_dump_new();
        size_t n;
        int r = 0;

        assert_non_null(d);
        (void) snprintf(path, sizeof(path), CORPUS "%s", name);
        f = fopen(path, "re");
        assert_non_null(f);
        while (r == 0 && (n = fread(piece, 1, sizeof(piece), f)) > 0)
                r = cpuid_dump_feed(d, piece, n);
        if (r == 0)
                r = cpuid_dump_finish(d);
        *ret = d;
        return r;
}

static ErratumStatus clflush_status(const CpuidDumpGroup *g) {
        return erratum_classify(ERRATUM_CLFLUSH_MONITOR, &g->ident, g->has_bugs ? g->bugs : NULL);
}

static void test_raw(void **state) {
        _cleanup_(cpuid_dump_freep) CpuidDump *d = NULL;
        const CpuidDumpGroup *g;
        size_t n;

        assert_int_equal(dump_file("e7-4807.txt", &d), 0);
        g = cpuid_dump_groups(d, &n);
        assert_int_equal(n, 1);
        assert_int_equal(g->ident.n_cpus, 1);
        assert_int_equal(g->ident.signature, 0x206f2);
        assert_string_equal(g->ident.uarch, "Westmere-EX");
        assert_string_equal(g->ident.brand, "Intel(R) Xeon(R) CPU E7- 4807  @ 1.87GHz");
        assert_true(g->ident.has_monitor);
        assert_false(g->has_bugs);
        assert_int_equal(clflush_status(g), ERRATUM_UNKNOWN);
}

static void test_raw_groups(void **state) {
        _cleanup_(cpuid_dump_freep) CpuidDump *d = NULL, *h = NULL, *old = NULL;
        const CpuidDumpGroup *g;
        size_t n;

        assert_int_equal(dump_file("nehalem-ex.txt", &d), 0);
        g = cpuid_dump_groups(d, &n);
        assert_int_equal(n, 1);
        assert_int_equal(g->ident.n_cpus, 2);
        assert_string_equal(g->ident.uarch, "Nehalem-EX");

        assert_int_equal(dump_file("hybrid.txt", &h), 0);
        g = cpuid_dump_groups(h, &n);
        assert_int_equal(n, 2);
        assert_int_equal(g[0].ident.core_type, CORE_TYPE_PERFORMANCE);
        assert_int_equal(g[0].ident.n_cpus, 2);
        assert_int_equal(g[1].ident.core_type, CORE_TYPE_EFFICIENT);
        assert_int_equal(g[1].ident.n_cpus, 1);

        assert_int_equal(dump_file("no-subleaf-no-header.txt", &old), 0);
        g = cpuid_dump_groups(old, &n);
        assert_int_equal(n, 1);
        assert_int_equal(g->ident.n_cpus, 2);
        assert_string_equal(g->ident.uarch, "P6 (Katmai)");
}

static void test_cpuinfo(void **state) {
        _cleanup_(cpuid_dump_freep) CpuidDump *d = NULL, *old = NULL, *shanghai = NULL;
        const CpuidDumpGroup *g;
        size_t n;

        assert_int_equal(dump_file("cpuinfo-westmere-ex.txt", &d), 0);
        g = cpuid_dump_groups(d, &n);
        assert_int_equal(n, 1);
        assert_int_equal(g->ident.n_cpus, 2);
        assert_int_equal(g->ident.signature, 0x206f2);
        assert_int_equal(g->ident.microcode, 0x37);
        assert_int_equal(g->ident.max_leaf, 11);
        assert_string_equal(g->ident.uarch, "Westmere-EX");
        assert_string_equal(g->ident.brand, "Intel(R) Xeon(R) CPU E7- 4807  @ 1.87GHz");
        assert_true(
                g->ident.has_monitor && g->ident.has_clflush && g->ident.has_dts && g->ident.invariant_tsc);
        assert_false(g->ident.has_pkg_dts || g->ident.hypervisor);
        assert_int_equal(clflush_status(g), ERRATUM_MITIGATED);

        /* no bugs line at all; "monitor" among the flags says nothing */
        assert_int_equal(dump_file("cpuinfo-old-kernel.txt", &old), 0);
        g = cpuid_dump_groups(old, &n);
        assert_int_equal(clflush_status(g), ERRATUM_UNKNOWN);

        assert_int_equal(dump_file("cpuinfo-shanghai.txt", &shanghai), 0);
        g = cpuid_dump_groups(shanghai, &n);
        assert_string_equal(g->ident.vendor, "  Shanghai  ");
        assert_int_equal(g->ident.model, 0x3b);
        assert_string_equal(g->ident.uarch, "LuJiaZui");
        assert_true(g->has_bugs && g->ident.hypervisor);
}

static void test_bad_dumps_name_their_line(void **state) {
        static const struct {
                const char *file, *line;
        } table[] = {
                { "empty.txt", "line 1: " },
                { "binary.bin", "line 1: " },
                { "broken-off-in-a-line.txt", "line 20: " },
                { "broken-off-between-lines.txt", "line 20: " },
                { "cpuinfo-broken-off.txt", "line 20: " },
                { "cpuinfo-arm.txt", "line 5: " },
                { "decoded.txt", "line 2: " },
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                _cleanup_(cpuid_dump_freep) CpuidDump *d = NULL;

                assert_int_equal(dump_file(table[i].file, &d), -EBADMSG);
                assert_non_null(cpuid_dump_error(d));
                if (strncmp(cpuid_dump_error(d), table[i].line, strlen(table[i].line)) != 0)
                        fail_msg("%s: %s", table[i].file, cpuid_dump_error(d));
                assert_int_equal(cpuid_dump_feed(d, "CPU 0:\n", 7), -EBADMSG);
                assert_int_equal(cpuid_dump_finish(d), -EBADMSG);
        }
}

/* Memory is what cpuid_dump_new() took, whatever comes. */
static void test_endless_input(void **state) {
        static const char *const pieces[] = {
                BLANKS BLANKS BLANKS BLANKS "\n", "CPU 0:\n", "xxxxxxxx", "processor : 0\n"};
        static char block[1 << 16];

        for (size_t p = 0; p < ARRAY_SIZE(pieces); p++) {
                _cleanup_(cpuid_dump_freep) CpuidDump *d = cpuid_dump_new();
                size_t n = strlen(pieces[p]), length = sizeof(block) / n * n, fed = 0;
                int r = 0;

                for (size_t i = 0; i < length; i++)
                        block[i] = pieces[p][i % n];
                while (r == 0 && fed < 100u << 20) {
                        r = cpuid_dump_feed(d, block, length);
                        fed += length;
                }
                assert_int_equal(r, -EBADMSG);
                assert_true(fed <= CPUID_DUMP_BYTES_MAX + length);
        }
}

static void test_too_many_kinds(void **state) {
        _cleanup_(cpuid_dump_freep) CpuidDump *d = cpuid_dump_new();
        int r = 0;
        unsigned i;

        for (i = 0; r == 0 && i < 200; i++) {
                char text[256];
                int n = snprintf(text, sizeof(text),
                        "processor : %u\nvendor_id : X\ncpu family : 6\nmodel : %u\nflags : a\n\n", i, i);

                r = cpuid_dump_feed(d, text, (size_t) n);
        }
        assert_int_equal(r, -EBADMSG);
        assert_int_equal(i, CPUID_DUMP_GROUPS_MAX + 1);
}

static void test_numbers_out_of_range(void **state) {
        static const char *const texts[] = {
                "processor : 0\nvendor_id : X\ncpu family : 6\nmodel : 256\nflags : a\n\n",
                "processor : 0\nvendor_id : X\ncpu family : -6\nmodel : 1\nflags : a\n\n",
                "processor : 0\nvendor_id : X\ncpu family : 99999999999\nmodel : 1\nflags : a\n\n",
                "CPU 0:\n 0x000000000 0x00: eax=0x00000001 ebx=0x00000000 ecx=0x00000000 edx=0x00000000\n",
                "CPU 0:\n 0x00000000 0x00: eax=0x00000001 ebx=0x00000000 ecx=0x00000000 edx=0x0000000\n",
                "CPU 0:\n 0x00000000 0x00: eax=0x00000001 ebx=0x00000000 ecx=0x00000000 edx=0x00000000 x\n",
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                _cleanup_(cpuid_dump_freep) CpuidDump *d = cpuid_dump_new();

                assert_int_equal(cpuid_dump_feed(d, texts[i], strlen(texts[i])), -EBADMSG);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_raw),
                cmocka_unit_test(test_raw_groups),
                cmocka_unit_test(test_cpuinfo),
                cmocka_unit_test(test_bad_dumps_name_their_line),
                cmocka_unit_test(test_endless_input),
                cmocka_unit_test(test_too_many_kinds),
                cmocka_unit_test(test_numbers_out_of_range),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
