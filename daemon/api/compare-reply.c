/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * /api/v1/compare: two sides, each a window or a label's set of windows. With several windows a side's
 * figures are the mean and spread of the runs' means; with one they are over its ticks, and marked per-
 * sample.
 */

#include <errno.h>
#include <math.h>
#include <string.h>

#include "cstated/timespan.h"

#include "api/window-json.h"

#define SLICE_DEADLINE_US (5 * USEC_PER_SEC)

typedef struct Side {
        WindowSet set;
        Collect runs[WINDOWS_MAX];
        size_t at; /* run in work */
} Side;

typedef struct CompareReply {
        ReplyStream stream;
        StoreReader *reader;
        QuerySpec spec;
        Side a, b;
} CompareReply;

/* One side's figure of the series key; NULL rows count as nothing. */
static void side_figure(const Side *s, const QueryRow *key, CompareSide *ret) {
        Stats stats = STATS_INIT;
        Reason reason = REASON_ABSENT;

        for (size_t i = 0; i < s->set.n; i++) {
                const QueryRow *row = collect_find(&s->runs[i], key);

                if (!row) {
                        if (s->runs[i].info.samples == 0)
                                reason = REASON_GAP;
                        continue;
                }
                if (row->reason != REASON_NONE)
                        reason = row->reason;
                else if (s->set.n > 1)
                        stats_add(&stats, row->mean);
                if (s->set.n > 1)
                        continue;
                *ret = (CompareSide){
                        .mean = row->reason == REASON_NONE ? row->mean : NAN,
                        .stddev = row->count >= 3 ? row->stddev : NAN,
                        .stddev_percent = NAN,
                        .n = row->count,
                        .reason = row->reason,
                };
                if (row->count >= 3 && row->reason == REASON_NONE && fabs(row->mean) > 1e-300)
                        ret->stddev_percent = 100 * row->stddev / fabs(row->mean);
                return;
        }
        compare_side_from_stats(
                &stats, stats.n > 0 ? stats.mean : NAN, stats.n > 0 ? REASON_NONE : reason, ret);
}

static void write_side_figure(JsonWriter *j, const char *key, const CompareSide *s) {
        jw_key(j, key);
        jw_begin_object(j);
        jw_key_double(j, "mean", s->mean, 6);
        jw_key_double(j, "stddev", s->stddev, 6);
        jw_key_double(j, "stddev_percent", s->stddev_percent, 4);
        jw_key_u64(j, "n", s->n);
        if (s->reason != REASON_NONE)
                jw_key_string(j, "reason", reason_name(s->reason));
        jw_end_object(j);
}

static void write_compare_row(JsonWriter *j, const CompareReply *r, const QueryRow *key) {
        CompareSide a, b;
        CompareRow row;

        side_figure(&r->a, key, &a);
        side_figure(&r->b, key, &b);
        compare_row(key->metric, &a, &b, &row);
        jw_begin_object(j);
        write_row_identity(j, key);
        write_side_figure(j, "a", &row.a);
        write_side_figure(j, "b", &row.b);
        jw_key_double(j, "change", row.change, 6);
        jw_key_string(j, "change_unit", row.points ? "pp" : "%");
        jw_end_object(j);
}

/* Was the series among those of an earlier run (or of side a, for side b)? */
static bool row_is_known(const CompareReply *r, const Side *s, size_t run, const QueryRow *row) {
        for (size_t i = 0; s == &r->b && i < r->a.set.n; i++)
                if (collect_find(&r->a.runs[i], row))
                        return true;
        for (size_t i = 0; i < run; i++)
                if (collect_find(&s->runs[i], row))
                        return true;
        return false;
}

static void write_side_rows(JsonWriter *j, const CompareReply *r, const Side *s) {
        for (size_t i = 0; i < s->set.n; i++)
                for (size_t k = 0; k < s->runs[i].n_rows; k++)
                        if (!row_is_known(r, s, i, &s->runs[i].rows[k].row))
                                write_compare_row(j, r, &s->runs[i].rows[k].row);
}

static void write_side(JsonWriter *j, const char *key, const Side *s) {
        uint64_t samples = 0, expected = 0, gaps = 0, start = UINT64_MAX, end = 0;

        for (size_t i = 0; i < s->set.n; i++) {
                samples += s->runs[i].info.samples;
                expected += s->runs[i].info.expected;
                gaps += s->runs[i].info.gaps;
                start = MIN(start, s->set.list[i].start_us);
                end = MAX(end, s->set.list[i].end_us);
        }
        jw_key(j, key);
        jw_begin_object(j);
        jw_key_string(j, "label", s->set.label[0] ? s->set.label : NULL);
        jw_key_u64(j, "start", start / USEC_PER_MSEC);
        jw_key_u64(j, "end", end / USEC_PER_MSEC);
        jw_key_u64(j, "windows", s->set.n);
        jw_key_bool(j, "per_sample", s->set.n == 1);
        jw_key_string(j, "tier", store_tier_name(s->runs[0].info.tier));
        jw_key_u64(j, "samples", samples);
        jw_key_u64(j, "expected", expected);
        jw_key_u64(j, "gaps", gaps);
        jw_end_object(j);
}

