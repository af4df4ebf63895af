/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Up to which moment a CPU's idle times are accounted. The kernel adds a sleep to `time` when it ends, so at
 * a reading the sleep in progress is missing, and the next reading has it all. Over one interval that made
 * 20 % and then 180 % of a CPU that is idle all the time. The clock beside the times (idle_ns) must
 * therefore stand where the times do: at the beginning of the sleep in progress. Pure.
 */

#include <stdbool.h>
#include <stdint.h>

typedef struct CpuidleLag {
        bool valid;
        bool is_fresh;         /* no idle exit was seen yet */
        bool is_restarted;     /* the last settled reading is a new baseline */
        uint64_t seen_ns;      /* monotonic time of the last look, asleep or not */
        uint64_t span_ns;      /* what idle_ns said last */
        uint64_t lag_ns;       /* sleep in progress at the last settled reading, as far as known */
        uint64_t stat_idle_ns; /* then */
        uint64_t time_ns;      /* then */
} CpuidleLag;

typedef struct CpuidleReading {
        uint64_t now_ns;       /* monotonic */
        uint64_t time_ns;      /* `time` of all states together */
        uint64_t n_exits;      /* `usage` of all states since the last settled reading */
        uint64_t stat_idle_ns; /* idle + iowait of /proc/stat, which has the sleep in progress; UINT64_MAX
                                  unknown */
        uint64_t jiffy_ns;     /* its resolution */
} CpuidleReading;

/*
 * A reading in which the CPU left idle, or was busy all along: the new idle_ns. Never less than before, and
 * never by less than the idle time it stands for. is_restarted where the CPU was found asleep at the first
 * reading and now shows a sleep that began long before it.
 */
uint64_t cpuidle_lag_settle(CpuidleLag *l, const CpuidleReading *r);
/* A reading in which the CPU slept: nothing settles. */
void cpuidle_lag_sleep(CpuidleLag *l, uint64_t now_ns);
