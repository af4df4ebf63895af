/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpuidle's own counters: what the kernel asked for. Nothing here touches another CPU.
 *
 * The kernel updates usage, time, above and below together, on the CPU itself, when it leaves idle. So
 * `usage` is read every time and the others only where it moved; `above` cannot move in the first state nor
 * `below` in the deepest. `rejected` moves without usage, but hardly ever (on x86 never): it and `disable`,
 * whose change begins a new machine, are read in turns, one CPU in 64 a tick; so are above and below, one
 * CPU in 8, where descriptors run short.
 *
 * A CPU that sleeps through an interval shows no movement, and the whole sleep at once when it wakes. Its
 * times carry the reason `asleep` meanwhile and its clock (idle_ns) stands still with them, so that the next
 * reading covers the whole sleep by its own length. The clock also stands before a sleep that is in progress
 * at a reading (cpuidle-lag.h).
 */

#include <errno.h>
#include <string.h>
#include <time.h>

#include "cstated/timespan.h"

#include "sampler/cpuidle-discover.h"
#include "sampler/cpuidle-lag.h"
#include "sampler/source-cpuidle.h"
#include "sampler/source.h"

#define IN_TURNS 64
#define LOOK_AGAIN 4     /* turns in which a CPU without idle states is looked at each time */
#define EXTRA_IN_TURNS 8 /* above and below, where descriptors run short */

static const FieldId slot_fields[] = {
        [CPUIDLE_USAGE] = FIELD_IDLE_USAGE,
        [CPUIDLE_TIME] = FIELD_IDLE_TIME,
        [CPUIDLE_ABOVE] = FIELD_IDLE_ABOVE,
        [CPUIDLE_BELOW] = FIELD_IDLE_BELOW,
        [CPUIDLE_REJECTED] = FIELD_IDLE_REJECTED,
};

typedef struct CpuidleCpu {
        CpuidleLag lag;
        bool valid;       /* slots hold a complete reading */
        int error;        /* errno of the last failure */
} CpuidleCpu;

typedef struct CpuidleSource {
        Source base;
        Sysfs *sysfs; /* borrowed */
        uint32_t n_cpus, n_states; /* n_states: of the longest list */
        uint64_t n_turns, n_new_turns; /* of all instances, of this one */
        bool has[CPUIDLE_REJECTED + 1]; /* the kernel has such files */
        bool full; /* no room for another list: a machine read anew would be the same, so nothing asks for it */
        uint32_t offsets[CPUIDLE_REJECTED + 1][IDLE_STATES_MAX]; /* in a tick, UINT32_MAX: no such column */
        uint32_t offset_ns, offset_stat_idle;
        uint64_t jiffy_ns;
        CpuidleBudget budget;
        CpuidleCpu *cpus;
        CpuidleSlot *slots; /* [cpu][state] */
} CpuidleSource;

static unsigned n_states_of(const Machine *m, uint32_t cpu) {
        uint16_t set = m->cpus[cpu].idle_set;

        return set == UINT16_MAX ? 0 : m->idle_sets[set].n_states;
}

static CpuidleSlot *slot_of(CpuidleSource *s, uint32_t cpu, unsigned state) {
        return &s->slots[(size_t) cpu * s->n_states + state];
}

static Source *cpuidle_close(Source *source) {
        CpuidleSource *s = (CpuidleSource *) source;

        if (s) {
                for (size_t i = 0; s->slots && i < (size_t) s->n_cpus * s->n_states; i++)
                        cpuidle_slot_deinit(&s->slots[i], &s->budget);
                free(s->slots);
                free(s->cpus);
                free(s);
        }
        return NULL;
}

static void column_add(Machine *m, FieldId field, unsigned state, uint8_t index, SourceStatus *status) {
        LayoutColumn *c = layout_add(&m->layout, field, (uint8_t) state);

        if (!c)
                return;
        c->source = index;
        status->n_counters++;
}

static void columns_add(CpuidleSource *s, Machine *m, SourceStatus *status) {
        column_add(m, FIELD_IDLE_NS, 0, s->base.index, status);
        for (unsigned k = 0; k < s->n_states; k++)
                for (unsigned f = 0; f <= CPUIDLE_REJECTED; f++)
                        if (s->has[f])
                                column_add(m, slot_fields[f], k, s->base.index, status);
}

