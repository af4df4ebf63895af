/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A small streaming JSON writer into a growing buffer. Numbers never depend on the locale; non-finite is null; a u64
 * never passes through a double; strings are escaped and invalid UTF-8 becomes U+FFFD, so that the output always
 * parses (jansson owns the json_ prefix; ours is jw_). A failed allocation is remembered (jw_error) and further
 * calls do nothing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cstated/macro.h"

typedef struct JsonWriter {
        char *buf; /* terminated */
        size_t n, size;
        bool need_comma, failed;
        unsigned depth;
} JsonWriter;

#define JSON_WRITER_INIT {}

void jw_deinit(JsonWriter *j);

void jw_begin_object(JsonWriter *j);
void jw_end_object(JsonWriter *j);
void jw_begin_array(JsonWriter *j);
void jw_end_array(JsonWriter *j);
/* The next value's key; only inside an object. */
void jw_key(JsonWriter *j, const char *key);
void jw_string(JsonWriter *j, const char *s); /* NULL: null */
void jw_string_n(JsonWriter *j, const char *s, size_t n);
void jw_u64(JsonWriter *j, uint64_t v);
void jw_i64(JsonWriter *j, int64_t v);
/* At most `digits` significant digits (6 suits measurements). */
void jw_double(JsonWriter *j, double v, int digits);
void jw_bool(JsonWriter *j, bool v);
void jw_null(JsonWriter *j);

#define jw_key_string(j, k, v) (jw_key(j, k), jw_string(j, v))
#define jw_key_u64(j, k, v) (jw_key(j, k), jw_u64(j, v))
#define jw_key_i64(j, k, v) (jw_key(j, k), jw_i64(j, v))
#define jw_key_double(j, k, v, d) (jw_key(j, k), jw_double(j, v, d))
#define jw_key_bool(j, k, v) (jw_key(j, k), jw_bool(j, v))
#define jw_key_null(j, k) (jw_key(j, k), jw_null(j))

/* Raw text into the same buffer (CSV, OpenMetrics). */
void jw_raw(JsonWriter *j, const char *s, size_t n);
void jw_printf(JsonWriter *j, const char *format, ...) _printf_(2, 3); /* no %f, %g, %e: they follow the locale */

/* 0, or -ENOMEM. */
int jw_error(const JsonWriter *j);
/* Hands the text over (caller frees); NULL if failed. */
char *jw_take(JsonWriter *j, size_t *ret_n);
