/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A machine's ticks as they would be, made up: 20 values a CPU, two a core, six a package. Idle: each CPU
 * wakes some ten to thirty times a second for tens of microseconds and sleeps in C6 for the rest; busy: it
 * works through half of its time in long stretches. Readings are taken some tens of microseconds apart, as a
 * real sampler's are.
 */

#include "store/store.h"

typedef struct BenchData {
        Machine *machine;
        Layout layout;
        Sample sample;
        uint64_t state; /* of the random numbers */
        bool busy;
        uint64_t seq;
        double *level;      /* a CPU's own rate of waking */
        int64_t *skew;      /* ns that its last reading was late */
        uint64_t *counters; /* cumulative, so that no rounding is lost */
} BenchData;

void bench_data_init(BenchData *d, uint32_t n_cpus, bool busy);
void bench_data_deinit(BenchData *d);
/* The next second's sample, ending at start_us + seq seconds. */
const Sample *bench_data_next(BenchData *d, uint64_t start_us);
