/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * libmicrohttpd in the server's loop. Its epoll descriptor is one event source, its timeout a timer that is
 * set in relative microseconds, fires once, and is off where it asks for none: fed with its milliseconds as
 * absolute time, the loop would spin (a test counts the turns). It listens to nothing; sockets are accepted
 * here and handed in.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "cstated/api.h"
#include "cstated/log.h"
#include "http/http-private.h"
#include "http/listener.h"

#define ACCEPT_BATCH 16
#define PAUSE_USEC   1000000
/* libmicrohttpd's own limit is never met: ours comes first. */
#define MHD_LIMIT 5000
/* A connection's whole memory inside libmicrohttpd: a head beyond half of it is refused with 431. */
#define MHD_MEMORY (2 * API_HEAD_MAX)

struct HttpListener {
        Http *http;
        sd_event_source *io;
        bool local;
        char path[sizeof(((struct sockaddr_un *) NULL)->sun_path) +
                  1]; /* to be removed at the end, "" none */
};

void http_turn(Http *h) {
        MHD_UNSIGNED_LONG_LONG ms;

        h->figures.turns++;
        (void) MHD_run(h->mhd);
        if (MHD_get_timeout(h->mhd, &ms) == MHD_YES) {
                (void) sd_event_source_set_time_relative(h->timer, (uint64_t) ms * 1000);
                (void) sd_event_source_set_enabled(h->timer, SD_EVENT_ONESHOT);
        } else
                (void) sd_event_source_set_enabled(h->timer, SD_EVENT_OFF);
}

static int on_io(sd_event_source *s, int fd, uint32_t events, void *userdata) {
        http_turn(userdata);
        return 0;
}

static int on_timer(sd_event_source *s, uint64_t usec, void *userdata) {
        http_turn(userdata);
        return 0;
}

/* ---- accepting ---- */

static void set_listening(Http *h, int enabled) {
        for (size_t i = 0; i < h->n_listeners; i++)
                (void) sd_event_source_set_enabled(h->listeners[i]->io, enabled);
}

static void refuse(Http *h, int fd) {
        static const char text[] =
                "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: "
                "1\r\nConnection: close\r\n"
                "Content-Length: 72\r\n\r\n"
                "{\"error\":{\"code\":\"busy\",\"message\":\"too many connections\",\"param\":null}}\n";

        (void) send(fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL);
        (void) close(fd);
        h->figures.refused++;
}

static void welcome(Http *h, HttpListener *l, int fd, const struct sockaddr *sa, socklen_t n) {
        Connection *c;

        if (h->figures.n_connections >= h->config.max_connections && !connection_evict(h)) {
                refuse(h, fd);
                return;
        }
        c = connection_add(h, fd, l->local);
        if (!c) {
                (void) close(fd);
                return;
        }
        h->figures.accepted++;
        /* It closes the descriptor where it fails; a connection that never started is then still ours to
         * forget. */
        if (MHD_add_connection(h->mhd, fd, sa, n) != MHD_YES)
                connection_remove(h, c);
}

/* Without a descriptor to accept with, the listener would stay readable for ever: rest, and let idle ones
 * go. */
static void pause_listening(Http *h) {
        if (!h->paused)
                log_warning("no descriptor is left for a new connection: %s", strerror(errno));
        h->paused = true;
        set_listening(h, SD_EVENT_OFF);
        (void) connection_evict(h);
        (void) sd_event_source_set_time_relative(h->deadline, PAUSE_USEC);
        (void) sd_event_source_set_enabled(h->deadline, SD_EVENT_ONESHOT);
}

static int on_connect(sd_event_source *s, int fd, uint32_t events, void *userdata) {
        HttpListener *l = userdata;
        Http *h = l->http;

        for (unsigned i = 0; i < ACCEPT_BATCH; i++) {
                struct sockaddr_storage sa = {};
                socklen_t n = sizeof(sa);
                int client = accept4(fd, (struct sockaddr *) &sa, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);

                if (client >= 0) {
                        welcome(h, l, client, (struct sockaddr *) &sa, n);
                        continue;
                }
                if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                        pause_listening(h);
                break;
        }
        http_turn(h);
        return 0;
}

static int on_deadline(sd_event_source *s, uint64_t usec, void *userdata) {
        Http *h = userdata;

        if (h->paused) {
                h->paused = false;
                set_listening(h, SD_EVENT_ON);
        }
        return connection_on_deadline(s, usec, userdata);
}

static void on_connection(
        void *cls, struct MHD_Connection *mhd, void **context, enum MHD_ConnectionNotificationCode code) {
        const union MHD_ConnectionInfo *info;
        Http *h = cls;

        if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
                connection_remove(h, *context);
                *context = NULL;
                return;
        }
        info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
        *context = info ? connection_find(h, info->connect_fd) : NULL;
        if (*context)
                ((Connection *) *context)->mhd = mhd;
}

/* ---- listeners ---- */

static HttpListener *listener_free(HttpListener *l) {
        sd_event_source_disable_unref(l->io);
        if (l->path[0])
                (void) unlink(l->path);
        free(l);
        return NULL;
}

