/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Inside of the sampler: its turns (sampler.c) and the machine they are laid out by (sampler-machine.c). */

#include "sampler/sampler.h"
#include "sampler/topology.h"

#define SAMPLER_EVENTS_MAX 32

struct Sampler {
        SamplerConfig config;
        Sysfs *sysfs;
        Machine *machine;
        Source *sources[SOURCES_MAX];
        Source *retired[SOURCES_MAX]; /* of the machine before, while the next one is made */
        SamplerStatus status;
        SourceState told[SOURCES_MAX];     /* state the last event was about */
        uint64_t told_ns[SOURCES_MAX];
        Tick *tick;
        CpuActivity *activity;
        TopologyWatch watch;
        uint64_t fingerprint;
        WakePolicy wake_policy;
        const LocalReads *local; /* what lets CPUs read themselves, NULL: not wanted, or not to be had: */
        const char *local_why;
        bool reprobe; /* read the machine anew at the next turn */
        uint64_t seq, prev_ns, next_retry_ns, suspended_ns;
        uint64_t n_reads, n_wakeups, n_missed, n_dropped, rss_bytes, rss_ns;
        unsigned n_retries;
        int statm_fd;
        FrameEvent events[SAMPLER_EVENTS_MAX];
        size_t n_events;
};

/* Keeps the event, dropping the oldest where there are too many. cpu -1: none. */
void sampler_event_add(Sampler *s, const char *kind, int64_t cpu, const char *format, ...) _printf_(4, 5);
/* Reads the machine and its sources anew; 1 where it differs from the one before, 0, -errno (the old one
 * then stays). */
int sampler_machine_rebuild(Sampler *s);
/* The policy in force with the sources as they are, and why it is not the wanted one. */
void sampler_policy_choose(Sampler *s);
/* True where source i gave nothing until now and would give something. */
bool sampler_source_would_work(Sampler *s, size_t i);
void sampler_sources_close(Sampler *s);
