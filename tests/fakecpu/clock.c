/* SPDX-License-Identifier: GPL-2.0-or-later */

/* TSC calibration: two (TSC, RAW) pairs 0.2 s apart, each the tightest of several tries, are good for about
 * 0.3 ppm. */

#include <time.h>
#include <x86intrin.h>

#include "clock.h"
#include "cstated/macro.h"

typedef struct Pair {
        uint64_t tsc;
        int64_t ns;
} Pair;

uint64_t clock_tsc(void) {
        return __rdtsc();
}

static int64_t raw_ns(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
        return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static Pair pair_read(void) {
        uint64_t best = UINT64_MAX;
        Pair pair = {};

        for (int i = 0; i < 20; i++) {
                uint64_t before = clock_tsc();
                int64_t ns = raw_ns();
                uint64_t after = clock_tsc();

                if (after - before < best) {
                        best = after - before;
                        pair = (Pair){ .tsc = before + best / 2, .ns = ns };
                }
        }
        return pair;
}

void clock_start(Clock *c) {
        Pair first = pair_read();
        (void) nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
        Pair second = pair_read();

        *c = (Clock){
                .tsc0 = clock_tsc(),
                .tsc_hz = (uint64_t) ((unsigned __int128) (second.tsc - first.tsc) * 1000000000 /
                                      (uint64_t) (second.ns - first.ns)),
        };
}

int64_t clock_now_ns(Clock *c) {
        int64_t ns = (int64_t) ((unsigned __int128) (clock_tsc() - c->tsc0) * 1000000000 / c->tsc_hz);

        c->last_ns = MAX(c->last_ns, ns);
        return c->last_ns;
}
