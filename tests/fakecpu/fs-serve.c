/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Mount, and the loop: requests, statements that come due, delayed answers. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mount.h>

#include "fs-internal.h"
#include "machine-apply.h"

/* Splicing through a pipe costs more than it saves on answers of eight bytes. */
static void fs_init(void *userdata, struct fuse_conn_info *conn) {
        conn->want &= ~(
                FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE | FUSE_CAP_READDIRPLUS);
}

static const struct fuse_lowlevel_ops operations = {
        .init = fs_init,
        .lookup = fs_lookup,
        .getattr = fs_getattr,
        .setattr = fs_setattr,
        .readlink = fs_readlink,
        .open = fs_open,
        .read = fs_read,
        .write = fs_write,
        .release = fs_release,
        .opendir = fs_opendir,
        .readdir = fs_readdir,
        .releasedir = fs_releasedir,
};

Fs *fs_new(Machine *machine, Clock *clock, const char *directory) {
        char name[] = "fakecpu", option[] = "-oallow_other,default_permissions,fsname=fakecpu";
        char *argv[] = { name, option, NULL };
        struct fuse_args args = FUSE_ARGS_INIT(2, argv);
        Fs *fs = calloc(1, sizeof(*fs));

        if (!fs)
                return NULL;
        fs->m = machine;
        fs->clock = clock;
        (void) snprintf(fs->directory, sizeof(fs->directory), "%s", directory);
        fs->generation = machine->generation;
        fs->session = fuse_session_new(&args, &operations, sizeof(operations), fs);
        if (!fs->session || fuse_session_mount(fs->session, directory) != 0)
                return fs_free(fs);
        (void) fcntl(fuse_session_fd(fs->session), F_SETFL, O_NONBLOCK);
        fs->inval = inval_new(fs->session);
        return fs->inval ? fs : fs_free(fs);
}

/* Milliseconds until something is due, rounded up. */
static int wait_ms(Fs *fs) {
        int64_t now = fs_now(fs), due = MIN(fs_run_delayed(fs, now), machine_next_ns(fs->m));

        return due == INT64_MAX ? -1 : (int) MIN(MAX(due - now, INT64_C(0)) / 1000000 + 1, INT64_C(60000));
}

int fs_serve(Fs *fs, int stop_fd) {
        struct fuse_buf buf = {};
        struct pollfd fds[] = { { .fd = fuse_session_fd(fs->session), .events = POLLIN },
                { .fd = stop_fd, .events = POLLIN } };
        int r = 0;

        while (!fuse_session_exited(fs->session)) {
                r = fuse_session_receive_buf(fs->session, &buf);
                if (r > 0) {
                        fuse_session_process_buf(fs->session, &buf);
                        if (fs->delayed)
                                (void) fs_run_delayed(fs, fs_now(fs));
                        continue;
                }
                if (r == -EAGAIN) {
                        (void) poll(fds, 2, wait_ms(fs));
                        if (fds[1].revents & (POLLIN | POLLHUP | POLLERR))
                                break;
                } else if (r != -EINTR)
                        break;
        }
        free(buf.mem);
        return r == -EAGAIN || r == -ENODEV ? 0 : MIN(r, 0);
}

Fs *fs_free(Fs *fs) {
        if (!fs)
                return NULL;
        (void) inval_free(fs->inval);
        /* Lazily: whoever still runs on the machine keeps its view, which then says ENOTCONN. */
        if (fs->directory[0] != '\0')
                (void) umount2(fs->directory, MNT_DETACH);
        if (fs->session)
                fuse_session_destroy(fs->session);
        ledger_free(&fs->ledger);
        while (fs->delayed) {
                Delayed *d = fs->delayed;

                fs->delayed = d->next;
                free(d);
        }
        free(fs);
        return NULL;
}
