/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Routes in process, over a made-up machine and a real store. */

#include "tests/unit/test.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include <jansson.h>

#include "cstated/api.h"
#include "cstated/timespan.h"
#include "tests/unit/machine-fixture.h"
#include "tests/unit/world.h"

#define BASE_US (1700000040ULL * USEC_PER_SEC)

static int setup(void **state) {
        World *w = calloc(1, sizeof(*w));

        world_open(w, NULL, BASE_US, USEC_PER_SEC);
        *state = w;
        return 0;
}

static int teardown(void **state) {
        world_close(*state);
        free(*state);
        return 0;
}

static json_t *get_json(World *w, const char *path, const char *query, int want_status) {
        json_error_t error;
        char type[64], *text;
        Service s;
        json_t *o;
        int status;

        world_service(w, &s);
        text = world_get(&s, "GET", path, query, NULL, true, &status, type);
        if (status != want_status)
                fail_msg("%s?%s: %d %s", path, query ? query : "", status, text);
        assert_string_equal(type, "application/json");
        o = json_loads(text, JSON_REJECT_DUPLICATES, &error);
        if (!o)
                fail_msg("%s?%s: %s in %s", path, query ? query : "", error.text, text);
        free(text);
        return o;
}

static char *get_text(World *w, const char *method, const char *path, const char *query, const char *body,
        bool local, int want_status) {
        Service s;
        char *text;
        int status;

        world_service(w, &s);
        text = world_get(&s, method, path, query, body, local, &status, NULL);
        if (status != want_status)
                fail_msg("%s %s?%s: %d %s", method, path, query ? query : "", status, text);
        return text;
}

static const char *str(json_t *o, const char *key) {
        return json_string_value(json_object_get(o, key));
}

static double num(json_t *o, const char *key) {
        json_t *v = json_object_get(o, key);

        return json_is_number(v) ? json_number_value(v) : NAN;
}

/* The row of that metric (and state). */
static json_t *find_row(json_t *root, const char *metric, const char *state) {
        json_t *row;
        size_t i;

        json_array_foreach(json_object_get(root, "rows"), i,
                row) if (strcmp(str(row, "metric"), metric) == 0 &&
                         (!state ||
                                 (str(row, "state") && strcmp(str(row, "state"), state) == 0))) return row;
        fail_msg("no row of %s", metric);
        return NULL;
}

static void assert_near(double a, double b) {
        if (!(fabs(a - b) <= 1e-4 * fabs(b) + 1e-9))
                fail_msg("%.9g is not %.9g", a, b);
}

static void test_no_such_thing(void **state) {
        World *w = *state;
        Reply reply = {};
        Service s;

        json_decref(get_json(w, "/api/v1/nothing", NULL, 404));
        json_decref(get_json(w, "/api/v1/query/", NULL, 404));
        free(get_text(w, "PUT", API_ROUTE_STATUS, NULL, NULL, true, 405));
        free(get_text(w, "POST", API_ROUTE_QUERY, NULL, NULL, true, 405));
        free(get_text(w, "HEAD", API_ROUTE_STATUS, NULL, NULL, true, 200));
        world_service(w, &s);
        assert_int_equal(
                route_handle(&s, &(Request){ .method = "DELETE", .path = API_ROUTE_QUERY }, &reply), 0);
        assert_string_equal(reply.allow, "GET, HEAD");
        reply_deinit(&reply);
        assert_int_equal(
                route_handle(&s, &(Request){ .method = "PATCH", .path = API_ROUTE_LABELS }, &reply), 0);
        assert_string_equal(reply.allow, "GET, HEAD, POST, DELETE");
        reply_deinit(&reply);
}

