/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A CPU's two events are one group, read at once. A filter in the kernel picks the state out of the event's arguments;
 * exits say state 4294967295 and pass none. Counters are cumulative: a CPU that is left asleep loses nothing, its next
 * reading covers the sleep. Reading another CPU's event interrupts it, hence the wake plan.
 */

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampler/idle-perf.h"
#include "sampler/wake-plan.h"

#define N_STATES 2

typedef struct PerfCpu {
        uint32_t id;
        int error; /* why it is not open */
        int fds[N_STATES];
        uint64_t last[N_STATES];
        bool was_read;
} PerfCpu;

struct IdlePerf {
        uint64_t tracepoint;
        uint32_t n_cpus;
        PerfCpu *cpus; /* by CPU of the machine */
        WakePlan plan;
};

int idle_default_states(Machine *m) {
        IdleSet *set;

        if (m->n_idle_sets > 0)
                return 0;
        set = calloc(1, sizeof(*set));
        if (!set)
                return -ENOMEM;
        set->n_states = N_STATES;
        set->states[0] = (IdleState){ .name = "POLL", .desc = "idle loop polling", .mwait_hint = -1, .is_poll = true };
        set->states[1] = (IdleState){ .name = "IDLE", .desc = "default idle (HLT)", .mwait_hint = -1 };
        free(m->idle_sets);
        m->idle_sets = set;
        m->n_idle_sets = 1;
        for (uint32_t i = 0; i < m->n_cpus; i++)
                m->cpus[i].idle_set = 0;
        return 0;
}

static int event_open(uint64_t tracepoint, uint32_t cpu, int leader, unsigned state) {
        struct perf_event_attr attr = {
                .type = PERF_TYPE_TRACEPOINT,
                .size = sizeof(attr),
                .config = tracepoint,
                .read_format = PERF_FORMAT_GROUP,
        };
        char filter[24];
        int fd = (int) syscall(SYS_perf_event_open, &attr, -1, (int) cpu, leader, PERF_FLAG_FD_CLOEXEC), r;

        if (fd < 0)
                return -errno;
        (void) snprintf(filter, sizeof(filter), "state == %u", state);
        if (ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) < 0) {
                r = -errno;
                (void) close(fd);
                return r;
        }
        return fd;
}

static void cpu_close(PerfCpu *c) {
        for (unsigned k = 0; k < N_STATES; k++)
                closep(&c->fds[k]);
}

static void cpu_open(const IdlePerf *p, PerfCpu *c, uint32_t id) {
        *c = (PerfCpu){ .id = id, .fds = { -1, -1 } };
        for (unsigned k = 0; k < N_STATES; k++) {
                int fd = event_open(p->tracepoint, id, k == 0 ? -1 : c->fds[0], k);

                if (fd < 0) {
                        cpu_close(c);
                        c->error = -fd;
                        return;
                }
                c->fds[k] = fd;
        }
}

IdlePerf *idle_perf_free(IdlePerf *p) {
        if (!p)
                return NULL;
        for (uint32_t i = 0; i < p->n_cpus; i++)
                cpu_close(&p->cpus[i]);
        free(p->cpus);
        wake_plan_deinit(&p->plan);
        free(p);
        return NULL;
}

/* cpuidle's own counters are there, even where nobody reads them. */
static bool has_cpuidle(Sysfs *sysfs, const Machine *m) {
        return m->n_idle_sets > 0 || m->n_cpus == 0 ||
                sysfs_exists(sysfs, "sys/devices/system/cpu/cpu%u/cpuidle/state0/usage", (unsigned) m->cpus[0].id);
}

static bool can_open(IdlePerf *p, uint32_t cpu) {
        PerfCpu probe;

        cpu_open(p, &probe, cpu);
        cpu_close(&probe);
        return probe.error == 0;
}

int idle_perf_columns(IdlePerf *p, Machine *m, uint8_t index, SourceStatus *status) {
        int r;

        status->n_counters = 0;
        if (m->n_idle_sets > 0) /* an idle driver has come */
                return 0;
        r = idle_default_states(m);
        if (r < 0)
                return r;
        for (uint8_t k = 0; k < N_STATES; k++) {
                LayoutColumn *c = layout_add(&m->layout, FIELD_TRACE_ENTRIES, k);

                if (!c)
                        continue;
                c->source = index;
                status->n_counters++;
        }
        (void) snprintf(status->detail, sizeof(status->detail), "%s",
                "perf counts power:cpu_idle: wakeups, but neither time nor causes");
        return 0;
}

