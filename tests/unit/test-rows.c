/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "client/compare-print.h"
#include "client/rows.h"
#include "client/run-report.h"
#include "client/text.h"
#include "client/window.h"

static json_t *load(const char *text) {
        json_error_t e;
        json_t *root = json_loads(text, 0, &e);

        if (!root)
                fail_msg("%s at %d", e.text, e.position);
        return root;
}

static void check_name(const char *row_text, const char *name, const char *entity, const char *unit) {
        json_t *row = load(row_text);
        char buf[ROW_TEXT];

        row_name(row, buf);
        assert_string_equal(buf, name);
        row_entity(row, buf);
        assert_string_equal(buf, entity);
        assert_string_equal(row_unit(row), unit);
        json_decref(row);
}

static void test_names(void **state) {
        check_name("{\"metric\":\"c6\",\"scope\":\"core\",\"package\":1,\"core\":3,\"unit\":\"%\"}", "CPU%c6", "core 1/3", "%");
        check_name("{\"metric\":\"idle_time\",\"scope\":\"system\",\"state\":\"C1E\",\"unit\":\"%\"}", "C1E%", "", "%");
        check_name("{\"metric\":\"idle_usage\",\"scope\":\"cpu\",\"cpu\":153,\"state\":\"C6\",\"unit\":\"1\"}", "C6", "cpu 153", "1/s");
        check_name("{\"metric\":\"idle_above\",\"scope\":\"system\",\"state\":\"C6\",\"unit\":\"1\"}", "C6-", "", "1/s");
        check_name("{\"metric\":\"idle_rejected\",\"scope\":\"system\",\"state\":\"C6\",\"unit\":\"1\"}", "C6 idle_rejected", "", "1/s");
        check_name("{\"metric\":\"node_watts\",\"scope\":\"system\",\"unit\":\"W\"}", "node_watts", "", "W");
        check_name("{\"metric\":\"pkg_watts\",\"scope\":\"package\",\"package\":0,\"unit\":\"W\"}", "PkgWatt", "package 0", "W");
        check_name("{\"metric\":\"pkg_watts\",\"scope\":\"package\",\"package\":0,\"die\":3,\"unit\":\"W\"}", "PkgWatt", "package 0/3", "W");
        check_name("{\"metric\":\"of a newer daemon\",\"scope\":\"system\"}", "of a newer daemon", "", "");
}

static void check_number(const char *unit, double v, const char *want) {
        json_t *row = json_pack("{ss}", "unit", unit);
        char buf[ROW_TEXT];

        row_number(row, v, buf);
        assert_string_equal(buf, want);
        json_decref(row);
}

static void test_numbers(void **state) {
        check_number("%", 94.9964, "95.00");
        check_number("W", 80, "80.00");
        check_number("MHz", 2800.4, "2800");
        check_number("1", 11394.9, "11395");
        check_number("1", 187.83, "187.8");
        check_number("1", 0.25, "0.25");
        check_number("W", NAN, "-");
        check_number("W", INFINITY, "-");
}

static void test_spread(void **state) {
        char buf[ROW_TEXT];

        row_spread(80, 0.183, buf);
        assert_string_equal(buf, "0.2%");
        row_spread(-10, 12.5, buf);
        assert_string_equal(buf, "125%");
        row_spread(0, 0, buf);
        assert_string_equal(buf, "-");
        row_spread(5, NAN, buf);
        assert_string_equal(buf, "-");
}

static void test_dull(void **state) {
        static const struct {
                const char *metric;
                double mean;
                bool dull;
        } cases[] = {
                { "irq", 0, true }, { "irq", 1, false }, { "pc6", 0, false }, { "pkg_watts", 0, false },
                { "self_sample_us", 5, true }, { "c6", NAN, true }, { "who knows", 1, true },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                json_t *row = json_pack("{ss}", "metric", cases[i].metric);

                assert_int_equal(row_is_dull(row, cases[i].mean), cases[i].dull);
                json_decref(row);
        }
}

static char *print_summary(const char *text, bool all) {
        json_t *root = load(text);
        char *out = NULL;
        size_t size;
        FILE *f = open_memstream(&out, &size);

        assert_int_equal(summary_print(root, all, f), 0);
        assert_int_equal(fclose(f), 0);
        json_decref(root);
        return out;
}

