/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Who is this CPU: pure functions over CPUID leaf values. Family and model by the SDM/APM rule with Linux's
 * reading of the extended model (from family 6 on). Leaves above the maximum are never asked for.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cstated/macro.h"

typedef struct CpuidRegs {
        uint32_t eax, ebx, ecx, edx;
} CpuidRegs;

/* Reads one leaf; 0, or -errno where it cannot be had (the leaf then counts as all zero). */
typedef int (*CpuidReadFn)(void *userdata, uint32_t leaf, uint32_t subleaf, CpuidRegs *ret);

typedef enum CpuCoreType {
        CORE_TYPE_NONE, /* leaf 0x1A says nothing */
        CORE_TYPE_PERFORMANCE, /* leaf 0x1A 0x40, Intel Core */
        CORE_TYPE_EFFICIENT,   /* leaf 0x1A 0x20, Intel Atom */
} CpuCoreType;

typedef struct CpuIdent {
        char vendor[13];      /* the twelve bytes of leaf 0 ("  Shanghai  " keeps its blanks) */
        char brand[49];       /* trimmed */
        char uarch[48];       /* "Westmere-EX", "" where unknown */
        char hypervisor_vendor[13]; /* leaf 0x40000000, "" if none */
        uint32_t family, model, stepping;
        uint32_t signature;   /* leaf 1 EAX */
        uint32_t microcode;   /* from /proc/cpuinfo, 0 unknown */
        uint32_t max_leaf, max_extended_leaf;
        bool hypervisor;      /* leaf 1 ECX[31] */
        bool has_monitor;     /* leaf 1 ECX[3] */
        bool has_clflush;     /* leaf 1 EDX[19] */
        bool hybrid;          /* leaf 7 EDX[15] */
        bool has_aperfmperf;  /* leaf 6 ECX[0] */
        bool has_dts;         /* leaf 6 EAX[0] */
        bool has_pkg_dts;     /* leaf 6 EAX[6] */
        bool has_arat;        /* leaf 6 EAX[2] */
        bool invariant_tsc;   /* leaf 0x80000007 EDX[8] */
        bool amd_rapl;        /* leaf 0x80000007 EDX[14] */
        CpuCoreType core_type;
        uint32_t mwait_smallest, mwait_largest; /* bytes, leaf 5 */
        bool mwait_emx, mwait_ibe;
        uint8_t mwait_substates[8]; /* C0..C7, leaf 5 EDX */
        uint32_t tsc_ratio_den, tsc_ratio_num, crystal_hz; /* leaf 0x15 */
        uint32_t base_mhz, max_mhz, bus_mhz;               /* leaf 0x16 */
        uint32_t topology_leaf; /* 0x1F, 0xB, 0x8000001E, 4 or 0 */
        uint32_t n_cpus;      /* CPUs of this kind, where counted */
} CpuIdent;

/* Decodes all of the above. Never fails: what cannot be read is zero. */
void cpuid_decode(CpuidReadFn read, void *userdata, CpuIdent *ret);
/* TSC frequency from leaves 0x15/0x16 (a missing crystal from the model table), 0 where they do not tell. */
uint64_t cpuid_tsc_hz(const CpuIdent *c);
