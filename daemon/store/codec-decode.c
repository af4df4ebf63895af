/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The reading half of codec.c, where the format stands. Nothing is believed: a length, width, position or reason that
 * cannot be is -EBADMSG, and no byte at or behind the end is looked at. Unpacking loads eight bytes at a time; a column
 * that ends too near to the end of the input is copied first.
 */

#include <errno.h>
#include <string.h>

#include "cstated/field.h"

#include "store/codec-private.h"

int codec_get_varint(const uint8_t **p, const uint8_t *end, uint64_t *ret) {
        const uint8_t *at = *p;
        uint64_t v = 0;

        for (unsigned shift = 0; shift < 64; shift += 7) {
                if (at == end)
                        return -EBADMSG;
                if (shift == 63 && *at > 1)
                        return -EBADMSG;
                v |= (uint64_t) (*at & 0x7f) << shift;
                if (!(*at++ & 0x80)) {
                        *p = at;
                        *ret = v;
                        return 0;
                }
        }
        return -EBADMSG;
}

static uint64_t load64(const uint8_t *p) {
        uint64_t v;

        memcpy(&v, p, 8);
        return v;
}

/* Needs 9 readable bytes behind the last bit's byte. */
static void get_bits(const uint8_t *p, size_t n, unsigned width, uint64_t *z) {
        uint64_t mask = width == 64 ? UINT64_MAX : (1ULL << width) - 1;
        size_t bit = 0;

        if (width <= 57) {
                for (size_t i = 0; i < n; i++, bit += width)
                        z[i] = load64(p + (bit >> 3)) >> (bit & 7) & mask;
                return;
        }
        for (size_t i = 0; i < n; i++, bit += width) {
                uint64_t x = load64(p + (bit >> 3)) >> (bit & 7);

                if ((bit & 7) + width > 64)
                        x |= (uint64_t) p[(bit >> 3) + 8] << (64 - (bit & 7));
                z[i] = x & mask;
        }
}

static int take_bits(const uint8_t **p, const uint8_t *end, size_t n, unsigned width, uint64_t *z) {
        uint8_t padded[CODEC_TICKS_MAX * 8 + 16];
        size_t size = (n * width + 7) / 8, left = (size_t) (end - *p);

        if (size > left)
                return -EBADMSG;
        if (left - size >= 9)
                get_bits(*p, n, width, z);
        else {
                memcpy(padded, *p, size);
                memset(padded + size, 0, 16);
                get_bits(padded, n, width, z);
        }
        *p += size;
        return 0;
}

static int take_exceptions(
        const uint8_t **p, const uint8_t *end, size_t n, unsigned width, uint64_t count, uint64_t *z) {
        size_t step = n > 256 ? 2 : 1, next = 0;

        for (; count > 0; count--) {
                uint64_t high;
                size_t at;

                if ((size_t) (end - *p) < step)
                        return -EBADMSG;
                at = (*p)[0] | (step == 2 ? (size_t) (*p)[1] << 8 : 0);
                *p += step;
                if (at < next || at >= n || codec_get_varint(p, end, &high) < 0)
                        return -EBADMSG;
                if (high == 0 || codec_bit_length(high) + width > 64)
                        return -EBADMSG;
                z[at] |= high << width;
                next = at + 1;
        }
        return 0;
}

static int take_packed(const uint8_t **p, const uint8_t *end, uint8_t tag, size_t n, int64_t *v) {
        uint64_t *z = (uint64_t *) v, base, count;
        unsigned width = tag & 0x7f;

        if (codec_get_varint(p, end, &base) < 0 || codec_get_varint(p, end, &count) < 0)
                return -EBADMSG;
        if (count > n || (width == 64 && count > 0))
                return -EBADMSG;
        if (take_bits(p, end, n, width, z) < 0 || take_exceptions(p, end, n, width, count, z) < 0)
                return -EBADMSG;
        base = (uint64_t) codec_unzigzag(base);
        if (tag & TAG_PREVIOUS)
                for (size_t i = 0; i < n; i++) {
                        base += (uint64_t) codec_unzigzag(z[i]);
                        z[i] = base;
                }
        else
                for (size_t i = 0; i < n; i++)
                        z[i] = base + (uint64_t) codec_unzigzag(z[i]);
        return 0;
}

static int take_body(const uint8_t **p, const uint8_t *end, uint8_t tag, size_t n, int64_t *v) {
        uint64_t z = 0;

        if ((tag & 0x7f) <= TAG_WIDTH_MAX)
                return take_packed(p, end, tag, n, v);
        if (tag != TAG_ZERO && (tag != TAG_CONSTANT || codec_get_varint(p, end, &z) < 0))
                return -EBADMSG;
        for (size_t i = 0; i < n; i++)
                v[i] = codec_unzigzag(z);
        return 0;
}

static int take_bitmap(const uint8_t **p, const uint8_t *end, size_t n, uint8_t *reasons) {
        size_t size = (n + 7) / 8;
        const uint8_t *at = *p;

        if ((size_t) (end - at) < size + 1 || at[0] == REASON_NONE || at[0] >= REASON_N)
                return -EBADMSG;
        for (size_t i = 0; i < n; i++)
                reasons[i] = at[1 + i / 8] >> i % 8 & 1 ? at[0] : REASON_NONE;
        *p += size + 1;
        return 0;
}

