/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A slot's 32-bit buckets wrap after some hours of a storm and the slot is its CPU's, so what is added is the
 * difference
 * to the reading before, modulo 2^32. The slot may be written meanwhile: every counter is right by itself, and
 * what is
 * missed now comes next time, since the number of events is read first.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cstated/macro.h"
#include "sampler/idle-sleeps.h"

_Static_assert(SLEEP_BUCKETS == IDLE_TRACE_BUCKETS, "fields and BPF programs count the same buckets");

int idle_sleeps_init(IdleSleeps *s, uint32_t n_cpus) {
        *s = (IdleSleeps){ .n_cpus = n_cpus, .cpus = calloc(MAX(n_cpus, 1u), sizeof(*s->cpus)) };
        return s->cpus ? 0 : -ENOMEM;
}

void idle_sleeps_deinit(IdleSleeps *s) {
        free(s->cpus);
        free(s->packages);
        free(s->of);
        *s = (IdleSleeps){};
}

/* The place of a package, made where it is new; SIZE_MAX: no memory. */
static size_t place_of(IdleSleeps *s, const MachinePackage *p) {
        SleepsOfPackage *grown;

        for (size_t i = 0; i < s->n_packages; i++)
                if (s->packages[i].package == p->package && s->packages[i].die == p->die)
                        return i;
        grown = reallocarray(s->packages, s->n_packages + 1, sizeof(*grown));
        if (!grown)
                return SIZE_MAX;
        s->packages = grown;
        s->packages[s->n_packages] = (SleepsOfPackage){ .package = p->package, .die = p->die };
        return s->n_packages++;
}

int idle_sleeps_set_machine(IdleSleeps *s, const Machine *m) {
        size_t *of = reallocarray(s->of, (size_t) m->n_packages + 1, sizeof(*of));

        if (!of)
                return -ENOMEM;
        s->of = of;
        for (uint32_t i = 0; i < m->n_packages; i++) {
                of[i] = place_of(s, &m->packages[i]);
                if (of[i] == SIZE_MAX)
                        return -ENOMEM;
        }
        return 0;
}

/* The states that count, as bits. */
static uint32_t sleeping_mask(const Machine *m, uint32_t cpu) {
        const IdleSet *set = machine_idle_set(m, cpu);
        uint32_t mask = 0;

        for (uint32_t k = 0; set && k < set->n_states; k++)
                if (!set->states[k].is_poll)
                        mask |= 1u << k;
        return mask;
}

static void slot_sum(const struct idle_trace_slot *slot, uint32_t mask, SleepsOfCpu *ret) {
        *ret = (SleepsOfCpu){ .n_events = __atomic_load_n(&slot->n_events, __ATOMIC_ACQUIRE), .mask = mask };
        for (uint32_t k = 0; k < IDLE_TRACE_STATES; k++) {
                const struct idle_trace_state *st = &slot->states[k];

                if (!(mask >> k & 1) || __atomic_load_n(&st->entries, __ATOMIC_RELAXED) == 0)
                        continue;
                ret->ns += __atomic_load_n(&st->ns, __ATOMIC_RELAXED);
                for (unsigned b = 0; b < SLEEP_BUCKETS; b++)
                        ret->counted[b] += __atomic_load_n(&st->histogram[b], __ATOMIC_RELAXED);
        }
}

void idle_sleeps_add(IdleSleeps *s, const Machine *m, uint32_t cpu, const struct idle_trace_slot *slot) {
        uint32_t id = m->cpus[cpu].id, mask = sleeping_mask(m, cpu);
        SleepsOfPackage *p = &s->packages[s->of[m->cpus[cpu].package]];
        SleepsOfCpu now, *was;

        if (id >= s->n_cpus)
                return;
        was = &s->cpus[id];
        if (was->mask == mask && was->n_events == __atomic_load_n(&slot->n_events, __ATOMIC_ACQUIRE))
                return;
        slot_sum(slot, mask, &now);
        /* other states count from now on (a new idle driver): begin there */
        if (was->mask == mask || was->mask == 0) {
                p->ns += now.ns - was->ns;
                for (unsigned b = 0; b < SLEEP_BUCKETS; b++)
                        p->buckets[b] += (uint32_t) (now.counted[b] - was->counted[b]);
        }
        *was = now;
}

const SleepsOfPackage *idle_sleeps_of(const IdleSleeps *s, uint32_t package) {
        return &s->packages[s->of[package]];
}
