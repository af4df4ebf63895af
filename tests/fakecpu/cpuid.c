/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * CPUID. Only what tools decide by is modelled. No instruction set above SSE4.2 is ever claimed: under the
 * shim the answers steer the real program's libraries, which must not choose instructions the real processor
 * lacks.
 */

#include <string.h>

#include "registers.h"

static uint32_t signature(const Machine *m) {
        const Profile *p = m->profile;
        uint32_t family = MIN(p->family, 15U), extended = p->family - family;

        return (uint32_t) m->stepping | (p->model & 0xf) << 4 | family << 8 | (p->model >> 4) << 16 |
               extended << 20;
}

static unsigned bits_for(unsigned n) {
        unsigned bits = 0;

        while (1U << bits < n)
                bits++;
        return bits;
}

typedef struct Levels {
        unsigned threads, per_package, thread_bits, core_bits;
        uint32_t apic_id;
} Levels;

static Levels levels_of(const Machine *m, const Cpu *cpu) {
        Levels l = { .threads = 1 };
        unsigned max_core = 0;

        for (unsigned i = 0; i < m->n_cpus; i++) {
                const Cpu *other = &m->cpus[i];

                l.threads = MAX(l.threads, other->smt + 1);
                l.per_package += other->package == cpu->package;
                max_core = MAX(max_core, other->core_id);
        }
        l.thread_bits = bits_for(l.threads);
        l.core_bits = bits_for(max_core + 1);
        l.apic_id = (cpu->package << l.core_bits | cpu->core_id) << l.thread_bits | cpu->smt;
        return l;
}

static void leaf_basic(const Machine *m, const Cpu *cpu, uint32_t r[4]) {
        Levels l = levels_of(m, cpu);
        bool idle = m->profile->cpuidle && !m->hypervisor;

        r[0] = signature(m);
        r[1] = 8U << 8 | MIN(l.per_package, 255U) << 16 | l.apic_id << 24; /* CLFLUSH of 64 bytes */
        r[2] = 0x00982201 | (idle ? 1U << 3 : 0) |
               (m->hypervisor ? 1U << 31 : 0); /* sse3 ssse3 cx16 sse4 popcnt; monitor */
        r[3] = 0x178bfbff | (m->profile->amd ? 0 : 0xa8400000);
}

static void leaf_topology(const Machine *m, const Cpu *cpu, uint32_t subleaf, uint32_t r[4]) {
        Levels l = levels_of(m, cpu);

        r[2] = subleaf & 0xff;
        r[3] = l.apic_id;
        if (subleaf == 0) {
                r[0] = l.thread_bits;
                r[1] = l.threads;
                r[2] |= 1 << 8;
        } else if (subleaf == 1) {
                r[0] = l.thread_bits + l.core_bits;
                r[1] = l.per_package;
                r[2] |= 2 << 8;
        }
}

static void leaf_text(const char *text, size_t from, uint32_t r[4]) {
        char block[16] = {};
        size_t n = strlen(text);

        if (n > from)
                memcpy(block, text + from, MIN(n - from, sizeof(block)));
        memcpy(r, block, sizeof(block));
}

static void leaf_extended(const Machine *m, const Cpu *cpu, uint32_t leaf, uint32_t r[4]) {
        const char *brand = m->scenario->brand[0] != '\0' ? m->scenario->brand : m->profile->brand;

        switch (leaf) {
        case 0x80000000:
                r[0] = m->profile->amd ? 0x8000001e : 0x80000008;
                break;
        case 0x80000001:
                r[2] = 1;
                r[3] = 0x2c100800; /* syscall nx pdpe1gb rdtscp lm */
                break;
        case 0x80000002:
        case 0x80000003:
        case 0x80000004:
                leaf_text(brand, (leaf - 0x80000002) * 16, r);
                break;
        case 0x80000007: /* invariant TSC; AMD: RAPL registers */
                r[3] = 1U << 8 | (m->profile->rapl & RAPL_AMD ? 1U << 14 : 0);
                break;
        case 0x80000008:
                r[0] = 0x3030;
                r[2] = m->profile->amd ? levels_of(m, cpu).per_package - 1 : 0;
                break;
        case 0x8000001e:
                r[0] = levels_of(m, cpu).apic_id;
                r[1] = (cpu->core_id & 0xff) | (levels_of(m, cpu).threads - 1) << 8;
                r[2] = cpu->package;
                break;
        default:
                break;
        }
}

static void leaf_vendor(const Machine *m, uint32_t r[4]) {
        const char *v = m->profile->vendor;

        r[0] = m->profile->max_leaf;
        memcpy(&r[1], v, 4);
        memcpy(&r[3], v + 4, 4);
        memcpy(&r[2], v + 8, 4);
}

void cpuid_read(const Machine *m, const Cpu *cpu, uint32_t leaf, uint32_t subleaf, uint32_t r[4]) {
        const Profile *p = m->profile;
        bool idle = p->cpuidle && !m->hypervisor;

        memset(r, 0, 4 * sizeof(r[0]));
        if (leaf >= 0x80000000) {
                leaf_extended(m, cpu, leaf, r);
                return;
        }
        if (leaf == 0x40000000 && m->hypervisor) {
                memcpy(&r[1], "KVMKVMKVM\0\0", 12);
                r[0] = 0x40000001;
                return;
        }
        if (leaf > p->max_leaf)
                return;
        switch (leaf) {
        case 0:
                leaf_vendor(m, r);
                break;
        case 1:
                leaf_basic(m, cpu, r);
                break;
        case 5:
                if (idle) {
                        r[0] = r[1] = 64;
                        r[2] = 3;
                        r[3] = p->mwait_substates;
                }
                break;
        case 6:
                r[0] = 1U << 2 | (p->temperatures ? 1U | 1U << 6 : 0);
                r[2] = p->msr ? 1U | (p->amd ? 0 : 1U << 3) : 0;
                break;
        case 7:
                r[3] = subleaf == 0 && p->hybrid ? 1U << 15 : 0;
                break;
        case 0xb:
        case 0x1f:
                leaf_topology(m, cpu, subleaf, r);
                break;
        case 0x15: /* TSC = crystal * EBX / EAX, exact to 25 Hz */
                if (!p->amd) {
                        r[0] = 1000000;
                        r[1] = (uint32_t) (m->tsc_hz / 25);
                        r[2] = 25000000;
                }
                break;
        case 0x16:
                if (!p->amd) {
                        r[0] = (uint32_t) m->base_mhz;
                        r[1] = (uint32_t) (m->base_mhz + m->base_mhz / 2);
                        r[2] = 100;
                }
                break;
        case 0x1a:
                r[0] = p->hybrid ? (cpu->type ? 0x20U : 0x40U) << 24 : 0;
                break;
        default:
                break;
        }
}