/* Old kernels lack above and below (before 5.1) and rejected (before 5.10). */
static void files_look(CpuidleSource *s, const Machine *m) {
        static const char *const names[] = { "usage", "time", "above", "below", "rejected" };

        for (uint32_t i = 0; i < m->n_cpus; i++)
                if (m->cpus[i].idle_set != UINT16_MAX) {
                        for (unsigned f = 0; f <= CPUIDLE_REJECTED; f++)
                                s->has[f] = sysfs_exists(s->sysfs,
                                        "sys/devices/system/cpu/cpu%u/cpuidle/state0/%s", m->cpus[i].id,
                                        names[f]);
                        return;
                }
}

static int cpuidle_probe(Sysfs *sysfs, Machine *m, uint8_t index, Source **ret, SourceStatus *status) {
        CpuidleSource *s;
        int n_states;

        n_states = cpuidle_sets_discover(sysfs, m, status);
        if (n_states < 0)
                return n_states;
        if (n_states == 0) {
                source_status_set_error(status, ENOENT, "cpuidle");
                status->detail[0] = 0;
                return 0;
        }
        s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        s->base = (Source){ .ops = &source_ops_cpuidle, .index = index };
        s->sysfs = sysfs;
        s->n_cpus = m->n_cpus;
        s->n_states = (uint32_t) n_states;
        s->full = m->n_idle_sets == MACHINE_IDLE_SETS_MAX;
        s->cpus = calloc(s->n_cpus, sizeof(*s->cpus));
        s->slots = malloc((size_t) s->n_cpus * s->n_states * sizeof(*s->slots));
        if (!s->cpus || !s->slots) {
                free(TAKE_PTR(s->slots));
                (void) cpuidle_close(&s->base);
                return -ENOMEM;
        }
        for (size_t i = 0; i < (size_t) s->n_cpus * s->n_states; i++)
                cpuidle_slot_init(&s->slots[i]);
        cpuidle_budget_init(&s->budget, (size_t) s->n_cpus * s->n_states);
        files_look(s, m);
        columns_add(s, m, status);
        *ret = &s->base;
        return 0;
}

/* CPUs with the same states as before keep their descriptors, values and clocks. */
static void cpuidle_adopt(Source *source, const Machine *m, Source *source_old, const Machine *m_old) {
        CpuidleSource *s = (CpuidleSource *) source, *old = (CpuidleSource *) source_old;

        for (uint32_t i = 0; i < m->n_cpus; i++) {
                uint32_t k = machine_cpu_index(m_old, m->cpus[i].id), n = n_states_of(m, i);

                if (k == UINT32_MAX || n == 0 || n != n_states_of(m_old, k) ||
                        memcmp(&m->idle_sets[m->cpus[i].idle_set],
                                &m_old->idle_sets[m_old->cpus[k].idle_set], sizeof(IdleSet)) != 0)
                        continue;
                s->cpus[i] = old->cpus[k];
                for (unsigned state = 0; state < n; state++)
                        cpuidle_slot_move(
                                slot_of(s, i, state), &s->budget, slot_of(old, k, state), &old->budget);
        }
        s->n_turns = old->n_turns;
}

static uint32_t offset_of(const Machine *m, FieldId field, uint8_t instance) {
        const LayoutColumn *c = layout_find(&m->layout, field, instance);

        return c ? c->offset : UINT32_MAX;
}

/* Descriptors for `usage` come first; what fails here fails again, with a reason, in read. */
static int cpuidle_open(Source *source, const Machine *m) {
        CpuidleSource *s = (CpuidleSource *) source;
        uint64_t unused;

        s->offset_ns = offset_of(m, FIELD_IDLE_NS, 0);
        s->offset_stat_idle = offset_of(m, FIELD_STAT_IDLE, 0);
        s->jiffy_ns = NSEC_PER_SEC / MAX(m->user_hz, 1u);
        for (unsigned f = 0; f <= CPUIDLE_REJECTED; f++)
                for (unsigned k = 0; k < IDLE_STATES_MAX; k++)
                        s->offsets[f][k] =
                                s->has[f] ? offset_of(m, slot_fields[f], (uint8_t) k) : UINT32_MAX;
        for (uint32_t i = 0; i < s->n_cpus; i++)
                for (unsigned k = 0; k < n_states_of(m, i) && s->budget.n_kept < s->budget.max; k++)
                        (void) cpuidle_slot_read(slot_of(s, i, k), &s->budget, s->sysfs, m->cpus[i].id, k,
                                CPUIDLE_USAGE, true, &unused);
        return 0;
}

