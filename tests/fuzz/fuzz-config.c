/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Configuration text: never crashes, and what it makes of it is valid: printed, it parses back to the same.
 */

#include <assert.h>

#include "config.h"
#include "tests/fuzz/fuzz.h"

static void ignore(void *userdata, bool fatal, const char *file, unsigned line, const char *text) {
        assert(line > 0 && text[0]);
}

static void refuse(void *userdata, bool fatal, const char *file, unsigned line, const char *text) {
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        const ConfigReport quiet = { .fn = ignore }, strict = { .fn = refuse };
        char *printed = NULL;
        size_t n_printed = 0;
        Config a, b;
        FILE *f;

        if (config_init(&a) < 0 || config_init(&b) < 0)
                return 0;
        (void) config_parse_text(&a, "fuzz", (const char *) data, n, &quiet);
        f = open_memstream(&printed, &n_printed);
        if (f) {
                config_print(&a, f);
                (void) fclose(f);
                assert(config_parse_text(&b, "printed", printed, n_printed, &strict) == 0);
                assert(config_compare(&a, &b, NULL, NULL) == 0);
        }
        free(printed);
        config_deinit(&a);
        config_deinit(&b);
        return 0;
}
