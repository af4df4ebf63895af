/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What encoder and decoder share. */

#include "cstated/field.h"
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
        TAG_SCALED,
        TAG_NULLS_REFERENCE,
};

/* What the reference's value says this one is. Modulo 2^64, as all of this: a bad guess costs bits, nothing else. */
static inline uint64_t codec_scale(int64_t v, int64_t ratio) {
        return (uint64_t) ((int64_t) ((uint64_t) v * (uint64_t) ratio) >> CODEC_RATIO_SHIFT);
}

static inline bool codec_no_nulls(const uint8_t *reasons, size_t n) {
        uint8_t any = REASON_NONE;

        for (size_t i = 0; i < n; i++)
                any |= reasons[i];
        return any == REASON_NONE;
}

static inline unsigned codec_bit_length(uint64_t v) {
        return v ? 64 - (unsigned) __builtin_clzll(v) : 0;
}
