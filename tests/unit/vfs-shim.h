/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A layer over sqlite's unix VFS that counts, fails and forgets: writes and syncs are counted, writes can be
 * made to fail, and the files can be copied as a power cut would have left them: what was synced, and any
 * part of what was not. Registered as the default VFS, so that the code under test knows nothing of it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct VfsShim {
        uint64_t reads, writes, bytes, syncs; /* bytes: written */
        int fail_write; /* SQLITE_FULL, SQLITE_IOERR_WRITE: what every write and truncation gives; 0: they
                           work */
        int fail_sync;
        bool read_only;      /* opening for writing fails */
        uint64_t fail_after; /* writes that still work before fail_write begins */
        bool track;          /* keep what is needed for vfs_shim_cut(); set before files are opened */
        /* Called before each write, truncation and sync of a tracked file: a moment for a power cut; NULL ok. */
        void (*on_io)(void *userdata);
        void *userdata;
} VfsShim;

extern VfsShim vfs_shim;

void vfs_shim_install(void);
void vfs_shim_remove(void);
/* Copies every tracked file into the directory, under its own name, as after a power cut now. seed chooses
 * what of the unsynced writes arrived. */
void vfs_shim_cut(const char *dir, uint64_t seed);
