/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs one query with a single bucket and keeps its rows, which outlive it. */

#include <errno.h>
#include <string.h>

#include "cstated/macro.h"

#include "query/collect.h"

#define AGG_ALL (AGG_MEAN | AGG_MIN | AGG_MAX | AGG_STDDEV | AGG_SUM | AGG_COUNT)

void collect_init(Collect *c, StoreReader *r, const QuerySpec *spec, uint64_t start_us, uint64_t end_us) {
        *c = (Collect){ .spec = *spec, .reader = r };
        c->spec.start_us = start_us;
        c->spec.end_us = end_us;
        c->spec.points = 1;
        c->spec.step_us = end_us - start_us;
        c->spec.aggs = AGG_ALL;
}

void collect_deinit(Collect *c) {
        c->query = query_free(c->query);
        free(c->rows);
        c->rows = NULL;
        c->n_rows = 0;
}

static int collect_add(Collect *c, const QueryRow *row) {
        CollectRow *to;

        if (c->n_rows == COLLECT_ROWS_MAX)
                return -E2BIG;
        if (c->n_rows == c->size_rows) {
                size_t size = MAX(2 * c->size_rows, (size_t) 64);
                CollectRow *rows = reallocarray(c->rows, size, sizeof(*rows));

                if (!rows)
                        return -ENOMEM;
                c->rows = rows;
                c->size_rows = size;
        }
        to = &c->rows[c->n_rows++];
        to->row = *row;
        (void) snprintf(to->state, sizeof(to->state), "%s", row->state ?: "");
        return 0;
}

static int collect_finish(Collect *c) {
        query_info(c->query, &c->info);
        query_facts(c->query, &c->facts);
        for (size_t i = 0; i < c->n_rows; i++)
                c->rows[i].row.state = c->rows[i].state[0] ? c->rows[i].state : NULL;
        c->query = query_free(c->query);
        c->is_done = true;
        return 0;
}

static int too_many(QueryError *error) {
        (void) query_error(
                error, "metric", "more than %d rows: ask for fewer metrics or scope=node", COLLECT_ROWS_MAX);
        return QUERY_E_TOO_MANY;
}

int collect_check(StoreReader *r, const QuerySpec *spec, uint64_t start_us, uint64_t end_us, QueryError *ret_error) {
        const Machine *m;
        size_t n = 0;
        int code;

        code = store_reader_machine_at(r, start_us, end_us, &m);
        if (code == 0 && m)
                code = query_count_series(spec, m, &n, ret_error);
        return code == 0 && n > COLLECT_ROWS_MAX ? too_many(ret_error) : code;
}

int collect_work(Collect *c, QueryError *ret_error) {
        int r;

        if (c->is_done)
                return 0;
        if (!c->query) {
                r = query_new(c->reader, &c->spec, &c->query, ret_error);
                if (r != 0)
                        return r;
                return query_n_series(c->query) > COLLECT_ROWS_MAX ? too_many(ret_error) : 2;
        }
        for (;;) {
                const QueryRow *row;

                r = query_next(c->query, &row);
                if (r == 0)
                        return collect_finish(c);
                if (r != 1)
                        return r;
                r = collect_add(c, row);
                if (r == -E2BIG)
                        return too_many(ret_error);
                if (r < 0)
                        return r;
        }
}

const QueryRow *collect_find(const Collect *c, const QueryRow *key) {
        for (size_t i = 0; i < c->n_rows; i++) {
                const QueryRow *r = &c->rows[i].row;

                if (r->metric == key->metric && r->scope == key->scope && r->cpu == key->cpu &&
                        r->core == key->core && r->module == key->module && r->package == key->package &&
                        r->die == key->die && strcmp(r->state ?: "", key->state ?: "") == 0)
                        return r;
        }
        return NULL;
}
