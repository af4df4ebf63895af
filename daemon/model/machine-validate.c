/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether a machine is one: the invariants of machine.h, each checked once, so that nothing behind has to ask again.
 */

#include <errno.h>
#include <string.h>

#include "model/machine.h"

static bool packages_ok(const Machine *m) {
        if (m->n_packages < 1 || m->n_packages > m->n_cpus)
                return false;
        for (uint32_t i = 0; i < m->n_packages; i++) {
                const MachinePackage *p = &m->packages[i];

                if (p->first_cpu >= m->n_cpus || m->cpus[p->first_cpu].package != i || p->die < -1)
                        return false;
                if (i > 0 &&
                        (p[-1].package > p->package || (p[-1].package == p->package && p[-1].die >= p->die)))
                        return false;
        }
        return true;
}

static bool cores_ok(const Machine *m) {
        if (m->n_cores < 1 || m->n_cores > m->n_cpus)
                return false;
        for (uint32_t i = 0; i < m->n_cores; i++) {
                const MachineCore *c = &m->cores[i];

                if (c->package >= m->n_packages || c->first_cpu >= m->n_cpus || m->cpus[c->first_cpu].core != i)
                        return false;
                if (i > 0 && (c[-1].package > c->package || (c[-1].package == c->package && c[-1].id >= c->id)))
                        return false;
        }
        return true;
}

static bool modules_ok(const Machine *m) {
        if (m->n_modules > m->n_cpus)
                return false;
        for (uint32_t i = 0; i < m->n_modules; i++) {
                const MachineModule *c = &m->modules[i];

                if (c->package >= m->n_packages || c->first_cpu >= m->n_cpus ||
                        m->cpus[c->first_cpu].module != i)
                        return false;
                if (i > 0 && (c[-1].package > c->package || (c[-1].package == c->package && c[-1].id >= c->id)))
                        return false;
        }
        return true;
}

static bool cpu_ok(const Machine *m, uint32_t i) {
        const MachineCpu *c = &m->cpus[i];

        if (c->id >= MACHINE_CPU_ID_MAX || (i > 0 && c[-1].id >= c->id))
                return false;
        if (c->package >= m->n_packages || c->core >= m->n_cores || m->cores[c->core].package != c->package)
                return false;
        if (c->module != UINT32_MAX &&
                (c->module >= m->n_modules || m->modules[c->module].package != c->package))
                return false;
        if (c->idle_set != UINT16_MAX && c->idle_set >= m->n_idle_sets)
                return false;
        return c->ident < m->n_idents || (m->n_idents == 0 && c->ident == 0);
}

static bool layout_ok(const Layout *l) {
        for (size_t i = 0; i < l->n_columns; i++) {
                const LayoutColumn *c = &l->columns[i];

                if (c->width < 1 || c->width > 64 || !(c->scale > 0) ||
                        c->instance >= field_n_instances(c->field))
                        return false;
        }
        return true;
}

int machine_validate(const Machine *m) {
        if (m->n_cpus < 1 || m->n_cpus > MACHINE_CPUS_MAX || m->n_idle_sets > MACHINE_IDLE_SETS_MAX ||
                m->n_idents > MACHINE_IDENTS_MAX)
                return -EBADMSG;
        for (unsigned s = 0; s < SCOPE_N; s++)
                if (m->layout.n_entities[s] != machine_n_entities(m, (Scope) s))
                        return -EBADMSG;
        for (uint32_t i = 0; i < m->n_cpus; i++)
                if (m->n_packages == 0 || m->n_cores == 0 || !cpu_ok(m, i))
                        return -EBADMSG;
        if (!packages_ok(m) || !cores_ok(m) || !modules_ok(m) || !layout_ok(&m->layout))
                return -EBADMSG;
        for (uint32_t i = 0; i < m->n_idle_sets; i++)
                if (m->idle_sets[i].n_states > IDLE_STATES_MAX)
                        return -EBADMSG;
        return 0;
}
