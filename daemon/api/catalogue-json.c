/* SPDX-License-Identifier: GPL-2.0-or-later */
/* /api/v1/catalogue: the table of metrics as JSON, with what this machine can give of it. */

#include <errno.h>

#include "model/metric.h"

#include "api/route-private.h"

static const char *instance_name(MetricInstance i) {
        static const char *const names[] = {
                [INSTANCE_STATE] = "state",
                [INSTANCE_BUCKET] = "bucket",
                [INSTANCE_CAUSE] = "cause",
        };

        return names[i];
}

static void write_metric(JsonWriter *j, const MetricSpec *m, const Layout *layout) {
        jw_begin_object(j);
        jw_key_string(j, "id", m->id);
        jw_key_string(j, "column", m->column);
        jw_key_string(j, "unit", metric_unit_name(m->unit));
        jw_key_string(j, "scope", scope_name(m->scope));
        jw_key_string(j, "kind", metric_kind_name(m->kind));
        jw_key_string(j, "category", metric_category_name(m->category));
        jw_key_string(j, "by", instance_name(m->instance));
        jw_key_string(j, "sources", m->sources);
        jw_key_string(j, "help", m->help);
        jw_key(j, "available");
        if (layout)
                jw_bool(j, metric_available(m, layout));
        else
                jw_null(j);
        jw_key_string(j, "method", layout ? metric_method(m, layout) : NULL);
        jw_end_object(j);
}

int route_catalogue(Service *s, const Request *q, Reply *ret) {
        JsonWriter j = JSON_WRITER_INIT;
        Layout layout;
        bool known;
        int r = request_only(q, (const char *const[]){ NULL }, ret);

        if (r != 0)
                return r < 0 ? r : 0;
        known = service_layout(s, &layout);
        jw_begin_object(&j);
        jw_key(&j, "metrics");
        jw_begin_array(&j);
        for (size_t i = 0; i < metric_catalogue_n; i++)
                write_metric(&j, &metric_catalogue[i], known ? &layout : NULL);
        jw_end_array(&j);
        jw_end_object(&j);
        return reply_json(ret, 200, &j);
}
