/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The machine's time. Clients measure with RDTSC and CLOCK_MONOTONIC, which no file system can fake, so the
 * machine lives on them: its time is the real TSC since the start, in nanoseconds, and its TSC rate is the
 * real one, measured once against CLOCK_MONOTONIC_RAW.
 */

#include <stdint.h>

typedef struct Clock {
        uint64_t tsc0;
        uint64_t tsc_hz;
        int64_t last_ns; /* time never runs backwards, whichever CPU we stand on */
} Clock;

/* Measures the TSC rate; takes about 0.2 s. */
void clock_start(Clock *c);
uint64_t clock_tsc(void);
/* Nanoseconds since clock_start(). */
int64_t clock_now_ns(Clock *c);
