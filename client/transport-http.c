/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A daemon over its unix socket or TCP, by libcurl. */

#include <curl/curl.h>
#include <errno.h>
#include <string.h>

#include "client/transport.h"
#include "cstated/api.h"

typedef struct HttpTransport {
        Transport transport;
        CURL *curl;
        struct curl_slist *json; /* the header of a body */
        char *place;
} HttpTransport;

typedef struct Receiver {
        CURL *curl;
        TransportSink *sink;
        int error;
} Receiver;

int transport_sink_write(TransportSink *s, const char *data, size_t n) {
        char *p;

        if (s->out && s->status >= 200 && s->status < 300)
                return fwrite(data, 1, n, s->out) == n ? 0 : -EIO;
        p = realloc(s->body, s->n + n + 1);
        if (!p)
                return -ENOMEM;
        memcpy(p + s->n, data, n);
        s->body = p;
        s->n += n;
        p[s->n] = '\0';
        return 0;
}

static size_t http_receive(char *data, size_t size, size_t n, void *userdata) {
        Receiver *r = userdata;

        if (r->sink->status == 0)
                (void) curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &r->sink->status);
        r->error = transport_sink_write(r->sink, data, size * n);
        return r->error < 0 ? 0 : size * n;
}

static int http_append_params(CURL *curl, CURLU *url, const QueryParam *params, size_t n) {
        for (size_t i = 0; i < n; i++) {
                _cleanup_free_ char *pair = NULL;

                if (asprintf(&pair, "%s=%s", params[i].key, params[i].value) < 0)
                        return -ENOMEM;
                if (curl_url_set(url, CURLUPART_QUERY, pair, CURLU_APPENDQUERY | CURLU_URLENCODE) !=
                        CURLUE_OK)
                        return -EINVAL;
        }
        return 0;
}

static int http_set_url(HttpTransport *h, CURLU *url, const char *path, const QueryParam *params, size_t n) {
        _cleanup_free_ char *base = NULL;
        bool is_socket = h->place[0] == '/';

        if (asprintf(&base, "http://%s%s", is_socket ? "localhost" : h->place, path) < 0)
                return -ENOMEM;
        if (curl_url_set(url, CURLUPART_URL, base, 0) != CURLUE_OK)
                return -EINVAL;
        (void) curl_easy_setopt(h->curl, CURLOPT_UNIX_SOCKET_PATH, is_socket ? h->place : NULL);
        return http_append_params(h->curl, url, params, n);
}

static int http_explain(const HttpTransport *h, CURLcode code, const Receiver *r) {
        if (r->error == -EIO)
                return errno == EPIPE ? CTL_EXIT_OK : CTL_EXIT_FAILURE;
        if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST) {
                long error = 0;

                (void) curl_easy_getinfo(h->curl, CURLINFO_OS_ERRNO, &error);
                if (error == EACCES)
                        ctl_error("%s: permission denied; members of group " CSTATED_USER
                                  " may ask the daemon",
                                h->place);
                else
                        ctl_error("no daemon answers at %s%s%s; is cstated running? (--local samples "
                                  "without one)",
                                h->place, error ? ": " : "", error ? strerror((int) error) : "");
                return CTL_EXIT_NO_DAEMON;
        }
        ctl_error("%s: %s", h->place, curl_easy_strerror(code));
        return code == CURLE_OPERATION_TIMEDOUT ? CTL_EXIT_NO_DAEMON : CTL_EXIT_FAILURE;
}

/* Everything a request before this one may have set is set anew. */
static void http_set_method(HttpTransport *h, const TransportRequest *q) {
        bool post = strcmp(q->method, "POST") == 0;

        if (post) {
                (void) curl_easy_setopt(h->curl, CURLOPT_POSTFIELDSIZE, (long) strlen(q->body));
                (void) curl_easy_setopt(h->curl, CURLOPT_POSTFIELDS, q->body);
        } else
                (void) curl_easy_setopt(h->curl, CURLOPT_HTTPGET, 1L);
        (void) curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, post ? h->json : NULL);
        (void) curl_easy_setopt(
                h->curl, CURLOPT_CUSTOMREQUEST, strcmp(q->method, "DELETE") == 0 ? q->method : NULL);
}

static int http_request(Transport *t, const TransportRequest *q, TransportSink *sink) {
        HttpTransport *h = (HttpTransport *) t;
        Receiver receiver = { .curl = h->curl, .sink = sink };
        CURLU *url;
        CURLcode code;
        int r;

        url = curl_url();
        r = url ? http_set_url(h, url, q->path, q->params, q->n) : -ENOMEM;
        if (r < 0) {
                curl_url_cleanup(url);
                ctl_error("%s is neither a socket path nor HOST:PORT", h->place);
                return CTL_EXIT_USAGE;
        }
        http_set_method(h, q);
        (void) curl_easy_setopt(h->curl, CURLOPT_CURLU, url);
        (void) curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, http_receive);
        (void) curl_easy_setopt(h->curl, CURLOPT_WRITEDATA, &receiver);
        code = curl_easy_perform(h->curl);
        if (code == CURLE_OK)
                (void) curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &sink->status);
        curl_url_cleanup(url);
        return code == CURLE_OK ? CTL_EXIT_OK : http_explain(h, code, &receiver);
}

static void http_free(Transport *t) {
        HttpTransport *h = (HttpTransport *) t;

        if (h->curl)
                curl_easy_cleanup(h->curl);
        curl_slist_free_all(h->json);
        free(h->place);
        free(h);
}

int transport_http_new(const char *place, Transport **ret) {
        static const TransportOps ops = { .request = http_request, .free = http_free };
        HttpTransport *h;

        h = calloc(1, sizeof(*h));
        if (!h)
                return CTL_EXIT_FAILURE;
        h->transport.ops = &ops;
        h->place = strdup(place);
        h->curl = curl_easy_init();
        h->json = curl_slist_append(NULL, "Content-Type: application/json");
        if (!h->place || !h->curl || !h->json) {
                http_free(&h->transport);
                return CTL_EXIT_FAILURE;
        }
        (void) curl_easy_setopt(h->curl, CURLOPT_NOSIGNAL, 1L);
        (void) curl_easy_setopt(h->curl, CURLOPT_PROXY, "");
        (void) curl_easy_setopt(h->curl, CURLOPT_CONNECTTIMEOUT, 5L);
        (void) curl_easy_setopt(h->curl, CURLOPT_TIMEOUT, 120L);
        *ret = &h->transport;
        return CTL_EXIT_OK;
}
