/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by the files of this room: http.c (loop, listeners), request.c (one exchange), stream.c (bodies in
 * pieces), connection.c (deadlines). */

#include <microhttpd.h>

#include "http/http.h"

/* Deadlines may come this late, so that several share a wakeup. */
#define HTTP_DEADLINE_ACCURACY_USEC 250000

typedef struct HttpListener HttpListener;
typedef struct HttpStream HttpStream;

typedef enum ConnectionPhase {
        CONNECTION_HEAD, /* waiting for a request, or in the middle of its head */
        CONNECTION_BUSY, /* head complete; body, computing, or reply under way */
} ConnectionPhase;

typedef struct Connection Connection;
struct Connection {
        Connection *next;
        struct MHD_Connection *mhd; /* NULL before libmicrohttpd has started it */
        int fd;                     /* libmicrohttpd's */
        bool local;                 /* unix socket */
        bool had_request;
        bool dead; /* shut down by us, libmicrohttpd will end it */
        ConnectionPhase phase;
        uint64_t phase_usec;    /* when it began, CLOCK_MONOTONIC */
        uint64_t progress_usec; /* when bytes last moved in CONNECTION_BUSY */
        HttpStream *stream;     /* of the reply under way, or NULL */
};

struct Http {
        HttpConfig config;
        sd_event *loop;
        Service *service;
        struct MHD_Daemon *mhd;
        sd_event_source *io, *timer; /* libmicrohttpd's epoll fd and its timeout */
        sd_event_source *deadline;   /* the earliest of all connections' */
        sd_event_source *pump;       /* computes the next piece of one stream */
        HttpListener *listeners[HTTP_LISTENERS_MAX];
        size_t n_listeners;
        bool paused; /* no descriptor was left to accept with */
        Connection *connections;
        HttpStream *streams; /* all */
        HttpFigures figures;
};

uint64_t http_now(void);
/* Lets libmicrohttpd work and re-arms its timer. Not from inside its callbacks. */
void http_turn(Http *h);

/* ---- connection.c ---- */

Connection *connection_add(Http *h, int fd, bool local);
/* Forgets it; libmicrohttpd has closed the socket. */
void connection_remove(Http *h, Connection *c);
Connection *connection_find(Http *h, int fd);
void connection_set_phase(Http *h, Connection *c, ConnectionPhase phase);
/* Shuts the socket down, so that libmicrohttpd ends the connection in its next turn. */
void connection_kill(Connection *c);
/* Kills the one that has been idle for longest. False where none is idle. */
bool connection_evict(Http *h);
/* Makes sure that the deadline timer fires no later than c's deadline. */
void connection_arm(Http *h, const Connection *c);
int connection_on_deadline(sd_event_source *s, uint64_t usec, void *userdata);

/* ---- request.c ---- */

/* libmicrohttpd's callbacks; cls is the Http. */
void *request_begin(void *cls, const char *uri, struct MHD_Connection *mhd);
enum MHD_Result request_handle(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
        const char *version, const char *upload, size_t *n_upload, void **request);
void request_completed(
        void *cls, struct MHD_Connection *mhd, void **request, enum MHD_RequestTerminationCode why);

/* ---- stream.c ---- */

/*
 * Takes the stream over and makes a response of it. The first piece is computed here: a reply that is
 * complete with it comes back as text in *ret_body. 1 and *ret_response: it goes on; 0: complete; -EBUSY:
 * expensive, and another one is at it; other errors are the stream's.
 */
int stream_begin(Http *h, Connection *c, ReplyStream *s, struct MHD_Response **ret_response, char **ret_body,
        size_t *ret_n_body);
int stream_on_pump(sd_event_source *s, void *userdata);
/* Wakes a waiting stream, so that libmicrohttpd sees what became of its connection. */
void stream_resume(HttpStream *s);
void stream_resume_all(Http *h);
/* The exchange is over; the response may outlive it for a moment. */
void stream_detach(HttpStream *s);
