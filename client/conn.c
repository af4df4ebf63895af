/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One interface over three places. A transport fetches a path with parameters into a sink; everything else
 * (errors, parsing, waiting for the next interval) is the same for all.
 */

#include <errno.h>
#include <string.h>
#include <time.h>

#include "client/conn.h"
#include "client/transport.h"
#include "cstated/api.h"
#include "cstated/timespan.h"

#define BUSY_ATTEMPTS 5
#define BUSY_WAIT_USEC (500 * USEC_PER_MSEC)
#define LATE_USEC (10 * USEC_PER_MSEC) /* from the end of an interval to its being served */

struct Conn {
        Transport *transport;
        char *place; /* for messages */
        bool is_writable;
        uint64_t interval_usec; /* of --local */
};

Conn *conn_close(Conn *c) {
        if (!c)
                return NULL;
        if (c->transport)
                c->transport->ops->free(c->transport);
        free(c->place);
        free(c);
        return NULL;
}

static void sleep_usec(uint64_t usec) {
        struct timespec t = { .tv_sec = (time_t) (usec / USEC_PER_SEC),
                .tv_nsec = (long) (usec % USEC_PER_SEC * 1000) };

        while (nanosleep(&t, &t) < 0 && errno == EINTR)
                ;
}

static const char *conn_default_place(const Ctl *ctl) {
        const char *e;

        if (ctl->connect)
                return ctl->connect;
        e = getenv("CSTATED_CONNECT");
        return e && *e ? e : CSTATED_DEFAULT_SOCKET;
}

int conn_open(const Ctl *ctl, uint64_t interval_usec, Conn **ret) {
        _cleanup_(conn_closep) Conn *c = NULL;
        const char *place;
        int r;

        c = calloc(1, sizeof(*c));
        if (!c)
                return CTL_EXIT_FAILURE;
        place = ctl->db ? ctl->db : ctl->local ? "this machine" : conn_default_place(ctl);
        c->place = strdup(place);
        c->is_writable = !ctl->db && !ctl->local && place[0] == '/';
        c->interval_usec = interval_usec;
        if (!c->place)
                return CTL_EXIT_FAILURE;
        if (ctl->db)
                r = transport_db_new(ctl->db, &c->transport);
        else if (ctl->local)
                r = transport_local_new(interval_usec, &c->transport);
        else
                r = transport_http_new(place, &c->transport);
        if (r != CTL_EXIT_OK)
                return r;
        *ret = TAKE_PTR(c);
        return CTL_EXIT_OK;
}

/* The message of {"error":{"message","param"}}, or the body as it is. */
static void conn_print_error(long status, const char *body) {
        json_t *root = json_loads(body, 0, NULL), *error = json_object_get(root, "error");
        const char *message = json_string_value(json_object_get(error, "message"));
        const char *param = json_string_value(json_object_get(error, "param"));

        if (message && param && *param)
                ctl_error("%s: %s", param, message);
        else if (message)
                ctl_error("%s", message);
        else
                ctl_error("the daemon answered %ld: %.200s", status, body);
        json_decref(root);
}

/* The daemon answers one expensive query at a time and says so. */
static bool is_busy(const TransportSink *sink) {
        return sink->status == 503 && sink->body && strstr(sink->body, "\"busy\"");
}

static int conn_fetch(Conn *c, const TransportRequest *q, TransportSink *sink) {
        int r;

        for (unsigned attempt = 0;; attempt++) {
                r = c->transport->ops->request(c->transport, q, sink);
                if (r != CTL_EXIT_OK || !is_busy(sink) || attempt == BUSY_ATTEMPTS)
                        break;
                free(sink->body);
                *sink = (TransportSink){ .out = sink->out };
                sleep_usec(BUSY_WAIT_USEC);
        }
        if (r != CTL_EXIT_OK)
                return r;
        if (sink->status >= 200 && sink->status < 300)
                return CTL_EXIT_OK;
        conn_print_error(sink->status, sink->body ? sink->body : "");
        return sink->status == 400 || sink->status == 422 ? CTL_EXIT_USAGE :
                sink->status == 503 || sink->status == 404 ? CTL_EXIT_NO_DATA :
                                                             CTL_EXIT_FAILURE;
}

int conn_get(Conn *c, const char *path, const QueryParam *params, size_t n, char **ret_body, size_t *ret_n) {
        const TransportRequest q = { .method = "GET", .path = path, .params = params, .n = n };
        TransportSink sink = {};
        int r;

        r = conn_fetch(c, &q, &sink);
        if (r != CTL_EXIT_OK) {
                free(sink.body);
                return r;
        }
        if (!sink.body)
                sink.body = calloc(1, 1);
        *ret_body = sink.body;
        *ret_n = sink.n;
        return sink.body ? CTL_EXIT_OK : CTL_EXIT_FAILURE;
}

int conn_get_to(Conn *c, const char *path, const QueryParam *params, size_t n, FILE *out) {
        const TransportRequest q = { .method = "GET", .path = path, .params = params, .n = n };
        TransportSink sink = { .out = out };
        int r;

        r = conn_fetch(c, &q, &sink);
        free(sink.body);
        return r;
}

static int conn_parse(Conn *c, const char *path, const char *body, size_t n, json_t **ret) {
        json_error_t error;
        json_t *root = json_loadb(body, n, 0, &error);

        if (!root) {
                ctl_error("%s: the answer to %s is no JSON: %s", c->place, path, error.text);
                return CTL_EXIT_FAILURE;
        }
        *ret = root;
        return CTL_EXIT_OK;
}

