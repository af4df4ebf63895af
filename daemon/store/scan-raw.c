/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ticks: from the file's chunks, then from the writer's memory where it lives in this process. A chunk that
 * is damaged is passed over and counted: a gap is a better answer than none.
 */

#include <errno.h>
#include <string.h>

#include "store/scan.h"
#include "store/writer.h"

/* Ticks [*from, *from + n) of the block's times lie in the window; 0: none. */
static size_t scan_clip(const StoreScan *s, size_t n, size_t *ret_from) {
        size_t from = 0, to = n;

        while (from < n && !(s->end_us[from] > s->spec.start_us && s->end_us[from] <= s->spec.end_us))
                from++;
        to = from;
        while (to < n && s->end_us[to] > s->spec.start_us && s->end_us[to] <= s->spec.end_us)
                to++;
        *ret_from = from;
        return to - from;
}

/* Closes the ranks of one column of `n` ticks to those in the window. */
static void scan_compact(
        int64_t *values, uint8_t *reasons, size_t n_entities, size_t n, size_t from, size_t m) {
        for (size_t e = 0; e < n_entities && m < n; e++) {
                memmove(values + e * m, values + e * n + from, m * sizeof(*values));
                memmove(reasons + e * m, reasons + e * n + from, m);
        }
}

static void scan_fill_block(StoreScan *s, uint64_t epoch, size_t from, size_t n) {
        s->block = (StoreBlock){
                .machine = s->machine,
                .layout = &s->layout,
                .epoch = (uint32_t) epoch,
                .n = n,
                .start_us = s->start_us + from,
                .end_us = s->end_us + from,
                .dt_ns = s->dt_ns + from,
                .values = s->values,
                .reasons = s->reasons,
        };
}

/* 1: a block; 0: nothing of s->chunk lies in the window; -EBADMSG. */
static int scan_take_chunk(StoreScan *s, uint64_t epoch) {
        Chunk *c = &s->chunk;
        size_t from, n;
        int r;

        if (memcmp(c->n_entities, s->layout.n_entities, sizeof(c->n_entities)) != 0)
                return -EBADMSG;
        r = scan_reserve(s, c->n);
        if (r == 0)
                r = chunk_times(c, s->start_us, s->end_us, s->dt_ns);
        if (r < 0)
                return r;
        n = scan_clip(s, c->n, &from);
        for (size_t i = 0; n > 0 && i < s->layout.n_columns; i++) {
                const LayoutColumn *column = &s->layout.columns[i];
                size_t n_entities = s->layout.n_entities[field_spec(column->field)->scope];
                /* decoded at full length, then closed up: a column's place at full length is never before
                 * its final one */
                int64_t *values = s->values + column->offset * c->n;
                uint8_t *reasons = s->reasons + column->offset * c->n;

                r = chunk_column(c, column->field, column->instance, values, reasons);
                if (r == -ENODATA) {
                        memset(values, 0, n_entities * c->n * sizeof(*values));
                        memset(reasons, REASON_ABSENT, n_entities * c->n);
                } else if (r < 0)
                        return r;
                scan_compact(values, reasons, n_entities, c->n, from, n);
                if (n < c->n) {
                        memmove(s->values + column->offset * n, values, n_entities * n * sizeof(*values));
                        memmove(s->reasons + column->offset * n, reasons, n_entities * n);
                }
        }
        scan_fill_block(s, epoch, from, n);
        return n > 0;
}

static int scan_take_rows(StoreScan *s, const LiveTicks *live) {
        TickRows rows = live->rows;
        size_t from, n;
        int r;

        r = scan_reserve(s, rows.n);
        if (r < 0)
                return r;
        for (size_t i = 0; i < rows.n; i++) {
                const TickRecord *t = tick_rows_record(&rows, i);

                s->start_us[i] = t->start_us;
                s->end_us[i] =
                        live->seq + i < s->next_seq ? 0 : t->end_us; /* seen before: outside any window */
                s->dt_ns[i] = t->dt_ns;
        }
        n = scan_clip(s, rows.n, &from);
        rows.records += from * rows.stride;
        rows.n = n;
        for (size_t i = 0; n > 0 && i < s->layout.n_columns; i++) {
                const LayoutColumn *c = &s->layout.columns[i];
                const LayoutColumn *at = layout_find(&live->machine->layout, c->field, c->instance);

                tick_rows_gather(&rows, at->offset, s->layout.n_entities[field_spec(c->field)->scope],
                        s->values + c->offset * n, s->reasons + c->offset * n);
        }
        scan_fill_block(s, live->epoch, from, n);
        return n > 0;
}

