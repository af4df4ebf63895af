/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cstated/timespan.h"
#include "store/store.h"
#include "tests/unit/store-context.h"

#define BASE_US (1700000000ULL * USEC_PER_SEC)

static void append(Store *s, Fixture *f, uint64_t first, uint64_t n) {
        for (uint64_t i = first; i < first + n; i++)
                assert_int_equal(store_append(s, fixture_sample(f, BASE_US, i)), 0);
}

/* Scans (start, end] of all fields that f's layout has and checks every value; the number of ticks seen. */
static uint64_t check_scan(StoreReader *r, const Fixture *f, const FieldId *fields, size_t n_fields,
        uint64_t first, uint64_t last) {
        StoreScanSpec spec = {
                .start_us = BASE_US + (first - 1) * USEC_PER_SEC,
                .end_us = BASE_US + last * USEC_PER_SEC,
                .fields = fields,
                .n_fields = n_fields,
        };
        const StoreBlock *b = NULL;
        StoreScan *scan = NULL;
        uint64_t seq = first;
        int code;

        assert_int_equal(store_scan_new(r, &spec, &scan), 0);
        while ((code = store_scan_next(scan, &b)) > 0) {
                assert_true(b->n > 0);
                assert_null(b->n_ticks);
                assert_int_equal(b->machine->n_cpus, f->machine->n_cpus);
                for (size_t i = 0; i < b->n; i++, seq++) {
                        assert_int_equal(b->end_us[i], BASE_US + seq * USEC_PER_SEC);
                        assert_int_equal(b->start_us[i], BASE_US + (seq - 1) * USEC_PER_SEC);
                        assert_int_equal(b->dt_ns[i], NSEC_PER_SEC + seq);
                        for (size_t k = 0; k < b->layout->n_columns; k++) {
                                const LayoutColumn *to = &b->layout->columns[k];
                                const LayoutColumn *from = layout_find(&f->layout, to->field, to->instance);

                                assert_non_null(from);
                                for (uint32_t e = 0; e < b->layout->n_entities[field_spec(to->field)->scope];
                                        e++) {
                                        size_t slot = from->offset + e, at = (to->offset + e) * b->n + i;
                                        Reason reason = fixture_reason(seq, slot);

                                        assert_int_equal(b->reasons[at], reason);
                                        assert_int_equal(
                                                b->values[at], reason ? 0 : fixture_value(seq, slot));
                                }
                        }
                }
        }
        assert_int_equal(code, 0);
        (void) store_scan_free(scan);
        return seq - first;
}

static const FieldId some_fields[] = {FIELD_C6, FIELD_IDLE_USAGE, FIELD_ENERGY_PKG, FIELD_MPERF};

static void test_new_file(void **state) {
        Context *c = *state;
        Store *s = context_store(c);
        StoreFigures figures;

        store_figures(s, &figures);
        assert_false(figures.degraded);
        assert_string_equal(figures.path, c->path);
        (void) store_close(s);
        assert_int_equal(context_sql(c, "PRAGMA application_id"), 0x43535444);
        assert_true(context_sql(c, "PRAGMA user_version") >= 1);
        assert_int_equal(context_sql(c, "PRAGMA auto_vacuum"), 2);
        assert_int_equal(
                context_sql(c, "SELECT count(*) FROM pragma_journal_mode WHERE journal_mode = 'wal'"), 1);
        assert_int_equal(
                context_sql(c, "SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND strict = 0"
                               " AND name NOT LIKE 'sqlite%' AND type = 'table'"),
                0);
}

