/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cstated/macro.h"
#include "cstated/timespan.h"
#include "tests/bench/store-data.h"

#define TSC_HZ 2100000000.0
#define STATES 4

static double uniform(BenchData *d) {
        d->state ^= d->state << 13;
        d->state ^= d->state >> 7;
        d->state ^= d->state << 17;
        return (double) ((d->state * 0x2545f4914f6cdd1dULL) >> 11) / 9007199254740992.0;
}

/* About a Gaussian. */
static double noise(BenchData *d) {
        double x = 0;

        for (unsigned i = 0; i < 4; i++)
                x += uniform(d);
        return (x - 2) * 1.7320508;
}

static double poisson(BenchData *d, double mean) {
        return fmax(0, floor(mean + sqrt(mean) * noise(d) + 0.5));
}

static void add(Machine *m, FieldId field, uint8_t instances) {
        for (uint8_t i = 0; i < instances; i++)
                if (!layout_add(&m->layout, field, i))
                        abort();
}

static void *allocate(size_t n, size_t size) {
        void *p = calloc(n, size);

        if (!p)
                abort();
        return p;
}

static void add_entities(Machine *m, uint32_t n_cpus) {
        m->n_cpus = n_cpus;
        m->n_cores = n_cpus / 2;
        m->n_packages = 2;
        m->cpus = allocate(n_cpus, sizeof(*m->cpus));
        m->cores = allocate(m->n_cores, sizeof(*m->cores));
        m->packages = allocate(2, sizeof(*m->packages));
        for (uint32_t i = 0; i < n_cpus; i++) {
                uint32_t core = i % m->n_cores; /* siblings are n/2 apart, as Linux numbers them */

                m->cpus[i] = (MachineCpu){.id = i,
                        .core = core,
                        .package = core * 2 / m->n_cores,
                        .module = UINT32_MAX,
                        .thread = (uint16_t) (i / m->n_cores)};
        }
        for (uint32_t i = 0; i < m->n_cores; i++)
                m->cores[i] =
                        (MachineCore){.id = (int32_t) i, .package = i * 2 / m->n_cores, .first_cpu = i};
        for (uint32_t i = 0; i < 2; i++)
                m->packages[i] =
                        (MachinePackage){.package = (int32_t) i, .die = -1, .first_cpu = i * m->n_cores / 2};
}

static Machine *bench_machine(uint32_t n_cpus) {
        static const char *const names[STATES] = {"POLL", "C1", "C1E", "C6"};
        Machine *m = machine_new();

        if (!m)
                abort();
        m->generation = 1;
        (void) strcpy(m->boot_id, "0123456789abcdef0123456789abcdef");
        (void) strcpy(m->host, "bench");
        (void) strcpy(m->kernel, "6.1.0");
        (void) strcpy(m->idle_driver, "intel_idle");
        m->tsc_hz = (uint64_t) TSC_HZ;
        m->user_hz = 100;
        add_entities(m, n_cpus);
        m->n_idle_sets = 1;
        m->idle_sets = allocate(1, sizeof(*m->idle_sets));
        m->idle_sets[0].n_states = STATES;
        for (unsigned i = 0; i < STATES; i++) {
                (void) strcpy(m->idle_sets[0].states[i].name, names[i]);
                m->idle_sets[0].states[i].mwait_hint = -1;
        }
        m->n_idents = 1;
        m->idents = allocate(1, sizeof(*m->idents));
        (void) strcpy(m->idents[0].vendor, "GenuineIntel");
        m->idents[0].family = 6;
        m->idents[0].model = 0x55;
        add(m, FIELD_CPU_TSC, 1);
        add(m, FIELD_CPU_NS, 1);
        add(m, FIELD_MPERF, 1);
        add(m, FIELD_APERF, 1);
        add(m, FIELD_SMI, 1);
        add(m, FIELD_IRQ, 1);
        add(m, FIELD_IRQ_RES, 1);
        add(m, FIELD_IRQ_CAL, 1);
        add(m, FIELD_IRQ_LOC, 1);
        add(m, FIELD_IDLE_NS, 1);
        add(m, FIELD_IDLE_TIME, STATES);
        add(m, FIELD_IDLE_USAGE, STATES);
        add(m, FIELD_CORE_TSC, 1);
        add(m, FIELD_C6, 1);
        add(m, FIELD_PKG_TSC, 1);
        add(m, FIELD_PKG_NS, 1);
        add(m, FIELD_PC2, 1);
        add(m, FIELD_PC6, 1);
        add(m, FIELD_ENERGY_PKG, 1);
        add(m, FIELD_ENERGY_RAM, 1);
        machine_finish_layout(m);
        for (size_t i = 0; i < m->layout.n_columns; i++)
                if (m->layout.columns[i].field == FIELD_ENERGY_PKG ||
                        m->layout.columns[i].field == FIELD_ENERGY_RAM)
                        m->layout.columns[i].scale = 1.0 / 16384;
        return m;
}

