/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <errno.h>

#include "sampler/frame.h"
#include "sampler/topology.h"
#include "tests/unit/sysfs-fixture.h"

static Tick *make_tick(size_t n) {
        Tick *t = tick_new(n);

        assert_non_null(t);
        t->h = (TickHeader){
                .seq = 1,
                .generation = 2,
                .flags = 3,
                .mono_ns = 4,
                .boot_ns = 5,
                .real_us = 6,
                .tsc = UINT64_MAX,
                .interval_ns = 8,
                .self_cpu_ns = 9,
                .self_reads = 10,
                .self_wakeups = 11,
                .self_missed = 12,
                .self_dropped = 13,
                .sample_ns = 14,
                .rss_bytes = 15,
        };
        for (size_t i = 0; i < n; i++) {
                t->values[i] = i * 0x0123456789abcdefULL;
                t->reasons[i] = (uint8_t) (i % REASON_N);
        }
        return t;
}

/* The one frame in these bytes, payload borrowed from the reader. */
static FrameType take_one(
        FrameReader *r, const uint8_t *frame, size_t n, const uint8_t **payload, size_t *n_payload) {
        FrameType type;

        assert_int_equal(frame_reader_feed(r, frame, n), 0);
        assert_int_equal(frame_reader_next(r, &type, payload, n_payload), 1);
        return type;
}

/* The checksum is CRC-32 of IEEE 802.3 over the payload: its check value is known. */
static void test_crc(void **state) {
        static const uint8_t frame[] = {
                'C',
                'S',
                'T',
                'F',
                1,
                0,
                4,
                0,
                9,
                0,
                0,
                0,
                0x26,
                0x39,
                0xf4,
                0xcb,
                '1',
                '2',
                '3',
                '4',
                '5',
                '6',
                '7',
                '8',
                '9',
        };
        _cleanup_(frame_reader_freep) FrameReader *r = frame_reader_new();
        const uint8_t *payload;
        size_t n;

        assert_int_equal(take_one(r, frame, sizeof(frame), &payload, &n), FRAME_EVENT);
        assert_memory_equal(payload, "123456789", 9);
        assert_int_equal(n, 9);
}

static void test_tick_round_trip(void **state) {
        static const size_t counts[] = { 0, 1, 7, 20000 };

        for (size_t k = 0; k < ARRAY_SIZE(counts); k++) {
                _cleanup_(tick_freep) Tick *t = make_tick(counts[k]), *got = NULL;
                _cleanup_(frame_reader_freep) FrameReader *r = frame_reader_new();
                _cleanup_free_ uint8_t *frame = NULL;
                const uint8_t *payload;
                size_t n, n_payload;

                assert_int_equal(frame_encode_tick(t, &frame, &n), 0);
                assert_int_equal(take_one(r, frame, n, &payload, &n_payload), FRAME_TICK);
                assert_int_equal(frame_decode_tick(payload, n_payload, &got), 0);
                assert_memory_equal(&got->h, &t->h, sizeof(t->h));
                assert_int_equal(got->n_values, counts[k]);
                if (counts[k] > 0) {
                        assert_memory_equal(got->values, t->values, counts[k] * sizeof(uint64_t));
                        assert_memory_equal(got->reasons, t->reasons, counts[k]);
                }
        }
}

static void test_wire_is_little_endian(void **state) {
        static const uint8_t head[] = { 'C', 'S', 'T', 'F', 1, 0, 2, 0 };
        _cleanup_(tick_freep) Tick *t = make_tick(1);
        _cleanup_free_ uint8_t *frame = NULL;
        size_t n;

        assert_int_equal(frame_encode_tick(t, &frame, &n), 0);
        assert_memory_equal(frame, head, sizeof(head));
        assert_int_equal(frame[FRAME_HEADER_SIZE], 1);      /* seq */
        assert_int_equal(frame[FRAME_HEADER_SIZE + 8], 2);  /* generation */
        assert_int_equal(frame[FRAME_HEADER_SIZE + 12], 3); /* flags */
        assert_int_equal(n, FRAME_HEADER_SIZE + 8 + 4 + 4 + 12 * 8 + 4 + 9);
}

static void test_split_feeds(void **state) {
        _cleanup_(frame_reader_freep) FrameReader *r = frame_reader_new();
        _cleanup_(tick_freep) Tick *t = make_tick(3);
        _cleanup_free_ uint8_t *frame = NULL;
        const uint8_t *payload;
        FrameType type;
        size_t n, n_payload;

        assert_int_equal(frame_encode_tick(t, &frame, &n), 0);
        for (unsigned round = 0; round < 3; round++)
                for (size_t i = 0; i < n; i++) {
                        assert_int_equal(frame_reader_feed(r, frame + i, 1), 0);
                        assert_int_equal(frame_reader_next(r, &type, &payload, &n_payload), i + 1 == n);
                }
        /* two at once */
        assert_int_equal(frame_reader_feed(r, frame, n), 0);
        assert_int_equal(frame_reader_feed(r, frame, n), 0);
        assert_int_equal(frame_reader_next(r, &type, &payload, &n_payload), 1);
        assert_int_equal(frame_reader_next(r, &type, &payload, &n_payload), 1);
        assert_int_equal(frame_reader_next(r, &type, &payload, &n_payload), 0);
}

