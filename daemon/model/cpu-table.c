/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The one table of models. Numbers and names follow Linux's intel-family.h ("X" servers, "L" mobile, "D"
 * micro-servers) and amd.c's ranges; counters are those of turbostat's platform features, cross-checked with
 * the kernel's cstate and RAPL PMUs. The first row that matches wins, so a row for one stepping or core type
 * stands before the general one. Everything here is a hint: a counter that faults when probed is dropped,
 * whatever the table says.
 */

#include <stdbool.h>
#include <string.h>

#include "model/cpu-table.h"

#define C1M CPU_HAS_C1_MSR
#define C3 CPU_HAS_C3
#define C6 CPU_HAS_C6
#define C7 CPU_HAS_C7
#define MC6 CPU_HAS_MC6
#define PC23 (CPU_HAS_PC2 | CPU_HAS_PC3)
#define PC236 (PC23 | CPU_HAS_PC6)
#define PC26 (CPU_HAS_PC2 | CPU_HAS_PC6)
#define PC36 (CPU_HAS_PC3 | CPU_HAS_PC6)
#define PC2367 (PC23 | CPU_HAS_PC6 | CPU_HAS_PC7)
#define PC_ALL (PC2367 | CPU_HAS_PC8 | CPU_HAS_PC9 | CPU_HAS_PC10)
#define PC_HYBRID (PC23 | CPU_HAS_PC6 | CPU_HAS_PC8 | CPU_HAS_PC10)
#define RP CPU_RAPL_PKG
#define RC CPU_RAPL_CORES
#define RD CPU_RAPL_DRAM
#define RG CPU_RAPL_GFX
#define RS CPU_RAPL_PSYS
#define RTHROTTLE (CPU_RAPL_PKG_THROTTLE | CPU_RAPL_DRAM_THROTTLE)
#define CST(generation) .cst = CPU_CST_##generation
#define BCLK_NHM .bclk_khz = 133333
#define BCLK_SNB .bclk_khz = 100000

/* What generations have in common. */
#define AS_NHM CST(NHM), .core = C3 | C6, .package = PC36, BCLK_NHM
#define AS_SNB CST(SNB), .core = C3 | C6 | C7, .package = PC2367, .rapl = RP | RC | RG, BCLK_SNB
#define AS_SNX CST(SNB), .core = C3 | C6 | C7, .package = PC2367, .rapl = RP | RC | RD | RTHROTTLE, BCLK_SNB
#define AS_HSW CST(HSW), .core = C3 | C6 | C7, .package = PC2367, .rapl = RP | RC | RG, BCLK_SNB
#define AS_ULT CST(HSW), .core = C3 | C6 | C7, .package = PC_ALL, .rapl = RP | RC | RG, BCLK_SNB
#define AS_HSX CST(HSW), .core = C3 | C6 | C7, .package = PC2367, .rapl = RP | RD | RTHROTTLE, \
        .quirks = CPU_QUIRK_DRAM_15UJ, BCLK_SNB
#define AS_BDX CST(HSW), .core = C3 | C6, .package = PC236, .rapl = RP | RD | RTHROTTLE, BCLK_SNB
#define AS_SKL CST(HSW), .core = C3 | C6 | C7, .package = PC_ALL, \
        .rapl = RP | RC | RD | RG | RS | RTHROTTLE, BCLK_SNB, \
        .quirks = CPU_QUIRK_TSC_TWEAK, .crystal_hz = 24000000
#define AS_SKX CST(SKX), .core = C6, .package = PC26, .rapl = RP | RD | RTHROTTLE, BCLK_SNB
#define CNL_COUNTERS CST(HSW), .core = C1M | C6 | C7, .package = PC_ALL, \
        .rapl = RP | RC | RD | RG | RS | RTHROTTLE, BCLK_SNB
#define AS_CNL CNL_COUNTERS, .quirks = CPU_QUIRK_TSC_TWEAK
#define AS_ADL CST(HSW), .core = C1M | C6 | C7, .package = PC_HYBRID, \
        .rapl = RP | RC | RD | RG | RS, BCLK_SNB
#define AS_LNL CST(HSW), .core = C1M | C6 | C7, .package = PC26 | CPU_HAS_PC10, \
        .rapl = RP | RC | RD | RG | RS, BCLK_SNB
