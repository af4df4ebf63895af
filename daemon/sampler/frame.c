/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Encoding and decoding of frames. All integers are little endian, written byte by byte (compilers make one
 * store of it), so that a --record file can be replayed on any machine. The reader keeps one buffer that
 * never grows beyond a header and the largest payload; once a stream was damaged nothing after it is
 * believed.
 */

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <zlib.h>

#include "base/json-writer.h"
#include "sampler/frame.h"

#define TICK_U64S 13
#define TICK_HEADER_SIZE (2 * 4 + TICK_U64S * 8 + 4)
#define TICK_VALUES_MAX ((FRAME_PAYLOAD_MAX - TICK_HEADER_SIZE) / 9)

static uint8_t *put_u16(uint8_t *p, uint16_t v) {
        p[0] = (uint8_t) v;
        p[1] = (uint8_t) (v >> 8);
        return p + 2;
}

static uint8_t *put_u32(uint8_t *p, uint32_t v) {
        return put_u16(put_u16(p, (uint16_t) v), (uint16_t) (v >> 16));
}

static uint8_t *put_u64(uint8_t *p, uint64_t v) {
        return put_u32(put_u32(p, (uint32_t) v), (uint32_t) (v >> 32));
}

static uint16_t get_u16(const uint8_t *p) {
        return (uint16_t) (p[0] | p[1] << 8);
}

static uint32_t get_u32(const uint8_t *p) {
        return get_u16(p) | (uint32_t) get_u16(p + 2) << 16;
}

static uint64_t get_u64(const uint8_t *p) {
        return get_u32(p) | (uint64_t) get_u32(p + 4) << 32;
}

static uint32_t frame_crc(const uint8_t *p, size_t n) {
        return (uint32_t) crc32_z(0, p, n);
}

/* Room for a frame whose payload has n bytes. */
static int frame_alloc(size_t n, uint8_t **ret) {
        if (n > FRAME_PAYLOAD_MAX)
                return -EMSGSIZE;
        *ret = malloc(FRAME_HEADER_SIZE + n);
        return *ret ? 0 : -ENOMEM;
}

/* Writes the header before a payload that stands in its place. */
static void frame_seal(uint8_t *frame, FrameType type, size_t n) {
        uint8_t *p = put_u32(frame, FRAME_MAGIC);

        p = put_u16(p, FRAME_VERSION);
        p = put_u16(p, (uint16_t) type);
        p = put_u32(p, (uint32_t) n);
        (void) put_u32(p, frame_crc(frame + FRAME_HEADER_SIZE, n));
}

/* Takes the text over. */
static int frame_encode_text(FrameType type, char *text, uint8_t **ret, size_t *ret_n) {
        _cleanup_free_ char *t = text;
        uint8_t *frame;
        size_t n;
        int r;

        if (!t)
                return -ENOMEM;
        n = strlen(t);
        r = frame_alloc(n, &frame);
        if (r < 0)
                return r;
        memcpy(frame + FRAME_HEADER_SIZE, t, n);
        frame_seal(frame, type, n);
        *ret = frame;
        *ret_n = FRAME_HEADER_SIZE + n;
        return 0;
}

int frame_encode_machine(const Machine *m, uint8_t **ret, size_t *ret_n) {
        return frame_encode_text(FRAME_MACHINE, machine_to_json(m), ret, ret_n);
}

int frame_encode_status(const SamplerStatus *s, uint8_t **ret, size_t *ret_n) {
        return frame_encode_text(FRAME_STATUS, sampler_status_to_json(s), ret, ret_n);
}

int frame_encode_event(const FrameEvent *e, uint8_t **ret, size_t *ret_n) {
        JsonWriter j = JSON_WRITER_INIT;
        char *text;

        jw_begin_object(&j);
        jw_key_string(&j, "kind", e->kind);
        jw_key_u64(&j, "time_us", e->time_us);
        if (e->cpu >= 0)
                jw_key_i64(&j, "cpu", e->cpu);
        jw_key_string(&j, "text", e->text);
        jw_end_object(&j);
        text = jw_take(&j, NULL);
        jw_deinit(&j);
        return frame_encode_text(FRAME_EVENT, text, ret, ret_n);
}