/* One byte wrong anywhere: no frame comes out of the stream any more. */
static void test_damage(void **state) {
        _cleanup_(tick_freep) Tick *t = make_tick(2);
        _cleanup_free_ uint8_t *frame = NULL;
        size_t n;

        assert_int_equal(frame_encode_tick(t, &frame, &n), 0);
        for (size_t i = 0; i < n; i++) {
                _cleanup_(frame_reader_freep) FrameReader *r = frame_reader_new();
                const uint8_t *payload;
                FrameType type;
                size_t n_payload;
                int got;

                frame[i] ^= 0x40;
                assert_int_equal(frame_reader_feed(r, frame, n), 0);
                got = frame_reader_next(r, &type, &payload, &n_payload);
                if (i == 6) { /* the type: another known one is for the payload's decoder to refuse */
                        assert_int_equal(got, -EBADMSG);
                } else if (i >= 8 && i < 11) { /* a longer frame that never comes */
                        assert_true(got <= 0);
                } else {
                        assert_int_equal(got, -EBADMSG);
                        frame[i] ^= 0x40;
                        assert_int_equal(frame_reader_feed(r, frame, n), 0);
                        assert_int_equal(
                                frame_reader_next(r, &type, &payload, &n_payload), -EBADMSG); /* stays so */
                        frame[i] ^= 0x40;
                }
                frame[i] ^= 0x40;
        }
}

static void test_length_is_bounded(void **state) {
        uint8_t head[FRAME_HEADER_SIZE] = { 'C', 'S', 'T', 'F', 1, 0, 1, 0, 1, 0, 0,
                1 }; /* 16 MiB and a byte */
        _cleanup_(frame_reader_freep) FrameReader *r = frame_reader_new();
        const uint8_t *payload;
        FrameType type;
        size_t n;

        assert_int_equal(frame_reader_feed(r, head, sizeof(head)), 0);
        assert_int_equal(frame_reader_next(r, &type, &payload, &n), -EBADMSG);
}

static void test_tick_payloads_that_lie(void **state) {
        _cleanup_(tick_freep) Tick *t = make_tick(2), *got = NULL;
        _cleanup_free_ uint8_t *frame = NULL;
        uint8_t *p, *count;
        size_t n;

        assert_int_equal(frame_encode_tick(t, &frame, &n), 0);
        p = frame + FRAME_HEADER_SIZE;
        n -= FRAME_HEADER_SIZE;
        for (size_t i = 0; i < n; i++)
                assert_int_equal(frame_decode_tick(p, i, &got), -EBADMSG);
        count = p + 8 + 4 + 4 + 12 * 8;
        for (unsigned wrong = 0; wrong < 256; wrong++)
                if (wrong != 2) {
                        *count = (uint8_t) wrong;
                        assert_int_equal(frame_decode_tick(p, n, &got), -EBADMSG);
                }
        *count = 2;
        count[3] = 0x80; /* a count that would overflow */
        assert_int_equal(frame_decode_tick(p, n, &got), -EBADMSG);
        count[3] = 0;
        p[n - 1] = REASON_N;
        assert_int_equal(frame_decode_tick(p, n, &got), -EBADMSG);
        assert_null(got);
}

static void test_machine_round_trip(void **state) {
        _cleanup_(frame_reader_freep) FrameReader *r = frame_reader_new();
        _cleanup_(machine_freep) Machine *m = NULL, *got = NULL;
        _cleanup_free_ uint8_t *frame = NULL;
        const uint8_t *payload;
        size_t n, n_payload;
        Fixture f;

        fixture_init(&f);
        fixture_write(&f, "1,8-9\n", "sys/devices/system/cpu/online");
        assert_int_equal(topology_read(f.sysfs, NULL, &m), 0);
        fixture_deinit(&f);
        assert_non_null(layout_add(&m->layout, FIELD_IRQ, 0));
        layout_finish(&m->layout);
        m->generation = 5;
        assert_int_equal(frame_encode_machine(m, &frame, &n), 0);
        assert_int_equal(take_one(r, frame, n, &payload, &n_payload), FRAME_MACHINE);
        assert_int_equal(frame_decode_machine(payload, n_payload, &got), 0);
        assert_int_equal(got->generation, 5);
        assert_int_equal(got->n_cpus, 3);
        assert_true(layout_equal(&got->layout, &m->layout));
        assert_int_equal(frame_decode_machine(payload, n_payload - 1, &m), -EBADMSG);
}

