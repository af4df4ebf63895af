/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a power cut takes: less than 60 s of ticks, whatever the interval and wherever its grid lies against the
 * wall minute, and what that promise costs: no more commits than there are minutes. The open minute's file is
 * gone with the power.
 */

#include "tests/unit/test.h"

#include <stdlib.h>

#include "cstated/macro.h"
#include "cstated/timespan.h"
#include "store/writer.h"
#include "tests/unit/store-context.h"
#include "tests/unit/store-grid.h"
#include "tests/unit/vfs-shim.h"

#define MINUTE_US (60 * USEC_PER_SEC)
#define BASE_US   (472222ULL * 60 * MINUTE_US)

static uint64_t next_random(uint64_t *state) {
        *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
        return *state >> 33;
}

/* ---- what is lost ---- */

#define CUTS_MAX 16

/* A run that is cut: images taken while a tick is appended, looked at afterwards. */
typedef struct Cuts {
        Context *c;
        Fixture f;
        Grid grid;
        uint64_t allowed_us;
        uint64_t random, one_in;
        uint64_t appended; /* ticks whose store_append() has returned */
        char *dirs[CUTS_MAX];
        size_t n;
        uint64_t n_cuts, n_within, worst_us;
} Cuts;

static void take_image(Cuts *k) {
        if (k->n == CUTS_MAX)
                return;
        k->dirs[k->n] = fixture_make_dir();
        vfs_shim_cut(k->dirs[k->n++], next_random(&k->random));
}

/* In the midst of a commit, before any of its writes and syncs. */
static void on_io(void *userdata) {
        Cuts *k = userdata;

        if (next_random(&k->random) % 16 == 0)
                take_image(k);
}

