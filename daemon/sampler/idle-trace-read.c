/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading a slot while its CPU writes it. The writer moves a sleep from "in progress" to "finished" in two stores,
 * so a
 * reader could count it twice or not at all; it reads the start of the sleep before and after and tries again where
 * they differ. A sleep in progress is counted up to a time taken before the first read, hence never more than the
 * finished sleep will be: sums only grow.
 */

#include "sampler/idle-trace.h"

#define READ_ATTEMPTS 8

static uint64_t load(const __u64 *p) {
        return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static void read_states(const struct idle_trace_slot *slot, IdleTraceReading *ret) {
        *ret = (IdleTraceReading){ .n_lost = slot->n_lost };
        for (unsigned i = 0; i < IDLE_TRACE_STATES; i++) {
                const struct idle_trace_state *st = &slot->states[i];

                ret->entries[i] = load(&st->entries);
                ret->ns[i] = load(&st->ns);
                ret->brk[i] = load(&st->brk);
                ret->interrupt[i] = load(&st->interrupt);
                ret->store[i] = load(&st->store);
                ret->immediate[i] = load(&st->immediate);
                ret->other[i] = load(&st->other);
        }
}

void idle_trace_read(const struct idle_trace_slot *slot, uint64_t now_ns, IdleTraceReading *ret) {
        for (unsigned attempt = 0; attempt < READ_ATTEMPTS; attempt++) {
                uint64_t start = load(&slot->sleep_start);
                uint32_t state = __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE);

                read_states(slot, ret);
                if (start != load(&slot->sleep_start))
                        continue;
                ret->seen = __atomic_load_n(&slot->n_events, __ATOMIC_RELAXED) > 0;
                ret->asleep_since = start;
                if (start && start < now_ns && state < IDLE_TRACE_STATES)
                        ret->ns[state] += now_ns - start;
                return;
        }
        /*
         * It keeps waking and sleeping faster than we read: it is as good as awake, and its finished sleeps are
         * right.
         */
        ret->seen = true;
        ret->asleep_since = 0;
}

/* One writer, which makes seq odd for as long as it writes: what was copied between two equal even ones is whole. */
bool idle_local_read(const struct idle_local_slot *slot, LocalReading *ret) {
        _Static_assert(LOCAL_COLUMNS_MAX == IDLE_LOCAL_COLUMNS, "a reading holds a slot");

        for (unsigned attempt = 0; attempt < READ_ATTEMPTS; attempt++) {
                uint32_t seq = __atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE);

                if (seq == 0)
                        return false;
                if (seq & 1)
                        continue;
                ret->ns = load(&slot->ns);
                ret->running = load(&slot->running);
                ret->got = __atomic_load_n(&slot->got, __ATOMIC_RELAXED);
                for (unsigned i = 0; i < IDLE_LOCAL_COLUMNS; i++)
                        ret->values[i] = load(&slot->values[i]);
                if (__atomic_load_n(&slot->seq, __ATOMIC_ACQUIRE) == seq)
                        return true;
        }
        return false;
}
