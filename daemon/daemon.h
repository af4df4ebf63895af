/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The server: its loop, and what happens in it. */

#include "config.h"
#include "launch.h"

typedef struct DaemonOptions {
        Config *config; /* in force; a reload changes what it may */
        Launch *launch; /* its descriptors are taken over */
        int replay_fd;  /* frames of a file instead of a sampler, or -1 */
        /* Reads the configuration again as at start: 0, or <0 after having said why. */
        int (*load)(void *userdata, Config *ret);
        void *userdata;
} DaemonOptions;

/* Runs until it is told to stop or the sampler ends; returns the exit status. Logs. */
int daemon_run(const DaemonOptions *o);