static uint64_t monotonic_ns(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * NSEC_PER_SEC + (uint64_t) t.tv_nsec;
}

static int file_read(CpuidleSource *s, const Machine *m, uint32_t cpu, unsigned state, CpuidleFile file) {
        CpuidleSlot *slot = slot_of(s, cpu, state);
        bool keep = s->cpus[cpu].valid; /* the first reading keeps none: most states are never used */

        return s->has[file] ? cpuidle_slot_read(slot, &s->budget, s->sysfs, m->cpus[cpu].id, state, file,
                                      keep, &slot->values[file])
                            : 0;
}

/* above and below of a state that was used; where that means opening files, a few CPUs a turn. */
static int extra_read(CpuidleSource *s, const Machine *m, uint32_t cpu, unsigned state) {
        CpuidleSlot *slot = slot_of(s, cpu, state);
        bool valid = s->cpus[cpu].valid;
        int r = 0;

        if (valid && !cpuidle_slot_has_extra(slot, &s->budget) && (s->n_turns + cpu) % EXTRA_IN_TURNS != 0)
                return 0;
        if (!valid || state > 0)
                r = file_read(s, m, cpu, state, CPUIDLE_ABOVE);
        if (r == 0 && (!valid || state + 1 < n_states_of(m, cpu)))
                r = file_read(s, m, cpu, state, CPUIDLE_BELOW);
        slot->is_stale = false;
        return r;
}

/* How often states were left since the last reading (on the first: 1 where ever), or -errno. */
static int cpu_read(CpuidleSource *s, const Machine *m, uint32_t cpu, uint64_t *ret_n_exits) {
        uint64_t n_exits = 0;

        for (unsigned k = 0; k < n_states_of(m, cpu); k++) {
                CpuidleSlot *slot = slot_of(s, cpu, k);
                uint64_t usage;
                int r;

                r = cpuidle_slot_read(
                        slot, &s->budget, s->sysfs, m->cpus[cpu].id, k, CPUIDLE_USAGE, true, &usage);
                if (r < 0)
                        return r;
                if (!s->cpus[cpu].valid || usage != slot->values[CPUIDLE_USAGE]) {
                        slot->is_stale = true;
                        r = file_read(s, m, cpu, k, CPUIDLE_TIME);
                }
                if (r == 0 && slot->is_stale)
                        r = extra_read(s, m, cpu, k);
                if (r < 0)
                        return r;
                n_exits += usage - slot->values[CPUIDLE_USAGE];
                slot->values[CPUIDLE_USAGE] = usage;
        }
        *ret_n_exits = n_exits;
        return 0;
}

/* The clock of the times just read (cpuidle-lag.h); /proc/stat was read in the same turn. */
static void cpu_settle(CpuidleSource *s, const SourceTurn *turn, uint32_t cpu, uint64_t n_exits) {
        CpuidleReading r = {
                .now_ns = monotonic_ns(),
                .n_exits = n_exits,
                .stat_idle_ns = UINT64_MAX,
                .jiffy_ns = s->jiffy_ns,
        };

        for (unsigned k = 0; k < n_states_of(turn->machine, cpu); k++)
                r.time_ns += slot_of(s, cpu, k)->values[CPUIDLE_TIME] * NSEC_PER_USEC;
        if (s->offset_stat_idle != UINT32_MAX &&
                turn->tick->reasons[s->offset_stat_idle + cpu] == REASON_NONE)
                r.stat_idle_ns = turn->tick->values[s->offset_stat_idle + cpu] * s->jiffy_ns;
        (void) cpuidle_lag_settle(&s->cpus[cpu].lag, &r);
}

/* 1 where a state was switched on or off: that is a new machine. */
static int cpu_read_seldom(CpuidleSource *s, const Machine *m, uint32_t cpu) {
        int changed = 0;

        for (unsigned k = 0; k < n_states_of(m, cpu); k++) {
                CpuidleSlot *slot = slot_of(s, cpu, k);
                uint64_t disable;

                if (s->has[CPUIDLE_REJECTED])
                        (void) cpuidle_slot_read(slot, &s->budget, s->sysfs, m->cpus[cpu].id, k,
                                CPUIDLE_REJECTED, false, &slot->rejected);
                if (cpuidle_slot_read(slot, &s->budget, s->sysfs, m->cpus[cpu].id, k, CPUIDLE_DISABLE, false,
                            &disable) == 0 &&
                        !s->full && (disable != 0) != m->idle_sets[m->cpus[cpu].idle_set].states[k].disabled)
                        changed = 1;
        }
        return changed;
}

