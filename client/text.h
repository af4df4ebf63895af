/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Times for people: local, with the offset, so that the hour that comes twice a year is two hours. */

#include <jansson.h>
#include <stddef.h>

#define TEXT_TIME 40

/* "2026-10-25 02:30:00+0200"; "-" for 0. */
void text_time(json_int_t ms, char buf[TEXT_TIME]);
/* "1h 30min"; milliseconds only under a minute. */
void text_span(json_int_t ms, char *buf, size_t size);
