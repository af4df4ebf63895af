/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What every verb of cstatectl sees: where the data comes from, and how errors are told. A verb returns one
 * of the CTL_EXIT_* statuses of cstated/api.h and prints errors on stderr itself, once.
 */

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include "cstated/macro.h"

typedef struct Ctl {
        const char *connect; /* SOCKET or HOST:PORT; NULL: $CSTATED_CONNECT or the default socket */
        const char *db;      /* read this database, no daemon */
        bool local;          /* sample here, no daemon */
} Ctl;

typedef struct Verb {
        const char *name;
        const char *summary; /* one line of --help */
        int (*run)(const Ctl *ctl, int argc, char **argv); /* argv[0] is the program's name */
        const struct option *options; /* for completion; getopt_long()'s own table */
        const char *words;            /* what its words are: "label", "command", NULL none */
} Verb;

extern const Verb verbs[]; /* ends with a NULL name */

int cmd_compare(const Ctl *ctl, int argc, char **argv);
int cmd_cpu(const Ctl *ctl, int argc, char **argv);
int cmd_events(const Ctl *ctl, int argc, char **argv);
int cmd_export(const Ctl *ctl, int argc, char **argv);
int cmd_labels(const Ctl *ctl, int argc, char **argv);
int cmd_mark(const Ctl *ctl, int argc, char **argv);
int cmd_doctor(const Ctl *ctl, int argc, char **argv);
int cmd_query(const Ctl *ctl, int argc, char **argv);
int cmd_run(const Ctl *ctl, int argc, char **argv);
int cmd_show(const Ctl *ctl, int argc, char **argv);
int cmd_snapshot(const Ctl *ctl, int argc, char **argv);
int cmd_sql(const Ctl *ctl, int argc, char **argv);
int cmd_status(const Ctl *ctl, int argc, char **argv);
int cmd_top(const Ctl *ctl, int argc, char **argv);

extern const struct option options_compare[], options_cpu[], options_doctor[], options_events[],
        options_export[], options_labels[], options_mark[], options_query[], options_run[], options_show[],
        options_snapshot[], options_sql[], options_status[], options_top[];

/* "cstatectl: ..." on stderr. */
void ctl_error(const char *format, ...) _printf_(1, 2);
/* After a wrong option: points to --help; returns CTL_EXIT_USAGE. */
int ctl_usage_error(const char *verb);
/* CTL_EXIT_OK, or CTL_EXIT_FAILURE with a message where stdout could not be written (a closed pipe is
 * quiet). */
int ctl_finish_stdout(void);
/* Takes the words left behind the options: at least min, at most max of them, else a message and -EINVAL. */
int ctl_words(int argc, char **argv, int min, int max, const char *what);
/* --local has no history: a message and CTL_EXIT_USAGE; else CTL_EXIT_OK. */
int ctl_needs_history(const Ctl *ctl, const char *verb);
/* Columns of the terminal on stdout; 0 where it is none. */
unsigned ctl_width(void);
