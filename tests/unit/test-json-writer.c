/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <jansson.h>
#include <math.h>

#include "base/json-writer.h"

static void test_shapes(void **state) {
        _cleanup_free_ char *text = NULL;
        JsonWriter j = JSON_WRITER_INIT;

        jw_begin_object(&j);
        jw_key_u64(&j, "u", UINT64_MAX);
        jw_key_i64(&j, "i", INT64_MIN);
        jw_key_double(&j, "d", 1.5, 6);
        jw_key_double(&j, "nan", NAN, 6);
        jw_key_bool(&j, "b", true);
        jw_key_string(&j, "none", NULL);
        jw_key(&j, "a");
        jw_begin_array(&j);
        jw_u64(&j, 1);
        jw_begin_array(&j);
        jw_end_array(&j);
        jw_begin_object(&j);
        jw_end_object(&j);
        jw_end_array(&j);
        jw_end_object(&j);
        text = jw_take(&j, NULL);
        assert_string_equal(text,
                "{\"u\":18446744073709551615,\"i\":-9223372036854775808,\"d\":1.5,\"nan\":null,\"b\":true,\"none\":null,"
                "\"a\":[1,[],{}]}");
}

/* Whatever bytes a sysfs name holds, the text parses and control characters survive. */
static void test_strings_always_parse(void **state) {
        for (unsigned a = 1; a < 256; a++)
                for (unsigned b = 1; b < 256; b += 7) {
                        char raw[] = { (char) a, (char) b, 'x', 0 };
                        _cleanup_free_ char *text = NULL;
                        JsonWriter j = JSON_WRITER_INIT;
                        json_t *parsed;

                        jw_begin_array(&j);
                        jw_string(&j, raw);
                        jw_end_array(&j);
                        text = jw_take(&j, NULL);
                        parsed = json_loads(text, 0, NULL);
                        assert_non_null(parsed);
                        if (a < 0x80 && b < 0x80)
                                assert_string_equal(json_string_value(json_array_get(parsed, 0)), raw);
                        json_decref(parsed);
                }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_shapes),
                cmocka_unit_test(test_strings_always_parse),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
