/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A disk with a volatile write cache, as one file of a FUSE file system (for a loop device over it), and what a
 * power cut would have left of it, at random moments.
 *
 *     cutdisk IMAGE MOUNTPOINT OUTPUT PROGRESS ONE_IN MAX SEED
 *
 * serves IMAGE's contents, from memory, as MOUNTPOINT/disk; stays in the foreground until it is unmounted. Before
 * one in ONE_IN writes and flushes (MAX of them at most) it writes OUTPUT/cut-N-A.img; A is the number that the file
 * PROGRESS (8 bytes, native order) held just before.
 *
 * The model: what was written before the last flush (fsync of the file: the loop driver's REQ_OP_FLUSH) is on the
 * platter. Each write since then has arrived whole, or not at all, or up to some sector, independently of the order
 * they were issued in: a drive may write its cache back as it likes. A copy of the image file of a plain loop device
 * cannot tell this: it holds what the kernel wrote back, in an order that is kinder than a drive's, and may tear
 * within a flush. Not modelled: a drive that lies about flushes, sectors that go bad under power loss, a write that
 * hits its neighbours.
 */

#define FUSE_USE_VERSION 31

#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTOR 512
#define BLOCK  4096
#define NAME   "/disk"

typedef struct Write {
        size_t at, n;
        uint8_t *bytes;
} Write;

static struct {
        uint8_t *now, *platter, *cut; /* what a read gives; what is durable; room for a cut */
        size_t size;
        Write *cache; /* since the last flush */
        size_t n_cache, max_cache;
        const char *output;
        int progress_fd;
        uint64_t random, one_in;
        unsigned n_cuts, max_cuts;
        bool failed;
} disk;

static uint64_t next_random(void) {
        disk.random ^= disk.random << 13;
        disk.random ^= disk.random >> 7;
        disk.random ^= disk.random << 17;
        return disk.random * 0x2545f4914f6cdd1dULL >> 11;
}

/* ---- power cuts ---- */

static void apply(uint8_t *image, const Write *w, size_t n) {
        memcpy(image + w->at, w->bytes, n);
}

static void cut_image(void) {
        uint64_t kind = next_random() % 4; /* of the cut: nothing arrived, all did, or any part of it */

        memcpy(disk.cut, disk.platter, disk.size);
        for (size_t i = 0; i < disk.n_cache; i++) {
                const Write *w = &disk.cache[i];
                uint64_t fate = kind < 2 ? kind * 2 : next_random() % 3;

                if (fate == 1)
                        apply(disk.cut, w, next_random() % (w->n / SECTOR + 1) * SECTOR);
                else if (fate == 2)
                        apply(disk.cut, w, w->n);
        }
}

/* Sparse: most of a small file system is zero. */
static int write_image(const char *path) {
        static const uint8_t zero[BLOCK];
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), r = 0;

        if (fd < 0 || ftruncate(fd, (off_t) disk.size) < 0)
                r = -errno;
        for (size_t at = 0; r == 0 && at < disk.size; at += BLOCK)
                if (memcmp(disk.cut + at, zero, BLOCK) != 0 &&
                        pwrite(fd, disk.cut + at, BLOCK, (off_t) at) != BLOCK)
                        r = -EIO;
        if (fd >= 0 && close(fd) < 0 && r == 0)
                r = -errno;
        return r;
}

static void maybe_cut(void) {
        uint64_t progress = 0;
        char path[4096];
        int r;

        if (disk.n_cuts >= disk.max_cuts || next_random() % disk.one_in != 0)
                return;
        if (pread(disk.progress_fd, &progress, sizeof(progress), 0) != sizeof(progress))
                progress = 0;
        cut_image();
        (void) snprintf(path, sizeof(path), "%s/cut-%u-%llu.img", disk.output, disk.n_cuts++,
                (unsigned long long) progress);
        r = write_image(path);
        if (r < 0) {
                (void) fprintf(stderr, "cutdisk: %s: %s\n", path, strerror(-r));
                (void) unlink(path); /* half an image is not what a cut leaves */
                disk.max_cuts = 0;
                disk.failed = true;
        }
}

/* ---- the disk ---- */

