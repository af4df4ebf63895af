/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The iterator under every query. It hands out blocks of ticks (or rollup rows) of one machine and one
 * epoch, a slot's values side by side; between two blocks no statement is open. It resumes by sequence
 * number, so that rows added, committed or expired meanwhile are neither repeated nor waited for.
 */

#include <errno.h>
#include <string.h>

#include "store/scan.h"

int store_scan_new(StoreReader *r, const StoreScanSpec *spec, StoreScan **ret) {
        _cleanup_(store_scan_freep) StoreScan *s = NULL;
        int code;

        s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        s->reader = r;
        s->spec = *spec;
        s->spec.start_us = MIN(s->spec.start_us, (uint64_t) INT64_MAX);
        s->spec.end_us = MIN(s->spec.end_us, (uint64_t) INT64_MAX);
        s->fields = calloc(MAX(spec->n_fields, (size_t) 1), sizeof(*s->fields));
        if (!s->fields)
                return -ENOMEM;
        if (spec->n_fields > 0)
                memcpy(s->fields, spec->fields, spec->n_fields * sizeof(*s->fields));
        s->spec.fields = s->fields;
        s->next_seq = 1;
        code = reader_follow(r);
        if (code == 0 && spec->tier != TIER_RAW)
                code = scan_rollup_init(s);
        if (code < 0)
                return reader_error(r, code);
        s->generation = r->generation;
        *ret = TAKE_PTR(s);
        return 0;
}

static void scan_free_arrays(StoreScan *s) {
        free(s->values);
        free(s->reasons);
        free(s->n_ticks);
        free(s->m2);
        free(s->min);
        free(s->max);
        s->values = s->min = s->max = NULL;
        s->reasons = NULL;
        s->n_ticks = NULL;
        s->m2 = NULL;
        s->capacity = 0;
}

StoreScan *store_scan_free(StoreScan *s) {
        if (!s)
                return NULL;
        scan_free_arrays(s);
        chunk_deinit(&s->chunk);
        db_finalize_all(s->selects, ROLLUP_SCOPES);
        for (unsigned i = 0; i < ROLLUP_SCOPES; i++)
                free(s->positions[i]);
        rollup_tables_deinit(&s->tables);
        free(s->buffer);
        free(s->fields);
        free(s);
        return NULL;
}

int scan_reserve(StoreScan *s, size_t n) {
        size_t slots = MAX(s->layout.n_values, (size_t) 1);
        bool rolled = s->spec.tier != TIER_RAW;

        if (n <= s->capacity && slots <= s->slots)
                return 0;
        scan_free_arrays(s);
        s->values = malloc(n * slots * sizeof(*s->values));
        s->reasons = malloc(n * slots);
        if (!s->values || !s->reasons)
                return -ENOMEM;
        if (rolled) {
                s->n_ticks = malloc(n * slots * sizeof(*s->n_ticks));
                s->m2 = malloc(n * slots * sizeof(*s->m2));
                s->min = malloc(n * slots * sizeof(*s->min));
                s->max = malloc(n * slots * sizeof(*s->max));
                if (!s->n_ticks || !s->m2 || !s->min || !s->max)
                        return -ENOMEM;
        }
        s->capacity = n;
        s->slots = slots;
        return 0;
}

static bool scan_wants(const StoreScan *s, FieldId field) {
        for (size_t i = 0; i < s->spec.n_fields; i++)
                if (s->fields[i] == field)
                        return true;
        return false;
}

void scan_set_machine(StoreScan *s, int64_t key, const Machine *m, const Layout *samples) {
        s->machine = m;
        if (s->machine_key == key)
                return;
        s->machine_key = key;
        s->layout = (Layout){};
        memcpy(s->layout.n_entities, samples->n_entities, sizeof(s->layout.n_entities));
        for (size_t i = 0; i < samples->n_columns; i++)
                if (scan_wants(s, samples->columns[i].field))
                        s->layout.columns[s->layout.n_columns++] = samples->columns[i];
        for (size_t i = 0; s->spec.tier != TIER_RAW && i < rollup_ratios_n; i++)
                if (scan_wants(s, rollup_ratios[i].field)) {
                        LayoutColumn *c = layout_add(&s->layout, rollup_ratios[i].field, 0);

                        if (c)
                                c->scale = rollup_ratios[i].scale;
                }
        layout_finish(&s->layout);
}

int store_scan_next(StoreScan *s, const StoreBlock **ret) {
        int r;

        if (reader_past_deadline(s->reader))
                return -ETIME;
        r = reader_follow(s->reader);
        if (r < 0)
                return r;
        if (s->generation != s->reader->generation) { /* another file */
                s->generation = s->reader->generation;
                s->machine_key = 0;
                s->last_seq = 0;
                r = s->spec.tier != TIER_RAW ? scan_rollup_init(s) : 0;
                if (r < 0)
                        return reader_error(s->reader, r);
        }
        r = s->spec.tier == TIER_RAW ? scan_raw_next(s, ret) : scan_rollup_next(s, ret);
        return reader_error(s->reader, r);
}
