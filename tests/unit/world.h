/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A small world for tests of query and api: a machine made by hand, a store in a fresh directory, and
 * samples whose values are set one by one and stay until they are changed.
 */

#include "api/route.h"
#include "store/store.h"

typedef struct World {
        char *dir, *path;
        Store *store;
        StoreReader *reader;
        Machine *machine;
        Layout layout;
        Sample sample;
        uint64_t time_us; /* end of the last tick */
        uint64_t step_us;
        uint64_t seq;
        Totals *totals;
        SamplerStatus status;
        TickHeader tick;
} World;

/* Two packages of two cores of two threads each (CPUs 0-7), all the columns the tests use. */
Machine *world_machine(void);
/* Those columns on any machine. */
void world_columns(Machine *m);
/* Takes m (NULL: world_machine()). */
void world_open(World *w, Machine *m, uint64_t start_us, uint64_t step_us);
/* The same where raw ticks and minutes expire. */
void world_open_expiring(
        World *w, uint64_t start_us, uint64_t step_us, uint64_t raw_usec, uint64_t minute_usec);
void world_close(World *w);
/* The machine changes; takes m. */
void world_change(World *w, Machine *m);
/* Values of the ticks from now on; entity by index. */
void world_set(World *w, FieldId f, uint8_t instance, uint32_t e, int64_t v);
void world_null(World *w, FieldId f, uint8_t instance, uint32_t e, Reason r);
/* Every CPU: TSC and clocks full, the given share of time busy (in percent), half of the rest in C6. */
void world_busy(World *w, uint32_t cpu, double percent);
/* n ticks of step_us. */
void world_ticks(World *w, size_t n);
/* n ticks whose values change from one to the next, not in step with the minutes. */
void world_vary(World *w, size_t n);
/* Lets the store finish what it has to do at rest. */
void world_maintain(World *w);
/* n_us without a tick, after which a new epoch begins. */
void world_gap(World *w, uint64_t n_us);

/* What the routes see of it: the last tick is the sample, its end is now. */
void world_service(World *w, Service *ret);

/* The whole body of a request, streamed or not; freed by the caller. Fails the test on an internal error. */
char *world_get(Service *s, const char *method, const char *path, const char *query, const char *body,
        bool local, int *ret_status, char content_type[64]);
