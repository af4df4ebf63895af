/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "cstated/macro.h"
#include "cstated/num.h"
#include "model/cpu-table.h"
#include "model/errata.h"
#include "tests/unit/fake-cpuid.h"

enum {
        COL_ID,
        COL_VENDOR,
        COL_MAX_LEAF,
        COL_SIGNATURE,
        COL_FAMILY,
        COL_MODEL_SDM,
        COL_MODEL,
        COL_STEPPING,
        COL_LEAD,
        COL_BRAND,
        COL_ECX1,
        COL_EDX1,
        COL_HYPERVISOR,
        COL_EAX5,
        COL_EBX5,
        COL_ECX5,
        COL_EDX5,
        COL_EAX6,
        COL_ECX6,
        COL_EDX7,
        COL_HYBRID,
        COL_CORE_TYPE,
        COL_TOPOLOGY,
        COL_EDX80000007,
        COL_INVARIANT_TSC,
        COL_EAX15,
        COL_EBX15,
        COL_ECX15,
        COL_UARCH,
        COL_ERRATUM,
        COL_N,
};

typedef struct Row {
        char line[1024];
        const char *cell[COL_N];
} Row;

static bool row_read(FILE *f, Row *r) {
        do {
                if (!fgets(r->line, sizeof(r->line), f))
                        return false;
        } while (r->line[0] == '#' || strncmp(r->line, "id\t", 3) == 0);
        r->line[strcspn(r->line, "\n")] = '\0';
        for (size_t i = 0; i < COL_N; i++) {
                r->cell[i] = i == 0 ? r->line : strchr(r->cell[i - 1], '\t');
                assert_non_null(r->cell[i]);
                if (i > 0) {
                        *(char *) (uintptr_t) r->cell[i] = '\0';
                        r->cell[i]++;
                }
        }
        return true;
}

static bool has(const Row *r, unsigned column) {
        return r->cell[column][0] != '\0';
}

static uint32_t number(const Row *r, unsigned column) {
        uint32_t v = 0;

        if (has(r, column))
                assert_int_equal(num_parse_u32(r->cell[column], &v), 0);
        return v;
}

static const char *text(const Row *r, unsigned column) {
        return strcmp(r->cell[column], "-") == 0 ? "" : r->cell[column];
}

static void row_to_fake(const Row *r, FakeCpuid *f) {
        fake_init(f, r->cell[COL_VENDOR], number(r, COL_MAX_LEAF), number(r, COL_SIGNATURE));
        fake_leaf(f, 1)->ecx = number(r, COL_ECX1);
        fake_leaf(f, 1)->edx = number(r, COL_EDX1);
        if (has(r, COL_EAX5))
                *fake_leaf(f, 5) = (CpuidRegs){
                        number(r, COL_EAX5), number(r, COL_EBX5), number(r, COL_ECX5), number(r, COL_EDX5)};
        if (has(r, COL_EAX6))
                *fake_leaf(f, 6) = (CpuidRegs){ .eax = number(r, COL_EAX6), .ecx = number(r, COL_ECX6) };
        if (has(r, COL_EDX7))
                fake_leaf(f, 7)->edx = number(r, COL_EDX7);
        if (has(r, COL_EAX15))
                *fake_leaf(f, 0x15) =
                        (CpuidRegs){number(r, COL_EAX15), number(r, COL_EBX15), number(r, COL_ECX15), 0};
        if (has(r, COL_CORE_TYPE))
                fake_leaf(f, 0x1a)->eax = number(r, COL_CORE_TYPE) << 24;
        if (strstr(r->cell[COL_TOPOLOGY], "b"))
                fake_leaf(f, 0xb)->ebx = 2;
        if (strstr(r->cell[COL_TOPOLOGY], "1f"))
                fake_leaf(f, 0x1f)->ebx = 2;
        if (strcmp(text(r, COL_BRAND), "") != 0) {
                fake_leaf(f, 0x80000000)->eax = has(r, COL_EDX80000007) ? 0x80000008 : 0x80000004;
                fake_brand(f, number(r, COL_LEAD), r->cell[COL_BRAND]);
        } else if (has(r, COL_EDX80000007))
                fake_leaf(f, 0x80000000)->eax = 0x80000008;
        if (has(r, COL_EDX80000007))
                fake_leaf(f, 0x80000007)->edx = number(r, COL_EDX80000007);
}

