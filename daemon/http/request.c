/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One exchange: libmicrohttpd's callbacks on one side, a Request and a Reply on the other. The query string
 * is taken raw from the request line, so that one parser (the api's) reads it everywhere.
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cstated/api.h"
#include "cstated/num.h"
#include "http/dashboard.h"
#include "http/http-private.h"

#define BODY_DISCARD_MAX (16 * API_BODY_MAX)

typedef struct Exchange {
        Connection *connection;
        char *query; /* behind the '?', raw; NULL: none */
        char *body;
        size_t n_body;
        bool began;     /* the head is complete */
        bool too_large; /* the rest of the body is thrown away */
} Exchange;

void *request_begin(void *cls, const char *uri, struct MHD_Connection *mhd) {
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        Exchange *x = calloc(1, sizeof(*x));
        const char *question = strchr(uri, '?');

        if (!x || !info || !info->socket_context) {
                free(x);
                return NULL;
        }
        x->connection = info->socket_context;
        if (question) {
                x->query = strdup(question + 1);
                if (!x->query) {
                        free(x);
                        return NULL;
                }
        }
        return x;
}

void request_completed(
        void *cls, struct MHD_Connection *mhd, void **request, enum MHD_RequestTerminationCode why) {
        Http *h = cls;
        Exchange *x = *request;

        if (!x)
                return;
        if (x->connection->stream)
                stream_detach(x->connection->stream);
        x->connection->had_request = true;
        connection_set_phase(h, x->connection, CONNECTION_HEAD);
        free(x->query);
        free(x->body);
        free(x);
        *request = NULL;
}

static void add_header(struct MHD_Response *response, const char *name, const char *value) {
        (void) MHD_add_response_header(response, name, value);
}

/* Headers of every reply; consumes the response. */
static enum MHD_Result queue(struct MHD_Connection *mhd, const Reply *reply, struct MHD_Response *response) {
        enum MHD_Result r;
        char text[16];

        if (!response)
                return MHD_NO;
        add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                reply->content_type ? reply->content_type : "application/json");
        add_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
        add_header(response, "X-Content-Type-Options", "nosniff");
        if (reply->allow)
                add_header(response, MHD_HTTP_HEADER_ALLOW, reply->allow);
        if (reply->retry_after_s) {
                (void) snprintf(text, sizeof(text), "%u", reply->retry_after_s);
                add_header(response, MHD_HTTP_HEADER_RETRY_AFTER, text);
        }
        for (size_t i = 0; i < reply->n_headers; i++)
                add_header(response, reply->headers[i].name, reply->headers[i].value);
        r = MHD_queue_response(mhd, (unsigned) reply->status, response);
        MHD_destroy_response(response);
        return r;
}

static enum MHD_Result queue_body(struct MHD_Connection *mhd, Reply *reply) {
        struct MHD_Response *response;

        response = MHD_create_response_from_buffer(reply->n_body, reply->body, MHD_RESPMEM_MUST_FREE);
        if (response)
                reply->body = NULL;
        return queue(mhd, reply, response);
}

static enum MHD_Result queue_error(struct MHD_Connection *mhd, int status, const char *code,
        const char *message, unsigned retry_after_s) {
        Reply reply = {};
        enum MHD_Result r;

        if (reply_error(&reply, status, code, NULL, "%s", message) < 0)
                return MHD_NO;
        reply.retry_after_s = retry_after_s;
        r = queue_body(mhd, &reply);
        reply_deinit(&reply);
        return r;
}

static enum MHD_Result queue_wrong_method(struct MHD_Connection *mhd, const char *path) {
        Reply reply = {};
        enum MHD_Result r;

        if (reply_error(&reply, 405, "method-not-allowed", NULL, "%s is only to be read", path) < 0)
                return MHD_NO;
        reply.allow = "GET, HEAD";
        r = queue_body(mhd, &reply);
        reply_deinit(&reply);
        return r;
}

static enum MHD_Result queue_stream_error(struct MHD_Connection *mhd, int r) {
        if (r == -EBUSY)
                return queue_error(mhd, 503, "busy", "another expensive query is being answered", 1);
        if (r == -ETIME)
                return queue_error(mhd, 503, "timeout",
                        "the query took too long: ask for a shorter window or a coarser step", 1);
        if (r == -ENOMEM)
                return queue_error(mhd, 503, "memory", "out of memory", 5);
        return queue_error(mhd, 503, "store", strerror(-r), 5);
}

static enum MHD_Result queue_reply(Http *h, struct MHD_Connection *mhd, Connection *c, Reply *reply) {
        struct MHD_Response *response = NULL;
        ReplyStream *stream = TAKE_PTR(reply->stream);
        int r;

        if (!stream)
                return queue_body(mhd, reply);
        r = stream_begin(h, c, stream, &response, &reply->body, &reply->n_body);
        if (r < 0)
                return queue_stream_error(mhd, r);
        return r == 0 ? queue_body(mhd, reply) : queue(mhd, reply, response);
}

