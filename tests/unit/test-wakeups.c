/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What idletrace counts, on its whole way: snapshot, catalogue, store, query and /metrics carry causes of wakeups and
 * lengths of sleeps; a machine that only halts has no breaks, which is null with a reason everywhere and 0 nowhere.
 */

#include "tests/unit/test.h"

#include <math.h>

#include <jansson.h>

#include "cstated/api.h"
#include "cstated/timespan.h"
#include "tests/unit/machine-fixture.h"
#include "tests/unit/world.h"

#define BASE_US (1700000040ULL * USEC_PER_SEC)
#define C6 3

static Machine *traced_machine(bool halts) {
        Machine *m = fixture_machine(2, 2, 1); /* CPUs 0, 1 in package 0; 2, 3 in package 1 */

        if (halts) {
                m->idle_driver[0] = '\0';
                m->idle_sets[0] = (IdleSet){ .n_states = 2 };
                m->idle_sets[0].states[0] = (IdleState){ .name = "POLL", .mwait_hint = -1, .is_poll = true };
                m->idle_sets[0].states[1] = (IdleState){ .name = "IDLE", .mwait_hint = -1 };
        }
        for (uint8_t k = 0; k < m->idle_sets[0].n_states; k++)
                for (unsigned f = FIELD_TRACE_ENTRIES; f <= FIELD_WAKE_IMMEDIATE; f++)
                        fixture_column(m, (FieldId) f, k);
        for (uint8_t b = 0; b < SLEEP_BUCKETS; b++)
                fixture_column(m, FIELD_SLEEP_HIST, b);
        fixture_column(m, FIELD_SLEEP_NS, 0);
        machine_finish_layout(m);
        return m;
}

/* CPU 2 has a storm: of 1000 sleeps a second 100 end by interrupt, 50 by store, 850 for nothing, 700 of these at once. */
static void storm(World *w) {
        world_set(w, FIELD_TRACE_ENTRIES, C6, 2, 1000);
        world_set(w, FIELD_TRACE_NS, C6, 2, 990000000);
        world_set(w, FIELD_WAKE_INTERRUPT, C6, 2, 100);
        world_set(w, FIELD_WAKE_STORE, C6, 2, 50);
        world_set(w, FIELD_WAKE_BREAK, C6, 2, 850);
        world_set(w, FIELD_WAKE_IMMEDIATE, C6, 2, 700);
        /* polling is neither a sleep nor a break */
        world_set(w, FIELD_TRACE_ENTRIES, 0, 2, 77);
        world_null(w, FIELD_WAKE_BREAK, 0, 2, REASON_NOT_APPLICABLE);
        world_set(w, FIELD_SLEEP_HIST, 12, 1, 700); /* up to 8.192 us */
        world_set(w, FIELD_SLEEP_HIST, 20, 1, 299);
        world_set(w, FIELD_SLEEP_HIST, 31, 1, 1);
        world_set(w, FIELD_SLEEP_NS, 0, 1, 990000000);
}

static void halt(World *w) {
        for (uint32_t i = 0; i < 4; i++) {
                world_set(w, FIELD_TRACE_ENTRIES, 1, i, 30);
                world_set(w, FIELD_WAKE_INTERRUPT, 1, i, 29);
                world_set(w, FIELD_WAKE_STORE, 1, i, 1);
                for (uint8_t k = 0; k < 2; k++) {
                        world_null(w, FIELD_WAKE_BREAK, k, i, REASON_NOT_APPLICABLE);
                        world_null(w, FIELD_WAKE_IMMEDIATE, k, i, REASON_NOT_APPLICABLE);
                }
        }
}

static void open_world(World *w, bool halts) {
        world_open(w, traced_machine(halts), BASE_US, USEC_PER_SEC);
        if (halts)
                halt(w);
        else
                storm(w);
        world_ticks(w, 10);
}

static char *get(World *w, const char *path, const char *query) {
        Service s;
        int status;
        char *text;

        world_service(w, &s);
        text = world_get(&s, "GET", path, query, NULL, true, &status, NULL);
        if (status != 200)
                fail_msg("%s?%s: %d %s", path, query ? query : "", status, text);
        return text;
}

static json_t *get_json(World *w, const char *path, const char *query) {
        _cleanup_free_ char *text = get(w, path, query);
        json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

        assert_non_null(o);
        return o;
}

