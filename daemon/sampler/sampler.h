/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The privileged process: a timer on an absolute grid, the sources, a bounded queue of frames to one socket.
 * Holds no listener and no database; ends on EOF of its socket.
 */

#include "sampler/frame.h"
#include "sampler/source.h"

typedef struct SamplerConfig {
        uint64_t interval_usec;   /* 100 ms .. 60 s */
        WakePolicy wake_policy;
        bool wake_policy_set;     /* false: local where it can be had, else lazy */
        uint32_t disabled_sources; /* bit i: source_table[i] */
        int record_fd;            /* -1: none; frames are also appended there */
} SamplerConfig;

#define SAMPLER_CONFIG_INIT { .interval_usec = 1000000, .wake_policy = WAKE_LAZY, .record_fd = -1 }

/* One turn without a loop, for --local and tests. */
typedef struct Sampler Sampler;
/* sysfs is borrowed. Raises RLIMIT_NOFILE to its hard limit. -errno where not even the online CPUs can be
 * read. */
int sampler_new(const SamplerConfig *c, Sysfs *sysfs, Sampler **ret);
Sampler *sampler_free(Sampler *s);
DEFINE_CLEANUP(Sampler *, sampler_free);
/* Reads all sources. 1: the machine changed (sampler_machine() is new, the tick is laid out by it). *ret
 * borrowed until the next turn. */
int sampler_turn(Sampler *s, const Tick **ret);
const Machine *sampler_machine(const Sampler *s);
const SamplerStatus *sampler_status(const Sampler *s);
/* The oldest event (hotplug, suspend, source) not yet taken: 1 and *ret, or 0. At most 32 are kept. */
int sampler_take_event(Sampler *s, FrameEvent *ret);
/* What the loop around the sampler counts: ticks its timer skipped, frames its queue dropped. Cumulative. */
void sampler_set_losses(Sampler *s, uint64_t n_missed, uint64_t n_dropped);

/* The process body: runs until EOF on socket_fd; returns an exit status. Closes every other fd but
 * record_fd. */
int sampler_main(const SamplerConfig *c, int socket_fd);

/* "local", "lazy", "always"; "-idletrace,-perf" or "cpuidle,irq" against source_table. -EINVAL. */
int wake_policy_from_name(const char *name, WakePolicy *ret);
const char *wake_policy_name(WakePolicy p);
int sampler_parse_sources(const char *list, uint32_t *ret_disabled);
