/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A real file system that is full, or read-only, for a while: when a minute is committed, when the WAL grows, when it
 * is checkpointed, when the database is opened. The store says so, nothing is lost, and it recovers by itself. C22.
 */

#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include "cstated/timespan.h"
#include "tests/unit/store-context.h"
#include "tests/unit/store-grid.h"

#define BASE_US (472222ULL * 3600 * USEC_PER_SEC)

static const Grid grid = {BASE_US, USEC_PER_SEC, 0, 0};

typedef struct Disk {
        Context c;
        char *filler, *runtime;
        Fixture f;
        Store *s;
        uint64_t n; /* ticks appended */
} Disk;

/* To the last byte. */
static void fill(const Disk *d) {
        static const char bytes[65536];
        int fd = open(d->filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        for (size_t n = sizeof(bytes); n > 0; n /= 2)
                while (write(fd, bytes, n) > 0)
                        ;
        assert_int_equal(errno, ENOSPC);
        assert_int_equal(close(fd), 0);
}

static void append(Disk *d, uint64_t n) {
        while (n-- > 0)
                assert_int_equal(store_append(d->s, grid_sample(&d->f, &grid, ++d->n)), 0);
}

static StoreFigures figures_of(Disk *d) {
        StoreFigures f;

        store_figures(d->s, &f);
        return f;
}

/* All ticks, each once, with every value: as the daemon's own readers see them, in memory or not. */
static void expect_all(Disk *d, Store *live) {
        StoreReader *r = context_reader(&d->c, live);
        uint64_t first;

        assert_int_equal(grid_check(r, &d->f, &grid, &first), d->n);
        assert_int_equal(first, 1);
        (void) store_reader_close(r);
}

static int setup(void **state) {
        Disk *d = calloc(1, sizeof(*d));

        assert_non_null(d);
        d->c.dir = getenv("CSTATED_SMALL_DISK");
        d->c.config = (StoreConfig) STORE_CONFIG_INIT;
        context_use(&d->c, "store.db");
        d->runtime = fixture_make_dir();
        d->c.config.runtime_dir = d->runtime;
        assert_true(asprintf(&d->filler, "%s/filler", d->c.dir) > 0);
        fixture_init(&d->f, 8, 2, 1);
        *state = d;
        return 0;
}

static int teardown(void **state) {
        static const char *const suffixes[] = {"", "-wal", "-shm"};
        Disk *d = *state;

        (void) unlink(d->filler);
        for (size_t i = 0; i < 3; i++) {
                char *name = NULL;

                assert_true(asprintf(&name, "%s%s", d->c.path, suffixes[i]) > 0);
                (void) unlink(name);
                free(name);
        }
        fixture_deinit(&d->f);
        fixture_remove_dir(d->runtime);
        free(d->filler);
        free(d->c.path);
        free(d);
        return 0;
}

static void begin(Disk *d) {
        d->s = context_store(&d->c);
        assert_int_equal(store_set_machine(d->s, d->f.machine, BASE_US), 0);
}

/* Well again within a minute or so of ticks, and whole. */
static void expect_recovery(Disk *d) {
        append(d, 80);
        assert_false(figures_of(d).degraded);
        assert_int_equal(figures_of(d).ring_ticks, 0);
        assert_int_equal(figures_of(d).ticks_lost, 0);
        assert_string_equal(figures_of(d).moved_aside, "");
        expect_all(d, d->s);
        (void) store_close(d->s);
        expect_all(d, NULL);
        assert_int_equal(
                context_sql(&d->c, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"), 1);
        assert_int_equal(context_sql(&d->c, "SELECT sum(n) FROM sys_1m"), d->n);
}

/* The WAL is still growing to its size. */
static void test_full_at_commit(void **state) {
        Disk *d = *state;

        begin(d);
        append(d, 300);
        fill(d);
        append(d, 1200);
        assert_true(figures_of(d).degraded);
        assert_non_null(strstr(figures_of(d).problem, "full"));
        assert_true(figures_of(d).ring_ticks > 900);
        expect_all(d, d->s);
        assert_int_equal(unlink(d->filler), 0);
        expect_recovery(d);
}

/* The WAL has its size and begins anew: what has no room is the database that it is copied into. */
static void test_full_at_checkpoint(void **state) {
        Disk *d = *state;
        int64_t pages;

        begin(d);
        while (d->n < 20000 && figures_of(d).bytes < 1 << 20) /* until the first checkpoint */
                append(d, 60);
        assert_true(figures_of(d).bytes >= 1 << 20);
        fill(d);
        pages = context_sql(&d->c, "SELECT page_count FROM pragma_page_count");
        for (unsigned i = 0; i < 200 && !figures_of(d).degraded; i++)
                append(d, 60);
        assert_true(figures_of(d).degraded);
        assert_non_null(strstr(figures_of(d).problem, "checkpoint"));
        /* what was committed meanwhile is in the WAL */
        assert_true(context_sql(&d->c, "SELECT page_count FROM pragma_page_count") > pages);
        expect_all(d, d->s);
        /* and when that is full too, in memory */
        append(d, 1200);
        assert_true(figures_of(d).degraded);
        assert_true(figures_of(d).ring_ticks > 0);
        expect_all(d, d->s);
        assert_int_equal(unlink(d->filler), 0);
        expect_recovery(d);
}

static void test_read_only_at_start(void **state) {
        Disk *d = *state;

        if (mount(NULL, d->c.dir, NULL, MS_REMOUNT | MS_RDONLY, "size=8m") < 0)
                skip();
        assert_true(store_open(&d->c.config, BASE_US, &d->s) < 0);
        assert_non_null(d->s);
        assert_int_equal(store_set_machine(d->s, d->f.machine, BASE_US), 0);
        append(d, 600);
        assert_true(figures_of(d).degraded);
        assert_true(figures_of(d).problem[0] != '\0');
        assert_int_equal(figures_of(d).ring_ticks + figures_of(d).head_ticks, 600);
        expect_all(d, d->s);
        assert_int_equal(mount(NULL, d->c.dir, NULL, MS_REMOUNT, "size=8m"), 0);
        expect_recovery(d);
}

#define DISK_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                DISK_TEST(test_full_at_commit),
                DISK_TEST(test_full_at_checkpoint),
                DISK_TEST(test_read_only_at_start),
        };

        if (!getenv("CSTATED_SMALL_DISK")) {
                (void) printf("run by small-disk.sh\n");
                return 77;
        }
        return cmocka_run_group_tests(tests, NULL, NULL);
}
