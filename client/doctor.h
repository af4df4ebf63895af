/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What is wrong with the idle of this machine: rules over facts, each with its evidence and what to do. Pure: the facts
 * are gathered by doctor-facts.c from the daemon's answers.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cstated/macro.h"

#define DOCTOR_STATES_MAX 10

/* Means over the window, a second where they are counts; NAN where there is no value. */
typedef struct DoctorState {
        char name[16];
        double usage, above, below, time_percent;
        uint32_t exit_latency_us, target_residency_us;
        int mwait_hint;
        bool disabled, is_poll;
} DoctorState;

typedef struct DoctorCpu {
        uint32_t id;
        int64_t package, core;
        double busy, irq, wakeups, breaks;
        size_t n_states;
        DoctorState states[DOCTOR_STATES_MAX];
} DoctorCpu;

typedef struct DoctorCore {
        int64_t package, die, core;
        double deep; /* granted C6 and deeper, percent */
        double demotion; /* points */
        double busy;     /* of its busiest thread */
} DoctorCore;

typedef struct DoctorPackage {
        int64_t package, die;
        double deep; /* PC3 and deeper that there is, percent */
} DoctorPackage;

typedef struct DoctorFacts {
        char erratum[32];       /* unmitigated one, "" none */
        char erratum_model[64];
        char erratum_advice[512];
        char pkg_limit[32];     /* package C-state limit as decoded, "" unknown */
        bool pkg_limit_blocks;  /* it forbids what the package could do */
        bool msr_denied, power_denied; /* power: by MSR and powercap both */
        char denied_hint[256];
        char problems[512];     /* of the store and other sources, "" none */
        char break_method[16];  /* "bound" or "" */
        double seconds;         /* covered by the window */
        size_t n_cpus, n_cores, n_packages;
        DoctorCpu *cpus;
        DoctorCore *cores;
        DoctorPackage *packages;
} DoctorFacts;

void doctor_facts_deinit(DoctorFacts *f);

typedef struct DoctorFinding {
        const char *id;      /* "break-storm": stable, for --json */
        unsigned weight;     /* 100 most */
        char title[120];
        char evidence[320];
        char advice[512];
} DoctorFinding;

#define DOCTOR_FINDINGS_MAX 16

/* All rules; findings sorted by weight, heaviest first. Returns how many. */
size_t doctor_examine(const DoctorFacts *f, DoctorFinding ret[DOCTOR_FINDINGS_MAX]);

/* Whether any idle state or wakeup was counted: without them no finding is no health. */
bool doctor_saw_idle(const DoctorFacts *f);