/* The header's u64 words in their order on the wire. */
static void tick_words(const TickHeader *h, uint64_t w[TICK_U64S]) {
        const uint64_t words[TICK_U64S] = {
                h->seq,
                h->mono_ns,
                h->boot_ns,
                h->real_us,
                h->tsc,
                h->interval_ns,
                h->self_cpu_ns,
                h->self_reads,
                h->self_wakeups,
                h->self_missed,
                h->self_dropped,
                h->sample_ns,
                h->rss_bytes,
        };

        memcpy(w, words, sizeof(words));
}

int frame_encode_tick(const Tick *t, uint8_t **ret, size_t *ret_n) {
        uint64_t w[TICK_U64S];
        uint8_t *frame, *p;
        size_t n;
        int r;

        if (t->n_values > TICK_VALUES_MAX)
                return -EMSGSIZE;
        n = TICK_HEADER_SIZE + t->n_values * 9;
        r = frame_alloc(n, &frame);
        if (r < 0)
                return r;
        tick_words(&t->h, w);
        p = put_u64(frame + FRAME_HEADER_SIZE, w[0]);
        p = put_u32(p, t->h.generation);
        p = put_u32(p, t->h.flags);
        for (size_t i = 1; i < TICK_U64S; i++)
                p = put_u64(p, w[i]);
        p = put_u32(p, (uint32_t) t->n_values);
        for (size_t i = 0; i < t->n_values; i++)
                p = put_u64(p, t->values[i]);
        if (t->n_values > 0)
                memcpy(p, t->reasons, t->n_values);
        frame_seal(frame, FRAME_TICK, n);
        *ret = frame;
        *ret_n = FRAME_HEADER_SIZE + n;
        return 0;
}

static void tick_header_decode(const uint8_t *p, TickHeader *h) {
        const uint8_t *w = p + 16; /* behind seq, generation, flags */

        *h = (TickHeader){
                .seq = get_u64(p),
                .generation = get_u32(p + 8),
                .flags = get_u32(p + 12),
                .mono_ns = get_u64(w),
                .boot_ns = get_u64(w + 8),
                .real_us = get_u64(w + 16),
                .tsc = get_u64(w + 24),
                .interval_ns = get_u64(w + 32),
                .self_cpu_ns = get_u64(w + 40),
                .self_reads = get_u64(w + 48),
                .self_wakeups = get_u64(w + 56),
                .self_missed = get_u64(w + 64),
                .self_dropped = get_u64(w + 72),
                .sample_ns = get_u64(w + 80),
                .rss_bytes = get_u64(w + 88),
        };
}

int frame_decode_tick(const uint8_t *payload, size_t n, Tick **ret) {
        _cleanup_(tick_freep) Tick *t = NULL;
        const uint8_t *values, *reasons;
        size_t n_values;

        if (n < TICK_HEADER_SIZE)
                return -EBADMSG;
        n_values = get_u32(payload + TICK_HEADER_SIZE - 4);
        if (n_values > TICK_VALUES_MAX || n != TICK_HEADER_SIZE + n_values * 9)
                return -EBADMSG;
        values = payload + TICK_HEADER_SIZE;
        reasons = values + n_values * 8;
        for (size_t i = 0; i < n_values; i++)
                if (reasons[i] >= REASON_N)
                        return -EBADMSG;
        t = tick_new(n_values);
        if (!t)
                return -ENOMEM;
        tick_header_decode(payload, &t->h);
        for (size_t i = 0; i < n_values; i++)
                t->values[i] = get_u64(values + i * 8);
        if (n_values > 0)
                memcpy(t->reasons, reasons, n_values);
        *ret = TAKE_PTR(t);
        return 0;
}

int frame_decode_machine(const uint8_t *payload, size_t n, Machine **ret) {
        return machine_from_json((const char *) payload, n, ret);
}

