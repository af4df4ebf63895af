/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * idletrace: idle entries, residency and causes of wakeups from idle.bpf.c (idle-trace.h), per requested state. The BPF
 * object outlives a new machine generation (hotplug), so that the counters of untouched CPUs go on.
 *
 * A machine without cpuidle still goes idle, by HLT; such a machine gets a list of two states here (POLL and IDLE, the
 * numbers the kernel's default idle reports), and breaks are `not-applicable` there: only MWAIT can break. Where BPF is
 * denied or absent, such a machine's entries are counted by perf (idle-perf.h).
 */

#include <errno.h>
#include <string.h>

#include "sampler/idle-activity.h"
#include "sampler/idle-perf.h"
#include "sampler/idle-sleeps.h"
#include "sampler/idle-trace.h"
#include "sampler/source.h"

typedef struct IdletraceSource {
        Source source;
        IdleTrace *trace;
        IdlePerf *perf; /* in its place, where BPF cannot be had */
        Sysfs *sysfs;
        int error; /* why BPF cannot be had */
        bool recording;
        IdleTotals *before; /* by CPU of the machine */
        IdleSleeps sleeps;
        LocalReads local;
} IdletraceSource;

static int local_set(void *userdata, uint32_t cpu_id, unsigned column, int fd) {
        return idle_trace_local_event(userdata, cpu_id, column, fd);
}

static void local_want(void *userdata, uint32_t cpu_id, const LocalWant *want) {
        idle_trace_local_want(userdata, cpu_id, want);
}

static void local_due(void *userdata) {
        idle_trace_local_due(userdata);
}

static bool local_read(void *userdata, uint32_t cpu_id, LocalReading *ret) {
        const struct idle_local_slot *slot = idle_trace_local_slot(userdata, cpu_id);

        return slot && idle_local_read(slot, ret);
}

static const LocalReads *idletrace_local(Source *source, const char **why) {
        IdletraceSource *s = (IdletraceSource *) source;

        if (!s->trace || idle_trace_local_error(s->trace) < 0) {
                *why = s->trace ? "this kernel's tracing programs may not read perf events" : "BPF cannot be had";
                return NULL;
        }
        s->local = (LocalReads){ s->trace, local_set, local_want, local_due, local_read };
        return &s->local;
}

static const FieldId idletrace_fields[] = {
        FIELD_TRACE_ENTRIES,
        FIELD_TRACE_NS,
        FIELD_WAKE_INTERRUPT,
        FIELD_WAKE_STORE,
        FIELD_WAKE_BREAK,
        FIELD_WAKE_IMMEDIATE,
};

static Source *idletrace_close(Source *source) {
        IdletraceSource *s = (IdletraceSource *) source;

        if (!s)
                return NULL;
        (void) idle_trace_free(s->trace);
        (void) idle_perf_free(s->perf);
        idle_sleeps_deinit(&s->sleeps);
        free(s->before);
        free(s);
        return NULL;
}

static void add_column(Machine *m, uint8_t index, FieldId field, uint8_t instance, SourceStatus *status) {
        LayoutColumn *c = layout_add(&m->layout, field, instance);

        if (!c)
                return;
        c->source = index;
        status->n_counters++;
}

static int add_columns(Machine *m, uint8_t index, SourceStatus *status) {
        uint32_t n_states = 0;
        int r;

        r = idle_default_states(m);
        if (r < 0)
                return r;
        for (uint32_t i = 0; i < m->n_idle_sets; i++)
                n_states = MAX(n_states, m->idle_sets[i].n_states);
        status->n_counters = 0;
        for (uint32_t state = 0; state < MIN(n_states, (uint32_t) IDLE_STATES_MAX); state++)
                for (size_t f = 0; f < ARRAY_SIZE(idletrace_fields); f++)
                        add_column(m, index, idletrace_fields[f], (uint8_t) state, status);
        for (uint8_t bucket = 0; bucket < SLEEP_BUCKETS; bucket++)
                add_column(m, index, FIELD_SLEEP_HIST, bucket, status);
        add_column(m, index, FIELD_SLEEP_NS, 0, status);
        return 0;
}

/* Highest possible CPU id + 1. */
static uint32_t possible_cpus(Sysfs *sysfs, const Machine *m) {
        _cleanup_free_ uint32_t *ids = NULL;
        size_t n = 0;

        if (sysfs_read_cpulist(sysfs, &ids, &n, "sys/devices/system/cpu/possible") >= 0 && n > 0)
                return ids[n - 1] + 1;
        return m->n_cpus > 0 ? m->cpus[m->n_cpus - 1].id + 1 : 1;
}

static void explain(SourceStatus *status, Sysfs *sysfs, int error) {
        bool has_btf = sysfs_exists(sysfs, "sys/kernel/btf/vmlinux");

        status->error = -error;
        if (error == -EPERM || error == -EACCES) {
                status->state = SOURCE_DENIED;
                (void) snprintf(status->hint, sizeof(status->hint),
                        "BPF: needs CAP_BPF and CAP_PERFMON, which containers and kernel lockdown take away; "
                        "until then breaks are bounded from cpuidle and interrupts");
        } else if (!has_btf || error == -ENOENT || error == -ENOSYS || error == -ESRCH) {
                status->state = SOURCE_ABSENT;
                (void) snprintf(status->hint, sizeof(status->hint), "%s",
                        has_btf ? "this kernel has no power:cpu_idle tracepoint or no BPF" :
                                  "this kernel tells nothing of its types (CONFIG_DEBUG_INFO_BTF); "
                                  "breaks are bounded from cpuidle and interrupts instead");
        } else {
                status->state = SOURCE_ERROR;
                (void) snprintf(
                        status->hint, sizeof(status->hint), "loading BPF programs: %s", strerror(-error));
        }
}

static int idletrace_probe(Sysfs *sysfs, Machine *m, uint8_t index, Source **ret, SourceStatus *status) {
        IdletraceSource *s;
        int r;

        s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        s->source = (Source){ .ops = &source_ops_idletrace, .index = index };
        s->sysfs = sysfs;
        r = idle_sleeps_init(&s->sleeps, possible_cpus(sysfs, m));
        if (r == 0)
                r = idle_trace_new(s->sleeps.n_cpus, false, &s->trace);
        if (r < 0 && r != -ENOMEM) {
                s->error = r;
                explain(status, sysfs, r);
                r = idle_perf_new(sysfs, m, index, status, &s->perf);
                if (r == 0 && s->perf) {
                        *ret = &s->source;
                        return 0;
                }
                (void) idletrace_close(&s->source);
                return r;
        }
        if (r < 0) {
                (void) idletrace_close(&s->source);
                return r;
        }
        (void) snprintf(status->detail, sizeof(status->detail), "%s", idle_trace_attached(s->trace));
        r = add_columns(m, index, status);
        if (r < 0) {
                (void) idletrace_close(&s->source);
                return r;
        }
        *ret = &s->source;
        return 0;
}

/* The machine is read anew, the programs go on. */
static int idletrace_reprobe(Source *source, Machine *m, SourceStatus *status) {
        IdletraceSource *s = (IdletraceSource *) source;

        if (s->perf) {
                explain(status, s->sysfs, s->error);
                return idle_perf_columns(s->perf, m, source->index, status);
        }
        (void) snprintf(status->detail, sizeof(status->detail), "%s", idle_trace_attached(s->trace));
        return add_columns(m, source->index, status);
}

static int idletrace_open(Source *source, const Machine *m) {
        IdletraceSource *s = (IdletraceSource *) source;
        int r;

        if (s->perf)
                return idle_perf_open(s->perf, m);
        r = idle_sleeps_set_machine(&s->sleeps, m);
        if (r < 0)
                return r;
        free(s->before);
        s->before = calloc(m->n_cpus + 1, sizeof(*s->before));
        if (!s->before)
                return -ENOMEM;
        for (uint32_t i = 0; i < m->n_cpus; i++) {
                uint32_t residency_us[IDLE_TRACE_STATES] = {}, mwait_mask = 0;
                const IdleSet *set;

                if (m->cpus[i].idle_set >= m->n_idle_sets)
                        continue;
                set = &m->idle_sets[m->cpus[i].idle_set];
                for (uint32_t k = 0; k < set->n_states; k++) {
                        residency_us[k] = set->states[k].target_residency_us;
                        if (set->states[k].mwait_hint >= 0)
                                mwait_mask |= 1u << k;
                }
                idle_trace_configure(s->trace, m->cpus[i].id, mwait_mask, residency_us);
        }
        if (!s->recording)
                idle_trace_record(s->trace);
        s->recording = true;
        return 0;
}

static void put(SourceTurn *turn, FieldId field, uint8_t instance, uint32_t e, uint64_t value, Reason reason) {
        uint8_t *reasons;
        uint64_t *values = source_values(turn, field, instance, &reasons);

        if (!values)
                return;
        values[e] = value;
        reasons[e] = (uint8_t) reason;
}

static void read_state(SourceTurn *turn, const struct idle_trace_slot *slot, const IdleTraceReading *r,
        uint32_t cpu, uint32_t n_states, uint8_t state) {
        const struct idle_trace_state *st = &slot->states[state];
        Reason seen = state >= n_states ? REASON_ABSENT : r->seen ? REASON_NONE : REASON_FIRST;
        Reason mwait = seen != REASON_NONE ? seen : st->is_mwait ? REASON_NONE : REASON_NOT_APPLICABLE;

        put(turn, FIELD_TRACE_ENTRIES, state, cpu, r->entries[state], seen);
        put(turn, FIELD_TRACE_NS, state, cpu, r->ns[state], seen);
        put(turn, FIELD_WAKE_INTERRUPT, state, cpu, r->interrupt[state], seen);
        put(turn, FIELD_WAKE_STORE, state, cpu, r->store[state], seen);
        put(turn, FIELD_WAKE_BREAK, state, cpu, r->brk[state], mwait);
        put(turn, FIELD_WAKE_IMMEDIATE, state, cpu, r->immediate[state], mwait);
}

static void put_sleeps(const IdletraceSource *s, SourceTurn *turn) {
        for (uint32_t i = 0; i < turn->machine->n_packages; i++) {
                const SleepsOfPackage *p = idle_sleeps_of(&s->sleeps, i);

                for (uint8_t b = 0; b < SLEEP_BUCKETS; b++)
                        put(turn, FIELD_SLEEP_HIST, b, i, p->buckets[b], REASON_NONE);
                put(turn, FIELD_SLEEP_NS, 0, i, p->ns, REASON_NONE);
        }
}

static int idletrace_read(Source *source, SourceTurn *turn, SourceStatus *status) {
        IdletraceSource *s = (IdletraceSource *) source;
        const Machine *m = turn->machine;

        if (s->perf)
                return 0;
        for (uint32_t i = 0; i < m->n_cpus; i++) {
                const struct idle_trace_slot *slot = idle_trace_slot(s->trace, m->cpus[i].id);
                uint32_t n_states = m->cpus[i].idle_set < m->n_idle_sets
                                            ? m->idle_sets[m->cpus[i].idle_set].n_states
                                            : 0;
                IdleTraceReading reading;

                if (!slot)
                        continue;
                idle_trace_read(slot, turn->now_ns, &reading);
                for (uint8_t state = 0; state < IDLE_STATES_MAX; state++)
                        read_state(turn, slot, &reading, i, n_states, state);
                reading.asleep_since = idle_halted_since(machine_idle_set(m, i),
                        __atomic_load_n(&slot->state, __ATOMIC_RELAXED), reading.asleep_since);
                turn->activity[i].evidence |= idle_activity(
                        &s->before[i], &reading, turn->prev_ns, turn->now_ns, turn->activity[i].asked);
                turn->activity[i].asleep_since_ns = reading.asleep_since;
                idle_sleeps_add(&s->sleeps, m, i, slot);
        }
        put_sleeps(s, turn);
        return 0;
}

static void idletrace_read_remote(Source *source, SourceTurn *turn) {
        IdletraceSource *s = (IdletraceSource *) source;

        if (s->perf)
                idle_perf_read(s->perf, turn);
}

const SourceOps source_ops_idletrace = {
        .name = "idletrace",
        .passive = true,
        .probe = idletrace_probe,
        .reprobe = idletrace_reprobe,
        .local = idletrace_local,
        .open = idletrace_open,
        .read = idletrace_read,
        .read_remote = idletrace_read_remote,
        .close = idletrace_close,
};
