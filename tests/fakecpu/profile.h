/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What a processor model has: its registers, energy units, CPUID facts and the idle states its driver
 * offers. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scenario.h"

/* Bits of Profile.core and .package: the residency counters that exist. */
enum {
        HAVE_C1 = 1 << 0, /* MSR 0x660; without it CPU%c1 is what the others leave */
        HAVE_C3 = 1 << 1,
        HAVE_C6 = 1 << 2,
        HAVE_C7 = 1 << 3,
        HAVE_MC6 = 1 << 4,
        HAVE_PC2 = 1 << 0,
        HAVE_PC3 = 1 << 1,
        HAVE_PC6 = 1 << 2,
        HAVE_PC7 = 1 << 3,
        HAVE_PC8 = 1 << 4,
        HAVE_PC9 = 1 << 5,
        HAVE_PC10 = 1 << 6,
};

/* Bits of Profile.rapl. */
enum {
        RAPL_PKG = 1 << 0,
        RAPL_RAM = 1 << 1,
        RAPL_COR = 1 << 2,
        RAPL_GFX = 1 << 3,
        RAPL_SYS = 1 << 4,
        RAPL_THROTTLE = 1 << 5,
        RAPL_RAM_15_3 = 1 << 6, /* DRAM counts 15.3 uJ whatever the unit register says */
        RAPL_SYS_1J = 1 << 7,   /* psys counts whole joules */
        RAPL_AMD = 1 << 8,      /* 0xC0010299-9B: core energy a core, package energy a package */
        RAPL_MMIO = 1 << 9,     /* powercap shows package and dram a second time as intel-rapl-mmio */
};

typedef struct Profile {
        const char *name, *vendor, *brand, *flags, *bugs, *driver;
        unsigned family, model, stepping, microcode;
        unsigned core, package, rapl, esu;
        unsigned bclk_mhz_x3; /* 300, or 400 where the base clock is 133.33 MHz */
        unsigned max_leaf, mwait_substates, pkg_limit, tjmax, tdp_watts;
        bool temperatures, smi, amd, hybrid, msr, cpuidle;
        const ScenarioState *states;
        size_t n_states;
} Profile;

/* NULL: no such model. */
const Profile *profile_find(const char *name);
