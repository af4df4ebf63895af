/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The idle states of a whole machine: CPUs with the same list share a set (P and E cores differ). sysfs is
 * read for each CPU; the discovery proper (cpuidle-discover.h) is asked once a set.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sampler/cpuidle-discover.h"
#include "sampler/source-cpuidle.h"

/* Whether the states are the same, whatever is switched off. */
static bool set_is_like(const IdleSet *a, const IdleSet *b) {
        IdleSet x = *a, y = *b;

        for (uint32_t i = 0; i < x.n_states; i++)
                x.states[i].disabled = false;
        for (uint32_t i = 0; i < y.n_states; i++)
                y.states[i].disabled = false;
        return memcmp(&x, &y, sizeof(x)) == 0;
}

/* There is no room for another set: the CPU is shown with one that counts the same states, or with none. */
static void set_borrow(const Machine *m, MachineCpu *cpu, const IdleSet *set) {
        for (uint32_t i = 0; i < m->n_idle_sets; i++)
                if (set_is_like(&m->idle_sets[i], set)) {
                        cpu->idle_set = (uint16_t) i;
                        return;
                }
}

/* The set of a CPU: one known already, else discovered and added. UINT16_MAX: the CPU has none. */
static int set_assign(Sysfs *sysfs, Machine *m, MachineCpu *cpu, uint32_t *n_differing, uint32_t *n_beyond) {
        IdleSet set = {}, *grown;

        if (cpuidle_sysfs_set(sysfs, cpu->id, &set) < 0)
                return 0;
        for (uint32_t i = 0; i < m->n_idle_sets; i++)
                if (memcmp(&m->idle_sets[i], &set, sizeof(set)) == 0) {
                        cpu->idle_set = (uint16_t) i;
                        return 0;
                }
        if (m->n_idle_sets == MACHINE_IDLE_SETS_MAX) {
                set_borrow(m, cpu, &set);
                (*n_beyond)++;
                return 0;
        }
        if (cpuidle_discover_set(sysfs, cpu->id, &set, n_differing) < 0)
                return 0;
        grown = realloc(m->idle_sets, (m->n_idle_sets + 1) * sizeof(*grown));
        if (!grown)
                return -ENOMEM;
        m->idle_sets = grown;
        m->idle_sets[m->n_idle_sets] = set;
        cpu->idle_set = (uint16_t) m->n_idle_sets++;
        return 0;
}

/* What a machine has more of than a Machine holds; the source works all the same. */
static void report_excess(
        Sysfs *sysfs, const Machine *m, uint32_t n_states, uint32_t n_beyond, SourceStatus *status) {
        bool longer = false;

        for (uint32_t i = 0; i < m->n_cpus && n_states == IDLE_STATES_MAX && !longer; i++)
                longer = sysfs_exists(sysfs, "sys/devices/system/cpu/cpu%u/cpuidle/state%d", m->cpus[i].id,
                        IDLE_STATES_MAX);
        if (n_beyond == 0 && !longer)
                return;
        status->error = EOVERFLOW;
        if (longer)
                (void) snprintf(status->hint, sizeof(status->hint), "more than %d idle states: the others are left out",
                        IDLE_STATES_MAX);
        else
                (void) snprintf(status->hint, sizeof(status->hint),
                        "more than %d different lists of idle states: %u CPUs are shown with one like theirs, or none",
                        MACHINE_IDLE_SETS_MAX, n_beyond);
}

int cpuidle_sets_discover(Sysfs *sysfs, Machine *m, SourceStatus *status) {
        uint32_t n_differing = 0, n_states = 0, n_beyond = 0;
        CpuidleNames names;
        int r;

        cpuidle_discover_names(sysfs, &names, &n_differing);
        memcpy(m->idle_driver, names.driver, sizeof(m->idle_driver));
        memcpy(m->idle_governor, names.governor, sizeof(m->idle_governor));
        for (uint32_t i = 0; i < m->n_cpus; i++) {
                r = set_assign(sysfs, m, &m->cpus[i], &n_differing, &n_beyond);
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
        report_excess(sysfs, m, n_states, n_beyond, status);
        return (int) n_states;
}
