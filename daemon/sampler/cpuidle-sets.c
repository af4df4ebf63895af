/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The idle states of a whole machine: CPUs with the same list share a set (P and E cores differ). sysfs is
 * read for each CPU; the discovery proper (cpuidle-discover.h) is asked once a set.
 */

#include <errno.h>
#include <string.h>

#include "sampler/cpuidle-discover.h"
#include "sampler/source-cpuidle.h"

/* The set of a CPU: one known already, else discovered and added. UINT16_MAX: the CPU has none. */
static int set_assign(Sysfs *sysfs, Machine *m, MachineCpu *cpu, uint32_t *n_differing) {
        IdleSet set = {}, *grown;

        if (cpuidle_sysfs_set(sysfs, cpu->id, &set) < 0)
                return 0;
        for (uint32_t i = 0; i < m->n_idle_sets; i++)
                if (memcmp(&m->idle_sets[i], &set, sizeof(set)) == 0) {
                        cpu->idle_set = (uint16_t) i;
                        return 0;
                }
        if (m->n_idle_sets == UINT16_MAX || cpuidle_discover_set(sysfs, cpu->id, &set, n_differing) < 0)
                return 0;
        grown = realloc(m->idle_sets, (m->n_idle_sets + 1) * sizeof(*grown));
        if (!grown)
                return -ENOMEM;
        m->idle_sets = grown;
        m->idle_sets[m->n_idle_sets] = set;
        cpu->idle_set = (uint16_t) m->n_idle_sets++;
        return 0;
}

int cpuidle_sets_discover(Sysfs *sysfs, Machine *m, SourceStatus *status) {
        uint32_t n_differing = 0, n_states = 0;
        CpuidleNames names;
        int r;

        cpuidle_discover_names(sysfs, &names, &n_differing);
        memcpy(m->idle_driver, names.driver, sizeof(m->idle_driver));
        memcpy(m->idle_governor, names.governor, sizeof(m->idle_governor));
        for (uint32_t i = 0; i < m->n_cpus; i++) {
                r = set_assign(sysfs, m, &m->cpus[i], &n_differing);
                if (r < 0)
                        return r;
        }
        for (uint32_t i = 0; i < m->n_idle_sets; i++)
                n_states = MAX(n_states, m->idle_sets[i].n_states);
        if (n_differing > 0)
                (void) snprintf(status->detail, sizeof(status->detail),
                        "%s, %u states, %u answers differ from sysfs", cpuidle_discover_method(sysfs),
                        n_states, n_differing);
        else
                (void) snprintf(status->detail, sizeof(status->detail), "%s, %u states",
                        cpuidle_discover_method(sysfs), n_states);
        return (int) n_states;
}
