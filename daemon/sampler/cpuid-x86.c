/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPUID and RDTSC by their instructions; the twin for other architectures is cpuid-none.c. */

#include <cpuid.h>
#include <x86intrin.h>

#include "sampler/cpuid-live.h"

int cpuid_live_read(void *userdata, uint32_t leaf, uint32_t subleaf, CpuidRegs *ret) {
        __cpuid_count(leaf, subleaf, ret->eax, ret->ebx, ret->ecx, ret->edx);
        return 0;
}

uint64_t cpuid_live_tsc(void) {
        return __rdtsc();
}
