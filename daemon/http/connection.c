/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Deadlines of connections. A connection is in one of two phases, and each has its own clock:
 *
 *   head  the first head must be complete head_timeout after accept, a further one idle_timeout after the
 * last reply busy  total_timeout from the complete head, and idle_timeout without a byte moving
 *
 * One timer serves all: it stands at the earliest deadline known when it was set, and is set again when it
 * fires, so that a busy connection does not move it with every byte. Killing is shutdown(2): libmicrohttpd,
 * which owns the descriptor, then sees the end of the stream.
 */

#include <sys/socket.h>
#include <time.h>

#include "cstated/macro.h"
#include "http/http-private.h"

uint64_t http_now(void) {
        struct timespec t = {};

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * 1000000 + (uint64_t) t.tv_nsec / 1000;
}

static uint64_t connection_deadline(const Http *h, const Connection *c) {
        const HttpConfig *k = &h->config;

        if (c->dead)
                return UINT64_MAX;
        if (c->phase == CONNECTION_HEAD)
                return c->phase_usec + (c->had_request ? k->idle_timeout_usec : k->head_timeout_usec);
        return MIN(c->phase_usec + k->total_timeout_usec, c->progress_usec + k->idle_timeout_usec);
}

void connection_arm(Http *h, const Connection *c) {
        uint64_t deadline = connection_deadline(h, c), armed = UINT64_MAX;
        int enabled = SD_EVENT_OFF;

        if (deadline == UINT64_MAX)
                return;
        (void) sd_event_source_get_enabled(h->deadline, &enabled);
        if (enabled != SD_EVENT_OFF && sd_event_source_get_time(h->deadline, &armed) >= 0 &&
                armed <= deadline)
                return;
        (void) sd_event_source_set_time(h->deadline, deadline);
        (void) sd_event_source_set_enabled(h->deadline, SD_EVENT_ONESHOT);
}

int connection_on_deadline(sd_event_source *s, uint64_t usec, void *userdata) {
        Http *h = userdata;
        uint64_t now = http_now();
        bool killed = false;

        for (Connection *c = h->connections; c; c = c->next) {
                if (connection_deadline(h, c) > now)
                        continue;
                connection_kill(c);
                h->figures.timed_out++;
                killed = true;
        }
        if (killed)
                http_turn(h);
        for (const Connection *c = h->connections; c; c = c->next)
                connection_arm(h, c);
        return 0;
}

Connection *connection_add(Http *h, int fd, bool local) {
        Connection *c = calloc(1, sizeof(*c));

        if (!c)
                return NULL;
        c->fd = fd;
        c->local = local;
        c->next = h->connections;
        h->connections = c;
        h->figures.n_connections++;
        connection_set_phase(h, c, CONNECTION_HEAD);
        return c;
}

void connection_remove(Http *h, Connection *c) {
        for (Connection **p = &h->connections; *p; p = &(*p)->next)
                if (*p == c) {
                        *p = c->next;
                        h->figures.n_connections--;
                        free(c);
                        return;
                }
}

Connection *connection_find(Http *h, int fd) {
        for (Connection *c = h->connections; c; c = c->next)
                if (c->fd == fd)
                        return c;
        return NULL;
}

void connection_set_phase(Http *h, Connection *c, ConnectionPhase phase) {
        c->phase = phase;
        c->phase_usec = c->progress_usec = http_now();
        connection_arm(h, c);
}

void connection_kill(Connection *c) {
        if (c->dead)
                return;
        c->dead = true;
        (void) shutdown(c->fd, SHUT_RDWR);
        if (c->stream)
                stream_resume(c->stream);
}

bool connection_evict(Http *h) {
        Connection *oldest = NULL;

        for (Connection *c = h->connections; c; c = c->next)
                if (!c->dead && c->phase == CONNECTION_HEAD &&
                        (!oldest || c->phase_usec <= oldest->phase_usec))
                        oldest = c;
        if (!oldest)
                return false;
        connection_kill(oldest);
        h->figures.evicted++;
        http_turn(h);
        return true;
}
