/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The writer of exposition text and the /metrics route. A reply is made family by family, so that no piece
 * takes long and a scrape sees each family of one moment.
 *
 * The dialects differ in little: 0.0.4 puts HELP and TYPE on the name with _total and knows no info type and
 * no UNIT; OpenMetrics ends in # EOF.
 */

#include <errno.h>
#include <math.h>
#include <string.h>

#include "cstated/num.h"

#include "api/openmetrics.h"
#include "api/route-private.h"

#define PIECE_BYTES  (32 * 1024)
#define VALUE_DIGITS 15

static void text(OpenMetrics *o, const char *s) {
        jw_raw(o->j, s, strlen(s));
}

static const char *const suffixes[] = {
        [FAMILY_COUNTER] = "_total",
        [FAMILY_GAUGE] = "",
        [FAMILY_INFO] = "_info",
        [FAMILY_HISTOGRAM] = "",
};

void om_family(OpenMetrics *o, const char *name, FamilyType type, const char *unit, const char *help) {
        o->name = name;
        o->type = type;
        o->unit = unit;
        o->help = help;
        o->is_new = true;
}

static void write_head(OpenMetrics *o) {
        static const char *const types[] = {
                [FAMILY_COUNTER] = "counter",
                [FAMILY_GAUGE] = "gauge",
                [FAMILY_INFO] = "info",
                [FAMILY_HISTOGRAM] = "histogram",
        };
        const char *tail = o->is_open ? "" : suffixes[o->type];
        const char *type = o->type == FAMILY_INFO && !o->is_open ? "gauge" : types[o->type];

        jw_printf(o->j, "# HELP %s%s %s\n", o->name, tail, o->help);
        jw_printf(o->j, "# TYPE %s%s %s\n", o->name, tail, type);
        if (o->unit && o->is_open)
                jw_printf(o->j, "# UNIT %s %s\n", o->name, o->unit);
}

void om_line(OpenMetrics *o) {
        om_line_of(o, suffixes[o->type]);
}

void om_line_of(OpenMetrics *o, const char *suffix) {
        if (o->is_new)
                write_head(o);
        o->is_new = false;
        text(o, o->name);
        text(o, suffix);
        o->n_labels = 0;
}

void om_label(OpenMetrics *o, const char *name, const char *value) {
        jw_printf(o->j, "%s%s=\"", o->n_labels++ > 0 ? "," : "{", name);
        for (; *value; value++) {
                if (*value == '\\' || *value == '"')
                        text(o, "\\");
                if (*value == '\n')
                        text(o, "\\n");
                else
                        jw_raw(o->j, value, 1);
        }
        text(o, "\"");
}

void om_label_id(OpenMetrics *o, const char *name, int64_t id) {
        if (id >= 0)
                jw_printf(o->j, "%s%s=\"%lld\"", o->n_labels++ > 0 ? "," : "{", name, (long long) id);
}

void om_value(OpenMetrics *o, double v) {
        char buf[NUM_DOUBLE_MAX];

        text(o, o->n_labels > 0 ? "} " : " ");
        if (isfinite(v))
                jw_raw(o->j, buf, num_format_double(v, VALUE_DIGITS, buf));
        else
                text(o, "NaN");
        text(o, "\n");
}

void om_count(OpenMetrics *o, int64_t v) {
        jw_printf(o->j, "%s%lld\n", o->n_labels > 0 ? "} " : " ", (long long) v);
}

bool om_accepted(const char *accept) {
        const char *p = accept ? strstr(accept, "application/openmetrics-text") : NULL, *q;
        size_t n;

        if (!p)
                return false;
        n = strcspn(p, ",");
        q = memmem(p, n, "q=0", 3);
        /* q=0 and q=0.000 refuse; q=0.5 does not */
        return !q || strspn(q + 3, ".0") < strcspn(q + 3, ",; ");
}

typedef struct MetricsReply {
        ReplyStream stream;
        Service *service;
        bool is_open, wide;
        size_t at;
} MetricsReply;

static int metrics_next(ReplyStream *stream, JsonWriter *j) {
        MetricsReply *r = (MetricsReply *) stream;
        OpenMetrics o = { .j = j, .is_open = r->is_open };
        size_t before = j->n;

        while (r->at < om_families_n && j->n - before < PIECE_BYTES)
                om_families[r->at++](&o, r->service, r->wide);
        if (r->at == om_families_n && r->is_open)
                jw_raw(j, "# EOF\n", 6);
        return jw_error(j) < 0 ? jw_error(j) : r->at < om_families_n;
}

static void metrics_free(ReplyStream *stream) {
        free(stream);
}

int route_metrics(Service *s, const Request *q, Reply *ret) {
        const char *scope = request_param(q, "scope");
        MetricsReply *m;
        int r = request_only(q, (const char *const[]){ "scope", NULL }, ret);

        if (r != 0)
                return r < 0 ? r : 0;
        if (scope && strcmp(scope, "cpu") != 0 && strcmp(scope, "package") != 0)
                return reply_error(
                        ret, 400, "bad-parameter", "scope", "cpu, or package (the default)");
        m = calloc(1, sizeof(*m));
        if (!m)
                return -ENOMEM;
        *m = (MetricsReply){
                .stream = { .next = metrics_next, .free = metrics_free },
                .service = s,
                .is_open = om_accepted(q->accept),
                .wide = scope && strcmp(scope, "cpu") == 0,
        };
        *ret = (Reply){
                .status = 200,
                .content_type = m->is_open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                           : "text/plain; version=0.0.4; charset=utf-8",
                .stream = &m->stream,
        };
        return 0;
}
