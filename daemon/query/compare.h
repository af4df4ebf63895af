/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Two measurements side by side, as Intel's LKP prints them: mean ±%stddev, %change, mean ±%stddev, n of
 * each. A share (percent) changes in percentage points, everything else in percent. What is unknown on one
 * side leaves the change unknown. Pure.
 */

#include "cstated/catalogue.h"
#include "model/machine.h"
#include "query/stats.h"

typedef struct CompareSide {
        double mean;
        double stddev;         /* NAN for n < 3 */
        double stddev_percent; /* NAN for n < 3 or a mean of 0 */
        uint64_t n;            /* runs, or ticks of one window */
        Reason reason;         /* REASON_NONE: there is a mean */
} CompareSide;

typedef struct CompareRow {
        CompareSide a, b;
        bool points;   /* change is in percentage points, else in percent */
        double change; /* NAN: unknown, or in percent of a mean of 0 */
} CompareRow;

/*
 * From n run means (or one window's ticks, with mean of its own: sum over sum, which is not the mean of
 * ratios).
 */
void compare_side_from_stats(const Stats *s, double mean, Reason reason, CompareSide *ret);
void compare_row(const MetricSpec *m, const CompareSide *a, const CompareSide *b, CompareRow *ret);

/*
 * What makes two windows hard to compare. Filled from the last machine seen in each; "" and 0 where unknown.
 */
typedef struct CompareFacts {
        bool known;
        char model[96]; /* vendor, family, model, stepping, brand */
        uint32_t microcode;
        char kernel[65];
        char driver[32], governor[32];
        char states[256]; /* names of every set's states, enabled ones marked */
        uint32_t n_cpus;
} CompareFacts;

void compare_facts(const Machine *m, CompareFacts *ret);

#define COMPARE_WARNINGS_MAX 8
#define COMPARE_WARNING_SIZE 640

/*
 * One sentence each where model, microcode, kernel, driver, governor, idle states or the number of CPUs
 * differ. Returns how many.
 */
size_t compare_warnings(
        const CompareFacts *a, const CompareFacts *b, char ret[COMPARE_WARNINGS_MAX][COMPARE_WARNING_SIZE]);