static void test_round_trip(void **state) {
        Context *c = *state;
        Store *s = context_store(c);
        StoreReader *r;
        Fixture f;

        fixture_init(&f, 6, 2, 1);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        append(s, &f, 1, 200);
        r = context_reader(c, s);
        assert_int_equal(check_scan(r, &f, some_fields, ARRAY_SIZE(some_fields), 1, 200), 200);
        assert_int_equal(check_scan(r, &f, some_fields, ARRAY_SIZE(some_fields), 33, 150), 118);
        assert_int_equal(check_scan(r, &f, some_fields, 1, 200, 900), 1);
        assert_int_equal(check_scan(r, &f, some_fields, 1, 201, 900), 0);
        (void) store_reader_close(r);
        (void) store_close(s);

        r = context_reader(c, NULL);
        assert_int_equal(check_scan(r, &f, some_fields, ARRAY_SIZE(some_fields), 1, 200), 200);
        (void) store_reader_close(r);
        assert_int_equal(
                context_sql(c, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"),
                1);
        fixture_deinit(&f);
}

static void test_restart_continues(void **state) {
        Context *c = *state;
        Fixture f;
        StoreReader *r;

        fixture_init(&f, 4, 1, 1);
        for (uint64_t i = 0; i < 3; i++) {
                Store *s = context_store(c);

                assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
                append(s, &f, 1 + i * 10, 10);
                (void) store_close(s);
        }
        r = context_reader(c, NULL);
        assert_int_equal(check_scan(r, &f, some_fields, ARRAY_SIZE(some_fields), 1, 30), 30);
        (void) store_reader_close(r);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM topo"), 1);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM epoch"), 3);
        fixture_deinit(&f);
}

static void test_machine_changes(void **state) {
        Context *c = *state;
        Store *s = context_store(c);
        StoreScanSpec spec = {.start_us = BASE_US,
                .end_us = BASE_US + 1000 * USEC_PER_SEC,
                .fields = some_fields,
                .n_fields = 1};
        const StoreBlock *b;
        const Machine *m = NULL;
        StoreScan *scan;
        StoreReader *r;
        Fixture f[2];

        fixture_init(&f[0], 4, 1, 1);
        fixture_init(&f[1], 3, 1, 2);
        r = context_reader(c, s);
        assert_int_equal(store_reader_machine(r, &m), 0);
        assert_null(m);
        for (uint64_t i = 0; i < 4; i++) {
                assert_int_equal(store_set_machine(s, f[i % 2].machine, BASE_US + i * 5 * USEC_PER_SEC), 0);
                append(s, &f[i % 2], 1 + i * 5, 5);
        }
        assert_int_equal(store_reader_machine(r, &m), 0);
        assert_int_equal(m->n_cpus, 3);
        assert_int_equal(store_scan_new(r, &spec, &scan), 0);
        for (uint64_t i = 0; i < 4; i++) {
                assert_int_equal(store_scan_next(scan, &b), 1);
                assert_int_equal(b->n, 5);
                assert_int_equal(b->machine->n_cpus, i % 2 ? 3 : 4);
                assert_int_equal(b->start_us[0], BASE_US + i * 5 * USEC_PER_SEC);
        }
        assert_int_equal(store_scan_next(scan, &b), 0);
        (void) store_scan_free(scan);
        (void) store_reader_close(r);
        (void) store_close(s);
        fixture_deinit(&f[0]);
        fixture_deinit(&f[1]);
}

/* A clock set back by an hour: order stays that of the samples, nothing is lost or doubled. */
static void test_clock_set_back(void **state) {
        Context *c = *state;
        Store *s = context_store(c);
        StoreScanSpec spec = {.start_us = BASE_US - 7200 * USEC_PER_SEC,
                .end_us = BASE_US + 100 * USEC_PER_SEC,
                .fields = some_fields,
                .n_fields = 1};
        const StoreBlock *b;
        StoreScan *scan;
        StoreReader *r;
        uint64_t n = 0;
        Fixture f;

        fixture_init(&f, 2, 1, 1);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        for (uint64_t i = 1; i <= 20; i++)
                assert_int_equal(
                        store_append(
                                s, fixture_sample(&f, i <= 10 ? BASE_US : BASE_US - 3600 * USEC_PER_SEC, i)),
                        0);
        r = context_reader(c, s);
        assert_int_equal(store_scan_new(r, &spec, &scan), 0);
        while (store_scan_next(scan, &b) > 0)
                for (size_t i = 0; i < b->n; i++)
                        assert_int_equal(b->dt_ns[i], NSEC_PER_SEC + ++n);
        assert_int_equal(n, 20);
        (void) store_scan_free(scan);
        (void) store_reader_close(r);
        (void) store_close(s);
        fixture_deinit(&f);
}

