/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The twin of cpuid-x86.c on architectures with neither. */

#include <errno.h>

#include "sampler/cpuid-live.h"

int cpuid_live_read(void *userdata, uint32_t leaf, uint32_t subleaf, CpuidRegs *ret) {
        return -EOPNOTSUPP;
}

uint64_t cpuid_live_tsc(void) {
        return 0;
}
