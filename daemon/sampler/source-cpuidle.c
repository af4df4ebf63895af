/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpuidle's own counters: what the kernel asked for. Nothing here touches another CPU.
 *
 * The kernel updates usage, time, above and below together, on the CPU itself, when it leaves idle. So `usage` is read
 * every time and the others only where it moved; `above` cannot move in the first state nor `below` in the deepest.
 * `rejected` moves without usage, but hardly ever (on x86 never): it and `disable`, whose change begins a new machine,
 * are read in turns, one CPU in 64 a tick.
 *
 * A CPU that sleeps through an interval shows no movement, and the whole sleep at once when it wakes. Its times carry
 * the reason `asleep` meanwhile and its clock (idle_ns) stands still with them, so that the next reading covers the
 * whole sleep by its own length.
 */

#include <errno.h>
#include <string.h>
#include <time.h>

#include "cstated/timespan.h"

#include "sampler/cpuidle-discover.h"
#include "sampler/source-cpuidle.h"
#include "sampler/source.h"

#define IN_TURNS 64

static const FieldId slot_fields[] = {
        [CPUIDLE_USAGE] = FIELD_IDLE_USAGE,
        [CPUIDLE_TIME] = FIELD_IDLE_TIME,
        [CPUIDLE_ABOVE] = FIELD_IDLE_ABOVE,
        [CPUIDLE_BELOW] = FIELD_IDLE_BELOW,
        [CPUIDLE_REJECTED] = FIELD_IDLE_REJECTED,
};

typedef struct CpuidleCpu {
        uint64_t span_ns; /* monotonic time of the reading that times belong to */
        bool valid;       /* slots hold a complete reading */
        int error;        /* errno of the last failure */
} CpuidleCpu;

typedef struct CpuidleSource {
        Source base;
        Sysfs *sysfs; /* borrowed */
        uint32_t n_cpus, n_states; /* n_states: of the longest list */
        uint64_t n_turns;
        bool has[CPUIDLE_REJECTED + 1]; /* the kernel has such files */
        uint32_t offsets[CPUIDLE_REJECTED + 1][IDLE_STATES_MAX]; /* in a tick, UINT32_MAX: no such column */
        uint32_t offset_ns;
        CpuidleBudget budget;
        CpuidleCpu *cpus;
        CpuidleSlot *slots; /* [cpu][state] */
} CpuidleSource;

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

/* The set of a CPU: one known already, else discovered and added. UINT16_MAX: the CPU has none. */
static int set_assign(Sysfs *sysfs, Machine *m, MachineCpu *cpu, uint32_t *n_differing) {
        IdleSet set = {}, *grown;

        if (cpuidle_sysfs_set(sysfs, cpu->id, &set) < 0)
                return 0;
        for (uint32_t i = 0; i < m->n_idle_sets; i++)
                if (memcmp(&m->idle_sets[i], &set, sizeof(set)) == 0) {
                        cpu->idle_set = (uint16_t) i;
                        return 0;
                }
        if (m->n_idle_sets == UINT16_MAX || cpuidle_discover_set(sysfs, cpu->id, &set, n_differing) < 0)
                return 0;
        grown = realloc(m->idle_sets, (m->n_idle_sets + 1) * sizeof(*grown));
        if (!grown)
                return -ENOMEM;
        m->idle_sets = grown;
        m->idle_sets[m->n_idle_sets] = set;
        cpu->idle_set = (uint16_t) m->n_idle_sets++;
        return 0;
}

