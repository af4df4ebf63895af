/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The file system: FUSE requests answered from the machine, written into the ledger. One thread serves them
 * all. */

#include "clock.h"
#include "ledger.h"
#include "machine.h"

typedef struct Fs Fs;

/* Mounts on `directory`. The machine and clock must outlive it. NULL: error on stderr. */
Fs *fs_new(Machine *machine, Clock *clock, const char *directory);
/* Serves until the file system is unmounted or `stop_fd` reads end of file. 0 or -errno. */
int fs_serve(Fs *fs, int stop_fd);
Fs *fs_free(Fs *fs);

/*
 * The kernel caches names and attributes for ever; when CPUs come and go or modes change it must be told.
 * Telling it may wait for a lookup that only our serving thread can answer, so another thread does it
 * (inval.c).
 */
typedef struct Inval Inval;
struct fuse_session;
struct fuse_req;
Inval *inval_new(struct fuse_session *session);
/* One name of a directory (or, name NULL, a node's attributes) to forget; kept until inval_send(). */
void inval_add(Inval *inval, uint64_t ino, const char *name);
/* Hands what was added to the thread, which then answers `reply` (or NULL) as a write of `reply_size` bytes.
 */
void inval_send(Inval *inval, struct fuse_req *reply, size_t reply_size);
Inval *inval_free(Inval *inval);

/* The control directory (control.c): text of a file, and what a write to `set` does (0 or -errno). */
void control_render(Machine *m, const Ledger *ledger, unsigned file, int64_t t_ns, Buf *b);
int control_set(Machine *m, const char *text, size_t len, int64_t t_ns);