static void disk_flush(void) {
        for (size_t i = 0; i < disk.n_cache; i++) {
                apply(disk.platter, &disk.cache[i], disk.cache[i].n);
                free(disk.cache[i].bytes);
        }
        disk.n_cache = 0;
}

static int disk_write(const char *from, size_t n, size_t at) {
        Write w = {.at = at, .n = n, .bytes = malloc(n)};

        if (disk.n_cache == disk.max_cache) {
                size_t max = disk.max_cache * 2 + 64;
                Write *more = realloc(disk.cache, max * sizeof(*more));

                if (more) {
                        disk.cache = more;
                        disk.max_cache = max;
                }
        }
        if (!w.bytes || disk.n_cache == disk.max_cache) {
                free(w.bytes);
                return -ENOMEM;
        }
        memcpy(w.bytes, from, n);
        apply(disk.now, &w, n);
        disk.cache[disk.n_cache++] = w;
        return (int) n;
}

/* ---- FUSE ---- */

static int on_getattr(const char *path, struct stat *st, struct fuse_file_info *fi) {
        *st = (struct stat){.st_mode = S_IFDIR | 0700, .st_nlink = 2};
        if (strcmp(path, "/") == 0)
                return 0;
        if (strcmp(path, NAME) != 0)
                return -ENOENT;
        *st = (struct stat){.st_mode = S_IFREG | 0600, .st_nlink = 1, .st_size = (off_t) disk.size};
        return 0;
}

static int on_open(const char *path, struct fuse_file_info *fi) {
        fi->direct_io = 1; /* the kernel keeps nothing back */
        return strcmp(path, NAME) == 0 ? 0 : -ENOENT;
}

static int on_read(const char *path, char *to, size_t n, off_t at, struct fuse_file_info *fi) {
        if (at < 0 || (size_t) at >= disk.size)
                return 0;
        if (n > disk.size - (size_t) at)
                n = disk.size - (size_t) at;
        memcpy(to, disk.now + at, n);
        return (int) n;
}

static int on_write(const char *path, const char *from, size_t n, off_t at, struct fuse_file_info *fi) {
        if (at < 0 || (size_t) at > disk.size || n > disk.size - (size_t) at)
                return -ENOSPC;
        maybe_cut();
        return disk_write(from, n, (size_t) at);
}

static int on_fsync(const char *path, int data_only, struct fuse_file_info *fi) {
        maybe_cut();
        disk_flush();
        return 0;
}

static const struct fuse_operations operations = {
        .getattr = on_getattr,
        .open = on_open,
        .read = on_read,
        .write = on_write,
        .fsync = on_fsync,
};

static int load(const char *path) {
        struct stat st;
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        disk.size = (size_t) st.st_size / BLOCK * BLOCK;
        disk.now = malloc(disk.size);
        disk.platter = malloc(disk.size);
        disk.cut = malloc(disk.size);
        if (!disk.now || !disk.platter || !disk.cut)
                return -ENOMEM;
        for (size_t at = 0; at < disk.size;) {
                ssize_t n = pread(fd, disk.now + at, disk.size - at, (off_t) at);

                if (n <= 0)
                        return -EIO;
                at += (size_t) n;
        }
        (void) close(fd);
        memcpy(disk.platter, disk.now, disk.size);
        return 0;
}

int main(int argc, char **argv) {
        char foreground[] = "-f", single[] = "-s";
        char *fuse_argv[] = {argv[0], foreground, single, argc > 2 ? argv[2] : NULL, NULL};
        int r;

        if (argc != 8) {
                (void) fprintf(stderr, "cutdisk IMAGE MOUNTPOINT OUTPUT PROGRESS ONE_IN MAX SEED\n");
                return 2;
        }
        r = load(argv[1]);
        if (r < 0) {
                (void) fprintf(stderr, "cutdisk: %s: %s\n", argv[1], strerror(-r));
                return 1;
        }
        disk.output = argv[3];
        disk.progress_fd = open(argv[4], O_RDONLY | O_CLOEXEC);
        disk.one_in = strtoull(argv[5], NULL, 10) ?: 1;
        disk.max_cuts = (unsigned) strtoul(argv[6], NULL, 10);
        disk.random = strtoull(argv[7], NULL, 10) * 0x9e3779b97f4a7c15ULL + 1;
        return fuse_main(4, fuse_argv, &operations, NULL) ?: disk.failed;
}
