/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The daemon's snapshot is one interval of its own. Who asks for tables every N seconds means N whole
 * seconds, as turbostat gives them; the store has them, and this gives them the form the columns are read
 * from.
 */

#include <math.h>
#include <string.h>

#include "client/text.h"
#include "client/window-snapshot.h"
#include "client/window.h"
#include "cstated/catalogue.h"

static const struct {
        const char *scope, *array;
} places[] = {
        { "system", NULL },
        { "package", "packages" },
        { "module", "modules" },
        { "core", "cores" },
        { "cpu", "cpus" },
};

static const char *const ids[] = { "package", "die", "module", "core", "cpu" };

/* metric id -> key within "idle" and "wakeups" */
static const struct {
        const char *metric, *group, *key;
} nested[] = {
        { "idle_time", "idle", "time" },         { "idle_usage", "idle", "usage" },
        { "idle_above", "idle", "above" },       { "idle_below", "idle", "below" },
        { "idle_rejected", "idle", "rejected" }, { "wakeups", "wakeups", "total" },
        { "wakeups_interrupt", "wakeups", "interrupt" }, { "wakeups_store", "wakeups", "store" },
        { "wakeups_break", "wakeups", "break" }, { "wakeups_break_immediate", "wakeups", "break_immediate" },
};

static json_t *child(json_t *o, const char *key) {
        json_t *c = json_object_get(o, key);

        if (!c && json_object_set_new(o, key, json_object()) == 0)
                c = json_object_get(o, key);
        return c;
}

/* The entity a row is about; made when it is the first of it. index: "cpu 0/3/5" -> entity. */
static json_t *row_place(json_t *root, json_t *index, const json_t *row) {
        const char *scope = text_of(row, "scope");
        char name[96];
        json_t *e;
        int n;

        if (strcmp(scope, "system") == 0)
                return child(root, "system");
        n = snprintf(name, sizeof(name), "%.8s", scope);
        for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
                n += snprintf(name + n, sizeof(name) - (size_t) n, "/%d",
                        (int) json_integer_value(json_object_get(row, ids[i])));
        e = json_object_get(index, name);
        if (e)
                return e;
        for (size_t i = 0; i < ARRAY_SIZE(places); i++)
                if (places[i].array && strcmp(places[i].scope, scope) == 0) {
                        e = json_object();
                        for (size_t k = 0; k < ARRAY_SIZE(ids); k++)
                                if (json_object_get(row, ids[k]))
                                        (void) json_object_set(e, ids[k], json_object_get(row, ids[k]));
                        (void) json_object_set(index, name, e);
                        if (json_array_append_new(json_object_get(root, places[i].array), e) == 0)
                                return json_object_get(index, name);
                }
        return NULL;
}

static void row_put(json_t *e, const json_t *row) {
        json_t *sum = json_object_get(row, "sum"),
               *value = json_is_integer(sum) ? sum : json_object_get(row, "mean");
        const char *metric = text_of(row, "metric"), *reason = text_of(row, "reason"), *state = text_of(row, "state");

        if (strncmp(metric, "self_", 5) == 0 && json_object_get(row, "seconds"))
                value = json_object_get(row, "seconds");
        if (!value)
                value = json_null();
        for (size_t i = 0; i < ARRAY_SIZE(nested); i++)
                if (strcmp(nested[i].metric, metric) == 0) {
                        e = child(e, nested[i].group);
                        if (strcmp(nested[i].group, "idle") == 0)
                                e = child(e, state);
                        else if (json_object_get(row, "method") && strcmp(nested[i].key, "break") == 0)
                                (void) json_object_set(e, "method", json_object_get(row, "method"));
                        metric = nested[i].key;
                }
        (void) json_object_set(e, metric, value);
        if (json_is_null(value) && reason[0])
                (void) json_object_set(child(e, "reasons"), metric, json_object_get(row, "reason"));
}

/* Seconds the samples really cover: a count over its rate. */
static double covered_ms(json_t *const *summaries, size_t n, json_int_t window_ms) {
        json_t *row;
        size_t k;

        for (size_t i = 0; i < n; i++)
                json_array_foreach(json_object_get(summaries[i], "rows"), k, row) {
                        double mean = json_number_value(json_object_get(row, "mean"));

                        if (strcmp(text_of(row, "metric"), "irq") == 0 &&
                                strcmp(text_of(row, "scope"), "system") == 0 && mean > 0)
                                return 1000 * (double) json_integer_value(json_object_get(row, "sum")) /
                                       mean;
                }
        return (double) window_ms;
}

json_t *window_snapshot_build(json_t *const *summaries, size_t n, json_int_t start_ms, json_int_t end_ms) {
        json_t *root = json_pack("{sIsIsf s{}s[]s[]s[]s[]s[]}", "start", start_ms, "end", end_ms,
                "interval_ms", covered_ms(summaries, n, end_ms - start_ms), "system", "packages", "modules",
                "cores", "cpus", "offline");
        json_t *index = json_object(), *row;
        size_t k;

        if (!root || !index) {
                json_decref(root);
                json_decref(index);
                return NULL;
        }
        for (size_t i = 0; i < n; i++)
                json_array_foreach(json_object_get(summaries[i], "rows"), k, row) {
                        json_t *e = row_place(root, index, row);

                        if (e)
                                row_put(e, row);
                }
        json_decref(index);
        return root;
}

static int fetch(Conn *c, const char *scope, json_int_t start_ms, json_int_t end_ms, json_t **ret) {
        char start[24], end[24];
        Params p = {};

        /* a tick belongs to the window it ends in; its time is cut to milliseconds */
        (void) snprintf(start, sizeof(start), "%" JSON_INTEGER_FORMAT, start_ms);
        (void) snprintf(end, sizeof(end), "%" JSON_INTEGER_FORMAT, end_ms + 1);
        (void) params_add(&p, "start", start);
        (void) params_add(&p, "end", end);
        (void) params_add(&p, "scope", scope);
        return conn_get_json(c, API_ROUTE_SUMMARY, p.params, p.n, ret);
}

int window_snapshot(Conn *c, json_int_t start_ms, json_int_t end_ms, json_t **ret) {
        json_t *summaries[ARRAY_SIZE(places)] = {}, *root = NULL;
        size_t n = 0;
        int r = CTL_EXIT_OK;

        for (; n < ARRAY_SIZE(places) && r == CTL_EXIT_OK; n++)
                r = fetch(c, places[n].scope, start_ms, end_ms, &summaries[n]);
        if (r == CTL_EXIT_OK)
                root = window_snapshot_build(summaries, n, start_ms, end_ms);
        for (size_t i = 0; i < n; i++)
                json_decref(summaries[i]);
        if (r == CTL_EXIT_OK && !root)
                r = CTL_EXIT_FAILURE;
        if (r == CTL_EXIT_OK)
                *ret = root;
        return r;
}
