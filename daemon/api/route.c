/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of routes, and what they share: parameters, errors, times. The table is the one place that knows
 * which methods a path has, so that 404 and 405 with Allow follow from it.
 */

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "cstated/api.h"
#include "cstated/timespan.h"

#include "api/route-private.h"

#define STATEMENT_DEADLINE_US (5 * USEC_PER_SEC) /* streams set theirs anew with each piece */

static const struct Route {
        const char *path, *method;
        int (*fn)(Service *s, const Request *q, Reply *ret);
} routes[] = {
        { API_ROUTE_STATUS, "GET", route_status },
        { API_ROUTE_CPU, "GET", route_cpu },
        { API_ROUTE_CATALOGUE, "GET", route_catalogue },
        { API_ROUTE_SNAPSHOT, "GET", route_snapshot },
        { API_ROUTE_QUERY, "GET", route_query },
        { API_ROUTE_SUMMARY, "GET", route_summary },
        { API_ROUTE_COMPARE, "GET", route_compare },
        { API_ROUTE_LABELS, "GET", route_labels_get },
        { API_ROUTE_LABELS, "POST", route_labels_post },
        { API_ROUTE_LABELS, "DELETE", route_labels_delete },
        { API_ROUTE_EVENTS, "GET", route_events },
        { API_ROUTE_METRICS, "GET", route_metrics },
};

void reply_deinit(Reply *r) {
        free(r->body);
        if (r->stream)
                r->stream->free(r->stream);
        *r = (Reply){};
}

int reply_json(Reply *ret, int status, JsonWriter *j) {
        size_t n;
        char *text = jw_take(j, &n);

        if (!text)
                return -ENOMEM;
        *ret = (Reply){ .status = status, .content_type = "application/json", .body = text, .n_body = n };
        return 0;
}

int reply_error(Reply *ret, int status, const char *code, const char *param, const char *format, ...) {
        JsonWriter j = JSON_WRITER_INIT;
        char message[512];
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(message, sizeof(message), format, ap);
        va_end(ap);
        jw_begin_object(&j);
        jw_key(&j, "error");
        jw_begin_object(&j);
        jw_key_string(&j, "code", code);
        jw_key_string(&j, "message", message);
        jw_key_string(&j, "param", param);
        jw_end_object(&j);
        jw_end_object(&j);
        return reply_json(ret, status, &j);
}

int reply_query_error(Reply *ret, const QueryError *e) {
        return reply_error(ret, 400, "bad-parameter", e->param, "%s", e->message);
}

int reply_store_error(Reply *ret, int code, const QueryError *e) {
        int r;

        if (code == -ENOMEM)
                return code;
        if (code > 0 || code == -EINVAL)
                return reply_query_error(ret, e);
        if (code == -ETIME)
                r = reply_error(
                        ret, 503, "too-slow", NULL, "this took too long; ask for less, or again later");
        else
                r = reply_error(ret, 503, "store", NULL, "the store cannot be read: %s",
                        strerror(code < 0 ? -code : EBADMSG));
        ret->retry_after_s = 5;
        return r;
}

int reply_no_reader(Service *s, Reply *ret) {
        int r;

        if (s->reader)
                return 0;
        r = reply_error(ret, 503, "no-history", NULL, "there is no store to ask");
        if (r < 0)
                return r;
        ret->retry_after_s = 5;
        return 1;
}

const char *request_param(const Request *q, const char *name) {
        for (size_t i = 0; i < q->n_params; i++)
                if (strcmp(q->params[i].key, name) == 0)
                        return q->params[i].value;
        return NULL;
}

int request_only(const Request *q, const char *const *names, Reply *ret) {
        for (size_t i = 0; i < q->n_params; i++) {
                const char *key = q->params[i].key;
                bool known = false;
                int r = 0;

                for (const char *const *n = names; *n && !known; n++)
                        known = strcmp(*n, key) == 0;
                if (!known)
                        r = reply_error(
                                ret, 400, "bad-parameter", key, "no such parameter here");
                for (size_t k = 0; k < i && known; k++)
                        if (strcmp(q->params[k].key, key) == 0) {
                                r = reply_error(ret, 400, "bad-parameter", key, "given twice");
                                known = false;
                        }
                if (!known)
                        return r < 0 ? r : 1;
        }
        return 0;
}

