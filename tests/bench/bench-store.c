/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What history costs: bytes, CPU time and disk writes an hour for idle and busy machines, and the queries
 * people ask, each beside the plain way of doing it (one wide SQL row a CPU and second) over the same data
 * in the same run.
 *
 * usage: bench-store [CPUS]...   (default 64 512)
 *        bench-store --openmetrics CPUS   the idle hour's counters as text, for promtool (bench_prometheus.py)
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#include "cstated/macro.h"
#include "cstated/timespan.h"
#include "query/query.h"
#include "tests/bench/store-data.h"
#include "tests/unit/vfs-shim.h"

#define HOUR_US      (3600 * USEC_PER_SEC)
#define START_US     (472222ULL * HOUR_US)
#define SECONDS      3600
#define WIDE_COLUMNS 20

static void die(const char *what) {
        (void) fprintf(stderr, "bench-store: %s\n", what);
        exit(1);
}

static double cpu_seconds(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}

static int64_t query_i64(sqlite3 *db, const char *text) {
        sqlite3_stmt *q = NULL;
        int64_t v = 0;

        if (sqlite3_prepare_v2(db, text, -1, &q, NULL) != SQLITE_OK)
                die(sqlite3_errmsg(db));
        if (sqlite3_step(q) == SQLITE_ROW)
                v = sqlite3_column_int64(q, 0);
        (void) sqlite3_finalize(q);
        return v;
}

static void run(sqlite3 *db, const char *text) {
        if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
                die(sqlite3_errmsg(db));
}

static size_t values_a_tick(const BenchData *d) {
        /* zeros that every machine has (what sampling cost, the bound on breaks) would flatter us */
        return d->layout.n_values - d->machine->n_cpus - 5;
}

static void remove_store(const char *path) {
        static const char *const suffixes[] = { "", "-wal", "-shm", ".head" };

        for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
                _cleanup_free_ char *name = NULL;

                if (asprintf(&name, "%s%s", path, suffixes[i]) > 0)
                        (void) unlink(name);
        }
}

static void print(const char *what, double ours, double plain, const char *unit, double budget) {
        (void) printf("  %-42s %10.2f %-10s", what, ours, unit);
        if (plain > 0)
                (void) printf(" plain %10.2f  (x %.1f)", plain, plain / ours);
        if (budget > 0)
                (void) printf("  budget %g%s", budget, ours <= budget ? "" : " MISSED");
        (void) printf("\n");
}

typedef struct Cost {
        double bytes_raw, bytes_all; /* a value */
        double cpu_us;               /* a tick */
        double megabytes, syncs;     /* written in the hour */
} Cost;

/* ---- ours ---- */

static Cost bench_ingest(const char *path, uint32_t n_cpus, bool busy) {
        StoreConfig config = STORE_CONFIG_INIT;
        double cpu = 0, started;
        uint64_t bytes, syncs;
        sqlite3 *db = NULL;
        StoreFigures f;
        Store *s = NULL;
        BenchData d;
        double values;
        Cost c;

        config.path = path;
        remove_store(path);
        bench_data_init(&d, n_cpus, busy);
        if (store_open(&config, START_US, &s) != 0 || store_set_machine(s, d.machine, START_US) != 0)
                die("cannot open the store");
        vfs_shim.bytes = vfs_shim.syncs = 0;
        for (unsigned i = 0; i < SECONDS; i++) {
                const Sample *sample = bench_data_next(&d, START_US);

                started = cpu_seconds();
                if (store_append(s, sample) < 0)
                        die("cannot append");
                if (i % 60 == 30)
                        (void) store_maintain(s, sample->h.end_us);
                cpu += cpu_seconds() - started;
        }
        bytes = vfs_shim.bytes;
        syncs = vfs_shim.syncs;
        (void) store_flush(s);
        (void) store_maintain(s, START_US + HOUR_US);
        store_figures(s, &f);
        (void) store_close(s);
        if (f.degraded)
                die(f.problem);
        if (sqlite3_open(path, &db) != SQLITE_OK)
                die("cannot open");
        values = (double) values_a_tick(&d) * SECONDS;
        c = (Cost){
                .bytes_raw = (double) query_i64(db, "SELECT sum(length(b)) FROM chunk") / values,
                .bytes_all = (double) query_i64(db,
                                     "SELECT sum(pgsize) FROM dbstat WHERE name IN ('chunk', 'chunk_t0',"
                                     " 'cpu_1m', 'pkg_1m', 'sys_1m')") /
                             values,
                .cpu_us = cpu / SECONDS * 1e6,
                .megabytes = (double) bytes / 1e6,
                .syncs = (double) syncs,
        };
        (void) sqlite3_close(db);
        bench_data_deinit(&d);
        return c;
}