/* Every bad parameter is a 400 that names it, on every route; nothing is ever a 500. */
static void test_bad_parameters(void **state) {
        static const struct {
                const char *path, *query, *param;
        } cases[] = {
                { API_ROUTE_STATUS, "x=1", "x" },
                { API_ROUTE_CPU, "x=1", "x" },
                { API_ROUTE_CATALOGUE, "metric=busy", "metric" },
                { API_ROUTE_SNAPSHOT, "cpu=1", "cpu" },
                { API_ROUTE_QUERY, "", "metric" },
                { API_ROUTE_QUERY, "metric=busy&start=now&end=-1h", "start" },
                { API_ROUTE_QUERY, "metric=busy&start=9223372036854775808", "start" },
                { API_ROUTE_QUERY, "metric=busy&start=-5", "start" },
                { API_ROUTE_QUERY, "metric=busy&start=-1y&step=1s", "step" },
                { API_ROUTE_QUERY, "metric=busy&%00x=1", "" },
                { API_ROUTE_SUMMARY, "points=5", "points" },
                { API_ROUTE_COMPARE, "b=-5m..now", "a" },
                { API_ROUTE_COMPARE, "a=-5m..now", "b" },
                { API_ROUTE_COMPARE, "a=now..-5m&b=-5m..now", "a" },
                { API_ROUTE_EVENTS, "limit=0", "limit" },
                { API_ROUTE_EVENTS, "limit=1000000", "limit" },
                { API_ROUTE_EVENTS, "start=tomorrow", "start" },
                { API_ROUTE_LABELS, "nome=x", "nome" },
                { API_ROUTE_METRICS, "scope=universe", "scope" },
                { API_ROUTE_METRICS, "scope=cpu&scope=cpu", "scope" },
        };
        World *w = *state;

        world_ticks(w, 2);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                json_t *o, *error;

                if (strstr(cases[i].query, "%00")) {
                        char text[64];
                        QueryParam params[4];
                        size_t n;

                        (void) snprintf(text, sizeof(text), "%s", cases[i].query);
                        assert_int_equal(route_parse_query_string(text, params, 4, &n), -EINVAL);
                        continue;
                }
                o = get_json(w, cases[i].path, cases[i].query, 400);
                error = json_object_get(o, "error");
                assert_string_equal(str(error, "param"), cases[i].param);
                assert_non_null(str(error, "code"));
                assert_true(strlen(str(error, "message")) > 5);
                json_decref(o);
        }
}

static void test_query_string(void **state) {
        char text[] = "a=1&b=%20%2B+x&&c&=d&e==";
        QueryParam p[8];
        size_t n;

        assert_int_equal(route_parse_query_string(text, p, 8, &n), 0);
        assert_int_equal(n, 5);
        assert_string_equal(p[1].value, " + x");
        assert_string_equal(p[2].key, "c");
        assert_string_equal(p[2].value, "");
        assert_string_equal(p[3].key, "");
        assert_string_equal(p[4].value, "=");
        {
                char many[] = "a&b&c";

                assert_int_equal(route_parse_query_string(many, p, 2, &n), -E2BIG);
        }
        {
                char bad[] = "a=%4";

                assert_int_equal(route_parse_query_string(bad, p, 2, &n), -EINVAL);
        }
}

static bool any_contains(json_t *list, const char *text) {
        json_t *v;
        size_t i;

        json_array_foreach(list, i, v) if (strstr(json_string_value(v), text)) return true;
        return false;
}

/* Absent is fine and noted; denied is not fine; an erratum is the machine's problem, not ours. */
static void test_status(void **state) {
        World *w = *state;
        Service s;
        char *text;
        json_t *o;
        int status;

        world_ticks(w, 2);
        o = get_json(w, API_ROUTE_STATUS, NULL, 200);
        assert_string_equal(str(o, "health"), "degraded");
        assert_true(any_contains(json_object_get(o, "problems"), "msr is denied: kernel lockdown"));
        assert_true(any_contains(json_object_get(o, "notes"), "powercap is absent"));
        assert_true(any_contains(json_object_get(o, "notes"), "made up for a test"));
        assert_true(any_contains(json_object_get(o, "notes"), "wake policy lazy: local cannot be had: a test"));
        assert_int_equal(json_array_size(json_object_get(o, "sources")), 3);
        assert_near(num(o, "interval_ms"), 1000);
        assert_near(num(json_object_get(o, "self"), "cpu_seconds"), 0.004);
        assert_true(
                json_is_null(json_object_get(json_array_get(json_object_get(o, "sources"), 0), "errno")));
        json_decref(o);

        world_service(w, &s);
        w->status.n_sources = 1;
        w->machine->idents[0].model = 0x2f; /* Westmere-EX, and a kernel that does not know */
        w->machine->idents[0].has_clflush = true;
        w->machine->has_bugs = true;
        text = world_get(&s, "GET", API_ROUTE_STATUS, NULL, NULL, true, &status, NULL);
        o = json_loads(text, 0, NULL);
        assert_string_equal(str(o, "health"), "ok");
        assert_true(any_contains(json_object_get(o, "problems"), "clflush_monitor"));
        json_decref(o);
        free(text);
}