static void write_warnings(JsonWriter *j, const CompareReply *r) {
        char warnings[COMPARE_WARNINGS_MAX][COMPARE_WARNING_SIZE];
        size_t n = compare_warnings(&r->a.runs[0].facts, &r->b.runs[0].facts, warnings);

        jw_key(j, "warnings");
        jw_begin_array(j);
        for (size_t i = 0; i < n; i++)
                jw_string(j, warnings[i]);
        if (r->a.set.n_all > r->a.set.n || r->b.set.n_all > r->b.set.n)
                jw_string(j, "a label has more windows than are compared; the newest 64 are");
        jw_end_array(j);
}

static void write_compare(JsonWriter *j, const CompareReply *r) {
        jw_begin_object(j);
        write_side(j, "a", &r->a);
        write_side(j, "b", &r->b);
        write_warnings(j, r);
        jw_key(j, "rows");
        jw_begin_array(j);
        write_side_rows(j, r, &r->a);
        write_side_rows(j, r, &r->b);
        jw_end_array(j);
        jw_end_object(j);
}

/* 0: all runs of the side are collected; 2: call again; <0. */
static int side_work(CompareReply *r, Side *s, QueryError *error) {
        Collect *c = &s->runs[s->at];
        int code;

        if (s->at == s->set.n)
                return 0;
        if (!c->reader)
                collect_init(c, r->reader, &r->spec, s->set.list[s->at].start_us, s->set.list[s->at].end_us);
        code = collect_work(c, error);
        if (code == 0)
                s->at++;
        return code == 0 ? 2 : code;
}

static int compare_work(CompareReply *r, QueryError *error) {
        int code;

        store_reader_set_deadline(r->reader, SLICE_DEADLINE_US);
        code = side_work(r, &r->a, error);
        return code == 0 ? side_work(r, &r->b, error) : code;
}

/* The machine of a later window lacks what is asked for: it has no rows, as where nothing was sampled. */
static int side_skip(Side *s) {
        s->runs[s->at++].is_done = true;
        return 2;
}

static int compare_next(ReplyStream *stream, JsonWriter *j) {
        CompareReply *r = (CompareReply *) stream;
        QueryError error;
        int code = compare_work(r, &error);

        if (code == QUERY_E_NO_SUCH)
                return side_skip(r->a.at < r->a.set.n ? &r->a : &r->b);
        if (code == QUERY_E_TOO_MANY)
                return -E2BIG; /* grew within the window: too late for a reply that says so */
        if (code != 0)
                return code;
        write_compare(j, r);
        return jw_error(j);
}

static void side_deinit(Side *s) {
        for (size_t i = 0; i < WINDOWS_MAX; i++)
                collect_deinit(&s->runs[i]);
}

static void compare_free(ReplyStream *stream) {
        CompareReply *r = (CompareReply *) stream;

        side_deinit(&r->a);
        side_deinit(&r->b);
        query_spec_deinit(&r->spec);
        free(r);
}

/* "START..END", or a label's name. 0; 1 with a reply; <0. */
static int side_parse(Service *s, const Request *q, const char *param, WindowSet *set, Reply *ret) {
        const char *text = request_param(q, param);
        QueryError error = {};
        int code;

        if (!text)
                return reply_error(ret, 400, "bad-parameter", param, "which window or label?")
                               ?: 1;
        code = window_set_label(s->reader, text, s->now_us(), set);
        if (code != -ENOENT)
                return code == 0 ? 0 : reply_store_error(ret, code, &error) ?: 1;
        if (!strstr(text, "..") && !strchr(text, '/'))
                return reply_error(ret, 404, "no-label", param,
                               "no label '%.64s', nor a window START..END", text)
                               ?: 1;
        *set = (WindowSet){ .n = 1, .n_all = 1 };
        code = query_window_parse(
                param, text, s->now_us(), &set->list[0].start_us, &set->list[0].end_us, &error);
        return code == 0 ? 0 : reply_query_error(ret, &error) ?: 1;
}

/* All windows before the first byte, since a machine that was wider once may stand behind any of them. */
static int check_windows(CompareReply *r, const WindowSet *set, QueryError *error) {
        int code = 0;

        for (size_t i = 0; i < set->n && code == 0; i++)
                code = collect_check(r->reader, &r->spec, set->list[i].start_us, set->list[i].end_us, error);
        return code;
}

static int compare_begin(Service *s, const Request *q, CompareReply *r, Reply *ret) {
        QueryError error = {};
        int code;

        code = window_spec_parse(s, q, QUERY_FORM_COMPARE, &r->spec, ret);
        if (code == 0)
                code = side_parse(s, q, "a", &r->a.set, ret);
        if (code == 0)
                code = side_parse(s, q, "b", &r->b.set, ret);
        if (code != 0)
                return code;
        r->reader = s->reader;
        code = check_windows(r, &r->a.set, &error);
        if (code == 0)
                code = check_windows(r, &r->b.set, &error);
        if (code != 0)
                return reply_store_error(ret, code, &error) ?: 1;
        /* the first step finds what the store refuses, while there can still be an error reply */
        code = compare_work(r, &error);
        if (code == 2 || code == 0)
                return 0;
        return reply_store_error(ret, code, &error) ?: 1;
}

int route_compare(Service *s, const Request *q, Reply *ret) {
        CompareReply *r = calloc(1, sizeof(*r));
        int code;

        if (!r)
                return -ENOMEM;
        r->stream = (ReplyStream){ .next = compare_next, .free = compare_free };
        code = compare_begin(s, q, r, ret);
        if (code != 0) {
                compare_free(&r->stream);
                return code < 0 ? code : 0;
        }
        *ret = (Reply){ .status = 200, .content_type = "application/json", .stream = &r->stream };
        return 0;
}
