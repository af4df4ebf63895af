/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Small language helpers. A function-like macro here evaluates each argument once. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define MACRO_MIN_(a, b, x, y) \
        ({ \
                const typeof(a) x = (a); \
                const typeof(b) y = (b); \
                x < y ? x : y; \
        })
#define MACRO_MAX_(a, b, x, y) \
        ({ \
                const typeof(a) x = (a); \
                const typeof(b) y = (b); \
                x > y ? x : y; \
        })
#define MACRO_UNIQUE__(a, b) a##b
#define MACRO_UNIQUE_(a, b) MACRO_UNIQUE__(a, b)
#define MIN(a, b) MACRO_MIN_(a, b, MACRO_UNIQUE_(min_a_, __COUNTER__), MACRO_UNIQUE_(min_b_, __COUNTER__))
#define MAX(a, b) MACRO_MAX_(a, b, MACRO_UNIQUE_(max_a_, __COUNTER__), MACRO_UNIQUE_(max_b_, __COUNTER__))

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _printf_(f, a) __attribute__((format(printf, f, a)))
#define _pure_ __attribute__((pure))
#define _const_ __attribute__((const))
#define _unused_ __attribute__((unused))

/* Hands the value over and leaves an empty variable for the cleanup attribute to find. */
#define TAKE_PTR(p) \
        ({ \
                typeof(p) *taken_ = &(p); \
                typeof(p) value_ = *taken_; \
                *taken_ = NULL; \
                value_; \
        })
#define TAKE_FD(fd) \
        ({ \
                int *taken_ = &(fd); \
                int value_ = *taken_; \
                *taken_ = -1; \
                value_; \
        })

/* Defines x_freep() for _cleanup_ from an x_free() that accepts NULL and half-built objects. */
#define DEFINE_CLEANUP(type, func) \
        static inline void func##p(type *p) { \
                if (*p) \
                        func(*p); \
        } \
        struct cleanup_semicolon_

static inline void freep(void *p) {
        free(*(void **) p);
}

static inline void closep(int *fd) {
        if (*fd >= 0)
                (void) close(*fd);
}

DEFINE_CLEANUP(FILE *, fclose);

#define _cleanup_free_ _cleanup_(freep)
#define _cleanup_close_ _cleanup_(closep)
