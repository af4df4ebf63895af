/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The iterator under every query. It hands out blocks of ticks of one machine and one epoch, transposed so
 * that a slot's values lie side by side; between two blocks no statement is open. It resumes by sequence
 * number, so that rows added or expired meanwhile are neither repeated nor waited for.
 */

#include <errno.h>
#include <string.h>

#include "store/reader.h"

#define BLOCK_TICKS 64

struct StoreScan {
        StoreReader *reader;
        StoreScanSpec spec;
        FieldId *fields;
        uint64_t next_seq, last_seq;

        int64_t topo; /* of the layout below; 0: none yet */
        Layout layout;
        uint32_t *slots; /* slot of the block -> slot of the sample */
        size_t n_slots, n_sample_values;
        StoreBlock block;
        uint64_t start_us[BLOCK_TICKS], end_us[BLOCK_TICKS], dt_ns[BLOCK_TICKS];
        int64_t *values; /* n_slots * BLOCK_TICKS */
        uint8_t *reasons;
};

static int scan_range(StoreScan *s) {
        sqlite3_stmt *q = s->reader->stmts[READ_TICK_FIRST];
        int r;

        r = db_bind(q, "ii", (int64_t) MIN(s->spec.start_us, (uint64_t) INT64_MAX),
                (int64_t) MIN(s->spec.end_us, (uint64_t) INT64_MAX));
        if (r == 0)
                r = db_step(q);
        if (r > 0) {
                s->next_seq = (uint64_t) sqlite3_column_int64(q, 0);
                s->last_seq = (uint64_t) sqlite3_column_int64(q, 1);
                if (sqlite3_column_type(q, 0) == SQLITE_NULL)
                        s->next_seq = 1;
        }
        db_reset(q);
        return r < 0 ? r : 0;
}

int store_scan_new(StoreReader *r, const StoreScanSpec *spec, StoreScan **ret) {
        _cleanup_(store_scan_freep) StoreScan *s = NULL;
        int code;

        s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        s->reader = r;
        s->spec = *spec;
        s->fields = calloc(MAX(spec->n_fields, (size_t) 1), sizeof(*s->fields));
        if (!s->fields)
                return -ENOMEM;
        if (spec->n_fields > 0)
                memcpy(s->fields, spec->fields, spec->n_fields * sizeof(*s->fields));
        s->spec.fields = s->fields;
        s->next_seq = 1;
        if (spec->tier == TIER_RAW) {
                code = scan_range(s);
                if (code < 0)
                        return code;
        }
        *ret = TAKE_PTR(s);
        return 0;
}

StoreScan *store_scan_free(StoreScan *s) {
        if (!s)
                return NULL;
        free(s->fields);
        free(s->slots);
        free(s->values);
        free(s->reasons);
        free(s);
        return NULL;
}

static bool scan_wants(const StoreScan *s, FieldId field) {
        for (size_t i = 0; i < s->spec.n_fields; i++)
                if (s->fields[i] == field)
                        return true;
        return false;
}

/* Lays the block out for a machine: the columns asked for, and where they stand in its samples. */
static int scan_set_machine(StoreScan *s, const ReaderMachine *m) {
        uint32_t *slots;
        int64_t *values;
        uint8_t *reasons;
        size_t n = 0;

        s->layout = (Layout){};
        memcpy(s->layout.n_entities, m->layout.n_entities, sizeof(s->layout.n_entities));
        for (size_t i = 0; i < m->layout.n_columns; i++)
                if (scan_wants(s, m->layout.columns[i].field))
                        s->layout.columns[s->layout.n_columns++] = m->layout.columns[i];
        layout_finish(&s->layout);
        slots = calloc(MAX(s->layout.n_values, (size_t) 1), sizeof(*slots));
        values = calloc(MAX(s->layout.n_values, (size_t) 1) * BLOCK_TICKS, sizeof(*values));
        reasons = calloc(MAX(s->layout.n_values, (size_t) 1) * BLOCK_TICKS, sizeof(*reasons));
        free(s->slots);
        free(s->values);
        free(s->reasons);
        s->slots = slots;
        s->values = values;
        s->reasons = reasons;
        s->topo = 0;
        if (!slots || !values || !reasons)
                return -ENOMEM;
        for (size_t i = 0; i < s->layout.n_columns; i++) {
                const LayoutColumn *c = &s->layout.columns[i];
                const LayoutColumn *from = layout_find(&m->layout, c->field, c->instance);

                for (uint32_t e = 0; e < s->layout.n_entities[field_spec(c->field)->scope]; e++)
                        slots[n++] = from->offset + e;
        }
        s->n_slots = n;
        s->n_sample_values = m->layout.n_values;
        s->topo = m->topo;
        return 0;
}