#define AS_ICX CST(ICX), .core = C1M | C6, .package = PC26, .rapl = RP | RD | RS | RTHROTTLE, \
        .quirks = CPU_QUIRK_DRAM_15UJ, BCLK_SNB
#define AS_SPR CST(SKX), .core = C1M | C6, .package = PC26, .rapl = RP | RD | RS | RTHROTTLE, \
        .quirks = CPU_QUIRK_PSYS_1J, BCLK_SNB
#define AS_SRF CST(SKX), .core = C1M | C6 | MC6, .package = PC26, .rapl = RP | RD | RS | RTHROTTLE, BCLK_SNB
#define AS_KNL CST(KNL), .core = C6, .package = PC36, .rapl = RP | RD | RTHROTTLE, BCLK_SNB, \
        .quirks = CPU_QUIRK_DRAM_15UJ | CPU_QUIRK_KNL_C6 | CPU_QUIRK_KNL_PERF1024
#define AS_SLM CST(SLM), .core = C1M | C6 | MC6, .package = CPU_HAS_PC6, .rapl = RP | RC, \
        .quirks = CPU_QUIRK_RAPL_POW2_UJ | CPU_QUIRK_SLM_PC6
#define AS_AMT CST(AMT), .core = C3 | C6, .package = PC36, BCLK_NHM
#define AS_GLM CST(GLM), .core = C3 | C6 | C7, .package = PC_ALL, .rapl = RP, BCLK_SNB, \
        .crystal_hz = 19200000
#define AS_TNT CST(GLM), .core = C6 | C7, .package = PC_ALL, .rapl = RP | RC | RD | RG, \
        .quirks = CPU_QUIRK_TSC_TWEAK, BCLK_SNB
#define AS_ZEN .rapl = CPU_RAPL_AMD, .quirks = CPU_QUIRK_NO_SMI
#define AS_AMD .quirks = CPU_QUIRK_NO_SMI /* no counter of ours */
#define AS_OLD .quirks = CPU_QUIRK_NO_SMI

#define ROW(vendor_, family_, first, last, uarch_, ...) \
        { .vendor = vendor_, .family = family_, .model_first = first, .model_last = last, \
          .stepping_last = 15, .uarch = uarch_, __VA_ARGS__ }
#define INTEL(model, name, ...) ROW("GenuineIntel", 6, model, model, name, __VA_ARGS__)
#define STEPPING(vendor_, family_, model, first, last, name, ...) \
        { .vendor = vendor_, .family = family_, .model_first = model, .model_last = model, \
          .stepping_first = first, .stepping_last = last, .uarch = name, __VA_ARGS__ }
/* One row for E cores, whose c6 counter runs in c7 too, one for P cores. */
#define HYBRID_OF(family_, model, name, ...) \
        ROW("GenuineIntel", family_, model, model, name, __VA_ARGS__, .core_type = CORE_TYPE_EFFICIENT, \
            .quirks = CPU_QUIRK_TSC_TWEAK | CPU_QUIRK_C6_INCLUDES_C7), \
        ROW("GenuineIntel", family_, model, model, name, __VA_ARGS__, .quirks = CPU_QUIRK_TSC_TWEAK)
#define HYBRID(model, name, ...) HYBRID_OF(6, model, name, __VA_ARGS__)

