/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The machine's entities and how they hang together. Everything is keyed by kernel ids; indices into the arrays are
 * valid within one generation only. The arrays are sorted, so look-ups are binary searches.
 */

#include <stdlib.h>
#include <string.h>

#include "cstated/macro.h"

#include "model/machine.h"

Machine *machine_new(void) {
        return calloc(1, sizeof(Machine));
}

Machine *machine_free(Machine *m) {
        if (!m)
                return NULL;
        free(m->cpus);
        free(m->cores);
        free(m->modules);
        free(m->packages);
        free(m->idle_sets);
        free(m->idents);
        free(m->offline);
        free(m);
        return NULL;
}

static int array_copy(void *ret, const void *from, size_t n, size_t size) {
        void *p = NULL;

        if (n > 0) {
                p = calloc(n, size);
                if (!p)
                        return -1;
                memcpy(p, from, n * size);
        }
        memcpy(ret, &p, sizeof(p));
        return 0;
}

Machine *machine_copy(const Machine *m) {
        _cleanup_(machine_freep) Machine *c = machine_new();

        if (!c)
                return NULL;
        *c = *m;
        c->cpus = NULL;
        c->cores = NULL;
        c->modules = NULL;
        c->packages = NULL;
        c->idle_sets = NULL;
        c->idents = NULL;
        c->offline = NULL;
        if (array_copy(&c->cpus, m->cpus, m->n_cpus, sizeof(*m->cpus)) < 0 ||
                array_copy(&c->cores, m->cores, m->n_cores, sizeof(*m->cores)) < 0 ||
                array_copy(&c->modules, m->modules, m->n_modules, sizeof(*m->modules)) < 0 ||
                array_copy(&c->packages, m->packages, m->n_packages, sizeof(*m->packages)) < 0 ||
                array_copy(&c->idle_sets, m->idle_sets, m->n_idle_sets, sizeof(*m->idle_sets)) < 0 ||
                array_copy(&c->idents, m->idents, m->n_idents, sizeof(*m->idents)) < 0 ||
                array_copy(&c->offline, m->offline, m->n_offline, sizeof(*m->offline)) < 0)
                return NULL;
        return TAKE_PTR(c);
}

uint32_t machine_cpu_index(const Machine *m, uint32_t cpu_id) {
        uint32_t low = 0, high = m->n_cpus;

        while (low < high) {
                uint32_t mid = low + (high - low) / 2;

                if (m->cpus[mid].id == cpu_id)
                        return mid;
                if (m->cpus[mid].id < cpu_id)
                        low = mid + 1;
                else
                        high = mid;
        }
        return UINT32_MAX;
}

uint32_t machine_package_index(const Machine *m, int32_t package, int32_t die) {
        for (uint32_t i = 0; i < m->n_packages; i++)
                if (m->packages[i].package == package && m->packages[i].die == die)
                        return i;
        return UINT32_MAX;
}

uint32_t machine_core_index(const Machine *m, int32_t package, int32_t die, int32_t core_id) {
        uint32_t p = machine_package_index(m, package, die), low = 0, high = m->n_cores;

        /* Packages are sorted by (package, die), so the order of cores by (package index, id) is the stated one. */
        while (p != UINT32_MAX && low < high) {
                uint32_t mid = low + (high - low) / 2;
                const MachineCore *c = &m->cores[mid];

                if (c->package == p && c->id == core_id)
                        return mid;
                if (c->package < p || (c->package == p && c->id < core_id))
                        low = mid + 1;
                else
                        high = mid;
        }
        return UINT32_MAX;
}

uint32_t machine_module_index(const Machine *m, int32_t package, int32_t die, int32_t module_id) {
        uint32_t p = machine_package_index(m, package, die);

        for (uint32_t i = 0; p != UINT32_MAX && i < m->n_modules; i++)
                if (m->modules[i].package == p && m->modules[i].id == module_id)
                        return i;
        return UINT32_MAX;
}

uint32_t machine_first_cpu(const Machine *m, Scope s, uint32_t e) {
        switch (s) {
        case SCOPE_SYSTEM:
                return 0;
        case SCOPE_PACKAGE:
                return m->packages[e].first_cpu;
        case SCOPE_MODULE:
                return m->modules[e].first_cpu;
        case SCOPE_CORE:
                return m->cores[e].first_cpu;
        case SCOPE_CPU:
        default:
                return e;
        }
}

uint32_t machine_parent(const Machine *m, Scope from, uint32_t e, Scope to) {
        const MachineCpu *c;

        if (from == to)
                return e;
        if (to == SCOPE_SYSTEM)
                return 0;
        c = &m->cpus[machine_first_cpu(m, from, e)];
        switch (to) {
        case SCOPE_PACKAGE:
                return c->package;
        case SCOPE_MODULE:
                return c->module;
        case SCOPE_CORE:
                return from == SCOPE_CPU ? c->core : UINT32_MAX;
        case SCOPE_SYSTEM:
        case SCOPE_CPU:
        default:
                return UINT32_MAX;
        }
}

uint32_t machine_n_entities(const Machine *m, Scope s) {
        switch (s) {
        case SCOPE_SYSTEM:
                return 1;
        case SCOPE_PACKAGE:
                return m->n_packages;
        case SCOPE_MODULE:
                return m->n_modules;
        case SCOPE_CORE:
                return m->n_cores;
        case SCOPE_CPU:
        default:
                return m->n_cpus;
        }
}

void machine_finish_layout(Machine *m) {
        for (unsigned s = 0; s < SCOPE_N; s++)
                m->layout.n_entities[s] = machine_n_entities(m, (Scope) s);
        layout_finish(&m->layout);
}

const IdleSet *machine_idle_set(const Machine *m, uint32_t cpu_index) {
        uint16_t set = m->cpus[cpu_index].idle_set;

        return set < m->n_idle_sets ? &m->idle_sets[set] : NULL;
}

int machine_state_index(const Machine *m, uint32_t cpu_index, const char *name) {
        const IdleSet *set = machine_idle_set(m, cpu_index);

        for (uint32_t i = 0; set && i < set->n_states; i++)
                if (strcmp(set->states[i].name, name) == 0)
                        return (int) i;
        return -1;
}