static void check_identity(const Row *r, const CpuIdent *c) {
        assert_string_equal(c->vendor, r->cell[COL_VENDOR]);
        assert_string_equal(c->brand, text(r, COL_BRAND));
        assert_string_equal(c->uarch, text(r, COL_UARCH));
        assert_int_equal(c->signature, number(r, COL_SIGNATURE));
        assert_int_equal(c->family, number(r, COL_FAMILY));
        assert_int_equal(c->model, number(r, COL_MODEL));
        assert_int_equal(c->stepping, number(r, COL_STEPPING));
        assert_int_equal(c->hypervisor, number(r, COL_HYPERVISOR));
        assert_int_equal(c->hybrid, number(r, COL_HYBRID));
        switch (number(r, COL_CORE_TYPE)) {
        case 0x20:
                assert_int_equal(c->core_type, CORE_TYPE_EFFICIENT);
                break;
        case 0x40:
                assert_int_equal(c->core_type, CORE_TYPE_PERFORMANCE);
                break;
        default:
                assert_int_equal(c->core_type, CORE_TYPE_NONE);
        }
}

static void check_features(const Row *r, const CpuIdent *c) {
        assert_int_equal(c->has_monitor, number(r, COL_ECX1) >> 3 & 1);
        assert_int_equal(c->has_clflush, number(r, COL_EDX1) >> 19 & 1);
        assert_int_equal(c->mwait_smallest, number(r, COL_EAX5));
        assert_int_equal(c->mwait_largest, number(r, COL_EBX5));
        assert_int_equal(c->mwait_emx, number(r, COL_ECX5) & 1);
        assert_int_equal(c->mwait_ibe, number(r, COL_ECX5) >> 1 & 1);
        for (unsigned i = 0; i < 8; i++)
                assert_int_equal(c->mwait_substates[i], number(r, COL_EDX5) >> 4 * i & 15);
        assert_int_equal(c->has_dts, number(r, COL_EAX6) & 1);
        assert_int_equal(c->has_pkg_dts, number(r, COL_EAX6) >> 6 & 1);
        assert_int_equal(c->has_aperfmperf, number(r, COL_ECX6) & 1);
        assert_int_equal(c->invariant_tsc, number(r, COL_INVARIANT_TSC));
        assert_int_equal(c->amd_rapl, number(r, COL_EDX80000007) >> 14 & 1);
        assert_int_equal(c->tsc_ratio_den, number(r, COL_EAX15));
        assert_int_equal(c->tsc_ratio_num, number(r, COL_EBX15));
        assert_int_equal(c->crystal_hz, number(r, COL_ECX15));
        if (strstr(r->cell[COL_TOPOLOGY], "1f"))
                assert_int_equal(c->topology_leaf, 0x1f);
        else
                assert_int_equal(c->topology_leaf, strcmp(r->cell[COL_TOPOLOGY], "b") == 0 ? 0xb : 0);
}

static void check_asked(const CpuIdent *c, const FakeCpuid *f) {
        for (size_t i = 0; i < f->n_asked; i++) {
                uint32_t leaf = f->asked[i];

                if (leaf == 0 || leaf == 0x80000000 || (leaf == 0x40000000 && c->hypervisor))
                        continue;
                assert_true(leaf <= (leaf >= 0x80000000 ? c->max_extended_leaf : c->max_leaf));
        }
}

