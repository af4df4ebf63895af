/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The models the scenarios are made of. Registers and units are those of Intel's SDM and AMD's PPR; idle
 * states (exit latency, target residency in us) those of the kernel's own driver tables.
 */

#include <string.h>

#include "cstated/macro.h"
#include "profile.h"

#define FLAGS_BASE                                                                                          \
        "fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr sse "     \
        "sse2 ht syscall nx "                                                                               \
        "rdtscp lm constant_tsc rep_good nopl xtopology nonstop_tsc cpuid pni ssse3 "                       \
        "cx16 sse4_1 sse4_2 popcnt"
#define FLAGS_INTEL FLAGS_BASE " aperfmperf monitor acpi dts tm pbe lahf_lm arat pln pts"
#define BUGS_X86    "spectre_v1 spectre_v2 spec_store_bypass"

#define STATE(n, d, l, r)                                                                                   \
        { .name = (n), .desc = (d), .latency_us = (l), .residency_us = (r), .types = 3 }
#define STATE_P(n, d, l, r)                                                                                 \
        { .name = (n), .desc = (d), .latency_us = (l), .residency_us = (r), .types = 1 }
#define STATE_E(n, d, l, r)                                                                                 \
        { .name = (n), .desc = (d), .latency_us = (l), .residency_us = (r), .types = 2 }
#define POLL STATE("POLL", "CPUIDLE CORE POLL IDLE", 0, 0)

static const ScenarioState states_skx[] = {
        POLL,
        STATE("C1", "MWAIT 0x00", 2, 2),
        STATE("C1E", "MWAIT 0x01", 10, 20),
        STATE("C6", "MWAIT 0x20", 133, 600),
};
static const ScenarioState states_icx[] = {
        POLL,
        STATE("C1", "MWAIT 0x00", 1, 1),
        STATE("C1E", "MWAIT 0x01", 4, 4),
        STATE("C6", "MWAIT 0x20", 170, 600),
};
static const ScenarioState states_spr[] = {
        POLL,
        STATE("C1", "MWAIT 0x00", 1, 1),
        STATE("C1E", "MWAIT 0x01", 2, 4),
        STATE("C6", "MWAIT 0x20", 290, 800),
};
static const ScenarioState states_nhm[] = {
        POLL,
        STATE("C1", "MWAIT 0x00", 3, 6),
        STATE("C1E", "MWAIT 0x01", 10, 20),
        STATE("C3", "MWAIT 0x10", 20, 80),
        STATE("C6", "MWAIT 0x20", 200, 800),
};
static const ScenarioState states_adl[] = {
        POLL,
        STATE("C1E", "MWAIT 0x01", 2, 4),
        STATE_P("C6", "MWAIT 0x20", 220, 600),
        STATE_E("C6", "MWAIT 0x20", 170, 500),
        STATE_P("C8", "MWAIT 0x40", 280, 800),
        STATE_P("C10", "MWAIT 0x60", 680, 2000),
};
static const ScenarioState states_zen[] = {
        POLL,
        STATE("C1", "ACPI FFH MWAIT 0x0", 1, 2),
        STATE("C2", "ACPI IOPORT 0x814", 400, 800),
};

#define STATES(table) .states = (table), .n_states = ARRAY_SIZE(table)
#define INTEL                                                                                               \
        .vendor = "GenuineIntel", .family = 6, .flags = FLAGS_INTEL, .temperatures = true, .smi = true,     \
        .msr = true, .cpuidle = true

