/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * /api/v1/query: rows as they come, in three forms. What is known before (window, step, tier, units) stands
 * before the rows, what only the end tells (samples, gaps) after them. CSV is the rows alone.
 */

#include <errno.h>
#include <math.h>
#include <string.h>

#include "cstated/num.h"
#include "cstated/timespan.h"

#include "api/route-private.h"

#define PIECE_BYTES       (32 * 1024)
#define SLICE_DEADLINE_US (5 * USEC_PER_SEC)
#define DIGITS            6
#define SUM_DIGITS        10

typedef struct QueryReply {
        ReplyStream stream;
        StoreReader *reader;
        QuerySpec spec;
        Query *query;
        bool begun;
} QueryReply;

static const struct {
        QueryAgg agg;
        const char *name;
} agg_names[] = {
        { AGG_MEAN, "mean" },
        { AGG_MIN, "min" },
        { AGG_MAX, "max" },
        { AGG_STDDEV, "stddev" },
        { AGG_SUM, "sum" },
        { AGG_COUNT, "count" },
};

static void write_agg(JsonWriter *j, const QueryRow *row, QueryAgg agg) {
        switch (agg) {
        case AGG_MEAN:
                jw_double(j, row->mean, DIGITS);
                break;
        case AGG_MIN:
                jw_double(j, row->min, DIGITS);
                break;
        case AGG_MAX:
                jw_double(j, row->max, DIGITS);
                break;
        case AGG_STDDEV:
                jw_double(j, row->stddev, DIGITS);
                break;
        case AGG_SUM:
                if (row->is_count)
                        jw_i64(j, row->sum_count);
                else
                        jw_double(j, row->sum, SUM_DIGITS);
                break;
        case AGG_COUNT:
        default:
                jw_u64(j, row->count);
        }
}

static void write_id(JsonWriter *j, const char *key, int64_t id) {
        if (id >= 0)
                jw_key_i64(j, key, id);
}

static void write_row(JsonWriter *j, const QuerySpec *q, const QueryRow *row) {
        jw_begin_object(j);
        jw_key(j, "time");
        write_time(j, row->time_us, q->time_format);
        jw_key_string(j, "metric", row->metric->id);
        jw_key_string(j, "scope", scope_name(row->scope));
        write_id(j, "package", row->package);
        write_id(j, "die", row->die);
        write_id(j, "module", row->module);
        write_id(j, "core", row->core);
        write_id(j, "cpu", row->cpu);
        if (row->state)
                jw_key_string(j, "state", row->state);
        for (size_t i = 0; i < ARRAY_SIZE(agg_names); i++)
                if (q->aggs & agg_names[i].agg) {
                        jw_key(j, agg_names[i].name);
                        write_agg(j, row, agg_names[i].agg);
                }
        if (row->method)
                jw_key_string(j, "method", row->method);
        if (row->reason != REASON_NONE)
                jw_key_string(j, "reason", reason_name(row->reason));
        jw_end_object(j);
}

static void write_id_or_null(JsonWriter *j, int64_t id) {
        if (id >= 0)
                jw_i64(j, id);
        else
                jw_null(j);
}

/* The same row without its keys. */
static void write_values(JsonWriter *j, const QuerySpec *q, const QueryRow *row) {
        jw_begin_array(j);
        write_time(j, row->time_us, q->time_format);
        jw_string(j, row->metric->id);
        jw_string(j, scope_name(row->scope));
        write_id_or_null(j, row->package);
        write_id_or_null(j, row->die);
        write_id_or_null(j, row->module);
        write_id_or_null(j, row->core);
        write_id_or_null(j, row->cpu);
        jw_string(j, row->state);
        for (size_t i = 0; i < ARRAY_SIZE(agg_names); i++)
                if (q->aggs & agg_names[i].agg)
                        write_agg(j, row, agg_names[i].agg);
        jw_string(j, row->method);
        jw_string(j, reason_name(row->reason));
        jw_end_array(j);
}

static const char *const column_names[] = { "time", "metric", "scope", "package", "die", "module", "core",
        "cpu", "state" };

static void write_columns(JsonWriter *j, const QuerySpec *q) {
        jw_key(j, "columns");
        jw_begin_array(j);
        for (size_t i = 0; i < ARRAY_SIZE(column_names); i++)
                jw_string(j, column_names[i]);
        for (size_t i = 0; i < ARRAY_SIZE(agg_names); i++)
                if (q->aggs & agg_names[i].agg)
                        jw_string(j, agg_names[i].name);
        jw_string(j, "method");
        jw_string(j, "reason");
        jw_end_array(j);
}

