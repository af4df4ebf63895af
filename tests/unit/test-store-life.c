/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The long run: an older schema, kills, a slow reader, retention by age and size, a backlog, clocks that
 * jump, summer time. CSTATED_KILLS=200 for the long version of the kills.
 */

#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#include "cstated/macro.h"
#include "cstated/num.h"
#include "cstated/timespan.h"
#include "tests/unit/store-context.h"
#include "tests/unit/vfs-shim.h"

#define HOUR_US (3600 * USEC_PER_SEC)
#define MINUTE_US (60 * USEC_PER_SEC)
#define BASE_US (472222ULL * HOUR_US)

static const FieldId fields[] = { FIELD_C6, FIELD_IRQ, FIELD_ENERGY_PKG, FIELD_MPERF };

static void append(Store *s, Fixture *f, uint64_t first, uint64_t last) {
        for (uint64_t i = first; i <= last; i++)
                assert_int_equal(store_append(s, fixture_sample(f, BASE_US, i)), 0);
}

static void maintain(Store *s, uint64_t now_us) {
        for (unsigned i = 0; i < 100000; i++)
                if (store_maintain(s, now_us) == 0)
                        return;
        fail_msg("maintenance never ends");
}

/* Reads on from the tick after *seq; every value is checked. 0: end. */
static int check_next(StoreScan *scan, const Fixture *f, uint64_t *seq) {
        const StoreBlock *b;
        int code = store_scan_next(scan, &b);

        if (code <= 0)
                return code;
        for (size_t i = 0; i < b->n; i++) {
                (*seq)++;
                assert_int_equal(b->end_us[i], BASE_US + *seq * USEC_PER_SEC);
                for (size_t k = 0; k < b->layout->n_columns; k++) {
                        const LayoutColumn *to = &b->layout->columns[k];
                        size_t slot = layout_find(&f->layout, to->field, to->instance)->offset;
                        Reason reason = fixture_reason(*seq, slot);

                        assert_int_equal(b->reasons[to->offset * b->n + i], reason);
                        assert_int_equal(
                                b->values[to->offset * b->n + i], reason ? 0 : fixture_value(*seq, slot));
                }
        }
        return 1;
}

static StoreScan *start_scan(StoreReader *r) {
        StoreScanSpec spec = { .end_us = INT64_MAX, .fields = fields, .n_fields = ARRAY_SIZE(fields) };
        StoreScan *scan = NULL;

        assert_int_equal(store_scan_new(r, &spec, &scan), 0);
        return scan;
}

/* Ticks first ... in order, each once: the number of the last. */
static uint64_t check_all(Context *c, Store *live, const Fixture *f, uint64_t first) {
        StoreReader *r = context_reader(c, live);
        StoreScan *scan = start_scan(r);
        uint64_t seq = first - 1;
        int code;

        while ((code = check_next(scan, f, &seq)) > 0)
                ;
        assert_int_equal(code, 0);
        (void) store_scan_free(scan);
        (void) store_reader_close(r);
        return seq;
}

/* ---- an older schema ---- */

static void load_sql(const char *path, const char *name) {
        char *file = NULL, *text;
        sqlite3 *db = NULL;
        FILE *f;
        long n;

        assert_true(asprintf(&file, "%s/%s", getenv("CSTATED_FIXTURES") ?: "tests/fixtures", name) > 0);
        f = fopen(file, "rb");
        if (!f)
                fail_msg("cannot open %s", file);
        assert_int_equal(fseek(f, 0, SEEK_END), 0);
        n = ftell(f);
        rewind(f);
        text = calloc(1, (size_t) n + 1);
        assert_non_null(text);
        assert_int_equal(fread(text, 1, (size_t) n, f), n);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        free(text);
        free(file);
}

static void count_progress(void *userdata) {
        (*(unsigned *) userdata)++;
}

