/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <stdio.h>
#include <stdlib.h>

#include "cstated/macro.h"
#include "tests/unit/sampler-fixture.h"

static void fill_ident(CpuIdent *c, uint32_t family, uint32_t model, bool amd) {
        (void) snprintf(c->vendor, sizeof(c->vendor), "%s", amd ? "AuthenticAMD" : "GenuineIntel");
        c->family = family;
        c->model = model;
        c->has_aperfmperf = true;
        c->has_dts = c->has_pkg_dts = !amd;
        c->amd_rapl = amd;
        c->invariant_tsc = true;
}

Machine *fixture_machine(FixtureShape shape, uint32_t family, uint32_t model, bool amd) {
        uint32_t n_dies = shape.packages * (shape.dies ? shape.dies : 1), n_cores = n_dies * shape.cores;
        Machine *m = machine_new();

        if (!m)
                abort();
        m->generation = 1;
        m->n_packages = n_dies;
        m->n_cores = n_cores;
        m->n_cpus = n_cores * shape.threads;
        m->n_idents = 1;
        m->packages = calloc(m->n_packages, sizeof(*m->packages));
        m->cores = calloc(m->n_cores, sizeof(*m->cores));
        m->cpus = calloc(m->n_cpus, sizeof(*m->cpus));
        m->idents = calloc(1, sizeof(*m->idents));
        if (!m->packages || !m->cores || !m->cpus || !m->idents)
                abort();
        fill_ident(&m->idents[0], family, model, amd);
        for (uint32_t i = 0; i < n_dies; i++)
                m->packages[i] = (MachinePackage){
                        .package = (int32_t) (shape.dies ? i / shape.dies : i),
                        .die = shape.dies ? (int32_t) (i % shape.dies) : -1,
                        .first_cpu = i * shape.cores,
                };
        for (uint32_t i = 0; i < n_cores; i++)
                m->cores[i] = (MachineCore){
                        .id = (int32_t) (i % shape.cores), .package = i / shape.cores, .first_cpu = i};
        for (uint32_t i = 0; i < m->n_cpus; i++)
                m->cpus[i] = (MachineCpu){
                        .id = i,
                        .package = i % n_cores / shape.cores,
                        .core = i % n_cores,
                        .module = UINT32_MAX,
                        .thread = (uint16_t) (i / n_cores),
                        .idle_set = UINT16_MAX,
                };
        for (unsigned s = 0; s < SCOPE_N; s++)
                m->layout.n_entities[s] = machine_n_entities(m, (Scope) s);
        return m;
}
