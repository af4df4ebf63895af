/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Runs somebody's command as env(1) and time(1) do: signals, exit status, what it used. */

#include <stdbool.h>
#include <stdint.h>

typedef struct ChildResult {
        int status;         /* as a shell has it: 128+N after a signal; 126, 127 when it could not be run */
        int error;          /* errno of exec, 0 if it ran */
        bool interrupted;   /* it ended by a signal, or we were told to end */
        uint64_t start_us, end_us; /* CLOCK_REALTIME */
        double seconds;     /* by CLOCK_MONOTONIC */
        double cpu_seconds; /* of it and all it waited for */
        double wait_seconds; /* its threads were ready to run and had no CPU, as far as seen while it ran */
        unsigned n_tasks;   /* most threads seen at once, of it and its descendants; at least 1 */
} ChildResult;

/* Called now and then while it runs. */
typedef void (*ChildTick)(void *userdata, double seconds);

/*
 * Runs argv and waits. SIGINT and SIGQUIT are the command's while it runs, SIGTERM and SIGHUP are passed on.
 * 0, or -errno where there was no process to be had.
 */
int child_run(char **argv, ChildTick tick, void *userdata, ChildResult *ret);
