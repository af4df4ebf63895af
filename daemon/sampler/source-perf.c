/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The counters of the msr source through the kernel's PMUs, where the MSR device cannot be had: kernel
 * lockdown, no msr module, a container with CAP_PERFMON alone. Where the device is readable it is the better
 * source, since it lets us choose which CPU answers for a package, while the kernel reads an event on the
 * CPU it was opened on, asleep or not.
 *
 * Where CPUs can read counters themselves as they go idle, it is the better source after all: the events are handed to
 * who makes them do so, and local-sweep.c merges what they read. A counter's local and remote readings are of the same
 * event, hence of the same count. Counters of packages and modules are left to the device even then, where it is there:
 * it has some that no PMU has (throttling), and all that share a clock are to be read in one breath.
 *
 * Each event stands for a register (EVENT_REGISTER + column), so plan, sweep, clocks and columns are those
 * of msr. The kernel counts on from 0 at the open and accumulates in 64 bits; energy is in units of the
 * PMU's .scale.
 */

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cstated/macro.h"
#include "sampler/local-sweep.h"
#include "sampler/msr-columns.h"
#include "sampler/perf-event.h"
#include "sampler/source.h"

#define EVENT_REGISTER 0x10000u /* above all registers we know */

typedef struct PerfColumn {
        FieldId field;
        Scope scope;
        uint32_t n;
        int *fds;       /* by entity, -1: none */
        uint32_t *cpus; /* by entity: index of the CPU it was opened on */
} PerfColumn;

typedef struct PerfSource {
        Source base;
        const Machine *machine; /* of the turn */
        MsrSweep sweep;
        PerfColumn columns[MSR_REGISTERS_MAX]; /* by register - EVENT_REGISTER */
        uint32_t n_columns;
        bool cores_only, is_open;
        const LocalReads *reads; /* NULL: all is read remotely */
        LocalSweep local;
} PerfSource;

static Source *perf_close(Source *source) {
        PerfSource *s = (PerfSource *) source;

        if (!s)
                return NULL;
        for (uint32_t i = 0; i < s->n_columns; i++) {
                for (uint32_t e = 0; e < s->columns[i].n; e++)
                        closep(&s->columns[i].fds[e]);
                free(s->columns[i].fds);
                free(s->columns[i].cpus);
        }
        local_sweep_deinit(&s->local);
        msr_sweep_deinit(&s->sweep);
        free(s);
        return NULL;
}

static uint32_t entity_of(const Machine *m, uint32_t cpu, Scope scope) {
        return scope == SCOPE_CPU ? cpu : machine_parent(m, SCOPE_CPU, cpu, scope);
}

static int event_read(void *userdata, uint32_t cpu, uint32_t reg, uint64_t *ret) {
        PerfSource *s = userdata;
        uint32_t i = reg - EVENT_REGISTER, e;
        uint64_t value;

        if (reg < EVENT_REGISTER || i >= s->n_columns)
                return -EIO;
        e = entity_of(s->machine, cpu, s->columns[i].scope);
        if (e >= s->columns[i].n || s->columns[i].fds[e] < 0)
                return -EIO;
        if (read(s->columns[i].fds[e], &value, sizeof(value)) != (ssize_t) sizeof(value))
                return -EIO;
        *ret = value;
        return 0;
}