static const CpuModel cpu_table[] = {
        /* Intel Core and Xeon */
        INTEL(0x0f, "Merom", AS_OLD),
        INTEL(0x16, "Merom-L", AS_OLD),
        INTEL(0x17, "Penryn", AS_OLD),
        INTEL(0x1d, "Dunnington (Penryn)", AS_OLD),
        INTEL(0x1a, "Nehalem-EP", AS_NHM),
        INTEL(0x1e, "Nehalem", AS_NHM),
        INTEL(0x1f, "Nehalem-G", AS_NHM),
        INTEL(0x2e, "Nehalem-EX", AS_NHM),
        INTEL(0x25, "Westmere", AS_NHM),
        INTEL(0x2c, "Westmere-EP", AS_NHM),
        INTEL(0x2f, "Westmere-EX", AS_NHM),
        INTEL(0x2a, "Sandy Bridge", AS_SNB),
        INTEL(0x2d, "Sandy Bridge-X", AS_SNX),
        INTEL(0x3a, "Ivy Bridge", AS_SNB),
        INTEL(0x3e, "Ivy Bridge-X", AS_SNX),
        INTEL(0x3c, "Haswell", AS_HSW),
        INTEL(0x45, "Haswell-L", AS_ULT),
        INTEL(0x46, "Haswell-G", AS_HSW),
        INTEL(0x3f, "Haswell-X", AS_HSX),
        INTEL(0x3d, "Broadwell", AS_ULT),
        INTEL(0x47, "Broadwell-G", AS_HSW),
        INTEL(0x4f, "Broadwell-X", AS_BDX, .quirks = CPU_QUIRK_DRAM_15UJ),
        INTEL(0x56, "Broadwell-D", AS_BDX), /* the register's DRAM unit, as powercap has it */
        INTEL(0x4e, "Skylake-L", AS_SKL),
        INTEL(0x5e, "Skylake", AS_SKL),
        INTEL(0x8e, "Kaby Lake-L", AS_SKL),
        INTEL(0x9e, "Kaby Lake", AS_SKL),
        INTEL(0xa5, "Comet Lake", AS_SKL),
        INTEL(0xa6, "Comet Lake-L", AS_SKL),
        STEPPING("GenuineIntel", 6, 0x55, 5, 7, "Cascade Lake-X", AS_SKX,
                 .quirks = CPU_QUIRK_DRAM_15UJ | CPU_QUIRK_DIE_SCOPE), /* the AP has two dies */
        STEPPING("GenuineIntel", 6, 0x55, 10, 11, "Cooper Lake-X", AS_SKX, .quirks = CPU_QUIRK_DRAM_15UJ),
        INTEL(0x55, "Skylake-X", AS_SKX, .quirks = CPU_QUIRK_DRAM_15UJ),
        INTEL(0x66, "Cannon Lake-L", AS_CNL),
        INTEL(0x7d, "Ice Lake", AS_CNL),
        INTEL(0x7e, "Ice Lake-L", AS_CNL),
        INTEL(0x9d, "Ice Lake NNPI", AS_CNL),
        INTEL(0xa7, "Rocket Lake", AS_CNL),
        INTEL(0x8c, "Tiger Lake-L", AS_CNL),
        INTEL(0x8d, "Tiger Lake", AS_CNL),
        HYBRID(0x8a, "Lakefield", CNL_COUNTERS),
        HYBRID(0x97, "Alder Lake", AS_ADL),
        HYBRID(0x9a, "Alder Lake-L", AS_ADL),
        HYBRID(0xbe, "Gracemont (Alder Lake-N)", AS_ADL),
        HYBRID(0xb7, "Raptor Lake", AS_ADL),
        HYBRID(0xba, "Raptor Lake-P", AS_ADL),
        HYBRID(0xbf, "Raptor Lake-S", AS_ADL),
        HYBRID(0xd7, "Bartlett Lake", AS_ADL),
        HYBRID(0xac, "Meteor Lake", AS_ADL),
        HYBRID(0xaa, "Meteor Lake-L", AS_ADL),
        HYBRID(0xc5, "Arrow Lake-H", AS_ADL),
        HYBRID(0xc6, "Arrow Lake", AS_ADL),
        HYBRID(0xb5, "Arrow Lake-U", AS_ADL),
        HYBRID(0xbd, "Lunar Lake-M", AS_LNL),
        HYBRID(0xcc, "Panther Lake-L", AS_LNL),
        HYBRID(0xd5, "Wildcat Lake-L", AS_LNL),
        HYBRID_OF(18, 0x01, "Nova Lake", AS_LNL),
        HYBRID_OF(18, 0x03, "Nova Lake-L", AS_LNL),
        INTEL(0x6a, "Ice Lake-X", AS_ICX),
        INTEL(0x6c, "Ice Lake-D", AS_ICX),
        INTEL(0x8f, "Sapphire Rapids-X", AS_SPR),
        INTEL(0xcf, "Emerald Rapids-X", AS_SPR),
        INTEL(0xad, "Granite Rapids-X", AS_SPR),
        INTEL(0xae, "Granite Rapids-D", AS_SPR),
        ROW("GenuineIntel", 19, 0x01, 0x01, "Diamond Rapids-X",
            CST(SKX), .core = C1M | C6 | MC6, .package = PC26, BCLK_SNB),
        INTEL(0xaf, "Sierra Forest-X", AS_SRF),
        INTEL(0xdd, "Clearwater Forest-X", AS_SRF),
        INTEL(0xb6, "Grand Ridge", CST(SKX), .core = C1M | C6 | MC6,
              .rapl = RP | RD | RS | RTHROTTLE, BCLK_SNB),
        INTEL(0x57, "Knights Landing", AS_KNL),
        INTEL(0x85, "Knights Mill", AS_KNL),

        /* Intel Atom */
        INTEL(0x1c, "Bonnell", AS_OLD),
        INTEL(0x26, "Bonnell-MID", AS_OLD),
        INTEL(0x27, "Saltwell-MID", AS_OLD),
        INTEL(0x35, "Saltwell-tablet", AS_OLD),
        INTEL(0x36, "Saltwell", AS_OLD),
        INTEL(0x37, "Silvermont", AS_SLM),
        INTEL(0x4a, "Silvermont-MID", AS_OLD),
        INTEL(0x4d, "Silvermont-D", CST(SLM), .core = C6, .package = PC36, .rapl = RP | RC,
              .quirks = CPU_QUIRK_SLM_PC6),
        INTEL(0x5d, "Silvermont (SoFIA)", AS_OLD),
        INTEL(0x4c, "Airmont", AS_AMT),
        INTEL(0x5a, "Airmont-MID", AS_OLD),
        INTEL(0x75, "Airmont-NP", AS_OLD),
        INTEL(0x5c, "Goldmont", AS_GLM),
        INTEL(0x7a, "Goldmont Plus", AS_GLM),
        INTEL(0x5f, "Goldmont-D", CST(GLM), .core = C1M | C6, .package = PC26,
              .rapl = RP | RD | RC, .crystal_hz = 25000000, BCLK_SNB),
        INTEL(0x86, "Tremont-D", CST(GLM), .core = C6, .rapl = RP, BCLK_SNB),
        INTEL(0x96, "Tremont", AS_TNT),
        INTEL(0x9c, "Tremont-L", AS_TNT),

        /* Intel before Core: names only */
        ROW("GenuineIntel", 4, 0x00, 0x0f, "i486", AS_OLD),
        ROW("GenuineIntel", 5, 0x00, 0x08, "P5", AS_OLD),
        ROW("GenuineIntel", 5, 0x09, 0x0a, "Quark", AS_OLD),
        INTEL(0x00, "P6", AS_OLD),
        INTEL(0x01, "P6", AS_OLD),
        INTEL(0x03, "P6 (Klamath)", AS_OLD),
        INTEL(0x05, "P6 (Deschutes)", AS_OLD),
        INTEL(0x06, "P6 (Mendocino/Dixon)", AS_OLD),
        INTEL(0x07, "P6 (Katmai)", AS_OLD),
        INTEL(0x08, "P6 (Coppermine)", AS_OLD),
        INTEL(0x09, "P6 (Banias)", AS_OLD),
        INTEL(0x0a, "P6 (Cascades)", AS_OLD),
        INTEL(0x0b, "P6 (Tualatin)", AS_OLD),
        INTEL(0x0d, "P6 (Dothan)", AS_OLD),
        INTEL(0x0e, "Yonah", AS_OLD),
        INTEL(0x15, "P6 (Tolapai)", AS_OLD),
        ROW("GenuineIntel", 11, 0x00, 0x00, "Knights Ferry", AS_OLD),
        ROW("GenuineIntel", 11, 0x01, 0x01, "Knights Corner", AS_OLD),
        ROW("GenuineIntel", 15, 0x00, 0x01, "NetBurst (Willamette)", AS_OLD),
        ROW("GenuineIntel", 15, 0x02, 0x02, "NetBurst (Northwood/Gallatin)", AS_OLD),
        ROW("GenuineIntel", 15, 0x03, 0x03, "NetBurst (Prescott)", AS_OLD),
        ROW("GenuineIntel", 15, 0x04, 0x04, "NetBurst (Prescott/Nocona/Smithfield)", AS_OLD),
        ROW("GenuineIntel", 15, 0x06, 0x06, "NetBurst (Cedar Mill/Presler/Tulsa)", AS_OLD),

        /* AMD and its licensee Hygon, by Linux's ranges */
        ROW("AuthenticAMD", 4, 0x00, 0x0f, "Am486", AS_AMD),
        ROW("AuthenticAMD", 5, 0x00, 0x03, "K5", AS_AMD),
        ROW("AuthenticAMD", 5, 0x05, 0x05, "Geode GX", AS_AMD),
        ROW("AuthenticAMD", 5, 0x0a, 0x0a, "Geode LX", AS_AMD),
        ROW("AuthenticAMD", 5, 0x06, 0x0f, "K6", AS_AMD),
        ROW("AuthenticAMD", 6, 0x00, 0x0f, "K7", AS_AMD),
        ROW("AuthenticAMD", 0x0f, 0x00, 0xff, "K8", AS_AMD),
        ROW("AuthenticAMD", 0x10, 0x00, 0xff, "K10", AS_AMD),
        ROW("AuthenticAMD", 0x11, 0x00, 0xff, "K8/K10 hybrid (Griffin)", AS_AMD),
        ROW("AuthenticAMD", 0x12, 0x00, 0xff, "K10 (Llano)", AS_AMD),
        ROW("AuthenticAMD", 0x14, 0x00, 0xff, "Bobcat", AS_AMD),
        ROW("AuthenticAMD", 0x15, 0x00, 0x01, "Bulldozer", AS_AMD),
        ROW("AuthenticAMD", 0x15, 0x02, 0x1f, "Piledriver", AS_AMD),
        ROW("AuthenticAMD", 0x15, 0x30, 0x3f, "Steamroller", AS_AMD),
        ROW("AuthenticAMD", 0x15, 0x60, 0x7f, "Excavator", AS_AMD),
        ROW("AuthenticAMD", 0x16, 0x00, 0x2f, "Jaguar", AS_AMD),
        ROW("AuthenticAMD", 0x16, 0x30, 0x3f, "Puma", AS_AMD),
        ROW("AuthenticAMD", 0x17, 0x08, 0x0f, "Zen+", AS_ZEN),
        ROW("AuthenticAMD", 0x17, 0x18, 0x1f, "Zen+", AS_ZEN),
        ROW("AuthenticAMD", 0x17, 0x00, 0x2f, "Zen", AS_ZEN),
        ROW("AuthenticAMD", 0x17, 0x50, 0x5f, "Zen", AS_ZEN),
        ROW("AuthenticAMD", 0x17, 0x30, 0xaf, "Zen 2", AS_ZEN),
        ROW("AuthenticAMD", 0x19, 0x40, 0x4f, "Zen 3+", AS_ZEN),
        ROW("AuthenticAMD", 0x19, 0x00, 0x0f, "Zen 3", AS_ZEN),
        ROW("AuthenticAMD", 0x19, 0x20, 0x5f, "Zen 3", AS_ZEN),
        ROW("AuthenticAMD", 0x19, 0xa0, 0xaf, "Zen 4c", AS_ZEN),
        ROW("AuthenticAMD", 0x19, 0x10, 0x1f, "Zen 4", AS_ZEN),
        ROW("AuthenticAMD", 0x19, 0x60, 0x9f, "Zen 4", AS_ZEN),
        ROW("AuthenticAMD", 0x1a, 0x10, 0x1f, "Zen 5c", AS_ZEN),
        ROW("AuthenticAMD", 0x1a, 0x00, 0x2f, "Zen 5", AS_ZEN),
        ROW("AuthenticAMD", 0x1a, 0x40, 0x4f, "Zen 5", AS_ZEN),
        ROW("AuthenticAMD", 0x1a, 0x60, 0x7f, "Zen 5", AS_ZEN),
        ROW("AuthenticAMD", 0x1a, 0x50, 0x5f, "Zen 6", AS_ZEN),
        ROW("AuthenticAMD", 0x1a, 0x80, 0xaf, "Zen 6", AS_ZEN),
        ROW("AuthenticAMD", 0x1a, 0xc0, 0xcf, "Zen 6", AS_ZEN),
        ROW("HygonGenuine", 0x18, 0x00, 0x03, "Dhyana (Zen)", AS_ZEN),
        ROW("HygonGenuine", 0x18, 0x04, 0xff, "Dhyana", AS_ZEN),

        /* Centaur, VIA, Zhaoxin: one line of CPUs under two vendor strings */
        ROW("CentaurHauls", 5, 0x04, 0x04, "WinChip C6", AS_OLD),
        ROW("CentaurHauls", 5, 0x08, 0x08, "WinChip 2", AS_OLD),
        ROW("CentaurHauls", 5, 0x09, 0x09, "WinChip 3", AS_OLD),
        ROW("CentaurHauls", 6, 0x06, 0x06, "C3 Samuel", AS_OLD),
        ROW("CentaurHauls", 6, 0x07, 0x08, "C3 Samuel 2/Ezra", AS_OLD),
        ROW("CentaurHauls", 6, 0x09, 0x09, "C3 Nehemiah", AS_OLD),
        ROW("CentaurHauls", 6, 0x0a, 0x0d, "C7 Esther", AS_OLD),
        ROW("CentaurHauls", 6, 0x0f, 0x0f, "Nano Isaiah", AS_OLD),
        ROW("CentaurHauls", 6, 0x19, 0x19, "ZX-C", AS_OLD),
        ROW("CentaurHauls", 6, 0x1f, 0x1f, "ZX-D (ZhangJiang)", AS_OLD),
        ROW("CentaurHauls", 6, 0x47, 0x47, "CHA (CNS)", AS_OLD),
        ROW("CentaurHauls", 7, 0x1b, 0x1b, "WuDaoKou", AS_OLD),
        ROW("CentaurHauls", 7, 0x3b, 0x3b, "LuJiaZui", AS_OLD),
        ROW("CentaurHauls", 7, 0x5b, 0x5b, "YongFeng", AS_OLD),
        ROW("CentaurHauls", 7, 0x6b, 0x6b, "Century Avenue (KX-7000)", AS_OLD),
        ROW("  Shanghai  ", 6, 0x19, 0x19, "ZX-C", AS_OLD),
        ROW("  Shanghai  ", 6, 0x1f, 0x1f, "ZX-D (ZhangJiang)", AS_OLD),
        ROW("  Shanghai  ", 7, 0x1b, 0x1b, "WuDaoKou", AS_OLD),
        ROW("  Shanghai  ", 7, 0x3b, 0x3b, "LuJiaZui", AS_OLD),
        ROW("  Shanghai  ", 7, 0x5b, 0x5b, "YongFeng", AS_OLD),
        ROW("  Shanghai  ", 7, 0x6b, 0x6b, "Century Avenue (KX-7000)", AS_OLD),

        /* The small makers */
        ROW("CyrixInstead", 4, 0x04, 0x04, "MediaGX", AS_OLD),
        ROW("CyrixInstead", 5, 0x02, 0x02, "6x86", AS_OLD),
        ROW("CyrixInstead", 5, 0x04, 0x04, "MediaGXm", AS_OLD),
        ROW("CyrixInstead", 6, 0x00, 0x00, "MII", AS_OLD),
        ROW("Geode by NSC", 5, 0x04, 0x04, "Geode_GX1", AS_OLD),
        ROW("Geode by NSC", 5, 0x05, 0x05, "Geode_GX2", AS_OLD),
        ROW("GenuineTMx86", 5, 0x04, 0x04, "Crusoe", AS_OLD),
        ROW("GenuineTMx86", 15, 0x02, 0x03, "Efficeon", AS_OLD),
        ROW("TransmetaCPU", 5, 0x04, 0x04, "Crusoe", AS_OLD),
        ROW("NexGenDriven", 5, 0x00, 0x06, "Nx586", AS_OLD),
        ROW("UMC UMC UMC ", 4, 0x00, 0x0f, "U5", AS_OLD),
        ROW("RiseRiseRise", 5, 0x00, 0x02, "mP6", AS_OLD),
        ROW("RiseRiseRise", 5, 0x08, 0x09, "mP6II", AS_OLD),
        ROW("SiS SiS SiS ", 5, 0x00, 0x00, "SiS550", AS_OLD),
        ROW("Vortex86 SoC", 5, 0x08, 0x08, "Vortex86MX", AS_OLD),
        ROW("Vortex86 SoC", 6, 0x01, 0x01, "Vortex86DX3", AS_OLD),
};

static bool row_matches(const CpuModel *row, const CpuIdent *c) {
        return row->family == c->family && c->model >= row->model_first && c->model <= row->model_last &&
                c->stepping >= row->stepping_first && c->stepping <= row->stepping_last &&
                (row->core_type == CORE_TYPE_NONE || row->core_type == c->core_type) &&
                strcmp(row->vendor, c->vendor) == 0;
}

const CpuModel *cpu_table_find(const CpuIdent *c) {
        for (size_t i = 0; i < ARRAY_SIZE(cpu_table); i++)
                if (row_matches(&cpu_table[i], c))
                        return &cpu_table[i];
        return NULL;
}
