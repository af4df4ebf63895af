/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by daemon.c (life and death), daemon-input.c (frames) and daemon-notify.c (systemd). */

#include "daemon.h"
#include "ingest.h"
#include "watchdog.h"

typedef struct Daemon {
        const DaemonOptions *options;
        Config *config;
        sd_event *loop;
        Service service;
        Store *store;
        StoreReader *reader;
        Ingest *ingest;
        Http *http;
        int socket_fd; /* frames of the sampler, -1 */
        int statm_fd;  /* /proc/self/statm */
        pid_t sampler; /* 0: none, or reaped */
        sd_event_source *frames, *child, *maintain, *grace, *pinger;
        sd_event_source *signals[4];
        Watchdog watchdog;
        uint64_t start_mono_us, frame_mono_us; /* of the last tick, 0: none */
        uint64_t minute;                       /* wall minute of the last housekeeping */
        bool ready, stopping;
        int status;     /* exit status */
        char said[512]; /* last STATUS= */
} Daemon;

uint64_t daemon_now_us(void); /* wall clock */
uint64_t daemon_mono_us(void);
/* Ends the loop with that status. */
void daemon_end(Daemon *d, int status);

/* The part of the store's configuration that can change while it is open. */
void daemon_store_limits(const Config *c, StoreConfig *ret);

/* ---- daemon-input.c ---- */

int daemon_start_input(Daemon *d);
int daemon_start_housekeeping(Daemon *d);

/* ---- daemon-notify.c ---- */

int daemon_start_watchdog(Daemon *d);
/* After a tick: READY=1 with the first one, WATCHDOG=1, STATUS= where it changed. */
void daemon_notify_tick(Daemon *d);
void daemon_reload(Daemon *d);
