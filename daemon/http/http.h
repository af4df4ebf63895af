/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Listeners, connections and limits around libmicrohttpd in external epoll mode inside the server's sd-event
 * loop. We accept ourselves (MHD_USE_NO_LISTEN_SOCKET), so that head, total and idle deadlines and eviction
 * are ours.
 */

#include <systemd/sd-event.h>

#include "api/route.h"

typedef struct HttpConfig {
        unsigned max_connections; /* 256 */
        uint64_t idle_timeout_usec, head_timeout_usec, total_timeout_usec;
} HttpConfig;

#define HTTP_CONFIG_INIT                                                                                    \
        {                                                                                                   \
                .max_connections = 256, .idle_timeout_usec = 30 * 1000000ULL,                               \
                .head_timeout_usec = 10 * 1000000ULL, .total_timeout_usec = 120 * 1000000ULL,               \
        }
#define HTTP_LISTENERS_MAX 32

typedef struct Http Http;

int http_new(const HttpConfig *c, sd_event *loop, Service *service, Http **ret);
/* Ends connections and listeners. */
Http *http_free(Http *h);
DEFINE_CLEANUP(Http *, http_free);
/* New limits for what comes from now on. */
void http_reconfigure(Http *h, const HttpConfig *c);
/* listener_open() of one address and the taking over of its sockets; for one unprivileged process. */
int http_listen(Http *h, const char *address, unsigned group, const char **ret_error);
/*
 * A bound and listening socket; fd becomes ours, also on failure. unlink_at_end: the path of a unix socket
 * is removed with it (not for systemd's). -ENOTSOCK where it is none, -E2BIG.
 */
int http_add_listener(Http *h, int fd, bool unlink_at_end);
/* No further connections; those that are there go on. */
void http_close_listeners(Http *h);

typedef struct HttpFigures {
        unsigned n_connections, n_streams;
        uint64_t accepted, refused, evicted, timed_out, requests;
        uint64_t turns; /* of libmicrohttpd: an idle server makes none */
} HttpFigures;
void http_figures(const Http *h, HttpFigures *ret);