static void csv_text(JsonWriter *j, const char *s) {
        jw_raw(j, s, strlen(s));
}

/* RFC 4180: quoted where a comma, quote or line break asks for it. */
static void csv_field(JsonWriter *j, const char *s) {
        if (!s)
                return;
        if (!s[strcspn(s, ",\"\r\n")]) {
                csv_text(j, s);
                return;
        }
        csv_text(j, "\"");
        for (; *s; s++) {
                if (*s == '"')
                        csv_text(j, "\"");
                jw_raw(j, s, 1);
        }
        csv_text(j, "\"");
}

static void csv_head(JsonWriter *j, const QuerySpec *q) {
        for (size_t i = 0; i < ARRAY_SIZE(column_names); i++)
                jw_printf(j, "%s%s", i > 0 ? "," : "", column_names[i]);
        for (size_t i = 0; i < ARRAY_SIZE(agg_names); i++)
                if (q->aggs & agg_names[i].agg)
                        jw_printf(j, ",%s", agg_names[i].name);
        csv_text(j, ",method,reason\n");
}

static void csv_double(JsonWriter *j, double v, int digits) {
        char text[NUM_DOUBLE_MAX];

        if (isfinite(v))
                jw_raw(j, text, num_format_double(v, digits, text));
}

static void csv_agg(JsonWriter *j, const QueryRow *row, QueryAgg agg) {
        const double values[] = { row->mean, row->min, row->max, row->stddev };

        if (agg == AGG_COUNT)
                jw_printf(j, "%llu", (unsigned long long) row->count);
        else if (agg == AGG_SUM && row->is_count)
                jw_printf(j, "%lld", (long long) row->sum_count);
        else if (agg == AGG_SUM)
                csv_double(j, row->sum, SUM_DIGITS);
        else
                csv_double(j, values[__builtin_ctz(agg)], DIGITS);
}

static void csv_time(JsonWriter *j, uint64_t time_us, QueryTimeFormat format) {
        char text[40];

        if (format == QUERY_TIME_ISO) {
                timespan_format_instant(time_us, text, sizeof(text));
                csv_text(j, text);
        } else if (format == QUERY_TIME_S)
                jw_printf(j, "%llu.%03u", (unsigned long long) (time_us / USEC_PER_SEC),
                        (unsigned) (time_us % USEC_PER_SEC / USEC_PER_MSEC));
        else
                jw_printf(j, "%llu", (unsigned long long) (time_us / USEC_PER_MSEC));
}

static void csv_row(JsonWriter *j, const QuerySpec *q, const QueryRow *row) {
        const int64_t ids[] = { row->package, row->die, row->module, row->core, row->cpu };

        csv_time(j, row->time_us, q->time_format);
        jw_printf(j, ",%s,%s", row->metric->id, scope_name(row->scope));
        for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
                csv_text(j, ",");
                if (ids[i] >= 0)
                        jw_printf(j, "%lld", (long long) ids[i]);
        }
        csv_text(j, ",");
        csv_field(j, row->state);
        for (size_t i = 0; i < ARRAY_SIZE(agg_names); i++)
                if (q->aggs & agg_names[i].agg) {
                        csv_text(j, ",");
                        csv_agg(j, row, agg_names[i].agg);
                }
        csv_text(j, ",");
        csv_field(j, row->method);
        csv_text(j, ",");
        csv_field(j, reason_name(row->reason));
        csv_text(j, "\n");
}

static void write_head(JsonWriter *j, const QueryReply *r) {
        const QuerySpec *q = &r->spec;
        QueryInfo info;

        query_info(r->query, &info);
        jw_begin_object(j);
        jw_key(j, "start");
        write_time(j, info.start_us, q->time_format);
        jw_key(j, "end");
        write_time(j, info.end_us, q->time_format);
        jw_key(j, "step_ms");
        if (info.step_us > 0)
                jw_double(j, (double) info.step_us / USEC_PER_MSEC, 15);
        else
                jw_null(j);
        jw_key_string(j, "tier", store_tier_name(info.tier));
        jw_key(j, "unit");
        jw_begin_object(j);
        for (size_t i = 0; i < q->n_metrics; i++)
                jw_key_string(j, q->metrics[i]->id, metric_unit_name(q->metrics[i]->unit));
        jw_end_object(j);
        if (q->format == QUERY_COLUMNS)
                write_columns(j, q);
        jw_key(j, q->format == QUERY_COLUMNS ? "values" : "rows");
        jw_begin_array(j);
}

