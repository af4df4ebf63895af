/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the routes share. A handler fills *ret with a body, a stream or an error; -ENOMEM is its only
 * failure.
 */

#include "api/route.h"
#include "query/query.h"

int route_status(Service *s, const Request *q, Reply *ret);
int route_cpu(Service *s, const Request *q, Reply *ret);
int route_catalogue(Service *s, const Request *q, Reply *ret);
int route_snapshot(Service *s, const Request *q, Reply *ret);
int route_query(Service *s, const Request *q, Reply *ret);
int route_summary(Service *s, const Request *q, Reply *ret);
int route_compare(Service *s, const Request *q, Reply *ret);
int route_labels_get(Service *s, const Request *q, Reply *ret);
int route_labels_post(Service *s, const Request *q, Reply *ret);
int route_labels_delete(Service *s, const Request *q, Reply *ret);
int route_events(Service *s, const Request *q, Reply *ret);
int route_metrics(Service *s, const Request *q, Reply *ret);

/* Hands the writer's text over as a JSON body of that status. */
int reply_json(Reply *ret, int status, JsonWriter *j);
/* 400 of a refused parameter. */
int reply_query_error(Reply *ret, const QueryError *e);
/*
 * The reply to what the store or the query engine returned (<0 or a condition): 400, 503; never 500 for bad
 * input.
 */
int reply_store_error(Reply *ret, int code, const QueryError *e);
/* 503 where there is no history to ask; 0 where there is. */
int reply_no_reader(Service *s, Reply *ret);
/* The value of a parameter, NULL where it is not given. */
const char *request_param(const Request *q, const char *name);
/*
 * 0, or 1 with a 400 in *ret where a parameter is none of names (NULL-terminated) or is given twice;
 * -ENOMEM.
 */
int request_only(const Request *q, const char *const *names, Reply *ret);

/*
 * Layout of samples now: the sample's, the machine's or the store's newest; false where there is none yet.
 */
bool service_layout(Service *s, Layout *ret);
/* The machine now, or the store's newest; NULL. */
const Machine *service_machine(Service *s);

/* A time as asked for: ms and s are numbers, iso a string. */
void write_time(JsonWriter *j, uint64_t time_us, QueryTimeFormat format);
