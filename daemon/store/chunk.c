/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Packs and unpacks chunks. Encoding works through the rows field by field in tiles of neighbouring slots,
 * so that the transposition never needs a second copy of the minute; what it costs is in tests/bench.
 *
 * Times are kept as differences that are small: from one end to the next, from the last end to this start (0
 * unless there was a gap), and from the wall clock's length of the tick to the measured one.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "cstated/macro.h"

#include "store/chunk.h"

#define CHUNK_MAGIC 0x4b43
#define HEAD_SIZE   32
#define ENTRY_SIZE  12
#define GATHER_TILE 16

void tick_record_write(
        uint8_t *at, const TickRecord *h, const int64_t *values, const uint8_t *reasons, size_t n_values) {
        memcpy(at, h, sizeof(*h));
        memcpy(at + sizeof(*h), values, n_values * 8);
        memcpy(at + sizeof(*h) + n_values * 8, reasons, n_values);
}

void tick_rows_gather(const TickRows *rows, size_t slot, size_t n_slots, int64_t *values, uint8_t *reasons) {
        for (size_t tile = 0; tile < n_slots; tile += GATHER_TILE) {
                size_t m = MIN(n_slots - tile, (size_t) GATHER_TILE);

                for (size_t i = 0; i < rows->n; i++) {
                        const int64_t *v = tick_rows_values(rows, i) + slot + tile;
                        const uint8_t *r = tick_rows_reasons(rows, i) + slot + tile;

                        for (size_t k = 0; k < m; k++) {
                                values[(tile + k) * rows->n + i] = v[k];
                                reasons[(tile + k) * rows->n + i] = r[k];
                        }
                }
        }
}

static uint32_t checksum(const uint8_t *p, size_t n) {
        return (uint32_t) crc32_z(0, p, n);
}

static void put16(uint8_t *p, size_t v) {
        p[0] = (uint8_t) v;
        p[1] = (uint8_t) (v >> 8);
}

static void put32(uint8_t *p, uint32_t v) {
        put16(p, v & 0xffff);
        put16(p + 2, v >> 16);
}

static uint32_t get16(const uint8_t *p) {
        return (uint32_t) p[0] | (uint32_t) p[1] << 8;
}

static uint32_t get32(const uint8_t *p) {
        return get16(p) | get16(p + 2) << 16;
}

typedef struct Writer {
        uint8_t *bytes;
        size_t size, capacity;
        int64_t *values; /* of one column, all entities */
        uint8_t *reasons;
} Writer;

static void writer_deinit(Writer *w) {
        free(w->bytes);
        free(w->values);
        free(w->reasons);
}

static int writer_reserve(Writer *w, size_t more) {
        size_t capacity = MAX(w->size + more, w->capacity + w->capacity / 2);
        uint8_t *b;

        if (w->size + more <= w->capacity)
                return 0;
        if (w->size + more > INT32_MAX)
                return -EFBIG;
        b = realloc(w->bytes, capacity);
        if (!b)
                return -ENOMEM;
        w->bytes = b;
        w->capacity = capacity;
        return 0;
}

static int put_column(Writer *w, size_t n, size_t n_entities) {
        CodecNeighbour beside = {};

        for (size_t e = 0; e < n_entities; e++) {
                int r = writer_reserve(w, codec_bound(n));

                if (r < 0)
                        return r;
                w->size +=
                        codec_encode(&w->values[e * n], &w->reasons[e * n], n, &beside, w->bytes + w->size);
                beside = (CodecNeighbour){&w->values[e * n], &w->reasons[e * n]};
        }
        return 0;
}

static void put_entry(Writer *w, size_t i, FieldId field, uint8_t instance, size_t data, size_t from) {
        uint8_t *e = w->bytes + HEAD_SIZE + i * ENTRY_SIZE;

        put16(e, field);
        e[2] = instance;
        e[3] = 0;
        put32(e + 4, (uint32_t) (from - data));
        put32(e + 8, checksum(w->bytes + from, w->size - from));
}

