/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Rows of /api/v1/summary and /compare for people: names as turbostat's columns, units, and what goes
 * without saying. */

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "client/table.h"

#define ROW_TEXT 48

/* "CPU%c6", "C6%", "Wake/s"; the metric's id where it has no column. */
void row_name(const json_t *row, char buf[ROW_TEXT]);
/* "cpu 3", "core 0/3", "package 1", "package 0/2" with a die; "" for the system. */
void row_entity(const json_t *row, char buf[ROW_TEXT]);
/* "%", "W", "1/s" ... of a mean. */
const char *row_unit(const json_t *row);
/* A figure in the unit of row, rounded as a person reads it; "-" where v is not finite. */
void row_number(const json_t *row, double v, char buf[ROW_TEXT]);
/* NAN where the key is null or absent. */
double row_value(const json_t *o, const char *key);
/* "0.4%": stddev as part of the mean; "-" where there is none. */
void row_spread(double mean, double stddev, char buf[ROW_TEXT]);
/* True for what only --all shows: our own cost, what is unknown, counters that stood still. */
bool row_is_dull(const json_t *row, double mean);

/* The table of a summary. all: dull rows too. 0, <0. */
int summary_print(const json_t *summary, bool all, FILE *out);
/* The row of that metric (and state, or NULL) for the system; NULL. */
json_t *summary_find(const json_t *summary, const char *metric, const char *state);