int frame_decode_status(const uint8_t *payload, size_t n, SamplerStatus *ret) {
        return sampler_status_from_json((const char *) payload, n, ret);
}

static int event_text(const json_t *root, const char *key, char *buf, size_t size) {
        const json_t *v = json_object_get(root, key);
        const char *s = json_string_value(v);

        if (!s || strlen(s) >= size)
                return -EBADMSG;
        memcpy(buf, s, strlen(s) + 1);
        return 0;
}

int frame_decode_event(const uint8_t *payload, size_t n, FrameEvent *ret) {
        _cleanup_(json_decrefp) json_t *root =
                json_loadb((const char *) payload, n, JSON_REJECT_DUPLICATES, NULL);
        const json_t *time_us = json_object_get(root, "time_us"), *cpu = json_object_get(root, "cpu");
        FrameEvent e = { .cpu = -1 };

        if (event_text(root, "kind", e.kind, sizeof(e.kind)) < 0 ||
                event_text(root, "text", e.text, sizeof(e.text)) < 0)
                return -EBADMSG;
        if (!json_is_integer(time_us) || json_integer_value(time_us) < 0)
                return -EBADMSG;
        if (cpu && (!json_is_integer(cpu) || json_integer_value(cpu) < 0))
                return -EBADMSG;
        e.time_us = (uint64_t) json_integer_value(time_us);
        if (cpu)
                e.cpu = json_integer_value(cpu);
        *ret = e;
        return 0;
}

struct FrameReader {
        uint8_t *buf;
        size_t n, size; /* bytes held, allocated */
        size_t begin;   /* of the first frame not yet handed out */
        bool damaged;
};

FrameReader *frame_reader_new(void) {
        return calloc(1, sizeof(FrameReader));
}

FrameReader *frame_reader_free(FrameReader *r) {
        if (r) {
                free(r->buf);
                free(r);
        }
        return NULL;
}

int frame_reader_feed(FrameReader *r, const void *data, size_t n) {
        if (r->begin > 0) {
                memmove(r->buf, r->buf + r->begin, r->n - r->begin);
                r->n -= r->begin;
                r->begin = 0;
        }
        if (n > r->size - r->n) {
                size_t size = r->n + n + (r->n + n) / 2 + 4096;
                uint8_t *grown = realloc(r->buf, size);

                if (!grown)
                        return -ENOMEM;
                r->buf = grown;
                r->size = size;
        }
        if (n > 0)
                memcpy(r->buf + r->n, data, n);
        r->n += n;
        return 0;
}

/* -EBADMSG unless a header of ours, with a length that can be, stands at p. */
static int header_check(const uint8_t *p, size_t *ret_n) {
        uint16_t type = get_u16(p + 6);
        uint32_t n = get_u32(p + 8);

        if (get_u32(p) != FRAME_MAGIC || get_u16(p + 4) != FRAME_VERSION)
                return -EBADMSG;
        if (type < FRAME_MACHINE || type > FRAME_EVENT || n > FRAME_PAYLOAD_MAX)
                return -EBADMSG;
        *ret_n = n;
        return 0;
}

int frame_reader_next(FrameReader *r, FrameType *ret_type, const uint8_t **ret_payload, size_t *ret_n) {
        size_t n_held = r->n - r->begin, n = 0;
        const uint8_t *p;

        if (r->damaged)
                return -EBADMSG;
        if (n_held < FRAME_HEADER_SIZE)
                return 0;
        p = r->buf + r->begin;
        if (header_check(p, &n) < 0)
                goto damaged;
        if (n_held - FRAME_HEADER_SIZE < n)
                return 0;
        if (frame_crc(p + FRAME_HEADER_SIZE, n) != get_u32(p + 12))
                goto damaged;
        r->begin += FRAME_HEADER_SIZE + n;
        *ret_type = (FrameType) get_u16(p + 6);
        *ret_payload = p + FRAME_HEADER_SIZE;
        *ret_n = n;
        return 1;
damaged:
        r->damaged = true;
        return -EBADMSG;
}
