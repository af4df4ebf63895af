/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events: seen at once, written in batches, bounded by kind and minute, in the table, and while the disk is full. */

#include "tests/unit/test.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "cstated/macro.h"
#include "cstated/timespan.h"
#include "store/event-queue.h"
#include "tests/unit/store-context.h"
#include "tests/unit/vfs-shim.h"

#define BASE_US (472222ULL * 3600 * USEC_PER_SEC)
#define MS      1000ULL

typedef struct Seen {
        size_t n;
        uint64_t ids[2000], times[2000];
        char kinds[2000][32];
} Seen;

static int take(void *userdata, const StoreEvent *e) {
        Seen *seen = userdata;

        assert_true(seen->n < ARRAY_SIZE(seen->ids));
        if (seen->n > 0)
                assert_true(e->time_us <= seen->times[seen->n - 1]);
        seen->ids[seen->n] = e->id;
        seen->times[seen->n] = e->time_us;
        (void) snprintf(seen->kinds[seen->n++], 32, "%s", e->kind);
        return 0;
}

static Seen *read_events(StoreReader *r, const char *kind, size_t max) {
        Seen *seen = calloc(1, sizeof(*seen));

        assert_non_null(seen);
        assert_int_equal(store_reader_events(r, BASE_US, INT64_MAX, kind, max, take, seen), 0);
        return seen;
}

/* A source that flaps 20 times a second for three minutes, and what else happens meanwhile. */
static void test_storm(void **state) {
        Context *c = *state;
        uint64_t syncs, commits;
        Fixture f;
        Store *s;

        fixture_init(&f, 2, 1, 1);
        s = context_store(c);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        syncs = vfs_shim.syncs;
        commits = context_figures(s).commits;
        for (uint64_t i = 0; i < 180; i++) {
                uint64_t start = BASE_US + i * USEC_PER_SEC;

                for (uint64_t k = 1; k <= 20; k++)
                        assert_int_equal(store_event(s, start + k * 50 * MS - MS, "source", -1, "flaps"), 0);
                if (i % 60 == 59)
                        assert_int_equal(store_event(s, start + 990 * MS, "gap", -1, "1 frame"), 0);
                assert_int_equal(store_append(s, fixture_sample(&f, BASE_US, i + 1)), 0);
        }
        /* the very first one, three minutes with their ticks, and of each minute the first three seconds of events
           and the gap at its end */
        assert_in_range(context_figures(s).commits - commits, 2, 1 + 3 + 3 * 2);
        assert_in_range(vfs_shim.syncs - syncs, 2, 1 + 3 + 3 * 2 + 4);
        assert_int_equal(context_figures(s).events_dropped, 3 * (1200 - EVENT_KIND_MAX));
        (void) store_close(s);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM event WHERE kind = 'source' AND text = 'flaps'"),
                3 * EVENT_KIND_MAX);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM event WHERE text LIKE '%dropped'"), 3);
        assert_int_equal(
                context_sql(c, "SELECT count(*) FROM event WHERE kind = 'source' AND cpu IS NULL AND text ="
                               " '1140 more of this kind were dropped'"),
                3);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM event WHERE kind = 'gap'"), 3);
        fixture_deinit(&f);
}

/* One that comes alone is on the disk before the call returns; the next one waits, and is seen all the same. */
static void test_one_alone(void **state) {
        Context *c = *state;
        Store *s = context_store(c);
        StoreReader *r = context_reader(c, s);
        Seen *before, *after;
        uint64_t syncs;

        /* the first commit syncs the WAL's head too */
        assert_int_equal(store_event(s, BASE_US - 60 * USEC_PER_SEC, "gap", -1, "too early to be asked for"), 0);
        syncs = vfs_shim.syncs;
        assert_int_equal(store_event(s, BASE_US, "hotplug", 3, "offline: 3"), 0);
        assert_int_equal(vfs_shim.syncs - syncs, 1);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM event"), 2);
        assert_int_equal(store_event(s, BASE_US + 1000 * MS, "hotplug", 3, "online: 3"), 0);
        assert_int_equal(store_event(s, BASE_US + 1000 * MS, "gap", -1, "1 frame"), 0);
        assert_int_equal(store_event(s, BASE_US - 1, "gap", -1, "too early to be asked for"), 0);
        assert_int_equal(vfs_shim.syncs - syncs, 1);
        before = read_events(r, NULL, 10);
        assert_int_equal(before->n, 3);
        assert_string_equal(before->kinds[0], "gap");
        /* the clock was set back meanwhile: what waits is older than what is in the file */
        assert_int_equal(store_event(s, BASE_US, "hotplug", 3, "offline: 3"), 0);
        after = read_events(r, "hotplug", 10);
        assert_int_equal(after->n, 3);
        assert_int_equal(after->times[0], BASE_US + 1000 * MS);
        assert_true(after->ids[1] > after->ids[2]);
        free(after);
        after = read_events(r, NULL, 1);
        assert_int_equal(after->n, 1);
        free(after);
        /* the batch; numbers stay */
        assert_int_equal(store_event(s, BASE_US + 5000 * MS, "gap", -1, "1 frame"), 0);
        assert_int_equal(vfs_shim.syncs - syncs, 2);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM event"), 7);
        after = read_events(r, NULL, 10);
        assert_int_equal(after->n, 5);
        assert_int_equal(after->ids[1], before->ids[0]);
        assert_int_equal(after->ids[2], before->ids[1]);
        free(before);
        free(after);
        (void) store_reader_close(r);
        (void) store_close(s);
}

