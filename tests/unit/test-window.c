/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What people call a window, in words of a command line. */

#include "tests/unit/test.h"

#include <errno.h>
#include <stdlib.h>

#include "client/window.h"

static const char *param(const Params *p, const char *key) {
        for (size_t i = 0; i < p->n; i++)
                if (strcmp(p->params[i].key, key) == 0)
                        return p->params[i].value;
        return NULL;
}

static void test_words(void **state) {
        static const struct {
                const char *word, *start, *end, *label;
        } words[] = {
                { "1h", "-1h", NULL, NULL },
                { "90s", "-90s", NULL, NULL },
                { "-2h..-1h", "-2h", "-1h", NULL },
                { "2026-01-01..", "2026-01-01", NULL, NULL },
                { "..now", NULL, "now", NULL },
                { "before the fix", NULL, NULL, "before the fix" },
                { "15", NULL, NULL, "15" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
                char *word = (char *) words[i].word;
                WindowWords text;
                Params p = {};

                assert_int_equal(window_params(1, &word, &text, &p), 0);
                for (unsigned k = 0; k < 3; k++) {
                        const char *want = k == 0 ? words[i].start : k == 1 ? words[i].end : words[i].label;
                        const char *have = param(&p, k == 0 ? "start" : k == 1 ? "end" : "label");

                        if (want)
                                assert_string_equal(have, want);
                        else
                                assert_null(have);
                }
        }
}

/* Windows that begin with a minus are words; options stay options, and what follows -- stays as it is. */
static void test_minus(void **state) {
        char show[] = "show", option[] = "--all", span[] = "-1h", range[] = "-2h..-1h", bare[] = "-", short_[] = "-5",
             dashes[] = "--", late[] = "-1h";
        char *argv[] = { show, option, span, range, bare, short_, dashes, late, NULL };

        assert_int_equal(window_operands(8, argv), 0);
        assert_string_equal(argv[1], "--all");
        assert_string_equal(argv[2], "1h");
        assert_string_equal(argv[3], "now-2h..-1h");
        assert_string_equal(argv[4], "-");
        assert_string_equal(argv[5], "-5");
        assert_string_equal(argv[7], "-1h");
        free(argv[3]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_words),
                cmocka_unit_test(test_minus),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