static void test_every_row(void **state) {
        _cleanup_(fclosep) FILE *file = fopen(FIXTURES "/cpuid-open.tsv", "re");
        unsigned n_rows = 0, n_clflush = 0, n_monitor = 0, n_advisory = 0;
        Row r;

        assert_non_null(file);
        for (; row_read(file, &r); n_rows++) {
                bool clflush = strcmp(r.cell[COL_ERRATUM], "clflush_monitor") == 0;
                bool monitor = strcmp(r.cell[COL_ERRATUM], "monitor") == 0;
                FakeCpuid f;
                CpuIdent c;

                row_to_fake(&r, &f);
                cpuid_decode(fake_read, &f, &c);
                check_identity(&r, &c);
                check_features(&r, &c);
                check_asked(&c, &f);
                assert_int_equal(erratum_classify(ERRATUM_CLFLUSH_MONITOR, &c, ""),
                                 clflush ? ERRATUM_UNMITIGATED : ERRATUM_NOT_AFFECTED);
                assert_int_equal(erratum_classify(ERRATUM_MONITOR, &c, ""),
                                 monitor ? ERRATUM_UNMITIGATED : ERRATUM_NOT_AFFECTED);
                n_clflush += clflush;
                n_monitor += monitor;
                n_advisory += erratum_classify(ERRATUM_ICX143, &c, "") == ERRATUM_ADVISORY;
        }
        assert_int_equal(n_rows, 464);
        assert_int_equal(n_clflush, 6);
        assert_int_equal(n_monitor, 3);
        assert_int_equal(n_advisory, 2);
}

static CpuIdent decode(const char *vendor, uint32_t signature) {
        FakeCpuid f;
        CpuIdent c;

        fake_init(&f, vendor, 0xb, signature);
        *fake_leaf(&f, 1) = (CpuidRegs){ .eax = signature, .ecx = 1u << 3, .edx = 1u << 19 };
        cpuid_decode(fake_read, &f, &c);
        return c;
}

static void check_unknown(const CpuIdent *c, uint32_t family, uint32_t model) {
        assert_int_equal(c->family, family);
        assert_int_equal(c->model, model);
        assert_string_equal(c->uarch, "");
        assert_null(cpu_table_find(c));
        for (unsigned i = 0; i < ERRATUM_N; i++)
                assert_int_equal(erratum_classify((ErratumId) i, c, ""), ERRATUM_NOT_AFFECTED);
}

/* C25: Intel's family is no longer 6, and what is not known is not guessed. */
static void test_families_18_and_19(void **state) {
        CpuIdent c = decode("GenuineIntel", 0x00300f10);

        assert_int_equal(c.family, 18);
        assert_int_equal(c.model, 1);
        assert_string_equal(c.uarch, "Nova Lake");
        c = decode("GenuineIntel", 0x00400f10);
        assert_int_equal(c.family, 19);
        assert_int_equal(c.model, 1);
        assert_string_equal(c.uarch, "Diamond Rapids-X");
        assert_int_equal(cpu_table_find(&c)->rapl, 0);
        c = decode("GenuineIntel", 0x00500f10);
        check_unknown(&c, 20, 1);
}

static void test_unknown_models(void **state) {
        CpuIdent c = decode("GenuineIntel", 0x000f06f0);

        check_unknown(&c, 6, 0xff);
        c = decode("AuthenticAMD", 0x00f00f00);
        check_unknown(&c, 0x1e, 0);
}

/* The same numbers under another vendor are another CPU. */
static void test_vendor_counts(void **state) {
        CpuIdent c = decode("GenuineIotel", 0x000206f2);

        check_unknown(&c, 6, 0x2f);
        c = decode("AuthenticAMD", 0x000106a5);
        check_unknown(&c, 6, 0x1a);
        c = decode("GenuineIntel", 0x000106a5);
        assert_string_equal(c.uarch, "Nehalem-EP");
        c = decode("AuthenticAMD", 0x00b00f21);
        assert_int_equal(c.family, 0x1a);
        assert_string_equal(c.uarch, "Zen 5");
}

static void test_zhaoxin_extended_model(void **state) {
        CpuIdent c = decode("  Shanghai  ", 0x000307b0);

        assert_int_equal(c.family, 7);
        assert_int_equal(c.model, 0x3b);
        assert_string_equal(c.uarch, "LuJiaZui");
        c = decode("CentaurHauls", 0x000507b3);
        assert_string_equal(c.uarch, "YongFeng");
        /* a 486 of AMD has no extended model */
        c = decode("AuthenticAMD", 0x000304f4);
        assert_int_equal(c.model, 0x0f);
}

