/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decoding of CPUID leaf values. Sources: Intel SDM volume 2A "CPUID", AMD APM volume 3 appendix E. Two
 * rules decide whether a leaf may be asked for: basic leaves up to leaf 0's EAX and extended ones up to leaf
 * 0x80000000's EAX. Intel CPUs answer leaves above the maximum with the highest basic leaf's values, so
 * asking would yield plausible nonsense; for the same reason an extended maximum outside 0x8000xxxx means no
 * extended leaves.
 */

#include <string.h>

#include "model/cpu-table.h"
#include "model/cpuid.h"

typedef struct Reader {
        CpuidReadFn read;
        void *userdata;
        uint32_t max_leaf, max_extended_leaf;
} Reader;

/* All zero where the leaf does not exist or cannot be read. */
static CpuidRegs reader_leaf(const Reader *r, uint32_t leaf, uint32_t subleaf) {
        CpuidRegs regs = {};

        if (leaf > (leaf >= 0x80000000 ? r->max_extended_leaf : r->max_leaf))
                return (CpuidRegs){};
        if (r->read(r->userdata, leaf, subleaf, &regs) < 0)
                return (CpuidRegs){};
        return regs;
}

static void put_u32(char *p, uint32_t v) {
        for (unsigned i = 0; i < 4; i++)
                p[i] = (char) (v >> (8 * i) & 0xff);
}

/* Twelve bytes of a vendor; the order of registers is the caller's. */
static void vendor_decode(uint32_t a, uint32_t b, uint32_t c, char ret[13]) {
        put_u32(ret, a);
        put_u32(ret + 4, b);
        put_u32(ret + 8, c);
        ret[12] = '\0';
}

/*
 * Base family 15 adds the extended one; the extended model counts from family 6 on (Linux x86_model(); the
 * SDM names 6 and 15 only, by which Zhaoxin's family 7 would get wrong models).
 */
static void signature_decode(uint32_t eax, CpuIdent *c) {
        c->signature = eax;
        c->family = eax >> 8 & 0xf;
        if (c->family == 0xf)
                c->family += eax >> 20 & 0xff;
        c->model = eax >> 4 & 0xf;
        if (c->family >= 6)
                c->model |= (eax >> 16 & 0xf) << 4;
        c->stepping = eax & 0xf;
}

/* Three leaves of 16 bytes; blanks at both ends go, what is not printable becomes '?'. */
static void brand_decode(const Reader *r, char ret[49]) {
        char raw[49] = {};
        size_t first = 0, n;

        if (r->max_extended_leaf < 0x80000004)
                return;
        for (uint32_t i = 0; i < 3; i++) {
                CpuidRegs regs = reader_leaf(r, 0x80000002 + i, 0);

                put_u32(raw + 16 * i, regs.eax);
                put_u32(raw + 16 * i + 4, regs.ebx);
                put_u32(raw + 16 * i + 8, regs.ecx);
                put_u32(raw + 16 * i + 12, regs.edx);
        }
        n = strlen(raw);
        while (n > 0 && raw[n - 1] == ' ')
                n--;
        while (first < n && raw[first] == ' ')
                first++;
        for (size_t i = first; i < n; i++)
                ret[i - first] = raw[i] >= ' ' && raw[i] <= '~' ? raw[i] : '?';
        ret[n - first] = '\0';
}

static void monitor_decode(const Reader *r, CpuIdent *c) {
        CpuidRegs regs = reader_leaf(r, 5, 0);

        c->mwait_smallest = regs.eax & 0xffff;
        c->mwait_largest = regs.ebx & 0xffff;
        c->mwait_emx = regs.ecx & 1;
        c->mwait_ibe = regs.ecx >> 1 & 1;
        for (unsigned i = 0; i < 8; i++)
                c->mwait_substates[i] = regs.edx >> (4 * i) & 0xf;
}

static void power_decode(const Reader *r, CpuIdent *c) {
        CpuidRegs regs = reader_leaf(r, 6, 0);

        c->has_dts = regs.eax & 1;
        c->has_arat = regs.eax >> 2 & 1;
        c->has_pkg_dts = regs.eax >> 6 & 1;
        c->has_aperfmperf = regs.ecx & 1;
        regs = reader_leaf(r, 0x80000007, 0);
        c->invariant_tsc = regs.edx >> 8 & 1;
        c->amd_rapl = regs.edx >> 14 & 1;
}

