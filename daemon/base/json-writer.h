/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A small streaming JSON writer into a growing buffer. Numbers never depend on the locale; non-finite is null; a u64
 * never passes through a double; strings are escaped and invalid UTF-8 becomes U+FFFD, so that the output always
 * parses. A failed allocation is remembered (json_error) and further calls do nothing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cstated/macro.h"

typedef struct Json {
        char *buf; /* terminated */
        size_t n, size;
        bool need_comma, failed;
        unsigned depth;
} Json;

#define JSON_INIT {}

void json_deinit(Json *j);

void json_begin_object(Json *j);
void json_end_object(Json *j);
void json_begin_array(Json *j);
void json_end_array(Json *j);
/* The next value's key; only inside an object. */
void json_key(Json *j, const char *key);
void json_string(Json *j, const char *s); /* NULL: null */
void json_string_n(Json *j, const char *s, size_t n);
void json_u64(Json *j, uint64_t v);
void json_i64(Json *j, int64_t v);
/* At most `digits` significant digits (6 suits measurements). */
void json_double(Json *j, double v, int digits);
void json_bool(Json *j, bool v);
void json_null(Json *j);

#define json_key_string(j, k, v) (json_key(j, k), json_string(j, v))
#define json_key_u64(j, k, v) (json_key(j, k), json_u64(j, v))
#define json_key_i64(j, k, v) (json_key(j, k), json_i64(j, v))
#define json_key_double(j, k, v, d) (json_key(j, k), json_double(j, v, d))
#define json_key_bool(j, k, v) (json_key(j, k), json_bool(j, v))
#define json_key_null(j, k) (json_key(j, k), json_null(j))

/* Raw text into the same buffer (CSV, OpenMetrics). */
void json_raw(Json *j, const char *s, size_t n);
void json_printf(Json *j, const char *format, ...) _printf_(2, 3); /* no %f, %g, %e: they follow the locale */

/* 0, or -ENOMEM. */
int json_error(const Json *j);
/* Hands the text over (caller frees); NULL if failed. */
char *json_take(Json *j, size_t *ret_n);