static int event_open(const PerfEvent *event, uint32_t cpu_id) {
        struct perf_event_attr attr = { .type = event->type, .size = sizeof(attr), .config = event->config };
        int fd = (int) syscall(SYS_perf_event_open, &attr, -1, (int) cpu_id, -1, PERF_FLAG_FD_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

static bool is_in(uint32_t id, const uint32_t *ids, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (ids[i] == id)
                        return true;
        return false;
}

/* The CPU to open an entity's event on: one of the PMU's cpumask if it names one of the entity's, else its
 * first. */
static uint32_t designated_cpu(
        const Machine *m, Scope scope, uint32_t e, const uint32_t *mask, size_t n_mask) {
        uint32_t first = UINT32_MAX;

        for (uint32_t i = 0; i < m->n_cpus; i++) {
                if (entity_of(m, i, scope) != e)
                        continue;
                if (first == UINT32_MAX)
                        first = i;
                if (is_in(m->cpus[i].id, mask, n_mask))
                        return i;
        }
        return first;
}

static MsrDecode decode_of(FieldId field, const CpuModel *model) {
        if ((field == FIELD_MPERF || field == FIELD_APERF) && model &&
                (model->quirks & CPU_QUIRK_KNL_PERF1024))
                return MSR_DECODE_TICK_1024;
        return field_spec(field)->unit == FIELD_UNIT_TICK && field != FIELD_APERF ? MSR_DECODE_TICK
                                                                                  : MSR_DECODE_WIDE;
}

/*
 * Knights Landing's C6 registers are not where its PMU looks. C1's register is the thread's, its PMU's scope the core:
 * most kernels move the event of a second thread to the first one's CPU, count that one's C1, and no second thread may
 * read it, so that it would be asked for remotely, and the first one woken for it. What TSC, MPERF and the core's
 * states leave is right then.
 */
static bool is_believed(FieldId field, const CpuModel *model, const Machine *m) {
        if (field == FIELD_C1_RES)
                return m->n_cores == m->n_cpus;
        return !model || !(model->quirks & CPU_QUIRK_KNL_C6) || (field != FIELD_C6 && field != FIELD_PC6);
}

/* Nobody lets us, or there are more CPUs than files we may open: some CPUs' counters alone are of no use. */
static bool is_refused(int error) {
        return error == -EACCES || error == -EPERM || error == -EMFILE || error == -ENFILE;
}

/* Opens an event for every entity. 0, also where no entity has it; else why there can be none. */
static int add_event(
        PerfSource *s, Sysfs *sysfs, const Machine *m, const PerfEventName *name, const PerfEvent *event) {
        const CpuModel *first_model = cpu_table_find(&m->idents[m->cpus[0].ident]);
        PerfColumn *p = &s->columns[s->n_columns];
        MsrRegister r = { name->field, EVENT_REGISTER + s->n_columns, decode_of(name->field, first_model),
                MSR_ZERO_IS_VALUE };
        _cleanup_free_ uint32_t *mask = NULL;
        size_t n_mask = 0, n_open = 0;
        MsrColumn *c;
        int denied = 0;

        if (s->n_columns == ARRAY_SIZE(s->columns) || !is_believed(name->field, first_model, m))
                return 0;
        *p = (PerfColumn){ .field = name->field, .scope = field_spec(name->field)->scope };
        p->n = machine_n_entities(m, p->scope);
        p->fds = calloc(p->n + 1, sizeof(int));
        p->cpus = calloc(p->n + 1, sizeof(uint32_t));
        c = p->fds && p->cpus ? msr_set_add(&s->sweep.set, m, &r) : NULL;
        if (!c) {
                free(p->fds);
                free(p->cpus);
                return -ENOMEM;
        }
        s->n_columns++;
        c->scale = event->scale;
        c->width = 64;
        (void) sysfs_read_cpulist(
                sysfs, &mask, &n_mask, "sys/bus/event_source/devices/%s/cpumask", name->pmu);
        for (uint32_t e = 0; e < p->n; e++) {
                uint32_t cpu = designated_cpu(m, p->scope, e, mask, n_mask);
                const CpuModel *model =
                        cpu < m->n_cpus ? cpu_table_find(&m->idents[m->cpus[cpu].ident]) : NULL;

                p->cpus[e] = cpu;
                p->fds[e] = cpu < m->n_cpus && denied == 0 ? event_open(event, m->cpus[cpu].id) : -ENODEV;
                if (is_refused(p->fds[e]))
                        denied = p->fds[e];
                c->slots[e].present = p->fds[e] >= 0;
                c->slots[e].holds_c7 =
                        name->field == FIELD_C6 && model && (model->quirks & CPU_QUIRK_C6_INCLUDES_C7);
                n_open += p->fds[e] >= 0;
        }
        if (n_open == 0) { /* listed, but none of our CPUs counts it: no column */
                free(c->slots);
                s->sweep.set.n_columns--;
        }
        return denied;
}

static int add_events(PerfSource *s, Sysfs *sysfs, const Machine *m) {
        for (size_t i = 0; i < perf_event_names_n; i++) {
                const PerfEventName *name = &perf_event_names[i];
                PerfEvent event;
                int r;

                if (s->cores_only && field_spec(name->field)->scope < SCOPE_CORE)
                        continue;
                if (msr_set_find(&s->sweep.set, name->field) || perf_event_describe(sysfs, name, &event) < 0)
                        continue;
                r = add_event(s, sysfs, m, name, &event);
                if (r < 0)
                        return r;
        }
        msr_set_group(&s->sweep.set);
        return 0;
}

static void set_tweak(PerfSource *s, const Machine *m) {
        for (uint32_t i = 0; i < m->n_packages; i++) {
                const CpuIdent *c = &m->idents[m->cpus[m->packages[i].first_cpu].ident];
                uint64_t tsc = cpuid_tsc_hz(c);

                msr_convert_set_tweak(&s->sweep.set.convert[i], cpu_table_find(c), tsc ? tsc : m->tsc_hz,
                        (uint64_t) c->base_mhz * 1000000);
        }
}

/* Why perf stays out of it altogether, NULL: it does not. */
static const char *not_possible(const Machine *m) {
        if (m->n_cpus == 0 || m->n_idents == 0 || !m->idents[0].invariant_tsc)
                return "needs an invariant TSC";
        if (m->hypervisor)
                return "virtual machine: its PMUs count nothing of the hardware's idle states or power";
        return NULL;
}

static bool has_device(Sysfs *sysfs, const Machine *m) {
        int fd = sysfs_open(sysfs, "dev/cpu/%u/msr", (unsigned) m->cpus[0].id);

        if (fd < 0)
                return false;
        (void) close(fd);
        return true;
}

/* Why perf is not wanted where all has to be read remotely, NULL where it is. */
static const char *not_wanted(Sysfs *sysfs, const Machine *m) {
        const char *why = not_possible(m);

        if (!why && has_device(sysfs, m))
                why = "not needed: the MSR device gives the same, from a CPU of our choice";
        return why;
}

static int probe_events(PerfSource *s, Sysfs *sysfs, Machine *m, SourceStatus *status) {
        int r;

        s->machine = m;
        s->sweep.read = event_read;
        s->sweep.userdata = s;
        s->sweep.set.n_packages = m->n_packages;
        s->sweep.set.convert = calloc(m->n_packages + 1, sizeof(MsrConvert));
        if (!s->sweep.set.convert)
                return -ENOMEM;
        set_tweak(s, m);
        r = add_events(s, sysfs, m);
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                source_status_set_error(status, r, "perf_event_open");
        } else if (s->sweep.set.n_columns == 0) {
                source_status_set_error(status, -ENOENT, "PMUs msr, cstate_core, cstate_pkg and power");
        } else {
                status->n_counters = msr_columns_add(&s->sweep.set, &m->layout, s->base.index);
                (void) snprintf(
                        status->detail, sizeof(status->detail), "%zu events", s->sweep.set.n_columns);
        }
        return 0;
}

static int probe(
        Sysfs *sysfs, Machine *m, uint8_t index, bool cores_only, PerfSource **ret, SourceStatus *status) {
        PerfSource *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        s->cores_only = cores_only;
        s->base = (Source){ .ops = &source_ops_perf, .index = index };
        r = probe_events(s, sysfs, m, status);
        if (r < 0 || status->n_counters == 0) {
                (void) perf_close(&s->base);
                return r;
        }
        *ret = s;
        return 0;
}

static int perf_probe(Sysfs *sysfs, Machine *m, uint8_t index, Source **ret, SourceStatus *status) {
        const char *why = not_wanted(sysfs, m);
        PerfSource *s = NULL;
        int r;

        if (why) {
                status->state = SOURCE_ABSENT;
                (void) snprintf(status->hint, sizeof(status->hint), "%s", why);
                return 0;
        }
        r = probe(sysfs, m, index, false, &s, status);
        if (s)
                *ret = &s->base;
        return r;
}

/* ---- read by the CPUs themselves ---- */

/* Worth the while: what would otherwise cost a remote read of every core that woke. */
static bool has_core_counters(PerfSource *s) {
        MsrSet *set = &s->sweep.set;

        return (msr_set_find(set, FIELD_MPERF) && msr_set_find(set, FIELD_APERF)) || msr_set_find(set, FIELD_C3) ||
               msr_set_find(set, FIELD_C6) || msr_set_find(set, FIELD_C7);
}

/* Every CPU gets the events of what it is a part of; the kernel says which of them it may read. 0 or -errno. */
static int lend_events(const PerfSource *s, const Machine *m) {
        for (uint32_t i = 0; i < MIN(s->n_columns, (uint32_t) LOCAL_COLUMNS_MAX); i++)
                for (uint32_t cpu = 0; cpu < m->n_cpus; cpu++) {
                        const PerfColumn *p = &s->columns[i];
                        uint32_t e = entity_of(m, cpu, p->scope);
                        int r = s->reads->set(s->reads->userdata, m->cpus[cpu].id, i, e < p->n ? p->fds[e] : -1);

                        if (r < 0)
                                return r;
                }
        return 0;
}

static int perf_probe_local(Sysfs *sysfs, Machine *m, uint8_t index, const LocalReads *reads, Source **ret,
        SourceStatus *status) {
        const Layout before = m->layout; /* given back where it comes to nothing: probe is to find it so */
        PerfSource *s = NULL;
        int r;

        if (not_possible(m))
                return 0;
        r = probe(sysfs, m, index, has_device(sysfs, m), &s, status);
        if (!s)
                return r;
        s->reads = reads;
        if (!has_core_counters(s) || lend_events(s, m) < 0) {
                m->layout = before;
                (void) perf_close(&s->base);
                return 0;
        }
        s->base.is_local = true;
        (void) snprintf(status->detail, sizeof(status->detail), "%zu events, read by each CPU as it goes idle",
                s->sweep.set.n_columns);
        *ret = &s->base;
        return 0;
}

/* The CPU that an entity's events are on: that of the first one it has. */
static uint32_t event_cpu(void *userdata, Scope scope, uint32_t e) {
        const PerfSource *s = userdata;

        for (uint32_t i = 0; i < s->n_columns; i++)
                if (s->columns[i].scope == scope && e < s->columns[i].n && s->columns[i].fds[e] >= 0)
                        return s->columns[i].cpus[e];
        return UINT32_MAX;
}

static int perf_open(Source *source, const Machine *m) {
        PerfSource *s = (PerfSource *) source;
        int r;

        if (s->is_open)
                return 0;
        r = msr_sweep_init(&s->sweep, m);
        if (r == 0 && s->reads)
                r = local_sweep_init(&s->local, &s->sweep, m, s->reads, EVENT_REGISTER, event_cpu, s);
        s->is_open = r == 0;
        return r;
}

/* The event of a field that was on this CPU, NULL: there was none. */
static int *event_of(PerfSource *s, const Machine *m, FieldId field, uint32_t cpu_id) {
        uint32_t cpu = machine_cpu_index(m, cpu_id), e;

        for (uint32_t i = 0; i < s->n_columns && cpu != UINT32_MAX; i++) {
                PerfColumn *p = &s->columns[i];

                if (p->field != field)
                        continue;
                e = entity_of(m, cpu, p->scope);
                return e < p->n && p->cpus[e] == cpu && p->fds[e] >= 0 ? &p->fds[e] : NULL;
        }
        return NULL;
}

/* Events of CPUs that were not touched count on: what the change elsewhere opened anew for them is dropped again. */
static void perf_adopt(Source *source, const Machine *m, Source *source_old, const Machine *m_old) {
        PerfSource *s = (PerfSource *) source, *old = (PerfSource *) source_old;

        if (!old->is_open || old->local.has_dead)
                return;
        for (uint32_t i = 0; i < s->n_columns; i++)
                for (uint32_t e = 0; e < s->columns[i].n; e++) {
                        PerfColumn *p = &s->columns[i];
                        int *fd = p->fds[e] >= 0 ? event_of(old, m_old, p->field, m->cpus[p->cpus[e]].id) : NULL;

                        if (fd) {
                                int fresh = p->fds[e];

                                p->fds[e] = *fd;
                                *fd = fresh; /* closed with the old one */
                        }
                }
        if (s->reads && lend_events(s, m) < 0)
                return; /* as at the probe, where it worked */
        if (s->reads && old->reads && perf_open(source, m) == 0)
                local_sweep_adopt(&s->local, m, &old->local, m_old);
}

static int perf_read(Source *source, SourceTurn *turn, SourceStatus *status) {
        PerfSource *s = (PerfSource *) source;

        s->machine = turn->machine;
        if (s->reads)
                local_sweep_run(&s->local, &s->sweep, turn);
        else
                msr_sweep_run(&s->sweep, turn);
        msr_columns_publish(&s->sweep, turn, source->index);
        return s->local.has_dead;
}

const SourceOps source_ops_perf = {
        .name = "perf",
        .passive = false,
        .probe = perf_probe,
        .probe_local = perf_probe_local,
        .adopt = perf_adopt,
        .open = perf_open,
        .read = perf_read,
        .close = perf_close,
};
