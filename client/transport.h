/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The three places of client/conn.h. A transport prints what keeps it from answering and returns CTL_EXIT_*.
 */

#include <stdio.h>

#include "client/ctl.h"
#include "query/query-spec.h"

/* Takes a reply: to `out` when given and the status is 2xx, else into body. */
typedef struct TransportSink {
        FILE *out;
        long status;
        char *body; /* terminated */
        size_t n;
} TransportSink;

/* 0, or -ENOMEM, -EIO when out cannot be written. */
int transport_sink_write(TransportSink *s, const char *data, size_t n);

typedef struct Transport Transport;

typedef struct TransportRequest {
        const char *method; /* "GET", "POST", "DELETE" */
        const char *path;
        const QueryParam *params;
        size_t n;
        const char *body; /* JSON, of a POST */
} TransportRequest;

typedef struct TransportOps {
        int (*request)(Transport *t, const TransportRequest *q, TransportSink *sink);
        /* Samples once, in this process; NULL where a daemon does. */
        int (*turn)(Transport *t);
        void (*free)(Transport *t);
} TransportOps;

struct Transport {
        const TransportOps *ops;
};

int transport_http_new(const char *place, Transport **ret);
int transport_db_new(const char *path, Transport **ret);
int transport_local_new(uint64_t interval_usec, Transport **ret);