/* The file's chunks from next_seq on that can hold ticks of the window. 1: there are some. */
static int scan_range(StoreScan *s) {
        sqlite3_stmt *q = s->reader->stmts[READ_CHUNK_RANGE];
        int r;

        if (s->next_seq <= s->last_seq)
                return 1;
        r = db_bind(q, "iii", (int64_t) s->spec.start_us, (int64_t) s->spec.end_us, (int64_t) s->next_seq);
        if (r == 0)
                r = db_step(q);
        if (r > 0 && sqlite3_column_type(q, 0) == SQLITE_NULL)
                r = 0;
        if (r > 0) {
                s->next_seq = (uint64_t) sqlite3_column_int64(q, 0);
                s->last_seq = (uint64_t) sqlite3_column_int64(q, 1);
        }
        db_reset(q);
        return r;
}

/* Only what is wanted of a chunk is read from its pages. */
static int read_blob(void *userdata, size_t at, size_t n, const uint8_t **ret) {
        StoreScan *s = userdata;

        if (n > s->buffer_size) {
                uint8_t *b = realloc(s->buffer, n);

                if (!b)
                        return -ENOMEM;
                s->buffer = b;
                s->buffer_size = n;
        }
        *ret = s->buffer;
        return db_errno(sqlite3_blob_read(s->blob, s->buffer, (int) n, (int) at));
}

/* From a stepped (seq, n, topo, epoch) row. */
static int scan_take_row(StoreScan *s, sqlite3_stmt *q) {
        const ReaderMachine *m;
        int r;

        r = reader_machine(s->reader, sqlite3_column_int64(q, 2), &m);
        if (r < 0)
                return r;
        scan_set_machine(s, m->topo, m->machine, &m->layout);
        r = db_errno(sqlite3_blob_open(
                s->reader->db, "main", "chunk", "b", sqlite3_column_int64(q, 0), 0, &s->blob));
        if (r == 0)
                r = chunk_open(&s->chunk, read_blob, s, (size_t) sqlite3_blob_bytes(s->blob));
        if (r == 0)
                r = scan_take_chunk(s, (uint64_t) sqlite3_column_int64(q, 3));
        (void) sqlite3_blob_close(s->blob);
        s->blob = NULL;
        return r;
}

/* 1: a block; 0: the file has no more. */
static int scan_file(StoreScan *s) {
        for (;;) {
                _cleanup_reset_ sqlite3_stmt *q = NULL;
                int r = scan_range(s);

                if (r <= 0)
                        return r;
                q = s->reader->stmts[READ_CHUNK_NEXT];
                r = db_bind(q, "iiii", (int64_t) s->next_seq, (int64_t) s->last_seq,
                        (int64_t) s->spec.start_us, (int64_t) s->spec.end_us);
                if (r == 0)
                        r = db_step(q);
                if (r < 0)
                        return r;
                if (r == 0) {
                        s->next_seq = s->last_seq + 1;
                        continue;
                }
                r = scan_take_row(s, q);
                s->next_seq = (uint64_t) (sqlite3_column_int64(q, 0) + sqlite3_column_int64(q, 1));
                if (r == -EBADMSG)
                        s->reader->n_damaged++;
                else if (r != 0)
                        return r;
                if (reader_past_deadline(s->reader))
                        return -ETIME;
        }
}

static int scan_memory(StoreScan *s) {
        LiveTicks live;

        while (s->reader->live && store_live(s->reader->live, s->next_seq, &live)) {
                size_t n = live.pending ? live.pending->n : live.rows.n;
                int r;

                scan_set_machine(
                        s, -(int64_t) live.machine->serial, live.machine->machine, &live.machine->layout);
                if (live.pending) {
                        r = chunk_open_memory(&s->chunk, live.pending->bytes, live.pending->size);
                        if (r == 0)
                                r = scan_take_chunk(s, live.epoch);
                } else
                        r = scan_take_rows(s, &live);
                s->next_seq = live.seq + n;
                if (r != 0)
                        return r;
        }
        return 0;
}

int scan_raw_next(StoreScan *s, const StoreBlock **ret) {
        int r = s->reader->db ? scan_file(s) : 0;

        if (r == 0)
                r = scan_memory(s);
        if (r > 0)
                *ret = &s->block;
        return r;
}