static int put_times(Writer *w, const TickRows *rows) {
        const TickRecord *previous = tick_rows_record(rows, 0);
        int64_t *end = w->values, *gap = end + rows->n, *drift = gap + rows->n;

        for (size_t i = 0; i < rows->n; i++) {
                const TickRecord *t = tick_rows_record(rows, i);

                end[i] = (int64_t) (t->end_us - (i > 0 ? previous->end_us : 0));
                gap[i] = (int64_t) (t->start_us - (i > 0 ? previous->end_us : t->end_us));
                drift[i] = (int64_t) (t->dt_ns - (t->end_us - t->start_us) * 1000);
                previous = t;
        }
        memset(w->reasons, REASON_NONE, 3 * rows->n);
        return put_column(w, rows->n, 3);
}

static size_t widest_column(const Layout *l) {
        size_t most = 3; /* the times */

        for (unsigned s = 0; s < SCOPE_N; s++)
                most = MAX(most, (size_t) l->n_entities[s]);
        return most;
}

static int writer_init(Writer *w, const Layout *l, size_t n) {
        size_t most = widest_column(l);

        w->values = malloc(most * n * sizeof(*w->values));
        w->reasons = malloc(most * n);
        if (!w->values || !w->reasons)
                return -ENOMEM;
        return writer_reserve(w, HEAD_SIZE + (l->n_columns + 1) * ENTRY_SIZE + l->n_values * n + 65536);
}

static void put_head(Writer *w, const Layout *l, size_t n, size_t data) {
        put16(w->bytes, CHUNK_MAGIC);
        put16(w->bytes + 2, CHUNK_VERSION);
        put16(w->bytes + 8, n);
        put16(w->bytes + 10, l->n_columns + 1);
        for (unsigned s = 0; s < SCOPE_N; s++)
                put32(w->bytes + 12 + s * 4, l->n_entities[s]);
        put32(w->bytes + 4, checksum(w->bytes + 8, data - 8));
}

int chunk_encode(const Layout *l, const TickRows *rows, uint8_t **ret, size_t *ret_size) {
        _cleanup_(writer_deinit) Writer w = {};
        size_t data = HEAD_SIZE + (l->n_columns + 1) * ENTRY_SIZE;
        int r;

        if (rows->n == 0 || rows->n > CODEC_TICKS_MAX || rows->n_values != l->n_values)
                return -EINVAL;
        r = writer_init(&w, l, rows->n);
        if (r < 0)
                return r;
        w.size = data;
        r = put_times(&w, rows);
        if (r < 0)
                return r;
        put_entry(&w, 0, FIELD_NONE, 0, data, data);
        for (size_t i = 0; i < l->n_columns; i++) {
                const LayoutColumn *c = &l->columns[i];
                uint32_t n_entities = l->n_entities[field_spec(c->field)->scope];
                size_t from = w.size;

                tick_rows_gather(rows, c->offset, n_entities, w.values, w.reasons);
                r = put_column(&w, rows->n, n_entities);
                if (r < 0)
                        return r;
                put_entry(&w, i + 1, c->field, c->instance, data, from);
        }
        put_head(&w, l, rows->n, data);
        *ret = TAKE_PTR(w.bytes);
        *ret_size = w.size;
        return 0;
}

/* ---- reading ---- */

static int chunk_parse_head(Chunk *c, const uint8_t *head, uint32_t *ret_crc) {
        if (get16(head) != CHUNK_MAGIC || get16(head + 2) != CHUNK_VERSION)
                return -EBADMSG;
        *ret_crc = get32(head + 4);
        c->n = get16(head + 8);
        c->n_columns = get16(head + 10);
        c->data = HEAD_SIZE + c->n_columns * ENTRY_SIZE;
        for (unsigned s = 0; s < SCOPE_N; s++)
                c->n_entities[s] = get32(head + 12 + s * 4);
        if (c->n == 0 || c->n > CODEC_TICKS_MAX || c->n_columns == 0 ||
                c->n_columns > ARRAY_SIZE(c->columns))
                return -EBADMSG;
        return c->data <= c->size ? 0 : -EBADMSG;
}

