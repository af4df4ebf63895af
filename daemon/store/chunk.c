/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Packs chunks. Encoding works through the rows field by field in tiles of neighbouring slots,
 * so that the transposition never needs a second copy of the minute; what it costs is in tests/bench.
 *
 * Times are kept as differences that are small: from one end to the next, from the last end to this start (0
 * unless there was a gap), and from the wall clock's length of the tick to the measured one.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cstated/macro.h"

#include "store/chunk-private.h"

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

static void put16(uint8_t *p, size_t v) {
        p[0] = (uint8_t) v;
        p[1] = (uint8_t) (v >> 8);
}

static void put32(uint8_t *p, uint32_t v) {
        put16(p, v & 0xffff);
        put16(p + 2, v >> 16);
}

/*
 * The field whose column tells most about this one: of the same reading, and so null at the same ticks; a multiple of
 * it, but for what the readings' own time took. Frequencies stand still for minutes, so aperf follows mperf.
 */
static FieldId reference_of(FieldId field) {
        static const struct {
                FieldId field, reference;
        } other[] = {
                {FIELD_CPU_NS, FIELD_CPU_TSC},
                {FIELD_APERF, FIELD_MPERF},
                {FIELD_C1, FIELD_CPU_TSC},
                {FIELD_C1_SPAN, FIELD_CPU_TSC},
                {FIELD_CORE_NS, FIELD_CORE_TSC},
                {FIELD_PKG_NS, FIELD_PKG_TSC},
        };

        for (size_t i = 0; i < ARRAY_SIZE(other); i++)
                if (other[i].field == field)
                        return other[i].reference;
        return field_spec(field)->span;
}

static bool is_reference(FieldId field) {
        for (unsigned f = 0; f < FIELD_N; f++)
                if (reference_of((FieldId) f) == field)
                        return true;
        return false;
}

/* A column that later ones may refer to. */
typedef struct Kept {
        int64_t *values;
        uint8_t *reasons;
} Kept;

typedef struct Writer {
        uint8_t *bytes;
        size_t size, capacity;
        int64_t *values; /* of one column, all entities */
        uint8_t *reasons;
        Kept kept[LAYOUT_COLUMNS_MAX]; /* by column of the layout */
} Writer;

static void writer_deinit(Writer *w) {
        free(w->bytes);
        free(w->values);
        free(w->reasons);
        for (size_t i = 0; i < ARRAY_SIZE(w->kept); i++) {
                free(w->kept[i].values);
                free(w->kept[i].reasons);
        }
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

/* All entities of w->values. reference: NULL, or the column that may be referred to; set to NULL where it is not. */
static int put_column(Writer *w, size_t n, size_t n_entities, const Kept **reference) {
        const Kept *kept = reference ? *reference : NULL;
        CodecContext c = {};

        for (size_t e = 0; e < n_entities; e++) {
                int r = writer_reserve(w, codec_bound(n));

                if (r < 0)
                        return r;
                if (kept)
                        c.reference = (CodecNeighbour){&kept->values[e * n], &kept->reasons[e * n]};
                w->size += codec_encode(&w->values[e * n], &w->reasons[e * n], n, &c, w->bytes + w->size);
                c.beside = (CodecNeighbour){&w->values[e * n], &w->reasons[e * n]};
        }
        if (reference && !c.referred)
                *reference = NULL;
        return 0;
}

static void put_entry(
        Writer *w, size_t i, FieldId field, uint8_t instance, size_t reference, size_t data, size_t from) {
        uint8_t *e = w->bytes + HEAD_SIZE + i * ENTRY_SIZE;

        put16(e, field);
        e[2] = instance;
        e[3] = (uint8_t) reference;
        put32(e + 4, (uint32_t) (from - data));
        put32(e + 8, chunk_checksum(w->bytes + from, w->size - from));
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
        return put_column(w, rows->n, 3, NULL);
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
        put32(w->bytes + 4, chunk_checksum(w->bytes + 8, data - 8));
}

/* What column i of the layout may refer to, NULL; a directory has one byte for which. */
static const Kept *find_reference(const Writer *w, const Layout *l, size_t i) {
        FieldId field = reference_of(l->columns[i].field);

        if (field == FIELD_NONE || field_spec(field)->scope != field_spec(l->columns[i].field)->scope)
                return NULL;
        for (size_t k = 0; k < i && k + 1 <= UINT8_MAX; k++)
                if (l->columns[k].field == field)
                        return w->kept[k].values ? &w->kept[k] : NULL;
        return NULL;
}

static int keep(Writer *w, size_t i, size_t n_values) {
        Kept *k = &w->kept[i];

        k->values = malloc(MAX(n_values, (size_t) 1) * sizeof(*k->values));
        k->reasons = malloc(MAX(n_values, (size_t) 1));
        if (!k->values || !k->reasons)
                return -ENOMEM;
        memcpy(k->values, w->values, n_values * sizeof(*k->values));
        memcpy(k->reasons, w->reasons, n_values);
        return 0;
}

static int put_layout_column(Writer *w, const Layout *l, size_t i, const TickRows *rows, size_t data) {
        const LayoutColumn *c = &l->columns[i];
        uint32_t n_entities = l->n_entities[field_spec(c->field)->scope];
        const Kept *reference = find_reference(w, l, i);
        size_t from = w->size;
        int r;

        tick_rows_gather(rows, c->offset, n_entities, w->values, w->reasons);
        r = put_column(w, rows->n, n_entities, &reference);
        if (r == 0 && is_reference(c->field) && c->instance == 0)
                r = keep(w, i, n_entities * rows->n);
        if (r == 0)
                put_entry(w, i + 1, c->field, c->instance, reference ? (size_t) (reference - w->kept) + 1 : 0,
                        data, from);
        return r;
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
        put_entry(&w, 0, FIELD_NONE, 0, 0, data, data);
        for (size_t i = 0; i < l->n_columns; i++) {
                r = put_layout_column(&w, l, i, rows, data);
                if (r < 0)
                        return r;
        }
        put_head(&w, l, rows->n, data);
        *ret = TAKE_PTR(w.bytes);
        *ret_size = w.size;
        return 0;
}
