/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One interface over three places. A transport fetches a path with parameters into a sink; everything else (errors,
 * parsing, waiting for the next interval) is the same for all.
 */

#include <errno.h>
#include <string.h>
#include <time.h>

#include "client/conn.h"
#include "client/transport.h"
#include "cstated/api.h"
#include "cstated/timespan.h"

struct Conn {
        Transport *transport;
        char *place; /* for messages */
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

static int conn_fetch(Conn *c, const char *path, const QueryParam *params, size_t n, TransportSink *sink) {
        int r;

        r = c->transport->ops->get(c->transport, path, params, n, sink);
        if (r != CTL_EXIT_OK)
                return r;
        if (sink->status >= 200 && sink->status < 300)
                return CTL_EXIT_OK;
        conn_print_error(sink->status, sink->body ? sink->body : "");
        return sink->status == 400 || sink->status == 422 ? CTL_EXIT_USAGE :
                sink->status == 503 ? CTL_EXIT_NO_DATA :
                                      CTL_EXIT_FAILURE;
}

int conn_get(Conn *c, const char *path, const QueryParam *params, size_t n, char **ret_body, size_t *ret_n) {
        TransportSink sink = {};
        int r;

        r = conn_fetch(c, path, params, n, &sink);
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
        TransportSink sink = { .out = out };
        int r;

        r = conn_fetch(c, path, params, n, &sink);
        free(sink.body);
        return r;
}

int conn_get_json(Conn *c, const char *path, const QueryParam *params, size_t n, json_t **ret) {
        _cleanup_free_ char *body = NULL;
        json_error_t error;
        size_t size;
        json_t *root;
        int r;

        r = conn_get(c, path, params, n, &body, &size);
        if (r != CTL_EXIT_OK)
                return r;
        root = json_loadb(body, size, 0, &error);
        if (!root) {
                ctl_error("%s: the answer to %s is no JSON: %s", c->place, path, error.text);
                return CTL_EXIT_FAILURE;
        }
        *ret = root;
        return CTL_EXIT_OK;
}

static void sleep_usec(uint64_t usec) {
        struct timespec t = { .tv_sec = (time_t) (usec / USEC_PER_SEC), .tv_nsec = (long) (usec % USEC_PER_SEC * 1000) };

        while (nanosleep(&t, &t) < 0 && errno == EINTR)
                ;
}

/* How long until the next interval is likely to be complete. */
static uint64_t snapshot_wait_usec(json_t *snapshot) {
        json_int_t interval_ms = json_integer_value(json_object_get(snapshot, "interval_ms"));

        if (interval_ms < 20)
                return 20 * USEC_PER_MSEC;
        return (uint64_t) MIN(interval_ms, (json_int_t) 60000) * USEC_PER_MSEC / 4;
}

int conn_next_snapshot(Conn *c, uint64_t after_ms, json_t **ret) {
        int r;

        if (c->transport->ops->next) {
                r = c->transport->ops->next(c->transport, after_ms == 0);
                if (r != CTL_EXIT_OK)
                        return r;
        }
        for (unsigned attempt = 0; attempt < 40; attempt++) {
                json_t *root;

                r = conn_get_json(c, API_ROUTE_SNAPSHOT, NULL, 0, &root);
                if (r != CTL_EXIT_OK)
                        return r;
                if (c->transport->ops->next || (uint64_t) json_integer_value(json_object_get(root, "end")) > after_ms) {
                        *ret = root;
                        return CTL_EXIT_OK;
                }
                sleep_usec(snapshot_wait_usec(root));
                json_decref(root);
        }
        ctl_error("%s: no new interval came; \"cstatectl status\" may say why", c->place);
        return CTL_EXIT_NO_DATA;
}
