/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What happens before the server's loop exists: sockets from systemd, directories, the sampler's fork,
 * listeners, and the dropping of privileges, in this order.
 */

#include "config.h"
#include "http/http.h"
#include "privilege.h"

typedef struct Launch {
        ServerUser user;
        bool is_sampler; /* in the child: socket_fd is its end */
        int socket_fd;   /* frames; -1 where nothing was forked */
        pid_t sampler;   /* 0: none */
        int listeners[HTTP_LISTENERS_MAX];
        bool unlink_at_end[HTTP_LISTENERS_MAX];
        size_t n_listeners;
} Launch;

#define LAUNCH_INIT                                                                                         \
        { .socket_fd = -1 }

/* Logs its errors. 0, or the exit status. fork_sampler false: for a replay. */
int launch(const Config *c, bool fork_sampler, Launch *ret);
/* Closes what was not taken over. */
void launch_deinit(Launch *l);
