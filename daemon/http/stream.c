/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bodies that come in pieces. libmicrohttpd asks for bytes; where none are ready the connection is
 * suspended, and the pump, an event source that comes after everything else, computes one piece of one
 * stream a loop turn and resumes it. So a frame of the sampler waits at most for one piece (~20 ms), and
 * memory is one piece a stream.
 *
 * A reply whose first piece is not all of it is expensive, and only one is worked on at a time. One whose
 * client has not taken the last piece for a second does not count: a slow reader keeps nobody out.
 */

#include <errno.h>
#include <string.h>

#include "cstated/api.h"
#include "http/http-private.h"

#define STREAMS_MAX  16 /* open ones, stalled readers included: each holds a scan and a piece */
#define STALLED_USEC 1000000
#define BLOCK_SIZE   (64 * 1024)

struct HttpStream {
        HttpStream *next;
        Http *http;
        Connection *connection; /* NULL once it is gone */
        ReplyStream *source;
        JsonWriter piece;
        size_t taken; /* of the piece */
        uint64_t n_sent;
        uint64_t taken_usec; /* when the client last took something */
        bool suspended;      /* waits for the pump */
        bool complete, failed;
};

static bool stream_working(const HttpStream *s) {
        return !s->complete && !s->failed && (s->suspended || http_now() - s->taken_usec < STALLED_USEC);
}

static bool stream_admitted(const Http *h) {
        size_t n = 0;

        for (const HttpStream *s = h->streams; s; s = s->next) {
                if (stream_working(s))
                        return false;
                n++;
        }
        return n < STREAMS_MAX;
}

static HttpStream *stream_free(HttpStream *s) {
        if (s->source)
                s->source->free(s->source);
        jw_deinit(&s->piece);
        free(s);
        return NULL;
}

static void stream_release(void *cls) {
        HttpStream *s = cls;

        for (HttpStream **p = &s->http->streams; *p; p = &(*p)->next)
                if (*p == s) {
                        *p = s->next;
                        s->http->figures.n_streams--;
                        break;
                }
        if (s->connection)
                stream_detach(s);
        (void) stream_free(s);
}

/* The writer's nesting goes on over the pieces; only the text is dropped. */
static void stream_compute(HttpStream *s) {
        int r;

        s->piece.n = 0;
        s->taken = 0;
        r = s->source->next(s->source, &s->piece);
        if (r < 0 || jw_error(&s->piece) < 0)
                s->failed = true;
        else if (r == 0)
                s->complete = true;
}

static void pump_enable(Http *h) {
        (void) sd_event_source_set_enabled(h->pump, SD_EVENT_ONESHOT);
}

static ssize_t stream_take(HttpStream *s, char *buf, size_t max) {
        size_t n = MIN(max, s->piece.n - s->taken);

        if (s->n_sent + n > API_REPLY_MAX)
                return MHD_CONTENT_READER_END_WITH_ERROR;
        memcpy(buf, s->piece.buf + s->taken, n);
        s->taken += n;
        s->n_sent += n;
        s->taken_usec = http_now();
        if (s->connection)
                s->connection->progress_usec = s->taken_usec;
        return (ssize_t) n;
}

static ssize_t stream_read(void *cls, uint64_t pos, char *buf, size_t max) {
        HttpStream *s = cls;

        if (!s->connection || s->connection->dead || s->failed)
                return MHD_CONTENT_READER_END_WITH_ERROR;
        if (s->taken < s->piece.n)
                return stream_take(s, buf, max);
        if (s->complete)
                return MHD_CONTENT_READER_END_OF_STREAM;
        s->suspended = true;
        MHD_suspend_connection(s->connection->mhd);
        pump_enable(s->http);
        return 0;
}

void stream_resume(HttpStream *s) {
        if (!s->suspended)
                return;
        s->suspended = false;
        if (s->connection)
                MHD_resume_connection(s->connection->mhd);
}

void stream_detach(HttpStream *s) {
        s->connection->stream = NULL;
        s->connection = NULL;
}

void stream_resume_all(Http *h) {
        for (HttpStream *s = h->streams; s; s = s->next)
                stream_resume(s);
}

/* The one that has waited for longest: streams are pushed to the front of the list, and go there again when
 * served. */
static HttpStream *stream_next_waiting(Http *h) {
        HttpStream *oldest = NULL;

        for (HttpStream *s = h->streams; s; s = s->next)
                if (s->suspended && (!oldest || s->taken_usec <= oldest->taken_usec))
                        oldest = s;
        return oldest;
}

int stream_on_pump(sd_event_source *source, void *userdata) {
        Http *h = userdata;
        HttpStream *s = stream_next_waiting(h);

        if (!s)
                return 0;
        stream_compute(s);
        s->taken_usec = http_now();
        if (s->connection)
                s->connection->progress_usec = s->taken_usec;
        if (s->piece.n > 0 || s->complete || s->failed)
                stream_resume(s);
        if (stream_next_waiting(h))
                pump_enable(h);
        http_turn(h);
        return 0;
}

static int stream_respond(Http *h, Connection *c, HttpStream *s, struct MHD_Response **ret) {
        struct MHD_Response *response;

        if (!stream_admitted(h))
                return -EBUSY;
        response = MHD_create_response_from_callback(
                MHD_SIZE_UNKNOWN, BLOCK_SIZE, stream_read, s, stream_release);
        if (!response)
                return -ENOMEM;
        s->next = h->streams;
        h->streams = s;
        h->figures.n_streams++;
        c->stream = s;
        *ret = response;
        return 1;
}

int stream_begin(Http *h, Connection *c, ReplyStream *source, struct MHD_Response **ret_response,
        char **ret_body, size_t *ret_n_body) {
        HttpStream *s = calloc(1, sizeof(*s));
        int r;

        if (!s) {
                source->free(source);
                return -ENOMEM;
        }
        *s = (HttpStream){ .http = h,
                .connection = c,
                .source = source,
                .piece = JSON_WRITER_INIT,
                .taken_usec = http_now() };
        r = source->next(source, &s->piece);
        if (r >= 0 && jw_error(&s->piece) < 0)
                r = -ENOMEM;
        if (r == 0) {
                size_t n = 0;
                char *body = jw_take(&s->piece, &n);

                if (!body && !(body = calloc(1, 1)))
                        r = -ENOMEM;
                else {
                        *ret_body = body;
                        *ret_n_body = n;
                }
        } else if (r > 0) {
                r = stream_respond(h, c, s, ret_response);
                if (r > 0)
                        return r;
        }
        (void) stream_free(s);
        return r;
}
