/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What a CPU read of its own counters as it went idle: the half of it that the BPF program and the daemon share, one
 * slot a CPU.
 *
 * A reading is taken at idle *entry*, on the CPU itself, at most once in an interval (each bump of `due` asks for one),
 * so it costs nobody a wakeup. It covers all that happened up to its `ns`: this thread's MPERF and APERF, and the
 * granted residency of its core, module and package with the part of it that was won while siblings slept too. It does
 * not cover the sleep that begins there, nor what the CPU does after waking from it in the same interval: counters are
 * cumulative, so the next reading does.
 */

#include <linux/types.h>

#define IDLE_LOCAL_COLUMNS 24 /* bits of the masks below */

struct idle_local_slot {
        __u32 seq;   /* odd while the CPU writes */
        __u32 got;   /* columns that could be read; the others' values mean nothing */
        __u64 ns;    /* CLOCK_MONOTONIC: the idle entry itself, sleep_start of the CPU's idle_trace_slot */
        __u64 running; /* ns the first own event has counted */
        __u64 values[IDLE_LOCAL_COLUMNS];
        /* written by user space */
        __u32 own;             /* columns of this CPU alone */
        __u32 core_columns;    /* of its core and module */
        __u32 package_columns; /* one CPU of the package reads them in an interval, the first that goes idle */
        __u32 core, package;   /* slots in whose readers their CPUs meet */
        /* written by all CPUs that have this slot's index as theirs */
        __u32 core_readers, package_readers;
        __u32 pad;
};