static void test_version_1_is_migrated(void **state) {
        Context *c = *state;
        StoreReader *r = NULL;
        unsigned calls = 0;
        Fixture f;
        Store *s;

        load_sql(c->path, "store-v1.sql");
        assert_int_equal(store_reader_open(c->path, NULL, &r), STORE_E_OLDER);
        c->config.progress = count_progress;
        c->config.userdata = &calls;
        fixture_init(&f, 2, 1, 1);
        s = context_store(c);
        assert_true(calls > 0);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        append(s, &f, 81, 130);
        maintain(s, BASE_US + HOUR_US);
        (void) store_close(s);
        assert_int_equal(context_sql(c, "PRAGMA user_version"), 3);
        assert_int_equal(check_all(c, NULL, &f, 1), 130);
        assert_int_equal(context_sql(c, "SELECT sum(n) FROM sys_1m"), 130);
        assert_int_equal(context_sql(c, "SELECT count(DISTINCT epoch) FROM chunk"), 3);
        assert_int_equal(
                context_sql(c, "SELECT count(*) FROM label WHERE name = 'run a' AND meta = '{\"n\":1}'"), 1);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM event WHERE kind = 'gap'"), 1);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM sqlite_schema WHERE name = 'tick'"), 0);
        assert_int_equal(
                context_sql(c, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"),
                1);
        fixture_deinit(&f);
}

/* Minutes of version 2 are read where they are, by readers that cannot migrate too, and go on in version 3. */
static void test_version_2_is_migrated(void **state) {
        Context *c = *state;
        Fixture f;
        Store *s;

        load_sql(c->path, "store-v2.sql");
        fixture_init(&f, 2, 1, 1);
        assert_int_equal(check_all(c, NULL, &f, 1), 80);
        assert_int_equal(context_sql(c, "PRAGMA user_version"), 2);
        s = context_store(c);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        append(s, &f, 81, 130);
        maintain(s, BASE_US + HOUR_US);
        (void) store_close(s);
        assert_int_equal(context_sql(c, "PRAGMA user_version"), 3);
        assert_int_equal(check_all(c, NULL, &f, 1), 130);
        assert_int_equal(context_sql(c, "SELECT sum(n) FROM sys_1m"), 130);
        fixture_deinit(&f);
}

/* ---- kills ---- */

/* Appends until killed, telling after each tick; the last number that was told. */
static uint64_t run_and_kill(Context *c, uint64_t first, unsigned after_us) {
        uint64_t told = first - 1;
        int pipes[2], status;
        pid_t pid;

        assert_int_equal(pipe(pipes), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                Store *s = context_store(c);
                Fixture f;

                fixture_init(&f, 4, 2, 1);
                assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
                for (uint64_t i = first;; i++) {
                        append(s, &f, i, i);
                        if (write(pipes[1], &i, sizeof(i)) != sizeof(i))
                                _exit(0);
                        if (i % 50 == 0)
                                (void) store_maintain(s, BASE_US + i * USEC_PER_SEC);
                }
        }
        assert_int_equal(close(pipes[1]), 0);
        assert_int_equal(read(pipes[0], &told, sizeof(told)), sizeof(told));
        (void) usleep(after_us);
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        while (read(pipes[0], &told, sizeof(told)) == sizeof(told))
                ;
        assert_int_equal(close(pipes[0]), 0);
        return told;
}

static void test_kills(void **state) {
        Context *c = *state;
        uint32_t kills = 10, random = 12345;
        uint64_t have = 0;
        Fixture f;

        if (getenv("CSTATED_KILLS"))
                assert_int_equal(num_parse_u32(getenv("CSTATED_KILLS"), &kills), 0);
        fixture_init(&f, 4, 2, 1);
        for (uint32_t i = 0; i < kills; i++) {
                uint64_t told;
                Store *s;

                random = random * 1103515245 + 12345;
                told = run_and_kill(c, have + 1, random >> 8 & 0x7fff);
                s = context_store(c);
                assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
                have = check_all(c, s, &f, 1);
                assert_in_range(have, told, told + 1); /* the one that was counted, and not told any more */
                (void) store_close(s);
                assert_int_equal(check_all(c, NULL, &f, 1), have);
                assert_int_equal(
                        context_sql(c,
                                "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"),
                        1);
                assert_int_equal(context_sql(c, "SELECT sum(n) FROM sys_1m"), have);
        }
        fixture_deinit(&f);
}

