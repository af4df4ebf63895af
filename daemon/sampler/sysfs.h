/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The only way to /sys, /proc and /dev: a handle with a root directory, "/" on a real machine, a fixture
 * tree in unit tests. Paths are relative to it ("sys/devices/system/cpu/online"). All results are -errno.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cstated/macro.h"

typedef struct Sysfs Sysfs;

int sysfs_new(const char *root, Sysfs **ret);
Sysfs *sysfs_free(Sysfs *s);
DEFINE_CLEANUP(Sysfs *, sysfs_free);

/* True on a real machine: libraries with paths of their own see the same tree. */
bool sysfs_is_host(const Sysfs *s);

/* O_RDONLY|O_CLOEXEC fd of a formatted path. */
int sysfs_open(Sysfs *s, const char *format, ...) _printf_(2, 3);
bool sysfs_exists(Sysfs *s, const char *format, ...) _printf_(2, 3);
/* First line without the newline, cut to size: -ENODATA when empty. */
int sysfs_read_line(Sysfs *s, char *buf, size_t size, const char *format, ...) _printf_(4, 5);
int sysfs_read_u64(Sysfs *s, uint64_t *ret, const char *format, ...) _printf_(3, 4);
int sysfs_read_i64(Sysfs *s, int64_t *ret, const char *format, ...) _printf_(3, 4);
/* The whole file up to max bytes, terminated and malloc'd; -EFBIG beyond. */
int sysfs_read_file(Sysfs *s, size_t max, char **ret, size_t *ret_n, const char *format, ...) _printf_(5, 6);
int sysfs_read_cpulist(Sysfs *s, uint32_t **ret, size_t *ret_n, const char *format, ...) _printf_(4, 5);
/* Names in a directory for which match (NULL: all) is true, sorted numerically where they end in digits.
 * Free with sysfs_names_free. */
int sysfs_list(Sysfs *s, bool (*match)(const char *name), char ***ret, size_t *ret_n, const char *format,
        ...) _printf_(5, 6);
void sysfs_names_free(char **names, size_t n);

/* A decimal number from a kept fd by pread at offset 0. */
int sysfs_pread_u64(int fd, uint64_t *ret);
