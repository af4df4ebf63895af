/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A snapshot of many intervals: /api/v1/summary by scope, put into the form of /api/v1/snapshot. */

#include <jansson.h>

#include "client/conn.h"

/*
 * Pure. summaries: answers for any of the scopes, in any order; rows say where they belong. Counts are the
 * window's, ratios and gauges its means. New reference; NULL: out of memory.
 */
json_t *window_snapshot_build(json_t *const *summaries, size_t n, json_int_t start_ms, json_int_t end_ms);
/* Asks for each scope. CTL_EXIT_*. */
int window_snapshot(Conn *c, json_int_t start_ms, json_int_t end_ms, json_t **ret);
