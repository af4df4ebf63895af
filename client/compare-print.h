/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The answer of /api/v1/compare in the layout of LKP's compare: mean ±%stddev, %change, mean ±%stddev,
 * metric. */

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct ComparePrint {
        double threshold; /* changes smaller than so many percent (points, of residencies) are left out */
        bool all;         /* rows that nothing happened in, too */
        bool utf8;        /* "±" instead of "+-" */
        unsigned width;   /* of the terminal; 0: none. Under 72 a row takes two lines */
} ComparePrint;

/* a, b: what the sides are called. Returns the number of rows printed. */
size_t compare_print(const json_t *root, const char *a, const char *b, const ComparePrint *p, FILE *out);
