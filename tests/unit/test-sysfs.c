/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>

#include "tests/unit/sysfs-fixture.h"

static int setup(void **state) {
        static Fixture f;

        fixture_init(&f);
        *state = &f;
        return 0;
}

static int teardown(void **state) {
        fixture_deinit(*state);
        return 0;
}

static void test_lines(void **state) {
        Fixture *f = *state;
        char buf[8] = "keep";

        fixture_write(f, "intel_idle\n", "a/driver");
        fixture_write(f, "", "a/empty");
        fixture_write(f, "\n", "a/blank");
        fixture_write(f, "menu", "a/bare");
        assert_int_equal(sysfs_read_line(f->sysfs, buf, sizeof(buf), "a/%s", "missing"), -ENOENT);
        assert_int_equal(sysfs_read_line(f->sysfs, buf, sizeof(buf), "a/empty"), -ENODATA);
        assert_int_equal(sysfs_read_line(f->sysfs, buf, sizeof(buf), "a/blank"), -ENODATA);
        assert_string_equal(buf, "keep");
        assert_int_equal(sysfs_read_line(f->sysfs, buf, sizeof(buf), "/a/driver"), 0);
        assert_string_equal(buf, "intel_i");
        assert_int_equal(sysfs_read_line(f->sysfs, buf, sizeof(buf), "a/bare"), 0);
        assert_string_equal(buf, "menu");
        assert_true(sysfs_exists(f->sysfs, "a/driver"));
        assert_false(sysfs_exists(f->sysfs, "a/nothing"));
        assert_false(sysfs_is_host(f->sysfs));
}

static void test_numbers(void **state) {
        Fixture *f = *state;
        uint64_t u = 7;
        int64_t i = 7;

        fixture_write(f, "18446744073709551615\n", "n/max");
        fixture_write(f, "-1\n", "n/minus");
        fixture_write(f, "12 apples\n", "n/garbage");
        assert_int_equal(sysfs_read_u64(f->sysfs, &u, "n/max"), 0);
        assert_true(u == UINT64_MAX);
        assert_int_equal(sysfs_read_i64(f->sysfs, &i, "n/minus"), 0);
        assert_int_equal(i, -1);
        assert_int_equal(sysfs_read_u64(f->sysfs, &u, "n/garbage"), -EINVAL);
        assert_true(u == UINT64_MAX);
}

static void test_kept_fd_sees_changes(void **state) {
        Fixture *f = *state;
        uint64_t u;
        int fd;

        fixture_write(f, "41\n", "k/usage");
        fd = sysfs_open(f->sysfs, "k/usage");
        assert_true(fd >= 0);
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
        assert_int_equal(sysfs_pread_u64(fd, &u), 0);
        assert_int_equal(u, 41);
        fixture_write(f, "42\n", "k/usage");
        assert_int_equal(sysfs_pread_u64(fd, &u), 0);
        assert_int_equal(u, 42);
        fixture_write(f, "", "k/usage");
        assert_int_equal(sysfs_pread_u64(fd, &u), -ENODATA);
        (void) close(fd);
}

static void test_whole_files_are_bounded(void **state) {
        Fixture *f = *state;
        char text[10001];
        char *got = NULL;
        size_t n = 0;

        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = 0;
        fixture_write(f, text, "big");
        assert_int_equal(sysfs_read_file(f->sysfs, 10000, &got, &n, "big"), 0);
        assert_int_equal(n, 10000);
        assert_string_equal(got, text);
        free(got);
        got = NULL;
        assert_int_equal(sysfs_read_file(f->sysfs, 9999, &got, &n, "big"), -EFBIG);
        assert_null(got);
}

static void test_cpulists(void **state) {
        Fixture *f = *state;
        uint32_t *ids = NULL;
        size_t n = 0;

        fixture_write(f, "0-1,8-9,16-17,152-153\n", "online");
        assert_int_equal(sysfs_read_cpulist(f->sysfs, &ids, &n, "online"), 0);
        assert_int_equal(n, 8);
        assert_int_equal(ids[2], 8);
        assert_int_equal(ids[7], 153);
        free(ids);
}

static bool is_state(const char *name) {
        return strncmp(name, "state", 5) == 0;
}

static void test_names_sort_by_number(void **state) {
        Fixture *f = *state;
        char **names = NULL;
        size_t n = 0;

        for (unsigned i = 0; i < 11; i++)
                fixture_write(f, "", "list/state%u", i);
        fixture_write(f, "", "list/driver");
        assert_int_equal(sysfs_list(f->sysfs, is_state, &names, &n, "list"), 0);
        assert_int_equal(n, 11);
        assert_string_equal(names[9], "state9");
        assert_string_equal(names[10], "state10");
        sysfs_names_free(names, n);
        assert_int_equal(sysfs_list(f->sysfs, NULL, &names, &n, "list"), 0);
        assert_int_equal(n, 12);
        assert_string_equal(names[0], "driver");
        sysfs_names_free(names, n);
        assert_int_equal(sysfs_list(f->sysfs, NULL, &names, &n, "nowhere"), -ENOENT);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_lines),
                cmocka_unit_test(test_numbers),
                cmocka_unit_test(test_kept_fd_sees_changes),
                cmocka_unit_test(test_whole_files_are_bounded),
                cmocka_unit_test(test_cpulists),
                cmocka_unit_test(test_names_sort_by_number),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
