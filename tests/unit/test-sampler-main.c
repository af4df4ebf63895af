/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sampler's process on this machine: what comes over the socket, what it keeps open, when it ends. */

#include "tests/unit/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "sampler/sampler.h"

typedef struct Child {
        pid_t pid;
        int fd, record_fd;
} Child;

static Child child_start_every(uint64_t interval_usec, int sndbuf, int record_fd) {
        SamplerConfig config = SAMPLER_CONFIG_INIT;
        Child c = { .record_fd = record_fd };
        int fds[2];

        config.interval_usec = interval_usec;
        config.record_fd = record_fd;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        if (sndbuf > 0)
                assert_int_equal(setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &sndbuf, sizeof(sndbuf)), 0);
        c.pid = fork();
        assert_true(c.pid >= 0);
        if (c.pid == 0)
                _exit(sampler_main(&config, fds[1]));
        (void) close(fds[1]);
        c.fd = fds[0];
        return c;
}

static Child child_start(int record_fd) {
        return child_start_every(100000, 0, record_fd);
}

static int child_wait(Child *c) {
        int status;

        assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
        assert_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}

/* Reads frames until a type was seen n times; the machine must come before the first tick. */
static void frames_until(Child *c, FrameReader *reader, FrameType type, unsigned n, Machine **machine) {
        for (unsigned seen = 0; seen < n;) {
                const uint8_t *payload;
                char buf[65536];
                FrameType got;
                size_t size;
                ssize_t k;
                int r;

                r = frame_reader_next(reader, &got, &payload, &size);
                assert_true(r >= 0);
                if (r == 0) {
                        struct pollfd p = { .fd = c->fd, .events = POLLIN };

                        assert_int_equal(poll(&p, 1, 20000), 1);
                        k = read(c->fd, buf, sizeof(buf));
                        assert_true(k > 0);
                        assert_int_equal(frame_reader_feed(reader, buf, (size_t) k), 0);
                        continue;
                }
                seen += got == type;
                if (got == FRAME_MACHINE) {
                        *machine = machine_free(*machine);
                        assert_int_equal(frame_decode_machine(payload, size, machine), 0);
                } else if (got == FRAME_TICK) {
                        _cleanup_(tick_freep) Tick *t = NULL;

                        assert_non_null(*machine);
                        assert_int_equal(frame_decode_tick(payload, size, &t), 0);
                        assert_int_equal(t->n_values, (*machine)->layout.n_values);
                        assert_int_equal(t->h.generation, (*machine)->generation);
                }
        }
}

static unsigned count_fds(pid_t pid) {
        char path[64];
        unsigned n = 0;
        DIR *dir;

        (void) snprintf(path, sizeof(path), "/proc/%d/fd", (int) pid);
        dir = opendir(path);
        assert_non_null(dir);
        while (readdir(dir))
                n++;
        (void) closedir(dir);
        return n;
}

static void test_ticks_come_and_eof_ends(void **state) {
        _cleanup_(frame_reader_freep) FrameReader *reader = frame_reader_new();
        _cleanup_(machine_freep) Machine *machine = NULL;
        Child c = child_start(-1);
        unsigned n_fds;

        assert_non_null(reader);
        frames_until(&c, reader, FRAME_STATUS, 1, &machine);
        frames_until(&c, reader, FRAME_TICK, 3, &machine);
        assert_true(machine->n_cpus > 0 && machine->n_cores > 0 && machine->n_packages > 0);
        assert_true(machine->host[0] && machine->boot_id[0] && machine->kernel[0]);
        n_fds = count_fds(c.pid);
        frames_until(&c, reader, FRAME_TICK, 5, &machine);
        /* time, above and below of a state are kept from its first use on, and nothing else */
        assert_true(count_fds(c.pid) <= n_fds + machine->n_cpus * IDLE_STATES_MAX * 3);
        (void) close(c.fd);
        assert_int_equal(child_wait(&c), 0);
}

static void test_signals_are_the_servers(void **state) {
        _cleanup_(frame_reader_freep) FrameReader *reader = frame_reader_new();
        _cleanup_(machine_freep) Machine *machine = NULL;
        Child c = child_start(-1);

        frames_until(&c, reader, FRAME_TICK, 1, &machine);
        assert_int_equal(kill(c.pid, SIGTERM), 0);
        assert_int_equal(kill(c.pid, SIGINT), 0);
        assert_int_equal(kill(c.pid, SIGHUP), 0);
        frames_until(&c, reader, FRAME_TICK, 2, &machine);
        (void) close(c.fd);
        assert_int_equal(child_wait(&c), 0);
}