static int take_runs(const uint8_t **p, const uint8_t *end, size_t n, uint8_t *reasons) {
        uint64_t n_runs, length;
        size_t i = 0;

        if (codec_get_varint(p, end, &n_runs) < 0 || n_runs > n)
                return -EBADMSG;
        for (; n_runs > 0; n_runs--) {
                uint8_t reason;

                if (*p == end)
                        return -EBADMSG;
                reason = *(*p)++;
                if (reason >= REASON_N || codec_get_varint(p, end, &length) < 0 || length > n - i)
                        return -EBADMSG;
                memset(reasons + i, reason, length);
                i += length;
        }
        return i == n ? 0 : -EBADMSG;
}

/* Spreads the dense values over the places that are not null, from the back. */
static void spread(int64_t *values, const uint8_t *reasons, size_t n, size_t n_dense) {
        for (size_t i = n; i-- > 0;)
                values[i] = reasons[i] == REASON_NONE ? values[--n_dense] : 0;
}

/* A body, perhaps SCALED; reference: dense as the values are, NULL where there is none. */
static int take_scaled(const uint8_t **p, const uint8_t *end, size_t n, const int64_t *reference, CodecContext *c,
        int64_t *values) {
        uint64_t delta;
        uint8_t tag;

        if (*p == end)
                return -EBADMSG;
        tag = *(*p)++;
        if (tag != TAG_SCALED)
                return take_body(p, end, tag, n, values);
        if (!reference || codec_get_varint(p, end, &delta) < 0 || *p == end)
                return -EBADMSG;
        c->ratio = (int64_t) ((uint64_t) c->ratio + (uint64_t) codec_unzigzag(delta));
        tag = *(*p)++;
        if (take_body(p, end, tag, n, values) < 0)
                return -EBADMSG;
        for (size_t i = 0; i < n; i++)
                values[i] = (int64_t) ((uint64_t) values[i] + codec_scale(reference[i], c->ratio));
        return 0;
}

static int take_beside(const uint8_t **p, const uint8_t *end, uint8_t tag, size_t n,
        const CodecNeighbour *beside, int64_t *values, uint8_t *reasons) {
        if (!beside->values)
                return -EBADMSG;
        if (tag == TAG_SAME) {
                memcpy(values, beside->values, n * sizeof(*values));
                memcpy(reasons, beside->reasons, n);
                return 0;
        }
        memset(reasons, REASON_NONE, n);
        if (*p == end)
                return -EBADMSG;
        tag = *(*p)++;
        if (take_body(p, end, tag, n, values) < 0)
                return -EBADMSG;
        for (size_t i = 0; i < n; i++)
                values[i] = (int64_t) ((uint64_t) values[i] + (uint64_t) beside->values[i]);
        return 0;
}

static size_t count_values(const uint8_t *reasons, size_t n) {
        size_t count = 0;

        for (size_t i = 0; i < n; i++)
                count += reasons[i] == REASON_NONE;
        return count;
}

static int take_nulls(const uint8_t **p, const uint8_t *end, uint8_t tag, size_t n, CodecContext *c, int64_t *values,
        uint8_t *reasons) {
        size_t n_dense;

        if ((tag == TAG_NULLS_BITMAP ? take_bitmap : take_runs)(p, end, n, reasons) < 0)
                return -EBADMSG;
        n_dense = count_values(reasons, n);
        if (n_dense > 0 && take_scaled(p, end, n_dense, NULL, c, values) < 0)
                return -EBADMSG;
        spread(values, reasons, n, n_dense);
        return 0;
}

static int take_nulls_of_reference(
        const uint8_t **p, const uint8_t *end, size_t n, CodecContext *c, int64_t *values, uint8_t *reasons) {
        int64_t dense[CODEC_TICKS_MAX];
        size_t n_dense = 0;

        if (!c->reference.values)
                return -EBADMSG;
        memcpy(reasons, c->reference.reasons, n);
        for (size_t i = 0; i < n; i++)
                if (reasons[i] == REASON_NONE)
                        dense[n_dense++] = c->reference.values[i];
        if (n_dense > 0 && take_scaled(p, end, n_dense, dense, c, values) < 0)
                return -EBADMSG;
        spread(values, reasons, n, n_dense);
        return 0;
}

int codec_decode(
        const uint8_t **p, const uint8_t *end, size_t n, CodecContext *c, int64_t *values, uint8_t *reasons) {
        const int64_t *reference = NULL;
        uint8_t tag;

        if (*p == end || n == 0 || n > CODEC_TICKS_MAX)
                return -EBADMSG;
        tag = *(*p)++;
        switch (tag) {
        case TAG_SAME:
        case TAG_DIFFERENCE:
                return take_beside(p, end, tag, n, &c->beside, values, reasons);
        case TAG_NULLS_BITMAP:
        case TAG_NULLS_RUNS:
                return take_nulls(p, end, tag, n, c, values, reasons);
        case TAG_NULLS_REFERENCE:
                return take_nulls_of_reference(p, end, n, c, values, reasons);
        case TAG_ALL_NULL:
                if (*p == end || **p == REASON_NONE || **p >= REASON_N)
                        return -EBADMSG;
                memset(reasons, *(*p)++, n);
                memset(values, 0, n * sizeof(*values));
                return 0;
        default:
                (*p)--;
                memset(reasons, REASON_NONE, n);
                if (tag == TAG_SCALED && c->reference.values && codec_no_nulls(c->reference.reasons, n))
                        reference = c->reference.values;
                return take_scaled(p, end, n, reference, c, values);
        }
}
