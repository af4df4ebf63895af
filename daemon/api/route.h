/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * From a request's text to a reply's body; knows no MHD and no socket, so that cstatectl calls it in-process (--db,
 * --local) and sees the same JSON as over HTTP.
 */

#include "api/totals.h"
#include "base/json-writer.h"
#include "model/sample.h"
#include "query/query-spec.h"
#include "sampler/status.h"
#include "store/store.h"

/* What the routes may look at. The owner (daemon or client) keeps it current; all borrowed. */
typedef struct Service {
        const Sample *sample;         /* last complete interval, NULL before the second tick */
        const Machine *machine;       /* NULL before the first frame */
        const SamplerStatus *sampler; /* NULL: no sampler (--db) */
        Store *store;                 /* NULL: none (--local) or read-only */
        StoreReader *reader;          /* NULL: none */
        uint64_t start_us;            /* of the daemon */
        uint64_t interval_usec;
        uint64_t (*now_us)(void);
        const TickHeader *tick;       /* last, for self figures; NULL */
        const Totals *totals;         /* fed by the owner with every sample, for /metrics; NULL */
        uint64_t server_cpu_ns, server_rss_bytes;
        const char *notes[8];         /* "runs as uid 0 with empty capability sets" */
        size_t n_notes;
} Service;

typedef struct Request {
        const char *method; /* "GET" */
        const char *path;   /* "/api/v1/query", decoded */
        const QueryParam *params;
        size_t n_params;
        const char *accept; /* or NULL */
        const char *body;   /* POST */
        size_t n_body;
        bool local;         /* over the unix socket or in-process: labels may be written */
} Request;

/* A body that comes in pieces. */
typedef struct ReplyStream ReplyStream;
struct ReplyStream {
        /*
         * Appends the next piece to j (cleared by the caller). 1: more to come; 0: that was the last; 2: nothing
         * yet, call again; <0: broken off. Works at most ~20 ms.
         */
        int (*next)(ReplyStream *s, JsonWriter *j);
        void (*free)(ReplyStream *s);
};

typedef struct Reply {
        int status; /* HTTP */
        const char *content_type;
        char *body; /* malloc'd */
        size_t n_body;
        ReplyStream *stream; /* instead of a body */
        const char *allow;   /* 405 */
        unsigned retry_after_s; /* 503 */
        struct {
                const char *name;
                char value[32];
        } headers[4]; /* of a body that has no place to say it: CSV */
        size_t n_headers;
} Reply;

void reply_deinit(Reply *r);
/* Always fills *ret (errors become error replies). -ENOMEM only. */
int route_handle(Service *s, const Request *q, Reply *ret);
/* Splits "a=1&b=%20" in place into at most max parameters; -EINVAL malformed escape, -E2BIG too many. */
int route_parse_query_string(char *s, QueryParam *params, size_t max, size_t *ret_n);
/* {"error":{"code","message","param"}} with that status. */
int reply_error(Reply *ret, int status, const char *code, const char *param, const char *format, ...)
        _printf_(5, 6);
