/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One column of a chunk: the values of one field of one entity over a minute, with reasons where they are
 * null. Pure: memory in, memory out. A decoder believes nothing: every length, width and position is
 * checked.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CODEC_TICKS_MAX 1024

/* The most bytes codec_encode() writes for n values. */
static inline size_t codec_bound(size_t n) {
        return 64 + n * 24;
}

/* Another column of as many ticks, which this one may resemble; reasons is not NULL where values is not. */
typedef struct CodecNeighbour {
        const int64_t *values; /* NULL: there is none */
        const uint8_t *reasons;
} CodecNeighbour;

/* What a column may refer to, and what goes on from one entity's column to the next one's of the same field. */
typedef struct CodecContext {
        CodecNeighbour beside;    /* of another entity, the same field */
        CodecNeighbour reference; /* of the same entity, another field: the clock it was read by, for instance */
        int64_t ratio;            /* of this field to the reference's, in 1 << CODEC_RATIO_SHIFT; at first 0 */
        bool referred;            /* set by the encoder where the reference was used: a decoder needs it */
} CodecContext;

#define CODEC_RATIO_SHIFT 20

/*
 * Encodes n (1 ... CODEC_TICKS_MAX) values; reasons (Reason each) or NULL: no nulls. Values under a reason
 * are not kept. Returns the bytes written to out, which holds codec_bound(n).
 */
size_t codec_encode(const int64_t *values, const uint8_t *reasons, size_t n, CodecContext *c, uint8_t *out);

/*
 * Decodes one column of n values from *p (before end) and moves *p behind it. Null values come out as 0.
 * Never reads at or past end. -EBADMSG where the bytes are no column of n values; the outputs are then
 * undefined.
 */
int codec_decode(
        const uint8_t **p, const uint8_t *end, size_t n, CodecContext *c, int64_t *values, uint8_t *reasons);

/* LEB128. put: returns the position behind; get: 0, -EBADMSG. */
uint8_t *codec_put_varint(uint8_t *out, uint64_t v);
int codec_get_varint(const uint8_t **p, const uint8_t *end, uint64_t *ret);

static inline uint64_t codec_zigzag(int64_t v) {
        return ((uint64_t) v << 1) ^ (uint64_t) (v >> 63);
}

static inline int64_t codec_unzigzag(uint64_t z) {
        return (int64_t) ((z >> 1) ^ (0 - (z & 1)));
}
