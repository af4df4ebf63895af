/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * /api/v1/summary: a window in one row a metric. Of a label with several windows the newest; compare is what
 * looks at all of them. The reply is one piece, computed in slices.
 */

#include <errno.h>
#include <math.h>
#include <string.h>

#include "cstated/timespan.h"

#include "api/window-json.h"

#define SLICE_DEADLINE_US (5 * USEC_PER_SEC)

typedef struct SummaryReply {
        ReplyStream stream;
        StoreReader *reader;
        QuerySpec spec;
        WindowSet set;
        Collect collect;
} SummaryReply;

static void write_summary_row(JsonWriter *j, const QueryRow *row) {
        jw_begin_object(j);
        write_row_identity(j, row);
        jw_key_u64(j, "n", row->count);
        jw_key_double(j, "mean", row->mean, 6);
        jw_key_double(j, "stddev", row->stddev, 6);
        jw_key_double(j, "min", row->min, 6);
        jw_key_double(j, "max", row->max, 6);
        if (row->is_count)
                jw_key_i64(j, "sum", row->sum_count);
        else if (row->metric->unit == UNIT_WATT)
                jw_key_double(j, "joules", row->sum, 10);
        else if (isfinite(row->sum))
                jw_key_double(j, "seconds", row->sum, 10);
        if (row->reason != REASON_NONE)
                jw_key_string(j, "reason", reason_name(row->reason));
        jw_end_object(j);
}

static void write_summary(JsonWriter *j, const SummaryReply *r) {
        const QueryInfo *info = &r->collect.info;

        jw_begin_object(j);
        jw_key_string(j, "label", r->set.label[0] ? r->set.label : NULL);
        jw_key_u64(j, "windows", r->set.n_all);
        jw_key(j, "start");
        write_time(j, r->set.list[0].start_us, r->spec.time_format);
        jw_key(j, "end");
        write_time(j, r->set.list[0].end_us, r->spec.time_format);
        jw_key_string(j, "tier", store_tier_name(info->tier));
        jw_key_u64(j, "samples", info->samples);
        jw_key_u64(j, "expected", info->expected);
        jw_key_u64(j, "gaps", info->gaps);
        jw_key(j, "rows");
        jw_begin_array(j);
        for (size_t i = 0; i < r->collect.n_rows; i++)
                write_summary_row(j, &r->collect.rows[i].row);
        jw_end_array(j);
        jw_end_object(j);
}

static int summary_next(ReplyStream *stream, JsonWriter *j) {
        SummaryReply *r = (SummaryReply *) stream;
        QueryError error;
        int code;

        store_reader_set_deadline(r->reader, SLICE_DEADLINE_US);
        code = collect_work(&r->collect, &error);
        if (code == QUERY_E_TOO_MANY || code == QUERY_E_NO_SUCH)
                return -E2BIG; /* too late for a reply that says so */
        if (code != 0)
                return code;
        write_summary(j, r);
        return jw_error(j);
}

static void summary_free(ReplyStream *stream) {
        SummaryReply *r = (SummaryReply *) stream;

        collect_deinit(&r->collect);
        query_spec_deinit(&r->spec);
        free(r);
}

/* The window: a label's newest, else start and end. 0; 1 with a reply; <0. */
static int summary_window(Service *s, const Request *q, SummaryReply *r, Reply *ret) {
        const char *label = request_param(q, "label");
        int code;

        r->set = (WindowSet){ .n = 1, .n_all = 1, .list = { { r->spec.start_us, r->spec.end_us } } };
        if (!label)
                return 0;
        code = window_set_label(s->reader, label, s->now_us(), &r->set);
        if (code == -ENOENT)
                code = reply_error(ret, 404, "no-label", "label", "no label '%.64s'", label);
        else if (code < 0)
                code = reply_store_error(ret, code, NULL);
        else
                return 0;
        return code < 0 ? code : 1;
}

static int summary_begin(Service *s, const Request *q, SummaryReply *r, Reply *ret) {
        QueryError error = {};
        int code;

        code = window_spec_parse(s, q, QUERY_FORM_SUMMARY, &r->spec, ret);
        if (code == 0)
                code = summary_window(s, q, r, ret);
        if (code != 0)
                return code;
        r->reader = s->reader;
        collect_init(&r->collect, s->reader, &r->spec, r->set.list[0].start_us, r->set.list[0].end_us);
        store_reader_set_deadline(s->reader, SLICE_DEADLINE_US);
        code = collect_work(&r->collect, &error);
        if (code == 2 || code == 0)
                return 0;
        return reply_store_error(ret, code, &error) ?: 1;
}

int route_summary(Service *s, const Request *q, Reply *ret) {
        SummaryReply *r = calloc(1, sizeof(*r));
        int code;

        if (!r)
                return -ENOMEM;
        r->stream = (ReplyStream){ .next = summary_next, .free = summary_free };
        code = summary_begin(s, q, r, ret);
        if (code != 0) {
                summary_free(&r->stream);
                return code < 0 ? code : 0;
        }
        *ret = (Reply){ .status = 200, .content_type = "application/json", .stream = &r->stream };
        return 0;
}
