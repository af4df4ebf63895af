/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Idle entries without BPF: counting events of perf on power:cpu_idle, one a CPU and state. Only for machines without
 * cpuidle, whose default idle loop counts nothing itself; where there is cpuidle, its usage says the same for free.
 * Causes cannot be counted so (a waker's event names its target in an argument), nor can time.
 */

#include "sampler/source.h"

typedef struct IdlePerf IdlePerf;

/*
 * Two states, as the kernel's default idle reports them (POLL 0, whatever else 1), where the machine has none.
 * -ENOMEM.
 */
int idle_default_states(Machine *m);

/*
 * Looks whether such events can be had, and gives m its two states and their columns then: *ret and n_counters and
 * detail of status, which is otherwise left alone. *ret is NULL where they cannot, or where cpuidle counts. -ENOMEM.
 */
int idle_perf_new(Sysfs *sysfs, Machine *m, uint8_t index, SourceStatus *status, IdlePerf **ret);
IdlePerf *idle_perf_free(IdlePerf *p);
/* The same for a new machine. */
int idle_perf_columns(IdlePerf *p, Machine *m, uint8_t index, SourceStatus *status);
/* Opens what is not open yet. -ENOMEM. */
int idle_perf_open(IdlePerf *p, const Machine *m);
/* Reads CPUs that did not sleep through (one function-call interrupt each), and each at least once a minute. */
void idle_perf_read(IdlePerf *p, SourceTurn *turn);
