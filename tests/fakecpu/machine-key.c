/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The table of what can be set. */

#include <string.h>

#include "machine-key.h"

static const Key keys[] = {
        { "busy", SCOPE_CPU, CPU_MPERF, RATE_TSC, 64 },
        { "mperf", SCOPE_CPU, CPU_MPERF, RATE_DERIVED, 64 },
        { "mhz", SCOPE_CPU, CPU_APERF, RATE_MHZ, 64 },
        { "aperf", SCOPE_CPU, CPU_APERF, RATE_DERIVED, 64 },
        { "c1", SCOPE_CPU, CPU_C1, RATE_DERIVED, 64 },
        { "smi", SCOPE_CPU, CPU_SMI, RATE_PER_S, 32 },
        { "loc", SCOPE_CPU, CPU_LOC, RATE_PER_S, 32 },
        { "res", SCOPE_CPU, CPU_RES, RATE_PER_S, 32 },
        { "cal", SCOPE_CPU, CPU_CAL, RATE_PER_S, 32 },
        { "nmi", SCOPE_CPU, CPU_NMI, RATE_PER_S, 32 },
        { "dev", SCOPE_CPU, CPU_DEV, RATE_PER_S, 32 },
        { "user", SCOPE_CPU, CPU_USER, RATE_JIFFIES, 64 },
        { "nice", SCOPE_CPU, CPU_NICE, RATE_JIFFIES, 64 },
        { "system", SCOPE_CPU, CPU_SYSTEM, RATE_JIFFIES, 64 },
        { "iowait", SCOPE_CPU, CPU_IOWAIT, RATE_JIFFIES, 64 },
        { "hirq", SCOPE_CPU, CPU_HIRQ, RATE_JIFFIES, 64 },
        { "softirq", SCOPE_CPU, CPU_SOFTIRQ, RATE_JIFFIES, 64 },
        { "steal", SCOPE_CPU, CPU_STEAL, RATE_JIFFIES, 64 },
        { "c3", SCOPE_CORE, CORE_C3, RATE_TSC, 64 },
        { "c6", SCOPE_CORE, CORE_C6, RATE_TSC, 64 },
        { "c7", SCOPE_CORE, CORE_C7, RATE_TSC, 64 },
        { "mc6", SCOPE_CORE, CORE_MC6, RATE_TSC, 64 },
        { "core_watts", SCOPE_CORE, CORE_ENERGY, RATE_WATTS, 32 },
        { "core_temp", SCOPE_CORE, CORE_TEMP, RATE_GAUGE, 0 },
        { "pc2", SCOPE_DIE, DIE_PC2, RATE_TSC, 64 },
        { "pc3", SCOPE_DIE, DIE_PC3, RATE_TSC, 64 },
        { "pc6", SCOPE_DIE, DIE_PC6, RATE_TSC, 64 },
        { "pc7", SCOPE_DIE, DIE_PC7, RATE_TSC, 64 },
        { "pc8", SCOPE_DIE, DIE_PC8, RATE_TSC, 64 },
        { "pc9", SCOPE_DIE, DIE_PC9, RATE_TSC, 64 },
        { "pc10", SCOPE_DIE, DIE_PC10, RATE_TSC, 64 },
        { "pkg_watts", SCOPE_DIE, DIE_PKG, RATE_WATTS, 32 },
        { "ram_watts", SCOPE_DIE, DIE_RAM, RATE_WATTS, 32 },
        { "cor_watts", SCOPE_DIE, DIE_COR, RATE_WATTS, 32 },
        { "gfx_watts", SCOPE_DIE, DIE_GFX, RATE_WATTS, 32 },
        { "pkg_throttle", SCOPE_DIE, DIE_THROTTLE, RATE_THROTTLE, 32 },
        { "ram_throttle", SCOPE_DIE, DIE_RAM_THROTTLE, RATE_THROTTLE, 32 },
        { "pkg_temp", SCOPE_DIE, DIE_TEMP, RATE_GAUGE, 0 },
        { "psys_watts", SCOPE_SYSTEM, SYSTEM_PSYS, RATE_WATTS, 32 },
};

const Key *key_find(const char *name) {
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                if (strcmp(keys[i].name, name) == 0)
                        return &keys[i];
        return NULL;
}

int key_state(const Machine *m, unsigned type, const char *name, RateKind *ret_kind) {
        static const char *const parts[STATE_N] = {
                [STATE_TIME] = "time",
                [STATE_USAGE] = "usage",
                [STATE_ABOVE] = "above",
                [STATE_BELOW] = "below",
                [STATE_REJECTED] = "rejected",
        };
        const char *dot = strrchr(name, '.');

        for (unsigned i = 0; dot && i < m->n_states[type]; i++) {
                const char *state = m->states[type][i].name;

                if (strlen(state) != (size_t) (dot - name) ||
                        strncmp(state, name, (size_t) (dot - name)) != 0)
                        continue;
                for (unsigned k = 0; k < STATE_N; k++)
                        if (strcmp(dot + 1, parts[k]) == 0) {
                                *ret_kind = k == STATE_TIME ? RATE_STATE : RATE_PER_S;
                                return (int) (CPU_STATES + i * STATE_N + k);
                        }
        }
        return -1;
}

static uint64_t rate_of_energy(const Machine *m, Scope scope, unsigned counter, int64_t watts) {
        uint64_t num, den;

        machine_energy_unit(m,
                scope == SCOPE_SYSTEM ? ZONE_PSYS
                : scope == SCOPE_CORE ? ZONE_AMD_CORE
                                      : (int) counter,
                &num, &den);
        return rate_of_watts(watts, num, den);
}

uint64_t key_rate(const Machine *m, Scope scope, unsigned counter, RateKind kind, int64_t param) {
        switch (kind) {
        case RATE_TSC:
                return rate_of_percent(param, m->tsc_hz);
        case RATE_JIFFIES:
                return rate_of_percent(param, MACHINE_HZ);
        case RATE_STATE:
                return rate_of_percent(param, 1000000);
        case RATE_THROTTLE:
                return rate_of_percent(param, 1024);
        case RATE_PER_S:
                return (uint64_t) param;
        case RATE_WATTS:
                return rate_of_energy(m, scope, counter, param);
        case RATE_MHZ:
        case RATE_DERIVED:
        case RATE_GAUGE:
                return 0;
        }
        return 0;
}