/* Two daemons on one file: the second is refused. */
static void test_second_writer_is_refused(void **state) {
        Context *c = *state;
        Store *s = context_store(c), *other = NULL;

        assert_int_equal(store_open(&c->config, BASE_US, &other), -EBUSY);
        assert_null(other);
        (void) store_close(s);
}

/* ---- readers ---- */

/* A client that takes a minute for a minute's data while ten are written: what it gets is whole, and the WAL
 * stays small. */
static void test_slow_reader(void **state) {
        Context *c = *state;
        uint64_t seq = 0, next = 3601, most = 0;
        StoreReader *r;
        StoreScan *scan;
        Fixture f;
        Store *s;
        int code;

        fixture_init(&f, 16, 2, 1);
        s = context_store(c);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        append(s, &f, 1, 3600);
        r = context_reader(c, s);
        scan = start_scan(r);
        while (next < 20000 && (code = check_next(scan, &f, &seq)) > 0) {
                append(s, &f, next, next + 599);
                next += 600;
                most = MAX(most, context_figures(s).wal_bytes);
        }
        while ((code = check_next(scan, &f, &seq)) > 0)
                ;
        assert_int_equal(code, 0);
        assert_int_equal(seq, next - 1);
        assert_true(most < 12u << 20);
        (void) store_scan_free(scan);
        (void) store_reader_close(r);
        (void) store_close(s);
        fixture_deinit(&f);
}

