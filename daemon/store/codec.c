/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Patched frame of reference (Zukowski et al., "Super-Scalar RAM-CPU Cache Compression", 2006), fitted to
 * minutes of 60 counters' differences: residuals to a sampled median or to the previous value, zigzag,
 * bit-packed at the width that costs least, the few that do not fit apart.
 *
 *   column  := SAME | ALL_NULL reason | [nulls] [SCALED zigzag-varint] body | DIFFERENCE body
 *   nulls   := NULLS_BITMAP reason bitmap | NULLS_RUNS n_runs (reason length)*         (lengths sum to n)
 *            | NULLS_REFERENCE
 *   body    := ZERO | CONSTANT zigzag-varint
 *            | tag base n_exceptions bits (position high)*       tag = PREVIOUS? | width 0 ... 64
 *
 * SAME and DIFFERENCE refer to the column beside it: clocks that are read once for all CPUs, and those that
 * are late together. The reference is another field of the same entity, whose nulls are the same (NULLS_REFERENCE: a
 * core that sleeps leaves all its counters unread), or of which this one is a multiple, but for what the body says
 * (SCALED: nanoseconds beside ticks of the same reading). SCALED gives by how much the ratio differs from that of the
 * entity before. Only values that are there are packed. Arithmetic is modulo 2^64, so that every int64
 * survives. Positions are one byte up to 256 values, else two; they ascend.
 */

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "cstated/field.h"
#include "cstated/macro.h"

#include "store/codec-private.h"

#define MEDIAN_SAMPLES 9

uint8_t *codec_put_varint(uint8_t *out, uint64_t v) {
        while (v >= 0x80) {
                *out++ = (uint8_t) (v | 0x80);
                v >>= 7;
        }
        *out++ = (uint8_t) v;
        return out;
}

static int64_t sampled_median(const int64_t *v, size_t n) {
        int64_t s[MEDIAN_SAMPLES] = {};
        size_t m = MIN(n, (size_t) MEDIAN_SAMPLES);

        for (size_t i = 0; i < m; i++) {
                int64_t x = v[i * n / m];
                size_t at = i;

                for (; at > 0 && s[at - 1] > x; at--)
                        s[at] = s[at - 1];
                s[at] = x;
        }
        return s[m / 2];
}

/* The width that costs least, in bits, from how many residuals have which length. An exception takes about a
 * byte and 8/7 of a bit for each bit that sticks out. */
static size_t best_width(const uint16_t histogram[65], size_t n, unsigned longest, unsigned *ret_width) {
        size_t best = n * longest, exceptions = 0, excess = 0;

        *ret_width = longest;
        for (unsigned w = longest; w-- > 0;) {
                size_t cost;

                exceptions += histogram[w + 1];
                excess += exceptions;
                cost = n * w + 12 * exceptions + excess * 8 / 7;
                if (cost < best) {
                        best = cost;
                        *ret_width = w;
                }
                if (12 * exceptions > best)
                        break;
        }
        return best;
}

static uint8_t *put_bits(uint8_t *out, const uint64_t *z, size_t n, unsigned width) {
        uint64_t acc = 0, mask = width == 64 ? UINT64_MAX : (1ULL << width) - 1;
        unsigned fill = 0;

        if (width == 0)
                return out;
        for (size_t i = 0; i < n; i++) {
                uint64_t low = z[i] & mask;

                acc |= low << fill;
                if (fill + width < 64) {
                        fill += width;
                        continue;
                }
                memcpy(out, &acc, 8);
                out += 8;
                acc = fill ? low >> (64 - fill) : 0;
                fill = fill + width - 64;
        }
        for (; fill > 0; fill = fill > 8 ? fill - 8 : 0) {
                *out++ = (uint8_t) acc;
                acc >>= 8;
        }
        return out;
}

static uint8_t *put_exceptions(uint8_t *out, const uint64_t *z, size_t n, unsigned width) {
        for (size_t i = 0; i < n; i++)
                if (z[i] >> width) {
                        *out++ = (uint8_t) i;
                        if (n > 256)
                                *out++ = (uint8_t) (i >> 8);
                        out = codec_put_varint(out, z[i] >> width);
                }
        return out;
}

static size_t count_exceptions(const uint64_t *z, size_t n, unsigned width) {
        size_t count = 0;

        for (size_t i = 0; i < n; i++)
                count += z[i] >> width != 0;
        return count;
}