static int sets_discover(Sysfs *sysfs, Machine *m, SourceStatus *status) {
        uint32_t n_differing = 0, n_states = 0;
        CpuidleNames names;
        int r;

        cpuidle_discover_names(sysfs, &names, &n_differing);
        memcpy(m->idle_driver, names.driver, sizeof(m->idle_driver));
        memcpy(m->idle_governor, names.governor, sizeof(m->idle_governor));
        for (uint32_t i = 0; i < m->n_cpus; i++) {
                r = set_assign(sysfs, m, &m->cpus[i], &n_differing);
                if (r < 0)
                        return r;
        }
        for (uint32_t i = 0; i < m->n_idle_sets; i++)
                n_states = MAX(n_states, m->idle_sets[i].n_states);
        if (n_differing > 0)
                (void) snprintf(status->detail, sizeof(status->detail), "%s, %u states, %u answers differ from sysfs",
                        cpuidle_discover_method(sysfs), n_states, n_differing);
        else
                (void) snprintf(status->detail, sizeof(status->detail), "%s, %u states", cpuidle_discover_method(sysfs),
                        n_states);
        return (int) n_states;
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
                                s->has[f] = sysfs_exists(s->sysfs, "sys/devices/system/cpu/cpu%u/cpuidle/state0/%s",
                                        m->cpus[i].id, names[f]);
                        return;
                }
}

static int cpuidle_probe(Sysfs *sysfs, Machine *m, uint8_t index, Source **ret, SourceStatus *status) {
        CpuidleSource *s;
        int n_states;

        n_states = sets_discover(sysfs, m, status);
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
        s->cpus = calloc(s->n_cpus, sizeof(*s->cpus));
        s->slots = malloc((size_t) s->n_cpus * s->n_states * sizeof(*s->slots));
        if (!s->cpus || !s->slots) {
                free(TAKE_PTR(s->slots));
                (void) cpuidle_close(&s->base);
                return -ENOMEM;
        }
        for (size_t i = 0; i < (size_t) s->n_cpus * s->n_states; i++)
                cpuidle_slot_init(&s->slots[i]);
        cpuidle_budget_init(&s->budget);
        files_look(s, m);
        columns_add(s, m, status);
        *ret = &s->base;
        return 0;
}

static unsigned n_states_of(const Machine *m, uint32_t cpu) {
        uint16_t set = m->cpus[cpu].idle_set;

        return set == UINT16_MAX ? 0 : m->idle_sets[set].n_states;
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
        for (unsigned f = 0; f <= CPUIDLE_REJECTED; f++)
                for (unsigned k = 0; k < IDLE_STATES_MAX; k++)
                        s->offsets[f][k] = s->has[f] ? offset_of(m, slot_fields[f], (uint8_t) k) : UINT32_MAX;
        for (uint32_t i = 0; i < s->n_cpus; i++)
                for (unsigned k = 0; k < n_states_of(m, i) && s->budget.n_kept < s->budget.max; k++)
                        (void) cpuidle_slot_read(slot_of(s, i, k), &s->budget, s->sysfs, m->cpus[i].id, k, CPUIDLE_USAGE,
                                true, &unused);
        return 0;
}

static uint64_t monotonic_ns(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * NSEC_PER_SEC + (uint64_t) t.tv_nsec;
}

/* time, above and below of a state that was used; the first reading keeps no descriptor, most states are never used. */
static int state_read(CpuidleSource *s, const Machine *m, uint32_t cpu, unsigned state) {
        CpuidleSlot *slot = slot_of(s, cpu, state);
        bool valid = s->cpus[cpu].valid;
        int r = 0;

        for (unsigned f = CPUIDLE_TIME; f < CPUIDLE_N_KEPT && r == 0; f++) {
                if (!s->has[f])
                        continue;
                if (valid && ((f == CPUIDLE_ABOVE && state == 0) || (f == CPUIDLE_BELOW && state + 1 == n_states_of(m, cpu))))
                        continue;
                r = cpuidle_slot_read(slot, &s->budget, s->sysfs, m->cpus[cpu].id, state, (CpuidleFile) f, valid,
                        &slot->values[f]);
        }
        return r;
}