/* Ticks go on, no event follows: the batch is written all the same, and by a stop at once. */
static void test_ticks_write_the_batch(void **state) {
        Context *c = *state;
        Fixture f;
        Store *s;

        fixture_init(&f, 2, 1, 1);
        s = context_store(c);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        for (uint64_t i = 0; i < 2; i++)
                assert_int_equal(store_event(s, BASE_US + i, "gap", -1, "1 frame"), 0);
        for (uint64_t i = 1; i <= 10; i++) {
                assert_int_equal(store_append(s, fixture_sample(&f, BASE_US, i)), 0);
                assert_int_equal(context_sql(c, "SELECT count(*) FROM event"), i < 5 ? 1 : 2);
        }
        for (uint64_t i = 0; i < 3; i++)
                assert_int_equal(store_event(s, BASE_US + 11 * USEC_PER_SEC + i, "gap", -1, "1 frame"), 0);
        (void) store_close(s);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM event"), 5);
        s = context_store(c);
        for (uint64_t i = 0; i < 2; i++)
                assert_int_equal(store_event(s, BASE_US + 12 * USEC_PER_SEC + i, "gap", -1, "no tick yet"), 0);
        (void) store_close(s);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM event"), 7);
        fixture_deinit(&f);
}

/* The disk is full for an hour of flapping: memory is bounded, and what was lost is told. */
static void test_disk_is_full(void **state) {
        Context *c = *state;
        Store *s = context_store(c);
        uint64_t n = 0, dropped;
        StoreReader *r;
        Seen *seen;

        assert_int_equal(store_event(s, BASE_US, "gap", -1, "before"), 0);
        vfs_shim.fail_write = SQLITE_FULL;
        for (; n < 3600; n++)
                assert_int_equal(
                        store_event(s, BASE_US + (n + 1) * USEC_PER_SEC, n % 2 ? "source" : "hotplug", -1, "x"), 0);
        assert_true(context_figures(s).degraded);
        dropped = context_figures(s).events_dropped;
        assert_int_equal(dropped, n - EVENT_QUEUE_MAX);
        r = context_reader(c, s);
        seen = read_events(r, NULL, 2000);
        assert_int_equal(seen->n, EVENT_QUEUE_MAX + 1);
        free(seen);
        vfs_shim.fail_write = 0;
        assert_int_equal(store_event(s, BASE_US + 4000 * USEC_PER_SEC, "gap", -1, "after"), 0);
        assert_false(context_figures(s).degraded);
        assert_int_equal(store_event(s, BASE_US + 4100 * USEC_PER_SEC, "gap", -1, "after"), 0);
        (void) store_reader_close(r);
        (void) store_close(s);
        assert_int_equal(context_sql(c, "SELECT sum(CAST(text AS INTEGER)) FROM event WHERE text LIKE '%dropped'"),
                (int64_t) dropped + 1); /* "after" came before there was room */
        assert_int_equal(context_sql(c, "SELECT count(*) FROM event WHERE text NOT LIKE '%dropped'"),
                1 + EVENT_QUEUE_MAX + 1);
}

/* Events that were numbered before the file could be had follow on what it holds. */
static void test_numbers_follow_on(void **state) {
        Context *c = *state;
        StoreConfig config = c->config;
        Store *s = context_store(c);
        char *away;

        assert_int_equal(store_event(s, BASE_US, "gap", -1, "old"), 0);
        (void) store_close(s);
        assert_true(asprintf(&away, "%s/away", c->dir) > 0);
        assert_int_equal(rename(c->path, away), 0);
        vfs_shim.read_only = true;
        assert_true(store_open(&config, BASE_US, &s) < 0);
        assert_non_null(s);
        assert_int_equal(store_event(s, BASE_US + USEC_PER_SEC, "gap", -1, "new"), 0);
        assert_int_equal(rename(away, c->path), 0);
        free(away);
        vfs_shim.read_only = false;
        assert_int_equal(store_event(s, BASE_US + 60 * USEC_PER_SEC, "gap", -1, "newer"), 0);
        assert_false(context_figures(s).degraded);
        (void) store_close(s);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM event"), 3);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM event WHERE id = 2 AND text = 'new'"), 1);
}

/* A table that is too long gets shorter, a piece a minute. */
static void test_table_is_bounded(void **state) {
        Context *c = *state;
        Fixture f;
        Store *s;

        (void) store_close(context_store(c));
        (void) context_sql(c, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 102500)"
                              " INSERT INTO event (id, t, kind, text)"
                              " SELECT i, 1699999000000000 + i, 'gap', 'x' FROM n");
        fixture_init(&f, 2, 1, 1);
        s = context_store(c);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        for (uint64_t i = 1; i <= 61; i++)
                assert_int_equal(store_append(s, fixture_sample(&f, BASE_US, i)), 0);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM event"), 102500 - EVENTS_CUT_MAX);
        for (uint64_t i = 62; i <= 241; i++)
                assert_int_equal(store_append(s, fixture_sample(&f, BASE_US, i)), 0);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM event"), EVENTS_KEPT_MAX);
        assert_int_equal(context_sql(c, "SELECT max(id) FROM event"), 102500);
        (void) store_close(s);
        fixture_deinit(&f);
}


int main(void) {
        const struct CMUnitTest tests[] = {
                SHIM_TEST(test_storm),
                SHIM_TEST(test_one_alone),
                SHIM_TEST(test_ticks_write_the_batch),
                SHIM_TEST(test_disk_is_full),
                SHIM_TEST(test_numbers_follow_on),
                SHIM_TEST(test_table_is_bounded),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
