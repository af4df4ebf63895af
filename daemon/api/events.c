/* SPDX-License-Identifier: GPL-2.0-or-later */
/* /api/v1/events: what happened to the machine and to us, newest first. */

#include <errno.h>
#include <string.h>

#include "cstated/num.h"

#include "api/route-private.h"

#define EVENTS_DEFAULT 1000
#define EVENTS_MAX     10000

typedef struct EventList {
        JsonWriter *j;
        QueryTimeFormat format;
        size_t n, limit;
} EventList;

static int take_event(void *userdata, const StoreEvent *e) {
        EventList *l = userdata;

        if (l->n++ == l->limit)
                return 0; /* one more was asked for, to know that there is */
        jw_begin_object(l->j);
        jw_key_u64(l->j, "id", e->id);
        jw_key(l->j, "time");
        write_time(l->j, e->time_us, l->format);
        jw_key_string(l->j, "kind", e->kind);
        if (e->cpu >= 0)
                jw_key_i64(l->j, "cpu", e->cpu);
        jw_key_string(l->j, "text", e->text);
        jw_end_object(l->j);
        return jw_error(l->j);
}

static int write_events(Service *s, const Request *q, const QuerySpec *spec, uint32_t limit, Reply *ret) {
        JsonWriter j = JSON_WRITER_INIT;
        EventList list = { .j = &j, .format = spec->time_format, .limit = limit };
        int r;

        jw_begin_object(&j);
        jw_key(&j, "start");
        write_time(&j, spec->start_us, spec->time_format);
        jw_key(&j, "end");
        write_time(&j, spec->end_us, spec->time_format);
        jw_key(&j, "events");
        jw_begin_array(&j);
        r = store_reader_events(s->reader, spec->start_us, spec->end_us, request_param(q, "kind"),
                (size_t) limit + 1, take_event, &list);
        if (r < 0) {
                jw_deinit(&j);
                return reply_store_error(ret, r, NULL);
        }
        jw_end_array(&j);
        jw_key_bool(&j, "truncated", list.n > list.limit);
        jw_end_object(&j);
        return reply_json(ret, 200, &j);
}

int route_events(Service *s, const Request *q, Reply *ret) {
        const char *limit_text = request_param(q, "limit");
        uint32_t limit = EVENTS_DEFAULT;
        QueryError error = {};
        QuerySpec spec;
        int r;

        r = query_spec_parse_form(QUERY_FORM_EVENTS, q->params, q->n_params, s->now_us(), &spec, &error);
        if (r < 0)
                return r == -EINVAL ? reply_query_error(ret, &error) : r;
        if (limit_text && (num_parse_u32(limit_text, &limit) < 0 || limit < 1 || limit > EVENTS_MAX))
                r = reply_error(
                            ret, 400, "bad-parameter", "limit", "a number from 1 to %d", EVENTS_MAX)
                            ?: 1;
        if (r == 0)
                r = reply_no_reader(s, ret);
        if (r == 0)
                r = write_events(s, q, &spec, limit, ret);
        query_spec_deinit(&spec);
        return r < 0 ? r : 0;
}
