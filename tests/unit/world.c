/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>

#include "cstated/api.h"
#include "cstated/timespan.h"
#include "tests/unit/machine-fixture.h"
#include "tests/unit/world.h"

void world_columns(Machine *m) {
        static const FieldId fields[] = {
                FIELD_CPU_TSC,
                FIELD_CPU_NS,
                FIELD_MPERF,
                FIELD_APERF,
                FIELD_SMI,
                FIELD_IRQ,
                FIELD_NMI,
                FIELD_IDLE_NS,
                FIELD_CORE_TSC,
                FIELD_CORE_NS,
                FIELD_C6,
                FIELD_CORE_TEMP,
                FIELD_PKG_TSC,
                FIELD_PKG_NS,
                FIELD_PC2,
                FIELD_PC6,
                FIELD_PKG_TEMP,
        };

        for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
                assert_non_null(fixture_column(m, fields[i], 0));
        for (uint8_t i = 0; i < 4; i++)
                for (unsigned f = FIELD_IDLE_TIME; f <= FIELD_IDLE_REJECTED; f++)
                        assert_non_null(fixture_column(m, (FieldId) f, i));
        fixture_column(m, FIELD_ENERGY_PKG, 0)->scale = 6.103515625e-5;
        fixture_column(m, FIELD_ENERGY_RAM, 0)->scale = 1.52587890625e-5;
        machine_finish_layout(m);
}

Machine *world_machine(void) {
        Machine *m = fixture_machine(2, 2, 2);

        assert_non_null(m);
        (void) strcpy(m->kernel, "6.1.0-test");
        (void) strcpy(m->idle_governor, "menu");
        world_columns(m);
        return m;
}

static void world_lay_out(World *w) {
        sample_layout(w->machine, &w->layout);
        free(w->sample.values);
        free(w->sample.reasons);
        w->sample = (Sample){
                .machine = w->machine,
                .layout = &w->layout,
                .values = calloc(w->layout.n_values, sizeof(int64_t)),
                .reasons = calloc(w->layout.n_values, 1),
        };
        w->sample.settled = w->sample.values;
        w->sample.settled_reasons = w->sample.reasons;
        for (uint32_t i = 0; i < w->machine->n_cpus; i++)
                world_busy(w, i, 10);
}

#define FOREVER (100ULL * 365 * 86400 * USEC_PER_SEC)

static void world_begin(
        World *w, Machine *m, uint64_t start_us, uint64_t step_us, uint64_t raw_usec, uint64_t minute_usec) {
        StoreConfig c = STORE_CONFIG_INIT;

        *w = (World){ .machine = m ? m : world_machine(), .time_us = start_us, .step_us = step_us };
        c.raw_retention_usec = raw_usec;
        c.minute_retention_usec = minute_usec;
        c.hour_retention_usec = FOREVER;
        /* in memory, where thousands of commits cost nothing */
        assert_true(asprintf(&w->dir, "%s/cstated-test-XXXXXX",
                            getenv("TMPDIR")
                                    ?: access("/dev/shm", W_OK) == 0 ? "/dev/shm"
                                                                     : "/tmp") > 0);
        assert_non_null(mkdtemp(w->dir));
        assert_true(asprintf(&w->path, "%s/w.db", w->dir) > 0);
        c.path = w->path;
        assert_int_equal(store_open(&c, start_us, &w->store), 0);
        assert_int_equal(store_set_machine(w->store, w->machine, start_us), 0);
        assert_int_equal(store_reader_open(w->path, w->store, &w->reader), 0);
        world_lay_out(w);
        w->sample.h.epoch = 1;
        w->totals = totals_new();
        assert_non_null(w->totals);
}

void world_open(World *w, Machine *m, uint64_t start_us, uint64_t step_us) {
        world_begin(w, m, start_us, step_us, FOREVER, FOREVER);
}

void world_open_expiring(
        World *w, uint64_t start_us, uint64_t step_us, uint64_t raw_usec, uint64_t minute_usec) {
        world_begin(w, NULL, start_us, step_us, raw_usec, minute_usec);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        return remove(path);
}