static const char summary_text[] =
        "{\"rows\":["
        "{\"metric\":\"irq\",\"scope\":\"system\",\"unit\":\"1\",\"n\":10,\"mean\":1377.44,\"stddev\":84.7,\"min\":1193.8,\"max\":1478.8,\"sum\":2816},"
        "{\"metric\":\"nmi\",\"scope\":\"system\",\"unit\":\"1\",\"n\":10,\"mean\":0,\"stddev\":0,\"min\":0,\"max\":0,\"sum\":0},"
        "{\"metric\":\"c6\",\"scope\":\"system\",\"unit\":\"%\",\"n\":10,\"mean\":94.9964,\"stddev\":0.0413,\"min\":94.9,\"max\":95.1},"
        "{\"metric\":\"c7\",\"scope\":\"system\",\"unit\":\"%\",\"n\":0,\"mean\":null,\"reason\":\"absent\"},"
        "{\"metric\":\"pkg_watts\",\"scope\":\"system\",\"unit\":\"W\",\"n\":10,\"mean\":79.9979,\"stddev\":0.18,\"min\":79.6,\"max\":80.4,"
        "\"joules\":166.563}]}";

static void test_summary(void **state) {
        char *some = print_summary(summary_text, false), *all = print_summary(summary_text, true), *none;

        assert_non_null(strstr(some, "METRIC"));
        assert_non_null(strstr(some, "CPU%c6"));
        assert_non_null(strstr(some, "95.00"));
        assert_non_null(strstr(some, "2816"));
        assert_non_null(strstr(some, "166.56 J"));
        assert_null(strstr(some, "NMI"));
        assert_null(strstr(some, "CPU%c7"));
        assert_null(strstr(some, "WHERE"));
        assert_non_null(strstr(all, "NMI"));
        assert_non_null(strstr(all, "CPU%c7"));
        free(some);
        free(all);
        none = print_summary("{\"rows\":[]}", true);
        assert_string_equal(none, "");
        free(none);
        some = print_summary("{\"rows\":[{\"metric\":\"c6\",\"scope\":\"core\",\"package\":1,\"core\":9,\"unit\":\"%\",\"mean\":1}]}", false);
        assert_non_null(strstr(some, "core 1/9"));
        free(some);
}

/* compare */

static const char compare_text[] =
        "{\"a\":{\"label\":\"old\",\"windows\":5,\"per_sample\":false,\"samples\":50},"
        "\"b\":{\"label\":\"new\",\"windows\":5,\"per_sample\":false,\"samples\":50},"
        "\"warnings\":[\"kernel differs: 6.1, 6.12\"],\"rows\":["
        "{\"metric\":\"c6\",\"scope\":\"system\",\"unit\":\"%\",\"a\":{\"mean\":94.99,\"stddev_percent\":0.07,\"n\":5},"
        "\"b\":{\"mean\":20,\"stddev_percent\":0.0004,\"n\":5},\"change\":-74.99,\"change_unit\":\"pp\"},"
        "{\"metric\":\"pkg_watts\",\"scope\":\"system\",\"unit\":\"W\",\"a\":{\"mean\":80,\"stddev_percent\":0.2,\"n\":5},"
        "\"b\":{\"mean\":180,\"stddev_percent\":12.34,\"n\":3},\"change\":125,\"change_unit\":\"%\"},"
        "{\"metric\":\"wakeups_break\",\"scope\":\"system\",\"unit\":\"1\",\"a\":{\"mean\":0,\"stddev_percent\":null,\"n\":5},"
        "\"b\":{\"mean\":11392,\"stddev_percent\":2,\"n\":5},\"change\":null,\"change_unit\":\"%\"},"
        "{\"metric\":\"ram_watts\",\"scope\":\"system\",\"unit\":\"W\",\"a\":{\"mean\":13.75,\"stddev_percent\":0,\"n\":5},"
        "\"b\":{\"mean\":13.75,\"stddev_percent\":0,\"n\":5},\"change\":-0.0002,\"change_unit\":\"%\"},"
        "{\"metric\":\"nmi\",\"scope\":\"system\",\"unit\":\"1\",\"a\":{\"mean\":0,\"stddev_percent\":null,\"n\":5},"
        "\"b\":{\"mean\":0,\"stddev_percent\":null,\"n\":5},\"change\":null,\"change_unit\":\"%\"}]}";

static char *print_compare(const ComparePrint *p, size_t rows) {
        json_t *root = load(compare_text);
        char *out = NULL;
        size_t size;
        FILE *f = open_memstream(&out, &size);

        assert_int_equal(compare_print(root, "old", "new", p, f), rows);
        assert_int_equal(fclose(f), 0);
        json_decref(root);
        return out;
}

