/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Who the two processes are. The server ends with no capability in any set and, where it began as
 * root, as the owner of the database's directory; the sampler keeps the few capabilities that counters need.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct ServerUser {
        bool change; /* false: we stay who we are */
        uid_t uid;
        gid_t gid;
        gid_t socket_group; /* group cstated, (gid_t) -1 where there is none */
        char note[160];     /* for status: why it stays root; "" */
} ServerUser;

/*
 * Makes the directory of the database if it is not there (mode 0750) and finds out whom the server becomes:
 * as root the owner of that directory, for the default one the user cstated if it exists. Not being able to
 * make it is no error here: the store says so. -ENOMEM only.
 */
int privilege_find_user(const char *db_path, ServerUser *ret);
/* Makes the directory of a unix socket if it is not there (mode 0755, the server's user). -errno. */
int privilege_make_socket_directory(const ServerUser *u, const char *socket_path);

/*
 * Becomes that user and drops every capability from every set, the bounding set included where that is
 * allowed, and sets no_new_privs. A failure to change the user is told in u->note, and root stays root;
 * -errno where capabilities remain.
 */
int privilege_drop(ServerUser *u);
/* For the sampler: keeps CAP_SYS_RAWIO, CAP_DAC_READ_SEARCH, CAP_PERFMON and CAP_BPF as far as they are
 * there. -errno. */
int privilege_limit_sampler(void);
