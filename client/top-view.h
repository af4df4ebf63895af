/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What "top" shows, as lines of ASCII. Pure: a snapshot and the state of the view in, a frame out; the
 * terminal, plain output and tests take the same lines.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum TopSort {
        TOP_SORT_HOT, /* CPUs with a storm of breaks first, the worst of them before, then the busiest */
        TOP_SORT_BUSY,
        TOP_SORT_BREAK,
        TOP_SORT_WAKE,
        TOP_SORT_C6,   /* the least granted first */
        TOP_SORT_DEMOTION,
        TOP_SORT_CPU,
        TOP_SORT_N,
} TopSort;

typedef enum TopAttr { TOP_PLAIN, TOP_HEADER, TOP_ALARM, TOP_FOOT } TopAttr;

#define TOP_FILTER_MAX 64
#define TOP_WIDTH_MAX 512

typedef struct TopView {
        TopSort sort;
        bool reverse, paused;
        char filter[TOP_FILTER_MAX]; /* a CPU list, "p1" (a package), ">5" (busier than 5 %); "" all */
        bool typing;                 /* the filter is being typed, into prompt */
        char prompt[TOP_FILTER_MAX];
        size_t scroll;               /* CPU rows skipped; cut to what there is when rendered */
        const char *place;           /* where the data comes from */
        double own_percent;          /* of a CPU, cstatectl itself; <0 unknown */
} TopView;

typedef struct TopLine {
        char text[TOP_WIDTH_MAX + 1];
        TopAttr attr;
} TopLine;

typedef struct TopFrame {
        TopLine *lines;
        size_t n, size;
} TopFrame;

void top_frame_deinit(TopFrame *f);
const char *top_sort_name(TopSort s);
/* True for a filter that can be used. */
bool top_filter_is_valid(const char *filter);
/* width: lines are cut there. height 0: every CPU and no line of keys; else exactly so many lines at most.
 * 0, -ENOMEM. */
int top_render(TopView *v, json_t *snapshot, unsigned width, unsigned height, TopFrame *ret);
