/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Buffers, exact decimals and id lists of the fake machine. Numbers are read strictly: the whole word or
 * nothing. */

#include <stdarg.h>
#include <string.h>

#include "text.h"

static bool buf_reserve(Buf *b, size_t more) {
        if (b->failed)
                return false;
        if (b->len + more <= b->size)
                return true;

        size_t size = MAX((size_t) 256, b->size);
        while (size < b->len + more)
                size *= 2;
        char *p = realloc(b->data, size);
        if (!p) {
                b->failed = true;
                return false;
        }
        b->data = p;
        b->size = size;
        return true;
}

void buf_add(Buf *b, const void *data, size_t len) {
        if (!buf_reserve(b, len))
                return;
        memcpy(b->data + b->len, data, len);
        b->len += len;
}

void buf_printf(Buf *b, const char *format, ...) {
        va_list ap, again;

        va_start(ap, format);
        va_copy(again, ap);
        int n = vsnprintf(NULL, 0, format, ap);
        va_end(ap);
        if (n >= 0 && buf_reserve(b, (size_t) n + 1)) {
                (void) vsnprintf(b->data + b->len, (size_t) n + 1, format, again);
                b->len += (size_t) n;
        }
        va_end(again);
}

void buf_u64(Buf *b, uint64_t v, unsigned width) {
        char digits[24];
        unsigned n = 0;

        do {
                digits[n++] = (char) ('0' + v % 10);
                v /= 10;
        } while (v > 0);
        if (!buf_reserve(b, MAX(width, n)))
                return;
        for (unsigned i = n; i < width; i++)
                b->data[b->len++] = ' ';
        while (n > 0)
                b->data[b->len++] = digits[--n];
}

void buf_deinit(Buf *b) {
        free(b->data);
        *b = (Buf){};
}

static bool scan_digits(const char **p, uint64_t *v) {
        const char *s = *p;

        if (*s < '0' || *s > '9')
                return false;
        for (*v = 0; *s >= '0' && *s <= '9'; s++)
                if (__builtin_mul_overflow(*v, UINT64_C(10), v) ||
                        __builtin_add_overflow(*v, (uint64_t) (*s - '0'), v))
                        return false;
        *p = s;
        return true;
}

/* Number with an optional fraction, in nano units; *p moves behind it. */
static bool scan_nano(const char **p, int64_t *ret) {
        const char *s = *p;
        uint64_t whole, frac = 0;
        bool negative = *s == '-';

        if (negative)
                s++;
        if (!scan_digits(&s, &whole) || whole > INT64_MAX / (uint64_t) NANO - 1)
                return false;
        if (*s == '.') {
                int64_t weight = NANO / 10;

                for (s++; *s >= '0' && *s <= '9'; s++, weight /= 10)
                        frac += (uint64_t) ((*s - '0') * weight);
        }
        int64_t v = (int64_t) (whole * (uint64_t) NANO + frac);
        *ret = negative ? -v : v;
        *p = s;
        return true;
}

bool text_nano(const char *s, int64_t *ret) {
        int64_t v;

        if (!scan_nano(&s, &v) || *s != '\0')
                return false;
        *ret = v;
        return true;
}

bool text_u64(const char *s, uint64_t *ret) {
        uint64_t v = 0;

        if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
                char *end;

                v = strtoull(s + 2, &end, 16);
                if (s[2] == '\0' || *end != '\0' || s[2] == '-' || s[2] == '+' || s[2] == ' ')
                        return false;
        } else if (!scan_digits(&s, &v) || *s != '\0')
                return false;
        *ret = v;
        return true;
}

bool text_time_ns(const char *s, int64_t *ret) {
        static const struct {
                const char *suffix;
                int64_t ns;
        } units[] = { { "", NANO }, { "s", NANO }, { "ms", 1000000 }, { "us", 1000 }, { "ns", 1 },
                { "m", 60 * NANO } };
        int64_t v;

        if (!scan_nano(&s, &v))
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(units); i++)
                if (strcmp(s, units[i].suffix) == 0) {
                        *ret = (int64_t) ((__int128) v * units[i].ns / NANO);
                        return true;
                }
        return false;
}

bool idset_has(const IdSet *set, unsigned id) {
        return id < ID_MAX && (set->bits[id / 64] >> (id % 64) & 1) != 0;
}

void idset_add(IdSet *set, unsigned id) {
        if (id < ID_MAX)
                set->bits[id / 64] |= UINT64_C(1) << (id % 64);
}

bool idset_parse(IdSet *set, const char *s) {
        *set = (IdSet){};
        for (;;) {
                uint64_t first, last, used = 1, group = 1;

                if (!scan_digits(&s, &first))
                        return false;
                last = first;
                if (*s == '-' && (s++, !scan_digits(&s, &last)))
                        return false;
                if (*s == ':' && (s++, !scan_digits(&s, &used) || *s++ != '/' || !scan_digits(&s, &group)))
                        return false;
                if (last < first || last >= ID_MAX || group == 0 || used > group)
                        return false;
                for (uint64_t i = first; i <= last; i++)
                        if ((i - first) % group < used)
                                idset_add(set, (unsigned) i);
                if (*s == '\0')
                        return true;
                if (*s++ != ',')
                        return false;
        }
}

void idset_list(const IdSet *set, Buf *b) {
        const char *comma = "";

        for (unsigned i = 0; i < ID_MAX; i++) {
                unsigned last = i;

                if (!idset_has(set, i))
                        continue;
                while (idset_has(set, last + 1))
                        last++;
                buf_printf(b, last > i ? "%s%u-%u" : "%s%u", comma, i, last);
                comma = ",";
                i = last;
        }
        buf_add(b, "\n", 1);
}

void idset_mask(const IdSet *set, unsigned n_bits, Buf *b) {
        unsigned groups = MAX(1U, (n_bits + 31) / 32);

        for (unsigned g = groups; g-- > 0;)
                buf_printf(b, "%08x%s", (uint32_t) (set->bits[g / 2] >> (g % 2 * 32)), g > 0 ? "," : "\n");
}