/* The machine comes back: what is there is what was appended, up to some tick not long ago. */
static void check_image(Cuts *k, char *dir, uint64_t appended) {
        Context after = *k->c;
        Store *s = NULL;
        StoreFigures figures;
        StoreReader *r;
        uint64_t first, have, missing;

        after.path = NULL;
        after.dir = dir;
        context_use(&after, "store.db");
        assert_int_equal(store_open(&after.config, BASE_US, &s), 0);
        store_figures(s, &figures);
        assert_string_equal(figures.moved_aside, "");
        assert_int_equal(store_set_machine(s, k->f.machine, BASE_US), 0);
        (void) store_close(s);
        assert_int_equal(
                context_sql(&after, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"), 1);
        r = context_reader(&after, NULL);
        have = grid_check(r, &k->f, &k->grid, &first);
        assert_int_equal(first, have > 0);
        (void) store_reader_close(r);
        assert_in_range(have, 0, k->appended);
        assert_int_equal(context_sql(&after, "SELECT coalesce(sum(n), 0) FROM sys_1m"), have);
        missing = appended > have ? grid_end(&k->grid, appended) - grid_end(&k->grid, have) : 0;
        assert_in_range(missing, 0, k->allowed_us);
        k->worst_us = MAX(k->worst_us, missing);
        k->n_cuts++;
        free(after.path);
        fixture_remove_dir(dir);
}

static void append_and_cut(Cuts *k, Store *s, uint64_t i) {
        uint64_t before = k->appended;
        size_t n_within;

        vfs_shim.on_io = on_io;
        vfs_shim.userdata = k;
        assert_int_equal(store_append(s, grid_sample(&k->f, &k->grid, i)), 0);
        vfs_shim.on_io = NULL;
        n_within = k->n;
        k->n_within += n_within;
        k->appended = i;
        if (next_random(&k->random) % k->one_in == 0)
                take_image(k);
        vfs_shim.track = false; /* the copies are files like any other */
        for (size_t n = 0; n < k->n; n++)
                check_image(k, k->dirs[n], n < n_within ? before : i);
        vfs_shim.track = true;
        k->n = 0;
}

/* Five minutes and a half on that grid; returns the most that a cut took. */
static uint64_t power_cuts(Context *c, Grid grid, uint64_t durable_us, uint64_t allowed_us) {
        uint64_t n = 330 * USEC_PER_SEC / grid.interval_us, worst;
        Cuts *k = calloc(1, sizeof(*k));
        Store *s;

        assert_non_null(k);
        *k = (Cuts){.c = c,
                .grid = grid,
                .allowed_us = allowed_us,
                .random = grid.base_us + grid.interval_us,
                .one_in = MAX(n / 20, (uint64_t) 1)};
        c->config.durable_head_usec = durable_us;
        fixture_init(&k->f, 3, 1, 1);
        vfs_shim.track = true;
        s = context_store(c);
        assert_int_equal(store_set_machine(s, k->f.machine, BASE_US), 0);
        for (uint64_t i = 1; i <= n; i++)
                append_and_cut(k, s, i);
        vfs_shim.track = false;
        (void) store_close(s);
        print_message("%d cuts, %d of them within a commit, at most %.3f s lost\n", (int) k->n_cuts,
                (int) k->n_within, 1e-6 * (double) k->worst_us);
        assert_in_range(k->n_within, 3, k->n_cuts - 3);
        worst = k->worst_us;
        fixture_deinit(&k->f);
        free(k);
        return worst;
}

static void test_on_the_minute(void **state) {
        Grid g = {BASE_US, .interval_us = USEC_PER_SEC};

        assert_in_range(power_cuts(*state, g, 0, MINUTE_US - 1), 40 * USEC_PER_SEC, MINUTE_US - 1);
}

static void test_between(void **state) {
        Grid g = {BASE_US + 500 * USEC_PER_MSEC, USEC_PER_SEC, .jitter_us = 5000, .late_us = 300 * USEC_PER_MSEC};

        assert_in_range(power_cuts(*state, g, 0, MINUTE_US - 1), 40 * USEC_PER_SEC, MINUTE_US - 1);
}

/* The last tick of a minute is not foretold here. */
static void test_just_after_the_minute(void **state) {
        Grid g = {BASE_US + 40 * USEC_PER_MSEC, USEC_PER_SEC, .jitter_us = 1000, .late_us = 30 * USEC_PER_MSEC};

        assert_in_range(power_cuts(*state, g, 0, MINUTE_US - 1), 40 * USEC_PER_SEC, MINUTE_US - 1);
}

/* Jitter throws ticks to either side of the full minute. */
static void test_on_both_sides(void **state) {
        Grid g = {BASE_US, USEC_PER_SEC, .jitter_us = 2000, .late_us = 200 * USEC_PER_MSEC};

        assert_in_range(power_cuts(*state, g, 0, MINUTE_US - 1), 40 * USEC_PER_SEC, MINUTE_US - 1);
}

static void test_fast(void **state) {
        Grid g = {BASE_US + 70 * USEC_PER_MSEC, 100 * USEC_PER_MSEC, .jitter_us = 2000};

        assert_in_range(power_cuts(*state, g, 0, MINUTE_US - 1), 40 * USEC_PER_SEC, MINUTE_US - 1);
}

static void test_slow(void **state) {
        Grid g = {BASE_US + 3 * USEC_PER_SEC, 7 * USEC_PER_SEC, .jitter_us = 2000};

        assert_in_range(power_cuts(*state, g, 0, MINUTE_US - 1), 20 * USEC_PER_SEC, MINUTE_US - 1);
}

/* A tick a minute is a commit a tick. */
static void test_slowest(void **state) {
        Grid g = {BASE_US + 3 * USEC_PER_SEC, MINUTE_US, .jitter_us = 2000};

        assert_int_equal(power_cuts(*state, g, 0, MINUTE_US - 1), 0);
}

static void test_durable_head(void **state) {
        Grid g = {BASE_US + 500 * USEC_PER_MSEC, USEC_PER_SEC, .jitter_us = 5000, .late_us = 300 * USEC_PER_MSEC};

        assert_in_range(power_cuts(*state, g, 10 * USEC_PER_SEC, 20 * USEC_PER_SEC), USEC_PER_SEC, 20 * USEC_PER_SEC);
}

static void test_durable_head_fast(void **state) {
        Grid g = {BASE_US, 100 * USEC_PER_MSEC, .jitter_us = 1000};

        assert_in_range(power_cuts(*state, g, 10 * USEC_PER_SEC, 20 * USEC_PER_SEC), USEC_PER_SEC, 20 * USEC_PER_SEC);
}

/* ---- what it costs ---- */

typedef struct Hour {
        uint64_t minutes; /* that ticks lie in: as many commits as with nothing foretold */
        uint64_t commits, syncs, short_chunks;
} Hour;

/* An hour on that grid; at no moment 60 s of ticks or more are in no chunk. */
static Hour run_hour(Context *c, Grid grid, const char *name, uint64_t durable_us) {
        uint64_t minute = 0, oldest, newest;
        StoreFigures figures;
        Hour hour = {};
        Fixture f;
        Store *s;

        context_use(c, name);
        c->config.durable_head_usec = durable_us;
        fixture_init(&f, 1, 1, 1);
        s = context_store(c);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        vfs_shim.syncs = 0;
        for (uint64_t i = 1; i <= 60 * MINUTE_US / grid.interval_us; i++) {
                const Sample *sample = grid_sample(&f, &grid, i);

                hour.minutes += (sample->h.end_us - 1) / MINUTE_US != minute;
                minute = (sample->h.end_us - 1) / MINUTE_US;
                assert_int_equal(store_append(s, sample), 0);
                if (store_live_bounds(s, &oldest, &newest))
                        assert_in_range(newest - oldest, 1, MINUTE_US - 1);
        }
        store_figures(s, &figures);
        hour.commits = figures.commits;
        hour.syncs = vfs_shim.syncs;
        (void) store_close(s);
        hour.short_chunks = (uint64_t) context_sql(c,
                "SELECT count(*) FROM chunk WHERE n * 4 < (SELECT max(n) FROM chunk)"
                " AND seq NOT IN (SELECT min(seq) FROM chunk UNION SELECT max(seq) FROM chunk)");
        fixture_deinit(&f);
        return hour;
}

/* Wherever the grid lies, a minute is a commit; but where it meets the full minute within its jitter, to keep the
 * promise costs one in eight more. */
static void test_a_commit_a_minute(void **state) {
        static const struct {
                uint64_t interval_ms, phase_ms, jitter_ms, late_ms;
                bool meets;
        } cases[] = {
                {100, 0, 0, 0, false}, {100, 30, 1, 0, false}, {100, 99, 5, 0, true}, {100, 50, 2, 9, false},
                {1000, 0, 0, 0, false}, {1000, 3, 1, 0, false}, {1000, 10, 2, 80, false}, {1000, 99, 5, 40, false},
                {1000, 500, 50, 200, false}, {1000, 990, 5, 0, false}, {1000, 0, 2, 0, true}, {1000, 999, 1, 0, true},
                {7000, 3500, 20, 0, false}, {10000, 0, 0, 0, false}, {10000, 9000, 2, 0, false},
                {10000, 0, 1, 0, true}, {30000, 0, 0, 0, false}, {30000, 15000, 5, 0, false}, {30000, 0, 2, 0, true},
                {60000, 0, 0, 0, false}, {60000, 59000, 5, 0, false},
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Grid g = {BASE_US + cases[i].phase_ms * USEC_PER_MSEC, cases[i].interval_ms * USEC_PER_MSEC,
                        cases[i].jitter_ms * USEC_PER_MSEC, cases[i].late_ms * USEC_PER_MSEC};
                char name[32];
                Hour h;

                (void) snprintf(name, sizeof(name), "hour-%u.db", (unsigned) i);
                h = run_hour(*state, g, name, 0);
                print_message("%u ms, %u ms after the minute, jitter %u ms: %u minutes, %u commits, %u syncs, "
                              "%u short chunks\n",
                        (unsigned) cases[i].interval_ms, (unsigned) cases[i].phase_ms, (unsigned) cases[i].jitter_ms,
                        (unsigned) h.minutes, (unsigned) h.commits, (unsigned) h.syncs, (unsigned) h.short_chunks);
                if (!cases[i].meets) {
                        assert_in_range(h.commits, h.minutes - 1, h.minutes);
                        assert_int_equal(h.short_chunks, 0);
                } else {
                        assert_in_range(h.commits, h.minutes - 1, h.minutes + 12);
                        assert_in_range(h.short_chunks, 0, 12);
                }
        }
}

/* DurableHead=10s is six commits a minute, the minute's own among them. */
static void test_durable_head_costs(void **state) {
        Grid g = {BASE_US + 500 * USEC_PER_MSEC, USEC_PER_SEC, .jitter_us = 0};
        Hour plain = run_hour(*state, g, "plain.db", 0), durable = run_hour(*state, g, "durable.db", 10 * USEC_PER_SEC);

        assert_in_range(durable.syncs, plain.syncs + 5 * 59, plain.syncs + 5 * 61 + 12);
}

/* A tick that comes before the full minute after all is a chunk of its own, and its minute's rows have it. */
static void test_one_more_after_all(void **state) {
        Context *c = *state;
        Store *s = context_store(c);
        Grid g = {BASE_US + 500 * USEC_PER_MSEC, USEC_PER_SEC, 0, 0};
        Fixture f;

        fixture_init(&f, 2, 1, 1);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        for (uint64_t i = 1; i <= 61; i++) {
                Sample sample = *grid_sample(&f, &g, i);

                if (i == 60) /* half a second after the one before, at the full minute */
                        sample.h.end_us = BASE_US + MINUTE_US;
                if (i == 61)
                        sample.h.start_us = BASE_US + MINUTE_US;
                assert_int_equal(store_append(s, &sample), 0);
        }
        (void) store_close(s);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM chunk"), 3);
        assert_int_equal(context_sql(c, "SELECT n FROM chunk ORDER BY seq LIMIT 1"), 59);
        assert_int_equal(context_sql(c, "SELECT n FROM chunk WHERE seq = 60"), 1);
        assert_int_equal(context_sql(c, "SELECT n FROM sys_1m ORDER BY id LIMIT 1"), 60);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM sys_1m"), 2);
        fixture_deinit(&f);
}


int main(void) {
        const struct CMUnitTest tests[] = {
                SHIM_TEST(test_on_the_minute),
                SHIM_TEST(test_between),
                SHIM_TEST(test_just_after_the_minute),
                SHIM_TEST(test_on_both_sides),
                SHIM_TEST(test_fast),
                SHIM_TEST(test_slow),
                SHIM_TEST(test_slowest),
                SHIM_TEST(test_durable_head),
                SHIM_TEST(test_durable_head_fast),
                SHIM_TEST(test_a_commit_a_minute),
                SHIM_TEST(test_durable_head_costs),
                SHIM_TEST(test_one_more_after_all),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