static uint64_t later(void) {
        return BASE_US + 100 * USEC_PER_SEC;
}

static void test_status_without_samples(void **state) {
        World *w = *state;
        Service s;
        char *text;
        json_t *o;
        int status;

        world_ticks(w, 1);
        world_service(w, &s);
        w->status.n_sources = 0;
        s.now_us = later;
        text = world_get(&s, "GET", API_ROUTE_STATUS, NULL, NULL, true, &status, NULL);
        o = json_loads(text, 0, NULL);
        assert_string_equal(str(o, "health"), "degraded");
        assert_true(any_contains(json_object_get(o, "problems"), "no sample for 99 s"));
        json_decref(o);
        free(text);
        /* nothing at all: no sample, no store, no sampler */
        s = (Service){ .now_us = later };
        for (size_t i = 0; i < 3; i++) {
                static const char *const paths[] = { API_ROUTE_STATUS, API_ROUTE_CATALOGUE,
                        API_ROUTE_METRICS };

                free(world_get(&s, "GET", paths[i], NULL, NULL, true, &status, NULL));
                assert_int_equal(status, 200);
        }
        for (size_t i = 0; i < 6; i++) {
                static const char *const paths[] = { API_ROUTE_SNAPSHOT, API_ROUTE_CPU, API_ROUTE_SUMMARY,
                        API_ROUTE_LABELS, API_ROUTE_EVENTS, API_ROUTE_QUERY };

                free(world_get(
                        &s, "GET", paths[i], i == 5 ? "metric=busy" : NULL, NULL, true, &status, NULL));
                assert_int_equal(status, 503);
        }
}

static void test_catalogue(void **state) {
        World *w = *state;
        bool busy = false, c7 = true;
        json_t *o, *m;
        size_t i;

        o = get_json(w, API_ROUTE_CATALOGUE, NULL, 200);
        assert_int_equal(json_array_size(json_object_get(o, "metrics")), metric_catalogue_n);
        json_array_foreach(json_object_get(o, "metrics"), i, m) {
                if (strcmp(str(m, "id"), "busy") == 0)
                        busy = json_is_true(json_object_get(m, "available"));
                if (strcmp(str(m, "id"), "c7") == 0)
                        c7 = json_is_true(json_object_get(m, "available"));
        }
        assert_true(busy);
        assert_false(c7);
        json_decref(o);
}

static void test_query_rows(void **state) {
        World *w = *state;
        json_t *o, *row;

        world_busy(w, 1, 50);
        world_null(w, FIELD_MPERF, 0, 2, REASON_ERROR);
        world_ticks(w, 3);
        o = get_json(w, API_ROUTE_QUERY, "metric=busy,irq&cpu=1-2&agg=mean,sum,count&start=-3s", 200);
        assert_int_equal(json_array_size(json_object_get(o, "rows")), 3 * 4);
        assert_string_equal(str(o, "tier"), "raw");
        assert_string_equal(str(json_object_get(o, "unit"), "busy"), "%");
        assert_near(num(o, "samples"), 3);
        assert_near(num(o, "expected"), 3);
        assert_near(num(o, "start"), (double) (BASE_US / 1000));
        assert_true(json_is_null(json_object_get(o, "step_ms")));
        row = json_array_get(json_object_get(o, "rows"), 0);
        assert_true(json_is_integer(json_object_get(row, "time")));
        assert_near(num(row, "time"), (double) (BASE_US / 1000 + 1000));
        assert_near(num(row, "cpu"), 1);
        assert_near(num(row, "mean"), 50);
        assert_null(json_object_get(row, "state"));
        row = json_array_get(json_object_get(o, "rows"), 1);
        assert_true(json_is_null(json_object_get(row, "mean")));
        assert_string_equal(str(row, "reason"), "error");
        json_decref(o);
        o = get_json(w, API_ROUTE_QUERY, "metric=busy&cpu=1&format=columns&start=-3s&time_format=iso", 200);
        row = json_array_get(json_object_get(o, "values"), 2);
        assert_string_equal(json_string_value(json_array_get(row, 0)), "2023-11-14T22:14:03.000Z");
        assert_int_equal(json_array_size(row), json_array_size(json_object_get(o, "columns")));
        json_decref(o);
        o = get_json(w, API_ROUTE_QUERY, "metric=busy&cpu=1&start=-3s&time_format=s", 200);
        assert_near(num(json_array_get(json_object_get(o, "rows"), 0), "time"), 1700000041);
        json_decref(o);
}

