/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A regular machine for tests: packages x cores x threads, numbered as Linux does (all first threads first). */

#include <stdio.h>

#include "model/machine.h"

static inline void fixture_idle_set(IdleSet *set) {
        static const IdleState states[] = {
                { .name = "POLL", .desc = "CPUIDLE CORE POLL IDLE", .mwait_hint = -1, .is_poll = true },
                { .name = "C1", .desc = "MWAIT 0x00", .exit_latency_us = 2, .target_residency_us = 2 },
                { .name = "C1E", .desc = "MWAIT 0x01", .exit_latency_us = 10, .target_residency_us = 20,
                        .mwait_hint = 1 },
                { .name = "C6", .desc = "MWAIT 0x20", .exit_latency_us = 133, .target_residency_us = 600,
                        .mwait_hint = 0x20 },
        };

        set->n_states = 4;
        for (unsigned i = 0; i < 4; i++)
                set->states[i] = states[i];
}

static inline void fixture_ident(CpuIdent *c) {
        *c = (CpuIdent){
                .vendor = "GenuineIntel",
                .brand = "Intel(R) Xeon(R) Gold 6130",
                .uarch = "Skylake-SP",
                .family = 6,
                .model = 0x55,
                .stepping = 4,
                .signature = 0x50654,
                .has_monitor = true,
                .has_aperfmperf = true,
                .mwait_substates = { 0, 2, 0, 2 },
        };
}

/* No columns yet: add them to m->layout, then machine_finish_layout(). */
static inline Machine *fixture_machine(uint32_t packages, uint32_t cores, uint32_t threads) {
        Machine *m = machine_new();

        m->generation = 1;
        (void) snprintf(m->boot_id, sizeof(m->boot_id), "5ad0cfb2-4d4f-4c4b-9d8f-0e3a7f0c0001");
        (void) snprintf(m->host, sizeof(m->host), "node\"1");
        (void) snprintf(m->idle_driver, sizeof(m->idle_driver), "intel_idle");
        m->tsc_hz = 2100000000;
        m->user_hz = 100;
        m->n_packages = packages;
        m->n_cores = packages * cores;
        m->n_cpus = packages * cores * threads;
        m->n_idle_sets = 1;
        m->n_idents = 1;
        m->packages = calloc(m->n_packages, sizeof(*m->packages));
        m->cores = calloc(m->n_cores, sizeof(*m->cores));
        m->cpus = calloc(m->n_cpus, sizeof(*m->cpus));
        m->idle_sets = calloc(1, sizeof(*m->idle_sets));
        m->idents = calloc(1, sizeof(*m->idents));
        fixture_idle_set(m->idle_sets);
        fixture_ident(m->idents);
        for (uint32_t p = 0; p < packages; p++)
                m->packages[p] = (MachinePackage){ .package = (int32_t) p, .die = -1, .first_cpu = p * cores };
        for (uint32_t c = 0; c < m->n_cores; c++)
                m->cores[c] = (MachineCore){ .id = (int32_t) (c % cores), .package = c / cores, .first_cpu = c };
        for (uint32_t i = 0; i < m->n_cpus; i++)
                m->cpus[i] = (MachineCpu){
                        .id = i,
                        .package = i % m->n_cores / cores,
                        .core = i % m->n_cores,
                        .module = UINT32_MAX,
                        .thread = (uint16_t) (i / m->n_cores),
                };
        machine_finish_layout(m);
        return m;
}

static inline LayoutColumn *fixture_column(Machine *m, FieldId field, uint8_t instance) {
        LayoutColumn *c = layout_add(&m->layout, field, instance);

        return c;
}

/* The machine without one CPU, which is then offline. Takes m. */
static inline Machine *fixture_unplug(Machine *m, uint32_t cpu_id) {
        uint32_t at = machine_cpu_index(m, cpu_id);

        m->generation++;
        m->offline = realloc(m->offline, (m->n_offline + 1) * sizeof(*m->offline));
        m->offline[m->n_offline++] = cpu_id;
        memmove(&m->cpus[at], &m->cpus[at + 1], (m->n_cpus - at - 1) * sizeof(*m->cpus));
        m->n_cpus--;
        for (uint32_t c = m->n_cores; c-- > 0;) {
                uint32_t first = UINT32_MAX, n = 0;

                for (uint32_t i = m->n_cpus; i-- > 0;)
                        if (m->cpus[i].core == c) {
                                first = i;
                                n++;
                        }
                m->cores[c].first_cpu = first;
                if (n > 0)
                        continue;
                memmove(&m->cores[c], &m->cores[c + 1], (m->n_cores - c - 1) * sizeof(*m->cores));
                m->n_cores--;
                for (uint32_t i = 0; i < m->n_cpus; i++)
                        if (m->cpus[i].core > c)
                                m->cpus[i].core--;
        }
        for (uint32_t p = 0; p < m->n_packages; p++)
                for (uint32_t i = m->n_cpus; i-- > 0;)
                        if (m->cpus[i].package == p)
                                m->packages[p].first_cpu = i;
        machine_finish_layout(m);
        return m;
}
