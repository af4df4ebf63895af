/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A snapshot as turbostat's table, and what may be asked of it. */

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#define SELECTIONS_MAX 32

typedef enum SnapshotFormat { SNAPSHOT_TABLE, SNAPSHOT_TSV, SNAPSHOT_CSV, SNAPSHOT_JSON } SnapshotFormat;

typedef struct SnapshotOptions {
        uint64_t interval_usec;
        uint64_t n_iterations; /* 0: no end */
        bool has_interval, iterate, summary_only, joules, list;
        SnapshotFormat format;
        const char *out;
        const char *cpus; /* list, "core", "package", NULL all */
        struct {
                const char *list;
                bool show;
        } selections[SELECTIONS_MAX];
        size_t n_selections;
} SnapshotOptions;

/* One table, or what --list and --format ask for. first: with the header that -S prints once. CTL_EXIT_*. */
int snapshot_print(const SnapshotOptions *o, json_t *snapshot, bool first, FILE *out);