static uint8_t *put_packed(uint8_t *out, const int64_t *v, size_t n) {
        uint64_t z[2][CODEC_TICKS_MAX];
        uint16_t histogram[2][65] = {};
        int64_t base[2] = { sampled_median(v, n), v[0] };
        uint64_t all[2] = {}, previous = (uint64_t) v[0];
        unsigned width[2];
        size_t cost[2];
        unsigned mode;

        for (size_t i = 0; i < n; i++) {
                uint64_t x = (uint64_t) v[i];

                z[0][i] = codec_zigzag((int64_t) (x - (uint64_t) base[0]));
                z[1][i] = codec_zigzag((int64_t) (x - previous));
                previous = x;
                all[0] |= z[0][i];
                all[1] |= z[1][i];
                histogram[0][codec_bit_length(z[0][i])]++;
                histogram[1][codec_bit_length(z[1][i])]++;
        }
        for (mode = 0; mode < 2; mode++)
                cost[mode] = best_width(histogram[mode], n, codec_bit_length(all[mode]), &width[mode]);
        mode = cost[1] < cost[0];
        *out++ = (uint8_t) (width[mode] | (mode ? TAG_PREVIOUS : 0));
        out = codec_put_varint(out, codec_zigzag(base[mode]));
        if (width[mode] == 64) /* nothing sticks out, and a shift by 64 is undefined */
                return put_bits(codec_put_varint(out, 0), z[mode], n, 64);
        out = codec_put_varint(out, count_exceptions(z[mode], n, width[mode]));
        out = put_bits(out, z[mode], n, width[mode]);
        return put_exceptions(out, z[mode], n, width[mode]);
}

static uint8_t *put_body(uint8_t *out, const int64_t *v, size_t n) {
        size_t same = 1;

        while (same < n && v[same] == v[0])
                same++;
        if (same < n)
                return put_packed(out, v, n);
        if (v[0] == 0) {
                *out++ = TAG_ZERO;
                return out;
        }
        *out++ = TAG_CONSTANT;
        return codec_put_varint(out, codec_zigzag(v[0]));
}

/* The null map, as whichever of the two forms is shorter. */
static uint8_t *put_nulls(uint8_t *out, const uint8_t *reasons, size_t n) {
        size_t n_runs = 1;
        uint8_t reason = REASON_NONE;
        bool one_reason = true;

        for (size_t i = 0; i < n; i++) {
                if (i > 0 && reasons[i] != reasons[i - 1])
                        n_runs++;
                if (reasons[i] == REASON_NONE)
                        continue;
                if (reason == REASON_NONE)
                        reason = reasons[i];
                one_reason = one_reason && reasons[i] == reason;
        }
        if (one_reason && (n + 7) / 8 < 2 * n_runs) {
                *out++ = TAG_NULLS_BITMAP;
                *out++ = reason;
                memset(out, 0, (n + 7) / 8);
                for (size_t i = 0; i < n; i++)
                        out[i / 8] |= (uint8_t) ((reasons[i] != REASON_NONE) << i % 8);
                return out + (n + 7) / 8;
        }
        *out++ = TAG_NULLS_RUNS;
        out = codec_put_varint(out, n_runs);
        for (size_t i = 0, length; i < n; i += length) {
                for (length = 1; i + length < n && reasons[i + length] == reasons[i]; length++)
                        ;
                *out++ = reasons[i];
                out = codec_put_varint(out, length);
        }
        return out;
}

/* How far a few of the values lie from their median, in bits. */
static unsigned sampled_cost(const int64_t *v, size_t n) {
        int64_t median = sampled_median(v, n);
        unsigned bits = 0;

        for (size_t i = 0; i < MEDIAN_SAMPLES; i++)
                bits += codec_bit_length(
                        codec_zigzag((int64_t) ((uint64_t) v[i * n / MEDIAN_SAMPLES] - (uint64_t) median)));
        return bits;
}

/* Of the whole column: the ratio of the sums. 0 where there is none that an encoder could use. */
static int64_t measured_ratio(const int64_t *v, const int64_t *reference, size_t n) {
        double sum = 0, sum_reference = 0, ratio;

        for (size_t i = 0; i < n; i++) {
                sum += (double) v[i];
                sum_reference += (double) reference[i];
        }
        ratio = ldexp(sum / sum_reference, CODEC_RATIO_SHIFT);
        return fabs(ratio) < 0x1p40 ? llrint(ratio) : 0; /* false for NAN too */
}

static void residuals(const int64_t *v, const int64_t *reference, int64_t ratio, size_t n, int64_t *ret) {
        for (size_t i = 0; i < n; i++)
                ret[i] = (int64_t) ((uint64_t) v[i] - codec_scale(reference[i], ratio));
}

/*
 * What is left of v when the reference has said its part, by the ratio of the entity before or, where that pays for
 * itself, by its own. Returns the sampled cost.
 */