static void test_query_csv(void **state) {
        World *w = *state;
        char *text;

        world_busy(w, 1, 12.5);
        world_set(w, FIELD_IRQ, 0, 1, 7);
        world_ticks(w, 1);
        world_null(w, FIELD_MPERF, 0, 1, REASON_GAP);
        world_ticks(w, 1);
        text = get_text(w, "GET", API_ROUTE_QUERY,
                "metric=busy,irq&cpu=1&format=csv&agg=mean,sum,count&start=-2s", NULL, true, 200);
        assert_string_equal(text,
                "time,metric,scope,package,die,module,core,cpu,state,mean,sum,count,method,reason\n"
                "1700000041000,busy,cpu,0,,,1,1,,12.5,,1,,\n"
                "1700000041000,irq,cpu,0,,,1,1,,7,7,1,,\n"
                "1700000042000,busy,cpu,0,,,1,1,,,,0,,gap\n"
                "1700000042000,irq,cpu,0,,,1,1,,7,7,1,,\n");
        free(text);
}

static void test_summary(void **state) {
        World *w = *state;
        json_t *o, *row;

        world_set(w, FIELD_ENERGY_PKG, 0, 0, 16384 * 60);
        world_set(w, FIELD_ENERGY_PKG, 0, 1, 16384 * 40);
        world_ticks(w, 10);
        o = get_json(w, API_ROUTE_SUMMARY, "start=-10s", 200);
        row = find_row(o, "pkg_watts", NULL);
        assert_string_equal(str(row, "scope"), "system");
        assert_near(num(row, "mean"), 100);
        assert_near(num(row, "joules"), 1000);
        assert_near(num(row, "n"), 10);
        row = find_row(o, "idle_time", "C6");
        assert_near(num(row, "mean"), 90);
        json_decref(o);
        json_decref(get_json(w, API_ROUTE_SUMMARY, "label=never", 404));
}

/* The regression: C6 falls from 95 to 20 %, the package takes 50 W more. */
static void test_compare(void **state) {
        World *w = *state;
        char query[200];
        json_t *o, *row;

        for (unsigned phase = 0; phase < 2; phase++) {
                int64_t second = 2100000000 / 1024;

                for (uint32_t i = 0; i < 4; i++)
                        world_set(w, FIELD_C6, 0, i, second * (phase == 0 ? 95 : 20) / 100);
                world_set(w, FIELD_ENERGY_PKG, 0, 0, 16384 * (phase == 0 ? 60 : 110));
                for (uint32_t i = 0; i < 8; i++) {
                        world_set(w, FIELD_BOUND_BREAK, 0, i, phase == 0 ? 0 : 1000);
                        world_set(w, FIELD_IDLE_USAGE, 3, i, phase == 0 ? 10 : 1010);
                }
                world_ticks(w, 60);
        }
        (void) snprintf(query, sizeof(query), "a=%llu..%llu&b=%llu..%llu", BASE_US / 1000,
                BASE_US / 1000 + 60000, BASE_US / 1000 + 60000, BASE_US / 1000 + 120000);
        o = get_json(w, API_ROUTE_COMPARE, query, 200);
        row = find_row(o, "c6", NULL);
        assert_near(num(row, "change"), -75);
        assert_string_equal(str(row, "change_unit"), "pp");
        assert_near(num(json_object_get(row, "a"), "mean"), 95);
        assert_near(num(json_object_get(row, "a"), "n"), 60);
        row = find_row(o, "pkg_watts", NULL);
        assert_near(num(json_object_get(row, "b"), "mean") - num(json_object_get(row, "a"), "mean"), 50);
        assert_near(num(row, "change"), 100.0 * 50 / 60);
        assert_string_equal(str(row, "change_unit"), "%");
        row = find_row(o, "wakeups_break", NULL);
        assert_string_equal(str(row, "method"), "bound");
        assert_near(num(json_object_get(row, "b"), "mean"), 8000);
        assert_true(json_is_null(json_object_get(row, "change"))); /* from nothing */
        assert_true(json_is_true(json_object_get(json_object_get(o, "a"), "per_sample")));
        assert_int_equal(json_array_size(json_object_get(o, "warnings")), 0);
        json_decref(o);
}

