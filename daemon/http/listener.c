/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Binding. A unix socket gets its mode from the umask of the moment of bind(2) and its owner before
 * listen(2): nobody can connect before both are right. Only ECONNREFUSED proves that a socket file is stale.
 */

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "cstated/macro.h"
#include "http/listener.h"

#define BACKLOG 128

static int refuse(const char **ret_error, int r, const char *why) {
        *ret_error = why;
        return r;
}

/* 0 where the path is free (a stale socket is removed). */
static int clear_path(const struct sockaddr_un *sa, socklen_t n, const char **ret_error) {
        _cleanup_close_ int fd = -1;
        struct stat st;

        if (lstat(sa->sun_path, &st) < 0)
                return errno == ENOENT ? 0 : refuse(ret_error, -errno, "the path cannot be reached");
        if (!S_ISSOCK(st.st_mode))
                return refuse(ret_error, -EEXIST, "the path is there and is no socket: it is left alone");
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return refuse(ret_error, -errno, "no socket to be had");
        if (connect(fd, (const struct sockaddr *) sa, n) == 0 || errno == EAGAIN)
                return refuse(ret_error, -EADDRINUSE, "another process serves there");
        if (errno != ECONNREFUSED)
                return refuse(
                        ret_error, -errno, "a socket is there that cannot be asked whether it is alive");
        if (unlink(sa->sun_path) < 0 && errno != ENOENT)
                return refuse(ret_error, -errno, "a stale socket is there and cannot be removed");
        return 0;
}

static int bind_private(int fd, const struct sockaddr_un *sa, socklen_t n) {
        mode_t mask = umask(0117);
        int r = bind(fd, (const struct sockaddr *) sa, n) < 0 ? -errno : 0;

        (void) umask(mask);
        return r;
}

static int open_unix(const char *path, uid_t uid, gid_t group, int *ret_fd, const char **ret_error) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        _cleanup_close_ int fd = -1;
        socklen_t n;
        int r;

        if (strlen(path) >= sizeof(sa.sun_path))
                return refuse(ret_error, -ENAMETOOLONG, "a socket's path has at most 107 characters");
        (void) strcpy(sa.sun_path, path);
        n = (socklen_t) (offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1);
        r = clear_path(&sa, n, ret_error);
        if (r < 0)
                return r;
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return refuse(ret_error, -errno, "no socket to be had");
        r = bind_private(fd, &sa, n);
        if (r < 0)
                return refuse(ret_error, r, "the path cannot be bound");
        if ((uid != (uid_t) -1 || group != (gid_t) -1) && lchown(path, uid, group) < 0) {
                r = -errno;
                (void) unlink(path);
                return refuse(ret_error, r, "the socket cannot be given to its user and group");
        }
        if (listen(fd, BACKLOG) < 0) {
                r = -errno;
                (void) unlink(path);
                return refuse(ret_error, r, "cannot listen");
        }
        *ret_fd = TAKE_FD(fd);
        return 0;
}

static int open_inet(const struct addrinfo *a, int *ret_fd, const char **ret_error) {
        _cleanup_close_ int fd = -1;
        int on = 1;

        fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return refuse(ret_error, -errno, "the address family is not to be had");
        if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
                (a->ai_family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0))
                return refuse(ret_error, -errno, "the socket cannot be set up");
        if (bind(fd, a->ai_addr, a->ai_addrlen) < 0)
                return refuse(ret_error, -errno,
                        errno == EADDRINUSE ? "the port is taken" : "the address cannot be bound");
        if (listen(fd, BACKLOG) < 0)
                return refuse(
                        ret_error, -errno, errno == EADDRINUSE ? "the port is taken" : "cannot listen");
        *ret_fd = TAKE_FD(fd);
        return 0;
}

/* "127.0.0.1:9290", "[::1]:9290", "localhost:9290", "*:9290". */
static int split_address(const char *address, char host[256], const char **ret_port) {
        const char *colon = strrchr(address, ':');
        size_t n;

        if (!colon || !colon[1])
                return -EINVAL;
        n = (size_t) (colon - address);
        if (n >= 2 && address[0] == '[' && address[n - 1] == ']') {
                address++;
                n -= 2;
        }
        if (n >= 256)
                return -EINVAL;
        memcpy(host, address, n);
        host[n] = '\0';
        *ret_port = colon + 1;
        return 0;
}

static int resolve(const char *address, struct addrinfo **ret, const char **ret_error) {
        struct addrinfo hints = {
                .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV
        };
        const char *port = NULL;
        char host[256];
        bool any;

        if (split_address(address, host, &port) < 0)
                return refuse(ret_error, -EINVAL, "neither the absolute path of a socket nor HOST:PORT");
        any = host[0] == '\0' || strcmp(host, "*") == 0;
        if (getaddrinfo(any ? NULL : host, port, &hints, ret) != 0)
                return refuse(ret_error, -EADDRNOTAVAIL, "no address of that host is known");
        return 0;
}

static bool same_address(const struct addrinfo *a, const struct addrinfo *b) {
        return a->ai_addrlen == b->ai_addrlen && memcmp(a->ai_addr, b->ai_addr, a->ai_addrlen) == 0;
}

static bool seen_before(const struct addrinfo *all, const struct addrinfo *a) {
        for (; all != a; all = all->ai_next)
                if (same_address(all, a))
                        return true;
        return false;
}

static bool lacks_ipv6(const struct addrinfo *a, int r) {
        return a->ai_family == AF_INET6 && (r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL);
}

int listener_open(
        const char *address, uid_t uid, gid_t group, int *ret_fds, size_t max, const char **ret_error) {
        struct addrinfo *all = NULL;
        size_t n = 0;
        int r;

        *ret_error = NULL;
        if (max == 0)
                return refuse(ret_error, -E2BIG, "too many listeners");
        if (address[0] == '/') {
                r = open_unix(address, uid, group, &ret_fds[0], ret_error);
                return r < 0 ? r : 1;
        }
        r = resolve(address, &all, ret_error);
        if (r < 0)
                return r;
        for (struct addrinfo *a = all; a; a = a->ai_next) {
                if (seen_before(all, a))
                        continue;
                r = n < max ? open_inet(a, &ret_fds[n], ret_error)
                            : refuse(ret_error, -E2BIG, "too many listeners");
                if (r == 0)
                        n++;
                else if (!lacks_ipv6(a, r))
                        break;
                r = n > 0 ? 0 : r;
        }
        freeaddrinfo(all);
        if (r < 0)
                while (n > 0)
                        (void) close(ret_fds[--n]);
        return r < 0 ? r : (int) n;
}