static unsigned scaled_cost(
        const int64_t *v, const int64_t *reference, size_t n, int64_t before, int64_t *left, int64_t *ret_ratio) {
        int64_t own = measured_ratio(v, reference, n);
        unsigned cost, own_cost;

        residuals(v, reference, before, n, left);
        cost = sampled_cost(left, n);
        *ret_ratio = before;
        if (own == before || own == 0)
                return cost;
        residuals(v, reference, own, n, left);
        own_cost = sampled_cost(left, n) + 4; /* two to four bytes, of 60 values */
        if (own_cost < cost) {
                *ret_ratio = own;
                return own_cost;
        }
        residuals(v, reference, before, n, left);
        return cost;
}

/*
 * Values without nulls: as they are, or what is left of them beside another entity's or behind the reference, where
 * that is clearly less. NULL: there is no such column, or its nulls are other ones.
 */
static uint8_t *put_dense(uint8_t *out, const int64_t *v, size_t n, const int64_t *beside, const int64_t *reference,
        CodecContext *c) {
        int64_t left[CODEC_TICKS_MAX], difference[CODEC_TICKS_MAX], ratio = 0;
        unsigned least = UINT_MAX - MEDIAN_SAMPLES, cost;
        const int64_t *rest = NULL; /* the better of the two */

        assert(n > 0);
        if (reference) {
                least = scaled_cost(v, reference, n, c->ratio, left, &ratio);
                rest = left;
        }
        if (beside) {
                for (size_t i = 0; i < n; i++)
                        difference[i] = (int64_t) ((uint64_t) v[i] - (uint64_t) beside[i]);
                cost = sampled_cost(difference, n);
                rest = cost < least ? difference : rest;
                least = MIN(cost, least);
        }
        if (!rest || least + MEDIAN_SAMPLES > sampled_cost(v, n))
                return put_body(out, v, n);
        if (rest == difference)
                *out++ = TAG_DIFFERENCE;
        else {
                *out++ = TAG_SCALED;
                out = codec_put_varint(out, codec_zigzag((int64_t) ((uint64_t) ratio - (uint64_t) c->ratio)));
                c->ratio = ratio;
                c->referred = true;
        }
        return put_body(out, rest, n);
}

static const int64_t *whole_column(const CodecNeighbour *other, size_t n) {
        return other->values && codec_no_nulls(other->reasons, n) ? other->values : NULL;
}

/* A column without nulls. */
static uint8_t *put_whole(uint8_t *out, const int64_t *v, size_t n, CodecContext *c) {
        if (n < MEDIAN_SAMPLES)
                return put_body(out, v, n);
        return put_dense(out, v, n, whole_column(&c->beside, n), whole_column(&c->reference, n), c);
}

static bool same(const int64_t *values, const uint8_t *reasons, size_t n, const CodecNeighbour *beside) {
        return memcmp(values, beside->values, n * sizeof(*values)) == 0 &&
               (reasons ? memcmp(reasons, beside->reasons, n) == 0 : codec_no_nulls(beside->reasons, n));
}

/* The values under REASON_NONE, closed up. Returns how many. */
static size_t gather(const int64_t *values, const uint8_t *reasons, size_t n, int64_t *ret) {
        size_t m = 0;

        for (size_t i = 0; i < n; i++)
                if (reasons[i] == REASON_NONE)
                        ret[m++] = values[i];
        return m;
}

/* A column with some nulls. */
static uint8_t *put_holes(
        uint8_t *out, const int64_t *values, const uint8_t *reasons, size_t n, CodecContext *c) {
        int64_t dense[CODEC_TICKS_MAX], dense_reference[CODEC_TICKS_MAX];
        size_t n_dense = gather(values, reasons, n, dense);

        if (!c->reference.values || memcmp(reasons, c->reference.reasons, n) != 0) {
                out = put_nulls(out, reasons, n);
                return n_dense > 0 ? put_body(out, dense, n_dense) : out;
        }
        *out++ = TAG_NULLS_REFERENCE;
        c->referred = true;
        (void) gather(c->reference.values, reasons, n, dense_reference);
        return n_dense > 0 ? put_dense(out, dense, n_dense, NULL, dense_reference, c) : out;
}

static bool all_null(const uint8_t *reasons, size_t n) {
        for (size_t i = 1; i < n; i++)
                if (reasons[i] != reasons[0])
                        return false;
        return reasons[0] != REASON_NONE;
}

size_t codec_encode(const int64_t *values, const uint8_t *reasons, size_t n, CodecContext *c, uint8_t *out) {
        const uint8_t *start = out;

        assert(n > 0 && n <= CODEC_TICKS_MAX);
        if (c->beside.values && same(values, reasons, n, &c->beside))
                *out++ = TAG_SAME;
        else if (!reasons || codec_no_nulls(reasons, n))
                out = put_whole(out, values, n, c);
        else if (all_null(reasons, n)) {
                *out++ = TAG_ALL_NULL;
                *out++ = reasons[0];
        } else
                out = put_holes(out, values, reasons, n, c);
        return (size_t) (out - start);
}
