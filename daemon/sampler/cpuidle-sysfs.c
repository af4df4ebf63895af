/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Idle states as sysfs has them. Only directories named state<number> count ("driver", "power" and a state's
 * s2idle are none), in numeric order, and without a hole: the index is the kernel's.
 */

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "cstated/num.h"

#include "sampler/cpuidle-discover.h"

#define CPU_DIR "sys/devices/system/cpu"
#define MWAIT_MARK "MWAIT 0x"

void cpuidle_sysfs_names(Sysfs *s, CpuidleNames *ret) {
        *ret = (CpuidleNames){};
        (void) sysfs_read_line(s, ret->driver, sizeof(ret->driver), CPU_DIR "/cpuidle/current_driver");
        if (sysfs_read_line(s, ret->governor, sizeof(ret->governor), CPU_DIR "/cpuidle/current_governor") <
                0)
                (void) sysfs_read_line(
                        s, ret->governor, sizeof(ret->governor), CPU_DIR "/cpuidle/current_governor_ro");
        if (strcmp(ret->driver, "none") == 0)
                ret->driver[0] = 0;
}

static bool is_state(const char *name) {
        const char *p = name + 5;

        if (strncmp(name, "state", 5) != 0 || !*p)
                return false;
        while (isdigit((unsigned char) *p))
                p++;
        return *p == 0;
}

/* The EAX hint in "MWAIT 0x20" (intel_idle) or "ACPI FFH MWAIT 0x20" (acpi_idle); -1 where there is none. */
static int32_t mwait_hint_parse(const char *desc) {
        const char *p = strstr(desc, MWAIT_MARK);
        uint32_t hint;
        char text[16];
        size_t n;

        if (!p)
                return -1;
        p += strlen("MWAIT ");
        n = 2 + strspn(p + 2, "0123456789abcdefABCDEF");
        if (n >= sizeof(text))
                return -1;
        memcpy(text, p, n);
        text[n] = 0;
        return num_parse_u32(text, &hint) == 0 && hint <= INT32_MAX ? (int32_t) hint : -1;
}

static uint32_t state_number(Sysfs *s, uint32_t cpu, unsigned state, const char *name) {
        uint64_t v;

        if (sysfs_read_u64(s, &v, CPU_DIR "/cpu%u/cpuidle/state%u/%s", cpu, state, name) < 0 ||
                v > UINT32_MAX)
                return 0;
        return (uint32_t) v;
}

static int state_read(Sysfs *s, uint32_t cpu, unsigned state, IdleState *ret) {
        int r;

        r = sysfs_read_line(
                s, ret->name, sizeof(ret->name), CPU_DIR "/cpu%u/cpuidle/state%u/name", cpu, state);
        if (r < 0)
                return r;
        (void) sysfs_read_line(
                s, ret->desc, sizeof(ret->desc), CPU_DIR "/cpu%u/cpuidle/state%u/desc", cpu, state);
        ret->exit_latency_us = state_number(s, cpu, state, "latency");
        ret->target_residency_us = state_number(s, cpu, state, "residency");
        ret->disabled = state_number(s, cpu, state, "disable") != 0;
        ret->mwait_hint = mwait_hint_parse(ret->desc);
        ret->is_poll = strcmp(ret->name, "POLL") == 0;
        return 0;
}

int cpuidle_sysfs_set(Sysfs *s, uint32_t cpu, IdleSet *ret) {
        char **names = NULL, expected[16];
        IdleSet set = {};
        size_t n = 0;
        int r;

        r = sysfs_list(s, is_state, &names, &n, CPU_DIR "/cpu%u/cpuidle", cpu);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n && i < IDLE_STATES_MAX; i++) {
                (void) snprintf(expected, sizeof(expected), "state%zu", i);
                if (strcmp(names[i], expected) != 0 || state_read(s, cpu, (unsigned) i, &set.states[i]) < 0)
                        break;
                set.n_states++;
        }
        sysfs_names_free(names, n);
        if (set.n_states == 0)
                return -ENOENT;
        *ret = set;
        return 0;
}