/* The next event of that kind, the machine and ticks in between being read as usual. */
static void wait_event(Child *c, FrameReader *reader, const char *kind, FrameEvent *ret) {
        for (;;) {
                const uint8_t *payload;
                char buf[65536];
                FrameType type;
                size_t size;
                ssize_t k;
                int r;

                r = frame_reader_next(reader, &type, &payload, &size);
                assert_true(r >= 0);
                if (r > 0 && type == FRAME_EVENT) {
                        assert_int_equal(frame_decode_event(payload, size, ret), 0);
                        if (strcmp(ret->kind, kind) == 0)
                                return;
                }
                if (r > 0)
                        continue;
                k = read(c->fd, buf, sizeof(buf));
                assert_true(k > 0);
                assert_int_equal(frame_reader_feed(reader, buf, (size_t) k), 0);
        }
}

/* Stopped for longer than an interval: what was skipped is counted and told. */
static void test_missed_ticks_are_told(void **state) {
        _cleanup_(frame_reader_freep) FrameReader *reader = frame_reader_new();
        _cleanup_(machine_freep) Machine *machine = NULL;
        Child c = child_start(-1);
        FrameEvent e;

        frames_until(&c, reader, FRAME_TICK, 2, &machine);
        assert_int_equal(kill(c.pid, SIGSTOP), 0);
        (void) usleep(450000);
        assert_int_equal(kill(c.pid, SIGCONT), 0);
        wait_event(&c, reader, "missed", &e);
        assert_true(e.text[0] >= '1' && e.text[0] <= '9');
        (void) close(c.fd);
        assert_int_equal(child_wait(&c), 0);
}

/* A reader that does not read: ticks are dropped, not waited for; it is told how many once it reads again. */
static void test_slow_reader(void **state) {
        _cleanup_(frame_reader_freep) FrameReader *reader = frame_reader_new();
        Child c = child_start_every(5000, 4096, -1);
        FrameEvent e;

        (void) usleep(1200000);
        wait_event(&c, reader, "gap", &e);
        assert_true(e.text[0] >= '1' && e.text[0] <= '9');
        (void) close(c.fd);
        assert_int_equal(child_wait(&c), 0);
}

static void test_inherited_descriptors_are_closed(void **state) {
        _cleanup_(frame_reader_freep) FrameReader *reader = frame_reader_new();
        _cleanup_(machine_freep) Machine *machine = NULL;
        int pipes[2];
        char byte;
        Child c;

        assert_int_equal(pipe(pipes), 0);
        c = child_start(-1);
        (void) close(pipes[1]);
        frames_until(&c, reader, FRAME_TICK, 1, &machine);
        assert_int_equal(read(pipes[0], &byte, 1), 0); /* nobody holds the other end */
        (void) close(pipes[0]);
        (void) close(c.fd);
        assert_int_equal(child_wait(&c), 0);
}

static void test_record_has_the_same_frames(void **state) {
        _cleanup_(frame_reader_freep) FrameReader *reader = frame_reader_new(), *replay = frame_reader_new();
        _cleanup_(machine_freep) Machine *machine = NULL, *recorded = NULL;
        char path[] = "/tmp/cstated-record-XXXXXX", buf[65536];
        int fd = mkstemp(path), n_ticks = 0, r;
        const uint8_t *payload;
        FrameType type;
        size_t size;
        ssize_t k;
        Child c;

        assert_true(fd >= 0);
        (void) unlink(path);
        c = child_start(fd);
        frames_until(&c, reader, FRAME_TICK, 3, &machine);
        (void) close(c.fd);
        assert_int_equal(child_wait(&c), 0);
        assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
        while ((k = read(fd, buf, sizeof(buf))) > 0)
                assert_int_equal(frame_reader_feed(replay, buf, (size_t) k), 0);
        while ((r = frame_reader_next(replay, &type, &payload, &size)) > 0) {
                n_ticks += type == FRAME_TICK;
                if (type == FRAME_MACHINE && !recorded)
                        assert_int_equal(frame_decode_machine(payload, size, &recorded), 0);
        }
        assert_int_equal(r, 0);
        assert_true(n_ticks >= 3);
        assert_non_null(recorded);
        assert_true(layout_equal(&recorded->layout, &machine->layout));
        (void) close(fd);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_ticks_come_and_eof_ends),
                cmocka_unit_test(test_signals_are_the_servers),
                cmocka_unit_test(test_missed_ticks_are_told),
                cmocka_unit_test(test_slow_reader),
                cmocka_unit_test(test_inherited_descriptors_are_closed),
                cmocka_unit_test(test_record_has_the_same_frames),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
