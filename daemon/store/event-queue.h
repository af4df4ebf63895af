/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Events on their way into the file, bounded by kind and minute. Private to daemon/store. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EVENT_QUEUE_MAX   256     /* waiting, while the file is in trouble */
#define EVENT_KIND_MAX    60      /* of a kind in a minute; the others are counted */
#define EVENT_KINDS_MAX   16      /* told apart in a minute; what is beyond shares the last place */
#define EVENT_BATCH_US    5000000 /* from one commit for the sake of events to the next */
#define EVENTS_KEPT_MAX   100000  /* in the file: the newest */
#define EVENTS_CUT_MAX    1000    /* that go in one transaction */

typedef struct PendingEvent {
        struct PendingEvent *next;
        uint64_t id, time_us;
        int64_t cpu;
        char kind[32];
        char text[];
} PendingEvent;

typedef struct EventKind {
        char kind[32];
        uint32_t n, n_dropped;
        uint64_t dropped_us; /* when the last one was */
} EventKind;

typedef struct EventQueue {
        PendingEvent *first, **last; /* last: where the next one is hung */
        size_t n;
        uint64_t next_id;
        uint64_t n_dropped;  /* since start */
        uint64_t written_us; /* when a commit last took events along */
        uint64_t minute;
        EventKind kinds[EVENT_KINDS_MAX];
} EventQueue;

void event_queue_init(EventQueue *q);
void event_queue_deinit(EventQueue *q);
/* Queues an event, or counts it as dropped. -ENOMEM. */
int event_queue_add(EventQueue *q, uint64_t time_us, const char *kind, int64_t cpu, const char *text);
/* Where a minute is over (force: in any case) its dropped events become a row a kind. -ENOMEM: some are told later. */
int event_queue_settle(EventQueue *q, uint64_t now_us, bool force);
/* Whether events wait that may have a commit of their own. */
bool event_queue_is_due(const EventQueue *q, uint64_t now_us);
/* They are in the file. */
void event_queue_clear(EventQueue *q, uint64_t now_us);
/* The file's newest event has this number: those that wait follow on it. */
void event_queue_number(EventQueue *q, uint64_t last_id);
