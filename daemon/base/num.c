/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Strict, locale-free numbers. strtod() and printf("%g") follow LC_NUMERIC, so a German locale turns 1.5 into "1,5"
 * and JSON into garbage: here every separator is written and read by hand. Doubles are printed by way of scaled
 * integers or snprintf of "%.*e", whose only locale-dependent character is known by position.
 */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cstated/macro.h"
#include "cstated/num.h"

static int digit_value(char c, unsigned base) {
        int v = -1;

        if (c >= '0' && c <= '9')
                v = c - '0';
        else if (c >= 'a' && c <= 'f')
                v = c - 'a' + 10;
        else if (c >= 'A' && c <= 'F')
                v = c - 'A' + 10;
        return v >= 0 && (unsigned) v < base ? v : -1;
}

static int parse_digits(const char *s, unsigned base, uint64_t *ret) {
        uint64_t v = 0;

        if (!*s)
                return -EINVAL;
        for (; *s; s++) {
                int d = digit_value(*s, base);

                if (d < 0)
                        return -EINVAL;
                if (__builtin_mul_overflow(v, (uint64_t) base, &v) ||
                        __builtin_add_overflow(v, (uint64_t) d, &v)) {
                        /* Garbage behind an overflow is still garbage. */
                        for (s++; *s; s++)
                                if (digit_value(*s, base) < 0)
                                        return -EINVAL;
                        return -ERANGE;
                }
        }
        *ret = v;
        return 0;
}

int num_parse_u64(const char *s, uint64_t *ret) {
        if (!s)
                return -EINVAL;
        if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
                return parse_digits(s + 2, 16, ret);
        return parse_digits(s, 10, ret);
}

int num_parse_u32(const char *s, uint32_t *ret) {
        uint64_t v;
        int r;

        r = num_parse_u64(s, &v);
        if (r < 0)
                return r;
        if (v > UINT32_MAX)
                return -ERANGE;
        *ret = (uint32_t) v;
        return 0;
}

int num_parse_i64(const char *s, int64_t *ret) {
        bool negative;
        uint64_t v;
        int r;

        if (!s)
                return -EINVAL;
        negative = *s == '-';
        r = parse_digits(s + negative, 10, &v);
        if (r < 0)
                return r;
        if (v > (uint64_t) INT64_MAX + negative)
                return -ERANGE;
        *ret = negative ? (int64_t) -v : (int64_t) v;
        return 0;
}

int num_parse_double(const char *s, double *ret) {
        bool negative, any = false;
        double v = 0, scale = 1;

        if (!s)
                return -EINVAL;
        negative = *s == '-';
        s += negative;
        for (; *s >= '0' && *s <= '9'; s++, any = true)
                v = v * 10 + (*s - '0');
        if (any && *s == '.') {
                s++;
                for (any = false; *s >= '0' && *s <= '9'; s++, any = true)
                        if (scale < 1e17) {
                                v = v * 10 + (*s - '0');
                                scale *= 10;
                        }
        }
        if (!any || *s)
                return -EINVAL;
        v /= scale;
        if (!isfinite(v))
                return -ERANGE;
        *ret = negative ? -v : v;
        return 0;
}

int num_parse_bytes(const char *s, uint64_t *ret) {
        static const char suffixes[] = "KMGT";
        char digits[24];
        const char *suffix;
        uint64_t v, unit = 1;
        size_t n;
        int r;

        if (!s || !*s)
                return -EINVAL;
        n = strlen(s);
        suffix = strchr(suffixes, s[n - 1]);
        if (suffix) {
                n--;
                unit = 1ULL << (10 * (suffix - suffixes + 1));
        }
        if (n >= sizeof(digits))
                return -ERANGE;
        memcpy(digits, s, n);
        digits[n] = '\0';
        r = parse_digits(digits, 10, &v);
        if (r < 0)
                return r;
        if (__builtin_mul_overflow(v, unit, &v))
                return -ERANGE;
        *ret = v;
        return 0;
}

bool num_scan_u64(const char **p, const char *end, uint64_t *ret) {
        const char *s = *p;
        uint64_t v = 0;

        for (; s < end && *s >= '0' && *s <= '9'; s++)
                v = v * 10 + (uint64_t) (*s - '0');
        if (s == *p)
                return false;
        *p = s;
        *ret = v;
        return true;
}

/* One element "a", "a-b" or "a-b:used/group" of a CPU list; marks ids in the set. */
static int parse_cpulist_element(const char **p, const char *end, uint32_t max_id, uint8_t *set) {
        uint64_t first, last, used = 1, group = 1;

        if (!num_scan_u64(p, end, &first))
                return -EINVAL;
        last = first;
        if (*p < end && **p == '-') {
                (*p)++;
                if (!num_scan_u64(p, end, &last))
                        return -EINVAL;
                if (*p < end && **p == ':') {
                        (*p)++;
                        if (!num_scan_u64(p, end, &used) || *p >= end || **p != '/')
                                return -EINVAL;
                        (*p)++;
                        if (!num_scan_u64(p, end, &group) || group == 0 || used == 0 || used > group)
                                return -EINVAL;
                }
        }
        if (last < first)
                return -EINVAL;
        if (first >= max_id || last >= max_id)
                return -ERANGE;
        for (uint64_t i = first; i <= last; i++)
                if ((i - first) % group < used)
                        set[i / 8] |= (uint8_t) (1u << (i % 8));
        return 0;
}

