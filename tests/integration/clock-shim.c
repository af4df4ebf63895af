/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Preloaded, to set a program's clocks: $CSTATED_TEST_CLOCKS names a file of two int64, nanoseconds to add to
 * CLOCK_REALTIME and to CLOCK_BOOTTIME. It is mapped, so that the clocks step while the program runs, in all its
 * processes at once. A step of the wall clock is one of the first; a suspend is both by as much, since the kernel's
 * CLOCK_MONOTONIC stands still in it.
 */

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NSEC 1000000000LL

static const volatile int64_t *offsets;

__attribute__((constructor)) static void shim_begin(void) {
        const char *path = getenv("CSTATED_TEST_CLOCKS");
        int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        void *p = fd < 0 ? MAP_FAILED : mmap(NULL, 2 * sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);

        if (fd >= 0)
                (void) close(fd);
        if (p != MAP_FAILED)
                offsets = p;
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *ts) {
        int r = (int) syscall(SYS_clock_gettime, clock, ts);
        int64_t ns;

        if (r < 0 || !offsets || (clock != CLOCK_REALTIME && clock != CLOCK_BOOTTIME))
                return r;
        ns = ts->tv_sec * NSEC + ts->tv_nsec + offsets[clock == CLOCK_BOOTTIME];
        *ts = (struct timespec){.tv_sec = ns / NSEC, .tv_nsec = ns % NSEC};
        return r;
}
