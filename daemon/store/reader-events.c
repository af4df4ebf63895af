/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events, newest first: those of the file, and those that the writer in this process has not written yet. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/reader.h"
#include "store/writer.h"

typedef struct LiveEvents {
        const PendingEvent *events[EVENT_QUEUE_MAX];
        size_t n, next;
} LiveEvents;

static int compare_events(const void *a, const void *b) {
        const PendingEvent *x = *(const PendingEvent *const *) a, *y = *(const PendingEvent *const *) b;

        if (x->time_us != y->time_us)
                return x->time_us < y->time_us ? 1 : -1;
        return x->id < y->id ? 1 : -1;
}

static void live_events_collect(
        LiveEvents *l, const Store *s, uint64_t start_us, uint64_t end_us, const char *kind) {
        for (const PendingEvent *e = store_live_events(s); e && l->n < EVENT_QUEUE_MAX; e = e->next)
                if (e->time_us >= start_us && e->time_us < end_us && (!kind || strcmp(kind, e->kind) == 0))
                        l->events[l->n++] = e;
        qsort(l->events, l->n, sizeof(l->events[0]), compare_events);
}

/* Those that are newer than an event of the file: what waits has the higher numbers. */
static int live_events_tell(LiveEvents *l, uint64_t time_us, size_t *max,
        int (*fn)(void *userdata, const StoreEvent *e), void *userdata) {
        int r = 0;

        for (; r >= 0 && *max > 0 && l->next < l->n && l->events[l->next]->time_us >= time_us; (*max)--) {
                const PendingEvent *p = l->events[l->next++];
                StoreEvent e = {
                        .id = p->id, .time_us = p->time_us, .cpu = p->cpu, .kind = p->kind, .text = p->text
                };

                r = fn(userdata, &e);
        }
        return r < 0 ? r : 0;
}

static int file_events_tell(sqlite3_stmt *q, LiveEvents *l, size_t *max,
        int (*fn)(void *userdata, const StoreEvent *e), void *userdata) {
        int r = 0;

        while (*max > 0 && (r = db_step(q)) > 0) {
                StoreEvent e = {
                        .id = (uint64_t) sqlite3_column_int64(q, 0),
                        .time_us = (uint64_t) sqlite3_column_int64(q, 1),
                        .kind = (const char *) sqlite3_column_text(q, 2) ?: "",
                        .cpu = sqlite3_column_type(q, 3) == SQLITE_NULL ? -1 : sqlite3_column_int64(q, 3),
                        .text = (const char *) sqlite3_column_text(q, 4) ?: "",
                };

                r = live_events_tell(l, e.time_us, max, fn, userdata);
                if (r == 0 && *max > 0) {
                        (*max)--;
                        r = fn(userdata, &e);
                }
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : 0;
}

int store_reader_events(StoreReader *r, uint64_t start_us, uint64_t end_us, const char *kind, size_t max,
        int (*fn)(void *userdata, const StoreEvent *e), void *userdata) {
        _cleanup_reset_ sqlite3_stmt *q = NULL;
        LiveEvents live = {};
        int code;

        code = reader_follow(r);
        if (code < 0)
                return code;
        if (r->live)
                live_events_collect(&live, r->live, start_us, end_us, kind);
        if (r->db) {
                q = r->stmts[READ_EVENTS];
                code = db_bind(q, "iiti", (int64_t) start_us, (int64_t) MIN(end_us, (uint64_t) INT64_MAX), kind,
                        (int64_t) MIN(max, (size_t) INT64_MAX));
                if (code == 0)
                        code = file_events_tell(q, &live, &max, fn, userdata);
                if (code < 0)
                        return reader_error(r, code);
        }
        return live_events_tell(&live, 0, &max, fn, userdata);
}
