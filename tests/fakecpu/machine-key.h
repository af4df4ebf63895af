/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The words of `set`, `preset` and `wrap`: which counter of which scope they mean, and how a value becomes a
 * rate. */

#include "machine.h"

typedef enum RateKind {
        RATE_TSC,     /* percent of the TSC */
        RATE_JIFFIES, /* percent of USER_HZ */
        RATE_PER_S,   /* counts a second */
        RATE_WATTS,
        RATE_MHZ,      /* APERF: rate follows from busy and MHz, machine_settle() */
        RATE_THROTTLE, /* percent of time, in 2^-10 s */
        RATE_STATE,    /* percent of time in microseconds */
        RATE_DERIVED,  /* not to be set */
        RATE_GAUGE,
} RateKind;

typedef struct Key {
        const char *name;
        Scope scope;
        unsigned counter;
        RateKind kind;
        unsigned width; /* bits at which it wraps, 0: no counter */
} Key;

/* A key by its name; NULL: none. State counters ("C6.time") are not here: key_state(). */
const Key *key_find(const char *name);
/* "C6.time" on a CPU of this core type: the counter, or -1. */
int key_state(const Machine *m, unsigned type, const char *name, RateKind *ret_kind);
/* 1e-9 counts a second for a value in nano units. */
uint64_t key_rate(const Machine *m, Scope scope, unsigned counter, RateKind kind, int64_t param);