int conn_post(Conn *c, const char *path, const json_t *body, json_t **ret) {
        _cleanup_free_ char *text = json_dumps(body, JSON_COMPACT);
        const TransportRequest q = { .method = "POST", .path = path, .body = text };
        TransportSink sink = {};
        int r;

        if (!text)
                return CTL_EXIT_FAILURE;
        r = conn_fetch(c, &q, &sink);
        if (r == CTL_EXIT_OK && ret)
                r = conn_parse(c, path, sink.body ? sink.body : "", sink.n, ret);
        free(sink.body);
        return r;
}

int conn_delete(Conn *c, const char *path, const QueryParam *params, size_t n) {
        const TransportRequest q = { .method = "DELETE", .path = path, .params = params, .n = n };
        TransportSink sink = {};
        int r;

        r = conn_fetch(c, &q, &sink);
        free(sink.body);
        return r;
}

bool conn_is_writable(const Conn *c) {
        return c->is_writable;
}

int conn_get_json(Conn *c, const char *path, const QueryParam *params, size_t n, json_t **ret) {
        _cleanup_free_ char *body = NULL;
        size_t size;
        int r;

        r = conn_get(c, path, params, n, &body, &size);
        return r == CTL_EXIT_OK ? conn_parse(c, path, body, size, ret) : r;
}

int conn_interval(Conn *c, uint64_t *ret_usec) {
        json_t *root;
        int r;

        r = conn_get_json(c, API_ROUTE_STATUS, NULL, 0, &root);
        if (r != CTL_EXIT_OK)
                return r;
        *ret_usec = (uint64_t) (json_number_value(json_object_get(root, "interval_ms")) *
                                (double) USEC_PER_MSEC);
        json_decref(root);
        return CTL_EXIT_OK;
}

static double snapshot_interval_ms(const json_t *snapshot) {
        double ms = json_number_value(json_object_get(snapshot, "interval_ms"));

        return MIN(MAX(ms, 20.0), 60000.0);
}

uint64_t conn_snapshot_due_usec(const json_t *snapshot) {
        uint64_t end = (uint64_t) json_integer_value(json_object_get(snapshot, "end"));

        return (end + (uint64_t) snapshot_interval_ms(snapshot)) * USEC_PER_MSEC + LATE_USEC;
}

/*
 * How long until the next interval is likely to be complete: until it is due, then in small steps. A daemon
 * with another clock than ours must neither be asked all the time nor never.
 */
static uint64_t snapshot_wait_usec(const json_t *snapshot, uint64_t after_ms, unsigned attempt) {
        uint64_t interval = (uint64_t) snapshot_interval_ms(snapshot) * USEC_PER_MSEC,
                 due = conn_snapshot_due_usec(snapshot);
        uint64_t end = (uint64_t) json_integer_value(json_object_get(snapshot, "end")) * USEC_PER_MSEC;
        uint64_t far = after_ms * USEC_PER_MSEC > end ? after_ms * USEC_PER_MSEC - end
                                                      : 0; /* more than one interval away */
        struct timespec t;
        uint64_t now;

        (void) clock_gettime(CLOCK_REALTIME, &t);
        now = (uint64_t) t.tv_sec * USEC_PER_SEC + (uint64_t) t.tv_nsec / NSEC_PER_USEC;
        if (attempt == 0 && far > interval)
                return far;
        if (attempt <= 1 && due > now)
                return MIN(due - now, interval);
        return MAX(interval / (attempt < 20 ? 50 : 4), LATE_USEC);
}

int conn_try_snapshot(Conn *c, uint64_t after_ms, json_t **ret) {
        json_t *root;
        int r;

        if (c->transport->ops->turn) {
                r = c->transport->ops->turn(c->transport);
                if (r != CTL_EXIT_OK)
                        return r;
        }
        r = conn_get_json(c, API_ROUTE_SNAPSHOT, NULL, 0, &root);
        if (r != CTL_EXIT_OK)
                return r;
        if (!c->transport->ops->turn &&
                (uint64_t) json_integer_value(json_object_get(root, "end")) <= after_ms) {
                json_decref(root);
                root = NULL;
        }
        *ret = root;
        return CTL_EXIT_OK;
}

/* --local: a baseline before the first interval, then one turn an interval. */
static int local_next_snapshot(Conn *c, bool is_first, json_t **ret) {
        int r;

        r = is_first ? c->transport->ops->turn(c->transport) : CTL_EXIT_OK;
        if (r != CTL_EXIT_OK)
                return r;
        sleep_usec(c->interval_usec);
        return conn_try_snapshot(c, 0, ret);
}

int conn_next_snapshot(Conn *c, uint64_t after_ms, json_t **ret) {
        int r;

        if (c->transport->ops->turn)
                return local_next_snapshot(c, after_ms == 0, ret);
        for (unsigned attempt = 0; attempt < 60; attempt++) {
                json_t *root;

                r = conn_get_json(c, API_ROUTE_SNAPSHOT, NULL, 0, &root);
                if (r != CTL_EXIT_OK)
                        return r;
                if ((uint64_t) json_integer_value(json_object_get(root, "end")) > after_ms) {
                        *ret = root;
                        return CTL_EXIT_OK;
                }
                sleep_usec(snapshot_wait_usec(root, after_ms, attempt));
                json_decref(root);
        }
        ctl_error("%s: no new interval came; \"cstatectl status\" may say why", c->place);
        return CTL_EXIT_NO_DATA;
}
