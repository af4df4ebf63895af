/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the sampler says of its sources: plain data, sent when it changes, as JSON in a frame. */

#include <stddef.h>
#include <stdint.h>

typedef enum SourceState {
        SOURCE_OK,
        SOURCE_ABSENT,   /* this machine or kernel has none */
        SOURCE_DENIED,   /* it is there and we may not */
        SOURCE_ERROR,
        SOURCE_DISABLED, /* by configuration */
} SourceState;

const char *source_state_name(SourceState s);
int source_state_from_name(const char *name, SourceState *ret);

typedef struct SourceStatus {
        char name[16];
        SourceState state;
        int error;        /* errno, 0 if none */
        char hint[256];   /* what it means and what a person can do; "" when ok */
        char detail[128]; /* "libcpupower, 5 states", "3 registers absent: 0x60d" */
        uint32_t n_counters; /* columns it gives */
} SourceStatus;

#define SOURCES_MAX 12

typedef struct SamplerStatus {
        uint32_t n_sources;
        SourceStatus sources[SOURCES_MAX];
        char wake_policy[16];   /* in force: local, lazy, always */
        char wake_policy_hint[192]; /* why it is not the wanted one, "" where it is */
        char capabilities[128]; /* of the sampler, for people */
} SamplerStatus;

/* JSON text, malloc'd; NULL when out of memory. */
char *sampler_status_to_json(const SamplerStatus *s);
/* Validates everything. -EBADMSG, -ENOMEM. */
int sampler_status_from_json(const char *json, size_t n, SamplerStatus *ret);
