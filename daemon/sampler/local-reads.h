/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Counters that a CPU reads itself as it goes idle: the seam between who can make it do so (idletrace) and who knows
 * which counters (perf). A reading costs no other CPU an interrupt, and the reading CPU no wakeup.
 */

#include <stdbool.h>
#include <stdint.h>

#define LOCAL_COLUMNS_MAX 24

typedef struct LocalReading {
        uint64_t ns;      /* CLOCK_MONOTONIC of the idle entry; 0: never read */
        uint64_t running; /* ns its first event has counted; stands still where the events died with an offline CPU */
        uint32_t got;     /* bit i: values[i] was read */
        uint64_t values[LOCAL_COLUMNS_MAX];
} LocalReading;

/*
 * Which columns a CPU reads at each of its readings. Those that others read too are read by one at a time; core and
 * package tell who these are, by any number below that of possible CPUs that is theirs. Of a package, the first to go
 * idle in an interval reads for all.
 */
typedef struct LocalWant {
        uint32_t own;
        uint32_t core, core_columns;
        uint32_t package, package_columns;
} LocalWant;

typedef struct LocalReads {
        void *userdata;
        /* A CPU's column is this event from now on, fd < 0: none. fd may be closed afterwards. -errno. */
        int (*set)(void *userdata, uint32_t cpu_id, unsigned column, int fd);
        void (*want)(void *userdata, uint32_t cpu_id, const LocalWant *want);
        /* An interval begins: each CPU reads once more, at its next idle entry. */
        void (*due)(void *userdata);
        /* The last reading of a CPU; false: none, or it is being written just now and all over again. */
        bool (*read)(void *userdata, uint32_t cpu_id, LocalReading *ret);
} LocalReads;
