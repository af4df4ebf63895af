/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Event sequences of one CPU and the verdicts they must get, for the C twin and for the BPF programs alike. State 0 is
 * POLL, 1 is HLT (not MWAIT), 2 is MWAIT with a target residency of 100 us.
 */

#include <stddef.h>
#include <stdint.h>

#include "cstated/macro.h"
#include "sampler/idle-trace.h"

enum { POLL_STATE, HLT_STATE, MWAIT_STATE };

#define SEQUENCE_MWAIT_MASK (1u << MWAIT_STATE)
#define SEQUENCE_RESIDENCY_US { 0, 2, 100 }
#define SEQUENCE_BASE_NS 1000000000ULL

typedef struct IdleEvent {
        char kind;       /* E enter, X exit, I interrupt or NMI, S task switch, W store wake (stamped by the waker) */
        uint32_t state;  /* E only */
        uint64_t ns;     /* since the sequence's base */
} IdleEvent;

typedef struct IdleSequence {
        const char *name;
        IdleEvent events[24];
        unsigned repeat;       /* the events again and again, period_ns apart; 0: once */
        uint64_t period_ns;
        IdleEvent tail[4];     /* after the repetitions; times since the last one's end */
        /* expected, over all states */
        uint64_t entries, ns, interrupt, store, brk, immediate, other, lost;
} IdleSequence;

#define US(x) ((uint64_t) ((x) * 1000.0 + 0.5))

static const IdleSequence idle_sequences[] = {
        { .name = "interrupt-masked MWAIT: the interrupt follows the exit",
                .events = { { 'E', 2, 0 }, { 'X', 0, US(300) }, { 'I', 0, US(300.5) }, { 'S', 0, US(305) } },
                .entries = 1, .ns = US(300), .interrupt = 1 },
        { .name = "HLT: the interrupt comes inside",
                .events = { { 'E', 1, 0 }, { 'I', 0, US(50) }, { 'X', 0, US(55) }, { 'E', 1, US(60) } },
                .entries = 2, .ns = US(55), .interrupt = 1 },
        { .name = "nested interrupts count once",
                .events = { { 'E', 2, 0 }, { 'X', 0, US(300) }, { 'I', 0, US(300.4) }, { 'I', 0, US(300.6) }, { 'I', 0, US(302) },
                        { 'S', 0, US(309) } },
                .entries = 1, .ns = US(300), .interrupt = 1 },
        { .name = "an NMI inside",
                .events = { { 'E', 2, 0 }, { 'I', 0, US(100) }, { 'X', 0, US(101) }, { 'E', 2, US(104) } },
                .entries = 2, .ns = US(101), .interrupt = 1 },
        { .name = "a store, then a task switch",
                .events = { { 'E', 2, 0 }, { 'W', 0, US(299) }, { 'X', 0, US(300) }, { 'S', 0, US(303) } },
                .entries = 1, .ns = US(300), .store = 1 },
        { .name = "need_resched set by this CPU's own softirq: a switch is enough",
                .events = { { 'E', 2, 0 }, { 'X', 0, US(300) }, { 'S', 0, US(303) } },
                .entries = 1, .ns = US(300), .store = 1 },
        { .name = "a timer fires between exit and switch, long after the exit",
                .events = { { 'E', 2, 0 }, { 'W', 0, US(299) }, { 'X', 0, US(300) }, { 'I', 0, US(320) }, { 'S', 0, US(330) } },
                .entries = 1, .ns = US(300), .store = 1 },
        { .name = "a store that wins the race before MWAIT",
                .events = { { 'W', 0, US(9.8) }, { 'E', 2, US(10) }, { 'X', 0, US(10.8) }, { 'S', 0, US(13) } },
                .entries = 1, .ns = US(0.8), .store = 1 },
        { .name = "a nohz kick: a store without a task switch",
                .events = { { 'E', 2, 0 }, { 'W', 0, US(50) }, { 'X', 0, US(51) }, { 'E', 2, US(53) } },
                .entries = 2, .ns = US(51), .store = 1 },
        { .name = "a remote timer enqueue whose waker stamps after the exit",
                .events = { { 'E', 2, 0 }, { 'X', 0, US(50) }, { 'W', 0, US(52) }, { 'E', 2, US(53) } },
                .entries = 2, .ns = US(50), .store = 1 },
        { .name = "a waker that stamps after the next entry",
                .events = { { 'E', 2, 0 }, { 'X', 0, US(50) }, { 'E', 2, US(51) }, { 'W', 0, US(52) }, { 'X', 0, US(400) },
                        { 'I', 0, US(400.3) } },
                .entries = 2, .ns = US(399), .interrupt = 1, .store = 1 },
        { .name = "one store explains one wakeup",
                .events = { { 'E', 2, 0 }, { 'W', 0, US(50) }, { 'X', 0, US(50.5) }, { 'E', 2, US(51) }, { 'X', 0, US(54) },
                        { 'E', 2, US(60) } },
                .entries = 3, .ns = US(53.5), .store = 1, .brk = 1, .immediate = 1 },
        { .name = "a store for another time is no excuse",
                .events = { { 'W', 0, US(10) }, { 'E', 2, US(100) }, { 'X', 0, US(500) }, { 'E', 2, US(510) } },
                .entries = 2, .ns = US(400), .brk = 1 },
        { .name = "a long break is not immediate",
                .events = { { 'E', 2, 0 }, { 'X', 0, US(1000) }, { 'E', 2, US(1010) } },
                .entries = 2, .ns = US(1000), .brk = 1 },
        { .name = "the storm of 2013: an exit without cause every 5 us",
                .events = { { 'E', 2, 0 }, { 'X', 0, US(3) } },
                .repeat = 1000, .period_ns = US(5),
                .tail = { { 'E', 2, US(10) }, { 'X', 0, US(600) }, { 'I', 0, US(600.2) } },
                .entries = 1001, .ns = US(3000 + 590), .interrupt = 1, .brk = 1000, .immediate = 1000 },
        { .name = "POLL is not MWAIT: no break there",
                .events = { { 'E', 0, 0 }, { 'X', 0, US(10) }, { 'E', 0, US(11) }, { 'X', 0, US(20) }, { 'I', 0, US(20.1) } },
                .entries = 2, .ns = US(19), .interrupt = 1, .other = 1 },
        { .name = "hotplug: offline in its sleep, back much later",
                .events = { { 'E', 2, 0 }, { 'E', 1, US(9000000) }, { 'I', 0, US(9000100) }, { 'X', 0, US(9000101) } },
                .entries = 2, .ns = US(101), .interrupt = 1, .lost = 1 },
        { .name = "the first event after attach is an exit",
                .events = { { 'X', 0, 0 }, { 'I', 0, US(1) }, { 'S', 0, US(2) }, { 'E', 2, US(10) }, { 'X', 0, US(310) },
                        { 'I', 0, US(310.2) } },
                .entries = 1, .ns = US(300), .interrupt = 1 },
        { .name = "task switches and interrupts of a busy CPU mean nothing",
                .events = { { 'S', 0, 0 }, { 'I', 0, US(1) }, { 'S', 0, US(2) }, { 'W', 0, US(3) } } },
        { .name = "the interrupt after the next entry belongs to that sleep",
                .events = { { 'E', 2, 0 }, { 'X', 0, US(200) }, { 'E', 2, US(206) }, { 'I', 0, US(207) }, { 'X', 0, US(208) } },
                .entries = 2, .ns = US(202), .interrupt = 1, .brk = 1 },
};

