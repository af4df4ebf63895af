/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unpacks chunks: head and directory once, then whichever columns are asked for, and what these refer to. Nothing is
 * believed that is not under a checksum, and little of what is.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cstated/macro.h"

#include "store/chunk-private.h"

static uint32_t get16(const uint8_t *p) {
        return (uint32_t) p[0] | (uint32_t) p[1] << 8;
}

static uint32_t get32(const uint8_t *p) {
        return get16(p) | get16(p + 2) << 16;
}

static int chunk_parse_head(Chunk *c, const uint8_t *head, uint32_t *ret_crc) {
        unsigned version = get16(head + 2);

        if (get16(head) != CHUNK_MAGIC || version < 1 || version > CHUNK_VERSION)
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
                        .reference = entry[3],
                        .offset = get32(entry + 4),
                        .crc = get32(entry + 8),
                };
                if (c->columns[i].offset > room ||
                        (i > 0 && c->columns[i].offset < c->columns[i - 1].offset))
                        return -EBADMSG;
                if (entry[3] > 0 && (entry[3] >= i || c->columns[entry[3]].field == FIELD_NONE))
                        return -EBADMSG;
                if (entry[3] > 0)
                        c->columns[entry[3]].is_reference = true;
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
        for (size_t i = 0; i < ARRAY_SIZE(c->references); i++)
                c->references[i].entry = 0;
        if (size < HEAD_SIZE + ENTRY_SIZE)
                return -EBADMSG;
        r = read(userdata, 0, HEAD_SIZE, &p);
        if (r == 0)
                r = chunk_parse_head(c, p, &crc);
        if (r == 0)
                r = read(userdata, 0, c->data, &p);
        if (r < 0)
                return r;
        if (chunk_checksum(p + 8, c->data - 8) != crc)
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
        if (chunk_checksum(*ret, n) != c->columns[i].crc)
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
                CodecContext context = {
                        .beside = {k > 0 ? (const int64_t *) columns[k - 1] : NULL, reasons[k > 0 ? k - 1 : 0]}};

                if (codec_decode(&p, end, c->n, &context, (int64_t *) columns[k], reasons[k]) < 0)
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

static int chunk_decode(Chunk *c, size_t i, const ChunkReference *reference, int64_t *values, uint8_t *reasons) {
        uint32_t n_entities = c->n_entities[field_spec(c->columns[i].field)->scope];
        CodecContext context = {};
        const uint8_t *p, *end;
        int r;

        r = chunk_bytes(c, i, &p, &end);
        for (size_t k = 0; r == 0 && k < n_entities; k++) {
                if (reference)
                        context.reference =
                                (CodecNeighbour){&reference->values[k * c->n], &reference->reasons[k * c->n]};
                r = codec_decode(&p, end, c->n, &context, &values[k * c->n], &reasons[k * c->n]);
                context.beside = (CodecNeighbour){&values[k * c->n], &reasons[k * c->n]};
        }
        return r == 0 && p != end ? -EBADMSG : r;
}

static int reserve_reference(ChunkReference *at, size_t n_values) {
        int64_t *values;
        uint8_t *reasons;

        if (at->capacity >= n_values && at->values)
                return 0;
        values = realloc(at->values, MAX(n_values, (size_t) 1) * sizeof(*values));
        if (values)
                at->values = values;
        reasons = realloc(at->reasons, MAX(n_values, (size_t) 1));
        if (reasons)
                at->reasons = reasons;
        if (!values || !reasons)
                return -ENOMEM;
        at->capacity = n_values;
        return 0;
}

static bool same_scope(const Chunk *c, size_t a, size_t b) {
        return field_spec(c->columns[a].field)->scope == field_spec(c->columns[b].field)->scope;
}

/* The place that has been held for longest, but not that of `busy`, which is read while the place is filled. */
static ChunkReference *take_place(Chunk *c, const ChunkReference *busy) {
        ChunkReference *at;

        do {
                at = &c->references[c->next_reference];
                c->next_reference = (c->next_reference + 1) % ARRAY_SIZE(c->references);
        } while (at == busy);
        return at;
}

/*
 * Entry i as later ones refer to it, decoded once. What it refers to itself must not refer any further: that is as deep
 * as a writer goes, and no depth is left for a hostile file. *ret is good until another entry is asked for.
 */
static int chunk_reference(Chunk *c, size_t i, unsigned depth, const ChunkReference **ret) {
        size_t n_values = c->n_entities[field_spec(c->columns[i].field)->scope] * c->n;
        const ChunkReference *reference = NULL;
        ChunkReference *at;
        int r = 0;

        for (size_t k = 0; k < ARRAY_SIZE(c->references); k++)
                if (c->references[k].entry == i) {
                        *ret = &c->references[k];
                        return 0;
                }
        if (c->columns[i].reference > 0)
                r = depth > 1 ? -EBADMSG : chunk_reference(c, c->columns[i].reference, depth + 1, &reference);
        if (r < 0)
                return r;
        if (reference && !same_scope(c, reference->entry, i))
                return -EBADMSG;
        at = take_place(c, reference);
        at->entry = 0;
        r = reserve_reference(at, n_values);
        if (r == 0)
                r = chunk_decode(c, i, reference, at->values, at->reasons);
        if (r < 0)
                return r;
        at->entry = i;
        *ret = at;
        return 0;
}

int chunk_column(Chunk *c, FieldId field, uint8_t instance, int64_t *values, uint8_t *reasons) {
        size_t i = 1, n_values = c->n_entities[field_spec(field)->scope] * c->n;
        const ChunkReference *reference = NULL;
        int r = 0;

        while (i < c->n_columns && (c->columns[i].field != field || c->columns[i].instance != instance))
                i++;
        if (i == c->n_columns)
                return -ENODATA;
        if (c->columns[i].is_reference) {
                r = chunk_reference(c, i, 0, &reference);
                if (r < 0)
                        return r;
                memcpy(values, reference->values, n_values * sizeof(*values));
                memcpy(reasons, reference->reasons, n_values);
                return 0;
        }
        if (c->columns[i].reference > 0)
                r = chunk_reference(c, c->columns[i].reference, 0, &reference);
        if (r < 0)
                return r;
        if (reference && !same_scope(c, reference->entry, i))
                return -EBADMSG;
        return chunk_decode(c, i, reference, values, reasons);
}

void chunk_deinit(Chunk *c) {
        for (size_t i = 0; i < ARRAY_SIZE(c->references); i++) {
                free(c->references[i].values);
                free(c->references[i].reasons);
        }
        memset(c->references, 0, sizeof(c->references));
}
