/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <errno.h>
#include <stdlib.h>

#include "cstated/field.h"
#include "cstated/macro.h"
#include "store/codec.h"

static uint64_t state_ = 88172645463325252ULL;

static uint64_t random64(void) {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return state_ * 0x2545f4914f6cdd1dULL;
}

/* Encodes, decodes from a buffer of exactly the encoded size, compares; returns the size. */
static size_t round_trip_in(const int64_t *values, const uint8_t *reasons, size_t n, const CodecContext *in) {
        uint8_t *out = malloc(codec_bound(n)), *exact, *r = malloc(n);
        int64_t *v = malloc(n * sizeof(*v));
        CodecContext c = *in;
        const uint8_t *p;
        size_t size;

        assert_true(out && r && v);
        size = codec_encode(values, reasons, n, &c, out);
        assert_in_range(size, 1, codec_bound(n));
        exact = malloc(size);
        assert_non_null(exact);
        memcpy(exact, out, size);
        p = exact;
        c = *in;
        assert_int_equal(codec_decode(&p, exact + size, n, &c, v, r), 0);
        assert_ptr_equal(p, exact + size);
        for (size_t i = 0; i < n; i++) {
                assert_int_equal(r[i], reasons ? reasons[i] : REASON_NONE);
                assert_true(v[i] == (r[i] ? 0 : values[i]));
        }
        /* Every truncation is refused. */
        for (size_t cut = 0; cut < size; cut += 1 + size / 64) {
                uint8_t *less = malloc(MAX(cut, (size_t) 1));

                assert_non_null(less);
                memcpy(less, exact, cut);
                p = less;
                c = *in;
                assert_int_equal(codec_decode(&p, less + cut, n, &c, v, r), -EBADMSG);
                free(less);
        }
        free(exact);
        free(out);
        free(r);
        free(v);
        return size;
}

static size_t round_trip_beside(
        const int64_t *values, const uint8_t *reasons, size_t n, const CodecNeighbour *beside) {
        return round_trip_in(values, reasons, n, &(CodecContext){.beside = *beside});
}

static size_t round_trip(const int64_t *values, const uint8_t *reasons, size_t n) {
        return round_trip_in(values, reasons, n, &(CodecContext){});
}

/* A clock read once for all CPUs costs a byte; clocks that are late together cost what they differ. */
static void test_neighbours(void **state) {
        int64_t a[60], b[60], decoded[60];
        uint8_t ra[60] = {}, rb[60] = {}, out[3] = {};
        CodecNeighbour beside = {a, ra};
        const uint8_t *p;

        for (size_t i = 0; i < 60; i++)
                a[i] = b[i] = 1000000000 + (int64_t) (random64() % 100000);
        assert_int_equal(round_trip_beside(b, NULL, 60, &beside), 1);
        assert_int_equal(round_trip_beside(b, rb, 60, &beside), 1);
        (void) codec_encode(b, NULL, 60, &(CodecContext){.beside = beside}, out);
        p = out;
        assert_int_equal(codec_decode(&p, out + 1, 60, &(CodecContext){}, decoded, rb), -EBADMSG);
        for (size_t i = 0; i < 60; i++)
                b[i] = a[i] + 3000 + (int64_t) (random64() % 8);
        assert_in_range(round_trip_beside(b, NULL, 60, &beside), 2, 60 * 4 / 8 + 10);
        b[7] = INT64_MIN;
        a[9] = INT64_MAX;
        (void) round_trip_beside(b, NULL, 60, &beside);
        ra[3] = rb[3] = REASON_ASLEEP;
        a[3] = b[3] = 0;
        (void) round_trip_beside(b, rb, 60, &beside);
        memcpy(b, a, sizeof(b));
        assert_int_equal(round_trip_beside(b, rb, 60, &(CodecNeighbour){b, rb}), 1);
        (void) round_trip_beside(b, NULL, 60, &beside);
}

/* Nanoseconds beside the ticks of the same reading: what is left is rounding, not a clock's nine digits. */
static void test_reference(void **state) {
        int64_t tsc[60], ns[60], w[60];
        uint8_t none[60] = {}, r[60], out[64 + 60 * 24];
        CodecContext c = {.reference = {tsc, none}};
        size_t own, next, alone;
        const uint8_t *p = out;

        for (size_t i = 0; i < 60; i++) {
                tsc[i] = 2050781 + (int64_t) (random64() % 40000);
                ns[i] = (tsc[i] * 1024 + (int64_t) (random64() % 1024)) * 10 / 21;
        }
        alone = round_trip(ns, NULL, 60);
        own = codec_encode(ns, none, 60, &c, out);
        assert_true(c.referred && own < alone * 5 / 8);
        c.referred = false;
        next = codec_encode(ns, none, 60, &c, out); /* the next entity's has the ratio already */
        assert_true(c.referred && next + 3 <= own);
        c.ratio = 0;
        own = codec_encode(ns, none, 60, &c, out);
        assert_int_equal(codec_decode(&p, out + own, 60, &(CodecContext){}, w, r), -EBADMSG);
        assert_int_equal(round_trip_in(tsc, none, 60, &(CodecContext){.reference = {tsc, none}}), 6);
        c.ratio = 0;
        assert_int_equal(round_trip_in(ns, NULL, 60, &c), own);
}