int idle_perf_new(Sysfs *sysfs, Machine *m, uint8_t index, SourceStatus *status, IdlePerf **ret) {
        IdlePerf *p;
        int r;

        *ret = NULL;
        if (has_cpuidle(sysfs, m))
                return 0;
        p = calloc(1, sizeof(*p));
        if (!p)
                return -ENOMEM;
        r = sysfs_read_u64(sysfs, &p->tracepoint, "sys/kernel/tracing/events/power/cpu_idle/id");
        if (r < 0)
                r = sysfs_read_u64(sysfs, &p->tracepoint, "sys/kernel/debug/tracing/events/power/cpu_idle/id");
        if (r < 0 || !can_open(p, m->cpus[0].id)) {
                (void) idle_perf_free(p);
                return 0;
        }
        r = idle_perf_columns(p, m, index, status);
        if (r < 0)
                p = idle_perf_free(p);
        *ret = p;
        return r;
}

/* CPUs that were there keep their events. */
int idle_perf_open(IdlePerf *p, const Machine *m) {
        PerfCpu *cpus = calloc((size_t) m->n_cpus + 1, sizeof(*cpus));
        uint32_t old = 0;

        if (!cpus)
                return -ENOMEM;
        for (uint32_t i = 0; i < m->n_cpus; i++) {
                while (old < p->n_cpus && p->cpus[old].id < m->cpus[i].id)
                        cpu_close(&p->cpus[old++]);
                if (old < p->n_cpus && p->cpus[old].id == m->cpus[i].id)
                        cpus[i] = p->cpus[old++];
                else
                        cpu_open(p, &cpus[i], m->cpus[i].id);
        }
        while (old < p->n_cpus)
                cpu_close(&p->cpus[old++]);
        free(p->cpus);
        p->cpus = cpus;
        p->n_cpus = m->n_cpus;
        wake_plan_deinit(&p->plan);
        return wake_plan_init(&p->plan, m);
}

/* 0 or an errno. */
static int cpu_read(PerfCpu *c, SourceTurn *turn, uint32_t cpu) {
        struct {
                uint64_t n, values[N_STATES];
        } group;
        CpuActivity *a = &turn->activity[cpu];

        if (c->error)
                return c->error;
        turn->n_remote_reads++;
        turn->n_wakeups += a->slept;
        a->asking++;
        if (read(c->fds[0], &group, sizeof(group)) != (ssize_t) sizeof(group) || group.n != N_STATES)
                return EIO;
        memcpy(c->last, group.values, sizeof(c->last));
        c->was_read = true;
        return 0;
}

static void cpu_put(const PerfCpu *c, SourceTurn *turn, uint32_t cpu, Reason reason) {
        for (uint8_t k = 0; k < N_STATES; k++) {
                uint8_t *reasons;
                uint64_t *values = source_values(turn, FIELD_TRACE_ENTRIES, k, &reasons);

                if (!values)
                        continue;
                values[cpu] = c->last[k];
                reasons[cpu] = (uint8_t) reason;
        }
}

void idle_perf_read(IdlePerf *p, SourceTurn *turn) {
        wake_plan_make(&p->plan, turn, NULL);
        for (uint32_t i = 0; i < p->n_cpus; i++) {
                uint32_t core = turn->machine->cpus[i].core;
                int error;

                if (!p->plan.read_cpu[i]) {
                        cpu_put(&p->cpus[i], turn, i, p->cpus[i].was_read ? REASON_ASLEEP : REASON_FIRST);
                        continue;
                }
                error = cpu_read(&p->cpus[i], turn, i);
                cpu_put(&p->cpus[i], turn, i, error ? source_reason(error) : REASON_NONE);
                wake_plan_cpu_done(&p->plan, i);
                if (p->plan.core_reader[core] == i)
                        wake_plan_core_done(&p->plan, core, turn->now_ns);
        }
}
