/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The machine and its sources, read anew where something changed. The sources are probed in their order,
 * each adding its columns; then the layout is finished and they are opened against it. What they know of
 * CPUs that were not touched is handed on. Only what really differs from the machine before (compared as the
 * JSON that would travel) begins a new generation.
 */

#include <errno.h>
#include <string.h>

#include "cstated/num.h"

#include "sampler/sampler-private.h"

static bool is_disabled(const Sampler *s, size_t i) {
        return s->config.disabled_sources >> i & 1;
}

/* Its counters read by the CPUs themselves where that can be had, else as it reads them. */
static int source_probe_new(Sampler *s, size_t i, Machine *m, Source **ret, SourceStatus *status) {
        const SourceStatus clean = *status;

        if (s->local && source_table[i]->probe_local) {
                int r = source_table[i]->probe_local(s->sysfs, m, (uint8_t) i, s->local, ret, status);

                if (r < 0 || *ret)
                        return r;
                *status = clean;
        }
        return source_table[i]->probe(s->sysfs, m, (uint8_t) i, ret, status);
}

/* Probes one source against m; *ret stays NULL where it gives nothing. An instance that is there is probed
 * again. */
static int source_probe(Sampler *s, size_t i, Machine *m, Source **ret, SourceStatus *status) {
        int r;

        *status = (SourceStatus){ .state = SOURCE_OK };
        (void) snprintf(status->name, sizeof(status->name), "%s", source_table[i]->name);
        if (is_disabled(s, i)) {
                status->state = SOURCE_DISABLED;
                (void) snprintf(status->hint, sizeof(status->hint), "switched off by Sources=");
                return 0;
        }
        r = *ret ? source_table[i]->reprobe(*ret, m, status) :
                   source_probe_new(s, i, m, ret, status);
        if (r < 0)
                return r;
        if (!*ret && status->state == SOURCE_OK)
                status->state = SOURCE_ABSENT;
        if (!*ret)
                status->n_counters = 0;
        return 0;
}

void sampler_sources_close(Sampler *s) {
        for (size_t i = 0; i < source_table_n; i++) {
                if (s->sources[i])
                        s->sources[i] = source_table[i]->close(s->sources[i]);
                if (s->retired[i])
                        s->retired[i] = source_table[i]->close(s->retired[i]);
        }
}

/* Before a new machine: some instances live on, some hand over to their successors, the others end. */
static void sources_retire(Sampler *s) {
        for (size_t i = 0; i < source_table_n; i++) {
                if (!s->sources[i] || source_table[i]->reprobe)
                        continue;
                if (source_table[i]->adopt)
                        s->retired[i] = TAKE_PTR(s->sources[i]);
                else
                        s->sources[i] = source_table[i]->close(s->sources[i]);
        }
}

/* All values of a source's columns are null for one reason. */
static void columns_void(const Machine *m, Tick *t, size_t source, Reason reason) {
        for (size_t i = 0; i < m->layout.n_columns; i++) {
                const LayoutColumn *c = &m->layout.columns[i];

                if (c->source == source)
                        memset(t->reasons + c->offset, (int) reason,
                                m->layout.n_entities[field_spec(c->field)->scope]);
        }
}

static int sources_open(Sampler *s, Machine *m, Tick *t) {
        for (size_t i = 0; i < source_table_n; i++) {
                int r;

                if (s->retired[i]) {
                        if (s->sources[i])
                                source_table[i]->adopt(s->sources[i], m, s->retired[i], s->machine);
                        s->retired[i] = source_table[i]->close(s->retired[i]);
                }
                if (!s->sources[i])
                        continue;
                r = source_table[i]->open(s->sources[i], m);
                if (r == -ENOMEM)
                        return r;
                if (r < 0) {
                        source_status_set_error(&s->status.sources[i], r, source_table[i]->name);
                        columns_void(m, t, i, source_reason(-r));
                        s->sources[i] = source_table[i]->close(s->sources[i]);
                }
        }
        return 0;
}

static bool wants_local(const Sampler *s) {
        return !s->config.wake_policy_set || s->config.wake_policy == WAKE_LOCAL;
}

/* Columns of a new machine, from whatever the sources can give now. */
static int sources_probe(Sampler *s, Machine *m) {
        sources_retire(s);
        s->local = NULL;
        s->local_why = "idletrace, which makes CPUs read their counters, is not there";
        s->status.n_sources = (uint32_t) source_table_n;
        for (size_t i = 0; i < source_table_n; i++) {
                int r = source_probe(s, i, m, &s->sources[i], &s->status.sources[i]);

                if (r < 0)
                        return r;
                if (s->sources[i] && s->status.sources[i].n_counters == 0) /* it lived on for nothing */
                        s->sources[i] = source_table[i]->close(s->sources[i]);
                if (s->sources[i] && source_table[i]->local && wants_local(s))
                        s->local = source_table[i]->local(s->sources[i], &s->local_why);
        }
        layout_finish(&m->layout);
        return 0;
}

/* Why no source has its counters read locally. */
static const char *local_hint(const Sampler *s) {
        if (!s->local)
                return s->local_why;
        for (size_t i = 0; i < source_table_n; i++)
                if (source_table[i]->probe_local && !s->sources[i] &&
                        (s->machine->hypervisor || s->status.sources[i].state != SOURCE_ABSENT))
                        return s->status.sources[i].hint;
        return "this kernel's PMUs have neither msr/mperf nor residencies of cores";
}

