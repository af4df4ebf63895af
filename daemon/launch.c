/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sampler is forked first of all, so that it inherits neither a listener nor a database nor a loop;
 * listeners are bound while the right to do so is there; then nothing is left that needs a privilege.
 */

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#include "cstated/api.h"
#include "cstated/log.h"
#include "cstated/num.h"
#include "http/listener.h"
#include "launch.h"

/* A frame of a large machine goes over in one piece where the kernel lets it. */
#define SOCKET_BUFFER (4 << 20)

/* systemd names the process it started; the variable of a parent says nothing about us. */
static bool started_by_systemd(void) {
        const char *pid = getenv("SYSTEMD_EXEC_PID");
        uint64_t v;

        return pid && num_parse_u64(pid, &v) == 0 && v == (uint64_t) getpid();
}

static int refuse_tcp_under_systemd(const Config *c) {
        if (!started_by_systemd())
                return 0;
        for (size_t i = 0; i < c->n_listen; i++)
                if (c->listen[i][0] != '/') {
                        log_error("Listen=%s: the service has no network (PrivateNetwork=yes); let "
                                  "cstated.socket listen by a drop-in, "
                                  "/etc/systemd/system/cstated.socket.d/tcp.conf with [Socket] "
                                  "ListenStream=%s",
                                c->listen[i], c->listen[i]);
                        return CSTATED_EXIT_CONFIG;
                }
        return 0;
}

static int take_systemd_sockets(Launch *l) {
        int n = sd_listen_fds(1);

        if (n < 0) {
                log_error("sockets passed by systemd: %s", strerror(-n));
                return EXIT_FAILURE;
        }
        for (int i = 0; i < n; i++) {
                int fd = SD_LISTEN_FDS_START + i;

                if (l->n_listeners == HTTP_LISTENERS_MAX ||
                        sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) <= 0) {
                        log_error("descriptor %d passed by systemd is no listening stream socket, or one "
                                  "too many",
                                fd);
                        return EXIT_FAILURE;
                }
                l->listeners[l->n_listeners++] = fd;
        }
        return 0;
}

static bool passed_by_systemd(const Launch *l, const char *address) {
        for (size_t i = 0; i < l->n_listeners; i++)
                if (address[0] == '/' && sd_is_socket_unix(l->listeners[i], SOCK_STREAM, 1, address, 0) > 0)
                        return true;
        return false;
}

static int open_listener(Launch *l, const char *address) {
        const char *why = NULL;
        int n, r;

        if (passed_by_systemd(l, address))
                return 0;
        if (address[0] == '/') {
                r = privilege_make_socket_directory(&l->user, address);
                if (r < 0) {
                        log_error("%s: its directory cannot be made: %s (see --listen)", address,
                                strerror(-r));
                        return EXIT_FAILURE;
                }
        }
        n = listener_open(address, l->user.change ? l->user.uid : (uid_t) -1,
                geteuid() == 0 ? l->user.socket_group : (gid_t) -1, l->listeners + l->n_listeners,
                HTTP_LISTENERS_MAX - l->n_listeners, &why);
        if (n < 0) {
                log_error("cannot listen on %s: %s (%s)", address, why ? why : "no reason known",
                        strerror(-n));
                return EXIT_FAILURE;
        }
        for (int i = 0; i < n; i++)
                l->unlink_at_end[l->n_listeners++] = true;
        return 0;
}

/* The default listener gives way to sockets from systemd; those that were asked for do not. */
static int open_listeners(const Config *c, Launch *l) {
        if (l->n_listeners > 0 && !c->listen_set)
                return 0;
        for (size_t i = 0; i < c->n_listen; i++) {
                int r = open_listener(l, c->listen[i]);

                if (r != 0)
                        return r;
        }
        return 0;
}

/* Signals become events of the server's loop; the sampler must not be ended by those of its terminal either.
 */
static void block_signals(void) {
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGTERM);
        (void) sigaddset(&set, SIGINT);
        (void) sigaddset(&set, SIGHUP);
        (void) sigaddset(&set, SIGCHLD);
        (void) sigaddset(&set, SIGABRT); /* systemd's watchdog; abort() itself is not stopped by it */
        (void) sigprocmask(SIG_BLOCK, &set, NULL);
        (void) signal(SIGPIPE, SIG_IGN);
}

static int become_sampler(Launch *l) {
        int r;

        l->is_sampler = true;
        (void) prctl(PR_SET_NAME, "cstated-sampler", 0, 0, 0);
        r = privilege_limit_sampler();
        if (r < 0)
                log_warning("the sampler's capabilities cannot be limited, ignoring: %s", strerror(-r));
        return 0;
}

static int fork_sampler(Launch *l) {
        int pair[2], size = SOCKET_BUFFER;
        pid_t pid;

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
                log_error("no socket for the sampler: %s", strerror(errno));
                return EXIT_FAILURE;
        }
        if (setsockopt(pair[1], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0)
                (void) setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
        pid = fork();
        if (pid < 0) {
                log_error("the sampler cannot be forked: %s", strerror(errno));
                (void) close(pair[0]);
                (void) close(pair[1]);
                return EXIT_FAILURE;
        }
        l->socket_fd = pair[pid == 0 ? 1 : 0];
        (void) close(pair[pid == 0 ? 0 : 1]);
        if (pid == 0)
                return become_sampler(l);
        l->sampler = pid;
        return 0;
}

int launch(const Config *c, bool with_sampler, Launch *l) {
        int r;

        block_signals();
        r = refuse_tcp_under_systemd(c);
        if (r != 0)
                return r;
        r = take_systemd_sockets(l);
        if (r != 0)
                return r;
        r = privilege_find_user(c->path, &l->user);
        if (r < 0) {
                log_error("%s: %s", c->path, strerror(-r));
                return CSTATED_EXIT_CONFIG;
        }
        if (with_sampler) {
                r = fork_sampler(l);
                if (r != 0 || l->is_sampler)
                        return r;
        }
        r = open_listeners(c, l);
        if (r != 0)
                return r;
        r = privilege_drop(&l->user);
        if (r < 0) {
                log_error("capabilities cannot be dropped: %s", strerror(-r));
                return EXIT_FAILURE;
        }
        return 0;
}

/* A start that failed leaves no socket behind. */
static void remove_socket(int fd) {
        struct sockaddr_un sa = {};
        socklen_t n = sizeof(sa);

        if (getsockname(fd, (struct sockaddr *) &sa, &n) == 0 && sa.sun_family == AF_UNIX &&
                sa.sun_path[0] == '/')
                (void) unlink(sa.sun_path);
}

void launch_deinit(Launch *l) {
        if (l->socket_fd >= 0)
                (void) close(l->socket_fd);
        l->socket_fd = -1;
        for (size_t i = 0; i < l->n_listeners; i++) {
                if (l->listeners[i] < 0)
                        continue;
                if (l->unlink_at_end[i])
                        remove_socket(l->listeners[i]);
                (void) close(l->listeners[i]);
        }
        l->n_listeners = 0;
}
