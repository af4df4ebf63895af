/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Durations and instants. Inside the program one unit: microseconds, uint64_t. Instants are UTC since the epoch.
 */

#include <stddef.h>
#include <stdint.h>

#define USEC_PER_SEC 1000000ULL
#define USEC_PER_MSEC 1000ULL
#define NSEC_PER_USEC 1000ULL
#define NSEC_PER_SEC 1000000000ULL

/* "1s", "250ms", "1.5s", "15m", "3d", "2y", "1h30m"; a bare number means seconds. y = 365 d. -EINVAL, -ERANGE. */
int timespan_parse(const char *s, uint64_t *ret_usec);
/* "250ms", "1s", "1h 30min", in systemd's manner, exact. buf is always terminated. */
void timespan_format(uint64_t usec, char *buf, size_t size);

/*
 * An instant: RFC 3339 with offset ("2026-10-25T02:30:00+02:00", 'Z', fraction), unix seconds with fraction, unix
 * milliseconds (>= 1e11), "now", "-15m", "now-1h", "now+5s". now_usec is the caller's clock. -EINVAL, -ERANGE
 * (before 1970, beyond year 9999).
 */
int timespan_parse_instant(const char *s, uint64_t now_usec, uint64_t *ret_usec);
/* RFC 3339 in UTC with milliseconds: "2026-10-25T00:30:00.000Z". size >= 32. */
void timespan_format_instant(uint64_t usec, char *buf, size_t size);
