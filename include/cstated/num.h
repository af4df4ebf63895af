/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Strict, locale-free numbers. A parser accepts the whole string or nothing: no leading blanks, no trailing
 * garbage, no sign where none belongs. Errors: -EINVAL malformed or empty, -ERANGE out of range.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decimal, or hexadecimal after 0x. */
int num_parse_u64(const char *s, uint64_t *ret);
int num_parse_u32(const char *s, uint32_t *ret);
/* Decimal with an optional leading '-'. */
int num_parse_i64(const char *s, int64_t *ret);
/* Decimal digits with an optional fraction and sign ("-1.25"); no exponent, inf or nan. */
int num_parse_double(const char *s, double *ret);
/* Bytes with an optional suffix K, M, G, T (powers of 1024): "2G". */
int num_parse_bytes(const char *s, uint64_t *ret);

/*
 * The same for text inside a longer buffer: parses digits at *p (before end) and moves *p behind them.
 * Returns false, *p unmoved, where no digit stands. Values wrap modulo 2^64 as the kernel's counters do.
 */
bool num_scan_u64(const char **p, const char *end, uint64_t *ret);

/*
 * A kernel CPU list: "0-3,8,10-15:2/8", empty and "\n" allowed (no CPU). Ids ascending and unique afterwards.
 * On success *ret is malloc'd (NULL if empty) and the caller's. Ids of max_id and above: -ERANGE.
 */
int num_parse_cpulist(const char *s, uint32_t max_id, uint32_t **ret, size_t *ret_n);
/* The inverse; ids ascending. malloc'd string, NULL when out of memory. */
char *num_format_cpulist(const uint32_t *ids, size_t n);

/*
 * Shortest decimal text with at most `digits` significant digits that never depends on the locale and never uses an
 * exponent within [1e-7, 1e17). Non-finite: "null". Returns the length; buf holds NUM_DOUBLE_MAX bytes.
 */
#define NUM_DOUBLE_MAX 40
size_t num_format_double(double v, int digits, char buf[NUM_DOUBLE_MAX]);
/* Fixed point with `decimals` decimals, '.' whatever the locale. */
size_t num_format_fixed(double v, int decimals, char *buf, size_t size);
