/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The handle to /sys, /proc and /dev. Every path goes through one formatted openat() below the root's
 * descriptor, so that a fixture tree serves as well as the machine. Kernel files are small: a line is one
 * read, a whole file grows in doubling steps up to the caller's limit.
 */

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

#include "cstated/num.h"

#include "sampler/sysfs.h"

#define SYSFS_PATH_MAX 512
#define SYSFS_CPULIST_MAX (64u << 10)
#define SYSFS_CPU_ID_MAX 8192 /* the kernel's largest NR_CPUS */

struct Sysfs {
        int root_fd;
        bool is_host;
};

int sysfs_new(const char *root, Sysfs **ret) {
        _cleanup_(sysfs_freep) Sysfs *s = calloc(1, sizeof(*s));

        if (!s)
                return -ENOMEM;
        s->root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (s->root_fd < 0)
                return -errno;
        s->is_host = strcmp(root, "/") == 0;
        *ret = TAKE_PTR(s);
        return 0;
}

Sysfs *sysfs_free(Sysfs *s) {
        if (s) {
                if (s->root_fd >= 0)
                        (void) close(s->root_fd);
                free(s);
        }
        return NULL;
}

bool sysfs_is_host(const Sysfs *s) {
        return s->is_host;
}

/* Formats a path relative to the root; a leading slash is dropped, a path that does not fit is an error. */
static _printf_(2, 0) int path_format(char buf[SYSFS_PATH_MAX], const char *format, va_list ap) {
        int n = vsnprintf(buf, SYSFS_PATH_MAX, format, ap);

        if (n < 0 || n >= SYSFS_PATH_MAX)
                return -ENAMETOOLONG;
        return 0;
}

