/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the three files of the file system share: fs.c (names), fs-io.c (reads and writes), fs-serve.c (mount
 * and loop). */

#define FUSE_USE_VERSION 312

#include <fuse_lowlevel.h>

#include "fs.h"
#include "node.h"

typedef struct OpenFile {
        Buf text;
        uint32_t client;
        LedgerClass class;
} OpenFile;

/* A register read that the scenario lets wait. */
typedef struct Delayed {
        struct Delayed *next;
        Fs *fs;
        fuse_req_t req;
        Cpu *cpu;
        uint64_t reg;
        size_t size;
        uint32_t client;
        int64_t due_ns;
} Delayed;

struct Fs {
        Machine *m;
        Clock *clock;
        struct fuse_session *session;
        Inval *inval;
        Delayed *delayed;
        Ledger ledger;
        uint64_t generation; /* of which the kernel was told */
        char directory[256];
};

static inline Fs *fs_of(fuse_req_t req) {
        return fuse_req_userdata(req);
}

/* The time of a request, with all that was due by then done. */
int64_t fs_now(Fs *fs);
/* Collects what the kernel must forget since it was last told; inval_send() follows. False: nothing. */
bool fs_collect(Fs *fs);
/* Answers the delayed reads that are due; returns when the next one is, INT64_MAX: none. */
int64_t fs_run_delayed(Fs *fs, int64_t now_ns);

void fs_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void fs_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void fs_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi);
void fs_readlink(fuse_req_t req, fuse_ino_t ino);
void fs_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void fs_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void fs_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void fs_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void fs_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void fs_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void fs_write(
        fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t off, struct fuse_file_info *fi);
