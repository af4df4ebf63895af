/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Where answers come from: a daemon over its socket (libcurl), a database file, or counters sampled in this
 * very process. All three give the same JSON, since the last two call the daemon's own routes.
 */

#include <jansson.h>
#include <stdio.h>

#include "client/ctl.h"
#include "query/query-spec.h"

typedef struct Conn Conn;

/* Opens; prints what is wrong. Returns a CTL_EXIT_* status, CTL_EXIT_OK with *ret. interval_usec: of
 * --local. */
int conn_open(const Ctl *ctl, uint64_t interval_usec, Conn **ret);
Conn *conn_close(Conn *c);
DEFINE_CLEANUP(Conn *, conn_close);

/* GET; prints errors. Body malloc'd and terminated. Returns CTL_EXIT_*. */
int conn_get(Conn *c, const char *path, const QueryParam *params, size_t n, char **ret_body, size_t *ret_n);
/* GET whose body goes to a stream as it comes. */
int conn_get_to(Conn *c, const char *path, const QueryParam *params, size_t n, FILE *out);
/* GET and parse; *ret is the caller's (json_decref). */
int conn_get_json(Conn *c, const char *path, const QueryParam *params, size_t n, json_t **ret);
/* POST of a JSON body; *ret (or NULL) is the answer. */
int conn_post(Conn *c, const char *path, const json_t *body, json_t **ret);
int conn_delete(Conn *c, const char *path, const QueryParam *params, size_t n);
/* True where labels may be written: a daemon's unix socket. */
bool conn_is_writable(const Conn *c);
/* The daemon's sampling interval, from its status. */
int conn_interval(Conn *c, uint64_t *ret_usec);
/*
 * The next complete interval after the one that ended at after_ms (0: the last one there is, at once): the
 * snapshot's JSON. Waits at most a few intervals.
 */
int conn_next_snapshot(Conn *c, uint64_t after_ms, json_t **ret);
/* What there is now, without waiting (--local: samples): *ret is NULL if nothing newer than after_ms came.
 */
int conn_try_snapshot(Conn *c, uint64_t after_ms, json_t **ret);
/* When the interval after this snapshot should be complete, CLOCK_REALTIME; a little late rather than early.
 */
uint64_t conn_snapshot_due_usec(const json_t *snapshot);
