/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The descriptors of cpuidle's counters. A pread on a kept one is a fifth of open, read and close, but each costs the
 * kernel a page of slab, so they are bounded: `usage`, which is read every time, is opened first; the others are kept
 * from the first time they were needed while the budget lasts.
 */

#include <errno.h>
#include <sys/resource.h>

#include "cstated/macro.h"

#include "sampler/source-cpuidle.h"

#define KEPT_MAX 4096

static const char *const file_names[] = {
        [CPUIDLE_USAGE] = "usage",
        [CPUIDLE_TIME] = "time",
        [CPUIDLE_ABOVE] = "above",
        [CPUIDLE_BELOW] = "below",
        [CPUIDLE_REJECTED] = "rejected",
        [CPUIDLE_DISABLE] = "disable",
};

void cpuidle_budget_init(CpuidleBudget *b) {
        struct rlimit limit;

        *b = (CpuidleBudget){ .max = 256 };
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
                b->max = (uint32_t) MIN(limit.rlim_cur / 4 * 3, (rlim_t) KEPT_MAX);
}

void cpuidle_slot_init(CpuidleSlot *slot) {
        *slot = (CpuidleSlot){};
        for (unsigned i = 0; i < CPUIDLE_N_KEPT; i++)
                slot->fds[i] = -1;
}

static void fd_drop(int *fd, CpuidleBudget *b) {
        if (*fd < 0)
                return;
        (void) close(*fd);
        *fd = -1;
        b->n_kept--;
}

void cpuidle_slot_deinit(CpuidleSlot *slot, CpuidleBudget *b) {
        for (unsigned i = 0; i < CPUIDLE_N_KEPT; i++)
                fd_drop(&slot->fds[i], b);
}

int cpuidle_slot_read(CpuidleSlot *slot, CpuidleBudget *b, Sysfs *s, uint32_t cpu, unsigned state, CpuidleFile file,
        bool keep, uint64_t *ret) {
        _cleanup_close_ int opened = -1;
        bool keepable = file < CPUIDLE_N_KEPT;
        int fd = keepable ? slot->fds[file] : -1, r;

        if (fd < 0) {
                fd = sysfs_open(s, "sys/devices/system/cpu/cpu%u/cpuidle/state%u/%s", cpu, state, file_names[file]);
                if (fd < 0)
                        return fd;
                opened = fd;
        }
        r = sysfs_pread_u64(fd, ret);
        if (r < 0 && opened < 0)
                fd_drop(&slot->fds[file], b); /* a CPU that comes back has new files */
        if (r == 0 && opened >= 0 && keepable && keep && b->n_kept < b->max) {
                slot->fds[file] = TAKE_FD(opened);
                b->n_kept++;
        }
        return r;
}
