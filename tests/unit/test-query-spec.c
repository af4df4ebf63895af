/* SPDX-License-Identifier: GPL-2.0-or-later */
/* C23 and C21: what is refused, by name; what is taken, and as what. */

#include "tests/unit/test.h"

#include <errno.h>
#include <stdlib.h>

#include "cstated/timespan.h"
#include "query/query-spec.h"

#define NOW_US (1790000000ULL * USEC_PER_SEC)

/* "a=b&c=d" without escapes. */
static int parse(QueryForm form, const char *text, QuerySpec *ret, QueryError *error) {
        char *copy = strdup(text), *next = copy, *pair;
        QueryParam params[40];
        size_t n = 0;
        int r;

        while ((pair = strsep(&next, "&")) && *pair) {
                char *value = pair + strcspn(pair, "=");

                if (*value)
                        *value++ = '\0';
                params[n++] = (QueryParam){ pair, value };
        }
        r = query_spec_parse_form(form, params, n, NOW_US, ret, error);
        free(copy);
        return r;
}

static void test_refusals(void **state) {
        static const struct {
                const char *text, *param;
        } cases[] = {
                { "", "metric" },
                { "metric=", "metric" },
                { "metric=nonsense", "metric" },
                { "metric=busy,", "metric" },
                { "metric=,busy", "metric" },
                { "metric=BUSY", "metric" },
                { "metric=busy&nonsense=1", "nonsense" },
                { "metric=busy&Start=1", "Start" },
                { "metric=busy&scope=socket", "scope" },
                { "metric=busy&scope=cpu&scope=core", "scope" },
                { "metric=pc6&scope=cpu", "scope" },
                { "metric=node_watts&scope=package", "scope" },
                { "metric=busy&start=200&end=100", "start" },
                { "metric=busy&start=100&end=100", "start" },
                { "metric=busy&from=now&to=-5m", "start" },
                { "metric=busy&start=2000000000", "start" },
                { "metric=busy&start=-1", "start" },
                { "metric=busy&start=-1700000000", "start" },
                { "metric=busy&end=-1.5", "end" },
                { "metric=busy&start=9223372036854775808", "start" },
                { "metric=busy&end=9223372036854775807", "end" },
                { "metric=busy&end=18446744073709551616", "end" },
                { "metric=busy&from=yesterday", "from" },
                { "metric=busy&after=2026-10-25T02:30:00", "after" }, /* which of the two hours? */
                { "metric=busy&before=2026-13-01T00:00:00Z", "before" },
                { "metric=busy&start=1e9", "start" },
                { "metric=busy&start=1,5", "start" },
                { "metric=busy&start=0x10", "start" },
                { "metric=busy&start= 5", "start" },
                { "metric=busy&start=5&from=6", "from" },
                { "metric=busy&start=", "start" },
                { "metric=busy&step=0", "step" },
                { "metric=busy&step=1ms", "step" },
                { "metric=busy&step=-5s", "step" },
                { "metric=busy&step=fast", "step" },
                { "metric=busy&step=100y", "step" },
                { "metric=busy&start=-1y&step=1s", "step" },
                { "metric=busy&start=0&step=1h", "step" },
                { "metric=busy&points=0", "points" },
                { "metric=busy&points=11001", "points" },
                { "metric=busy&points=-1", "points" },
                { "metric=busy&points=1.5", "points" },
                { "metric=busy&points=10&step=1s", "points" },
                { "metric=busy&agg=median", "agg" },
                { "metric=busy&agg=mean,,max", "agg" },
                { "metric=busy&format=xml", "format" },
                { "metric=busy&time_format=us", "time_format" },
                { "metric=busy&cpu=", "cpu" },
                { "metric=busy&cpu=a", "cpu" },
                { "metric=busy&cpu=3-1", "cpu" },
                { "metric=busy&cpu=1,,2", "cpu" },
                { "metric=busy&cpu=-1", "cpu" },
                { "metric=busy&cpu=0-99999", "cpu" },
                { "metric=busy&cpu=18446744073709551616", "cpu" }, /* not CPU 0 */
                { "metric=busy&core=4294967296", "core" },
                { "metric=busy&package=0x1g", "package" },
                { "metric=busy&state=C6", "state" },
                { "metric=idle_time&state=averylongstatename", "state" },
                { "metric=busy&kind=gap", "kind" },
                { "metric=busy&label=x", "label" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                QueryError error = {};
                QuerySpec q = { .n_metrics = 77 };

                if (parse(QUERY_FORM_QUERY, cases[i].text, &q, &error) != -EINVAL)
                        fail_msg("taken: %s", cases[i].text);
                if (strcmp(error.param, cases[i].param) != 0)
                        fail_msg("%s: blames %s (%s)", cases[i].text, error.param, error.message);
                assert_true(strlen(error.message) > 5);
                /* nothing was touched */
                assert_int_equal(q.n_metrics, 77);
        }
}

static void test_defaults(void **state) {
        QueryError error;
        QuerySpec q;

        assert_int_equal(parse(QUERY_FORM_QUERY, "metric=busy", &q, &error), 0);
        assert_int_equal(q.end_us, NOW_US);
        assert_int_equal(q.start_us, NOW_US - 900 * USEC_PER_SEC);
        assert_int_equal(q.aggs, AGG_MEAN);
        assert_int_equal(q.step_us, 0);
        assert_false(q.has_scope);
        assert_int_equal(q.format, QUERY_ROWS);
        assert_int_equal(q.time_format, QUERY_TIME_MS);
        query_spec_deinit(&q);
        /* an end alone: the 15 minutes before it */
        assert_int_equal(parse(QUERY_FORM_QUERY, "metric=busy&end=1700000900", &q, &error), 0);
        assert_int_equal(q.start_us, 1700000000ULL * USEC_PER_SEC);
        query_spec_deinit(&q);
}

static void test_times(void **state) {
        static const struct {
                const char *text;
                uint64_t start_us;
        } cases[] = {
                { "start=1700000000", 1700000000000000 }, { "from=1700000000.25", 1700000000250000 },
                { "after=1700000000123", 1700000000123000 }, /* 13 digits are milliseconds */
                { "start=-15m", NOW_US - 900000000 }, { "start=now-1h", NOW_US - 3600000000 },
                { "start=2026-03-29T03:00:00+02:00", 1774746000000000 },
                { "start=2025-10-26T02:30:00+02:00", 1761438600000000 },
                { "start=2025-10-26T02:30:00+01:00", 1761442200000000 }, /* the same clock, an hour later */
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                QueryError error = {};
                QuerySpec q;
                char text[128];

                (void) snprintf(text, sizeof(text), "metric=busy&%s", cases[i].text);
                if (parse(QUERY_FORM_QUERY, text, &q, &error) != 0)
                        fail_msg("%s: %s", text, error.message);
                assert_int_equal(q.start_us, cases[i].start_us);
                query_spec_deinit(&q);
        }
}

static void test_lists(void **state) {
        QueryError error;
        QuerySpec q;

        assert_int_equal(parse(QUERY_FORM_QUERY,
                                 "metric=busy,c6&metric=irq,busy&cpu=153,0-1&package=1&core=2-3&agg=min,max&"
                                 "agg=count&scope=node",
                                 &q, &error),
                0);
        assert_int_equal(q.n_metrics, 3);
        assert_string_equal(q.metrics[1]->id, "c6");
        assert_int_equal(q.n_cpus, 3);
        assert_int_equal(q.cpus[0], 0);
        assert_int_equal(q.cpus[2], 153);
        assert_int_equal(q.n_packages, 1);
        assert_int_equal(q.n_cores, 2);
        assert_int_equal(q.aggs, AGG_MIN | AGG_MAX | AGG_COUNT);
        assert_true(q.has_scope);
        assert_int_equal(q.scope, SCOPE_SYSTEM);
        query_spec_deinit(&q);
}

static void test_points(void **state) {
        QueryError error;
        QuerySpec q;

        assert_int_equal(
                parse(QUERY_FORM_QUERY, "metric=busy&start=1700000000&end=1700000100&points=3", &q, &error),
                0);
        assert_int_equal(q.points, 3);
        assert_int_equal(q.step_us, 33333334);
        query_spec_deinit(&q);
        assert_int_equal(
                parse(QUERY_FORM_QUERY, "metric=busy&start=1700000000&end=1700011000&step=1s", &q, &error),
                0);
        query_spec_deinit(&q);
}

static void test_forms(void **state) {
        QueryError error;
        QuerySpec q;

        assert_int_equal(parse(QUERY_FORM_SUMMARY, "", &q, &error), 0);
        assert_int_equal(q.n_metrics, 0);
        query_spec_deinit(&q);
        assert_int_equal(parse(QUERY_FORM_SUMMARY, "state=C6", &q, &error), 0);
        query_spec_deinit(&q);
        assert_int_equal(parse(QUERY_FORM_SUMMARY, "step=1s", &q, &error), -EINVAL);
        assert_string_equal(error.param, "step");
        assert_int_equal(parse(QUERY_FORM_COMPARE, "a=x&b=y&metric=busy", &q, &error), 0);
        query_spec_deinit(&q);
        assert_int_equal(parse(QUERY_FORM_COMPARE, "start=1", &q, &error), -EINVAL);
        assert_int_equal(parse(QUERY_FORM_EVENTS, "kind=gap&limit=5&from=-1h", &q, &error), 0);
        query_spec_deinit(&q);
        assert_int_equal(parse(QUERY_FORM_EVENTS, "metric=busy", &q, &error), -EINVAL);
        assert_string_equal(error.param, "metric");
}

static void test_windows(void **state) {
        uint64_t start, end;
        QueryError error;

        assert_int_equal(query_window_parse("a", "-10m..-5m", NOW_US, &start, &end, &error), 0);
        assert_int_equal(start, NOW_US - 600 * USEC_PER_SEC);
        assert_int_equal(end, NOW_US - 300 * USEC_PER_SEC);
        assert_int_equal(query_window_parse("a", "2026-01-01T00:00:00Z/2026-01-02T00:00:00Z", NOW_US, &start,
                                 &end, &error),
                0);
        assert_int_equal(end - start, 86400 * USEC_PER_SEC);
        assert_int_equal(
                query_window_parse("a", "1700000000.5..1700000001", NOW_US, &start, &end, &error), 0);
        assert_int_equal(end - start, 500000);
        assert_int_equal(query_window_parse("b", "now..-5m", NOW_US, &start, &end, &error), -EINVAL);
        assert_string_equal(error.param, "b");
        assert_int_equal(query_window_parse("b", "-5m..", NOW_US, &start, &end, &error), -EINVAL);
        assert_int_equal(query_window_parse("b", "..", NOW_US, &start, &end, &error), -EINVAL);
        assert_int_equal(query_window_parse("b", "before", NOW_US, &start, &end, &error), -EINVAL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_refusals),
                cmocka_unit_test(test_defaults),
                cmocka_unit_test(test_times),
                cmocka_unit_test(test_lists),
                cmocka_unit_test(test_points),
                cmocka_unit_test(test_forms),
                cmocka_unit_test(test_windows),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