static int chunk_parse_directory(Chunk *c, const uint8_t *entry) {
        size_t room = c->size - c->data;

        for (size_t i = 0; i < c->n_columns; i++, entry += ENTRY_SIZE) {
                uint32_t field = get16(entry);

                c->columns[i] = (ChunkColumn){
                        .field = field < FIELD_N ? (FieldId) field : FIELD_NONE,
                        .instance = entry[2],
                        .offset = get32(entry + 4),
                        .crc = get32(entry + 8),
                };
                if (c->columns[i].offset > room ||
                        (i > 0 && c->columns[i].offset < c->columns[i - 1].offset))
                        return -EBADMSG;
        }
        return c->columns[0].field == FIELD_NONE ? 0 : -EBADMSG;
}

int chunk_open(Chunk *c, ChunkReadFn read, void *userdata, size_t size) {
        const uint8_t *p;
        uint32_t crc;
        int r;

        c->read = read;
        c->userdata = userdata;
        c->size = size;
        if (size < HEAD_SIZE + ENTRY_SIZE)
                return -EBADMSG;
        r = read(userdata, 0, HEAD_SIZE, &p);
        if (r == 0)
                r = chunk_parse_head(c, p, &crc);
        if (r == 0)
                r = read(userdata, 0, c->data, &p);
        if (r < 0)
                return r;
        if (checksum(p + 8, c->data - 8) != crc)
                return -EBADMSG;
        return chunk_parse_directory(c, p + HEAD_SIZE);
}

static int read_memory(void *userdata, size_t at, size_t n, const uint8_t **ret) {
        *ret = (const uint8_t *) userdata + at;
        return 0;
}

int chunk_open_memory(Chunk *c, const uint8_t *bytes, size_t size) {
        return chunk_open(c, read_memory, (void *) (uintptr_t) bytes, size);
}

/* The bytes of directory entry i, checked against their sum. */
static int chunk_bytes(const Chunk *c, size_t i, const uint8_t **ret, const uint8_t **ret_end) {
        size_t from = c->columns[i].offset;
        size_t n = (i + 1 < c->n_columns ? c->columns[i + 1].offset : c->size - c->data) - from;
        int r;

        r = c->read(c->userdata, c->data + from, n, ret);
        if (r < 0)
                return r;
        if (checksum(*ret, n) != c->columns[i].crc)
                return -EBADMSG;
        *ret_end = *ret + n;
        return 0;
}

int chunk_times(const Chunk *c, uint64_t *start_us, uint64_t *end_us, uint64_t *dt_ns) {
        const uint8_t *p, *end;
        uint64_t *columns[3] = {end_us, start_us, dt_ns};
        uint8_t reasons[3][CODEC_TICKS_MAX];
        int r;

        r = chunk_bytes(c, 0, &p, &end);
        if (r < 0)
                return r;
        for (unsigned k = 0; k < 3; k++) {
                CodecNeighbour beside = {
                        k > 0 ? (const int64_t *) columns[k - 1] : NULL, reasons[k > 0 ? k - 1 : 0]};

                if (codec_decode(&p, end, c->n, &beside, (int64_t *) columns[k], reasons[k]) < 0)
                        return -EBADMSG;
        }
        if (p != end)
                return -EBADMSG;
        for (size_t i = 0; i < c->n; i++) {
                if (i > 0)
                        end_us[i] += end_us[i - 1];
                start_us[i] += i > 0 ? end_us[i - 1] : end_us[i];
                dt_ns[i] += (end_us[i] - start_us[i]) * 1000;
        }
        return 0;
}

int chunk_column(const Chunk *c, FieldId field, uint8_t instance, int64_t *values, uint8_t *reasons) {
        uint32_t n_entities = c->n_entities[field_spec(field)->scope];
        CodecNeighbour beside = {};
        const uint8_t *p, *end;
        size_t i = 1;
        int r;

        while (i < c->n_columns && (c->columns[i].field != field || c->columns[i].instance != instance))
                i++;
        if (i == c->n_columns)
                return -ENODATA;
        r = chunk_bytes(c, i, &p, &end);
        for (uint32_t k = 0; r == 0 && k < n_entities; k++) {
                r = codec_decode(&p, end, c->n, &beside, &values[k * c->n], &reasons[k * c->n]);
                beside = (CodecNeighbour){&values[k * c->n], &reasons[k * c->n]};
        }
        if (r == 0 && p != end)
                r = -EBADMSG;
        return r;
}
