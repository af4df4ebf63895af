/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which idle states a CPU has. Twins: cpuidle-discover-cpupower.c asks libcpupower and checks each answer
 * against sysfs, cpuidle-discover-sysfs.c reads sysfs alone; both stand on the plain readers of
 * cpuidle-sysfs.c.
 */

#include "model/machine.h"
#include "sampler/sysfs.h"

typedef struct CpuidleNames {
        char driver[32];   /* "" where there is none ("none" is the kernel's word for that) */
        char governor[32];
} CpuidleNames;

/* "libcpupower" or "sysfs": who answers for this tree. */
const char *cpuidle_discover_method(const Sysfs *s);
/* Adds to *n_differing the answers that sysfs did not confirm; sysfs then holds. */
void cpuidle_discover_names(Sysfs *s, CpuidleNames *ret, uint32_t *n_differing);
/* -ENOENT where this CPU has no idle states. */
int cpuidle_discover_set(Sysfs *s, uint32_t cpu, IdleSet *ret, uint32_t *n_differing);

/* The same from sysfs alone. */
void cpuidle_sysfs_names(Sysfs *s, CpuidleNames *ret);
int cpuidle_sysfs_set(Sysfs *s, uint32_t cpu, IdleSet *ret);
