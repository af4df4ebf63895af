/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Who this machine is: CPUID of one CPU of each core type, the kernel's own words on it, host and boot. */

#include "model/machine.h"
#include "sampler/sysfs.h"

/*
 * Fills bugs, idents, cpus[].ident, hypervisor, tsc_hz, user_hz, host, kernel and boot id of a machine whose
 * online CPUs are known; idents has at least one entry. tsc_hz: known from before, or 0 (measured then, 50
 * ms). What cannot be read stays empty; -ENOMEM only.
 */
int identify_read(Sysfs *s, uint64_t tsc_hz, Machine *m);
