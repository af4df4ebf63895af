/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The open minute: ticks that are in no chunk yet, in a file mapped from a tmpfs, so that they outlive the
 * process and cost no disk. A tick is written, then counted (release): whatever kills us, the file holds
 * whole ticks only. Where no file can be had it is plain memory, and the minute is lost with us.
 */

#include "model/machine.h"
#include "store/chunk.h"

typedef struct Head Head;

/* What the ticks belong to; travels in the file. */
typedef struct HeadOwner {
        char boot_id[40];
        uint64_t seq;      /* of the first tick */
        uint64_t epoch;    /* number of the epoch row */
        uint64_t epoch_us; /* its beginning */
} HeadOwner;

/*
 * Opens and locks the file; path NULL: memory only. -EBUSY: another process has it; other -errno: no file
 * there, and *ret works in memory all the same. NULL only for -ENOMEM and -EBUSY.
 */
int head_new(const char *path, Head **ret);
Head *head_free(Head *h); /* leaves the file */
DEFINE_CLEANUP(Head *, head_free);

/*
 * What an earlier process left: 1 and *ret_* (all borrowed until head_begin), 0 nothing, -EBADMSG a file
 * that is none of ours or damaged. The layout is as the ticks were written.
 */
int head_left(Head *h, HeadOwner *ret_owner, const char **ret_json, Layout *ret_layout, TickRows *ret_rows);

/* Starts over, empty, for ticks of this layout. json describes the machine. Falls back to memory (-errno of
 * the file is returned, the head works). -ENOMEM. */
int head_begin(Head *h, const HeadOwner *owner, const Layout *l, const char *json);
/* Empties it for the next minute. */
void head_restart(Head *h, const HeadOwner *owner);

/* Adds to the numbers that were given before the database could be had. */
void head_renumber(Head *h, uint64_t seq, uint64_t epoch);

/* -ENOBUFS: full, or the file cannot grow: end the minute. */
int head_append(Head *h, const TickRecord *record, const int64_t *values, const uint8_t *reasons);
/* The ticks so far; borrowed until head_restart or head_begin. */
TickRows head_rows(const Head *h);
const HeadOwner *head_owner(const Head *h);
bool head_is_file(const Head *h);
/* Whether its file is open (and locked): head_begin() may find room in it again. */
bool head_has_fd(const Head *h);
