/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Durations and instants. No libc calendar call takes part, hence no TZ: dates are turned into days by arithmetic, and
 * a time without an offset is refused instead of guessed (an hour exists twice every autumn).
 */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cstated/macro.h"
#include "cstated/num.h"
#include "cstated/timespan.h"

#define USEC_PER_DAY (86400 * USEC_PER_SEC)
#define YEAR_9999_SEC 253402300799LL

static const struct {
        const char *suffix;
        uint64_t usec;
} units[] = {
        /* longest first, so that "ms" and "min" are not read as "m" */
        { "min", 60 * USEC_PER_SEC },
        { "us", 1 },
        { "ms", USEC_PER_MSEC },
        { "s", USEC_PER_SEC },
        { "m", 60 * USEC_PER_SEC },
        { "h", 3600 * USEC_PER_SEC },
        { "d", USEC_PER_DAY },
        { "w", 7 * USEC_PER_DAY },
        { "y", 365 * USEC_PER_DAY },
};

static const char *scan_unit(const char *s, uint64_t *ret_usec) {
        for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
                size_t n = strlen(units[i].suffix);

                if (strncmp(s, units[i].suffix, n) == 0 && (s[n] < 'a' || s[n] > 'z')) {
                        *ret_usec = units[i].usec;
                        return s + n;
                }
        }
        return NULL;
}

/* "1", "1.5", ".": whole part and up to nine digits of fraction, as billionths. */
static bool scan_decimal(const char **p, uint64_t *ret_whole, uint32_t *ret_billionths) {
        const char *end = *p + strlen(*p), *start;
        uint32_t fraction = 0, scale = NSEC_PER_SEC;
        uint64_t whole;

        start = *p;
        if (!num_scan_u64(p, end, &whole) || *p - start > 18)
                return false;
        if (**p == '.') {
                if ((*p)[1] < '0' || (*p)[1] > '9')
                        return false;
                for ((*p)++; **p >= '0' && **p <= '9'; (*p)++) {
                        scale /= 10;
                        fraction += (uint32_t) (**p - '0') * scale;
                }
        }
        *ret_whole = whole;
        *ret_billionths = fraction;
        return true;
}

int timespan_parse(const char *s, uint64_t *ret_usec) {
        uint64_t total = 0;

        if (!s || !*s)
                return -EINVAL;
        while (*s) {
                uint64_t whole, unit = USEC_PER_SEC, part;
                uint32_t billionths;
                const char *after;

                if (!scan_decimal(&s, &whole, &billionths))
                        return -EINVAL;
                while (*s == ' ')
                        s++;
                after = *s ? scan_unit(s, &unit) : s;
                if (!after)
                        return -EINVAL;
                s = after;
                while (*s == ' ')
                        s++;
                if (__builtin_mul_overflow(whole, unit, &part))
                        return -ERANGE;
                part += (uint64_t) ((unsigned __int128) unit * billionths / NSEC_PER_SEC);
                if (__builtin_add_overflow(total, part, &total))
                        return -ERANGE;
        }
        *ret_usec = total;
        return 0;
}

void timespan_format(uint64_t usec, char *buf, size_t size) {
        static const struct {
                const char *suffix;
                uint64_t usec;
        } parts[] = {
                { "y", 365 * USEC_PER_DAY }, { "d", USEC_PER_DAY }, { "h", 3600 * USEC_PER_SEC },
                { "min", 60 * USEC_PER_SEC }, { "s", USEC_PER_SEC }, { "ms", USEC_PER_MSEC }, { "us", 1 },
        };
        size_t n = 0;

        if (size == 0)
                return;
        if (usec == 0)
                (void) snprintf(buf, size, "0");
        else
                buf[0] = '\0';
        for (size_t i = 0; i < ARRAY_SIZE(parts) && usec > 0; i++) {
                uint64_t count = usec / parts[i].usec;

                if (count == 0)
                        continue;
                usec %= parts[i].usec;
                if (n < size)
                        n += (size_t) snprintf(buf + n, size - n, "%s%llu%s", n > 0 ? " " : "",
                                (unsigned long long) count, parts[i].suffix);
        }
}

/* Days since 1970-01-01 of a proleptic Gregorian date; the year begins in March so that leap days come last. */
static int64_t days_from_civil(int64_t year, unsigned month, unsigned day) {
        int64_t era;
        unsigned year_of_era, day_of_year;

        year -= month <= 2;
        era = (year >= 0 ? year : year - 399) / 400;
        year_of_era = (unsigned) (year - era * 400);
        day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
        return era * 146097 +
               (int64_t) (year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year) - 719468;
}

static void civil_from_days(int64_t days, int64_t *year, unsigned *month, unsigned *day) {
        int64_t era;
        unsigned day_of_era, year_of_era, day_of_year, m;

        days += 719468;
        era = (days >= 0 ? days : days - 146096) / 146097;
        day_of_era = (unsigned) (days - era * 146097);
        year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
        day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        m = (5 * day_of_year + 2) / 153;
        *day = day_of_year - (153 * m + 2) / 5 + 1;
        *month = m < 10 ? m + 3 : m - 9;
        *year = (int64_t) year_of_era + era * 400 + (*month <= 2);
}