/* How often states were left since the last reading (1 for a first one, UINT32_MAX for anything odd). -errno. */
static int cpu_read(CpuidleSource *s, const Machine *m, uint32_t cpu, uint32_t *ret_exits) {
        uint64_t exits = 0;

        for (unsigned k = 0; k < n_states_of(m, cpu); k++) {
                CpuidleSlot *slot = slot_of(s, cpu, k);
                uint64_t usage;
                int r;

                r = cpuidle_slot_read(slot, &s->budget, s->sysfs, m->cpus[cpu].id, k, CPUIDLE_USAGE, true, &usage);
                if (r < 0)
                        return r;
                if (s->cpus[cpu].valid && usage == slot->values[CPUIDLE_USAGE])
                        continue;
                r = state_read(s, m, cpu, k);
                if (r < 0)
                        return r;
                exits += s->cpus[cpu].valid ? MIN(usage - slot->values[CPUIDLE_USAGE], (uint64_t) UINT32_MAX) : 1;
                slot->values[CPUIDLE_USAGE] = usage;
        }
        *ret_exits = (uint32_t) MIN(exits, (uint64_t) UINT32_MAX);
        return 0;
}

/* 1 where a state was switched on or off: that is a new machine. */
static int cpu_read_seldom(CpuidleSource *s, const Machine *m, uint32_t cpu) {
        int changed = 0;

        for (unsigned k = 0; k < n_states_of(m, cpu); k++) {
                CpuidleSlot *slot = slot_of(s, cpu, k);
                uint64_t disable;

                if (s->has[CPUIDLE_REJECTED])
                        (void) cpuidle_slot_read(slot, &s->budget, s->sysfs, m->cpus[cpu].id, k, CPUIDLE_REJECTED, false,
                                &slot->rejected);
                if (cpuidle_slot_read(slot, &s->budget, s->sysfs, m->cpus[cpu].id, k, CPUIDLE_DISABLE, false, &disable) == 0 &&
                        (disable != 0) != m->idle_sets[m->cpus[cpu].idle_set].states[k].disabled)
                        changed = 1;
        }
        return changed;
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

        value_store(turn->tick, s->offset_ns, cpu, s->cpus[cpu].span_ns, reason_time);
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
        uint32_t exits;
        int r, changed = 0;

        if (turn->machine->cpus[cpu].idle_set == UINT16_MAX) {
                cpu_store(s, turn, cpu, REASON_NOT_APPLICABLE, REASON_NOT_APPLICABLE);
                return 0;
        }
        if (!c->valid || (s->n_turns + cpu) % IN_TURNS == 0)
                changed = cpu_read_seldom(s, turn->machine, cpu);
        r = cpu_read(s, turn->machine, cpu, &exits);
        if (r < 0) {
                c->valid = false;
                c->error = -r;
                if (source_reason(-r) != REASON_OFFLINE)
                        source_status_set_error(status, r, "cpuidle");
                cpu_store(s, turn, cpu, source_reason(-r), source_reason(-r));
                return changed;
        }
        if (c->valid)
                a->evidence |= ACTIVITY_USAGE_KNOWN | (exits > a->asked ? ACTIVITY_USAGE : 0);
        if (c->valid && exits == 0 && !(a->evidence & (ACTIVITY_IRQ | ACTIVITY_BUSY))) {
                cpu_store(s, turn, cpu, REASON_NONE, REASON_ASLEEP);
                return changed;
        }
        c->span_ns = monotonic_ns();
        c->valid = true;
        c->error = 0;
        cpu_store(s, turn, cpu, REASON_NONE, REASON_NONE);
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
        if (n_failed == 0) {
                status->state = SOURCE_OK;
                status->error = 0;
                status->hint[0] = 0;
        }
        s->n_turns++;
        return changed;
}

const SourceOps source_ops_cpuidle = {
        .name = "cpuidle",
        .passive = true,
        .probe = cpuidle_probe,
        .open = cpuidle_open,
        .read = cpuidle_read,
        .close = cpuidle_close,
};