static void test_status_round_trip(void **state) {
        _cleanup_(frame_reader_freep) FrameReader *r = frame_reader_new();
        SamplerStatus s = { .n_sources = 2, .wake_policy = "lazy", .wake_policy_hint = "local cannot be had: \"x\"", .capabilities = "sys_rawio" },
                      got = {};
        _cleanup_free_ uint8_t *frame = NULL;
        const uint8_t *payload;
        size_t n, n_payload;

        s.sources[0] = (SourceStatus){
                .name = "msr", .state = SOURCE_DENIED, .error = EPERM, .hint = "needs \"CAP_SYS_RAWIO\"\n"
        };
        s.sources[1] = (SourceStatus){
                .name = "cpuidle", .state = SOURCE_OK, .detail = "sysfs, 4 states", .n_counters = 21
        };
        assert_int_equal(frame_encode_status(&s, &frame, &n), 0);
        assert_int_equal(take_one(r, frame, n, &payload, &n_payload), FRAME_STATUS);
        assert_int_equal(frame_decode_status(payload, n_payload, &got), 0);
        assert_memory_equal(&got, &s, sizeof(s));
}

#define STATUS(sources) "{\"wake_policy\":\"lazy\",\"capabilities\":\"\",\"sources\":" sources "}"
#define SOURCE(state, error) \
        "{\"name\":\"msr\",\"state\":\"" state "\",\"errno\":" error ",\"hint\":\"\",\"detail\":\"\",\"counters\":0}"

static void test_statuses_that_lie(void **state) {
        static const char *const texts[] = {
                "",
                "{}",
                "[]",
                "{\"wake_policy\":\"lazy\"}",
                "{\"wake_policy\":\"a name that is far too long\",\"capabilities\":\"\",\"sources\":[]}",
                STATUS("{}"),
                STATUS("[1]"),
                STATUS("[" SOURCE("fine", "0") "]"),
                STATUS("[" SOURCE("ok", "-1") "]"),
                STATUS("[1,2,3,4,5,6,7,8,9,10,11,12,13]"),
        };
        static const char good[] = STATUS("[" SOURCE("ok", "0") "]");
        SamplerStatus got = { .wake_policy = "kept" };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                assert_int_equal(
                        frame_decode_status((const uint8_t *) texts[i], strlen(texts[i]), &got), -EBADMSG);
        assert_string_equal(got.wake_policy, "kept");
        assert_int_equal(frame_decode_status((const uint8_t *) good, strlen(good), &got), 0);
        assert_int_equal(got.n_sources, 1);
}

static void test_events(void **state) {
        FrameEvent e = { .kind = "hotplug", .time_us = 1700000000000000ULL, .cpu = 5, .text = "offline: 5" },
                   got;
        static const char *const wrong[] = {
                "{}",
                "{\"kind\":\"gap\",\"text\":\"\"}",
                "{\"kind\":\"gap\",\"time_us\":-1,\"text\":\"\"}",
                "{\"kind\":\"gap\",\"time_us\":1,\"cpu\":-1,\"text\":\"\"}",
                "{\"kind\":5,\"time_us\":1,\"text\":\"\"}",
                "{\"kind\":\"a kind that is longer than kinds can be\",\"time_us\":1,\"text\":\"\"}",
        };

        for (unsigned round = 0; round < 2; round++) {
                _cleanup_(frame_reader_freep) FrameReader *r = frame_reader_new();
                _cleanup_free_ uint8_t *frame = NULL;
                const uint8_t *payload;
                size_t n, n_payload;

                e.cpu = round == 0 ? 5 : -1;
                assert_int_equal(frame_encode_event(&e, &frame, &n), 0);
                assert_int_equal(take_one(r, frame, n, &payload, &n_payload), FRAME_EVENT);
                assert_int_equal(frame_decode_event(payload, n_payload, &got), 0);
                assert_string_equal(got.kind, e.kind);
                assert_string_equal(got.text, e.text);
                assert_true(got.time_us == e.time_us);
                assert_int_equal(got.cpu, e.cpu);
        }
        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
                assert_int_equal(
                        frame_decode_event((const uint8_t *) wrong[i], strlen(wrong[i]), &got), -EBADMSG);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_crc),
                cmocka_unit_test(test_tick_round_trip),
                cmocka_unit_test(test_wire_is_little_endian),
                cmocka_unit_test(test_split_feeds),
                cmocka_unit_test(test_damage),
                cmocka_unit_test(test_length_is_bounded),
                cmocka_unit_test(test_tick_payloads_that_lie),
                cmocka_unit_test(test_machine_round_trip),
                cmocka_unit_test(test_status_round_trip),
                cmocka_unit_test(test_statuses_that_lie),
                cmocka_unit_test(test_events),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
