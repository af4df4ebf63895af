/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Full disks, failing disks, read-only disks, damaged files: the store goes on, and says so. C18, C22. */

#include "tests/unit/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sqlite3.h>

#include "cstated/macro.h"
#include "cstated/timespan.h"
#include "tests/unit/store-context.h"
#include "tests/unit/vfs-shim.h"

#define BASE_US (472222ULL * 3600 * USEC_PER_SEC)

static const FieldId fields[] = { FIELD_C6, FIELD_IRQ, FIELD_ENERGY_PKG };

static void append(Store *s, Fixture *f, uint64_t first, uint64_t last) {
        for (uint64_t i = first; i <= last; i++)
                assert_int_equal(store_append(s, fixture_sample(f, BASE_US, i)), 0);
}

/* All ticks of [first, last], each once, with their values. */
static void expect_ticks(Context *c, Store *live, const Fixture *f, uint64_t first, uint64_t last) {
        StoreScanSpec spec = { .end_us = INT64_MAX, .fields = fields, .n_fields = ARRAY_SIZE(fields) };
        StoreReader *r = context_reader(c, live);
        const StoreBlock *b;
        uint64_t seq = first;
        StoreScan *scan;
        int code;

        assert_int_equal(store_scan_new(r, &spec, &scan), 0);
        while ((code = store_scan_next(scan, &b)) > 0)
                for (size_t i = 0; i < b->n; i++, seq++) {
                        assert_int_equal(b->end_us[i], BASE_US + seq * USEC_PER_SEC);
                        for (size_t k = 0; k < b->layout->n_columns; k++) {
                                const LayoutColumn *to = &b->layout->columns[k];
                                size_t slot = layout_find(&f->layout, to->field, to->instance)->offset;
                                Reason reason = fixture_reason(seq, slot);

                                assert_int_equal(b->reasons[to->offset * b->n + i], reason);
                                assert_int_equal(b->values[to->offset * b->n + i],
                                        reason ? 0 : fixture_value(seq, slot));
                        }
                }
        assert_int_equal(code, 0);
        assert_int_equal(seq, last + 1);
        (void) store_scan_free(scan);
        (void) store_reader_close(r);
}

