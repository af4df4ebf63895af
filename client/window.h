/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What a person calls a window: "1h" or "last 1h", "START..END", a label. */

#include "cstated/api.h"
#include "query/query-spec.h"

/* Parameters of a request, collected. Values are borrowed. */
typedef struct Params {
        QueryParam params[API_PARAMS_MAX];
        size_t n;
} Params;

/* 0, or -E2BIG with a message. */
int params_add(Params *p, const char *key, const char *value);
bool params_has(const Params *p, const char *key);

typedef struct WindowWords {
        char start[64], end[64];
} WindowWords;

/*
 * "-1h" and "-2h..-1h" among the words are windows, not options that getopt has never heard of: it finds "1h" and
 * "now-2h..-1h" in their place. 0, -ENOMEM.
 */
int window_operands(int argc, char **argv);
/*
 * start= and end=, or label=, of a window in words; w holds their text. A word that is a time span is one: a
 * label of that name is not found. 0, <0 with a message.
 */
int window_params(int n_words, char **words, WindowWords *w, Params *ret);
/* The same for a side of a comparison: "1h" becomes "-1h..now"; other words stay as they are. buf holds what
 * is returned. */
const char *window_side(const char *word, char *buf, size_t size);