static void core_type_decode(const Reader *r, CpuIdent *c) {
        c->hybrid = reader_leaf(r, 7, 0).edx >> 15 & 1;
        switch (reader_leaf(r, 0x1a, 0).eax >> 24) {
        case 0x40:
                c->core_type = CORE_TYPE_PERFORMANCE;
                break;
        case 0x20:
                c->core_type = CORE_TYPE_EFFICIENT;
                break;
        default:
                c->core_type = CORE_TYPE_NONE;
                break;
        }
}

static void frequency_decode(const Reader *r, CpuIdent *c) {
        CpuidRegs regs = reader_leaf(r, 0x15, 0);

        c->tsc_ratio_den = regs.eax;
        c->tsc_ratio_num = regs.ebx;
        c->crystal_hz = regs.ecx;
        regs = reader_leaf(r, 0x16, 0);
        c->base_mhz = regs.eax & 0xffff;
        c->max_mhz = regs.ebx & 0xffff;
        c->bus_mhz = regs.ecx & 0xffff;
}

/* The best leaf that says something: EBX of 0x1F and 0xB counts processors, 0 where the leaf is empty. */
static uint32_t topology_leaf_find(const Reader *r) {
        if ((reader_leaf(r, 0x1f, 0).ebx & 0xffff) != 0)
                return 0x1f;
        if ((reader_leaf(r, 0xb, 0).ebx & 0xffff) != 0)
                return 0xb;
        if (r->max_extended_leaf >= 0x8000001e && (reader_leaf(r, 0x80000001, 0).ecx & 1u << 22) != 0)
                return 0x8000001e;
        if ((reader_leaf(r, 4, 0).eax & 0x1f) != 0)
                return 4;
        return 0;
}

static void hypervisor_decode(const Reader *r, CpuIdent *c) {
        CpuidRegs regs = {};

        if (c->hypervisor && r->read(r->userdata, 0x40000000, 0, &regs) >= 0)
                vendor_decode(regs.ebx, regs.ecx, regs.edx, c->hypervisor_vendor);
}

/* Leaf 0 and 0x80000000 are read before their own maxima are known. */
static void maxima_read(Reader *r, CpuIdent *c) {
        CpuidRegs regs = {};

        if (r->read(r->userdata, 0, 0, &regs) < 0)
                return;
        /* basic leaves have small numbers: anything else is nonsense */
        r->max_leaf = regs.eax < 0x10000 ? regs.eax : 0;
        vendor_decode(regs.ebx, regs.edx, regs.ecx, c->vendor);
        regs = (CpuidRegs){};
        if (r->read(r->userdata, 0x80000000, 0, &regs) >= 0 && regs.eax >> 16 == 0x8000)
                r->max_extended_leaf = regs.eax;
        c->max_leaf = r->max_leaf;
        c->max_extended_leaf = r->max_extended_leaf;
}

void cpuid_decode(CpuidReadFn read, void *userdata, CpuIdent *ret) {
        Reader r = { .read = read, .userdata = userdata };
        const CpuModel *model;
        CpuidRegs regs;
        CpuIdent c;

        memset(&c, 0, sizeof(c)); /* padding too: identities are compared as bytes */
        maxima_read(&r, &c);
        regs = reader_leaf(&r, 1, 0);
        signature_decode(regs.eax, &c);
        c.hypervisor = regs.ecx >> 31;
        c.has_monitor = regs.ecx >> 3 & 1;
        c.has_clflush = regs.edx >> 19 & 1;
        brand_decode(&r, c.brand);
        hypervisor_decode(&r, &c);
        monitor_decode(&r, &c);
        power_decode(&r, &c);
        core_type_decode(&r, &c);
        frequency_decode(&r, &c);
        c.topology_leaf = topology_leaf_find(&r);
        model = cpu_table_find(&c);
        if (model)
                (void) snprintf(c.uarch, sizeof(c.uarch), "%s", model->uarch);
        memcpy(ret, &c, sizeof(c));
}

uint64_t cpuid_tsc_hz(const CpuIdent *c) {
        uint64_t crystal_hz = c->crystal_hz;
        const CpuModel *model;

        if (c->tsc_ratio_den == 0 || c->tsc_ratio_num == 0)
                return 0;
        if (crystal_hz == 0) {
                model = cpu_table_find(c);
                crystal_hz = model ? model->crystal_hz : 0;
        }
        if (crystal_hz != 0)
                return crystal_hz * c->tsc_ratio_num / c->tsc_ratio_den;
        /* no crystal: the base frequency is the TSC's (Linux native_calibrate_tsc() does so too) */
        return (uint64_t) c->base_mhz * 1000000;
}
