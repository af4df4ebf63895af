/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The machine's entities from sysfs, keyed by kernel ids; identification from CPUID; no counters. */

#include "model/machine.h"
#include "sampler/sysfs.h"

/*
 * Fills a new machine: online CPUs and where they belong, idle sets are left to the cpuidle source. CPUs whose
 * topology cannot be read count as one package, a core each. -errno where not even the online list can be had.
 */
int topology_read(Sysfs *s, Machine **ret);
/* A cheap fingerprint (online list, idle driver) to poll for change each turn; *ret differs when something changed. */
int topology_fingerprint(Sysfs *s, uint64_t *ret);