static void assert_count(json_t *o, const char *key, int64_t v) {
        if (json_integer_value(json_object_get(o, key)) != v || !json_is_integer(json_object_get(o, key)))
                fail_msg("%s is %lld, not %lld", key, (long long) json_integer_value(json_object_get(o, key)),
                        (long long) v);
}

static void assert_null_because(json_t *o, const char *key, const char *reason) {
        const char *why = json_string_value(json_object_get(json_object_get(o, "reasons"), key));

        assert_true(json_is_null(json_object_get(o, key)));
        assert_non_null(why);
        assert_string_equal(why, reason);
}

/* "wakeups" of the system, package 1 and CPU 2 of the snapshot. */
static void entities(json_t *root, const char *key, json_t *ret[3]) {
        ret[0] = json_object_get(json_object_get(root, "system"), key);
        ret[1] = json_object_get(json_array_get(json_object_get(root, "packages"), 1), key);
        ret[2] = json_object_get(json_array_get(json_object_get(root, "cpus"), 2), key);
}

static void test_snapshot(void **state) {
        json_t *root, *of[3];
        World w;

        open_world(&w, false);
        root = get_json(&w, API_ROUTE_SNAPSHOT, NULL);
        entities(root, "wakeups", of);
        for (unsigned i = 0; i < 3; i++) {
                assert_count(of[i], "total", 1000);
                assert_count(of[i], "interrupt", 100);
                assert_count(of[i], "store", 50);
                assert_count(of[i], "break", 850);
                assert_count(of[i], "break_immediate", 700);
                assert_string_equal(json_string_value(json_object_get(of[i], "method")), "idletrace");
                assert_null(json_object_get(of[i], "reasons"));
        }
        json_decref(root);
        world_close(&w);
}

static void test_snapshot_of_sleeps(void **state) {
        json_t *root, *of[3];
        World w;

        open_world(&w, false);
        root = get_json(&w, API_ROUTE_SNAPSHOT, NULL);
        entities(root, "sleep_length", of);
        for (unsigned i = 0; i < 2; i++) {
                assert_int_equal(json_object_size(of[i]), SLEEP_BUCKETS);
                assert_count(of[i], "8.192", 700);
                assert_count(of[i], "2097.152", 299);
                assert_count(of[i], "+Inf", 1);
                assert_count(of[i], "0.002", 0);
        }
        assert_null(of[2]); /* a CPU has none of its own */
        json_decref(root);
        world_null(&w, FIELD_SLEEP_HIST, 5, 0, REASON_FIRST);
        world_null(&w, FIELD_SLEEP_HIST, 5, 1, REASON_FIRST);
        root = get_json(&w, API_ROUTE_SNAPSHOT, NULL);
        assert_null_because(json_object_get(root, "system"), "sleep_length", "first");
        json_decref(root);
        world_close(&w);
}

static json_t *row_of(json_t *root, const char *metric, const char *state) {
        json_t *row, *found = NULL;
        size_t i;

        json_array_foreach(json_object_get(root, "rows"), i, row) {
                const char *at = json_string_value(json_object_get(row, "state"));

                if (strcmp(json_string_value(json_object_get(row, "metric")), metric) != 0 ||
                        (state && (!at || strcmp(at, state) != 0)))
                        continue;
                assert_null(found);
                found = row;
        }
        if (!found)
                fail_msg("no row of %s %s", metric, state ? state : "");
        return found;
}

#define CAUSES "metric=wakeups,wakeups_interrupt,wakeups_store,wakeups_break,wakeups_break_immediate"

static void assert_rate(json_t *root, const char *metric, const char *state, double v) {
        json_t *mean = json_object_get(row_of(root, metric, state), "mean");

        assert_true(json_is_number(mean));
        if (fabs(json_number_value(mean) - v) > 1e-6 * v)
                fail_msg("%s is %g, not %g", metric, json_number_value(mean), v);
}

static void check_storm(World *w, const char *causes, const char *sleeps) {
        json_t *root = get_json(w, API_ROUTE_QUERY, causes);

        assert_rate(root, "wakeups", NULL, 1000);
        assert_rate(root, "wakeups_interrupt", NULL, 100);
        assert_rate(root, "wakeups_store", NULL, 50);
        assert_rate(root, "wakeups_break", NULL, 850);
        assert_rate(root, "wakeups_break_immediate", NULL, 700);
        json_decref(root);
        root = get_json(w, API_ROUTE_QUERY, sleeps);
        assert_int_equal(json_array_size(json_object_get(root, "rows")), SLEEP_BUCKETS);
        assert_rate(root, "sleep_length", "8.192", 700);
        assert_rate(root, "sleep_length", "2097.152", 299);
        assert_rate(root, "sleep_length", "+Inf", 1);
        json_decref(root);
}

