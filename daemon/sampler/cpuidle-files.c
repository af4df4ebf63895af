/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The descriptors of cpuidle's counters. A pread on a kept one is a fifth of open, read and close, but each
 * costs the kernel a page of slab, so they are bounded: `usage`, which is read every time, is opened first;
 * the others are kept from the first time they were needed while the budget lasts.
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

void cpuidle_budget_init(CpuidleBudget *b, size_t n_slots) {
        struct rlimit limit;

        *b = (CpuidleBudget){ .max = 256 };
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
                b->max = (uint32_t) MIN(limit.rlim_cur / 4 * 3, (rlim_t) KEPT_MAX);
        if (2 * n_slots < b->max)
                b->max_extra = b->max - 2 * (uint32_t) n_slots;
}

bool cpuidle_slot_has_extra(const CpuidleSlot *slot, const CpuidleBudget *b) {
        return slot->fds[CPUIDLE_ABOVE] >= 0 || slot->fds[CPUIDLE_BELOW] >= 0 || b->n_extra < b->max_extra;
}

static bool is_extra(CpuidleFile file) {
        return file == CPUIDLE_ABOVE || file == CPUIDLE_BELOW;
}

static bool may_keep(const CpuidleBudget *b, CpuidleFile file) {
        return b->n_kept < b->max && (!is_extra(file) || b->n_extra < b->max_extra);
}

void cpuidle_slot_init(CpuidleSlot *slot) {
        *slot = (CpuidleSlot){};
        for (unsigned i = 0; i < CPUIDLE_N_KEPT; i++)
                slot->fds[i] = -1;
}

static void fd_drop(CpuidleSlot *slot, CpuidleFile file, CpuidleBudget *b) {
        if (slot->fds[file] < 0)
                return;
        (void) close(slot->fds[file]);
        slot->fds[file] = -1;
        b->n_kept--;
        b->n_extra -= is_extra(file);
}

void cpuidle_slot_deinit(CpuidleSlot *slot, CpuidleBudget *b) {
        for (unsigned i = 0; i < CPUIDLE_N_KEPT; i++)
                fd_drop(slot, (CpuidleFile) i, b);
}

void cpuidle_slot_move(CpuidleSlot *to, CpuidleBudget *b, CpuidleSlot *from, CpuidleBudget *b_from) {
        cpuidle_slot_deinit(to, b);
        for (unsigned i = 0; i < CPUIDLE_N_KEPT; i++) {
                uint32_t n = from->fds[i] >= 0, n_extra = n && is_extra((CpuidleFile) i);

                b->n_kept += n;
                b->n_extra += n_extra;
                b_from->n_kept -= n;
                b_from->n_extra -= n_extra;
        }
        *to = *from;
        cpuidle_slot_init(from);
}

int cpuidle_slot_read(CpuidleSlot *slot, CpuidleBudget *b, Sysfs *s, uint32_t cpu, unsigned state,
        CpuidleFile file, bool keep, uint64_t *ret) {
        _cleanup_close_ int opened = -1;
        bool keepable = file < CPUIDLE_N_KEPT;
        int fd = keepable ? slot->fds[file] : -1, r;

        if (fd < 0) {
                fd = sysfs_open(
                        s, "sys/devices/system/cpu/cpu%u/cpuidle/state%u/%s", cpu, state, file_names[file]);
                if (fd < 0)
                        return fd;
                opened = fd;
        }
        r = sysfs_pread_u64(fd, ret);
        if (r < 0 && opened < 0)
                fd_drop(slot, file, b); /* a CPU that comes back has new files */
        if (r == 0 && opened >= 0 && keepable && keep && may_keep(b, file)) {
                slot->fds[file] = TAKE_FD(opened);
                b->n_kept++;
                b->n_extra += is_extra(file);
        }
        return r;
}
