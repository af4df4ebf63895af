/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Discovery by libcpupower, which knows the machine's /sys and nothing else (its path is compiled in),
 * returns 0 or NULL for any failure, and has no target residency in the versions around. So it is asked only
 * where our handle is the machine's own tree, errno is cleared before a call that returns a number, and an
 * answer counts where sysfs confirms it. Its writer (cpuidle_state_disable) is never called.
 */

#include <errno.h>
#include <string.h>

#include <cpuidle.h>

#include "sampler/cpuidle-discover.h"

const char *cpuidle_discover_method(const Sysfs *s) {
        return sysfs_is_host(s) ? "libcpupower" : "sysfs";
}

/* Takes an answer over where it says what sysfs says, "none" being "". Frees it. */
static void take_text(char *answer, char *known, size_t size, uint32_t *n_differing) {
        _cleanup_free_ char *a = answer;
        const char *text = !a ? "" : strcmp(a, "none") == 0 ? "" : a;

        if (strncmp(text, known, size - 1) != 0)
                (*n_differing)++;
        else
                (void) snprintf(known, size, "%s", text);
}

static void take_number(uint64_t answer, uint32_t *known, uint32_t *n_differing) {
        if (errno != 0 || answer != *known)
                (*n_differing)++;
        else
                *known = (uint32_t) answer;
}

void cpuidle_discover_names(Sysfs *s, CpuidleNames *ret, uint32_t *n_differing) {
        cpuidle_sysfs_names(s, ret);
        if (!sysfs_is_host(s))
                return;
        take_text(cpuidle_get_driver(), ret->driver, sizeof(ret->driver), n_differing);
        take_text(cpuidle_get_governor(), ret->governor, sizeof(ret->governor), n_differing);
}

static void state_ask(uint32_t cpu, unsigned state, IdleState *known, uint32_t *n_differing) {
        int disabled;

        take_text(cpuidle_state_name(cpu, state), known->name, sizeof(known->name), n_differing);
        take_text(cpuidle_state_desc(cpu, state), known->desc, sizeof(known->desc), n_differing);
        errno = 0;
        take_number(cpuidle_state_latency(cpu, state), &known->exit_latency_us, n_differing);
        disabled = cpuidle_is_state_disabled(cpu, state);
        if (disabled < 0 || (disabled != 0) != known->disabled)
                (*n_differing)++;
}

int cpuidle_discover_set(Sysfs *s, uint32_t cpu, IdleSet *ret, uint32_t *n_differing) {
        IdleSet set;
        int r;

        r = cpuidle_sysfs_set(s, cpu, &set);
        if (r < 0)
                return r;
        if (sysfs_is_host(s)) {
                /* it counts until a state is missing, so errno says nothing; we stop at IDLE_STATES_MAX */
                *n_differing += MIN(cpuidle_state_count(cpu), (unsigned) IDLE_STATES_MAX) != set.n_states;
                for (unsigned i = 0; i < set.n_states; i++)
                        state_ask(cpu, i, &set.states[i], n_differing);
        }
        *ret = set;
        return 0;
}