static void test_compare(void **state) {
        const ComparePrint plain = {}, utf8 = { .utf8 = true }, threshold = { .threshold = 1 }, all = { .all = true };
        char *text = print_compare(&plain, 4);

        assert_non_null(strstr(text, "a: old (5 runs)\nb: new (5 runs)\nwarning: kernel differs: 6.1, 6.12\n"));
        assert_non_null(strstr(text, "      94.99 +- 0.1%     -75.0pp       20.00 +- 0.0%  CPU%c6\n"));
        assert_non_null(strstr(text, "      80.00 +- 0.2%     +125.0%      180.00 +-  12%  PkgWatt  (n=5, 3)\n"));
        assert_non_null(strstr(text, "       0.00                   -       11392 +- 2.0%  Break/s\n"));
        assert_null(strstr(text, "NMI"));
        free(text);
        text = print_compare(&utf8, 4);
        assert_non_null(strstr(text, "      94.99 ± 0.1%      -75.0pp       20.00 ± 0.0%   CPU%c6\n"));
        free(text);
        text = print_compare(&threshold, 3); /* what was 0 has no percentage, and stays */
        assert_null(strstr(text, "RAMWatt"));
        free(text);
        text = print_compare(&all, 5);
        assert_non_null(strstr(text, "NMI"));
        free(text);
}

static void test_compare_narrow(void **state) {
        const ComparePrint narrow = { .width = 40 };
        char *text = print_compare(&narrow, 4);

        assert_non_null(strstr(text, "CPU%c6\n  94.99 +- 0.1%  -75.0pp  20.00 +- 0.0%\n"));
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
                assert_true(strlen(line) <= 40);
        free(text);
}

/* run */

static RunFigures figures(double seconds, double cpu_seconds, unsigned n_tasks, double busy, double c6, double watts) {
        RunFigures f = { .seconds = seconds, .cpu_seconds = cpu_seconds, .n_tasks = n_tasks, .whole = true };

        f.summary = json_pack("{sis[{sssssfsfsi}{sssssfsfsi}{sssssfsfsi}]}", "samples", 5, "rows",
                "metric", "busy", "scope", "system", "mean", busy, "stddev", 0.1, "n", 5,
                "metric", "c6", "scope", "system", "mean", c6, "stddev", 0.1, "n", 5,
                "metric", "node_watts", "scope", "system", "mean", watts, "stddev", 1.0, "n", 5);
        assert_non_null(f.summary);
        return f;
}

static bool verdict(RunFigures f, char *buf, size_t size) {
        RunReport r = { .command = "x", .name = "x", .interval_s = 1, .runs = &f, .n = 1 };
        json_t *rows = run_report_rows(&r);
        bool said = run_report_verdict(&r, rows, buf, size);

        assert_int_equal(said, buf[0] != '\0');
        json_decref(rows);
        json_decref(f.summary);
        return said;
}

static void test_verdict(void **state) {
        RunFigures starved;
        char text[256];

        assert_true(verdict(figures(5, 0.15, 1, 1, 95, 94), text, sizeof(text)));
        assert_string_equal(text, "95 % in C6: x was blocked, not slowed by idle (it used 0.03 CPUs)");
        /* 64 threads on a lock: two CPUs' worth of work, on a machine that sleeps */
        assert_true(verdict(figures(5, 10, 64, 3, 95, 94), text, sizeof(text)));
        assert_string_equal(text, "95 % in C6: x was blocked, not slowed by idle (its 64 threads used 2.00 CPUs)");
        /* a single thread at work leaves the other CPUs asleep and is not blocked */
        assert_false(verdict(figures(5, 4.9, 1, 2, 95, 94), text, sizeof(text)));
        assert_false(verdict(figures(5, 60, 16, 20, 75, 94), text, sizeof(text)));
        /* it would have run, had there been a CPU for it */
        starved = figures(5, 1, 1, 2, 95, 94);
        starved.wait_seconds = 3.9;
        assert_false(verdict(starved, text, sizeof(text)));
        /* somebody else is at work */
        assert_false(verdict(figures(5, 0.1, 1, 80, 10, 400), text, sizeof(text)));
        /* idle, and not deep */
        assert_true(verdict(figures(5, 0.1, 1, 3, 20, 190), text, sizeof(text)));
        assert_non_null(strstr(text, "97 % idle, but only 20 % in C6"));
}