static void test_leaves_above_the_maximum(void **state) {
        static const uint32_t forbidden[] = { 5, 6, 7, 0xb, 0x15, 0x16, 0x1a, 0x1f };
        FakeCpuid f;
        CpuIdent c;

        fake_init(&f, "GenuineIntel", 2, 0x00000f29);
        for (size_t i = 0; i < ARRAY_SIZE(forbidden); i++)
                *fake_leaf(&f, forbidden[i]) = (CpuidRegs){ ~0u, ~0u, ~0u, ~0u };
        *fake_leaf(&f, 0x80000000) = (CpuidRegs){ 0x80000004, 0, 0, 0 };
        *fake_leaf(&f, 0x80000007) = (CpuidRegs){ ~0u, ~0u, ~0u, ~0u };
        *fake_leaf(&f, 0x40000000) = (CpuidRegs){ ~0u, ~0u, ~0u, ~0u };
        cpuid_decode(fake_read, &f, &c);
        for (size_t i = 0; i < ARRAY_SIZE(forbidden); i++)
                assert_false(fake_was_asked(&f, forbidden[i]));
        assert_false(fake_was_asked(&f, 0x80000007));
        assert_false(fake_was_asked(&f, 0x40000000));
        assert_true(fake_was_asked(&f, 0x80000004));
        assert_false(c.hybrid || c.invariant_tsc || c.amd_rapl || c.has_dts);
        assert_int_equal(c.mwait_largest, 0);
        assert_int_equal(c.topology_leaf, 0);
}

/* Without extended leaves 0x80000000 answers with a basic leaf's values. */
static void test_no_extended_leaves(void **state) {
        FakeCpuid f;
        CpuIdent c;

        fake_init(&f, "GenuineIntel", 2, 0x00000673);
        *fake_leaf(&f, 0x80000000) = (CpuidRegs){ 0x03020101, 0, 0, 0x0c040843 };
        fake_brand(&f, 0, "nonsense");
        cpuid_decode(fake_read, &f, &c);
        assert_int_equal(c.max_extended_leaf, 0);
        assert_string_equal(c.brand, "");
        assert_false(fake_was_asked(&f, 0x80000002));
}

static void test_hybrid_with_e_cores_off(void **state) {
        FakeCpuid f;
        CpuIdent c;

        fake_init(&f, "GenuineIntel", 0x20, 0x00090672);
        fake_leaf(&f, 7)->edx = 1u << 15;
        fake_leaf(&f, 0x1a)->eax = 0x40000001;
        cpuid_decode(fake_read, &f, &c);
        assert_true(c.hybrid);
        assert_int_equal(c.core_type, CORE_TYPE_PERFORMANCE);
        assert_false(cpu_table_find(&c)->quirks & CPU_QUIRK_C6_INCLUDES_C7);
        fake_leaf(&f, 0x1a)->eax = 0x20000001;
        cpuid_decode(fake_read, &f, &c);
        assert_true(cpu_table_find(&c)->quirks & CPU_QUIRK_C6_INCLUDES_C7);
        assert_string_equal(c.uarch, "Alder Lake");
}

static void test_hypervisor(void **state) {
        FakeCpuid f;
        CpuIdent c;

        fake_init(&f, "GenuineIntel", 0xb, 0x000206e6);
        fake_leaf(&f, 1)->ecx = 1u << 31;
        *fake_leaf(&f, 0x40000000) =
                (CpuidRegs){0x40000001, fake_word("KVMK"), fake_word("VMKV"), fake_word("M\0\0\0")};
        cpuid_decode(fake_read, &f, &c);
        assert_true(c.hypervisor);
        assert_string_equal(c.hypervisor_vendor, "KVMKVMKVM");
}

