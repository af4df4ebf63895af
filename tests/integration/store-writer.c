/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the daemon does to its database, at speed, with ticks of a second each:
 *
 *     store-writer write DB RUNTIME PROGRESS TICKS DURABLE_S
 *             appends ticks 1, 2, ...; PROGRESS always holds how many store_append() has taken
 *     store-writer check DB RUNTIME
 *             opens it as the daemon would, compares every value with what was appended, prints the first and the
 *             last tick
 *     store-writer fill DB RUNTIME CPUS TICKS
 *             a history of a machine of so many CPUs, up to now
 */

#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "cstated/num.h"
#include "cstated/timespan.h"
#include "tests/unit/store-grid.h"

#define BASE_US (472222ULL * 3600 * USEC_PER_SEC)

static const Grid grid = {BASE_US + 500 * USEC_PER_MSEC, USEC_PER_SEC, .jitter_us = 2000, .late_us = 50000};

static int complain(const char *what, int error) {
        (void) fprintf(stderr, "store-writer: %s: %s\n", what, strerror(-error));
        return 1;
}

static int open_store(
        const char *db, const char *runtime, uint64_t durable_s, uint32_t n_cpus, Fixture *f, Store **ret) {
        StoreConfig c = STORE_CONFIG_INIT;
        int r;

        c.path = db;
        c.runtime_dir = runtime;
        c.durable_head_usec = durable_s * USEC_PER_SEC;
        c.raw_retention_usec = 2 * 3600 * USEC_PER_SEC; /* so that rows go, too */
        r = store_open(&c, BASE_US, ret);
        if (r == 0) {
                fixture_init(f, n_cpus, 2, 1);
                r = store_set_machine(*ret, f->machine, BASE_US);
        }
        return r;
}

static int write_ticks(const char *db, const char *runtime, const char *progress, uint64_t n, uint64_t durable_s) {
        int fd = open(progress, O_RDWR | O_CLOEXEC), r;
        _Atomic uint64_t *appended;
        Store *s = NULL;
        Fixture f;

        appended = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*appended), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (appended == MAP_FAILED)
                return complain(progress, -errno);
        r = open_store(db, runtime, durable_s, 4, &f, &s);
        for (uint64_t i = 1; r == 0 && i <= n; i++) {
                const char *problem;

                r = store_append(s, grid_sample(&f, &grid, i));
                if (r == 0 && store_is_degraded(s, &problem)) {
                        (void) fprintf(stderr, "store-writer: degraded: %s\n", problem);
                        r = -EIO;
                }
                atomic_store(appended, i);
                if (i % 60 == 0 && r == 0 && store_maintain(s, grid_end(&grid, i)) < 0)
                        r = -EIO;
        }
        return r < 0 ? complain(db, r) : 0; /* no close: a cut machine does not say good-bye */
}

/* The oldest may have expired; then the numbers begin later. */
static int check_ticks(const char *db, const char *runtime) {
        StoreFigures figures;
        StoreReader *reader = NULL;
        Store *s = NULL;
        uint64_t first, n;
        Fixture f;
        int r;

        r = open_store(db, runtime, 0, 4, &f, &s);
        if (r != 0)
                return complain(db, r < 0 ? r : -EPROTO);
        store_figures(s, &figures);
        if (figures.moved_aside[0] || figures.degraded) {
                (void) fprintf(stderr, "store-writer: %s%s\n", figures.moved_aside, figures.problem);
                return 1;
        }
        (void) store_close(s);
        r = store_reader_open(db, NULL, &reader);
        if (r != 0)
                return complain(db, r < 0 ? r : -EPROTO);
        n = grid_check(reader, &f, &grid, &first);
        (void) store_reader_close(reader);
        (void) printf("%llu %llu\n", (unsigned long long) first, (unsigned long long) n);
        return 0;
}

static int fill(const char *db, const char *runtime, uint32_t n_cpus, uint32_t n) {
        Grid now = {((uint64_t) time(NULL) - n) * USEC_PER_SEC, USEC_PER_SEC, 0, 0};
        Store *s = NULL;
        Fixture f;
        int r;

        r = open_store(db, runtime, 0, n_cpus, &f, &s);
        for (uint64_t i = 1; r == 0 && i <= n; i++)
                r = store_append(s, grid_sample(&f, &now, i));
        (void) store_close(s);
        return r != 0 ? complain(db, r) : 0;
}

int main(int argc, char **argv) {
        uint32_t n, durable_s, n_cpus;

        if (argc == 7 && strcmp(argv[1], "write") == 0 && num_parse_u32(argv[5], &n) == 0 &&
                num_parse_u32(argv[6], &durable_s) == 0)
                return write_ticks(argv[2], argv[3], argv[4], n, durable_s);
        if (argc == 4 && strcmp(argv[1], "check") == 0)
                return check_ticks(argv[2], argv[3]);
        if (argc == 6 && strcmp(argv[1], "fill") == 0 && num_parse_u32(argv[4], &n_cpus) == 0 &&
                num_parse_u32(argv[5], &n) == 0)
                return fill(argv[2], argv[3], n_cpus, n);
        (void) fprintf(stderr, "store-writer write DB RUNTIME PROGRESS TICKS DURABLE_S | check DB RUNTIME |"
                               " fill DB RUNTIME CPUS TICKS\n");
        return 2;
}