static _printf_(3, 0) int path_open(Sysfs *s, int flags, const char *format, va_list ap) {
        char path[SYSFS_PATH_MAX];
        int r, fd;

        r = path_format(path, format, ap);
        if (r < 0)
                return r;
        fd = openat(s->root_fd, path + (path[0] == '/'), flags | O_RDONLY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int sysfs_open(Sysfs *s, const char *format, ...) {
        va_list ap;
        int fd;

        va_start(ap, format);
        fd = path_open(s, O_NOCTTY, format, ap);
        va_end(ap);
        return fd;
}

bool sysfs_exists(Sysfs *s, const char *format, ...) {
        char path[SYSFS_PATH_MAX];
        va_list ap;
        int r;

        va_start(ap, format);
        r = path_format(path, format, ap);
        va_end(ap);
        return r == 0 && faccessat(s->root_fd, path + (path[0] == '/'), F_OK, 0) == 0;
}

/* One read is what a kernel attribute needs; a short read goes on until the end or the buffer's. */
static int fd_read(int fd, char *buf, size_t size, size_t *ret_n) {
        size_t n = 0;

        while (n < size) {
                ssize_t k = read(fd, buf + n, size - n);

                if (k < 0 && errno == EINTR)
                        continue;
                if (k < 0)
                        return -errno;
                if (k == 0)
                        break;
                n += (size_t) k;
        }
        *ret_n = n;
        return 0;
}

static _printf_(4, 0) int line_read(Sysfs *s, char *buf, size_t size, const char *format, va_list ap) {
        _cleanup_close_ int fd = path_open(s, O_NOCTTY, format, ap);
        char *end;
        ssize_t n;

        if (fd < 0)
                return fd;
        do
                n = read(fd, buf, size - 1);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        end = memchr(buf, '\n', (size_t) n);
        if (!end)
                end = buf + n;
        *end = 0;
        return end == buf ? -ENODATA : 0;
}

int sysfs_read_line(Sysfs *s, char *buf, size_t size, const char *format, ...) {
        char line[1024];
        va_list ap;
        int r;

        va_start(ap, format);
        r = line_read(s, line, MIN(size, sizeof(line)), format, ap);
        va_end(ap);
        if (r == 0)
                memcpy(buf, line, strlen(line) + 1);
        return r;
}

int sysfs_read_u64(Sysfs *s, uint64_t *ret, const char *format, ...) {
        char line[64];
        va_list ap;
        int r;

        va_start(ap, format);
        r = line_read(s, line, sizeof(line), format, ap);
        va_end(ap);
        return r < 0 ? r : num_parse_u64(line, ret);
}

int sysfs_read_i64(Sysfs *s, int64_t *ret, const char *format, ...) {
        char line[64];
        va_list ap;
        int r;

        va_start(ap, format);
        r = line_read(s, line, sizeof(line), format, ap);
        va_end(ap);
        return r < 0 ? r : num_parse_i64(line, ret);
}

static int file_read(int fd, size_t max, char **ret, size_t *ret_n) {
        _cleanup_free_ char *buf = NULL;
        size_t size = MIN((size_t) 4096, max + 1), n = 0;

        for (;;) {
                char *grown = realloc(buf, size + 1);
                size_t k = 0;
                int r;

                if (!grown)
                        return -ENOMEM;
                buf = grown;
                r = fd_read(fd, buf + n, size - n, &k);
                if (r < 0)
                        return r;
                n += k;
                if (n > max)
                        return -EFBIG;
                if (n < size)
                        break;
                size = MIN(size * 2, max + 1);
        }
        buf[n] = 0;
        *ret = TAKE_PTR(buf);
        *ret_n = n;
        return 0;
}

static _printf_(5, 0) int file_read_path(
        Sysfs *s, size_t max, char **ret, size_t *ret_n, const char *format, va_list ap) {
        _cleanup_close_ int fd = path_open(s, O_NOCTTY, format, ap);

        return fd < 0 ? fd : file_read(fd, max, ret, ret_n);
}

int sysfs_read_file(Sysfs *s, size_t max, char **ret, size_t *ret_n, const char *format, ...) {
        va_list ap;
        int r;

        va_start(ap, format);
        r = file_read_path(s, max, ret, ret_n, format, ap);
        va_end(ap);
        return r;
}

int sysfs_read_cpulist(Sysfs *s, uint32_t **ret, size_t *ret_n, const char *format, ...) {
        _cleanup_free_ char *text = NULL;
        va_list ap;
        size_t n;
        int r;

        va_start(ap, format);
        r = file_read_path(s, SYSFS_CPULIST_MAX, &text, &n, format, ap);
        va_end(ap);
        return r < 0 ? r : num_parse_cpulist(text, SYSFS_CPU_ID_MAX, ret, ret_n);
}

/* Where the digits at the end of a name begin. */
static size_t name_stem(const char *s) {
        size_t n = strlen(s);

        while (n > 0 && isdigit((unsigned char) s[n - 1]))
                n--;
        return n;
}

static int name_order(const void *a, const void *b) {
        const char *x = *(char *const *) a, *y = *(char *const *) b;
        size_t nx = name_stem(x), ny = name_stem(y);
        const char *px = x + nx, *py = y + ny;
        uint64_t vx = 0, vy = 0;

        if (nx != ny || strncmp(x, y, nx) != 0)
                return strcmp(x, y);
        (void) num_scan_u64(&px, x + strlen(x), &vx);
        (void) num_scan_u64(&py, y + strlen(y), &vy);
        if (vx != vy)
                return vx < vy ? -1 : 1;
        return strcmp(x, y);
}

static int names_append(char ***names, size_t *n, size_t *size, const char *name) {
        if (*n == *size) {
                size_t grown = *size ? *size * 2 : 16;
                char **p = realloc(*names, grown * sizeof(*p));

                if (!p)
                        return -ENOMEM;
                *names = p;
                *size = grown;
        }
        (*names)[*n] = strdup(name);
        if (!(*names)[*n])
                return -ENOMEM;
        (*n)++;
        return 0;
}

static int names_read(DIR *dir, bool (*match)(const char *name), char ***ret, size_t *ret_n) {
        char **names = NULL;
        size_t n = 0, size = 0;
        struct dirent *e;
        int r = 0;

        while (r == 0 && (e = readdir(dir)))
                if (e->d_name[0] != '.' && (!match || match(e->d_name)))
                        r = names_append(&names, &n, &size, e->d_name);
        if (r < 0) {
                sysfs_names_free(names, n);
                return r;
        }
        if (n > 0)
                qsort(names, n, sizeof(*names), name_order);
        *ret = names;
        *ret_n = n;
        return 0;
}

int sysfs_list(
        Sysfs *s, bool (*match)(const char *name), char ***ret, size_t *ret_n, const char *format, ...) {
        va_list ap;
        DIR *dir;
        int fd, r;

        va_start(ap, format);
        fd = path_open(s, O_DIRECTORY, format, ap);
        va_end(ap);
        if (fd < 0)
                return fd;
        dir = fdopendir(fd);
        if (!dir) {
                r = -errno;
                (void) close(fd);
                return r;
        }
        r = names_read(dir, match, ret, ret_n);
        (void) closedir(dir);
        return r;
}

void sysfs_names_free(char **names, size_t n) {
        for (size_t i = 0; i < n; i++)
                free(names[i]);
        free(names);
}

int sysfs_pread_u64(int fd, uint64_t *ret) {
        char buf[32];
        const char *p = buf;
        ssize_t n = pread(fd, buf, sizeof(buf), 0);

        if (n < 0)
                return -errno;
        return num_scan_u64(&p, buf + n, ret) ? 0 : -ENODATA;
}