/* ---- the plain way: a wide row a CPU and second, an index on time by the key, a transaction a minute ----
 */

static const struct {
        FieldId field;
        uint8_t instance;
} wide[WIDE_COLUMNS] = { { FIELD_CPU_TSC, 0 }, { FIELD_CPU_NS, 0 }, { FIELD_MPERF, 0 }, { FIELD_APERF, 0 },
        { FIELD_SMI, 0 }, { FIELD_IRQ, 0 }, { FIELD_IRQ_RES, 0 }, { FIELD_IRQ_CAL, 0 }, { FIELD_IRQ_LOC, 0 },
        { FIELD_IDLE_NS, 0 }, { FIELD_IDLE_TIME, 0 }, { FIELD_IDLE_TIME, 1 }, { FIELD_IDLE_TIME, 2 },
        { FIELD_IDLE_TIME, 3 }, { FIELD_IDLE_USAGE, 0 }, { FIELD_IDLE_USAGE, 1 }, { FIELD_IDLE_USAGE, 2 },
        { FIELD_IDLE_USAGE, 3 }, { FIELD_C1, 0 }, { FIELD_C1_SPAN, 0 } };

static void wide_row(sqlite3_stmt *q, const Sample *s, uint32_t cpu) {
        (void) sqlite3_bind_int64(q, 1, (int64_t) s->h.end_us);
        (void) sqlite3_bind_int64(q, 2, cpu);
        for (int i = 0; i < WIDE_COLUMNS; i++) {
                const LayoutColumn *c = layout_find(s->layout, wide[i].field, wide[i].instance);

                (void) sqlite3_bind_int64(q, i + 3, s->values[c->offset + cpu]);
        }
        if (sqlite3_step(q) != SQLITE_DONE)
                die("wide insert");
        (void) sqlite3_reset(q);
}

