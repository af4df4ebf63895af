/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Ticks of any interval, at any phase to the wall minute, with jitter: numbered 1, 2, ..., each value known by its
 * number, so that what a disk gave back can be held against what was appended. */

#include "tests/unit/store-fixture.h"

typedef struct Grid {
        uint64_t base_us; /* the start of tick 1 */
        uint64_t interval_us;
        uint64_t jitter_us; /* a tick ends up to that much earlier or later */
        uint64_t late_us;   /* ... and one in fifty that much later; less than half the interval */
} Grid;

uint64_t grid_end(const Grid *g, uint64_t i);
const Sample *grid_sample(Fixture *f, const Grid *g, uint64_t i);
/* Reads all: the ticks must be *ret_first ... last in order, each once, with all their values. The last, 0: none. */
uint64_t grid_check(StoreReader *r, const Fixture *f, const Grid *g, uint64_t *ret_first);