int http_add_listener(Http *h, int fd, bool unlink_at_end) {
        union {
                struct sockaddr sa;
                struct sockaddr_un un;
                struct sockaddr_storage storage;
        } a = {};
        _cleanup_close_ int owned = fd;
        socklen_t n = sizeof(a);
        HttpListener *l;
        int r, flags;

        if (h->n_listeners == HTTP_LISTENERS_MAX)
                return -E2BIG;
        /* One that was passed to us may block, and accept() is called until nobody is left. */
        flags = fcntl(fd, F_GETFL);
        if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || getsockname(fd, &a.sa, &n) < 0)
                return -errno;
        l = calloc(1, sizeof(*l));
        if (!l)
                return -ENOMEM;
        l->http = h;
        l->local = a.sa.sa_family == AF_UNIX;
        if (l->local && unlink_at_end && n > offsetof(struct sockaddr_un, sun_path))
                (void) snprintf(
                        l->path, sizeof(l->path), "%.*s", (int) sizeof(a.un.sun_path), a.un.sun_path);
        r = sd_event_add_io(h->loop, &l->io, fd, EPOLLIN, on_connect, l);
        if (r < 0) {
                free(l);
                return r;
        }
        (void) sd_event_source_set_io_fd_own(l->io, true);
        (void) sd_event_source_set_description(l->io, "http-listener");
        (void) TAKE_FD(owned);
        h->listeners[h->n_listeners++] = l;
        return 0;
}

int http_listen(Http *h, const char *address, unsigned group, const char **ret_error) {
        int fds[8], n, r = 0;

        n = listener_open(address, (uid_t) -1, group, fds, ARRAY_SIZE(fds), ret_error);
        if (n < 0)
                return n;
        for (int i = 0; i < n; i++) {
                int q = http_add_listener(h, fds[i], true);

                r = r < 0 ? r : q;
        }
        return r;
}

void http_close_listeners(Http *h) {
        while (h->n_listeners > 0)
                (void) listener_free(h->listeners[--h->n_listeners]);
}

/* ---- the whole ---- */

static int start_mhd(Http *h) {
        const union MHD_DaemonInfo *info;
        int r;

        h->mhd = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0,
                NULL, NULL, request_handle, h, MHD_OPTION_CONNECTION_LIMIT, (unsigned) MHD_LIMIT,
                MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) MHD_MEMORY, MHD_OPTION_CONNECTION_TIMEOUT, 0u,
                MHD_OPTION_URI_LOG_CALLBACK, request_begin, h, MHD_OPTION_NOTIFY_COMPLETED,
                request_completed, h, MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_END);
        if (!h->mhd)
                return -ENOTSUP;
        info = MHD_get_daemon_info(h->mhd, MHD_DAEMON_INFO_EPOLL_FD);
        if (!info)
                return -ENOTSUP;
        r = sd_event_add_io(h->loop, &h->io, info->listen_fd, EPOLLIN, on_io, h);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(h->io, "http");
        return 0;
}

static int start_timers(Http *h) {
        int r;

        r = sd_event_add_time(h->loop, &h->timer, CLOCK_MONOTONIC, 0, 1000, on_timer, h);
        if (r < 0)
                return r;
        (void) sd_event_source_set_enabled(h->timer, SD_EVENT_OFF);
        r = sd_event_add_time(
                h->loop, &h->deadline, CLOCK_MONOTONIC, 0, HTTP_DEADLINE_ACCURACY_USEC, on_deadline, h);
        if (r < 0)
                return r;
        (void) sd_event_source_set_enabled(h->deadline, SD_EVENT_OFF);
        r = sd_event_add_defer(h->loop, &h->pump, stream_on_pump, h);
        if (r < 0)
                return r;
        (void) sd_event_source_set_enabled(h->pump, SD_EVENT_OFF);
        (void) sd_event_source_set_description(h->timer, "http-timeout");
        (void) sd_event_source_set_description(h->deadline, "http-deadline");
        (void) sd_event_source_set_description(h->pump, "http-stream");
        return sd_event_source_set_priority(h->pump, SD_EVENT_PRIORITY_NORMAL + 10);
}

int http_new(const HttpConfig *c, sd_event *loop, Service *service, Http **ret) {
        _cleanup_(http_freep) Http *h = calloc(1, sizeof(*h));
        int r;

        if (!h)
                return -ENOMEM;
        h->config = *c;
        h->loop = sd_event_ref(loop);
        h->service = service;
        r = start_timers(h);
        if (r < 0)
                return r;
        r = start_mhd(h);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(h);
        return 0;
}

Http *http_free(Http *h) {
        if (!h)
                return NULL;
        http_close_listeners(h);
        for (Connection *c = h->connections; c; c = c->next)
                c->dead = true;
        if (h->mhd) {
                stream_resume_all(h);
                MHD_stop_daemon(h->mhd);
        }
        /* What libmicrohttpd never started. */
        while (h->connections)
                connection_remove(h, h->connections);
        sd_event_source_disable_unref(h->io);
        sd_event_source_disable_unref(h->timer);
        sd_event_source_disable_unref(h->deadline);
        sd_event_source_disable_unref(h->pump);
        sd_event_unref(h->loop);
        free(h);
        return NULL;
}

void http_reconfigure(Http *h, const HttpConfig *c) {
        h->config = *c;
}

void http_figures(const Http *h, HttpFigures *ret) {
        *ret = h->figures;
}