void sampler_policy_choose(Sampler *s) {
        bool is_local = false;

        for (size_t i = 0; i < source_table_n; i++)
                is_local |= s->sources[i] && s->sources[i]->is_local;
        s->wake_policy = is_local ? WAKE_LOCAL : wants_local(s) ? WAKE_LAZY : s->config.wake_policy;
        (void) snprintf(s->status.wake_policy, sizeof(s->status.wake_policy), "%s", wake_policy_name(s->wake_policy));
        s->status.wake_policy_hint[0] = 0;
        if (wants_local(s) && !is_local)
                (void) snprintf(s->status.wake_policy_hint, sizeof(s->status.wake_policy_hint),
                        "local cannot be had: %s", local_hint(s));
}

static bool same_machine(const Machine *a, const Machine *b) {
        _cleanup_free_ char *x = machine_to_json(a), *y = machine_to_json(b);

        return x && y && strcmp(x, y) == 0;
}

/* Ids of a that are no CPU of b, as a list; NULL where there is none. */
static char *cpus_missing(const Machine *a, const Machine *b, int64_t *ret_only) {
        _cleanup_free_ uint32_t *ids = calloc(a->n_cpus, sizeof(*ids));
        size_t n = 0;

        for (uint32_t i = 0; ids && i < a->n_cpus; i++)
                if (machine_cpu_index(b, a->cpus[i].id) == UINT32_MAX)
                        ids[n++] = a->cpus[i].id;
        *ret_only = n == 1 ? (int64_t) ids[0] : -1;
        return n > 0 ? num_format_cpulist(ids, n) : NULL;
}

static void events_of_change(Sampler *s, const Machine *old, const Machine *new) {
        _cleanup_free_ char *gone = NULL, *come = NULL;
        int64_t gone_cpu, come_cpu;

        gone = cpus_missing(old, new, &gone_cpu);
        come = cpus_missing(new, old, &come_cpu);
        if (gone)
                sampler_event_add(s, "hotplug", gone_cpu, "offline: %.140s", gone);
        if (come)
                sampler_event_add(s, "hotplug", come_cpu, "online: %.140s", come);
        if (strcmp(old->idle_driver, new->idle_driver) != 0)
                sampler_event_add(s, "source", -1, "idle driver: %s -> %s",
                        old->idle_driver[0] ? old->idle_driver : "none",
                        new->idle_driver[0] ? new->idle_driver : "none");
}

/* How often a CPU was asked in the turn before holds beyond the change. */
static void activity_adopt(CpuActivity *activity, const Machine *m, const Sampler *s) {
        for (uint32_t i = 0; s->machine && i < m->n_cpus; i++) {
                uint32_t old = machine_cpu_index(s->machine, m->cpus[i].id);

                if (old != UINT32_MAX)
                        activity[i].asking = s->activity[old].asking;
        }
}

int sampler_machine_rebuild(Sampler *s) {
        _cleanup_(machine_freep) Machine *m = NULL;
        _cleanup_(tick_freep) Tick *t = NULL;
        _cleanup_free_ CpuActivity *activity = NULL;
        int r;

        r = topology_read(s->sysfs, s->machine, &m);
        if (r < 0)
                return r;
        r = sources_probe(s, m);
        if (r < 0)
                return r;
        t = tick_new(m->layout.n_values);
        activity = calloc(m->n_cpus, sizeof(*activity));
        if (!t || !activity)
                return -ENOMEM;
        memset(t->reasons, REASON_ABSENT, t->n_values);
        r = sources_open(s, m, t);
        if (r < 0)
                return r;
        activity_adopt(activity, m, s);
        m->generation = s->machine ? s->machine->generation : 1;
        r = !s->machine || !same_machine(s->machine, m);
        if (r > 0 && s->machine) {
                m->generation++;
                events_of_change(s, s->machine, m);
        }
        (void) machine_free(s->machine);
        (void) tick_free(s->tick);
        free(s->activity);
        s->machine = TAKE_PTR(m);
        s->tick = TAKE_PTR(t);
        s->activity = TAKE_PTR(activity);
        s->reprobe = false;
        sampler_policy_choose(s);
        return r;
}

/* Only the columns of sources before i, which are what it finds when the machine is read anew. */
static void layout_keep_before(Layout *l, size_t i) {
        size_t n = 0;

        for (size_t k = 0; k < l->n_columns; k++)
                if (l->columns[k].source < i)
                        l->columns[n++] = l->columns[k];
        l->n_columns = n;
}

bool sampler_source_would_work(Sampler *s, size_t i) {
        _cleanup_(machine_freep) Machine *scratch = NULL;
        SourceStatus status;
        Source *source = NULL;
        bool works;

        if (s->sources[i] || is_disabled(s, i))
                return false;
        scratch = machine_copy(s->machine);
        if (!scratch)
                return false;
        layout_keep_before(&scratch->layout, i);
        if (source_probe(s, i, scratch, &source, &status) < 0)
                return false;
        works = source != NULL && status.state == SOURCE_OK && status.n_counters > 0;
        if (source)
                (void) source_table[i]->close(source);
        if (!works && status.state != s->status.sources[i].state)
                s->status.sources[i] = status; /* the same nothing for another reason */
        return works;
}