/* A core that slept leaves all its counters unread at the same ticks: they say so once. */
static void test_nulls_of_reference(void **state) {
        int64_t tsc[60], v[60];
        uint8_t asleep[60], other[60];
        CodecContext c = {.reference = {tsc, asleep}};
        size_t alone;

        for (size_t i = 0; i < 60; i++) {
                asleep[i] = other[i] = random64() % 2 ? REASON_ASLEEP : REASON_NONE;
                tsc[i] = asleep[i] ? 0 : 2050781;
                v[i] = asleep[i] ? 0 : (int64_t) (random64() % 256);
        }
        alone = round_trip(v, asleep, 60);
        assert_int_equal(round_trip_in(v, asleep, 60, &c), alone - 9); /* eight of them, and why */
        other[30] = asleep[30] ? REASON_NONE : REASON_GAP;
        assert_int_equal(round_trip_in(v, other, 60, &c), round_trip(v, other, 60));
        memset(asleep, REASON_ASLEEP, 60);
        assert_int_equal(round_trip_in(v, asleep, 60, &c), 2);
}

static void test_constants(void **state) {
        int64_t v[60] = {};

        assert_int_equal(round_trip(v, NULL, 60), 1);
        for (size_t i = 0; i < 60; i++)
                v[i] = 42;
        assert_int_equal(round_trip(v, NULL, 60), 2);
        for (size_t i = 0; i < 60; i++)
                v[i] = -5000;
        assert_int_equal(round_trip(v, NULL, 60), 3);
        for (size_t i = 0; i < 60; i++)
                v[i] = INT64_MIN;
        (void) round_trip(v, NULL, 60);
        assert_int_equal(round_trip(v, NULL, 1), 11);
}

/* A step counter: residual to the previous value costs next to nothing. */
static void test_slow_drift_is_small(void **state) {
        int64_t v[60];

        for (int i = 0; i < 60; i++)
                v[i] = 1000000 + 1000 * i + i % 2;
        assert_in_range(round_trip(v, NULL, 60), 1, 60 * 12 / 8 + 12);
        for (int i = 0; i < 60; i++)
                v[i] = 2050000 + (int64_t) (random64() % 256);
        assert_in_range(round_trip(v, NULL, 60), 1, 60 * 9 / 8 + 12);
        /* a lone spike is patched, not paid for by all */
        v[30] = INT64_MAX;
        assert_in_range(round_trip(v, NULL, 60), 1, 60 * 9 / 8 + 30);
}

static void test_nulls(void **state) {
        uint8_t reasons[60] = {};
        int64_t v[60];

        for (size_t i = 0; i < 60; i++)
                v[i] = (int64_t) i * 7;
        memset(reasons, REASON_ABSENT, 60);
        assert_int_equal(round_trip(v, reasons, 60), 2);
        for (size_t i = 0; i < 60; i++)
                reasons[i] = i % 2 ? REASON_ASLEEP : REASON_NONE;
        (void) round_trip(v, reasons, 60);
        for (size_t i = 0; i < 60; i++)
                reasons[i] = (uint8_t) (i % REASON_N);
        (void) round_trip(v, reasons, 60);
        memset(reasons, REASON_ERROR, 60);
        reasons[59] = REASON_NONE;
        (void) round_trip(v, reasons, 60);
        reasons[59] = REASON_OFFLINE;
        assert_int_equal(round_trip(v, reasons, 60), 6);
        memset(reasons, REASON_NONE, 60);
        (void) round_trip(v, reasons, 60);
}

static int64_t draw(unsigned kind, size_t i, int64_t previous) {
        static const int64_t corners[] = {INT64_MIN, INT64_MAX, 0, -1, 1, INT64_MIN + 1, INT64_MAX - 1,
                (int64_t) 1 << 32, -((int64_t) 1 << 32)};

        switch (kind) {
        case 0:
                return (int64_t) random64();
        case 1:
                return (int64_t) (random64() >> random64() % 64);
        case 2:
                return corners[random64() % ARRAY_SIZE(corners)];
        case 3:
                return (int64_t) ((uint64_t) previous + random64() % 100);
        case 4:
                return random64() % 20 ? 7 : (int64_t) random64();
        case 5:
                return (int64_t) i * 1000003;
        case 6:
                return i % 2 ? INT64_MAX : INT64_MIN;
        default:
                return (int64_t) (random64() % 3) - 1;
        }
}