/* Somebody sits in a read transaction for long: writing goes on, and the WAL is cut when they are gone. */
static void test_reader_that_stays(void **state) {
        Context *c = *state;
        sqlite3_stmt *q = NULL;
        sqlite3 *db = NULL;
        Fixture f;
        Store *s;

        fixture_init(&f, 16, 2, 1);
        s = context_store(c);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        append(s, &f, 1, 300);
        assert_int_equal(sqlite3_open(c->path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_prepare_v2(db, "SELECT * FROM chunk", -1, &q, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_step(q), SQLITE_ROW);
        append(s, &f, 301, 16000);
        assert_false(context_figures(s).degraded);
        assert_true(context_figures(s).wal_bytes > 12u << 20);
        assert_int_equal(sqlite3_finalize(q), SQLITE_OK);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        append(s, &f, 16001, 16200);
        assert_true(context_figures(s).wal_bytes < 12u << 20);
        (void) store_close(s);
        assert_int_equal(check_all(c, NULL, &f, 1), 16200);
        fixture_deinit(&f);
}

/* ---- retention ---- */

static void test_retention_by_age(void **state) {
        Context *c = *state;
        Fixture f;
        Store *s;

        c->config.raw_retention_usec = 10 * 60 * USEC_PER_SEC;
        c->config.minute_retention_usec = HOUR_US;
        c->config.hour_retention_usec = 2 * HOUR_US;
        fixture_init(&f, 3, 1, 1);
        s = context_store(c);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        for (uint64_t hour = 0; hour < 4; hour++) {
                append(s, &f, hour * 3600 + 1, (hour + 1) * 3600);
                (void) store_maintain(s, BASE_US + (hour + 1) * HOUR_US);
        }
        assert_int_equal(store_flush(s), 0);
        maintain(s, BASE_US + 4 * HOUR_US + 1);
        assert_in_range(context_figures(s).tier[TIER_RAW].rows, 10, 11);
        assert_in_range(context_figures(s).tier[TIER_1M].rows, 60, 61);
        assert_in_range(context_figures(s).tier[TIER_1H].rows, 2, 3);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM cpu_1m") % 3, 0);
        assert_in_range(context_sql(c, "SELECT count(*) FROM cpu_1m"), 180, 183);
        (void) store_close(s);
        fixture_deinit(&f);
}

static void test_retention_by_size(void **state) {
        Context *c = *state;
        uint64_t oldest;
        Fixture f;
        Store *s;

        c->config.max_size_bytes = 2u << 20;
        fixture_init(&f, 32, 2, 1);
        s = context_store(c);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        append(s, &f, 1, 6000);
        maintain(s, BASE_US + 6000 * USEC_PER_SEC);
        oldest = context_figures(s).tier[TIER_RAW].oldest_us;
        assert_true(oldest > BASE_US);
        assert_true(context_figures(s).tier[TIER_RAW].rows > 10);
        assert_true(context_sql(c, "SELECT (SELECT page_count FROM pragma_page_count) - freelist_count"
                                   " FROM pragma_freelist_count") *
                            4096 <=
                    2 << 20);
        /* minutes outlive raw ticks */
        assert_int_equal(context_figures(s).tier[TIER_1M].oldest_us, BASE_US);
        (void) store_close(s);
        fixture_deinit(&f);
}

/* A lower limit on a long history: it goes in pieces, none of which looks at more than it takes, and the file gets
 * smaller. */
static void test_backlog_drains_in_pieces(void **state) {
        Context *c = *state;
        uint64_t before, most = 0, most_reads = 0, rows;
        Fixture f;
        Store *s;
        int more = 1;

        vfs_shim_install();
        fixture_init(&f, 64, 2, 1);
        s = context_store(c);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        append(s, &f, 1, 12000);
        (void) store_close(s);
        c->config.raw_retention_usec = 60 * USEC_PER_SEC;
        c->config.minute_retention_usec = 60 * USEC_PER_SEC;
        s = context_store(c);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        before = context_figures(s).bytes;
        rows = (uint64_t) context_sql(c, "SELECT count(*) FROM cpu_1m");
        assert_true(rows >= 64 * 200);
        for (uint64_t i = 12001; more > 0; i++) {
                uint64_t left, reads;

                append(s, &f, i, i); /* no tick is missed meanwhile */
                reads = vfs_shim.reads;
                more = store_maintain(s, BASE_US + 12000 * USEC_PER_SEC);
                reads = vfs_shim.reads - reads;
                left = (uint64_t) context_sql(c, "SELECT count(*) FROM cpu_1m");
                most = MAX(most, rows > left ? rows - left : 0);
                if (i < 12006) /* later ones give pages back as well */
                        most_reads = MAX(most_reads, reads);
                rows = left;
                assert_true(i < 14000);
        }
        assert_int_equal(context_figures(s).ticks_lost, 0);
        assert_in_range(most, 64, 64 * 20);
        assert_in_range(rows, 0, 64 * 30);
        assert_in_range(most_reads, 1, 300); /* pages, of 800 with old rows */
        (void) store_close(s);
        (void) context_sql(c, "PRAGMA wal_checkpoint(TRUNCATE)");
        s = context_store(c);
        assert_true(context_figures(s).bytes < before);
        (void) store_close(s);
        vfs_shim_remove();
        fixture_deinit(&f);
}

/* Minutes, by one tick each: first to last are numbers of minutes after base_us. */
static void append_minutes(Store *s, Fixture *f, uint64_t base_us, uint64_t first, uint64_t last) {
        for (uint64_t i = first; i <= last; i++) {
                Sample sample = *fixture_sample(f, base_us, i);

                sample.h.start_us = base_us + (i - 1) * MINUTE_US;
                sample.h.end_us = base_us + i * MINUTE_US;
                sample.h.dt_ns = 60 * NSEC_PER_SEC;
                assert_int_equal(store_append(s, &sample), 0);
                if (i % 60 == 0)
                        maintain(s, sample.h.end_us);
        }
}

static void use_short_retention(Context *c) {
        c->config.raw_retention_usec = 2 * HOUR_US;
        c->config.minute_retention_usec = 6 * HOUR_US;
        c->config.hour_retention_usec = 48 * HOUR_US;
}

static Store *start_store(Context *c, Fixture *f, uint64_t now_us) {
        Store *s = context_store(c);

        assert_int_equal(store_set_machine(s, f->machine, now_us), 0);
        return s;
}

/* An RTC that says ten years later, over restarts, for most of a day; then the clock is put right. */
static void test_clock_far_ahead(void **state) {
        static const char *const counts[] = { "SELECT count(*) FROM chunk WHERE t1 <= 1700013600000000",
                "SELECT count(*) FROM cpu_1m WHERE t < 1700013600000000",
                "SELECT count(*) FROM sys_1h WHERE t < 1700013600000000", "SELECT count(*) FROM event" };
        uint64_t ahead = BASE_US + 10 * 365 * 24 * HOUR_US, right = BASE_US + 4 * HOUR_US;
        Context *c = *state;
        int64_t before[ARRAY_SIZE(counts)];
        Fixture f;
        Store *s;

        use_short_retention(c);
        fixture_init(&f, 2, 1, 1);
        s = start_store(c, &f, BASE_US);
        assert_int_equal(store_event(s, BASE_US, "gap", -1, "1 frame"), 0);
        append_minutes(s, &f, BASE_US, 1, 4 * 60);
        assert_int_equal(store_flush(s), 0);
        maintain(s, right);
        for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
                before[i] = context_sql(c, counts[i]);
                assert_in_range(before[i], 1, 2 * 4 * 60);
        }
        (void) store_close(s);
        for (uint64_t k = 0; k < 3; k++) {
                s = start_store(c, &f, ahead);
                append_minutes(s, &f, ahead, k * 400 + 1, (k + 1) * 400);
                maintain(s, ahead + (k + 1) * 400 * MINUTE_US);
                assert_in_range(context_figures(s).clock_ahead_us, 10 * 364 * 24 * HOUR_US, 10 * 366 * 24 * HOUR_US);
                (void) store_close(s);
        }
        for (size_t i = 0; i < ARRAY_SIZE(counts); i++) /* the fourth hour is over now, and has its row */
                assert_int_equal(context_sql(c, counts[i]), before[i] + (i == 2));
        /* right again: nothing is gone but what is too old by the right clock */
        s = start_store(c, &f, right);
        append_minutes(s, &f, right, 1, 1);
        assert_int_equal(store_flush(s), 0);
        maintain(s, right + MINUTE_US);
        assert_int_equal(context_figures(s).clock_ahead_us, 0);
        for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
                assert_in_range(context_sql(c, counts[i]), before[i] - 1, before[i] + 1);
        append_minutes(s, &f, right, 2, 3 * 60);
        assert_int_equal(context_sql(c, counts[0]), 0);
        (void) store_close(s);
        fixture_deinit(&f);
}

/* Off for a year: a day longer the old history is there, then it goes in pieces. */
static void test_off_for_a_year(void **state) {
        static const char old[] = "SELECT count(*) FROM sys_1m WHERE t < 1700100000000000";
        uint64_t back = BASE_US + 365 * 24 * HOUR_US;
        Context *c = *state;
        int64_t before, left;
        uint64_t last;
        unsigned steps = 0;
        Fixture f;
        Store *s;

        use_short_retention(c);
        fixture_init(&f, 2, 1, 1);
        s = start_store(c, &f, BASE_US);
        append_minutes(s, &f, BASE_US, 1, 5 * 60);
        (void) store_close(s);
        before = context_sql(c, old);
        assert_int_equal(before, 5 * 60);
        s = start_store(c, &f, back);
        append_minutes(s, &f, back, 1, 23 * 60);
        (void) store_close(s);
        assert_int_equal(context_sql(c, old), before);
        s = start_store(c, &f, back);
        append_minutes(s, &f, back, 23 * 60 + 1, 24 * 60 - 1);
        assert_true(context_figures(s).clock_ahead_us > 0);
        assert_int_equal(context_sql(c, old), before);
        /* a restart may forget an hour of the day; no maintenance here */
        for (last = 24 * 60 - 1; last < 25 * 60 + 2 && context_figures(s).clock_ahead_us > 0; last++)
                append_minutes(s, &f, back + last * MINUTE_US, 1, 1);
        assert_int_equal(context_figures(s).clock_ahead_us, 0);
        for (int more = 1; more > 0; steps++) {
                left = context_sql(c, old);
                more = store_maintain(s, back + last * MINUTE_US);
                assert_in_range(left - context_sql(c, old), 0, 16);
        }
        assert_true(steps > 5);
        assert_int_equal(context_sql(c, old), 0);
        assert_in_range(context_figures(s).tier[TIER_RAW].rows, 2 * 60 - 2, 2 * 60 + 62);
        (void) store_close(s);
        fixture_deinit(&f);
}

/* The size is held whatever the clock says. */
static void test_size_under_a_wrong_clock(void **state) {
        uint64_t ahead = BASE_US + 10 * 365 * 24 * HOUR_US;
        Context *c = *state;
        Fixture f;
        Store *s;

        c->config.max_size_bytes = 1u << 20;
        fixture_init(&f, 32, 2, 1);
        s = start_store(c, &f, BASE_US);
        append(s, &f, 1, 600);
        for (uint64_t i = 1; i <= 4000; i++)
                assert_int_equal(store_append(s, fixture_sample(&f, ahead, i)), 0);
        maintain(s, ahead + 4000 * USEC_PER_SEC);
        assert_true(context_figures(s).clock_ahead_us > 0);
        assert_true(context_sql(c, "SELECT (page_count - freelist_count) * 4096 FROM pragma_page_count,"
                                   " pragma_freelist_count") <= 1 << 20);
        (void) store_close(s);
        fixture_deinit(&f);
}

/* ---- clocks ---- */

/* -60 s, +3600 s, steps within a minute, a suspend (new epoch, a gap): nothing lost, nothing twice, the order is that
 * of the samples, and no chunk spans a step. */
static void test_clock_steps(void **state) {
        static const int64_t steps[] = { 0, -60, 3600, -3600, 7, -7, 5 };
        StoreScanSpec spec = { .end_us = INT64_MAX, .fields = fields, .n_fields = 1 };
        Context *c = *state;
        Store *s = context_store(c);
        const StoreBlock *b;
        uint64_t n = 0, seq = 1;
        int64_t offset = 0;
        StoreReader *r;
        StoreScan *scan;
        Fixture f;

        fixture_init(&f, 2, 1, 1);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        for (size_t k = 0; k < ARRAY_SIZE(steps); k++) {
                offset += steps[k];
                for (unsigned i = 0; i < 130; i++, seq++) {
                        Sample sample = *fixture_sample(&f, BASE_US + (uint64_t) (offset * 1000000), seq);

                        if (i == 0)
                                sample.h.start_us -=
                                        (uint64_t) (steps[k] * 1000000); /* the step lies in this tick */
                        sample.h.epoch = steps[k] == 5 ? 2 : 1;
                        assert_int_equal(store_append(s, &sample), 0);
                }
        }
        r = context_reader(c, s);
        assert_int_equal(store_scan_new(r, &spec, &scan), 0);
        while (store_scan_next(scan, &b) > 0)
                for (size_t i = 0; i < b->n; i++)
                        assert_int_equal(b->dt_ns[i], NSEC_PER_SEC + ++n);
        assert_int_equal(n, seq - 1);
        (void) store_scan_free(scan);
        (void) store_reader_close(r);
        (void) store_close(s);
        assert_int_equal(context_sql(c, "SELECT sum(n) FROM sys_1m"), seq - 1);
        assert_int_equal(context_sql(c, "SELECT count(DISTINCT epoch) FROM chunk"), 2);
        /* but for the tick that it lies in, the first one of a chunk */
        assert_int_equal(context_sql(c, "SELECT count(*) FROM chunk WHERE t1 - t0 < (n - 1) * 1000000"
                                        " AND seq % 130 != 1"),
                0);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM chunk WHERE seq % 130 = 1"), ARRAY_SIZE(steps));
        fixture_deinit(&f);
}

/* Less than a second back, within a minute: too little to be told from jitter, and yet time never runs back within
 * a chunk. */
static void test_small_step_back(void **state) {
        Context *c = *state;
        Store *s = context_store(c);
        Fixture f;

        fixture_init(&f, 2, 1, 1);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        for (uint64_t i = 1; i <= 100; i++) {
                Sample sample = *fixture_sample(&f, BASE_US, i);

                sample.h.end_us = BASE_US + i * 100 * USEC_PER_MSEC - (i > 50 ? 500 * USEC_PER_MSEC : 0);
                sample.h.start_us = sample.h.end_us - 100 * USEC_PER_MSEC + (i == 51 ? 500 * USEC_PER_MSEC : 0);
                sample.h.dt_ns = NSEC_PER_SEC / 10;
                assert_int_equal(store_append(s, &sample), 0);
        }
        (void) store_close(s);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM chunk WHERE n = 50"), 2);
        assert_int_equal(context_sql(c, "SELECT n FROM sys_1m"), 100);
        fixture_deinit(&f);
}

/* C21: a night with 23 hours and one with 25, a sample a minute: sixty in every real hour. */
static void test_summer_time(void **state) {
        static const uint64_t nights[] = { 1774738800ULL /* 2026-03-28T23:00Z */,
                1792882800ULL /* 2026-10-24T23:00Z */ };
        Context *c = *state;

        assert_int_equal(setenv("TZ", "Europe/Amsterdam", 1), 0);
        tzset();
        for (size_t night = 0; night < ARRAY_SIZE(nights); night++) {
                uint64_t base = nights[night] * USEC_PER_SEC;
                Fixture f;
                Store *s;

                context_use(c, night ? "october.db" : "march.db");
                fixture_init(&f, 2, 1, 1);
                s = context_store(c);
                assert_int_equal(store_set_machine(s, f.machine, base), 0);
                for (uint64_t i = 1; i <= 6 * 60; i++) {
                        Sample sample = *fixture_sample(&f, base, i);

                        sample.h.start_us = base + (i - 1) * 60 * USEC_PER_SEC;
                        sample.h.end_us = base + i * 60 * USEC_PER_SEC;
                        sample.h.dt_ns = 60 * NSEC_PER_SEC;
                        assert_int_equal(store_append(s, &sample), 0);
                }
                assert_int_equal(store_flush(s), 0);
                maintain(s, base + 7 * HOUR_US);
                (void) store_close(s);
                assert_int_equal(context_sql(c, "SELECT count(*) FROM sys_1h WHERE n = 60"), 6);
                assert_int_equal(context_sql(c, "SELECT count(*) FROM sys_1h"), 6);
                assert_int_equal(context_sql(c, "SELECT count(DISTINCT time) FROM v_sys_1m"), 360);
                fixture_deinit(&f);
        }
        assert_int_equal(unsetenv("TZ"), 0);
        tzset();
}

int main(void) {
        const struct CMUnitTest tests[] = {
                CONTEXT_TEST(test_version_1_is_migrated),
                CONTEXT_TEST(test_version_2_is_migrated),
                CONTEXT_TEST(test_kills),
                CONTEXT_TEST(test_second_writer_is_refused),
                CONTEXT_TEST(test_slow_reader),
                CONTEXT_TEST(test_reader_that_stays),
                CONTEXT_TEST(test_retention_by_age),
                CONTEXT_TEST(test_retention_by_size),
                CONTEXT_TEST(test_backlog_drains_in_pieces),
                CONTEXT_TEST(test_clock_far_ahead),
                CONTEXT_TEST(test_off_for_a_year),
                CONTEXT_TEST(test_size_under_a_wrong_clock),
                CONTEXT_TEST(test_clock_steps),
                CONTEXT_TEST(test_small_step_back),
                CONTEXT_TEST(test_summer_time),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
