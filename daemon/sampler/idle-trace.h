/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The loaded BPF object of idle.bpf.c: one mmap'able slot a CPU. Reading costs no system call and touches no CPU.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cstated/macro.h"
#include "sampler/idle-classify.h"
#include "sampler/idle-local.h"
#include "sampler/local-reads.h"

typedef struct IdleTrace IdleTrace;

/*
 * Loads for CPU ids below n_cpus and attaches to every tracepoint this kernel has; nothing is recorded yet. -errno as
 * the kernel gave it (-ENOENT: no BTF or no power:cpu_idle). with_tests also loads the programs for BPF_PROG_TEST_RUN
 * and attaches nothing.
 */
int idle_trace_new(uint32_t n_cpus, bool with_tests, IdleTrace **ret);
IdleTrace *idle_trace_free(IdleTrace *t);
DEFINE_CLEANUP(IdleTrace *, idle_trace_free);

/* Which states of this CPU are MWAIT, and their target residencies; before recording begins or later. */
void idle_trace_configure(IdleTrace *t, uint32_t cpu, uint32_t mwait_mask,
        const uint32_t target_residency_us[IDLE_TRACE_STATES]);
/* Everything is attached: count from now on. */
void idle_trace_record(IdleTrace *t);
/* Names of the attached tracepoints, for people. */
const char *idle_trace_attached(const IdleTrace *t);

/* The live slot; NULL where the id is out of range. */
const struct idle_trace_slot *idle_trace_slot(const IdleTrace *t, uint32_t cpu);

typedef struct IdleTraceReading {
        bool seen;             /* this CPU has had an event since recording began */
        uint64_t asleep_since; /* ns, 0: awake */
        uint64_t entries[IDLE_TRACE_STATES];
        uint64_t ns[IDLE_TRACE_STATES]; /* with the sleep in progress up to now_ns */
        uint64_t interrupt[IDLE_TRACE_STATES], store[IDLE_TRACE_STATES], brk[IDLE_TRACE_STATES];
        uint64_t immediate[IDLE_TRACE_STATES], other[IDLE_TRACE_STATES];
        uint64_t n_lost;
} IdleTraceReading;

/* A consistent reading of a slot that its CPU may be writing. now_ns was taken before the call. */
void idle_trace_read(const struct idle_trace_slot *slot, uint64_t now_ns, IdleTraceReading *ret);

/*
 * Counters that CPUs read themselves as they go idle (idle-local.h). -errno where this kernel's tracing programs may
 * not read perf events; all below then does nothing.
 */
int idle_trace_local_error(const IdleTrace *t);
/* The event of a CPU's column from now on; the kernel keeps it open, fd may be closed. fd < 0: none. -errno. */
int idle_trace_local_event(IdleTrace *t, uint32_t cpu, unsigned column, int fd);
/* Which columns a CPU reads; indices are below n_cpus. */
void idle_trace_local_want(IdleTrace *t, uint32_t cpu, const LocalWant *want);
/* A new interval: every CPU reads once more, at its next idle entry. */
void idle_trace_local_due(IdleTrace *t);
/* NULL: no such CPU, or none are read. */
const struct idle_local_slot *idle_trace_local_slot(const IdleTrace *t, uint32_t cpu);
/* The last whole reading of a slot that its CPU may be writing; false: none, or it was never seen whole. */
bool idle_local_read(const struct idle_local_slot *slot, LocalReading *ret);

typedef struct IdleTraceCost {
        uint64_t ns, runs; /* of all programs together since they were loaded */
} IdleTraceCost;
/*
 * What the programs cost, as the kernel counts it while kernel.bpf_stats_enabled is 1 (it is 0 by default:
 * counting costs more).
 */
int idle_trace_cost(const IdleTrace *t, IdleTraceCost *ret);
/* Switches that counting on for as long as the returned fd is open; -errno. */
int idle_trace_count_cost(void);

/* Runs a test_* program ("test_idle", ...) on a CPU through BPF_PROG_TEST_RUN. */
int idle_trace_test_run(IdleTrace *t, const char *program, uint32_t cpu, const uint64_t *args, size_t n_args);
