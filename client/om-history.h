/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * History as OpenMetrics text with timestamps: the names of /metrics, counters that begin at 0 where the
 * window does. promtool tsdb create-blocks-from openmetrics takes it. Pure: the CSV of /api/v1/query in,
 * text out.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct OmHistoryMetric {
        const char *metric, *scope; /* what to ask for; of each step the agg below */
        bool mean;          /* the mean (of a gauge, or of a share of time), else the sum */
        bool share;         /* a mean in percent becomes seconds */
        const char *label, *value; /* a constant label, or NULL */
} OmHistoryMetric;

#define OM_HISTORY_METRICS_MAX 8

typedef struct OmHistoryFamily {
        const char *name, *unit, *help;
        bool gauge;
        bool wide; /* only where single CPUs are asked for */
        OmHistoryMetric metrics[OM_HISTORY_METRICS_MAX]; /* ends with a NULL metric */
} OmHistoryFamily;

extern const OmHistoryFamily om_history_families[]; /* ends with a NULL name */

/*
 * Writes one metric's series, each whole, from the body of a query (format=csv, time_format=ms). body is
 * changed. *has_head: the family's HELP and TYPE are out already (set here with the first line). Returns the
 * points written; -EBADMSG where the body is not what was asked for, -ENOMEM.
 */
int om_history_write(const OmHistoryFamily *f, const OmHistoryMetric *m, char *body, uint64_t step_ms,
        bool *has_head, FILE *out);