/* A label of three windows: n is the number of runs, the spread that of their means. */
static void add_label(World *w, const char *name) {
        char body[128];

        (void) snprintf(body, sizeof(body), "{\"name\":\"%s\",\"start\":%llu,\"end\":%llu}", name,
                (unsigned long long) (w->time_us - 2 * USEC_PER_SEC) / 1000, (unsigned long long) w->time_us / 1000);
        free(get_text(w, "POST", API_ROUTE_LABELS, NULL, body, true, 201));
}

/* The newest window is of a small machine, an older one of a machine too wide: that is said before the first byte. */
static void test_compare_later_window_too_large(void **state) {
        World *w = *state;
        Machine *wide = fixture_machine(2, 500, 2);
        char *text;
        json_t *o;

        world_columns(wide);
        world_change(w, wide);
        world_ticks(w, 2);
        add_label(w, "wide");
        world_change(w, world_machine());
        world_ticks(w, 2);
        add_label(w, "wide");
        add_label(w, "small");
        text = get_text(w, "GET", API_ROUTE_COMPARE, "a=wide&b=small&scope=cpu", NULL, false, 400);
        assert_non_null(strstr(text, "ask for fewer metrics"));
        free(text);
        free(get_text(w, "GET", API_ROUTE_COMPARE, "a=small&b=wide&scope=cpu", NULL, false, 400));
        o = get_json(w, API_ROUTE_COMPARE, "a=wide&b=small&metric=irq&scope=package", 200);
        assert_int_equal(num(json_object_get(o, "a"), "windows"), 2);
        json_decref(o);
        /* a CPU that only one of the machines has */
        o = get_json(w, API_ROUTE_COMPARE, "a=small&b=wide&metric=irq&cpu=3", 200);
        json_decref(o);
}

static void test_compare_labels(void **state) {
        World *w = *state;
        json_t *o, *row;
        Machine *m;
        char *text;

        for (unsigned run = 0; run < 6; run++) {
                char body[128];

                if (run == 3) {
                        m = world_machine();
                        (void) strcpy(m->kernel, "6.2.0-test");
                        m->generation = 2;
                        world_change(w, m);
                }
                for (uint32_t i = 0; i < 8; i++)
                        world_set(w, FIELD_IRQ, 0, i, (run < 3 ? 100 : 200) + run % 3);
                world_ticks(w, 5);
                (void) snprintf(body, sizeof(body),
                        "{\"name\":\"%s\",\"start\":%llu,\"end\":%llu,\"meta\":{\"run\":%u}}",
                        run < 3 ? "old kernel" : "new",
                        (unsigned long long) (w->time_us - 5 * USEC_PER_SEC) / 1000,
                        (unsigned long long) w->time_us / 1000, run);
                free(get_text(w, "POST", API_ROUTE_LABELS, NULL, body, true, 201));
        }
        o = get_json(w, API_ROUTE_COMPARE, "a=old%20kernel&b=new&metric=irq", 200);
        row = find_row(o, "irq", NULL);
        assert_near(num(json_object_get(row, "a"), "n"), 3);
        assert_near(num(json_object_get(row, "a"), "mean"), 808);
        assert_near(num(json_object_get(row, "a"), "stddev"), 8);
        assert_near(num(json_object_get(row, "b"), "mean"), 1608);
        assert_near(num(row, "change"), 100.0 * 800 / 808);
        assert_false(json_is_true(json_object_get(json_object_get(o, "a"), "per_sample")));
        assert_true(any_contains(json_object_get(o, "warnings"), "kernel differs"));
        json_decref(o);
        json_decref(get_json(w, API_ROUTE_COMPARE, "a=never&b=new", 404));
        o = get_json(w, API_ROUTE_LABELS, "name=new", 200);
        assert_int_equal(json_array_size(json_object_get(o, "labels")), 3);
        row = json_array_get(json_object_get(o, "labels"), 0);
        assert_near(num(json_object_get(row, "meta"), "run"), 5);
        json_decref(o);
        o = get_json(w, API_ROUTE_SUMMARY, "label=new&metric=irq", 200);
        assert_near(num(o, "windows"), 3);
        json_decref(o);
        text = get_text(w, "DELETE", API_ROUTE_LABELS, "name=new", NULL, true, 200);
        free(text);
        free(get_text(w, "DELETE", API_ROUTE_LABELS, "name=new", NULL, true, 404));
        free(get_text(w, "DELETE", API_ROUTE_LABELS, NULL, NULL, true, 400));
}