static void test_random_columns(void **state) {
        static const size_t sizes[] = {
                1, 2, 3, 7, 8, 9, 59, 60, 61, 64, 255, 256, 257, 600, CODEC_TICKS_MAX};
        static int64_t v[CODEC_TICKS_MAX], beside[CODEC_TICKS_MAX];
        static uint8_t reasons[CODEC_TICKS_MAX], beside_reasons[CODEC_TICKS_MAX];

        for (unsigned round = 0; round < 40; round++)
                for (size_t k = 0; k < ARRAY_SIZE(sizes); k++)
                        for (unsigned kind = 0; kind < 8; kind++) {
                                unsigned density = (unsigned) (random64() % 4);

                                for (size_t i = 0; i < sizes[k]; i++) {
                                        v[i] = draw(kind, i, i > 0 ? v[i - 1] : 0);
                                        reasons[i] = random64() % 4 < density
                                                             ? (uint8_t) (random64() % REASON_N)
                                                             : 0;
                                }
                                (void) round_trip(v, density ? reasons : NULL, sizes[k]);
                                (void) round_trip_beside(v, density ? reasons : NULL, sizes[k],
                                        &(CodecNeighbour){beside, beside_reasons});
                                (void) round_trip_in(v, density ? reasons : NULL, sizes[k],
                                        &(CodecContext){.reference = {beside, density ? reasons : beside_reasons},
                                                .ratio = (int64_t) random64()});
                                memcpy(beside, v, sizeof(v));
                                memcpy(beside_reasons, reasons, sizeof(reasons));
                                for (size_t i = 0; i < sizes[k]; i++)
                                        beside[i] = reasons[i] ? 0 : beside[i];
                        }
}

/* Every width, full and with one exception a bit wider. */
static void test_every_width(void **state) {
        int64_t v[60];

        for (unsigned width = 1; width <= 64; width++)
                for (unsigned exception = 0; exception < 2; exception++) {
                        for (size_t i = 0; i < 60; i++)
                                v[i] = (int64_t) (random64() >> (64 - width));
                        if (exception)
                                v[17] = (int64_t) random64();
                        (void) round_trip(v, NULL, 60);
                }
}

/* Flipped and random bytes: an error or some column, never a read outside (the sanitizer build sees to
 * that). */
static void test_damaged_bytes(void **state) {
        uint8_t out[48 + 60 * 24], r[60];
        int64_t v[60], w[60], other[60] = {5};
        uint8_t other_reasons[60] = {};
        unsigned refused = 0;

        for (unsigned round = 0; round < 20000; round++) {
                CodecContext in = {.beside = {other, other_reasons}}, c;
                const uint8_t *p;
                uint8_t *exact;
                size_t size;

                if (round % 2) /* the same column as a reference of values and of nulls */
                        in.reference = in.beside, in.beside = (CodecNeighbour){};
                c = in;
                for (size_t i = 0; i < 60; i++)
                        v[i] = draw(round % 8, i, i > 0 ? v[i - 1] : 0);
                size = round % 3 ? codec_encode(v, NULL, 60, &c, out) : 1 + random64() % sizeof(out);
                exact = malloc(size);
                assert_non_null(exact);
                if (round % 3)
                        memcpy(exact, out, size);
                for (size_t i = 0; i < (round % 3 ? 1 + random64() % 3 : size); i++)
                        exact[round % 3 ? random64() % size : i] = (uint8_t) random64();
                p = exact;
                c = in;
                if (codec_decode(&p, exact + size, 60, &c, w, r) < 0)
                        refused++;
                else {
                        assert_true(p > exact && p <= exact + size);
                        for (size_t i = 0; i < 60; i++)
                                assert_in_range(r[i], 0, REASON_N - 1);
                }
                free(exact);
        }
        assert_true(refused > 1000);
}

static void test_varint(void **state) {
        static const uint8_t overlong[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02};
        uint8_t b[16];
        uint64_t v = 5;

        for (unsigned i = 0; i < 64; i++) {
                const uint8_t *p = b, *end = codec_put_varint(b, 1ULL << i);

                assert_int_equal(codec_get_varint(&p, end, &v), 0);
                assert_true(v == 1ULL << i && p == end);
                p = b;
                assert_int_equal(codec_get_varint(&p, end - 1, &v), -EBADMSG);
        }
        {
                const uint8_t *p = overlong;

                assert_int_equal(codec_get_varint(&p, overlong + sizeof(overlong), &v), -EBADMSG);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_constants),
                cmocka_unit_test(test_slow_drift_is_small),
                cmocka_unit_test(test_neighbours),
                cmocka_unit_test(test_reference),
                cmocka_unit_test(test_nulls_of_reference),
                cmocka_unit_test(test_nulls),
                cmocka_unit_test(test_random_columns),
                cmocka_unit_test(test_every_width),
                cmocka_unit_test(test_damaged_bytes),
                cmocka_unit_test(test_varint),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