#define N_IDLE_SEQUENCES ARRAY_SIZE(idle_sequences)

/* Calls fn for every event in order, with absolute times. */
static inline int idle_sequence_run(const IdleSequence *q, int (*fn)(void *userdata, const IdleEvent *e), void *userdata) {
        uint64_t base = SEQUENCE_BASE_NS;
        int r = 0;

        for (unsigned n = 0; n < (q->repeat ? q->repeat : 1) && r >= 0; n++) {
                for (const IdleEvent *e = q->events; e->kind && r >= 0; e++)
                        r = fn(userdata, &(IdleEvent){ e->kind, e->state, base + e->ns });
                base += q->period_ns;
        }
        for (const IdleEvent *e = q->tail; e->kind && r >= 0; e++)
                r = fn(userdata, &(IdleEvent){ e->kind, e->state, base + e->ns });
        return r;
}

/* What a reading adds up to over all states. */
typedef struct IdleTotals {
        uint64_t entries, ns, interrupt, store, brk, immediate, other;
} IdleTotals;

static inline IdleTotals idle_totals(const IdleTraceReading *r) {
        IdleTotals t = {};

        for (unsigned i = 0; i < IDLE_TRACE_STATES; i++) {
                t.entries += r->entries[i];
                t.ns += r->ns[i];
                t.interrupt += r->interrupt[i];
                t.store += r->store[i];
                t.brk += r->brk[i];
                t.immediate += r->immediate[i];
                t.other += r->other[i];
        }
        return t;
}

/* Fails the test with all figures where the reading (without a sleep in progress) is not what the sequence says. */
static inline void idle_sequence_check(const IdleSequence *q, const IdleTraceReading *r) {
        IdleTotals t = idle_totals(r);

        if (t.entries != q->entries || t.ns != q->ns || t.interrupt != q->interrupt || t.store != q->store || t.brk != q->brk ||
                t.immediate != q->immediate || t.other != q->other || r->n_lost != q->lost)
                fail_msg("%s: entries %llu ns %llu interrupt %llu store %llu break %llu immediate %llu other %llu lost %llu",
                        q->name, (unsigned long long) t.entries, (unsigned long long) t.ns, (unsigned long long) t.interrupt,
                        (unsigned long long) t.store, (unsigned long long) t.brk, (unsigned long long) t.immediate,
                        (unsigned long long) t.other, (unsigned long long) r->n_lost);
}
