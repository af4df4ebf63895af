/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The private mount namespace in which the fake tree stands where the kernel's files are. */

#include <stdbool.h>

/* Becomes root of a new user namespace if need be and takes a private mount namespace. 0, or -errno with
 * *ret_what. */
int mounts_isolate(const char **ret_what);
/* Puts the tree under `root` in place. 0, or -errno with *ret_what naming the target. */
int mounts_place(const char *root, bool need_powercap, const char **ret_what);
