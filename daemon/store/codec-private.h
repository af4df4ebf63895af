/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What encoder and decoder share. */

#include "store/codec.h"

enum {
        TAG_WIDTH_MAX = 64,
        TAG_PREVIOUS = 0x80,
        TAG_NULLS_BITMAP = 65,
        TAG_NULLS_RUNS,
        TAG_ALL_NULL,
        TAG_ZERO,
        TAG_CONSTANT,
        TAG_SAME,
        TAG_DIFFERENCE,
};

static inline unsigned codec_bit_length(uint64_t v) {
        return v ? 64 - (unsigned) __builtin_clzll(v) : 0;
}