static void test_repeat(void **state) {
        RunFigures runs[3] = { figures(5, 0, 1, 1, 94, 90), figures(5, 0, 1, 1, 95, 94), figures(5, 0, 1, 1, 96, 98) };
        RunReport r = { .command = "x", .name = "x", .label = "old", .interval_s = 1, .runs = runs, .n = 3 };
        json_t *rows = run_report_rows(&r), *c6 = json_array_get(rows, 1);
        char *text = NULL;
        size_t size;
        FILE *f;

        assert_float_equal(json_real_value(json_object_get(c6, "mean")), 95, 1e-9);
        assert_float_equal(json_real_value(json_object_get(c6, "stddev")), 1, 1e-9);
        assert_int_equal(json_integer_value(json_object_get(c6, "n")), 3);
        json_decref(rows);
        r.n = 2; /* no spread of two */
        rows = run_report_rows(&r);
        assert_true(json_is_null(json_object_get(json_array_get(rows, 1), "stddev")));
        json_decref(rows);
        r.n = 3;
        f = open_memstream(&text, &size);
        assert_int_equal(run_report_print(&r, false, false, f), 0);
        assert_int_equal(run_report_json(&r, f), 0);
        assert_int_equal(fclose(f), 0);
        assert_non_null(strstr(text, "x: 3 runs, 5.00 s +-0.0% each"));
        assert_non_null(strstr(text, "label: old\n"));
        assert_non_null(strstr(text, "energy: 470.00 J a run\n"));
        assert_non_null(strstr(text, "\"verdict\":\"95 % in C6"));
        free(text);
        for (size_t i = 0; i < 3; i++)
                json_decref(runs[i].summary);
}

/* words */

static void test_windows(void **state) {
        static const struct {
                const char *first, *second, *key, *value, *end;
        } cases[] = {
                { "1h", NULL, "start", "-1h", NULL },
                { "last", "90s", "start", "-90s", NULL },
                { "-2h..-1h", NULL, "start", "-2h", "-1h" },
                { "..now", NULL, "end", "now", NULL },
                { "nightly", NULL, "label", "nightly", NULL },
                { "42", NULL, "label", "42", NULL },
        };
        char buf[80];

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                char first[32], second[32];
                char *words[] = { first, second };
                WindowWords w;
                Params p = {};

                (void) snprintf(first, sizeof(first), "%s", cases[i].first);
                (void) snprintf(second, sizeof(second), "%s", cases[i].second ? cases[i].second : "");
                assert_int_equal(window_params(cases[i].second ? 2 : 1, words, &w, &p), 0);
                assert_int_equal(p.n, cases[i].end ? 2 : 1);
                assert_string_equal(p.params[0].key, cases[i].key);
                assert_string_equal(p.params[0].value, cases[i].value);
                if (cases[i].end)
                        assert_string_equal(p.params[1].value, cases[i].end);
        }
        assert_string_equal(window_side("1h", buf, sizeof(buf)), "-1h..now");
        assert_string_equal(window_side("old", buf, sizeof(buf)), "old");
}

static void test_bad_windows(void **state) {
        char last[] = "last", word[] = "week", first[] = "first", span[] = "1h";
        char *no_span[] = { last, word }, *no_last[] = { first, span };
        WindowWords w;
        Params p = {};

        assert_true(window_params(2, no_span, &w, &p) < 0);
        assert_true(window_params(2, no_last, &w, &p) < 0);
}

/* The hour that comes twice is two hours (C21). */
static void test_local_time(void **state) {
        char buf[TEXT_TIME];

        assert_int_equal(setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1), 0);
        tzset();
        text_time(1792888200000, buf);
        assert_string_equal(buf, "2026-10-25 02:30:00+0200");
        text_time(1792891800000, buf);
        assert_string_equal(buf, "2026-10-25 02:30:00+0100");
        text_time(0, buf);
        assert_string_equal(buf, "-");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_numbers),
                cmocka_unit_test(test_spread),
                cmocka_unit_test(test_dull),
                cmocka_unit_test(test_summary),
                cmocka_unit_test(test_compare),
                cmocka_unit_test(test_compare_narrow),
                cmocka_unit_test(test_verdict),
                cmocka_unit_test(test_repeat),
                cmocka_unit_test(test_windows),
                cmocka_unit_test(test_bad_windows),
                cmocka_unit_test(test_local_time),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
