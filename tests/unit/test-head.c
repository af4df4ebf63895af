/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The open minute's file: what is taken over, and what is not. */

#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/head.h"
#include "tests/unit/store-context.h"

#define TICKS 7

static const char json[] = "{\"text\":\"of a machine\"}";

typedef struct HeadContext {
        char *dir, *path;
        Fixture f;
        HeadOwner owner;
} HeadContext;

static int setup(void **state) {
        HeadContext *c = calloc(1, sizeof(*c));

        assert_non_null(c);
        c->dir = fixture_make_dir();
        assert_true(asprintf(&c->path, "%s/store.db.head", c->dir) > 0);
        fixture_init(&c->f, 3, 1, 1);
        c->owner = (HeadOwner){ .boot_id = "a boot", .seq = 1000, .epoch = 5, .epoch_us = 77 };
        *state = c;
        return 0;
}

static int teardown(void **state) {
        HeadContext *c = *state;

        fixture_deinit(&c->f);
        fixture_remove_dir(c->dir);
        free(c->path);
        free(c);
        return 0;
}

static void append(Head *h, HeadContext *c, uint64_t first, uint64_t n) {
        for (uint64_t i = first; i < first + n; i++) {
                const Sample *s = fixture_sample(&c->f, 0, i);
                TickRecord t = { s->h.start_us, s->h.end_us, s->h.dt_ns };

                assert_int_equal(head_append(h, &t, s->values, s->reasons), 0);
        }
}

/* A file with TICKS ticks, left by somebody who went away. */
static void leave(HeadContext *c) {
        Head *h = NULL;

        assert_int_equal(head_new(c->path, &h), 0);
        assert_int_equal(head_begin(h, &c->owner, &c->f.layout, json), 0);
        assert_true(head_is_file(h));
        append(h, c, 1, TICKS);
        (void) head_free(h);
}

/* What head_left() says; the number of ticks. */
static int left(HeadContext *c, size_t *ret_n) {
        HeadOwner owner;
        const char *text;
        Layout layout;
        TickRows rows;
        Head *h = NULL;
        int r;

        assert_int_equal(head_new(c->path, &h), 0);
        r = head_left(h, &owner, &text, &layout, &rows);
        if (r > 0) {
                assert_true(rows.n <= CODEC_TICKS_MAX);
                for (size_t i = 0; i < rows.n; i++) /* all of it can be read */
                        assert_true(tick_rows_reasons(&rows, i)[rows.n_values - 1] <= 255);
                *ret_n = rows.n;
        }
        (void) head_free(h);
        return r;
}

static void test_left_and_found(void **state) {
        HeadContext *c = *state;
        HeadOwner owner;
        const char *text;
        Layout layout;
        TickRows rows;
        Head *h = NULL;

        leave(c);
        assert_int_equal(head_new(c->path, &h), 0);
        assert_int_equal(head_left(h, &owner, &text, &layout, &rows), 1);
        assert_string_equal(owner.boot_id, "a boot");
        assert_int_equal(owner.seq, 1000);
        assert_int_equal(owner.epoch, 5);
        assert_string_equal(text, json);
        assert_int_equal(layout.n_columns, c->f.layout.n_columns);
        assert_int_equal(layout.n_values, c->f.layout.n_values);
        assert_int_equal(rows.n, TICKS);
        for (uint64_t i = 0; i < TICKS; i++) {
                assert_int_equal(tick_rows_record(&rows, i)->dt_ns, 1000000000 + i + 1);
                for (size_t k = 0; k < rows.n_values; k++) {
                        assert_int_equal(tick_rows_reasons(&rows, i)[k], fixture_reason(i + 1, k));
                        assert_int_equal(tick_rows_values(&rows, i)[k],
                                fixture_reason(i + 1, k) ? 0 : fixture_value(i + 1, k));
                }
        }
        /* begun again it is empty */
        assert_int_equal(head_begin(h, &c->owner, &c->f.layout, json), 0);
        assert_int_equal(head_rows(h).n, 0);
        append(h, c, 1, 2);
        head_restart(h, &c->owner);
        assert_int_equal(head_rows(h).n, 0);
        (void) head_free(h);
        assert_int_equal(left(c, &(size_t){ 0 }), 0);
}

static void test_one_at_a_time(void **state) {
        HeadContext *c = *state;
        Head *a = NULL, *b = NULL;

        assert_int_equal(head_new(c->path, &a), 0);
        assert_int_equal(head_new(c->path, &b), -EBUSY);
        assert_null(b);
        (void) head_free(a);
        assert_int_equal(head_new(c->path, &b), 0);
        (void) head_free(b);
}

static void test_memory_serves_too(void **state) {
        HeadContext *c = *state;
        Head *h = NULL;

        assert_int_equal(head_new("/nonexistent/head", &h), -ENOENT);
        assert_non_null(h);
        assert_int_equal(head_begin(h, &c->owner, &c->f.layout, json), 0);
        assert_false(head_is_file(h));
        append(h, c, 1, TICKS);
        assert_int_equal(head_rows(h).n, TICKS);
        (void) head_free(h);
}

static void test_it_ends(void **state) {
        HeadContext *c = *state;
        const Sample *s = fixture_sample(&c->f, 0, 1);
        TickRecord t = { 0, 1, 2 };
        Head *h = NULL;
        unsigned n = 0;

        assert_int_equal(head_new(c->path, &h), 0);
        assert_int_equal(head_begin(h, &c->owner, &c->f.layout, json), 0);
        while (head_append(h, &t, s->values, s->reasons) == 0)
                n++;
        assert_int_equal(head_append(h, &t, s->values, s->reasons), -ENOBUFS);
        assert_in_range(n, 64, CODEC_TICKS_MAX);
        assert_int_equal(head_rows(h).n, n);
        (void) head_free(h);
}

/* Any byte of the description changed: refused. Of the rest: never a crash. Cut short anywhere: the same. */
static void test_damaged_file(void **state) {
        HeadContext *c = *state;
        uint64_t random = 88172645463325252ULL;
        struct stat st;
        size_t n = 0;

        for (unsigned i = 0; i < 400; i++) {
                off_t at;
                int fd;

                leave(c);
                fd = open(c->path, O_RDWR);
                assert_true(fd >= 0);
                assert_int_equal(fstat(fd, &st), 0);
                random = random * 6364136223846793005ULL + 1442695040888963407ULL;
                at = (off_t) ((random >> 33) % (i % 2 ? 1500 : (uint64_t) st.st_size));
                if (i % 5 == 4)
                        assert_int_equal(ftruncate(fd, at), 0);
                else
                        assert_int_equal(pwrite(fd, &random, sizeof(random), at), sizeof(random));
                assert_int_equal(close(fd), 0);
                assert_in_range(left(c, &n) + 1000, 0, 1001);
        }
        leave(c);
        assert_int_equal(left(c, &n), 1);
        assert_int_equal(n, TICKS);
}

#define HEAD_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                HEAD_TEST(test_left_and_found),
                HEAD_TEST(test_one_at_a_time),
                HEAD_TEST(test_memory_serves_too),
                HEAD_TEST(test_it_ends),
                HEAD_TEST(test_damaged_file),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
