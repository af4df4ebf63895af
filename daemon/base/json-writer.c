/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A streaming JSON writer. The only state is whether the next value needs a comma; nesting is the caller's grammar
 * (checked by assert through the depth). The buffer grows by half, so a long array costs few moves.
 */

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/json-writer.h"
#include "cstated/num.h"

void jw_deinit(JsonWriter *j) {
        free(j->buf);
        *j = (JsonWriter) JSON_WRITER_INIT;
}

static bool jw_reserve(JsonWriter *j, size_t n) {
        size_t size;
        char *p;

        if (j->failed)
                return false;
        if (j->n + n + 1 <= j->size)
                return true;
        size = MAX(j->size + j->size / 2, j->n + n + 256);
        p = realloc(j->buf, size);
        if (!p) {
                j->failed = true;
                return false;
        }
        j->buf = p;
        j->size = size;
        return true;
}

void jw_raw(JsonWriter *j, const char *s, size_t n) {
        if (!jw_reserve(j, n))
                return;
        memcpy(j->buf + j->n, s, n);
        j->n += n;
        j->buf[j->n] = '\0';
}

void jw_printf(JsonWriter *j, const char *format, ...) {
        va_list ap;
        int n;

        va_start(ap, format);
        n = vsnprintf(NULL, 0, format, ap);
        va_end(ap);
        if (n < 0 || !jw_reserve(j, (size_t) n))
                return;
        va_start(ap, format);
        (void) vsnprintf(j->buf + j->n, (size_t) n + 1, format, ap);
        va_end(ap);
        j->n += (size_t) n;
}

static void jw_separate(JsonWriter *j) {
        if (j->need_comma)
                jw_raw(j, ",", 1);
        j->need_comma = true;
}

static void jw_open(JsonWriter *j, char c) {
        jw_separate(j);
        jw_raw(j, &c, 1);
        j->need_comma = false;
        j->depth++;
}

static void jw_shut(JsonWriter *j, char c) {
        assert(j->depth > 0);
        j->depth--;
        jw_raw(j, &c, 1);
        j->need_comma = true;
}

void jw_begin_object(JsonWriter *j) {
        jw_open(j, '{');
}

void jw_end_object(JsonWriter *j) {
        jw_shut(j, '}');
}

void jw_begin_array(JsonWriter *j) {
        jw_open(j, '[');
}

void jw_end_array(JsonWriter *j) {
        jw_shut(j, ']');
}

/* Length of the valid UTF-8 sequence at s, 0 where there is none. */
static size_t utf8_length(const unsigned char *s, size_t n) {
        size_t length = s[0] < 0x80   ? 1
                        : s[0] < 0xc2 ? 0
                        : s[0] < 0xe0 ? 2
                        : s[0] < 0xf0 ? 3
                        : s[0] < 0xf5 ? 4
                                      : 0;

        if (length == 0 || length > n)
                return 0;
        for (size_t i = 1; i < length; i++)
                if ((s[i] & 0xc0) != 0x80)
                        return 0;
        /* overlong forms, surrogates, beyond U+10FFFF */
        if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
                (s[0] == 0xf4 && s[1] > 0x8f))
                return 0;
        return length;
}

static void jw_escape(JsonWriter *j, unsigned char c) {
        static const char short_forms[] = {
                ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'
        };

        if (c == '"' || c == '\\')
                jw_printf(j, "\\%c", c);
        else if (c < sizeof(short_forms) && short_forms[c])
                jw_printf(j, "\\%c", short_forms[c]);
        else
                jw_printf(j, "\\u%04x", c);
}

static void jw_quote(JsonWriter *j, const char *s, size_t n) {
        const unsigned char *p = (const unsigned char *) s;

        jw_raw(j, "\"", 1);
        for (size_t i = 0; i < n;) {
                size_t plain = 0, length;

                while (i + plain < n && p[i + plain] >= 0x20 && p[i + plain] < 0x7f && p[i + plain] != '"' &&
                        p[i + plain] != '\\')
                        plain++;
                jw_raw(j, s + i, plain);
                i += plain;
                if (i == n)
                        break;
                length = utf8_length(p + i, n - i);
                if (length == 0) {
                        jw_raw(j, "\xef\xbf\xbd", 3);
                        i++;
                } else if (length == 1) {
                        jw_escape(j, p[i++]);
                } else {
                        jw_raw(j, s + i, length);
                        i += length;
                }
        }
        jw_raw(j, "\"", 1);
}

void jw_key(JsonWriter *j, const char *key) {
        jw_separate(j);
        jw_quote(j, key, strlen(key));
        jw_raw(j, ":", 1);
        j->need_comma = false;
}

void jw_string_n(JsonWriter *j, const char *s, size_t n) {
        jw_separate(j);
        jw_quote(j, s, n);
}

void jw_string(JsonWriter *j, const char *s) {
        if (s)
                jw_string_n(j, s, strlen(s));
        else
                jw_null(j);
}

void jw_u64(JsonWriter *j, uint64_t v) {
        jw_separate(j);
        jw_printf(j, "%" PRIu64, v);
}

void jw_i64(JsonWriter *j, int64_t v) {
        jw_separate(j);
        jw_printf(j, "%" PRId64, v);
}

void jw_double(JsonWriter *j, double v, int digits) {
        char text[NUM_DOUBLE_MAX];
        size_t n;

        n = num_format_double(v, digits, text);
        jw_separate(j);
        jw_raw(j, text, n);
}

void jw_bool(JsonWriter *j, bool v) {
        jw_separate(j);
        jw_printf(j, "%s", v ? "true" : "false");
}

void jw_null(JsonWriter *j) {
        jw_separate(j);
        jw_raw(j, "null", 4);
}

int jw_error(const JsonWriter *j) {
        return j->failed ? -ENOMEM : 0;
}

char *jw_take(JsonWriter *j, size_t *ret_n) {
        char *p;

        if (j->failed || !jw_reserve(j, 0)) {
                jw_deinit(j);
                return NULL;
        }
        p = j->buf;
        p[j->n] = '\0';
        if (ret_n)
                *ret_n = j->n;
        *j = (JsonWriter) JSON_WRITER_INIT;
        return p;
}
