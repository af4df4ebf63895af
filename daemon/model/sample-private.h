/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What sample.c (differences), sample-machine.c (generations) and sample-derived.c (derived fields) share. */

#include "model/sample.h"

typedef enum BaseState {
        BASE_NONE,   /* never read: the next reading is `first` */
        BASE_BROKEN, /* read before, but its time is lost: the next reading is `gap` */
        BASE_VALID,
} BaseState;

/* The reading a counter is differenced against. */
typedef struct Base {
        uint64_t value;
        uint64_t mono_ns; /* of the tick it was taken in */
        uint16_t rest;    /* ticks: the part below 1 << FIELD_TICK_SHIFT of the wrap-corrected cumulative count */
        uint8_t state;    /* BaseState */
} Base;

/* Time a CPU asked for deep states, and the time that covers. */
typedef struct Requested {
        double deep_ns, span_ns;
        uint8_t bad; /* Reason why it is not whole */
} Requested;

enum { /* who tells it */
        BY_IDLETRACE,
        BY_CPUIDLE,
        REQUESTED_N,
};

/* What a CPU did since its core's counters had their last baseline (the core may have slept through many ticks). */
typedef struct CpuSpan {
        int64_t tsc, mperf;       /* for c1 from the core's counters */
        int64_t c1_res_tsc;       /* TSC since c1_res was read */
        Requested requested[REQUESTED_N];
        uint8_t tsc_bad, mperf_bad, c1_res_bad; /* Reason why the sum is not whole */
} CpuSpan;

struct SampleDelta {
        Machine *machine;
        Layout layout;   /* of samples; its first n_raw slots are the machine's own layout */
        size_t n_raw;
        Base *base;      /* n_raw */
        int64_t *values; /* layout.n_values, as all below */
        uint8_t *reasons;
        int64_t *settled;
        uint8_t *settled_reasons;
        CpuSpan *spans;  /* n_cpus */
        uint32_t *core_first, *core_next; /* the CPUs of a core as a list: by core, by cpu; UINT32_MAX ends it */

        bool has_trace; /* the layout has trace_ns of some state */
        TickHeader prev;
        bool has_prev;
        Sample sample;
};

/* A baseline older than this tick: what it counts is still to come. */
static inline bool base_is_pending(const Base *b, uint64_t mono_ns) {
        return b->state == BASE_VALID && b->mono_ns != mono_ns;
}

/* Fills the derived columns of d->values from the others; call once a tick, after them. */
void sample_derive(SampleDelta *d, const TickHeader *h, bool is_first);
