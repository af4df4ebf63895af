/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Listeners, connections and limits around libmicrohttpd in external epoll mode inside the server's sd-event loop. We
 * accept ourselves (MHD_USE_NO_LISTEN_SOCKET), so that head, total and idle deadlines and eviction are ours.
 */

#include <systemd/sd-event.h>

#include "api/route.h"

typedef struct HttpConfig {
        unsigned max_connections; /* 256 */
        uint64_t idle_timeout_usec, head_timeout_usec, total_timeout_usec;
} HttpConfig;

#define HTTP_CONFIG_INIT { \
                .max_connections = 256, \
                .idle_timeout_usec = 30 * 1000000ULL, \
                .head_timeout_usec = 10 * 1000000ULL, \
                .total_timeout_usec = 120 * 1000000ULL, \
        }

typedef struct Http Http;

int http_new(const HttpConfig *c, sd_event *loop, Service *service, Http **ret);
Http *http_free(Http *h);
DEFINE_CLEANUP(Http *, http_free);
/*
 * "HOST:PORT" or an absolute path (unix socket, mode 0660 from birth, stale one replaced, live one or another kind of
 * file refused). group: gid of the socket, (gid_t) -1 none. -errno, with *ret_error a sentence (static or NULL).
 */
int http_listen(Http *h, const char *address, unsigned gid, const char **ret_error);
/* A listener passed by systemd; fd becomes ours. */
int http_add_listener(Http *h, int fd);
unsigned http_n_connections(const Http *h);