/* A CPU comes online before its idle states do: 1 where they are there now. */
static int cpu_look_again(CpuidleSource *s, const Machine *m, uint32_t cpu) {
        if (s->full || (s->n_new_turns >= LOOK_AGAIN && (s->n_turns + cpu) % IN_TURNS != 0))
                return 0;
        return sysfs_exists(s->sysfs, "sys/devices/system/cpu/cpu%u/cpuidle/state0/usage", m->cpus[cpu].id);
}

static void value_store(Tick *t, uint32_t offset, uint32_t cpu, uint64_t value, Reason reason) {
        if (offset == UINT32_MAX)
                return;
        t->values[offset + cpu] = value;
        t->reasons[offset + cpu] = (uint8_t) reason;
}

/* Writes what the slots hold; times carry reason_time, all else reason. */
static void cpu_store(CpuidleSource *s, SourceTurn *turn, uint32_t cpu, Reason reason, Reason reason_time) {
        unsigned n_states = n_states_of(turn->machine, cpu);

        value_store(turn->tick, s->offset_ns, cpu, s->cpus[cpu].lag.span_ns, reason_time);
        for (unsigned k = 0; k < s->n_states; k++) {
                const CpuidleSlot *slot = slot_of(s, cpu, k);

                for (unsigned f = 0; f <= CPUIDLE_REJECTED; f++) {
                        Reason r = f == CPUIDLE_TIME ? reason_time : reason;

                        value_store(turn->tick, s->offsets[f][k], cpu,
                                f == CPUIDLE_REJECTED ? slot->rejected : slot->values[f],
                                k < n_states ? r : REASON_NOT_APPLICABLE);
                }
        }
}

static int cpu_turn(CpuidleSource *s, SourceTurn *turn, uint32_t cpu, SourceStatus *status) {
        CpuActivity *a = &turn->activity[cpu];
        CpuidleCpu *c = &s->cpus[cpu];
        uint64_t n_exits = 0;
        int r, changed = 0;

        if (turn->machine->cpus[cpu].idle_set == UINT16_MAX) {
                cpu_store(s, turn, cpu, REASON_NOT_APPLICABLE, REASON_NOT_APPLICABLE);
                return cpu_look_again(s, turn->machine, cpu);
        }
        if (!c->valid || (s->n_turns + cpu) % IN_TURNS == 0)
                changed = cpu_read_seldom(s, turn->machine, cpu);
        r = cpu_read(s, turn->machine, cpu, &n_exits);
        if (r < 0) {
                *c = (CpuidleCpu){ .error = -r };
                if (source_reason(-r) != REASON_OFFLINE)
                        source_status_set_error(status, r, "cpuidle");
                cpu_store(s, turn, cpu, source_reason(-r), source_reason(-r));
                return changed;
        }
        if (c->valid)
                a->evidence |= ACTIVITY_USAGE_KNOWN | (n_exits > a->asked ? ACTIVITY_USAGE : 0);
        if (c->valid && n_exits == 0 && !(a->evidence & (ACTIVITY_IRQ | ACTIVITY_BUSY))) {
                cpuidle_lag_sleep(&c->lag, turn->now_ns);
                cpu_store(s, turn, cpu, REASON_NONE, REASON_ASLEEP);
                return changed;
        }
        cpu_settle(s, turn, cpu, n_exits);
        c->valid = true;
        c->error = 0;
        cpu_store(s, turn, cpu, REASON_NONE, c->lag.is_restarted ? REASON_RESET : REASON_NONE);
        return changed;
}

static int cpuidle_read(Source *source, SourceTurn *turn, SourceStatus *status) {
        CpuidleSource *s = (CpuidleSource *) source;
        uint32_t n_failed = 0;
        int changed = 0;

        for (uint32_t i = 0; i < s->n_cpus; i++) {
                if (cpu_turn(s, turn, i, status) > 0)
                        changed = 1;
                n_failed += s->cpus[i].error != 0;
        }
        if (n_failed == 0)
                source_status_set_ok(status);
        s->n_turns++;
        s->n_new_turns++;
        return changed;
}

const SourceOps source_ops_cpuidle = {
        .name = "cpuidle",
        .passive = true,
        .probe = cpuidle_probe,
        .adopt = cpuidle_adopt,
        .open = cpuidle_open,
        .read = cpuidle_read,
        .close = cpuidle_close,
};
