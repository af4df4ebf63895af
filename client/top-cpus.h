/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The CPUs of a snapshot as "top" shows them: filtered and sorted. Pure. */

#include "client/top-view.h"

#define TOP_STORM 100.0 /* breaks a second of a CPU: the daemon's own limit for an alarm */

typedef struct TopCpu {
        json_t *cpu, *core;
        double breaks, key;
        json_int_t id;
} TopCpu;

typedef struct TopCpus {
        TopCpu *list;
        size_t n, n_all;
        double seconds;
} TopCpus;

/* NAN where it is null or absent. */
double top_value(const json_t *o, const char *key);
/* A count of the object's wakeups, per second. */
double top_wakeups(const json_t *o, const char *key, double seconds);
/* ret->seconds is the caller's; ret->list to be freed, borrows from the snapshot. 0, -ENOMEM. */
int top_cpus_collect(const TopView *v, json_t *snapshot, TopCpus *ret);