void bench_data_init(BenchData *d, uint32_t n_cpus, bool busy) {
        *d = (BenchData){.machine = bench_machine(n_cpus), .state = 88172645463325252ULL, .busy = busy};
        sample_layout(d->machine, &d->layout);
        d->sample = (Sample){
                .machine = d->machine,
                .layout = &d->layout,
                .values = allocate(d->layout.n_values, sizeof(int64_t)),
                .reasons = allocate(d->layout.n_values, 1),
        };
        d->level = allocate(n_cpus, sizeof(*d->level));
        d->skew = allocate(n_cpus, sizeof(*d->skew));
        d->counters = allocate(d->layout.n_values, sizeof(*d->counters));
        for (uint32_t i = 0; i < n_cpus; i++)
                d->level[i] = 8 + 24 * uniform(d);
}

void bench_data_deinit(BenchData *d) {
        (void) machine_free(d->machine);
        free(d->sample.values);
        free(d->sample.reasons);
        free(d->level);
        free(d->skew);
        free(d->counters);
}

static void put(BenchData *d, FieldId field, uint8_t instance, uint32_t e, double v) {
        const LayoutColumn *c = layout_find(&d->layout, field, instance);

        if (c)
                d->sample.values[c->offset + e] = (int64_t) v;
}

/* Tick counters: cumulative, then cut to 1024 ticks, then differenced, as samples are. */
static void put_ticks(BenchData *d, FieldId field, uint32_t e, double ticks) {
        const LayoutColumn *c = layout_find(&d->layout, field, 0);
        uint64_t before;

        if (!c)
                return;
        before = d->counters[c->offset + e];
        d->counters[c->offset + e] += (uint64_t) fmax(ticks, 0);
        d->sample.values[c->offset + e] = (int64_t) (d->counters[c->offset + e] >> FIELD_TICK_SHIFT) -
                                          (int64_t) (before >> FIELD_TICK_SHIFT);
}

