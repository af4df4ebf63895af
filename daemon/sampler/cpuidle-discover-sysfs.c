/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The twin of cpuidle-discover-cpupower.c where libcpupower is not at hand: sysfs says it all. */

#include "sampler/cpuidle-discover.h"

const char *cpuidle_discover_method(const Sysfs *s) {
        return "sysfs";
}

void cpuidle_discover_names(Sysfs *s, CpuidleNames *ret, uint32_t *n_differing) {
        cpuidle_sysfs_names(s, ret);
}

int cpuidle_discover_set(Sysfs *s, uint32_t cpu, IdleSet *ret, uint32_t *n_differing) {
        return cpuidle_sysfs_set(s, cpu, ret);
}
