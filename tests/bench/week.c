/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A database as it stands after days of sampling at 1 Hz, with two labels of five windows each in its last hours.
 *
 * usage: week FILE CPUS DAYS; prints when it begins and ends, in milliseconds
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cstated/macro.h"
#include "cstated/num.h"
#include "cstated/timespan.h"
#include "tests/bench/store-data.h"

#define DAY_S 86400

static int die(const char *what) {
        (void) fprintf(stderr, "week: %s\n", what);
        return 1;
}

static int add_labels(Store *s, uint64_t end_us) {
        for (unsigned i = 0; i < 10; i++) {
                StoreLabel l = { .start_us = end_us - (i + 1) * 700 * USEC_PER_SEC };

                l.end_us = l.start_us + 600 * USEC_PER_SEC;
                (void) snprintf(l.name, sizeof(l.name), "%s", i < 5 ? "new" : "old");
                if (store_label_add(s, &l) < 0)
                        return -1;
        }
        return 0;
}

int main(int argc, char **argv) {
        StoreConfig config = STORE_CONFIG_INIT;
        uint64_t start_us, end_us, n_ticks;
        uint32_t n_cpus, days;
        Store *s = NULL;
        BenchData d;

        if (argc != 4 || num_parse_u32(argv[2], &n_cpus) < 0 || num_parse_u32(argv[3], &days) < 0)
                return die("FILE CPUS DAYS");
        config.path = argv[1];
        n_ticks = (uint64_t) days * DAY_S;
        end_us = (uint64_t) time(NULL) / 60 * 60 * USEC_PER_SEC; /* now: a daemon forgets by age */
        start_us = end_us - n_ticks * USEC_PER_SEC;
        bench_data_init(&d, n_cpus, false);
        if (store_open(&config, start_us, &s) != 0 || store_set_machine(s, d.machine, start_us) != 0)
                return die("cannot open the store");
        for (uint64_t i = 0; i < n_ticks; i++) {
                const Sample *sample = bench_data_next(&d, start_us);

                if (store_append(s, sample) < 0)
                        return die("cannot append");
                if (i % 60 == 30)
                        (void) store_maintain(s, sample->h.end_us);
        }
        if (store_flush(s) < 0 || add_labels(s, end_us) < 0)
                return die("cannot write");
        while (store_maintain(s, end_us) > 0)
                ;
        (void) store_close(s);
        bench_data_deinit(&d);
        (void) printf("%" PRIu64 " %" PRIu64 "\n", (uint64_t) (start_us / USEC_PER_MSEC), (uint64_t) (end_us / USEC_PER_MSEC));
        return 0;
}