/* One CPU's second; returns the share of it that it was awake. */
static double put_cpu(BenchData *d, uint32_t e, int64_t dt_ns) {
        int64_t skew = (int64_t) (e * 3000 + 15000 * fabs(noise(d))), span = dt_ns + skew - d->skew[e];
        double seconds = (double) span / 1e9, tsc = seconds * TSC_HZ;
        double wakes = poisson(d, d->level[e] * (d->busy ? 40 : 1)), shallow = poisson(d, wakes / 12);
        double awake = d->busy ? 0.5 + 0.2 * noise(d) : wakes * (45e-6 + 4e-6 * noise(d));
        double c1 = shallow * (60e-6 + 25e-6 * uniform(d)), poll = poisson(d, shallow / 20) * 8e-6;
        double loc = poisson(d, fmin(wakes, 12) * 0.7);

        awake = fmin(fmax(awake, 1e-5), seconds * 0.98);
        d->skew[e] = skew;
        put_ticks(d, FIELD_CPU_TSC, e, tsc);
        put(d, FIELD_CPU_NS, 0, e, (double) span);
        put_ticks(d, FIELD_MPERF, e, awake * TSC_HZ);
        put_ticks(d, FIELD_APERF, e, awake * TSC_HZ * (d->busy ? 1.3 + 0.01 * noise(d) : 0.8 + 0.02 * noise(d)));
        put(d, FIELD_IRQ, 0, e, wakes + poisson(d, wakes * 0.1));
        put(d, FIELD_IRQ_RES, 0, e, poisson(d, wakes * 0.05));
        put(d, FIELD_IRQ_CAL, 0, e, poisson(d, wakes * 0.02));
        put(d, FIELD_IRQ_LOC, 0, e, loc);
        put(d, FIELD_IDLE_NS, 0, e, (double) dt_ns);
        put(d, FIELD_IDLE_TIME, 0, e, poll * 1e6);
        put(d, FIELD_IDLE_TIME, 1, e, c1 * 1e6);
        put(d, FIELD_IDLE_TIME, 2, e, c1 * 2e6);
        put(d, FIELD_IDLE_TIME, 3, e, fmax(seconds - awake - c1 * 3 - poll, 0) * 1e6);
        put(d, FIELD_IDLE_USAGE, 0, e, poll > 0);
        put(d, FIELD_IDLE_USAGE, 1, e, shallow);
        put(d, FIELD_IDLE_USAGE, 2, e, floor(shallow / 2));
        put(d, FIELD_IDLE_USAGE, 3, e, wakes - fmin(wakes, shallow + floor(shallow / 2)));
        put_ticks(d, FIELD_C1, e, c1 * 3 * TSC_HZ);
        put_ticks(d, FIELD_C1_SPAN, e, tsc);
        return awake / seconds;
}

const Sample *bench_data_next(BenchData *d, uint64_t start_us) {
        int64_t dt_ns = (int64_t) (1e9 + 40000 * noise(d));
        const Machine *m = d->machine;
        double awake[2] = {};

        d->seq++;
        d->sample.h = (SampleHeader){
                .seq = d->seq,
                .start_us = start_us + (d->seq - 1) * USEC_PER_SEC,
                .end_us = start_us + d->seq * USEC_PER_SEC,
                .dt_ns = (uint64_t) dt_ns,
                .generation = 1,
                .epoch = 1,
        };
        for (uint32_t i = 0; i < m->n_cpus; i++)
                awake[m->cpus[i].package] += put_cpu(d, i, dt_ns) / m->n_cpus * 2;
        for (uint32_t i = 0; i < m->n_cores; i++) {
                double tsc = (double) (dt_ns + (int64_t) (8000 * noise(d))) / 1e9 * TSC_HZ;

                put_ticks(d, FIELD_CORE_TSC, i, tsc);
                put(d, FIELD_DEMOTION, 0, i, tsc / 1024 * 0.01 * fabs(noise(d)));
                put_ticks(d, FIELD_C6, i,
                        tsc * (1 - fmin(awake[m->cores[i].package] * 2.2 + 0.002 * uniform(d), 1)));
        }
        for (uint32_t i = 0; i < 2; i++) {
                double tsc = (double) dt_ns / 1e9 * TSC_HZ;

                put_ticks(d, FIELD_PKG_TSC, i, tsc);
                put(d, FIELD_PKG_NS, 0, i, (double) dt_ns);
                put_ticks(d, FIELD_PC2, i, tsc * 0.1 * uniform(d));
                put_ticks(d, FIELD_PC6, i, d->busy ? 0 : tsc * (0.6 + 0.1 * noise(d)));
                put(d, FIELD_ENERGY_PKG, 0, i, (40 + 100 * awake[i] + noise(d)) * 16384);
                put(d, FIELD_ENERGY_RAM, 0, i, (8 + 20 * awake[i] + 0.2 * noise(d)) * 16384);
        }
        return &d->sample;
}