static const Profile profiles[] = {
        {
                .name = "skx",
                INTEL,
                .model = 0x55,
                .stepping = 4,
                .microcode = 0x2007006,
                .driver = "intel_idle",
                .brand = "Intel(R) Xeon(R) Gold 6130 CPU",
                .bugs = "cpu_meltdown " BUGS_X86 " l1tf mds swapgs taa itlb_multihit",
                .core = HAVE_C6,
                .package = HAVE_PC2 | HAVE_PC6,
                .rapl = RAPL_PKG | RAPL_RAM | RAPL_RAM_15_3 | RAPL_THROTTLE,
                .esu = 14,
                .max_leaf = 0x16,
                .mwait_substates = 0x2020,
                .pkg_limit = 7,
                .tjmax = 96,
                .tdp_watts = 125,
                STATES(states_skx),
        },
        {
                .name = "icx",
                INTEL,
                .model = 0x6a,
                .stepping = 6,
                .microcode = 0xd0003d1,
                .driver = "intel_idle",
                .brand = "Intel(R) Xeon(R) Platinum 8360Y CPU",
                .bugs = BUGS_X86 " swapgs mmio_stale_data",
                .core = HAVE_C1 | HAVE_C6,
                .package = HAVE_PC2 | HAVE_PC6,
                .rapl = RAPL_PKG | RAPL_RAM | RAPL_RAM_15_3 | RAPL_SYS | RAPL_THROTTLE,
                .esu = 14,
                .max_leaf = 0x1b,
                .mwait_substates = 0x2020,
                .pkg_limit = 7,
                .tjmax = 100,
                .tdp_watts = 250,
                STATES(states_icx),
        },
        {
                .name = "spr",
                INTEL,
                .model = 0x8f,
                .stepping = 8,
                .microcode = 0x2b000603,
                .driver = "intel_idle",
                .brand = "Intel(R) Xeon(R) Platinum 8462Y+",
                .bugs = BUGS_X86 " swapgs eibrs_pbrsb",
                .core = HAVE_C1 | HAVE_C6,
                .package = HAVE_PC2 | HAVE_PC6,
                .rapl = RAPL_PKG | RAPL_RAM | RAPL_SYS | RAPL_SYS_1J | RAPL_THROTTLE,
                .esu = 14,
                .max_leaf = 0x20,
                .mwait_substates = 0x2020,
                .pkg_limit = 7,
                .tjmax = 100,
                .tdp_watts = 300,
                STATES(states_spr),
        },
        {
                .name = "wsm-ex",
                INTEL,
                .model = 0x2f,
                .stepping = 2,
                .microcode = 0x3b,
                .driver = "intel_idle",
                .brand = "Intel(R) Xeon(R) CPU E7- 4870",
                .bugs = "clflush_monitor cpu_meltdown " BUGS_X86 " l1tf mds swapgs",
                .core = HAVE_C3 | HAVE_C6,
                .package = HAVE_PC3 | HAVE_PC6,
                .bclk_mhz_x3 = 400,
                .max_leaf = 0xb,
                .mwait_substates = 0x1120,
                .pkg_limit = 7,
                .tjmax = 101,
                .tdp_watts = 130,
                STATES(states_nhm),
        },
        {
                .name = "adl",
                INTEL,
                .model = 0x9a,
                .stepping = 3,
                .microcode = 0x437,
                .driver = "intel_idle",
                .hybrid = true,
                .brand = "12th Gen Intel(R) Core(TM) i9-12900H",
                .bugs = BUGS_X86 " swapgs eibrs_pbrsb",
                .core = HAVE_C1 | HAVE_C6 | HAVE_C7,
                .package = HAVE_PC2 | HAVE_PC3 | HAVE_PC6 | HAVE_PC8 | HAVE_PC10,
                .rapl = RAPL_PKG | RAPL_COR | RAPL_GFX | RAPL_RAM | RAPL_SYS | RAPL_MMIO,
                .esu = 14,
                .max_leaf = 0x20,
                .mwait_substates = 0x10112020,
                .pkg_limit = 8,
                .tjmax = 100,
                .tdp_watts = 45,
                STATES(states_adl),
        },
        {
                .name = "srf",
                INTEL,
                .model = 0xaf,
                .stepping = 3,
                .microcode = 0x3000330,
                .driver = "intel_idle",
                .brand = "Intel(R) Xeon(R) 6710E",
                .bugs = BUGS_X86,
                .core = HAVE_C1 | HAVE_C6 | HAVE_MC6,
                .package = HAVE_PC2 | HAVE_PC6,
                .rapl = RAPL_PKG | RAPL_RAM | RAPL_SYS | RAPL_THROTTLE,
                .esu = 14,
                .max_leaf = 0x23,
                .mwait_substates = 0x2020,
                .pkg_limit = 7,
                .tjmax = 100,
                .tdp_watts = 205,
                STATES(states_spr),
        },
        {
                .name = "zen",
                .vendor = "AuthenticAMD",
                .family = 0x17,
                .model = 0x31,
                .stepping = 0,
                .microcode = 0x830107a,
                .brand = "AMD EPYC 7542 32-Core Processor",
                .bugs = "sysret_ss_attrs " BUGS_X86 " retbleed",
                .flags = FLAGS_BASE " aperfmperf monitor hw_pstate cpb",
                .driver = "acpi_idle",
                .amd = true,
                .msr = true,
                .cpuidle = true,
                .rapl = RAPL_PKG | RAPL_COR | RAPL_AMD,
                .esu = 16,
                .max_leaf = 0x10,
                .mwait_substates = 0x11,
                .tdp_watts = 225,
                STATES(states_zen),
        },
        {
                .name = "vm",
                .vendor = "GenuineIntel",
                .family = 6,
                .model = 0x55,
                .stepping = 4,
                .microcode = 1,
                .brand = "Intel Xeon Processor (Skylake, IBRS)",
                .bugs = "cpu_meltdown " BUGS_X86 " l1tf mds swapgs",
                .flags = FLAGS_BASE,
                .driver = "none",
                .max_leaf = 0xd,
        },
};

const Profile *profile_find(const char *name) {
        for (size_t i = 0; i < ARRAY_SIZE(profiles); i++)
                if (strcmp(profiles[i].name, name) == 0)
                        return &profiles[i];
        return NULL;
}
