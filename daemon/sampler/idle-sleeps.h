/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * How long the CPUs of a package slept: the histograms of their slots (idle-classify.h), added up. Sums only grow: a
 * package keeps them while its CPUs, or itself, come and go. Polling is no sleep.
 */

#include "model/machine.h"
#include "sampler/idle-classify.h"

typedef struct SleepsOfCpu {
        uint32_t n_events, mask;
        uint32_t counted[SLEEP_BUCKETS]; /* of its slot, all states that sleep; wraps with the slot's own */
        uint64_t ns;
} SleepsOfCpu;

typedef struct SleepsOfPackage {
        int32_t package, die;
        uint64_t buckets[SLEEP_BUCKETS], ns; /* of sleeps that ended */
} SleepsOfPackage;

typedef struct IdleSleeps {
        uint32_t n_cpus;
        SleepsOfCpu *cpus; /* by id */
        size_t n_packages;
        SleepsOfPackage *packages; /* all there ever were */
        size_t *of;                /* by package of the machine: its place in packages */
} IdleSleeps;

/* For CPU ids below n_cpus. -ENOMEM. */
int idle_sleeps_init(IdleSleeps *s, uint32_t n_cpus);
void idle_sleeps_deinit(IdleSleeps *s);
/* The machine that later calls speak of. -ENOMEM. */
int idle_sleeps_set_machine(IdleSleeps *s, const Machine *m);
/* Adds what ended on a CPU (by index) since the call before; looks no further where the slot had no event since. */
void idle_sleeps_add(IdleSleeps *s, const Machine *m, uint32_t cpu, const struct idle_trace_slot *slot);
/* The sums of a package of the machine. */
const SleepsOfPackage *idle_sleeps_of(const IdleSleeps *s, uint32_t package);
