/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Windows by name or by time, and the pieces of JSON that summary and compare share. */

#include "query/collect.h"

#include "api/route-private.h"

#define WINDOWS_MAX 64 /* of one label; the newest count */

typedef struct Window {
        uint64_t start_us, end_us;
} Window;

typedef struct WindowSet {
        char label[65]; /* "" where the window was given by time */
        Window list[WINDOWS_MAX];
        size_t n, n_all; /* n_all: windows the label has */
} WindowSet;

/* A label's windows, newest first; an open one ends now. 0; -ENOENT: no such label. */
int window_set_label(StoreReader *r, const char *name, uint64_t now_us, WindowSet *ret);

/*
 * What summary and compare begin with: the parameters of that form, the whole system where no scope is given, and
 * a store to ask. 0; 1 with an error reply; <0.
 */
int window_spec_parse(Service *s, const Request *q, QueryForm form, QuerySpec *spec, Reply *ret);

/* "metric", "scope", ids, "state", "unit" of a row, into the open object. */
void write_row_identity(JsonWriter *j, const QueryRow *row);
