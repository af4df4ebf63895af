/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Frames to samples. A Tick is what one turn of the sampler read (cumulative); a Sample is what happened between two
 * ticks. SampleDelta holds the baselines: by entity id and field, so that they survive a new machine generation for
 * every CPU that was not touched. Pure: no fd, clock or allocation in steady state.
 *
 * Rules: the first reading of a counter is `first`; nothing is computed across an epoch (boot id, suspend, a gap
 * longer than twice the interval + 60 s, another sampler), and no counter where it may have wrapped more than once;
 * MPERF/APERF of a CPU the sampler calls asleep moved by 0, a fact, its other counters are `asleep` until read again
 * and then cover the whole sleep with their span fields. A dropped frame loses nothing: counters are cumulative and
 * the sample is longer by it (n_dropped). A step of the wall clock loses nothing either: differences are over the
 * monotonic clock; clock_step tells the store to end its minute.
 */

#include "model/machine.h"

/* RAPL counts about every 1 ms: over less than this a rate says little (the floor of Interval= is 100 ms). */
#define SAMPLE_MIN_NS 50000000ULL

typedef struct TickHeader {
        uint64_t seq;        /* of the sampler, 1, 2, ...; a hole is a dropped frame */
        uint32_t generation; /* of the machine the values are laid out by */
        uint32_t flags;      /* TICK_* */
        uint64_t mono_ns;    /* CLOCK_MONOTONIC at the middle of the passive reads */
        uint64_t boot_ns;    /* CLOCK_BOOTTIME then */
        uint64_t real_us;    /* CLOCK_REALTIME then */
        uint64_t tsc;        /* then; 0 without a TSC */
        uint64_t interval_ns; /* nominal */
        /* cumulative, of the sampler itself */
        uint64_t self_cpu_ns;
        uint64_t self_reads;   /* remote reads (one IPI each) */
        uint64_t self_wakeups; /* sleeping CPUs woken by them */
        uint64_t self_missed;  /* ticks the timer skipped */
        uint64_t self_dropped; /* frames lost to a full queue */
        uint64_t sample_ns;    /* how long this turn took */
        uint64_t rss_bytes;
} TickHeader;

typedef struct Tick {
        TickHeader h;
        size_t n_values;
        /*
         * layout order; the last known value where reasons says asleep, the first of a new count where it says
         * reset
         */
        uint64_t *values;
        uint8_t *reasons; /* Reason each */
} Tick;

Tick *tick_new(size_t n_values);
Tick *tick_free(Tick *t);
DEFINE_CLEANUP(Tick *, tick_free);

typedef struct SampleHeader {
        uint64_t seq;       /* of the store's epoch order: strictly increasing within a daemon's life */
        uint64_t start_us;  /* wall clock, [start, end) */
        uint64_t end_us;
        uint64_t dt_ns;     /* measured, monotonic */
        uint32_t generation;
        uint32_t epoch;     /* changes where differences may not be taken */
        bool is_first;      /* no value has a difference; dt is 0 */
        bool clock_step;    /* the wall clock was set since the last sample: start is not that one's end */
        uint32_t n_dropped; /* frames lost before this one, whose time it covers */
} SampleHeader;

/* values and reasons follow `layout`: the machine's columns plus the derived ones. */
typedef struct Sample {
        SampleHeader h;
        const Machine *machine; /* borrowed from the SampleDelta */
        const Layout *layout;   /* borrowed */
        int64_t *values;        /* 0 where reasons is set; ticks are >> FIELD_TICK_SHIFT */
        uint8_t *reasons;
        const int64_t *settled; /* last settled value a slot (same indices), for lazily read fields; never asleep */
        const uint8_t *settled_reasons;
} Sample;

/* The layout of samples: the machine's layout plus derived fields. */
void sample_layout(const Machine *m, Layout *ret);

typedef struct SampleDelta SampleDelta;

SampleDelta *sample_delta_new(void);
SampleDelta *sample_delta_free(SampleDelta *d);
DEFINE_CLEANUP(SampleDelta *, sample_delta_free);

/*
 * A new machine: takes ownership of m (also where it fails), keeps baselines of entities and columns that stay.
 * -ENOMEM: the old machine stays.
 */
int sample_delta_set_machine(SampleDelta *d, Machine *m);
const Machine *sample_delta_machine(const SampleDelta *d);

enum {
        SAMPLE_E_FIRST = 1, /* a baseline only: *ret is a sample with is_first set */
        SAMPLE_E_STALE,     /* the tick's generation is not the machine's: dropped, *ret NULL */
        SAMPLE_E_SHORT,     /* less than SAMPLE_MIN_NS after the last: *ret NULL; the next sample covers it too */
};
/*
 * The sample from the previous tick to this one; *ret is borrowed until the next call. SAMPLE_E_*; -EBADMSG where the
 * tick does not fit the machine.
 */
int sample_delta_push(SampleDelta *d, const Tick *t, const Sample **ret);
