/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPU time of queries over a made-up day of 64 and an hour or two of 512 CPUs, warm. Printed beside the
 * budget; nothing fails here.
 */

#include "tests/unit/test.h"

#include <stdlib.h>
#include <time.h>

#include "cstated/timespan.h"
#include "query/collect.h"
#include "query/query.h"
#include "tests/unit/machine-fixture.h"
#include "tests/unit/world.h"

#define START_US (1700002800ULL * USEC_PER_SEC) /* on an hour */
#define HOUR_US  (3600 * USEC_PER_SEC)

static double cpu_ms(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
        return (double) ts.tv_sec * 1e3 + (double) ts.tv_nsec * 1e-6;
}

static void print(const char *what, double ms, double budget_ms) {
        printf("  %-44s %7.1f ms  budget %g%s", what, ms, budget_ms, ms <= budget_ms ? "" : " MISSED");
}

/* Runs it and says how many rows came, how long it took, and the longest slice. */
static void query(World *w, const char *what, const char *text, double budget_ms) {
        char *copy = strdup(text);
        QueryParam params[16];
        double begin, slice, longest = 0;
        QueryError error = {};
        const QueryRow *row;
        QueryInfo info;
        QuerySpec spec;
        size_t n, rows = 0;
        Query *q;
        int r;

        for (unsigned warm = 0; warm < 2; warm++) {
                (void) strcpy(copy, text);
                assert_int_equal(route_parse_query_string(copy, params, 16, &n), 0);
                assert_int_equal(query_spec_parse(params, n, w->time_us, &spec, &error), 0);
                begin = slice = cpu_ms();
                r = query_new(w->reader, &spec, &q, &error);
                if (r != 0)
                        fail_msg("%s: %d %s", what, r, error.message);
                for (rows = 0, longest = 0; (r = query_next(q, &row)) > 0;)
                        if (r == 2) {
                                double now = cpu_ms();

                                longest = now - slice > longest ? now - slice : longest;
                                slice = now;
                        } else
                                rows++;
                assert_int_equal(r, 0);
                query_info(q, &info);
                (void) query_free(q);
                query_spec_deinit(&spec);
        }
        print(what, cpu_ms() - begin, budget_ms);
        printf(", %zu rows from %s, longest slice %.1f ms\n", rows, store_tier_name(info.tier), longest);
        free(copy);
}

static void compare(World *w, double budget_ms) {
        double begin = 0;
        size_t rows = 0;

        for (unsigned warm = 0; warm < 2; warm++) {
                begin = cpu_ms();
                for (unsigned side = 0; side < 2; side++) {
                        QuerySpec spec = { .has_scope = true,
                                .scope = SCOPE_SYSTEM,
                                .now_us = w->time_us,
                                .aggs = AGG_MEAN };
                        QueryError error = {};
                        Collect c;
                        int r;

                        collect_init(&c, w->reader, &spec, w->time_us - (2 - side) * HOUR_US,
                                w->time_us - (1 - side) * HOUR_US);
                        while ((r = collect_work(&c, &error)) == 2)
                                ;
                        assert_int_equal(r, 0);
                        rows = c.n_rows;
                        collect_deinit(&c);
                }
        }
        print("two windows of 1 h, all metrics, mean and sd", cpu_ms() - begin, budget_ms);
        printf(", %zu rows\n", rows);
}

static void fill(World *w, size_t seconds) {
        uint64_t x = 88172645463325252ULL;

        for (size_t i = 0; i < seconds; i++) {
                for (uint32_t e = 0; e < w->machine->n_cpus; e++) {
                        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
                        world_busy(w, e, 1 + (double) (x % 1000) / 500);
                        world_set(w, FIELD_IRQ, 0, e, (int64_t) (x >> 20 & 63));
                        world_set(w, FIELD_IDLE_USAGE, 3, e, (int64_t) (x >> 30 & 63));
                }
                world_ticks(w, 1);
        }
        for (unsigned i = 0; i < 5000 && store_maintain(w->store, w->time_us) > 0; i++)
                ;
}

static void bench(uint32_t cores, size_t seconds, double budget_last_hour, double budget_compare) {
        Machine *m = fixture_machine(2, cores, 2);
        World w;

        world_columns(m);
        world_open(&w, m, START_US, USEC_PER_SEC);
        fill(&w, seconds);
        printf("%u CPUs, %zu h at 1 Hz\n", w.machine->n_cpus, seconds / 3600);
        query(&w, "last hour, 3 metrics of every CPU, 1 min", "metric=busy,irq,c1&start=-1h&step=1m",
                budget_last_hour);
        query(&w, "last hour, 3 metrics of every CPU, one value", "metric=busy,irq,c1&start=-1h&points=1",
                budget_last_hour);
        query(&w, "the same with spread", "metric=busy,irq,c1&start=-1h&points=1&agg=mean,min,max,stddev",
                budget_last_hour);
        query(&w, "15 minutes of the node, each tick", "metric=busy,pkg_watts,c6&scope=node", 15);
        query(&w, "the last of them all, a package at 1 min",
                "metric=pkg_watts&package=0&start=-24h&step=1m", 5);
        compare(&w, budget_compare);
        world_close(&w);
}

int main(int argc, char **argv) {
        bench(16, 24 * 3600, 15, 100);
        bench(128, 2 * 3600 + 120, 100, 600);
        return 0;
}