static int collect_ids(const uint8_t *set, uint32_t max_id, uint32_t **ret, size_t *ret_n) {
        uint32_t *ids = NULL;
        size_t n = 0;

        for (uint32_t i = 0; i < max_id; i++)
                n += (set[i / 8] >> (i % 8)) & 1;
        if (n > 0) {
                ids = malloc(n * sizeof(*ids));
                if (!ids)
                        return -ENOMEM;
        }
        n = 0;
        for (uint32_t i = 0; i < max_id; i++)
                if ((set[i / 8] >> (i % 8)) & 1)
                        ids[n++] = i;
        *ret = ids;
        *ret_n = n;
        return 0;
}

int num_parse_cpulist(const char *s, uint32_t max_id, uint32_t **ret, size_t *ret_n) {
        _cleanup_free_ uint8_t *set = NULL;
        const char *end;
        int r;

        if (!s)
                return -EINVAL;
        end = s + strlen(s);
        while (end > s && (end[-1] == '\n' || end[-1] == '\0'))
                end--;
        set = calloc(max_id / 8 + 1, 1);
        if (!set)
                return -ENOMEM;
        while (s < end) {
                r = parse_cpulist_element(&s, end, max_id, set);
                if (r < 0)
                        return r;
                if (s == end)
                        break;
                if (*s != ',' || ++s == end)
                        return -EINVAL;
        }
        return collect_ids(set, max_id, ret, ret_n);
}

char *num_format_cpulist(const uint32_t *ids, size_t n) {
        char *buf, *p;

        /* "4294967295-" and a comma are the most an id can need. */
        buf = malloc(n * 12 + 1);
        if (!buf)
                return NULL;
        p = buf;
        *p = '\0';
        for (size_t i = 0; i < n;) {
                size_t j = i;

                while (j + 1 < n && ids[j + 1] == ids[j] + 1)
                        j++;
                p += sprintf(p, i > 0 ? ",%u" : "%u", ids[i]);
                if (j > i)
                        p += sprintf(p, "-%u", ids[j]);
                i = j + 1;
        }
        return buf;
}

/* Digits and decimal exponent of v > 0: "%.*e" is d<separator>ddd e+xx, whatever the separator is and however long. */
static size_t split_double(double v, int digits, char *ret_digits, int *ret_exponent) {
        char text[64];
        const char *e;
        size_t n = 0;

        (void) snprintf(text, sizeof(text), "%.*e", digits - 1, v);
        e = strchr(text, 'e');
        for (const char *p = text; p < e; p++)
                if (*p >= '0' && *p <= '9')
                        ret_digits[n++] = *p;
        while (n > 1 && ret_digits[n - 1] == '0')
                n--;
        *ret_exponent = atoi(e + 1);
        return n;
}

size_t num_format_double(double v, int digits, char buf[NUM_DOUBLE_MAX]) {
        char d[24], *p = buf;
        int exponent;
        size_t n;

        if (!isfinite(v))
                return (size_t) sprintf(buf, "null");
        if (digits < 1 || digits > 17)
                digits = 17;
        if (v < 0) {
                *p++ = '-';
                v = -v;
        }
        if (v < 1e-300) {
                strcpy(buf, "0");
                return 1;
        }
        n = split_double(v, digits, d, &exponent);
        if (exponent < -7 || exponent > 17) {
                *p++ = d[0];
                if (n > 1) {
                        *p++ = '.';
                        memcpy(p, d + 1, n - 1);
                        p += n - 1;
                }
                p += sprintf(p, "e%d", exponent);
        } else if (exponent < 0) {
                p += sprintf(p, "0.%.*s", -exponent - 1, "00000000");
                memcpy(p, d, n);
                p += n;
        } else
                for (size_t i = 0; i < MAX(n, (size_t) exponent + 1); i++) {
                        if (i == (size_t) exponent + 1)
                                *p++ = '.';
                        *p++ = i < n ? d[i] : '0';
                }
        *p = '\0';
        return (size_t) (p - buf);
}

size_t num_format_fixed(double v, int decimals, char *buf, size_t size) {
        static const double powers[] = { 1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9 };
        uint64_t scaled, unit;
        double rounded;
        int n;

        if (!isfinite(v))
                return (size_t) snprintf(buf, size, "null");
        decimals = decimals < 0 ? 0 : MIN(decimals, 9);
        rounded = round(fabs(v) * powers[decimals]);
        if (rounded >= 1e18)
                return num_format_double(v, 17, buf);
        scaled = (uint64_t) rounded;
        unit = (uint64_t) powers[decimals];
        if (decimals == 0)
                n = snprintf(buf, size, "%s%llu", v < 0 && scaled > 0 ? "-" : "", (unsigned long long) scaled);
        else
                n = snprintf(buf, size, "%s%llu.%0*llu", v < 0 && scaled > 0 ? "-" : "",
                        (unsigned long long) (scaled / unit), decimals, (unsigned long long) (scaled % unit));
        return (size_t) n;
}
