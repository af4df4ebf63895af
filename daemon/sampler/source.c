/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of sources, and what a failed system call means to a person. The order matters: stat and irq
 * tell cpuidle whether a CPU whose idle counters stand still is asleep or busy, all three tell the sources
 * that read remotely whom not to wake.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sampler/source.h"

const SourceOps *const source_table[] = {
        &source_ops_stat,
        &source_ops_irq,
        &source_ops_cpuidle,
        &source_ops_idletrace,
        &source_ops_perf,
        &source_ops_msr,
        &source_ops_powercap,
        NULL,
};

const size_t source_table_n = ARRAY_SIZE(source_table) - 1;

bool activity_slept(uint8_t evidence) {
        if (evidence & ACTIVITY_TRACE_KNOWN)
                return !(evidence & ACTIVITY_TRACE);
        if (evidence & (ACTIVITY_IRQ | ACTIVITY_BUSY | ACTIVITY_USAGE))
                return false;
        return (evidence & ACTIVITY_IRQ_KNOWN) && (evidence & ACTIVITY_BUSY_KNOWN);
}

Reason source_reason(int error) {
        switch (error) {
        case ENODEV:
        case ENXIO:
        case ENOENT:
                return REASON_OFFLINE;
        case EACCES:
        case EPERM:
                return REASON_DENIED;
        default:
                return REASON_ERROR;
        }
}

/* What a missing file means: only the msr device has a remedy of its own. */
static const char *hint_absent(const char *what) {
        if (strstr(what, "/msr"))
                return "no MSR device: run \"modprobe msr\", then restart cstated; a virtual machine may "
                       "have none";
        if (strstr(what, "powercap"))
                return "no RAPL zones: run \"modprobe intel_rapl_msr\"; a virtual machine has none";
        if (strstr(what, "cpuidle"))
                return "no idle driver: usual in a virtual machine, else see the kernel parameters idle=, "
                       "intel_idle.max_cstate= and cpuidle.off=";
        return "this kernel or machine has none; a virtual machine or container often lacks it";
}

static const char *hint_denied(int error, const char *what) {
        if (error == EACCES)
                return "the file's mode forbids it: needs root, CAP_DAC_READ_SEARCH or a udev rule";
        if (strstr(what, "perf") || strstr(what, "bpf"))
                return geteuid() == 0 ? "kernel lockdown, perf_event_paranoid or a container forbids it"
                                      : "needs CAP_PERFMON (and CAP_BPF for tracing)";
        return geteuid() == 0 ? "kernel lockdown or a container without CAP_SYS_RAWIO forbids it"
                              : "needs CAP_SYS_RAWIO; under kernel lockdown nobody may";
}

void source_status_set_ok(SourceStatus *s) {
        s->state = SOURCE_OK;
        s->error = 0;
        s->hint[0] = 0;
}

void source_status_set_error(SourceStatus *s, int error, const char *what) {
        const char *hint;

        error = error < 0 ? -error : error;
        switch (error) {
        case ENOENT:
        case ENODEV:
        case ENXIO:
        case EOPNOTSUPP:
        case ENOSYS:
                s->state = SOURCE_ABSENT;
                hint = hint_absent(what);
                break;
        case EACCES:
        case EPERM:
                s->state = SOURCE_DENIED;
                hint = hint_denied(error, what);
                break;
        default:
                s->state = SOURCE_ERROR;
                hint = strerror(error);
                break;
        }
        s->error = error;
        (void) snprintf(s->hint, sizeof(s->hint), "%s: %s", what, hint);
}
