/* SPDX-License-Identifier: GPL-2.0-or-later */
/* C24: what may be bound and what may be removed. */

#include "tests/unit/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "http/listener.h"

static char dir[32];
static char path[64];

static int setup(void **state) {
        (void) strcpy(dir, "/tmp/test-listener-XXXXXX");
        if (!mkdtemp(dir))
                return -1;
        (void) snprintf(path, sizeof(path), "%s/s", dir);
        return 0;
}

static int teardown(void **state) {
        (void) unlink(path);
        return rmdir(dir);
}

static int open_one(const char *address, const char **why) {
        int fd = -1, n = listener_open(address, (uid_t) -1, (gid_t) -1, &fd, 1, why);

        return n < 0 ? n : fd;
}

/* 0660 whatever the umask. */
static void test_mode(void **state) {
        static const mode_t masks[] = { 0, 022, 0777 };

        for (size_t i = 0; i < 3; i++) {
                mode_t old = umask(masks[i]);
                const char *why;
                struct stat st;
                int fd;

                fd = open_one(path, &why);
                assert_true(fd >= 0);
                assert_int_equal(umask(old), masks[i]);
                assert_int_equal(stat(path, &st), 0);
                assert_int_equal(st.st_mode & 07777, 0660);
                (void) close(fd);
                assert_int_equal(unlink(path), 0);
        }
}

static void test_group(void **state) {
        const char *why;
        struct stat st;
        int fd;

        uid_t uid = geteuid() == 0 ? 1 : geteuid(); /* others may give to themselves only */
        gid_t gid = geteuid() == 0 ? 2 : getegid();

        assert_int_equal(listener_open(path, uid, gid, &fd, 1, &why), 1);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_uid, uid);
        assert_int_equal(st.st_gid, gid);
        (void) close(fd);
}

static void test_stale_and_live(void **state) {
        const char *why = NULL;
        int first, second;

        first = open_one(path, &why);
        assert_true(first >= 0);
        assert_int_equal(open_one(path, &why), -EADDRINUSE);
        assert_non_null(why);
        /* its owner is gone, the file stays behind */
        (void) close(first);
        assert_int_equal(access(path, F_OK), 0);
        second = open_one(path, &why);
        assert_true(second >= 0);
        (void) close(second);
}

/* A backlog that is full answers EAGAIN: alive. */
static void test_busy_is_live(void **state) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM, 0), client[3];
        const char *why;

        (void) strcpy(sa.sun_path, path);
        assert_int_equal(bind(fd, (struct sockaddr *) &sa, sizeof(sa)), 0);
        assert_int_equal(listen(fd, 0), 0);
        for (unsigned i = 0; i < 3; i++) {
                client[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
                (void) connect(client[i], (struct sockaddr *) &sa, sizeof(sa));
        }
        assert_int_equal(open_one(path, &why), -EADDRINUSE);
        for (unsigned i = 0; i < 3; i++)
                (void) close(client[i]);
        (void) close(fd);
}

static void test_never_removes_others(void **state) {
        char target[96];
        const char *why = NULL;
        FILE *f;

        f = fopen(path, "w");
        assert_non_null(f);
        assert_true(fputs("mine", f) >= 0);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(open_one(path, &why), -EEXIST);
        assert_int_equal(access(path, F_OK), 0);
        assert_int_equal(unlink(path), 0);
        /* neither a directory, nor a link */
        assert_int_equal(mkdir(path, 0755), 0);
        assert_int_equal(open_one(path, &why), -EEXIST);
        assert_int_equal(rmdir(path), 0);
        (void) snprintf(target, sizeof(target), "%s/elsewhere", dir);
        assert_int_equal(symlink(target, path), 0);
        assert_int_equal(open_one(path, &why), -EEXIST);
        assert_non_null(why);
}

static void test_port_taken(void **state) {
        struct sockaddr_in sa = {};
        socklen_t n = sizeof(sa);
        char address[64];
        const char *why = NULL;
        int fd;

        fd = open_one("127.0.0.1:0", &why);
        assert_true(fd >= 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *) &sa, &n), 0);
        (void) snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(sa.sin_port));
        assert_int_equal(open_one(address, &why), -EADDRINUSE);
        assert_string_equal(why, "the port is taken");
        (void) close(fd);
}

/* "localhost" is one family or two; a name with no IPv6 behind it is no error. */
static void test_families(void **state) {
        const char *why = NULL;
        int fds[8], n;

        n = listener_open("localhost:0", (uid_t) -1, (gid_t) -1, fds, 8, &why);
        assert_in_range(n, 1, 2);
        while (n > 0)
                (void) close(fds[--n]);
        n = listener_open("*:0", (uid_t) -1, (gid_t) -1, fds, 8, &why);
        assert_in_range(n, 1, 2);
        while (n > 0)
                (void) close(fds[--n]);
}

static void test_nonsense(void **state) {
        static const char *const bad[] = { "", "x", ":", "host:", "1.2.3.4", "127.0.0.1:http:x",
                "no.such.host.invalid:1" };
        char longest[200];
        const char *why;

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                why = NULL;
                assert_true(open_one(bad[i], &why) < 0);
                assert_non_null(why);
        }
        memset(longest, 'a', sizeof(longest) - 1);
        longest[0] = '/';
        longest[sizeof(longest) - 1] = '\0';
        assert_int_equal(open_one(longest, &why), -ENAMETOOLONG);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_mode, setup, teardown),
                cmocka_unit_test_setup_teardown(test_group, setup, teardown),
                cmocka_unit_test_setup_teardown(test_stale_and_live, setup, teardown),
                cmocka_unit_test_setup_teardown(test_busy_is_live, setup, teardown),
                cmocka_unit_test_setup_teardown(test_never_removes_others, setup, teardown),
                cmocka_unit_test(test_port_taken),
                cmocka_unit_test(test_families),
                cmocka_unit_test(test_nonsense),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
