/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Words and times for people. Times are local, with the offset, so that the hour that comes twice a year is two hours.
 */

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#define TEXT_TIME 40

/* "2026-10-25 02:30:00+0200"; "-" for 0. */
void text_time(json_int_t ms, char buf[TEXT_TIME]);
/* "1h 30min"; milliseconds only under a minute. */
void text_span(json_int_t ms, char *buf, size_t size);

/* A member's text; "" where it is none. */
const char *text_of(const json_t *o, const char *key);
/* A paragraph in lines of at most `columns`: `first` stands before the first one, as many blanks before the others. */
void text_wrapped(FILE *out, const char *first, size_t columns, const char *s);