static unsigned days_in_month(int64_t year, unsigned month) {
        static const uint8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
        bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

        return days[month - 1] + (month == 2 && leap);
}

/* Exactly n digits and, after them, the separator (0: none). */
static bool scan_digits(const char **p, unsigned n, char separator, unsigned *ret) {
        unsigned v = 0;

        for (unsigned i = 0; i < n; i++, (*p)++) {
                if (**p < '0' || **p > '9')
                        return false;
                v = v * 10 + (unsigned) (**p - '0');
        }
        if (separator) {
                if (**p != separator)
                        return false;
                (*p)++;
        }
        *ret = v;
        return true;
}

/* "Z", "+hh:mm", "-hhmm" to the end of the string: seconds east of UTC. */
static bool scan_offset(const char *p, int64_t *ret) {
        unsigned hours, minutes;
        int sign;

        if ((*p == 'Z' || *p == 'z') && !p[1]) {
                *ret = 0;
                return true;
        }
        if (*p != '+' && *p != '-')
                return false;
        sign = *p++ == '-' ? -1 : 1;
        if (!scan_digits(&p, 2, 0, &hours))
                return false;
        if (*p == ':')
                p++;
        if (!scan_digits(&p, 2, 0, &minutes) || *p || hours > 23 || minutes > 59)
                return false;
        *ret = sign * (int64_t) (hours * 3600 + minutes * 60);
        return true;
}

static int parse_rfc3339(const char *s, uint64_t *ret_usec) {
        unsigned year, month, day, hour, minute, second, micros = 0, scale = USEC_PER_SEC;
        int64_t offset, sec;

        if (!scan_digits(&s, 4, '-', &year) || !scan_digits(&s, 2, '-', &month) || !scan_digits(&s, 2, 0, &day))
                return -EINVAL;
        if (*s != 'T' && *s != 't' && *s != ' ')
                return -EINVAL;
        s++;
        if (!scan_digits(&s, 2, ':', &hour) || !scan_digits(&s, 2, ':', &minute) ||
                !scan_digits(&s, 2, 0, &second))
                return -EINVAL;
        if (*s == '.') {
                s++;
                if (*s < '0' || *s > '9')
                        return -EINVAL;
                for (; *s >= '0' && *s <= '9'; s++) {
                        scale /= 10;
                        micros += (unsigned) (*s - '0') * scale;
                }
        }
        if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month) || hour > 23 ||
                minute > 59 || second > 60 || !scan_offset(s, &offset))
                return -EINVAL;
        sec = days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset;
        if (sec < 0 || sec > YEAR_9999_SEC)
                return -ERANGE;
        *ret_usec = (uint64_t) sec * USEC_PER_SEC + micros;
        return 0;
}

static int parse_relative(const char *s, uint64_t now_usec, uint64_t *ret_usec) {
        bool back = *s == '-';
        uint64_t span, v;
        int r;

        r = timespan_parse(s + 1, &span);
        if (r < 0)
                return r;
        if (back ? span > now_usec : __builtin_add_overflow(now_usec, span, &v))
                return -ERANGE;
        v = back ? now_usec - span : now_usec + span;
        if (v / USEC_PER_SEC > YEAR_9999_SEC)
                return -ERANGE;
        *ret_usec = v;
        return 0;
}

static int parse_unix(const char *s, uint64_t *ret_usec) {
        const char *p = s;
        uint64_t whole;
        uint32_t billionths;

        if (strspn(s, "0123456789") > 18)
                return s[strspn(s, "0123456789.")] ? -EINVAL : -ERANGE;
        if (!scan_decimal(&p, &whole, &billionths) || *p)
                return -EINVAL;
        if (whole >= 100000000000ULL) {
                /* milliseconds: as seconds this would be the year 5138 */
                if (whole / 1000 > YEAR_9999_SEC)
                        return -ERANGE;
                *ret_usec = whole * USEC_PER_MSEC + billionths / 1000000;
        } else
                *ret_usec = whole * USEC_PER_SEC + billionths / 1000;
        return 0;
}

int timespan_parse_instant(const char *s, uint64_t now_usec, uint64_t *ret_usec) {
        if (!s || !*s)
                return -EINVAL;
        if (strncmp(s, "now", 3) == 0) {
                s += 3;
                if (!*s) {
                        *ret_usec = now_usec;
                        return 0;
                }
                return *s == '-' || *s == '+' ? parse_relative(s, now_usec, ret_usec) : -EINVAL;
        }
        if (*s == '-')
                return parse_relative(s, now_usec, ret_usec);
        if (strlen(s) >= 10 && s[4] == '-' && s[7] == '-')
                return parse_rfc3339(s, ret_usec);
        return parse_unix(s, ret_usec);
}

void timespan_format_instant(uint64_t usec, char *buf, size_t size) {
        uint64_t sec = usec / USEC_PER_SEC, rest = sec % 86400;
        unsigned month, day;
        int64_t year;

        civil_from_days((int64_t) (sec / 86400), &year, &month, &day);
        (void) snprintf(buf, size, "%04lld-%02u-%02uT%02u:%02u:%02u.%03uZ", (long long) year, month, day,
                (unsigned) (rest / 3600), (unsigned) (rest / 60 % 60), (unsigned) (rest % 60),
                (unsigned) (usec % USEC_PER_SEC / USEC_PER_MSEC));
}