static int count_label(void *userdata, const StoreLabel *l) {
        StoreLabel *last = userdata;

        *last = *l;
        last->meta = NULL;
        return 0;
}

static void test_labels(void **state) {
        Context *c = *state;
        Store *s = context_store(c);
        StoreLabel l = {.name = "run a", .start_us = BASE_US, .meta = (char *) "{\"a\":1}"}, last = {};
        StoreReader *r = context_reader(c, s);

        assert_int_equal(store_label_add(s, &l), 0);
        assert_int_equal(store_reader_labels(r, "run a", count_label, &last), 0);
        assert_int_equal(last.end_us, 0);
        l.end_us = BASE_US + 5;
        l.meta = NULL;
        assert_int_equal(store_label_add(s, &l), 0);
        assert_int_equal(store_reader_labels(r, NULL, count_label, &last), 0);
        assert_int_equal(last.end_us, BASE_US + 5);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM label WHERE meta = '{\"a\":1}'"), 1);
        l.start_us += 10;
        l.end_us += 10;
        assert_int_equal(store_label_add(s, &l), 0);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM label"), 2);
        assert_int_equal(store_label_remove(s, "run a"), 0);
        assert_int_equal(store_label_remove(s, "run a"), -ENOENT);
        (void) store_reader_close(r);
        (void) store_close(s);
}

static int take_event(void *userdata, const StoreEvent *e) {
        unsigned *n = userdata;

        if (*n == 0) {
                assert_string_equal(e->kind, "gap");
                assert_int_equal(e->cpu, -1);
        }
        (*n)++;
        return 0;
}

static void test_events(void **state) {
        Context *c = *state;
        Store *s = context_store(c);
        StoreReader *r = context_reader(c, s);
        unsigned n = 0;

        assert_int_equal(store_event(s, BASE_US, "hotplug", 3, "cpu 3 went offline"), 0);
        assert_int_equal(store_event(s, BASE_US + 1, "gap", -1, "3 ticks"), 0);
        assert_int_equal(store_reader_events(r, BASE_US, BASE_US + 2, NULL, 10, take_event, &n), 0);
        assert_int_equal(n, 2);
        n = 0;
        assert_int_equal(store_reader_events(r, BASE_US, BASE_US + 2, "gap", 10, take_event, &n), 0);
        assert_int_equal(n, 1);
        n = 0;
        assert_int_equal(store_reader_events(r, BASE_US, BASE_US + 1, "gap", 10, take_event, &n), 0);
        assert_int_equal(n, 0);
        (void) store_reader_close(r);
        (void) store_close(s);
}

static void test_bounds_and_figures(void **state) {
        Context *c = *state;
        Store *s = context_store(c);
        StoreReader *r = context_reader(c, s);
        uint64_t oldest = 1, newest = 1;
        StoreFigures figures;
        Fixture f;

        fixture_init(&f, 2, 1, 1);
        assert_int_equal(store_reader_bounds(r, TIER_RAW, &oldest, &newest), 0);
        assert_int_equal(oldest, 0);
        assert_int_equal(newest, 0);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        append(s, &f, 1, 70);
        assert_int_equal(store_reader_bounds(r, TIER_RAW, &oldest, &newest), 0);
        assert_int_equal(oldest, BASE_US);
        assert_int_equal(newest, BASE_US + 70 * USEC_PER_SEC);
        store_figures(s, &figures);
        assert_int_equal(figures.ticks, 70);
        assert_int_equal(figures.ticks_lost, 0);
        (void) store_reader_close(r);
        (void) store_close(s);
        fixture_deinit(&f);
}