static Cost bench_wide(const char *path, uint32_t n_cpus, bool busy) {
        double cpu = 0, started, values = (double) n_cpus * WIDE_COLUMNS * SECONDS;
        sqlite3_stmt *q = NULL;
        sqlite3 *db = NULL;
        BenchData d;
        Cost c;

        remove_store(path);
        bench_data_init(&d, n_cpus, busy);
        if (sqlite3_open(path, &db) != SQLITE_OK)
                die("cannot open");
        run(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA secure_delete=OFF;"
                "CREATE TABLE wide (t INTEGER, cpu INTEGER, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, "
                "q, r, s, u);"
                "CREATE TABLE wide_t (t INTEGER PRIMARY KEY, first INTEGER)");
        if (sqlite3_prepare_v2(db, "INSERT INTO wide VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                    -1, &q, NULL) != SQLITE_OK)
                die("cannot prepare");
        vfs_shim.bytes = vfs_shim.syncs = 0;
        for (unsigned i = 0; i < SECONDS; i++) {
                const Sample *s = bench_data_next(&d, START_US);

                started = cpu_seconds();
                if (i % 60 == 0)
                        run(db, "BEGIN");
                for (uint32_t k = 0; k < n_cpus; k++)
                        wide_row(q, s, k);
                if (i % 60 == 59)
                        run(db, "COMMIT");
                cpu += cpu_seconds() - started;
        }
        c = (Cost){
                .bytes_raw = (double) query_i64(db, "SELECT sum(pgsize) FROM dbstat WHERE name = 'wide'") /
                             values,
                .cpu_us = cpu / SECONDS * 1e6,
                .megabytes = (double) vfs_shim.bytes / 1e6,
                .syncs = (double) vfs_shim.syncs,
        };
        (void) sqlite3_finalize(q);
        (void) sqlite3_close(db);
        bench_data_deinit(&d);
        return c;
}

static double bench_wide_query(const char *path) {
        sqlite3 *db = NULL;
        double started;

        if (sqlite3_open(path, &db) != SQLITE_OK)
                die("cannot open");
        (void) query_i64(db, "SELECT count(*) FROM wide");
        started = cpu_seconds();
        (void) query_i64(db,
                "SELECT count(*) FROM (SELECT cpu, t / 60000000, sum(c), sum(a), sum(f), sum(s), sum(u)"
                " FROM wide GROUP BY 1, 2)");
        started = cpu_seconds() - started;
        (void) sqlite3_close(db);
        return started * 1e3;
}

/* ---- queries ---- */

static uint64_t run_query(StoreReader *r, const QueryParam *params, size_t n, uint64_t now_us) {
        const QueryRow *row;
        QueryError error;
        Query *q = NULL;
        uint64_t rows = 0;
        QuerySpec spec;
        int code;

        if (query_spec_parse(params, n, now_us, &spec, &error) < 0)
                die(error.message);
        code = query_new(r, &spec, &q, &error);
        if (code != 0)
                die(code > 0 ? error.message : "query refused");
        while ((code = query_next(q, &row)) > 0)
                rows += code == 1;
        if (code < 0)
                die("query failed");
        (void) query_free(q);
        query_spec_deinit(&spec);
        return rows;
}

/* Milliseconds of CPU time, the second time round. */
static double time_query(const char *path, const QueryParam *params, size_t n, uint64_t now_us) {
        StoreReader *r = NULL;
        double started = 0;

        if (store_reader_open(path, NULL, &r) != 0)
                die("cannot read");
        for (unsigned i = 0; i < 2; i++) {
                started = cpu_seconds();
                if (run_query(r, params, n, now_us) == 0)
                        die("a query gave nothing");
                started = cpu_seconds() - started;
        }
        (void) store_reader_close(r);
        return started * 1e3;
}

/* The iterator alone: three metrics of every CPU over the hour. */
static double time_scan(const char *path, const FieldId *fields, size_t n_fields) {
        StoreScanSpec spec = {
                .start_us = START_US, .end_us = START_US + HOUR_US, .fields = fields, .n_fields = n_fields
        };
        StoreReader *r = NULL;
        StoreScan *scan = NULL;
        const StoreBlock *b;
        double started = 0;

        if (store_reader_open(path, NULL, &r) != 0)
                die("cannot read");
        for (unsigned i = 0; i < 2; i++) {
                started = cpu_seconds();
                if (store_scan_new(r, &spec, &scan) != 0)
                        die("cannot scan");
                while (store_scan_next(scan, &b) > 0)
                        ;
                (void) store_scan_free(scan);
                started = cpu_seconds() - started;
        }
        (void) store_reader_close(r);
        return started * 1e3;
}

static void bench_queries(const char *path, const char *wide_path, bool big) {
        static const FieldId three[] = { FIELD_MPERF, FIELD_CPU_TSC, FIELD_C1, FIELD_C1_SPAN, FIELD_IRQ };
        const QueryParam hour[] = { { "metric", "busy,c1,irq" }, { "start", "1699999200" },
                { "end", "1700002800" }, { "step", "60s" } };
        const QueryParam spread[] = {
                { "metric", "busy,avg_mhz,bzy_mhz,tsc_mhz,irq,smi,c1,c6,idle_time,idle_usage,demotion" },
                { "start", "1699999200" }, { "end", "1700002800" }, { "step", "3600s" },
                { "agg", "mean,stddev" }
        };

        print("scan: last hour, 3 metrics of every CPU", time_scan(path, three, ARRAY_SIZE(three)), 0, "ms",
                0);
        print("query: the same, by the minute", time_query(path, hour, ARRAY_SIZE(hour), START_US + HOUR_US),
                bench_wide_query(wide_path), "ms", big ? 100 : 15);
        print("query: two 1 h windows, 20 metrics, mean, sd",
                2 * time_query(path, spread, ARRAY_SIZE(spread), START_US + HOUR_US), 0, "ms",
                big ? 600 : 100);
}

/* ---- a long history, made of copies of the hour ---- */

static void grow(const char *path) {
        sqlite3 *db = NULL;

        if (sqlite3_open(path, &db) != SQLITE_OK)
                die("cannot open");
        run(db, "PRAGMA secure_delete=OFF; BEGIN");
        for (int hour = 1; hour < 24; hour++) {
                char text[2000];

                (void) snprintf(text, sizeof(text),
                        "INSERT INTO chunk SELECT seq - %d * 100000, t0 - %d * 3600000000, t1 - %d * "
                        "3600000000, n, topo,"
                        " epoch, b FROM chunk WHERE seq > 0;",
                        hour, hour, hour);
                run(db, text);
        }
        run(db, "COMMIT");
        (void) sqlite3_close(db);
}

/* Copies rollup rows `back` units into the past. */
static void grow_rollups(const char *path) {
        static const char *const tables[] = { "pkg_1m", "sys_1m", "pkg_1h", "sys_1h" };
        sqlite3 *db = NULL;

        if (sqlite3_open(path, &db) != SQLITE_OK)
                die("cannot open");
        run(db, "BEGIN");
        for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
                char columns[20000] = "", text[50000];
                sqlite3_stmt *q = NULL;
                int units = i < 2 ? 60 : 1, copies = i < 2 ? 24 : 720;

                (void) snprintf(text, sizeof(text),
                        "SELECT group_concat('\"' || name || '\"') FROM pragma_table_info('%s')"
                        " WHERE name <> 'id'",
                        tables[i]);
                if (sqlite3_prepare_v2(db, text, -1, &q, NULL) != SQLITE_OK || sqlite3_step(q) != SQLITE_ROW)
                        die("no columns");
                (void) snprintf(columns, sizeof(columns), "%s", (const char *) sqlite3_column_text(q, 0));
                (void) sqlite3_finalize(q);
                (void) snprintf(text, sizeof(text), "CREATE TEMP TABLE seed AS SELECT id, %s FROM %s",
                        columns, tables[i]);
                run(db, text);
                for (int k = 1; k < copies; k++) {
                        (void) snprintf(text, sizeof(text),
                                "INSERT INTO %s (id, %s) SELECT id - %d * 8192, %s FROM temp.seed",
                                tables[i], columns, k * units, columns);
                        run(db, text);
                }
                run(db, "DROP TABLE temp.seed");
        }
        run(db, "COMMIT");
        (void) sqlite3_close(db);
}

static void bench_history(const char *path, bool big) {
        const QueryParam day[] = { { "metric", "pkg_watts,pc6" }, { "package", "0" },
                { "start", "1699916400" }, { "end", "1700002800" }, { "step", "60s" } };
        const QueryParam month[] = { { "metric", "pkg_watts,pc6" }, { "package", "0" },
                { "start", "1697410800" }, { "end", "1700002800" }, { "step", "3600s" } };
        StoreConfig config = STORE_CONFIG_INIT;
        double started, expiry = 0, shrinking = 0, longest = 0;
        uint64_t rows, steps;
        Store *s = NULL;
        StoreFigures f;
        int more = 1;

        grow_rollups(path);
        print("query: 24 h of a package by the minute",
                time_query(path, day, ARRAY_SIZE(day), START_US + HOUR_US), 0, "ms", 5);
        print("query: 30 d of a package by the hour",
                time_query(path, month, ARRAY_SIZE(month), START_US + HOUR_US), 0, "ms", 5);
        grow(path);
        config.path = path;
        config.raw_retention_usec = HOUR_US;
        config.minute_retention_usec = 100 * 24 * HOUR_US;
        if (store_open(&config, START_US, &s) != 0)
                die("cannot open");
        store_figures(s, &f);
        for (steps = 0; more > 0; steps++) {
                rows = f.tier[TIER_RAW].rows;
                started = cpu_seconds();
                more = store_maintain(s, START_US + HOUR_US);
                started = cpu_seconds() - started;
                store_figures(s, &f);
                if (f.tier[TIER_RAW].rows < rows)
                        expiry += started;
                else
                        shrinking += started;
                longest = fmax(longest, started);
        }
        print("expire a day of raw", expiry * 1e3, 0, "ms", big ? 250 : 50);
        print("and give its pages back to the disk", shrinking * 1e3, 0, "ms", 0);
        print("the longest of these steps", longest * 1e3, 0, "ms", 0);
        (void) store_close(s);
}

static void bench_machine(const char *dir, uint32_t n_cpus) {
        _cleanup_free_ char *path = NULL, *wide_path = NULL;
        bool big = n_cpus > 128;

        if (asprintf(&path, "%s/store.db", dir) < 0 || asprintf(&wide_path, "%s/wide.db", dir) < 0)
                die("out of memory");
        for (int busy = 1; busy >= 0; busy--) {
                Cost ours = bench_ingest(path, n_cpus, busy), plain = bench_wide(wide_path, n_cpus, busy);

                (void) printf("%u CPUs, %s, one hour at 1 Hz\n", n_cpus, busy ? "busy" : "idle");
                print("raw bytes a value", ours.bytes_raw, plain.bytes_raw, "B", busy ? 1.9 : 1.0);
                print("with minute rollups, all pages", ours.bytes_all, 0, "B", busy ? 0 : 1.3);
                print("CPU time a tick", ours.cpu_us, plain.cpu_us, "us", big ? 800 : 170);
                print("written an hour", ours.megabytes, plain.megabytes, "MB", big ? 115 : 17);
                print("fsyncs an hour", ours.syncs, plain.syncs, "", big ? 110 : 70);
        }
        bench_queries(path, wide_path, big);
        bench_history(path, big);
        remove_store(path);
        remove_store(wide_path);
}

/* Cumulative, as an exporter would have shown them each second; one metric after the other, as the format
 * wants it. */
static void print_openmetrics(uint32_t n_cpus) {
        BenchData d;
        int64_t *values;

        bench_data_init(&d, n_cpus, false);
        values = malloc((size_t) SECONDS * d.layout.n_values * sizeof(*values));
        if (!values)
                die("out of memory");
        for (size_t i = 0; i < SECONDS; i++)
                memcpy(values + i * d.layout.n_values, bench_data_next(&d, START_US)->values,
                        d.layout.n_values * sizeof(*values));
        for (size_t k = 0; k < WIDE_COLUMNS; k++) {
                const LayoutColumn *c = layout_find(&d.layout, wide[k].field, wide[k].instance);

                (void) printf(
                        "# TYPE cstated_%s_%u counter\n", field_spec(wide[k].field)->name, wide[k].instance);
                for (uint32_t cpu = 0; cpu < n_cpus; cpu++) {
                        int64_t sum = 0;

                        for (size_t i = 0; i < SECONDS; i++) {
                                sum += values[i * d.layout.n_values + c->offset + cpu];
                                (void) printf("cstated_%s_%u_total{cpu=\"%u\"} %lld %llu\n",
                                        field_spec(wide[k].field)->name, wide[k].instance, cpu,
                                        (long long) sum,
                                        (unsigned long long) (START_US / USEC_PER_SEC + i + 1));
                        }
                }
        }
        (void) printf("# EOF\n");
        free(values);
        bench_data_deinit(&d);
}

int main(int argc, char **argv) {
        char dir[] = "/var/tmp/cstated-bench-XXXXXX";

        if (argc == 3 && strcmp(argv[1], "--openmetrics") == 0) {
                print_openmetrics((uint32_t) atoi(argv[2]));
                return 0;
        }
        if (!mkdtemp(dir))
                die("no directory");
        vfs_shim_install();
        if (argc == 1) {
                bench_machine(dir, 64);
                bench_machine(dir, 512);
        }
        for (int i = 1; i < argc; i++)
                bench_machine(dir, (uint32_t) atoi(argv[i]));
        vfs_shim_remove();
        (void) rmdir(dir);
        return 0;
}