static void test_brand(void **state) {
        FakeCpuid f;
        CpuIdent c;

        fake_init(&f, "GenuineIntel", 0xb, 0x000206f2);
        fake_leaf(&f, 0x80000000)->eax = 0x80000008;
        fake_brand(&f, 7, "Intel(R) Xeon(R) CPU E7- 4807  @ 1.87GHz");
        cpuid_decode(fake_read, &f, &c);
        assert_string_equal(c.brand, "Intel(R) Xeon(R) CPU E7- 4807  @ 1.87GHz");
        /* all 48 bytes used, no terminator */
        fake_brand(&f, 0, "0123456789abcdef0123456789abcdef0123456789abcdef");
        cpuid_decode(fake_read, &f, &c);
        assert_string_equal(c.brand, "0123456789abcdef0123456789abcdef0123456789abcdef");
        fake_brand(&f, 2, "a\x01\xff  ");
        cpuid_decode(fake_read, &f, &c);
        assert_string_equal(c.brand, "a??");
}

static void test_topology_leaf(void **state) {
        FakeCpuid f;
        CpuIdent c;

        fake_init(&f, "AuthenticAMD", 0xd, 0x00800f11);
        fake_leaf(&f, 0xb)->ebx = 0;
        fake_leaf(&f, 4)->eax = 0;
        fake_leaf(&f, 0x80000000)->eax = 0x8000001f;
        fake_leaf(&f, 0x80000001)->ecx = 1u << 22;
        cpuid_decode(fake_read, &f, &c);
        assert_int_equal(c.topology_leaf, 0x8000001e);
        fake_init(&f, "GenuineIntel", 0xa, 0x000106d1);
        fake_leaf(&f, 4)->eax = 0x121;
        cpuid_decode(fake_read, &f, &c);
        assert_int_equal(c.topology_leaf, 4);
}

static uint64_t tsc_hz(uint32_t signature, CpuidRegs leaf15, uint32_t base_mhz) {
        FakeCpuid f;
        CpuIdent c;

        fake_init(&f, "GenuineIntel", 0x16, signature);
        *fake_leaf(&f, 0x15) = leaf15;
        fake_leaf(&f, 0x16)->eax = base_mhz;
        cpuid_decode(fake_read, &f, &c);
        return cpuid_tsc_hz(&c);
}

static void test_tsc_hz(void **state) {
        /* Alder Lake tells all, Skylake and Denverton no crystal, Skylake-X goes by its base frequency */
        assert_int_equal(tsc_hz(0x00090672, (CpuidRegs){ 2, 166, 38400000, 0 }, 3200), UINT64_C(3187200000));
        assert_int_equal(tsc_hz(0x000506e3, (CpuidRegs){ 2, 284, 0, 0 }, 3400), UINT64_C(3408000000));
        assert_int_equal(tsc_hz(0x000506f1, (CpuidRegs){ 3, 264, 0, 0 }, 0), UINT64_C(2200000000));
        assert_int_equal(tsc_hz(0x00050654, (CpuidRegs){ 2, 168, 0, 0 }, 2100), UINT64_C(2100000000));
        assert_int_equal(tsc_hz(0x000206f2, (CpuidRegs){ 0, 0, 0, 0 }, 0), 0);
}

static void test_nothing_readable(void **state) {
        FakeCpuid f = {};
        CpuIdent c, zero = {};

        cpuid_decode(fake_read, &f, &c);
        assert_memory_equal(&c, &zero, sizeof(c));
        assert_null(cpu_table_find(&c));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_row),
                cmocka_unit_test(test_families_18_and_19),
                cmocka_unit_test(test_unknown_models),
                cmocka_unit_test(test_vendor_counts),
                cmocka_unit_test(test_zhaoxin_extended_model),
                cmocka_unit_test(test_leaves_above_the_maximum),
                cmocka_unit_test(test_no_extended_leaves),
                cmocka_unit_test(test_hybrid_with_e_cores_off),
                cmocka_unit_test(test_hypervisor),
                cmocka_unit_test(test_brand),
                cmocka_unit_test(test_topology_leaf),
                cmocka_unit_test(test_tsc_hz),
                cmocka_unit_test(test_nothing_readable),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