/* C18: nothing there, nothing in it, foreign, newer. */
static void test_other_files(void **state) {
        Context *c = *state;
        StoreReader *r = NULL;
        Store *s = NULL;
        StoreFigures figures;

        assert_int_equal(store_reader_open(c->path, NULL, &r), -ENOENT);
        assert_int_equal(close(open(c->path, O_CREAT | O_WRONLY, 0600)), 0);
        assert_int_equal(store_reader_open(c->path, NULL, &r), -ENOENT);
        (void) store_close(context_store(c));
        (void) context_sql(c, "PRAGMA user_version = 99");
        assert_int_equal(store_open(&c->config, BASE_US, &s), STORE_E_NEWER);
        assert_int_equal(store_reader_open(c->path, NULL, &r), STORE_E_NEWER);
        assert_null(s);

        context_use(c, "other.db");
        (void) context_sql(c, "CREATE TABLE t (x)");
        assert_int_equal(store_open(&c->config, BASE_US, &s), STORE_E_FOREIGN);
        assert_int_equal(context_sql(c, "SELECT count(*) FROM sqlite_schema"), 1);

        context_use(c, "absent/store.db");
        assert_int_equal(store_open(&c->config, BASE_US, &s), -ENOENT);
        assert_non_null(s);
        store_figures(s, &figures);
        assert_true(figures.degraded);
        assert_true(figures.problem[0] != '\0');
        (void) store_close(s);
}

/* The process dies without a word: what was appended is there, and nothing twice. */
static void test_kill(void **state) {
        Context *c = *state;
        StoreReader *r;
        int status, pipes[2];
        StoreFigures figures;
        uint64_t n = 0, second;
        pid_t pid;
        Fixture f;
        Store *s;

        assert_int_equal(pipe(pipes), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                s = context_store(c);
                fixture_init(&f, 8, 2, 1);
                assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
                for (uint64_t i = 1; i <= 1000; i++) {
                        append(s, &f, i, 1);
                        if (write(pipes[1], &i, sizeof(i)) != sizeof(i))
                                break;
                }
                _exit(0);
        }
        assert_int_equal(close(pipes[1]), 0);
        while (n < 130 && read(pipes[0], &n, sizeof(n)) == sizeof(n))
                ;
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        while (read(pipes[0], &n, sizeof(n)) == sizeof(n))
                ;
        assert_int_equal(close(pipes[0]), 0);
        assert_true(n >= 130);

        s = context_store(c);
        fixture_init(&f, 8, 2, 1);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        store_figures(s, &figures);
        /* nothing is left over where the kill met the commit of a minute's last tick */
        second = (BASE_US / USEC_PER_SEC + n) % 60;
        assert_true(figures.adopted_ticks > 0 || second == 0 || second == 59);
        (void) store_close(s);
        r = context_reader(c, NULL);
        assert_in_range(check_scan(r, &f, some_fields, ARRAY_SIZE(some_fields), 1, 2000), n, n + 1);
        (void) store_reader_close(r);
        fixture_deinit(&f);
        assert_int_equal(
                context_sql(c, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"),
                1);
}

static void test_deadline(void **state) {
        Context *c = *state;
        Store *s = context_store(c);
        StoreScanSpec spec = {.end_us = INT64_MAX, .fields = some_fields, .n_fields = 1};
        const StoreBlock *b;
        StoreScan *scan;
        StoreReader *r;
        Fixture f;

        fixture_init(&f, 2, 1, 1);
        assert_int_equal(store_set_machine(s, f.machine, BASE_US), 0);
        append(s, &f, 1, 70);
        r = context_reader(c, s);
        assert_int_equal(store_scan_new(r, &spec, &scan), 0);
        store_reader_set_deadline(r, 1);
        (void) usleep(10);
        assert_int_equal(store_scan_next(scan, &b), -ETIME);
        store_reader_set_deadline(r, 0);
        assert_int_equal(store_scan_next(scan, &b), 1);
        (void) store_scan_free(scan);
        (void) store_reader_close(r);
        (void) store_close(s);
        fixture_deinit(&f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                CONTEXT_TEST(test_new_file),
                CONTEXT_TEST(test_round_trip),
                CONTEXT_TEST(test_restart_continues),
                CONTEXT_TEST(test_machine_changes),
                CONTEXT_TEST(test_clock_set_back),
                CONTEXT_TEST(test_labels),
                CONTEXT_TEST(test_events),
                CONTEXT_TEST(test_bounds_and_figures),
                CONTEXT_TEST(test_other_files),
                CONTEXT_TEST(test_kill),
                CONTEXT_TEST(test_deadline),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
