/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PMUs msr, cstate_core, cstate_module, cstate_pkg (cstate_die where a package has several dies) and power.
 * Their events have one term, event=N, at bit 0 of config. Energy is scaled to 2^-32 J by the kernel,
 * whatever the register's unit.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cstated/macro.h"
#include "cstated/num.h"
#include "sampler/perf-event.h"

#define PMU_DIR "sys/bus/event_source/devices"

#define PACKAGE_STATE(field, event)                                                                         \
        { field, "cstate_pkg", event }, {                                                                   \
                field, "cstate_die", event                                                                  \
        }

const PerfEventName perf_event_names[] = {
        { FIELD_MPERF, "msr", "mperf" },
        { FIELD_APERF, "msr", "aperf" },
        { FIELD_SMI, "msr", "smi" },
        { FIELD_C1_RES, "cstate_core", "c1-residency" },
        { FIELD_C3, "cstate_core", "c3-residency" },
        { FIELD_C6, "cstate_core", "c6-residency" },
        { FIELD_C7, "cstate_core", "c7-residency" },
        { FIELD_MC6, "cstate_module", "c6-residency" },
        PACKAGE_STATE(FIELD_PC2, "c2-residency"),
        PACKAGE_STATE(FIELD_PC3, "c3-residency"),
        PACKAGE_STATE(FIELD_PC6, "c6-residency"),
        PACKAGE_STATE(FIELD_PC7, "c7-residency"),
        PACKAGE_STATE(FIELD_PC8, "c8-residency"),
        PACKAGE_STATE(FIELD_PC9, "c9-residency"),
        PACKAGE_STATE(FIELD_PC10, "c10-residency"),
        { FIELD_ENERGY_PKG, "power", "energy-pkg" },
        { FIELD_ENERGY_RAM, "power", "energy-ram" },
        { FIELD_ENERGY_COR, "power", "energy-cores" },
        { FIELD_ENERGY_GFX, "power", "energy-gpu" },
        { FIELD_ENERGY_SYS, "power", "energy-psys" },
};
const size_t perf_event_names_n = ARRAY_SIZE(perf_event_names);

int perf_event_parse(const char *event, const char *format, uint64_t *ret_config) {
        uint64_t config;

        if (strncmp(event, "event=", 6) != 0 || strncmp(format, "config:0-", 9) != 0)
                return -EOPNOTSUPP;
        if (num_parse_u64(event + 6, &config) < 0)
                return -EOPNOTSUPP;
        *ret_config = config;
        return 0;
}

int perf_scale_parse(const char *text, double *ret) {
        char mantissa[64];
        const char *e = strchr(text, 'e');
        size_t n = e ? (size_t) (e - text) : strlen(text);
        int64_t exponent = 0;
        double v;

        if (n >= sizeof(mantissa))
                return -EINVAL;
        memcpy(mantissa, text, n);
        mantissa[n] = '\0';
        if (num_parse_double(mantissa, &v) < 0)
                return -EINVAL;
        if (e && (num_parse_i64(e + 1 + (e[1] == '+'), &exponent) < 0 || exponent < -300 || exponent > 300))
                return -EINVAL;
        for (; exponent > 0; exponent--)
                v *= 10;
        for (; exponent < 0; exponent++)
                v /= 10;
        if (!(v > 0) || v > 1e100)
                return -EINVAL;
        *ret = v;
        return 0;
}

int perf_event_describe(Sysfs *sysfs, const PerfEventName *name, PerfEvent *ret) {
        char event[64], format[64], scale[64];
        PerfEvent e = { .scale = 1.0 };
        uint64_t type;
        int r;

        r = sysfs_read_line(sysfs, event, sizeof(event), PMU_DIR "/%s/events/%s", name->pmu, name->event);
        if (r == 0)
                r = sysfs_read_line(sysfs, format, sizeof(format), PMU_DIR "/%s/format/event", name->pmu);
        if (r == 0)
                r = sysfs_read_u64(sysfs, &type, PMU_DIR "/%s/type", name->pmu);
        if (r < 0)
                return r;
        r = perf_event_parse(event, format, &e.config);
        if (r < 0)
                return r;
        if (type > UINT32_MAX)
                return -EOPNOTSUPP;
        e.type = (uint32_t) type;
        r = sysfs_read_line(
                sysfs, scale, sizeof(scale), PMU_DIR "/%s/events/%s.scale", name->pmu, name->event);
        if (r == 0 && perf_scale_parse(scale, &e.scale) < 0)
                return -EOPNOTSUPP;
        *ret = e;
        return 0;
}