static void expect_integrity(Context *c) {
        assert_int_equal(
                context_sql(c, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"),
                1);
}

/* The disk refuses for five minutes, from the n'th write on, then is well again: nothing is lost. */
static void outage(Context *c, int code, int sync_code, uint64_t after) {
        Store *s = context_store(c);
        Fixture f;

        fixture_init(&f, 4, 1, 1);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        append(s, &f, 1, 150);
        vfs_shim.fail_after = after;
        vfs_shim.fail_write = code;
        vfs_shim.fail_sync = sync_code;
        append(s, &f, 151, 450);
        (void) store_maintain(s, BASE_US + 450 * USEC_PER_SEC);
        assert_true(context_figures(s).degraded);
        assert_true(context_figures(s).problem[0] != '\0');
        assert_true(context_figures(s).ring_ticks > 0);
        expect_ticks(c, s, &f, 1, 450);
        vfs_shim.fail_write = vfs_shim.fail_sync = 0;
        append(s, &f, 451, 500);
        assert_false(context_figures(s).degraded);
        assert_int_equal(context_figures(s).ring_ticks, 0);
        assert_int_equal(context_figures(s).ticks_lost, 0);
        assert_string_equal(context_figures(s).moved_aside, "");
        expect_ticks(c, s, &f, 1, 500);
        (void) store_close(s);
        expect_ticks(c, NULL, &f, 1, 500);
        expect_integrity(c);
        assert_int_equal(context_sql(c, "SELECT sum(n) FROM sys_1m"), 500);
        fixture_deinit(&f);
}

static void test_disk_full(void **state) {
        for (uint64_t after = 0; after < 30; after += 3) {
                char name[32];

                (void) snprintf(name, sizeof(name), "full-%d.db", (int) after);
                context_use(*state, name);
                outage(*state, SQLITE_FULL, 0, after);
        }
}

static void test_disk_fails(void **state) {
        for (uint64_t after = 0; after < 30; after += 7) {
                char name[32];

                (void) snprintf(name, sizeof(name), "eio-%d.db", (int) after);
                context_use(*state, name);
                outage(*state, SQLITE_IOERR_WRITE, 0, after);
        }
        context_use(*state, "fsync.db");
        outage(*state, 0, SQLITE_IOERR_FSYNC, 0);
}

/* Nothing can be opened for writing at first. */
static void test_read_only_then_well(void **state) {
        Context *c = *state;
        Store *s = NULL;
        Fixture f;

        fixture_init(&f, 4, 1, 1);
        vfs_shim.read_only = true;
        assert_true(store_open(&c->config, BASE_US, &s) < 0);
        assert_non_null(s);
        assert_true(context_figures(s).degraded);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        append(s, &f, 1, 200);
        assert_true(context_figures(s).degraded);
        expect_ticks(c, s, &f, 1, 200);
        vfs_shim.read_only = false;
        append(s, &f, 201, 260);
        assert_false(context_figures(s).degraded);
        (void) store_close(s);
        expect_ticks(c, NULL, &f, 1, 260);
        fixture_deinit(&f);
}

/* An old history that could not be opened at first: numbers go on behind it. */
static void test_numbers_follow_on(void **state) {
        Context *c = *state;
        Store *s = context_store(c);
        Fixture f;

        fixture_init(&f, 4, 1, 1);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        append(s, &f, 1, 100);
        (void) store_close(s);
        vfs_shim.read_only = true;
        assert_true(store_open(&c->config, BASE_US, &s) < 0);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        append(s, &f, 101, 200);
        vfs_shim.read_only = false;
        append(s, &f, 201, 260);
        (void) store_close(s);
        expect_ticks(c, NULL, &f, 1, 260);
        assert_int_equal(context_sql(c, "SELECT count(DISTINCT epoch) FROM chunk"), 2);
        fixture_deinit(&f);
}

static void test_directory_comes_later(void **state) {
        Context *c = *state;
        Store *s = NULL;
        char *dir;
        Fixture f;

        context_use(c, "later/store.db");
        fixture_init(&f, 4, 1, 1);
        assert_int_equal(store_open(&c->config, BASE_US, &s), -ENOENT);
        assert_non_null(s);
        assert_true(context_figures(s).head_problem[0] != '\0');
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        append(s, &f, 1, 130);
        expect_ticks(c, s, &f, 1, 130);
        assert_true(asprintf(&dir, "%s/later", c->dir) > 0);
        assert_int_equal(mkdir(dir, 0700), 0);
        free(dir);
        append(s, &f, 131, 200);
        assert_false(context_figures(s).degraded);
        assert_string_equal(context_figures(s).head_problem, "");
        (void) store_close(s);
        expect_ticks(c, NULL, &f, 1, 200);
        fixture_deinit(&f);
}

/* The runtime directory is full for a while: the open minute waits in memory, and then is a file again. */
static void test_head_has_room_again(void **state) {
        Context *c = *state;
        Store *s = context_store(c);
        struct rlimit limit, small;
        StoreFigures figures;
        Fixture f;

        fixture_init(&f, 64, 1, 1);
        (void) signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
        small = (struct rlimit){ 4 << 20, limit.rlim_max }; /* less than a head, more than this database */
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        append(s, &f, 1, 130);
        figures = context_figures(s);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        (void) signal(SIGXFSZ, SIG_DFL);
        assert_true(figures.head_problem[0] != '\0');
        assert_false(figures.degraded);
        append(s, &f, 131, 200);
        assert_string_equal(context_figures(s).head_problem, "");
        expect_ticks(c, s, &f, 1, 200);
        (void) store_close(s);
        expect_ticks(c, NULL, &f, 1, 200);
        fixture_deinit(&f);
}

/* A ring has an end: the oldest goes first, and is counted. */
static void test_ring_is_bounded(void **state) {
        Context *c = *state;
        uint64_t lost;
        Fixture f;
        Store *s;

        c->config.ring_bytes = 100000;
        s = context_store(c);
        fixture_init(&f, 4, 1, 1);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        append(s, &f, 1, 61);
        vfs_shim.fail_write = SQLITE_FULL;
        append(s, &f, 62, 3000);
        lost = context_figures(s).ticks_lost;
        assert_true(lost > 0);
        assert_int_equal(lost + context_figures(s).ring_ticks + context_figures(s).head_ticks, 3000 - 60);
        vfs_shim.fail_write = 0;
        (void) store_close(s);
        assert_int_equal(context_sql(c, "SELECT sum(n) FROM chunk"), 3000 - lost);
        assert_int_equal(context_sql(c, "SELECT min(seq) FROM chunk WHERE seq > 60"), 60 + lost + 1);
        fixture_deinit(&f);
}

/* ---- damage ---- */

static void scribble(const char *path, off_t at, size_t n) {
        int fd = open(path, O_WRONLY | O_CREAT, 0600);

        assert_true(fd >= 0);
        for (size_t i = 0; i < n; i++)
                assert_int_equal(pwrite(fd, "\xa5", 1, at + (off_t) i), 1);
        assert_int_equal(close(fd), 0);
}

static unsigned count_aside(const Context *c) {
        unsigned n = 0;
        struct dirent *e;
        DIR *d = opendir(c->dir);

        assert_non_null(d);
        while ((e = readdir(d)))
                if (strstr(e->d_name, ".damaged-") && !strstr(e->d_name, "-wal") &&
                        !strstr(e->d_name, "-shm"))
                        n++;
        assert_int_equal(closedir(d), 0);
        return n;
}

/* A file with some history, all of it checkpointed. */
static off_t make_history(Context *c, Fixture *f, uint64_t n) {
        Store *s = context_store(c);
        struct stat st;
        char *wal;

        assert_int_equal(store_set_machine(s, f->machine, BASE_US), 0);
        append(s, f, 1, n);
        (void) store_close(s);
        (void) context_sql(c, "PRAGMA wal_checkpoint(TRUNCATE)");
        assert_true(asprintf(&wal, "%s-wal", c->path) > 0);
        (void) unlink(wal);
        free(wal);
        assert_int_equal(stat(c->path, &st), 0);
        return st.st_size;
}

static void damaged_before_start(Context *c, const char *name, off_t at, size_t n) {
        unsigned before = count_aside(c);
        off_t size;
        Store *s;
        Fixture f;

        context_use(c, name);
        fixture_init(&f, 4, 1, 1);
        size = make_history(c, &f, 300);
        scribble(c->path, at, n > 0 ? n : (size_t) size);
        s = context_store(c);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        append(s, &f, 301, 500);
        assert_false(context_figures(s).degraded);
        assert_true(strstr(context_figures(s).moved_aside, ".damaged-") != NULL);
        (void) store_close(s);
        assert_int_equal(count_aside(c), before + 1);
        expect_ticks(c, NULL, &f, 301, 500);
        expect_integrity(c);
        fixture_deinit(&f);
}

static void test_damaged_before_start(void **state) {
        damaged_before_start(*state, "page1.db", 0, 4096);
        damaged_before_start(*state, "schema.db", 100, 200);
        damaged_before_start(*state, "whole.db", 0, 0);
}

/* One page after the other: whatever it held, there is a history to go on with, and reading never fails for
 * good. */
static void test_damaged_pages(void **state) {
        Context *c = *state;

        for (off_t page = 2; page < 48; page += 5) {
                StoreScanSpec spec = {
                        .end_us = INT64_MAX, .fields = fields, .n_fields = ARRAY_SIZE(fields)
                };
                const StoreBlock *b;
                uint64_t n = 0;
                char name[32];
                StoreScan *scan;
                StoreReader *r;
                Fixture f;
                Store *s;

                (void) snprintf(name, sizeof(name), "page%d.db", (int) page);
                context_use(c, name);
                fixture_init(&f, 4, 1, 1);
                assert_true(make_history(c, &f, 600) >= page * 4096);
                scribble(c->path, (page - 1) * 4096, 4096);
                s = context_store(c);
                assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
                r = context_reader(c, s);
                for (uint64_t i = 601; i <= 900; i++) {
                        append(s, &f, i, i);
                        if (i % 50)
                                continue;
                        /* a query may meet the damage and fail; the store then does something about it */
                        assert_int_equal(store_scan_new(r, &spec, &scan) <= 0, 1);
                        while (scan && store_scan_next(scan, &b) > 0)
                                ;
                        scan = store_scan_free(scan);
                        (void) store_maintain(s, BASE_US + i * USEC_PER_SEC);
                }
                assert_false(context_figures(s).degraded);
                assert_int_equal(store_scan_new(r, &spec, &scan), 0);
                while (store_scan_next(scan, &b) > 0)
                        n += b->n;
                assert_in_range(n, 300, 900);
                (void) store_scan_free(scan);
                (void) store_reader_close(r);
                (void) store_close(s);
                fixture_deinit(&f);
        }
}

/* Reads all there is, whatever comes of it. */
static uint64_t read_all(Context *c, Store *live) {
        StoreScanSpec spec = { .end_us = INT64_MAX, .fields = fields, .n_fields = ARRAY_SIZE(fields) };
        StoreReader *r = NULL;
        StoreScan *scan = NULL;
        const StoreBlock *b;
        uint64_t n = 0;

        if (store_reader_open(c->path, live, &r) == 0 && store_scan_new(r, &spec, &scan) == 0)
                while (store_scan_next(scan, &b) > 0)
                        n += b->n;
        (void) store_scan_free(scan);
        (void) store_reader_close(r);
        return n;
}

static void test_damaged_while_running(void **state) {
        Context *c = *state;
        off_t size;
        Fixture f;
        Store *s;

        fixture_init(&f, 4, 1, 1);
        size = make_history(c, &f, 300);
        s = context_store(c);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        append(s, &f, 301, 400);
        scribble(c->path, 0, (size_t) size);
        for (uint64_t i = 401; i <= 700; i++) {
                append(s, &f, i, i);
                if (i % 60 == 0)
                        (void) read_all(c, s);
        }
        assert_false(context_figures(s).degraded);
        assert_true(context_figures(s).moved_aside[0] != '\0');
        assert_true(read_all(c, s) >= 240);
        (void) store_close(s);
        expect_integrity(c);
        assert_int_equal(count_aside(c), 1);
        fixture_deinit(&f);
}

static void test_file_taken_away(void **state) {
        Context *c = *state;
        Fixture f;
        Store *s;

        fixture_init(&f, 4, 1, 1);
        s = context_store(c);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        append(s, &f, 1, 100);
        assert_int_equal(unlink(c->path), 0);
        (void) store_maintain(s, BASE_US + 100 * USEC_PER_SEC);
        append(s, &f, 101, 300);
        assert_false(context_figures(s).degraded);
        (void) store_close(s);
        assert_true(context_sql(c, "SELECT sum(n) FROM chunk") >= 200);
        fixture_deinit(&f);
}

static void test_few_damaged_files_are_kept(void **state) {
        Context *c = *state;
        Fixture f;

        fixture_init(&f, 2, 1, 1);
        for (unsigned i = 0; i < 6; i++) {
                Store *s = NULL;

                scribble(c->path, 0, 8192);
                assert_int_equal(store_open(&c->config, BASE_US + i * USEC_PER_SEC, &s), 0);
                (void) store_close(s);
        }
        assert_int_equal(count_aside(c), 3);
        fixture_deinit(&f);
}


int main(void) {
        const struct CMUnitTest tests[] = {
                SHIM_TEST(test_disk_full),
                SHIM_TEST(test_disk_fails),
                SHIM_TEST(test_read_only_then_well),
                SHIM_TEST(test_numbers_follow_on),
                SHIM_TEST(test_directory_comes_later),
                SHIM_TEST(test_head_has_room_again),
                SHIM_TEST(test_ring_is_bounded),
                SHIM_TEST(test_damaged_before_start),
                SHIM_TEST(test_damaged_pages),
                SHIM_TEST(test_damaged_while_running),
                SHIM_TEST(test_file_taken_away),
                SHIM_TEST(test_few_damaged_files_are_kept),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
