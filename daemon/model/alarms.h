/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Conditions worth an event, found in the stream of samples. Pure.
 *
 *   break-storm     on some CPU more than break_share of the idle exits are breaks, and more than break_rate a second,
 *                   for `intervals` samples in a row: what the CLFLUSH-before-MONITOR erratum looks like
 *   deep-idle-lost  on some core less than deep_idle_share of the deep idle time requested is granted, for as many
 *                   readings in a row: demotion, a BIOS limit, a firmware's mind of its own
 *
 * One event when a condition begins anywhere on the machine, naming the worst place and how many share it; one when it
 * has been over everywhere for as long as it took to begin. It is told again when it has spread to twice as many.
 */

#include "model/sample.h"

typedef struct AlarmRules {
        uint64_t break_share_permyriad; /* [Events] BreakShare= */
        uint64_t break_rate;            /* a second; BreakRate= */
        uint64_t deep_idle_share_permyriad; /* DeepIdleShare= */
        uint64_t intervals;             /* Intervals= */
        bool unmitigated;               /* an erratum of MONITOR/MWAIT is not worked around here: say so */
} AlarmRules;

#define ALARM_RULES_INIT { \
                .break_share_permyriad = 1000, .break_rate = 100, .deep_idle_share_permyriad = 5000, .intervals = 3, \
        }

typedef enum AlarmKind {
        ALARM_BREAK_STORM,
        ALARM_DEEP_IDLE_LOST,
        ALARM_N,
} AlarmKind;

typedef struct AlarmEvent {
        AlarmKind kind;
        bool begins;   /* else it is over */
        int64_t cpu;   /* kernel id of the worst place's CPU; -1 when over */
        char text[224];
} AlarmEvent;

const char *alarm_kind_name(AlarmKind k); /* "break-storm", "deep-idle-lost" */

typedef struct Alarms Alarms;

Alarms *alarms_new(void);
Alarms *alarms_free(Alarms *a);
DEFINE_CLEANUP(Alarms *, alarms_free);

/*
 * Takes the next sample; fills at most ALARM_N events and sets *ret_n. Runs of CPUs survive a new machine by CPU id.
 * -ENOMEM.
 */
int alarms_push(Alarms *a, const AlarmRules *rules, const Sample *s, AlarmEvent ret[ALARM_N], size_t *ret_n);