void world_close(World *w) {
        w->reader = store_reader_close(w->reader);
        w->store = store_close(w->store);
        assert_int_equal(nftw(w->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
        free(w->dir);
        free(w->path);
        free(w->sample.values);
        free(w->sample.reasons);
        (void) machine_free(w->machine);
        w->totals = totals_free(w->totals);
}

void world_change(World *w, Machine *m) {
        uint32_t epoch = w->sample.h.epoch;

        (void) machine_free(w->machine);
        w->machine = m;
        world_lay_out(w);
        w->sample.h.epoch = epoch;
        assert_int_equal(store_set_machine(w->store, m, w->time_us), 0);
}

static size_t world_slot(const World *w, FieldId f, uint8_t instance, uint32_t e) {
        const LayoutColumn *c = layout_find(&w->layout, f, instance);

        assert_non_null(c);
        return c->offset + e;
}

void world_set(World *w, FieldId f, uint8_t instance, uint32_t e, int64_t v) {
        size_t slot = world_slot(w, f, instance, e);

        w->sample.values[slot] = v;
        w->sample.reasons[slot] = REASON_NONE;
}

void world_null(World *w, FieldId f, uint8_t instance, uint32_t e, Reason r) {
        size_t slot = world_slot(w, f, instance, e);

        w->sample.values[slot] = 0;
        w->sample.reasons[slot] = (uint8_t) r;
}

static void set_if(World *w, FieldId f, uint8_t instance, uint32_t e, double v) {
        if (layout_find(&w->layout, f, instance))
                world_set(w, f, instance, e, (int64_t) (v + 0.5));
}

void world_busy(World *w, uint32_t cpu, double percent) {
        const MachineCpu *c = &w->machine->cpus[cpu];
        double seconds = (double) w->step_us / USEC_PER_SEC,
               ticks = seconds * (double) w->machine->tsc_hz / 1024;
        double idle = 1 - percent / 100;

        set_if(w, FIELD_CPU_TSC, 0, cpu, ticks);
        set_if(w, FIELD_CPU_NS, 0, cpu, seconds * 1e9);
        set_if(w, FIELD_IDLE_NS, 0, cpu, seconds * 1e9);
        set_if(w, FIELD_MPERF, 0, cpu, ticks * percent / 100);
        set_if(w, FIELD_APERF, 0, cpu, 1.5 * ticks * percent / 100);
        set_if(w, FIELD_IDLE_TIME, 3, cpu, seconds * 1e6 * idle);
        set_if(w, FIELD_C1_SPAN, 0, cpu, ticks);
        set_if(w, FIELD_C1, 0, cpu, ticks * idle / 2);
        set_if(w, FIELD_CORE_TSC, 0, c->core, ticks);
        set_if(w, FIELD_CORE_NS, 0, c->core, seconds * 1e9);
        set_if(w, FIELD_C6, 0, c->core, ticks * idle / 2);
        set_if(w, FIELD_PKG_TSC, 0, c->package, ticks);
        set_if(w, FIELD_PKG_NS, 0, c->package, seconds * 1e9);
}

void world_ticks(World *w, size_t n) {
        for (size_t i = 0; i < n; i++) {
                w->sample.h.seq = ++w->seq;
                w->sample.h.start_us = w->time_us;
                w->time_us += w->step_us;
                w->sample.h.end_us = w->time_us;
                w->sample.h.dt_ns = w->step_us * NSEC_PER_USEC;
                w->sample.h.generation = w->machine->generation;
                assert_int_equal(store_append(w->store, &w->sample), 0);
                assert_int_equal(totals_add(w->totals, &w->sample), 0);
        }
}

void world_vary(World *w, size_t n) {
        for (size_t i = 0; i < n; i++) {
                for (uint32_t e = 0; e < 8; e++) {
                        world_busy(w, e, 5 + (double) ((w->seq * 7 + e * 3) % 11) * 3);
                        world_set(w, FIELD_IRQ, 0, e, (int64_t) (50 + w->seq * 13 % 29));
                        for (uint8_t k = 1; k < 4; k++)
                                world_set(w, FIELD_IDLE_USAGE, k, e, (int64_t) (w->seq * 5 % 17 + k));
                }
                for (uint32_t e = 0; e < 4; e++)
                        world_set(w, FIELD_CORE_TEMP, 0, e, 40 + (int64_t) (w->seq % 9));
                for (uint32_t e = 0; e < 2; e++)
                        world_set(
                                w, FIELD_ENERGY_PKG, 0, e, (int64_t) (16384 * 500 + w->seq % 13 * 1000000));
                world_ticks(w, 1);
        }
}

void world_maintain(World *w) {
        for (unsigned i = 0; i < 2000 && store_maintain(w->store, w->time_us) > 0; i++)
                ;
}

void world_gap(World *w, uint64_t n_us) {
        w->time_us += n_us;
        w->sample.h.epoch++;
}

static uint64_t now_us;

static uint64_t world_now(void) {
        return now_us;
}

void world_service(World *w, Service *ret) {
        static const SourceStatus sources[] = {
                { .name = "cpuidle", .state = SOURCE_OK, .detail = "4 states", .n_counters = 20 },
                { .name = "msr", .state = SOURCE_DENIED, .error = EPERM, .hint = "kernel lockdown" },
                { .name = "powercap",
                        .state = SOURCE_ABSENT,
                        .error = ENOENT,
                        .hint = "modprobe intel_rapl_msr" },
        };

        w->status = (SamplerStatus){
                .n_sources = ARRAY_SIZE(sources), .wake_policy = "lazy",
                .wake_policy_hint = "local cannot be had: a test", .capabilities = "perfmon"
        };
        memcpy(w->status.sources, sources, sizeof(sources));
        w->tick = (TickHeader){ .seq = w->seq,
                .self_cpu_ns = 1500000,
                .self_reads = 12,
                .sample_ns = 345000,
                .rss_bytes = 1 << 21 };
        now_us = w->time_us;
        *ret = (Service){
                .sample = w->seq > 0 ? &w->sample : NULL,
                .machine = w->machine,
                .sampler = &w->status,
                .store = w->store,
                .reader = w->reader,
                .start_us = w->time_us - w->seq * w->step_us,
                .interval_usec = w->step_us,
                .now_us = world_now,
                .tick = &w->tick,
                .totals = w->totals,
                .server_cpu_ns = 2500000,
                .server_rss_bytes = 1 << 22,
                .notes = { "made up for a test" },
                .n_notes = 1,
        };
}

static char *drain(ReplyStream *s, size_t *ret_n) {
        JsonWriter piece = JSON_WRITER_INIT, all = JSON_WRITER_INIT;
        int r;

        do {
                piece.n = 0;
                r = s->next(s, &piece);
                assert_true(r >= 0);
                if (piece.n > 0)
                        jw_raw(&all, piece.buf, piece.n);
        } while (r > 0);
        jw_raw(&all, "", 0);
        jw_deinit(&piece);
        return jw_take(&all, ret_n);
}

char *world_get(Service *s, const char *method, const char *path, const char *query, const char *body,
        bool local, int *ret_status, char content_type[64]) {
        QueryParam params[API_PARAMS_MAX];
        Request q = {
                .method = method,
                .path = path,
                .params = params,
                .body = body,
                .n_body = body ? strlen(body) : 0,
                .local = local,
        };
        char *text = strdup(query ? query : ""), *out;
        Reply reply = {};
        int r = route_parse_query_string(text, params, API_PARAMS_MAX, &q.n_params);

        assert_int_equal(r, 0);
        assert_int_equal(route_handle(s, &q, &reply), 0);
        if (content_type)
                (void) snprintf(content_type, 64, "%s", reply.content_type ? reply.content_type : "");
        *ret_status = reply.status;
        if (reply.stream)
                out = drain(reply.stream, &reply.n_body);
        else
                out = strndup(reply.body ? reply.body : "", reply.n_body);
        reply_deinit(&reply);
        free(text);
        return out;
}
