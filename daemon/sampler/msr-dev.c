/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file offset is the register's number and each read is 8 bytes long. On the CPU we run on it is a
 * function call, on another one IPI. When descriptors run short, the ones of other CPUs are closed in turn.
 */

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "sampler/msr-dev.h"

int msr_dev_init(MsrDev *d, Sysfs *sysfs, const Machine *m) {
        *d = (MsrDev){
                .sysfs = sysfs,
                .n = m->n_cpus,
                .ids = calloc(m->n_cpus + 1, sizeof(uint32_t)),
                .fds = calloc(m->n_cpus + 1, sizeof(int)),
        };
        if (!d->ids || !d->fds) {
                free(d->ids);
                free(d->fds);
                *d = (MsrDev){};
                return -ENOMEM;
        }
        for (uint32_t i = 0; i < d->n; i++) {
                d->ids[i] = m->cpus[i].id;
                d->fds[i] = -1;
        }
        return 0;
}

static void close_cpu(MsrDev *d, uint32_t cpu) {
        if (d->fds[cpu] >= 0)
                (void) close(d->fds[cpu]);
        d->fds[cpu] = -1;
}

void msr_dev_deinit(MsrDev *d) {
        for (uint32_t i = 0; i < d->n; i++)
                close_cpu(d, i);
        free(d->ids);
        free(d->fds);
        *d = (MsrDev){};
}

/* Closes one descriptor of another CPU; false where there is none. */
static bool close_victim(MsrDev *d) {
        for (uint32_t i = 0; i < d->n; i++) {
                uint32_t v = d->victim++ % d->n;

                if (d->fds[v] >= 0) {
                        close_cpu(d, v);
                        return true;
                }
        }
        return false;
}

static int open_cpu(MsrDev *d, uint32_t cpu) {
        int fd;

        fd = sysfs_open(d->sysfs, "dev/cpu/%u/msr", (unsigned) d->ids[cpu]);
        if ((fd == -EMFILE || fd == -ENFILE) && close_victim(d))
                fd = sysfs_open(d->sysfs, "dev/cpu/%u/msr", (unsigned) d->ids[cpu]);
        if (fd < 0)
                return fd;
        d->fds[cpu] = fd;
        return 0;
}

int msr_dev_read(MsrDev *d, uint32_t cpu, uint32_t reg, uint64_t *ret) {
        uint64_t value;
        ssize_t n;
        int r;

        if (d->fds[cpu] < 0) {
                r = open_cpu(d, cpu);
                if (r < 0)
                        return r;
        }
        n = pread(d->fds[cpu], &value, sizeof(value), (off_t) reg);
        if (n == (ssize_t) sizeof(value)) {
                *ret = value;
                return 0;
        }
        r = n < 0 ? -errno : -EIO;
        if (r == -ENXIO || r == -ENODEV)
                close_cpu(d, cpu); /* back online it is another file */
        return r;
}