static void write_tail(JsonWriter *j, const QueryReply *r) {
        QueryInfo info;

        query_info(r->query, &info);
        jw_end_array(j);
        jw_key_u64(j, "samples", info.samples);
        jw_key_u64(j, "expected", info.expected);
        jw_key_u64(j, "gaps", info.gaps);
        /* what no machine of the window could give, so that no rows are not taken for nothing measured */
        jw_key(j, "absent");
        jw_begin_array(j);
        for (size_t i = 0; i < r->spec.n_metrics && info.samples > 0; i++)
                if (!query_has_metric(r->query, r->spec.metrics[i]))
                        jw_string(j, r->spec.metrics[i]->id);
        jw_end_array(j);
        jw_end_object(j);
}

static int query_reply_next(ReplyStream *stream, JsonWriter *j) {
        QueryReply *r = (QueryReply *) stream;
        size_t before = j->n;
        bool csv = r->spec.format == QUERY_CSV;

        if (!r->begun && csv)
                csv_head(j, &r->spec);
        else if (!r->begun)
                write_head(j, r);
        r->begun = true;
        store_reader_set_deadline(r->reader, SLICE_DEADLINE_US);
        while (j->n - before < PIECE_BYTES) {
                const QueryRow *row;
                int code = query_next(r->query, &row);

                if (code < 0)
                        return code;
                if (code == 2)
                        return j->n > before ? 1 : 2;
                if (code == 0) {
                        if (!csv)
                                write_tail(j, r);
                        return jw_error(j);
                }
                if (csv)
                        csv_row(j, &r->spec, row);
                else if (r->spec.format == QUERY_COLUMNS)
                        write_values(j, &r->spec, row);
                else
                        write_row(j, &r->spec, row);
        }
        return jw_error(j) < 0 ? jw_error(j) : 1;
}

static void query_reply_free(ReplyStream *stream) {
        QueryReply *r = (QueryReply *) stream;

        (void) query_free(r->query);
        query_spec_deinit(&r->spec);
        free(r);
}

static void add_header(Reply *reply, const char *name, const char *value) {
        reply->headers[reply->n_headers].name = name;
        (void) snprintf(reply->headers[reply->n_headers].value, sizeof(reply->headers[0].value), "%.31s", value);
        reply->n_headers++;
}

/* CSV is rows only: what JSON's head says stands in the reply's. How many samples there were is known too late. */
static void add_csv_headers(const QueryReply *r, Reply *reply) {
        char text[NUM_DOUBLE_MAX + 32];
        QueryInfo info;

        query_info(r->query, &info);
        (void) snprintf(text, sizeof(text), "%llu", (unsigned long long) (info.start_us / USEC_PER_MSEC));
        add_header(reply, "X-Cstated-Start", text);
        (void) snprintf(text, sizeof(text), "%llu", (unsigned long long) (info.end_us / USEC_PER_MSEC));
        add_header(reply, "X-Cstated-End", text);
        if (info.step_us > 0) {
                text[num_format_double((double) info.step_us / USEC_PER_MSEC, 15, text)] = '\0';
                add_header(reply, "X-Cstated-Step-Ms", text);
        }
        add_header(reply, "X-Cstated-Tier", store_tier_name(info.tier));
}

int route_query(Service *s, const Request *q, Reply *ret) {
        QueryError error = {};
        QueryReply *r;
        int code;

        r = calloc(1, sizeof(*r));
        if (!r)
                return -ENOMEM;
        r->stream = (ReplyStream){ .next = query_reply_next, .free = query_reply_free };
        code = query_spec_parse(q->params, q->n_params, s->now_us(), &r->spec, &error);
        if (code < 0)
                code = code == -EINVAL ? reply_query_error(ret, &error) : code;
        else {
                code = reply_no_reader(s, ret);
                if (code == 0) {
                        r->reader = s->reader;
                        store_reader_set_deadline(s->reader, SLICE_DEADLINE_US);
                        code = query_new(s->reader, &r->spec, &r->query, &error);
                        if (code == 0) {
                                *ret = (Reply){
                                        .status = 200,
                                        .content_type = r->spec.format == QUERY_CSV
                                                                ? "text/csv; charset=utf-8"
                                                                : "application/json",
                                        .stream = &r->stream,
                                };
                                if (r->spec.format == QUERY_CSV)
                                        add_csv_headers(r, ret);
                                return 0;
                        }
                        code = reply_store_error(ret, code, &error);
                } else if (code > 0)
                        code = 0;
        }
        query_reply_free(&r->stream);
        return code;
}
