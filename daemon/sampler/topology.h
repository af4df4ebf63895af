/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The machine's entities from sysfs, keyed by kernel ids; identification from CPUID; no counters. */

#include "model/machine.h"
#include "sampler/sysfs.h"

/*
 * Fills a new machine: online CPUs and where they belong, who they are (identify.h); idle sets are left to
 * the cpuidle source. CPUs whose topology cannot be read count as one package, a core each. previous: the
 * machine until now, whose measured TSC frequency is kept, or NULL. -errno where not even the online list
 * can be had.
 */
int topology_read(Sysfs *s, const Machine *previous, Machine **ret);

/* What is polled each turn to see whether the machine is still the same: two preads on kept fds. */
typedef struct TopologyWatch {
        int online_fd, driver_fd;
} TopologyWatch;

#define TOPOLOGY_WATCH_INIT { .online_fd = -1, .driver_fd = -1 }

/* Opens what there is; a missing idle driver counts as none until the next call. */
void topology_watch_init(TopologyWatch *w, Sysfs *s);
void topology_watch_deinit(TopologyWatch *w);
/* A fingerprint of the online list and the idle driver; differs when one changed. */
uint64_t topology_watch_read(const TopologyWatch *w);
