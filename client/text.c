/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <stdio.h>
#include <time.h>

#include <string.h>

#include "client/text.h"
#include "cstated/timespan.h"

void text_time(json_int_t ms, char buf[TEXT_TIME]) {
        time_t s = (time_t) (ms / 1000);
        struct tm tm;

        if (ms <= 0 || !localtime_r(&s, &tm) || strftime(buf, TEXT_TIME, "%F %T%z", &tm) == 0)
                (void) snprintf(buf, TEXT_TIME, "-");
}

void text_span(json_int_t ms, char *buf, size_t size) {
        if (ms > 60000)
                ms = (ms + 500) / 1000 * 1000;
        timespan_format(ms > 0 ? (uint64_t) ms * USEC_PER_MSEC : 0, buf, size);
}

const char *text_of(const json_t *o, const char *key) {
        const char *s = json_string_value(json_object_get(o, key));

        return s ? s : "";
}

void text_wrapped(FILE *out, const char *first, size_t columns, const char *s) {
        size_t indent = strlen(first), column = 0;

        while (*s) {
                size_t n = strcspn(s, " ");

                if (column > 0 && column + 1 + n <= columns) {
                        (void) fprintf(out, " %.*s", (int) n, s);
                        column += 1 + n;
                } else {
                        (void) fprintf(out, "%s%*s%.*s", column > 0 ? "\n" : "", (int) indent,
                                column > 0 ? "" : first, (int) n, s);
                        column = indent + n;
                }
                s += n;
                s += strspn(s, " ");
        }
        (void) fputc('\n', out);
}