static void test_store_and_query(void **state) {
        static const char *const windows[] = { "start=-10s", "start=-60s" };
        World w;

        open_world(&w, false);
        world_ticks(&w, 110); /* two whole minutes */
        for (size_t i = 0; i < ARRAY_SIZE(windows); i++) {
                _cleanup_free_ char *causes = NULL, *sleeps = NULL;

                assert_true(asprintf(&causes, CAUSES "&scope=package&package=1&points=1&%s", windows[i]) > 0);
                assert_true(asprintf(&sleeps, "metric=sleep_length&scope=system&points=1&%s", windows[i]) > 0);
                check_storm(&w, causes, sleeps);
        }
        world_close(&w);
}

/* The same from minutes, once the seconds have expired. */
static void test_rollups(void **state) {
        World w;

        world_open_expiring(&w, BASE_US, USEC_PER_SEC, 600 * USEC_PER_SEC, 86400 * USEC_PER_SEC);
        world_change(&w, traced_machine(false));
        storm(&w);
        world_ticks(&w, 1800);
        for (int i = 0; i < 1000 && store_maintain(w.store, w.time_us) > 0; i++)
                ;
        check_storm(&w, CAUSES "&scope=package&package=1&points=1&start=-28m&end=-20m",
                "metric=sleep_length&scope=system&points=1&start=-28m&end=-20m");
        world_close(&w);
}

static json_t *catalogue_entry(json_t *root, const char *id) {
        json_t *m;
        size_t i;

        json_array_foreach(json_object_get(root, "metrics"), i, m)
                if (strcmp(json_string_value(json_object_get(m, "id")), id) == 0)
                        return m;
        fail_msg("no %s in the catalogue", id);
        return NULL;
}

static void test_catalogue(void **state) {
        static const char *const ids[] = {
                "wakeups", "wakeups_interrupt", "wakeups_store", "wakeups_break", "wakeups_break_immediate",
                "sleep_length",
        };
        json_t *root;
        World w;

        open_world(&w, false);
        root = get_json(&w, API_ROUTE_CATALOGUE, NULL);
        for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
                json_t *m = catalogue_entry(root, ids[i]);

                assert_true(json_is_true(json_object_get(m, "available")));
                assert_true(json_is_null(json_object_get(m, "method"))); /* what it says, nothing that stands in */
                assert_string_equal(json_string_value(json_object_get(m, "by")), i == 5 ? "bucket" : "cause");
        }
        json_decref(root);
        world_close(&w);
}

static void assert_line(const char *text, const char *line) {
        if (!strstr(text, line))
                fail_msg("no %s in\n%s", line, text);
}

static void test_metrics(void **state) {
        _cleanup_free_ char *text = NULL;
        World w;

        open_world(&w, false);
        text = get(&w, API_ROUTE_METRICS, "scope=cpu");
        assert_line(text, "\ncstated_package_idle_wakeups_total{package=\"1\",cause=\"interrupt\"} 1000\n");
        assert_line(text, "\ncstated_package_idle_wakeups_total{package=\"1\",cause=\"store\"} 500\n");
        assert_line(text, "\ncstated_package_idle_wakeups_total{package=\"1\",cause=\"break\"} 8500\n");
        assert_line(text, "\ncstated_package_idle_break_wakeups_total{package=\"1\",method=\"trace\"} 8500\n");
        assert_line(text, "\ncstated_idle_wakeups_total{cpu=\"2\",cause=\"interrupt\"} 1000\n");
        assert_line(text, "\ncstated_idle_break_wakeups_total{cpu=\"2\",method=\"trace\"} 8500\n");
        /* buckets add up */
        assert_line(text, "\n# TYPE cstated_package_sleep_seconds histogram\n");
        assert_line(text, "\ncstated_package_sleep_seconds_bucket{package=\"1\",le=\"0.000004096\"} 0\n");
        assert_line(text, "\ncstated_package_sleep_seconds_bucket{package=\"1\",le=\"0.000008192\"} 7000\n");
        assert_line(text, "\ncstated_package_sleep_seconds_bucket{package=\"1\",le=\"0.002097152\"} 9990\n");
        assert_line(text, "\ncstated_package_sleep_seconds_bucket{package=\"1\",le=\"+Inf\"} 10000\n");
        assert_line(text, "\ncstated_package_sleep_seconds_count{package=\"1\"} 10000\n");
        assert_line(text, "\ncstated_package_sleep_seconds_sum{package=\"1\"} 9.9\n");
        world_close(&w);
}

