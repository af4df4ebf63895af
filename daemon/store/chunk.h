/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A minute of the whole machine as one blob. Pure. Little endian:
 *
 *   magic "CK" u16, version u16, crc32 u32 (of what follows up to the data)
 *   n_ticks u16, n_columns u16, n_entities u32[SCOPE_N]
 *   directory: n_columns x { field u16, instance u8, reference u8, offset u32 (into the data), crc32 u32 (of the
 *   column's bytes) }
 *   data: for each directory entry its entities' columns (codec.h), in the machine's order
 *
 * The first entry, field 0, holds the times. A reader decodes only the entries it wants, and their references: 0, or an
 * entry before it of the same scope, without which its columns cannot be understood. Version 1 had no references.
 */

#include "cstated/field.h"
#include "store/codec.h"

#define CHUNK_VERSION 2

/* Ticks as they are gathered, one record after the other: TickRecord, int64 values[n_values], uint8
 * reasons[n_values]. */
typedef struct TickRecord {
        uint64_t start_us, end_us, dt_ns;
} TickRecord;

typedef struct TickRows {
        const uint8_t *records;
        size_t stride; /* tick_rows_stride(n_values) */
        size_t n;
        size_t n_values;
} TickRows;

static inline size_t tick_rows_stride(size_t n_values) {
        return (sizeof(TickRecord) + n_values * 9 + 7) & ~(size_t) 7;
}
static inline const TickRecord *tick_rows_record(const TickRows *t, size_t i) {
        return (const TickRecord *) (const void *) (t->records + i * t->stride);
}
static inline const int64_t *tick_rows_values(const TickRows *t, size_t i) {
        return (const int64_t *) (const void *) (t->records + i * t->stride + sizeof(TickRecord));
}
static inline const uint8_t *tick_rows_reasons(const TickRows *t, size_t i) {
        return t->records + i * t->stride + sizeof(TickRecord) + t->n_values * 8;
}
/* Writes a record; at holds tick_rows_stride(n_values) and is aligned to 8. */
void tick_record_write(
        uint8_t *at, const TickRecord *h, const int64_t *values, const uint8_t *reasons, size_t n_values);
/* Gathers slots [slot, slot + n_slots) as columns: values[k * rows->n + i]. */
void tick_rows_gather(const TickRows *rows, size_t slot, size_t n_slots, int64_t *values, uint8_t *reasons);

/* *ret is malloc'd. rows->n in 1 ... CODEC_TICKS_MAX, rows->n_values == l->n_values. -ENOMEM, -EFBIG. */
int chunk_encode(const Layout *l, const TickRows *rows, uint8_t **ret, size_t *ret_size);

/* Gives bytes [at, at + n) of a chunk; *ret is good until the next call. 0, -errno. */
typedef int (*ChunkReadFn)(void *userdata, size_t at, size_t n, const uint8_t **ret);

typedef struct ChunkColumn {
        FieldId field; /* FIELD_NONE: the times, or a field that only a newer version knows */
        uint8_t instance;
        uint8_t reference; /* entry, 0: none */
        bool is_reference; /* of a later entry */
        uint32_t offset, crc;
} ChunkColumn;

/* An entry that others refer to, decoded once a chunk. */
typedef struct ChunkReference {
        size_t entry; /* 0: free */
        int64_t *values;
        uint8_t *reasons;
        size_t capacity; /* values */
} ChunkReference;

#define CHUNK_REFERENCES_MAX 8

/* Zeroed before the first chunk_open(); may be opened again and again. */
typedef struct Chunk {
        ChunkReadFn read;
        void *userdata;
        size_t size;
        size_t n;         /* ticks */
        size_t n_columns; /* directory entries, the times being the first */
        uint32_t n_entities[SCOPE_N];
        size_t data; /* offset of the data */
        ChunkColumn columns[LAYOUT_COLUMNS_MAX + 1];
        ChunkReference references[CHUNK_REFERENCES_MAX];
        size_t next_reference; /* the place that is given up next, unless it is in use */
} Chunk;

void chunk_deinit(Chunk *c);

/* Reads and checks head and directory. -EBADMSG where damaged; -errno of read. */
int chunk_open(Chunk *c, ChunkReadFn read, void *userdata, size_t size);
/* The same over memory, which is borrowed. */
int chunk_open_memory(Chunk *c, const uint8_t *bytes, size_t size);
/* n each. -EBADMSG. */
int chunk_times(const Chunk *c, uint64_t *start_us, uint64_t *end_us, uint64_t *dt_ns);
/* All entities of a column, values[e * n + i]. -ENODATA: the chunk has no such column; -EBADMSG, -ENOMEM. */
int chunk_column(Chunk *c, FieldId field, uint8_t instance, int64_t *values, uint8_t *reasons);
