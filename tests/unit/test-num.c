/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>

#include "cstated/macro.h"
#include "cstated/num.h"

static void test_u64(void **state) {
        static const struct {
                const char *text;
                int r;
                uint64_t v;
        } cases[] = {
                { "0", 0, 0 }, { "18446744073709551615", 0, UINT64_MAX }, { "18446744073709551616", -ERANGE, 0 },
                { "0x3fc", 0, 0x3fc }, { "0xffffffffffffffff", 0, UINT64_MAX }, { "0x10000000000000000", -ERANGE, 0 },
                { "", -EINVAL, 0 }, { "0x", -EINVAL, 0 }, { " 1", -EINVAL, 0 }, { "1 ", -EINVAL, 0 }, { "+1", -EINVAL, 0 },
                { "-1", -EINVAL, 0 }, { "1\n", -EINVAL, 0 }, { "12a", -EINVAL, 0 }, { "99999999999999999999x", -EINVAL, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint64_t v = 0;

                assert_int_equal(num_parse_u64(cases[i].text, &v), cases[i].r);
                assert_true(v == cases[i].v);
        }
}

static void test_signed(void **state) {
        int64_t v = 7;

        assert_int_equal(num_parse_i64("-9223372036854775808", &v), 0);
        assert_true(v == INT64_MIN);
        assert_int_equal(num_parse_i64("9223372036854775808", &v), -ERANGE);
        assert_int_equal(num_parse_i64("-", &v), -EINVAL);
        assert_int_equal(num_parse_i64("--1", &v), -EINVAL);
        assert_true(v == INT64_MIN);
}

static void test_double(void **state) {
        double v;

        assert_int_equal(num_parse_double("-1.25", &v), 0);
        assert_float_equal(v, -1.25, 0);
        assert_int_equal(num_parse_double("0.001", &v), 0);
        assert_float_equal(v, 0.001, 1e-18);
        assert_int_equal(num_parse_double("1,5", &v), -EINVAL);
        assert_int_equal(num_parse_double("1.", &v), -EINVAL);
        assert_int_equal(num_parse_double(".5", &v), -EINVAL);
        assert_int_equal(num_parse_double("nan", &v), -EINVAL);
        assert_int_equal(num_parse_double("1e3", &v), -EINVAL);
}

static void test_bytes(void **state) {
        uint64_t v;

        assert_int_equal(num_parse_bytes("2G", &v), 0);
        assert_true(v == 2ULL << 30);
        assert_int_equal(num_parse_bytes("123", &v), 0);
        assert_true(v == 123);
        assert_int_equal(num_parse_bytes("G", &v), -EINVAL);
        assert_int_equal(num_parse_bytes("2g", &v), -EINVAL);
        assert_int_equal(num_parse_bytes("99999999999T", &v), -ERANGE);
}

static void check_cpulist(const char *text, const char *expect) {
        _cleanup_free_ uint32_t *ids = NULL;
        _cleanup_free_ char *back = NULL;
        size_t n = 99;

        assert_int_equal(num_parse_cpulist(text, 8192, &ids, &n), 0);
        back = num_format_cpulist(ids, n);
        assert_string_equal(back, expect);
}

/* C14: gaps in CPU numbers and list syntax */
static void test_c14_cpulist(void **state) {
        static const char *const bad[] = { "a", "1-", "-1", "3-1", "1,,2", "1,", "0-7:2", "0-7:3/2", "0-7:0/2", "1 2", "0x1" };
        uint32_t *ids = (uint32_t *) bad;
        size_t n = 99;

        check_cpulist("0-1,8-9,16-17,152-153\n", "0-1,8-9,16-17,152-153");
        check_cpulist("0,4", "0,4");
        check_cpulist("0-7", "0-7");
        check_cpulist("", "");
        check_cpulist("\n", "");
        check_cpulist("1-3", "1-3");
        check_cpulist("5,3,3-4", "3-5");
        check_cpulist("0-7:2/4", "0-1,4-5");
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_int_equal(num_parse_cpulist(bad[i], 8192, &ids, &n), -EINVAL);
        assert_int_equal(num_parse_cpulist("8192", 8192, &ids, &n), -ERANGE);
        assert_int_equal(num_parse_cpulist("0-4294967295", 8192, &ids, &n), -ERANGE);
        assert_int_equal(n, 99);
        assert_ptr_equal(ids, bad);
}

static void check_format(double v, int digits, const char *expect) {
        char buf[NUM_DOUBLE_MAX];

        assert_int_equal(num_format_double(v, digits, buf), strlen(expect));
        assert_string_equal(buf, expect);
}

static void test_format_double(void **state) {
        check_format(0, 6, "0");
        check_format(-0.0, 6, "0");
        check_format(94.0, 6, "94");
        check_format(94.123456789, 6, "94.1235");
        check_format(0.00012, 6, "0.00012");
        check_format(-1234567, 6, "-1234570");
        check_format(999999.5, 6, "1000000");
        check_format(1e17, 17, "100000000000000000");
        check_format(0.1, 17, "0.10000000000000001");
        check_format(NAN, 6, "null");
        check_format(INFINITY, 6, "null");
        check_format(1e300, 3, "1e300");
        check_format(1.5e-9, 3, "1.5e-9");
}

static void test_format_fixed(void **state) {
        char buf[64];

        (void) num_format_fixed(12.345, 2, buf, sizeof(buf));
        assert_string_equal(buf, "12.35");
        (void) num_format_fixed(-0.001, 2, buf, sizeof(buf));
        assert_string_equal(buf, "0.00");
        (void) num_format_fixed(7, 0, buf, sizeof(buf));
        assert_string_equal(buf, "7");
        (void) num_format_fixed(-1.5, 1, buf, sizeof(buf));
        assert_string_equal(buf, "-1.5");
}

/* Every double that is printed with 17 digits comes back as itself. */
static void test_round_trip(void **state) {
        uint64_t x = 88172645463325252ULL;

        for (int i = 0; i < 20000; i++) {
                char buf[NUM_DOUBLE_MAX];
                double v;

                x ^= x << 13;
                x ^= x >> 7;
                x ^= x << 17;
                v = (double) (x >> 11) / (double) (1ULL << (x % 60));
                (void) num_format_double(v, 17, buf);
                assert_true(memcmp(&(double){ strtod(buf, NULL) }, &v, sizeof(v)) == 0);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_u64),
                cmocka_unit_test(test_signed),
                cmocka_unit_test(test_double),
                cmocka_unit_test(test_bytes),
                cmocka_unit_test(test_c14_cpulist),
                cmocka_unit_test(test_format_double),
                cmocka_unit_test(test_format_fixed),
                cmocka_unit_test(test_round_trip),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