/* One row into column i of the staging area (stride BLOCK_TICKS). */
static int scan_take(StoreScan *s, sqlite3_stmt *q, size_t i) {
        const uint8_t *b = sqlite3_column_blob(q, 6);
        size_t n = s->n_sample_values;

        if (!b || (size_t) sqlite3_column_bytes(q, 6) != n * (sizeof(int64_t) + 1))
                return -EBADMSG;
        s->start_us[i] = (uint64_t) sqlite3_column_int64(q, 1);
        s->end_us[i] = (uint64_t) sqlite3_column_int64(q, 2);
        s->dt_ns[i] = (uint64_t) sqlite3_column_int64(q, 3);
        for (size_t k = 0; k < s->n_slots; k++) {
                memcpy(&s->values[k * BLOCK_TICKS + i], b + (size_t) s->slots[k] * sizeof(int64_t),
                        sizeof(int64_t));
                s->reasons[k * BLOCK_TICKS + i] = b[n * sizeof(int64_t) + s->slots[k]];
                if (s->reasons[k * BLOCK_TICKS + i] >= REASON_N)
                        return -EBADMSG;
        }
        return 0;
}

/* Closes the ranks from the staging stride to n. */
static void scan_compact(StoreScan *s, size_t n) {
        for (size_t k = 1; k < s->n_slots && n < BLOCK_TICKS; k++) {
                memmove(&s->values[k * n], &s->values[k * BLOCK_TICKS], n * sizeof(int64_t));
                memmove(&s->reasons[k * n], &s->reasons[k * BLOCK_TICKS], n);
        }
}

/* The first row decides machine and epoch of the block. */
static int scan_begin_block(StoreScan *s, sqlite3_stmt *q) {
        const ReaderMachine *m;
        int r;

        r = reader_machine(s->reader, sqlite3_column_int64(q, 4), &m);
        if (r == 0 && s->topo != m->topo)
                r = scan_set_machine(s, m);
        if (r < 0)
                return r;
        s->block = (StoreBlock){
                .machine = m->machine,
                .layout = &s->layout,
                .epoch = (uint32_t) sqlite3_column_int64(q, 5),
                .start_us = s->start_us,
                .end_us = s->end_us,
                .dt_ns = s->dt_ns,
                .values = s->values,
                .reasons = s->reasons,
        };
        return 0;
}

int store_scan_next(StoreScan *s, const StoreBlock **ret) {
        _cleanup_reset_ sqlite3_stmt *q = s->reader->stmts[READ_TICK_NEXT];
        size_t n = 0;
        int r;

        if (s->next_seq > s->last_seq)
                return 0;
        if (reader_past_deadline(s->reader))
                return -ETIME;
        r = db_bind(q, "ii", (int64_t) s->next_seq, (int64_t) s->last_seq);
        if (r < 0)
                return r;
        while (n < BLOCK_TICKS && (r = db_step(q)) > 0) {
                uint64_t end = (uint64_t) sqlite3_column_int64(q, 2);

                if (end > s->spec.start_us && end <= s->spec.end_us) {
                        if (n == 0)
                                r = scan_begin_block(s, q);
                        else if (sqlite3_column_int64(q, 4) != s->topo ||
                                 sqlite3_column_int64(q, 5) != s->block.epoch)
                                break;
                        if (r >= 0)
                                r = scan_take(s, q, n);
                        if (r < 0)
                                return r;
                        n++;
                }
                s->next_seq = (uint64_t) sqlite3_column_int64(q, 0) + 1;
        }
        if (r < 0)
                return r;
        if (n == 0)
                return 0;
        scan_compact(s, n);
        s->block.n = n;
        *ret = &s->block;
        return 1;
}