/* perf counts entries and nothing else: a total with its label, no time, no causes. */
static void test_counted_by_perf(void **state) {
        _cleanup_free_ char *text = NULL;
        Machine *m = fixture_machine(1, 1, 1);
        json_t *root, *wakeups;
        World w;

        m->idle_sets[0] = (IdleSet){ .n_states = 2 };
        m->idle_sets[0].states[0] = (IdleState){ .name = "POLL", .mwait_hint = -1, .is_poll = true };
        m->idle_sets[0].states[1] = (IdleState){ .name = "IDLE", .mwait_hint = -1 };
        fixture_column(m, FIELD_IRQ, 0);
        for (uint8_t k = 0; k < 2; k++)
                fixture_column(m, FIELD_TRACE_ENTRIES, k);
        machine_finish_layout(m);
        world_open(&w, m, BASE_US, USEC_PER_SEC);
        world_set(&w, FIELD_TRACE_ENTRIES, 0, 0, 5);
        world_set(&w, FIELD_TRACE_ENTRIES, 1, 0, 120);
        world_null(&w, FIELD_BOUND_BREAK, 0, 0, REASON_NOT_APPLICABLE);
        world_ticks(&w, 10);
        root = get_json(&w, API_ROUTE_SNAPSHOT, NULL);
        wakeups = json_object_get(json_array_get(json_object_get(root, "cpus"), 0), "wakeups");
        assert_count(wakeups, "total", 120);
        assert_string_equal(json_string_value(json_object_get(wakeups, "total_method")), "perf");
        assert_string_equal(json_string_value(json_object_get(wakeups, "method")), "bound");
        assert_null_because(wakeups, "interrupt", "absent");
        assert_null_because(wakeups, "store", "absent");
        assert_null_because(wakeups, "break", "not-applicable");
        json_decref(root);
        root = get_json(&w, API_ROUTE_QUERY, "metric=wakeups&start=-10s&points=1");
        assert_rate(root, "wakeups", NULL, 120);
        assert_string_equal(json_string_value(json_object_get(row_of(root, "wakeups", NULL), "method")), "perf");
        json_decref(root);
        text = get(&w, API_ROUTE_METRICS, NULL);
        assert_line(text, "\ncstated_package_idle_wakeups_total{package=\"0\",cause=\"unknown\"} 1200\n");
        world_close(&w);
}

static void test_halting_machine(void **state) {
        _cleanup_free_ char *text = NULL;
        json_t *root, *of[3], *row;
        World w;

        open_world(&w, true);
        root = get_json(&w, API_ROUTE_SNAPSHOT, NULL);
        entities(root, "wakeups", of);
        for (unsigned i = 0; i < 3; i++) {
                int64_t n = i == 0 ? 4 : i == 1 ? 2 : 1;

                assert_count(of[i], "total", 30 * n);
                assert_count(of[i], "interrupt", 29 * n);
                assert_count(of[i], "store", n);
                assert_null_because(of[i], "break", "not-applicable");
                assert_null_because(of[i], "break_immediate", "not-applicable");
        }
        json_decref(root);
        root = get_json(&w, API_ROUTE_QUERY, CAUSES "&scope=cpu&cpu=2&start=-10s&points=1");
        assert_rate(root, "wakeups_interrupt", NULL, 29);
        row = row_of(root, "wakeups_break", NULL);
        assert_true(json_is_null(json_object_get(row, "mean")));
        assert_string_equal(json_string_value(json_object_get(row, "reason")), "not-applicable");
        json_decref(root);
        text = get(&w, API_ROUTE_METRICS, "scope=cpu");
        assert_line(text, "\ncstated_package_idle_wakeups_total{package=\"1\",cause=\"interrupt\"} 580\n");
        assert_null(strstr(text, "cause=\"break\""));
        assert_null(strstr(text, "\ncstated_package_idle_break_wakeups_total{"));
        assert_null(strstr(text, "\ncstated_idle_break_wakeups_total{"));
        world_close(&w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_snapshot),
                cmocka_unit_test(test_snapshot_of_sleeps),
                cmocka_unit_test(test_store_and_query),
                cmocka_unit_test(test_rollups),
                cmocka_unit_test(test_catalogue),
                cmocka_unit_test(test_metrics),
                cmocka_unit_test(test_halting_machine),
                cmocka_unit_test(test_counted_by_perf),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
