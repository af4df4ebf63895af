/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Why did this CPU wake? One state machine a CPU, written once and compiled twice: into the BPF programs that run at
 * the kernel's tracepoints, and into the daemon's tests. All times are arguments (CLOCK_MONOTONIC ns).
 *
 * A sleep is entered at t0 and left at t1. Its cause is one of
 *   interrupt  an interrupt or NMI was serviced in [t0, t1] (HLT, POLL, IRQ-enabled C1), or first thing after t1,
 *              before a task switch or the next entry and within IDLE_IRQ_LATE_NS: MWAIT with interrupts masked
 *              wakes, emits its exit event, and only then lets the interrupt in;
 *   store      somebody wrote the monitored line: a task switch followed, or sched_wake_idle_without_ipi() named
 *              this CPU in [t0 - d, t1 + d]. The waker stamps its event after the store, so a sleep without any
 *              cause stays provisional for d and is counted only then;
 *   break      none of these: MWAIT came back for nothing. Shorter than the state's target residency: immediate.
 * Sleeps that are not MWAIT (POLL, HLT) never count as breaks; what has no cause there is `other`.
 *
 * Everything here runs on the CPU it speaks of, except idle_classify_store(), which other CPUs call: it touches the
 * ring of stamps only.
 */

#include <linux/types.h>

#define IDLE_TRACE_STATES 16 /* the kernel knows 10; a power of two is a bound every verifier believes */
#define IDLE_TRACE_BUCKETS 32 /* bucket b: sleeps of [2^b, 2^(b+1)) ns; the last one is open */
#define IDLE_TRACE_STORES 4

#define IDLE_STORE_WINDOW_NS 5000 /* d */
#define IDLE_IRQ_LATE_NS 10000

/* flags */
#define IDLE_IRQ_INSIDE 1u   /* an interrupt came during the sleep in progress */
#define IDLE_PENDING 2u      /* left, cause not yet known */
#define IDLE_PROVISIONAL 4u  /* looks like a break; a late store stamp may still explain it */

struct idle_trace_state {
        __u64 entries;
        __u64 ns; /* finished sleeps */
        __u64 interrupt, store, brk, immediate, other;
        /* written by user space before recording begins */
        __u32 is_mwait;
        __u32 target_residency_ns;
        __u32 histogram[IDLE_TRACE_BUCKETS];
};

struct idle_trace_slot {
        __u64 sleep_start; /* t0 of the sleep in progress, 0: awake (or nothing seen yet) */
        __u64 pending_start, pending_end;         /* of the sleep whose cause is not known */
        __u64 provisional_start, provisional_end; /* of the sleep that looks like a break */
        __u32 state, pending_state, provisional_state;
        __u32 flags;
        __u32 n_events; /* of any kind since recording began; 0: this CPU has not spoken yet */
        __u32 n_lost;   /* entries that no exit followed (hotplug) */
        __u32 local_done; /* the interval this CPU has read its counters in (idle-local.h) */
        __u32 pad;
        struct idle_trace_state states[IDLE_TRACE_STATES];
};

struct idle_trace_stores {
        __u64 stamps[IDLE_TRACE_STORES];
        __u32 next;
        __u32 pad[7]; /* its own cache line: others write it */
};

static inline __attribute__((always_inline)) __u32 idle_classify_bucket(__u64 ns) {
        __u32 b = 0;

        if (ns >> 32)
                return IDLE_TRACE_BUCKETS - 1;
        if (ns >> 16) {
                b += 16;
                ns >>= 16;
        }
        if (ns >> 8) {
                b += 8;
                ns >>= 8;
        }
        if (ns >> 4) {
                b += 4;
                ns >>= 4;
        }
        if (ns >> 2) {
                b += 2;
                ns >>= 2;
        }
        if (ns >> 1)
                b += 1;
        return b;
}

/* A store stamp that explains a sleep in [start, end]; it explains no other one afterwards. */
static inline __attribute__((always_inline)) int idle_classify_take_store(
        struct idle_trace_stores *stores, __u64 start, __u64 end) {
        for (int i = 0; i < IDLE_TRACE_STORES; i++) {
                __u64 stamp = stores->stamps[i];

                if (stamp && stamp + IDLE_STORE_WINDOW_NS >= start && stamp <= end + IDLE_STORE_WINDOW_NS) {
                        stores->stamps[i] = 0;
                        return 1;
                }
        }
        return 0;
}

static inline __attribute__((always_inline)) struct idle_trace_state *idle_classify_state(
        struct idle_trace_slot *s, __u32 state) {
        return &s->states[state & (IDLE_TRACE_STATES - 1)];
}

/* Counts the provisional break, as a store if a stamp has come in by now. */
static inline __attribute__((always_inline)) void idle_classify_settle(struct idle_trace_slot *s,
        struct idle_trace_stores *stores) {
        struct idle_trace_state *st = idle_classify_state(s, s->provisional_state);

        s->flags &= ~IDLE_PROVISIONAL;
        if (idle_classify_take_store(stores, s->provisional_start, s->provisional_end)) {
                st->store++;
                return;
        }
        st->brk++;
        if (s->provisional_end - s->provisional_start < st->target_residency_ns)
                st->immediate++;
}

