/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What only the instruction set can tell; twins cpuid-x86.c and cpuid-none.c. */

#include "model/cpuid.h"

/* A CpuidReadFn: the CPUID instruction on the CPU we run on. -EOPNOTSUPP on other architectures. */
int cpuid_live_read(void *userdata, uint32_t leaf, uint32_t subleaf, CpuidRegs *ret);
/* The time stamp counter, 0 where there is none. */
uint64_t cpuid_live_tsc(void);
