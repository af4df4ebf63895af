/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Listening sockets from addresses. Needs no loop, so that it can be done while the privilege to bind is
 * still there. */

#include <stddef.h>
#include <sys/types.h>

/*
 * "HOST:PORT" (a host may have several addresses; "*" is all; IPv6 is left out where the kernel has none),
 * or the absolute path of a unix socket: mode 0660 from birth, owned by uid:group ((uid_t) -1, (gid_t) -1:
 * ours); a stale socket is replaced, a live one and any other kind of file refused. Sockets are non-blocking
 * and close-on-exec. Returns how many (>= 1) stand in ret_fds, or -errno with a static sentence in
 * *ret_error.
 */
int listener_open(
        const char *address, uid_t uid, gid_t group, int *ret_fds, size_t max, const char **ret_error);