/* Every event of this CPU passes here first: a provisional verdict becomes final when its time is over. */
static inline __attribute__((always_inline)) void idle_classify_event(struct idle_trace_slot *s,
        struct idle_trace_stores *stores, __u64 now) {
        s->n_events++;
        if ((s->flags & IDLE_PROVISIONAL) && now > s->provisional_end + IDLE_STORE_WINDOW_NS)
                idle_classify_settle(s, stores);
}

/* The pending sleep had neither interrupt nor task switch. */
static inline __attribute__((always_inline)) void idle_classify_no_cause(struct idle_trace_slot *s,
        struct idle_trace_stores *stores, __u64 now) {
        struct idle_trace_state *st = idle_classify_state(s, s->pending_state);

        s->flags &= ~IDLE_PENDING;
        if (idle_classify_take_store(stores, s->pending_start, s->pending_end)) {
                st->store++;
                return;
        }
        if (!st->is_mwait) {
                st->other++;
                return;
        }
        /* One provisional verdict at a time: an older one has waited long enough. */
        if (s->flags & IDLE_PROVISIONAL)
                idle_classify_settle(s, stores);
        s->provisional_start = s->pending_start;
        s->provisional_end = s->pending_end;
        s->provisional_state = s->pending_state;
        s->flags |= IDLE_PROVISIONAL;
        if (now > s->provisional_end + IDLE_STORE_WINDOW_NS)
                idle_classify_settle(s, stores);
}

static inline __attribute__((always_inline)) void idle_classify_enter(struct idle_trace_slot *s,
        struct idle_trace_stores *stores, __u32 state, __u64 now) {
        idle_classify_event(s, stores, now);
        if (s->flags & IDLE_PENDING)
                idle_classify_no_cause(s, stores, now);
        /* No exit was seen: the CPU was taken offline in its sleep. That time is nobody's. */
        if (s->sleep_start)
                s->n_lost++;
        s->flags &= ~IDLE_IRQ_INSIDE;
        s->state = state;
        s->sleep_start = now;
        idle_classify_state(s, state)->entries++;
}

static inline __attribute__((always_inline)) void idle_classify_exit(struct idle_trace_slot *s,
        struct idle_trace_stores *stores, __u64 now) {
        struct idle_trace_state *st;
        __u64 start = s->sleep_start, ns;

        idle_classify_event(s, stores, now);
        if (!start)
                return; /* asleep since before recording began */
        s->sleep_start = 0;
        st = idle_classify_state(s, s->state);
        ns = now - start;
        st->ns += ns;
        st->histogram[idle_classify_bucket(ns) % IDLE_TRACE_BUCKETS]++;
        if (s->flags & IDLE_IRQ_INSIDE) {
                s->flags &= ~IDLE_IRQ_INSIDE;
                st->interrupt++;
                return;
        }
        s->pending_start = start;
        s->pending_end = now;
        s->pending_state = s->state;
        s->flags |= IDLE_PENDING;
}

/* An interrupt handler, vector or NMI begins on this CPU. */
static inline __attribute__((always_inline)) void idle_classify_interrupt(struct idle_trace_slot *s,
        struct idle_trace_stores *stores, __u64 now) {
        if (s->sleep_start) {
                s->flags |= IDLE_IRQ_INSIDE;
                return;
        }
        if (!(s->flags & IDLE_PENDING) || now > s->pending_end + IDLE_IRQ_LATE_NS)
                return;
        idle_classify_event(s, stores, now);
        s->flags &= ~IDLE_PENDING;
        idle_classify_state(s, s->pending_state)->interrupt++;
}

/* A task switch on this CPU: while a sleep is pending it can only be the idle task giving way. */
static inline __attribute__((always_inline)) void idle_classify_switch(struct idle_trace_slot *s,
        struct idle_trace_stores *stores, __u64 now) {
        if (!(s->flags & IDLE_PENDING)) {
                /* It has never slept, but it is known to be awake. */
                if (!s->n_events)
                        s->n_events = 1;
                return;
        }
        idle_classify_event(s, stores, now);
        s->flags &= ~IDLE_PENDING;
        idle_classify_state(s, s->pending_state)->store++;
        /* Its stamp, if there is one, explains nothing else. */
        (void) idle_classify_take_store(stores, s->pending_start, s->pending_end);
}

/* Another CPU (or this one) wakes the target by a store; called on the waker. */
static inline __attribute__((always_inline)) void idle_classify_store(
        struct idle_trace_stores *target, __u64 now) {
        /*
         * Not atomic, and need not be: wakers that collide here do so within nanoseconds, and either stamp explains
         * the same sleep. (An atomic with a result would ask for a kernel of 5.12.)
         */
        __u32 i = target->next;

        target->next = i + 1;
        target->stamps[i % IDLE_TRACE_STORES] = now;
}
