/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Kept read-only descriptors of /dev/cpu/N/msr, opened when a CPU is first asked. Nothing is ever written.
 */

#include "model/machine.h"
#include "sampler/sysfs.h"

typedef struct MsrDev {
        Sysfs *sysfs;
        uint32_t n; /* CPUs */
        uint32_t *ids;
        int *fds;        /* -1: not open */
        uint32_t victim; /* whose descriptor goes next when they run short */
} MsrDev;

int msr_dev_init(MsrDev *d, Sysfs *sysfs, const Machine *m);
void msr_dev_deinit(MsrDev *d);

/* One register of a CPU (index). -EIO: it has none; -ENXIO: offline; -ENOENT, -EACCES, -EPERM, ... of the
 * open. */
int msr_dev_read(MsrDev *d, uint32_t cpu, uint32_t reg, uint64_t *ret);