static void test_label_refusals(void **state) {
        static const struct {
                const char *body;
                int status;
        } cases[] = {
                { "", 400 },
                { "{", 400 },
                { "[]", 422 },
                { "{}", 422 },
                { "{\"name\":\"\"}", 422 },
                { "{\"name\":5}", 422 },
                { "{\"name\":\"a/b\"}", 422 },
                { "{\"name\":\"a..b\"}", 422 },
                { "{\"name\":\"a\\nb\"}", 422 },
                { "{\"name\":\"x\",\"nome\":1}", 422 },
                { "{\"name\":\"x\",\"start\":-5}", 422 },
                { "{\"name\":\"x\",\"start\":\"soon\"}", 422 },
                { "{\"name\":\"x\",\"start\":20,\"end\":10}", 422 },
                { "{\"name\":\"x\",\"end\":1e300}", 422 },
                { "{\"name\":\"x\",\"meta\":[1]}", 422 },
                { "{\"name\":\"x\",\"name\":\"y\"}", 400 },
                { "{\"name\":\"0123456789012345678901234567890123456789012345678901234567890123456789\"}",
                        422 },
        };
        World *w = *state;
        json_t *o;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                free(get_text(w, "POST", API_ROUTE_LABELS, NULL, cases[i].body, true, cases[i].status));
        /* not over TCP */
        free(get_text(w, "POST", API_ROUTE_LABELS, NULL, "{\"name\":\"x\"}", false, 405));
        free(get_text(w, "DELETE", API_ROUTE_LABELS, "name=x", NULL, false, 405));
        o = get_json(w, API_ROUTE_LABELS, NULL, 200);
        assert_int_equal(json_array_size(json_object_get(o, "labels")), 0);
        json_decref(o);
        /* open: it has no end yet */
        free(get_text(
                w, "POST", API_ROUTE_LABELS, NULL, "{\"name\":\"x\",\"start\":\"now-1s\"}", true, 201));
        o = get_json(w, API_ROUTE_LABELS, NULL, 200);
        assert_true(json_is_null(json_object_get(json_array_get(json_object_get(o, "labels"), 0), "end")));
        json_decref(o);
}

static void test_events(void **state) {
        World *w = *state;
        json_t *o, *e;

        world_ticks(w, 5);
        assert_int_equal(
                store_event(w->store, w->time_us - 3 * USEC_PER_SEC, "hotplug", 5, "cpu5 is offline"), 0);
        assert_int_equal(
                store_event(w->store, w->time_us - 2 * USEC_PER_SEC, "gap", -1, "3 samples \"lost\""), 0);
        o = get_json(w, API_ROUTE_EVENTS, NULL, 200);
        assert_int_equal(json_array_size(json_object_get(o, "events")), 2);
        e = json_array_get(json_object_get(o, "events"), 0);
        assert_string_equal(str(e, "kind"), "gap");
        assert_string_equal(str(e, "text"), "3 samples \"lost\"");
        assert_null(json_object_get(e, "cpu"));
        json_decref(o);
        o = get_json(w, API_ROUTE_EVENTS, "kind=hotplug&limit=1", 200);
        assert_int_equal(json_array_size(json_object_get(o, "events")), 1);
        assert_near(num(json_array_get(json_object_get(o, "events"), 0), "cpu"), 5);
        assert_false(json_is_true(json_object_get(o, "truncated")));
        json_decref(o);
        o = get_json(w, API_ROUTE_EVENTS, "limit=1", 200);
        assert_true(json_is_true(json_object_get(o, "truncated")));
        json_decref(o);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_no_such_thing, setup, teardown),
                cmocka_unit_test_setup_teardown(test_bad_parameters, setup, teardown),
                cmocka_unit_test(test_query_string),
                cmocka_unit_test_setup_teardown(test_status, setup, teardown),
                cmocka_unit_test_setup_teardown(test_status_without_samples, setup, teardown),
                cmocka_unit_test_setup_teardown(test_catalogue, setup, teardown),
                cmocka_unit_test_setup_teardown(test_query_rows, setup, teardown),
                cmocka_unit_test_setup_teardown(test_query_csv, setup, teardown),
                cmocka_unit_test_setup_teardown(test_summary, setup, teardown),
                cmocka_unit_test_setup_teardown(test_compare, setup, teardown),
                cmocka_unit_test_setup_teardown(test_compare_labels, setup, teardown),
                cmocka_unit_test_setup_teardown(test_compare_later_window_too_large, setup, teardown),
                cmocka_unit_test_setup_teardown(test_label_refusals, setup, teardown),
                cmocka_unit_test_setup_teardown(test_events, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
