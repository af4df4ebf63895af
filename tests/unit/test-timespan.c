/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <errno.h>
#include <stdlib.h>

#include "cstated/macro.h"
#include "cstated/timespan.h"

static void test_parse(void **state) {
        static const struct {
                const char *text;
                int r;
                uint64_t usec;
        } cases[] = {
                { "1s", 0, 1000000 }, { "250ms", 0, 250000 }, { "1.5s", 0, 1500000 }, { "15m", 0, 900000000ULL },
                { "3d", 0, 259200000000ULL }, { "2y", 0, 2 * 365 * 86400ULL * 1000000 }, { "1h30m", 0, 5400000000ULL },
                { "1h 30min", 0, 5400000000ULL }, { "10", 0, 10000000 }, { "0.1", 0, 100000 }, { "100us", 0, 100 },
                { "", -EINVAL, 0 }, { "s", -EINVAL, 0 }, { "1x", -EINVAL, 0 }, { "-1s", -EINVAL, 0 }, { "1,5s", -EINVAL, 0 },
                { "1.s", -EINVAL, 0 }, { "1msx", -EINVAL, 0 }, { "99999999999999y", -ERANGE, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint64_t v = 0;

                assert_int_equal(timespan_parse(cases[i].text, &v), cases[i].r);
                assert_true(v == cases[i].usec);
        }
}

static void test_format_is_parsed_back(void **state) {
        static const uint64_t spans[] = { 0, 1, 999, 1000000, 90000000, 5400000000ULL, 86400000000ULL * 366 + 1 };

        for (size_t i = 0; i < ARRAY_SIZE(spans); i++) {
                char buf[80];
                uint64_t v;

                timespan_format(spans[i], buf, sizeof(buf));
                assert_int_equal(timespan_parse(buf, &v), 0);
                assert_true(v == spans[i]);
        }
}

#define NOW (1700000000ULL * 1000000)

static void check_instant(const char *text, uint64_t expect_usec) {
        uint64_t v;

        assert_int_equal(timespan_parse_instant(text, NOW, &v), 0);
        assert_true(v == expect_usec);
}

static void test_instants(void **state) {
        check_instant("now", NOW);
        check_instant("-15m", NOW - 900000000ULL);
        check_instant("now-1h", NOW - 3600000000ULL);
        check_instant("now+5s", NOW + 5000000);
        check_instant("1700000000", NOW);
        check_instant("1700000000.25", NOW + 250000);
        check_instant("1700000000123", NOW + 123000);
        check_instant("2023-11-14T22:13:20Z", NOW);
        check_instant("2023-11-14T23:13:20.5+01:00", NOW + 500000);
        check_instant("1970-01-01T00:00:00Z", 0);
        check_instant("2024-02-29T00:00:00Z", 1709164800ULL * 1000000);
}

/* C21: the hour that happens twice has two names. */
static void test_c21_dst_hour(void **state) {
        check_instant("2026-10-25T02:30:00+02:00", 1792888200ULL * 1000000);
        check_instant("2026-10-25T02:30:00+01:00", 1792891800ULL * 1000000);
}

/* C23: bad input */
static void test_c23_bad_instants(void **state) {
        static const struct {
                const char *text;
                int r;
        } cases[] = {
                { "", -EINVAL }, { "yesterday", -EINVAL }, { "9223372036854775808", -ERANGE }, { "2026-13-01T00:00:00Z", -EINVAL },
                { "2026-02-29T00:00:00Z", -EINVAL }, { "2026-10-25T02:30:00", -EINVAL }, { "1969-12-31T23:59:59Z", -ERANGE },
                { "-100y", -ERANGE }, { "now-", -EINVAL }, { "nowish", -EINVAL }, { "--5s", -EINVAL }, { "1e9", -EINVAL },
                { "2026-10-25T24:00:00Z", -EINVAL }, { "17000000000000000000000000x", -EINVAL }, { "999999999999999999", -ERANGE },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint64_t v = 5;

                assert_int_equal(timespan_parse_instant(cases[i].text, NOW, &v), cases[i].r);
                assert_true(v == 5);
        }
}

static void test_format_instant(void **state) {
        char buf[40];

        for (uint64_t day = 0; day < 60000; day += 13) {
                uint64_t usec = (day * 86400 + 12345) * 1000000 + 678000, v;

                timespan_format_instant(usec, buf, sizeof(buf));
                assert_int_equal(timespan_parse_instant(buf, 0, &v), 0);
                assert_true(v == usec);
        }
        timespan_format_instant(1792888200ULL * 1000000, buf, sizeof(buf));
        assert_string_equal(buf, "2026-10-25T00:30:00.000Z");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_parse),
                cmocka_unit_test(test_format_is_parsed_back),
                cmocka_unit_test(test_instants),
                cmocka_unit_test(test_c21_dst_hour),
                cmocka_unit_test(test_c23_bad_instants),
                cmocka_unit_test(test_format_instant),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
