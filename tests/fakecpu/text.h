/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Text in and out: a growing buffer for rendered files, and the scenario's numbers. Everything is integer: a
 * decimal such as "94.0" is kept in nano units (94000000000), so that rates are exact. Written apart from
 * the product's own parsers on purpose: an oracle that shares the code under test proves nothing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cstated/macro.h"

typedef struct Buf {
        char *data;
        size_t len;
        size_t size;
        bool failed; /* out of memory: the text is incomplete */
} Buf;

/* Appends; a failure to allocate sets .failed and later calls do nothing. */
void buf_add(Buf *b, const void *data, size_t len);
void buf_printf(Buf *b, const char *format, ...) _printf_(2, 3);
/* Decimal, right-aligned in `width` columns (0: as long as it is). Cheap: big tables are made of it. */
void buf_u64(Buf *b, uint64_t v, unsigned width);
void buf_deinit(Buf *b);

#define NANO INT64_C(1000000000)

/* "94.0" -> 94000000000, at most nine decimals, optional sign. False: not a number. */
bool text_nano(const char *s, int64_t *ret);
/* Decimal or 0x hexadecimal. */
bool text_u64(const char *s, uint64_t *ret);
/* "20s", "250ms", "3us", "7ns", "2m"; a bare number is seconds. */
bool text_time_ns(const char *s, int64_t *ret);

/* A set of small ids (CPU numbers and the like), by bit. */
#define ID_MAX 8192
typedef struct IdSet {
        uint64_t bits[ID_MAX / 64];
} IdSet;

/* The kernel's list syntax, "0-3,8,16-30:2/4"; "" and "all" are accepted by the caller, not here. */
bool idset_parse(IdSet *set, const char *s);
bool idset_has(const IdSet *set, unsigned id);
void idset_add(IdSet *set, unsigned id);
/* The set as a kernel list, and as the kernel's comma-grouped hex mask of at least `n_bits` bits; with
 * newline. */
void idset_list(const IdSet *set, Buf *b);
void idset_mask(const IdSet *set, unsigned n_bits, Buf *b);