const Machine *service_machine(Service *s) {
        const Machine *m = NULL;

        if (s->sample)
                return s->sample->machine;
        if (s->machine)
                return s->machine;
        if (s->reader && store_reader_machine(s->reader, &m) < 0)
                return NULL;
        return m;
}

bool service_layout(Service *s, Layout *ret) {
        const Machine *m;

        if (s->sample) {
                *ret = *s->sample->layout;
                return true;
        }
        m = service_machine(s);
        if (m)
                sample_layout(m, ret);
        return m;
}

void write_time(JsonWriter *j, uint64_t time_us, QueryTimeFormat format) {
        char text[40];

        switch (format) {
        case QUERY_TIME_S:
                jw_double(j, (double) (time_us / USEC_PER_MSEC) / 1000, 14);
                break;
        case QUERY_TIME_ISO:
                timespan_format_instant(time_us, text, sizeof(text));
                jw_string(j, text);
                break;
        case QUERY_TIME_MS:
        default:
                jw_u64(j, time_us / USEC_PER_MSEC);
        }
}

static int hex_digit(char c) {
        return c >= '0' && c <= '9'   ? c - '0'
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                      : -1;
}

/* In place; -EINVAL for a malformed escape or an encoded NUL. */
static int decode(char *s) {
        char *to = s;

        for (; *s; s++) {
                if (*s == '%') {
                        int high = hex_digit(s[1]), low = high < 0 ? -1 : hex_digit(s[2]);

                        if (low < 0 || (high == 0 && low == 0))
                                return -EINVAL;
                        *to++ = (char) (high << 4 | low);
                        s += 2;
                } else
                        *to++ = *s == '+' ? ' ' : *s;
        }
        *to = '\0';
        return 0;
}

int route_parse_query_string(char *s, QueryParam *params, size_t max, size_t *ret_n) {
        size_t n = 0;

        while (*s) {
                size_t length = strcspn(s, "&");
                char *next = s + length + (s[length] == '&'), *value;

                s[length] = '\0';
                if (length > 0) {
                        if (n == max)
                                return -E2BIG;
                        value = s + strcspn(s, "=");
                        if (*value)
                                *value++ = '\0';
                        if (decode(s) < 0 || decode(value) < 0)
                                return -EINVAL;
                        params[n++] = (QueryParam){ .key = s, .value = value };
                }
                s = next;
        }
        *ret_n = n;
        return 0;
}

/* HEAD is GET without its body, which the HTTP side leaves out. */
static bool method_is(const char *method, const char *asked) {
        return strcmp(method, asked) == 0 || (strcmp(asked, "HEAD") == 0 && strcmp(method, "GET") == 0);
}

static int wrong_method(const Request *q, bool get, bool post, bool delete, Reply *ret) {
        int r = reply_error(
                ret, 405, "method-not-allowed", NULL, "%.16s is not for %.64s", q->method, q->path);

        ret->allow = post && delete ? "GET, HEAD, POST, DELETE" : get ? "GET, HEAD" : "";
        return r;
}

int route_handle(Service *s, const Request *q, Reply *ret) {
        bool get = false, post = false, delete = false;
        Reply reply = {};
        int r;

        for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
                if (strcmp(routes[i].path, q->path) != 0)
                        continue;
                if (method_is(routes[i].method, q->method)) {
                        if (s->reader)
                                store_reader_set_deadline(s->reader, STATEMENT_DEADLINE_US);
                        r = routes[i].fn(s, q, &reply);
                        if (r < 0) {
                                reply_deinit(&reply);
                                return r;
                        }
                        *ret = reply;
                        return 0;
                }
                get |= strcmp(routes[i].method, "GET") == 0;
                post |= strcmp(routes[i].method, "POST") == 0;
                delete |= strcmp(routes[i].method, "DELETE") == 0;
        }
        if (get || post || delete)
                return wrong_method(q, get, post, delete, ret);
        return reply_error(ret, 404, "not-found", NULL, "no such route: %.128s", q->path);
}
