/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Events of the kernel's counting PMUs, as /sys/bus/event_source/devices describes them. */

#include "cstated/field.h"
#include "sampler/sysfs.h"

typedef struct PerfEventName {
        FieldId field;
        const char *pmu, *event;
} PerfEventName;

/* Fields and the events that count them; several rows a field are alternatives (cstate_pkg was renamed
 * cstate_die). */
extern const PerfEventName perf_event_names[];
extern const size_t perf_event_names_n;

typedef struct PerfEvent {
        uint32_t type;
        uint64_t config;
        double scale; /* units a count, 1 where the PMU says nothing */
} PerfEvent;

/* Reads an event's type, config and scale. -ENOENT: this kernel or CPU has none; -EOPNOTSUPP: a format we do
 * not know. */
int perf_event_describe(Sysfs *sysfs, const PerfEventName *name, PerfEvent *ret);
/* "event=0x2a" with the format "config:0-7" (or 0-63). -EOPNOTSUPP for any other term. */
int perf_event_parse(const char *event, const char *format, uint64_t *ret_config);
/* A decimal with an optional exponent, as .scale files have it: "2.3283064365386962890625e-10". -EINVAL. */
int perf_scale_parse(const char *text, double *ret);
