/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What every verb of cstatectl sees: where the data comes from, and how errors are told. A verb returns one of the
 * CTL_EXIT_* statuses of cstated/api.h and prints errors on stderr itself, once.
 */

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
} Verb;

extern const Verb verbs[]; /* ends with a NULL name */

int cmd_cpu(const Ctl *ctl, int argc, char **argv);
int cmd_query(const Ctl *ctl, int argc, char **argv);
int cmd_snapshot(const Ctl *ctl, int argc, char **argv);
int cmd_status(const Ctl *ctl, int argc, char **argv);

/* "cstatectl: ..." on stderr. */
void ctl_error(const char *format, ...) _printf_(1, 2);
/* After a wrong option: points to --help; returns CTL_EXIT_USAGE. */
int ctl_usage_error(const char *verb);
/* CTL_EXIT_OK, or CTL_EXIT_FAILURE with a message where stdout could not be written (a closed pipe is quiet). */
int ctl_finish_stdout(void);
