/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A label is a set of windows of the same name: each run of the same thing adds one. */

#include <errno.h>
#include <string.h>

#include "api/window-json.h"

typedef struct LabelCollector {
        WindowSet *set;
        uint64_t now_us;
} LabelCollector;

static int take_label(void *userdata, const StoreLabel *l) {
        LabelCollector *c = userdata;
        uint64_t end = l->end_us > 0 ? l->end_us : c->now_us;

        if (end <= l->start_us)
                return 0;
        c->set->n_all++;
        if (c->set->n < WINDOWS_MAX)
                c->set->list[c->set->n++] = (Window){ l->start_us, end };
        return 0;
}

int window_spec_parse(Service *s, const Request *q, QueryForm form, QuerySpec *spec, Reply *ret) {
        QueryError error = {};
        int code;

        code = query_spec_parse_form(form, q->params, q->n_params, s->now_us(), spec, &error);
        if (code == -EINVAL)
                return reply_query_error(ret, &error) ?: 1;
        if (code != 0)
                return code;
        if (!spec->has_scope) {
                spec->has_scope = true;
                spec->scope = SCOPE_SYSTEM;
        }
        return reply_no_reader(s, ret);
}

int window_set_label(StoreReader *r, const char *name, uint64_t now_us, WindowSet *ret) {
        WindowSet set = {};
        LabelCollector c = { &set, now_us };
        int code;

        if (strlen(name) >= sizeof(set.label))
                return -ENOENT;
        (void) snprintf(set.label, sizeof(set.label), "%s", name);
        code = store_reader_labels(r, name, take_label, &c);
        if (code < 0)
                return code;
        if (set.n == 0)
                return -ENOENT;
        *ret = set;
        return 0;
}

static void write_id(JsonWriter *j, const char *key, int64_t id) {
        if (id >= 0)
                jw_key_i64(j, key, id);
}

void write_row_identity(JsonWriter *j, const QueryRow *row) {
        jw_key_string(j, "metric", row->metric->id);
        jw_key_string(j, "scope", scope_name(row->scope));
        write_id(j, "package", row->package);
        write_id(j, "die", row->die);
        write_id(j, "module", row->module);
        write_id(j, "core", row->core);
        write_id(j, "cpu", row->cpu);
        if (row->state)
                jw_key_string(j, "state", row->state);
        jw_key_string(j, "unit", metric_unit_name(row->metric->unit));
        if (row->method)
                jw_key_string(j, "method", row->method);
}
