/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters from /dev/cpu/N/msr. Probing is msr-probe's, reading msr-sweep's; here are the columns, the state
 * and its hint. A column covers all entities of its scope; where a core type or a package lacks the register
 * its slots say absent. What another source gives already is left to it.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cstated/macro.h"
#include "sampler/msr-columns.h"
#include "sampler/msr-dev.h"
#include "sampler/msr-sweep.h"
#include "sampler/source.h"

#define MSR_PATH   "/dev/cpu/*/msr"

typedef struct MsrSource {
        Source base;
        MsrDev dev;
        MsrSweep sweep;
        char detail[128];    /* of the probe */
        bool is_open;
} MsrSource;

static Source *msr_close(Source *source) {
        MsrSource *s = (MsrSource *) source;

        if (!s)
                return NULL;
        msr_sweep_deinit(&s->sweep);
        msr_dev_deinit(&s->dev);
        free(s);
        return NULL;
}

static int device_read(void *userdata, uint32_t cpu, uint32_t reg, uint64_t *ret) {
        return msr_dev_read(userdata, cpu, reg, ret);
}

static void describe(MsrSource *s) {
        const MsrSet *set = &s->sweep.set;
        size_t n = 0;

        n += (size_t) snprintf(s->detail, sizeof(s->detail), "%zu registers", set->n_columns);
        for (size_t i = 0; i < set->n_absent && n + 16 < sizeof(s->detail); i++)
                n += (size_t) snprintf(s->detail + n, sizeof(s->detail) - n, "%s0x%x",
                        i == 0 ? "; absent: " : " ", (unsigned) set->absent[i]);
}

static void set_state(const MsrSource *s, const Machine *m, SourceStatus *status) {
        const MsrSet *set = &s->sweep.set;

        status->error = 0;
        status->hint[0] = '\0';
        status->state = SOURCE_OK;
        (void) snprintf(status->detail, sizeof(status->detail), "%s", s->detail);
        if (set->n_columns != 0)
                return;
        status->state = SOURCE_ABSENT;
        if (set->error != 0)
                source_status_set_error(status, set->error, MSR_PATH);
        else if (m->hypervisor)
                (void) snprintf(status->hint, sizeof(status->hint),
                        "virtual machine: its registers read 0 or are missing, so they prove nothing");
        else
                (void) snprintf(status->hint, sizeof(status->hint),
                        "this CPU model has no counter that another source does not give already");
}

static int probe_device(MsrSource *s, Machine *m) {
        const CpuModel **models = calloc(m->n_idents + 1, sizeof(*models));
        int r;

        if (!models)
                return -ENOMEM;
        for (uint32_t i = 0; i < m->n_idents; i++)
                models[i] = cpu_table_find(&m->idents[i]);
        r = msr_probe(&s->sweep.set, device_read, &s->dev, m, models);
        free(models);
        return r;
}

static int msr_source_probe(Sysfs *sysfs, Machine *m, uint8_t index, Source **ret, SourceStatus *status) {
        MsrSource *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        s->base = (Source){ .ops = &source_ops_msr, .index = index };
        s->sweep.read = device_read;
        s->sweep.userdata = &s->dev;
        r = msr_dev_init(&s->dev, sysfs, m);
        if (r == 0)
                r = probe_device(s, m);
        if (r == -ENOMEM) {
                (void) msr_close(&s->base);
                return r;
        }
        if (r < 0) {
                source_status_set_error(status, r, MSR_PATH);
        } else {
                status->n_counters = msr_columns_add(&s->sweep.set, &m->layout, index);
                describe(s);
                set_state(s, m, status);
        }
        *ret = &s->base;
        return 0;
}

static int msr_open(Source *source, const Machine *m) {
        MsrSource *s = (MsrSource *) source;
        int r;

        if (s->is_open)
                return 0;
        r = msr_sweep_init(&s->sweep, m);
        s->is_open = r == 0;
        return r;
}

/* When cores were read last, and who is due: a change elsewhere must not wake those that sleep. */
static void msr_adopt(Source *source, const Machine *m, Source *source_old, const Machine *m_old) {
        MsrSource *s = (MsrSource *) source, *old = (MsrSource *) source_old;

        if (!old->is_open || msr_open(source, m) < 0)
                return; /* open() will say why */
        for (uint32_t i = 0; i < m->n_cores; i++) {
                const MachinePackage *p = &m->packages[m->cores[i].package];
                uint32_t k = machine_core_index(m_old, p->package, p->die, m->cores[i].id);

                if (k != UINT32_MAX)
                        s->sweep.plan.core_read_ns[i] = old->sweep.plan.core_read_ns[k];
        }
        for (uint32_t i = 0; i < m->n_cpus; i++) {
                uint32_t k = machine_cpu_index(m_old, m->cpus[i].id);

                s->sweep.plan.unread[i] = k != UINT32_MAX && old->sweep.plan.unread[k];
        }
}

static uint32_t entity_cpu_id(const Machine *m, Scope scope, uint32_t e) {
        const uint32_t index[SCOPE_N] = {
                [SCOPE_PACKAGE] = scope == SCOPE_PACKAGE ? m->packages[e].first_cpu : 0,
                [SCOPE_MODULE] = scope == SCOPE_MODULE ? m->modules[e].first_cpu : 0,
                [SCOPE_CORE] = scope == SCOPE_CORE ? m->cores[e].first_cpu : 0,
                [SCOPE_CPU] = scope == SCOPE_CPU ? e : 0,
        };

        return m->cpus[index[scope]].id;
}

/* Names the first register that fails; stable from turn to turn, whoever was asked in this one. */
static void report_failing(const MsrSweep *w, const Machine *m, SourceStatus *status) {
        uint32_t n = 0;

        for (size_t i = 0; i < w->set.n_columns; i++) {
                const MsrColumn *c = &w->set.columns[i];

                for (uint32_t e = 0; e < c->n; e++) {
                        if (c->slots[e].retry_ns == 0 || n++ != 0)
                                continue;
                        status->error = EIO;
                        (void) snprintf(status->hint, sizeof(status->hint),
                                "register 0x%x of cpu%u cannot be read and is tried again every 30 s",
                                (unsigned) c->r.reg,
                                (unsigned) entity_cpu_id(m, field_spec(c->r.field)->scope, e));
                }
        }
}

static void report(const MsrSource *s, const Machine *m, SourceStatus *status) {
        set_state(s, m, status);
        if (s->sweep.denied != 0)
                source_status_set_error(status, s->sweep.denied, MSR_PATH);
        else if (s->sweep.has_failed)
                report_failing(&s->sweep, m, status);
}

static int msr_read(Source *source, SourceTurn *turn, SourceStatus *status) {
        MsrSource *s = (MsrSource *) source;

        if (s->sweep.set.n_columns == 0)
                return 0;
        msr_sweep_run(&s->sweep, turn);
        msr_columns_publish(&s->sweep, turn, source->index);
        report(s, turn->machine, status);
        return 0;
}

const SourceOps source_ops_msr = {
        .name = "msr",
        .passive = false,
        .probe = msr_source_probe,
        .adopt = msr_adopt,
        .open = msr_open,
        .read = msr_read,
        .close = msr_close,
};
