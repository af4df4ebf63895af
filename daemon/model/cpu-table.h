/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The one table of models: name, residency counters, RAPL domains, quirks. A hint for what to probe: an
 * unknown model degrades to what architecture and sysfs offer.
 */

#include "model/cpuid.h"

enum { /* core and module residency counters */
        CPU_HAS_C1_MSR = 1 << 0, /* 0x660 */
        CPU_HAS_C3 = 1 << 1,     /* 0x3FC */
        CPU_HAS_C6 = 1 << 2,     /* 0x3FD (KNL: 0x3FF) */
        CPU_HAS_C7 = 1 << 3,     /* 0x3FE */
        CPU_HAS_MC6 = 1 << 4,    /* 0x664 */
};
enum { /* package residency counters */
        CPU_HAS_PC2 = 1 << 0, CPU_HAS_PC3 = 1 << 1, CPU_HAS_PC6 = 1 << 2, CPU_HAS_PC7 = 1 << 3,
        CPU_HAS_PC8 = 1 << 4, CPU_HAS_PC9 = 1 << 5, CPU_HAS_PC10 = 1 << 6,
};
enum { /* RAPL domains */
        CPU_RAPL_PKG = 1 << 0, CPU_RAPL_CORES = 1 << 1, CPU_RAPL_DRAM = 1 << 2, CPU_RAPL_GFX = 1 << 3,
        CPU_RAPL_PSYS = 1 << 4, CPU_RAPL_PKG_THROTTLE = 1 << 5, CPU_RAPL_DRAM_THROTTLE = 1 << 6,
        CPU_RAPL_AMD = 1 << 7, /* 0xC0010299..9B */
};
enum { /* quirks */
        CPU_QUIRK_DRAM_15UJ = 1 << 0,     /* DRAM counts 15.3 uJ */
        CPU_QUIRK_PSYS_1J = 1 << 1,
        CPU_QUIRK_RAPL_POW2_UJ = 1 << 2,  /* Silvermont: 2^n uJ */
        CPU_QUIRK_KNL_C6 = 1 << 3,        /* core C6 at 0x3FF */
        CPU_QUIRK_KNL_PERF1024 = 1 << 4,  /* APERF/MPERF count / 1024 */
        CPU_QUIRK_SLM_PC6 = 1 << 5,       /* package C6 at 0x3FA */
        CPU_QUIRK_C6_INCLUDES_C7 = 1 << 6,/* Atom-type cores: c6 := c6 - c7 */
        CPU_QUIRK_TSC_TWEAK = 1 << 7,     /* MPERF, residency count at base rate: scale base/tsc */
        CPU_QUIRK_DIE_SCOPE = 1 << 8,     /* package counters are per die (Cascade Lake-AP) */
        CPU_QUIRK_NO_SMI = 1 << 9,        /* no MSR 0x34 */
};

/* How MSR 0xE2 says how deep a package may sleep: the generations of model/pkg-cst.c. */
typedef enum CpuCst {
        CPU_CST_NONE, /* no such register */
        CPU_CST_NHM,
        CPU_CST_SNB,
        CPU_CST_HSW,
        CPU_CST_SKX,
        CPU_CST_ICX,
        CPU_CST_KNL,
        CPU_CST_SLM,
        CPU_CST_AMT,
        CPU_CST_GLM,
        CPU_CST_N,
} CpuCst;

typedef struct CpuModel {
        const char *vendor; /* "GenuineIntel", ... */
        uint32_t family, model_first, model_last; /* a range for AMD families; equal elsewhere */
        uint8_t stepping_first, stepping_last;    /* 0..15; less for 06_55 */
        CpuCoreType core_type;                    /* CORE_TYPE_NONE: of whatever type */
        const char *uarch;
        unsigned core, package, rapl, quirks;
        CpuCst cst;
        uint32_t crystal_hz; /* where leaf 0x15 leaves it out; 0 unknown */
        uint32_t bclk_khz;   /* 100000, 133333; 0 unknown */
} CpuModel;

/*
 * The row of this CPU, NULL where none matches (vendor, family, model and stepping all count). On a hybrid
 * the core type picks the P or E row. Old CPUs have rows for their name alone: nothing is probed for them.
 */
const CpuModel *cpu_table_find(const CpuIdent *c);