static enum MHD_Result queue_static(
        struct MHD_Connection *mhd, unsigned status, const DashboardFile *f, size_t n_body) {
        /* the bytes are the binary's own: however slowly somebody reads them, nothing is kept for him */
        struct MHD_Response *response =
                MHD_create_response_from_buffer(n_body, (void *) f->body, MHD_RESPMEM_PERSISTENT);
        enum MHD_Result r;

        if (!response)
                return MHD_NO;
        add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, f->content_type);
        add_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache"); /* keep it, but ask */
        add_header(response, MHD_HTTP_HEADER_ETAG, f->etag);
        add_header(response, "Content-Security-Policy", DASHBOARD_POLICY);
        add_header(response, "Referrer-Policy", "no-referrer");
        add_header(response, "X-Content-Type-Options", "nosniff");
        r = MHD_queue_response(mhd, status, response);
        MHD_destroy_response(response);
        return r;
}

/* A file of the dashboard. A query string means nothing to it. */
static enum MHD_Result answer_file(struct MHD_Connection *mhd, const char *method, const DashboardFile *f) {
        const char *known;

        if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
                return queue_wrong_method(mhd, f->path);
        known = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_IF_NONE_MATCH);
        /* A list of quoted tags; ours, quotes and all, occurs in it only as itself. */
        if (known && (strcmp(known, "*") == 0 || strstr(known, f->etag)))
                return queue_static(mhd, MHD_HTTP_NOT_MODIFIED, f, 0);
        return queue_static(mhd, MHD_HTTP_OK, f, f->n_body);
}

/*
 * Any page in the world may have a browser send requests to its owner's ports, and so through a bridge of his to the
 * unix socket: what the browser says another site sent is not his, and writes nothing.
 */
static bool from_another_site(struct MHD_Connection *mhd) {
        const char *site = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Sec-Fetch-Site");

        return site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0;
}

static enum MHD_Result answer(
        Http *h, struct MHD_Connection *mhd, const char *url, const char *method, Exchange *x) {
        QueryParam params[API_PARAMS_MAX];
        Request q = {
                .method = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0 ? MHD_HTTP_METHOD_GET : method,
                .path = url,
                .params = params,
                .accept = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT),
                .body = x->body,
                .n_body = x->n_body,
                .local = x->connection->local && !from_another_site(mhd),
        };
        const DashboardFile *file = dashboard_find(url);
        enum MHD_Result result;
        Reply reply = {};
        int r;

        h->figures.requests++;
        if (file)
                return answer_file(mhd, method, file);
        r = x->query ? route_parse_query_string(x->query, params, API_PARAMS_MAX, &q.n_params) : 0;
        if (r < 0)
                return queue_error(mhd, 400, "bad-query",
                        r == -E2BIG ? "too many parameters" : "the query string has a malformed escape", 0);
        r = route_handle(h->service, &q, &reply);
        result = r < 0 ? queue_stream_error(mhd, r) : queue_reply(h, mhd, x->connection, &reply);
        reply_deinit(&reply);
        return result;
}

static enum MHD_Result begin(Http *h, struct MHD_Connection *mhd, Exchange *x) {
        const char *length =
                MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
        uint64_t n;

        x->began = true;
        connection_set_phase(h, x->connection, CONNECTION_BUSY);
        if (!length)
                return MHD_YES;
        if (num_parse_u64(length, &n) < 0)
                return queue_error(mhd, 400, "bad-length", "Content-Length is no number", 0);
        /* A client that is still sending sees a reset instead of the answer: what is little is read to its
         * end. */
        if (n > BODY_DISCARD_MAX)
                return queue_error(mhd, 413, "too-large", "the body is larger than 64 KiB", 0);
        return MHD_YES;
}

static int take_upload(Exchange *x, const char *upload, size_t n) {
        char *p;

        if (x->too_large || n > API_BODY_MAX - x->n_body) {
                x->too_large = true;
                return 0;
        }
        p = realloc(x->body, x->n_body + n + 1);
        if (!p)
                return -ENOMEM;
        x->body = p;
        memcpy(p + x->n_body, upload, n);
        x->n_body += n;
        p[x->n_body] = '\0';
        return 0;
}

enum MHD_Result request_handle(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
        const char *version, const char *upload, size_t *n_upload, void **request) {
        Http *h = cls;
        Exchange *x = *request;

        if (!x)
                return MHD_NO;
        if (!x->began)
                return begin(h, mhd, x);
        if (*n_upload > 0) {
                x->connection->progress_usec = http_now();
                if (take_upload(x, upload, *n_upload) < 0)
                        return MHD_NO;
                *n_upload = 0;
                return MHD_YES;
        }
        if (x->too_large)
                return queue_error(mhd, 413, "too-large", "the body is larger than 64 KiB", 0);
        return answer(h, mhd, url, method, x);
}
