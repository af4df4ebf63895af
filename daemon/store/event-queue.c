/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events wait for the minute's transaction. One that comes alone has a commit of its own, so that a crash takes
 * nothing; what follows within EVENT_BATCH_US waits for the next commit, so that a source that flaps costs a commit
 * every few seconds and not one an event (readers in this process see them meanwhile). And of a kind no more than
 * EVENT_KIND_MAX a minute are kept: the rest is one row that says how many.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cstated/macro.h"

#include "store/event-queue.h"
#include "store/rollup-table.h"

void event_queue_init(EventQueue *q) {
        *q = (EventQueue) { .next_id = 1 };
        q->last = &q->first;
}

static void event_queue_empty(EventQueue *q) {
        while (q->first) {
                PendingEvent *e = q->first;

                q->first = e->next;
                free(e);
        }
        q->last = &q->first;
        q->n = 0;
}

void event_queue_deinit(EventQueue *q) {
        event_queue_empty(q);
}

static int event_queue_push(EventQueue *q, uint64_t time_us, const char *kind, int64_t cpu, const char *text) {
        PendingEvent *e = calloc(1, sizeof(*e) + strlen(text) + 1);

        if (!e)
                return -ENOMEM;
        e->id = q->next_id++;
        e->time_us = time_us;
        e->cpu = cpu;
        (void) snprintf(e->kind, sizeof(e->kind), "%s", kind);
        (void) strcpy(e->text, text);
        *q->last = e;
        q->last = &e->next;
        q->n++;
        return 0;
}

static EventKind *event_kind(EventQueue *q, const char *kind) {
        size_t i = 0;

        while (i < EVENT_KINDS_MAX - 1 && q->kinds[i].kind[0] && strcmp(q->kinds[i].kind, kind) != 0)
                i++;
        if (!q->kinds[i].kind[0])
                (void) snprintf(q->kinds[i].kind, sizeof(q->kinds[i].kind), "%s",
                        i < EVENT_KINDS_MAX - 1 ? kind : "other");
        return &q->kinds[i];
}

static int event_queue_tell(EventQueue *q, EventKind *k) {
        char text[64];
        int r;

        if (k->n_dropped == 0 || q->n >= EVENT_QUEUE_MAX)
                return 0;
        (void) snprintf(text, sizeof(text), "%" PRIu32 " more of this kind were dropped", k->n_dropped);
        r = event_queue_push(q, k->dropped_us, k->kind, -1, text);
        if (r == 0)
                k->n_dropped = 0;
        return r;
}

int event_queue_settle(EventQueue *q, uint64_t now_us, bool force) {
        uint64_t minute = now_us > 0 ? (now_us - 1) / ROLLUP_MINUTE_US : 0;
        size_t kept = 0;
        int r = 0;

        /* An event's time and a tick's end may lie on either side of the full minute: that is one end of it. */
        if (!force && (minute == q->minute || minute + 1 == q->minute))
                return 0;
        q->minute = MAX(minute, force ? q->minute : 0);
        for (size_t i = 0; i < EVENT_KINDS_MAX && q->kinds[i].kind[0]; i++) {
                EventKind *k = &q->kinds[i];

                r = event_queue_tell(q, k) ?: r;
                k->n = 0;
                if (k->n_dropped > 0) /* no room: in a later minute, then */
                        q->kinds[kept++] = *k;
        }
        memset(&q->kinds[kept], 0, (EVENT_KINDS_MAX - kept) * sizeof(q->kinds[0]));
        return r;
}

int event_queue_add(EventQueue *q, uint64_t time_us, const char *kind, int64_t cpu, const char *text) {
        EventKind *k;
        int r;

        r = event_queue_settle(q, time_us, false);
        if (r < 0)
                return r;
        k = event_kind(q, kind);
        if (k->n < EVENT_KIND_MAX && q->n < EVENT_QUEUE_MAX) {
                k->n++;
                return event_queue_push(q, time_us, kind, cpu, text);
        }
        k->n_dropped++;
        k->dropped_us = time_us;
        q->n_dropped++;
        return 0;
}

bool event_queue_is_due(const EventQueue *q, uint64_t now_us) {
        uint64_t since = now_us > q->written_us ? now_us - q->written_us : q->written_us - now_us;

        return q->first && since >= EVENT_BATCH_US;
}

void event_queue_clear(EventQueue *q, uint64_t now_us) {
        if (q->first)
                q->written_us = now_us;
        event_queue_empty(q);
}

void event_queue_number(EventQueue *q, uint64_t last_id) {
        uint64_t first = q->first ? q->first->id : q->next_id;
        uint64_t shift = last_id >= first ? last_id + 1 - first : 0;

        for (PendingEvent *e = q->first; e; e = e->next)
                e->id += shift;
        q->next_id += shift;
}
