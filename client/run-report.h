/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What "run" says of its runs. Pure: figures and summaries in, text or JSON out. */

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct RunFigures {
        double seconds, cpu_seconds;
        double wait_seconds; /* ready to run, without a CPU */
        unsigned n_tasks; /* most threads at once */
        int status;
        bool whole;       /* the window is the whole intervals inside the run; else those that cover it */
        json_int_t start_ms, end_ms; /* of the window */
        json_t *summary;  /* of the window, /api/v1/summary */
} RunFigures;

typedef struct RunReport {
        const char *command; /* as given, for the title */
        const char *name;    /* its first word without the folder */
        const char *label;   /* or NULL */
        double interval_s;
        const RunFigures *runs;
        size_t n;
} RunReport;

/*
 * One row a metric: {metric, state, unit, mean, stddev, n}; of one run over its samples, of several over the
 * runs' means, with a spread from three on. New reference; NULL: out of memory.
 */
json_t *run_report_rows(const RunReport *r);
/*
 * One sentence where the CPUs were mostly idle and the command did not even use what it had: whoever
 * measured it measured waiting, not idle states. False and "" where there is nothing to say.
 */
bool run_report_verdict(const RunReport *r, const json_t *rows, char *buf, size_t size);
/* 0, <0. utf8: "±". */
int run_report_print(const RunReport *r, bool all, bool utf8, FILE *out);
int run_report_json(const RunReport *r, FILE *out);
