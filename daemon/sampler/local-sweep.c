/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A turn takes what CPUs have read themselves since the turn before, asks for the next readings, and then goes through
 * packages, cores and CPUs. For each:
 *
 *   - somebody of it has read it: the newest reading counts, at the time it was taken;
 *   - nobody has, and the CPU its events are on is awake: it has not gone idle in the whole interval, so a remote read
 *     interrupts but wakes nobody. It may go idle just now: then it reads itself, and is left alone;
 *   - it sleeps. Its counters stand as they were read, the clock beside them with them, so nothing is lost and nothing
 *     invented. After WAKE_PLAN_MAX_AGE_NS (spread over time) it is asked all the same, but for a CPU that has done
 *     nothing since it was read;
 *   - its counters have never been read locally: this kernel or PMU does not let us, and the lazy rule holds: it is
 *     asked when a CPU of it has left idle.
 *
 * A reading stands for the time up to its idle entry. What a CPU did after that, in the same interval, is in its next
 * reading; so an interval's figures are those of nearly the same interval, and sums over time are right to the tick.
 *
 * A CPU that sleeps is the exception: MPERF and APERF stand still in a sleep, so its clock may go on to now, by the
 * length of the sleep in progress. If it ran between its reading and that sleep, that piece of time is left out until
 * the next reading brings it together with its MPERF.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#include "cstated/macro.h"
#include "sampler/local-sweep.h"
#include "sampler/msr-turn.h"

#define NONE      UINT32_MAX
#define NS_PER_S  1000000000ull
#define SPREAD_NS (15 * NS_PER_S)
#define ALIVE_NS  1000000ull /* readings this far apart tell whether an event still counts */

/* From wide to narrow: a CPU that is asked for its package is awake then, and read whole in the same breath. */
static const Scope scopes[] = { SCOPE_PACKAGE, SCOPE_SYSTEM, SCOPE_MODULE, SCOPE_CORE, SCOPE_CPU };

typedef struct LocalTurn {
        LocalSweep *l;
        MsrTurn t;
} LocalTurn;

static uint32_t entity_of(const Machine *m, uint32_t cpu, Scope scope) {
        return machine_parent(m, SCOPE_CPU, cpu, scope);
}

static void set_columns(LocalEntity *n, MsrSweep *s, Scope scope, uint32_t e, uint32_t first_reg) {
        uint32_t c1 = 0;

        MSR_FOR_EACH_COLUMN(c, s, scope) {
                uint32_t column = c->r.reg - first_reg;

                if (!c->slots[e].present || column >= LOCAL_COLUMNS_MAX)
                        continue;
                n->columns |= 1u << column;
                if (c->r.field == FIELD_C1_RES)
                        c1 = 1u << column;
        }
        n->needed = n->columns == c1 ? c1 : n->columns & ~c1;
}

static int init_scope(LocalSweep *l, MsrSweep *s, const Machine *m, Scope scope,
        uint32_t (*cpu_of)(void *userdata, Scope scope, uint32_t e), void *userdata) {
        uint32_t n = machine_n_entities(m, scope);

        l->entities[scope] = calloc(n + 1, sizeof(LocalEntity));
        l->newest[scope] = calloc(n + 1, sizeof(uint32_t));
        if (!l->entities[scope] || !l->newest[scope])
                return -ENOMEM;
        for (uint32_t e = 0; e < n; e++) {
                l->entities[scope][e].cpu = cpu_of(userdata, scope, e);
                set_columns(&l->entities[scope][e], s, scope, e, l->first_reg);
        }
        return 0;
}

static void want(const LocalSweep *l, const Machine *m, uint32_t cpu) {
        uint32_t package = m->cpus[cpu].package, meet = machine_first_cpu(m, SCOPE_CORE, m->cpus[cpu].core);
        LocalWant w = { .package = m->cpus[machine_first_cpu(m, SCOPE_PACKAGE, package)].id };
        uint32_t system_cpu = l->entities[SCOPE_SYSTEM][0].cpu;

        for (size_t i = 0; i < ARRAY_SIZE(scopes); i++) {
                uint32_t e = entity_of(m, cpu, scopes[i]);

                if (e == NONE)
                        continue;
                if (scopes[i] == SCOPE_PACKAGE ||
                        (scopes[i] == SCOPE_SYSTEM && system_cpu < m->n_cpus && m->cpus[system_cpu].package == package))
                        w.package_columns |= l->entities[scopes[i]][e].columns;
                else if (scopes[i] == SCOPE_CPU)
                        w.own |= l->entities[scopes[i]][e].columns;
                else if (scopes[i] != SCOPE_SYSTEM)
                        w.core_columns |= l->entities[scopes[i]][e].columns;
                if (scopes[i] == SCOPE_MODULE && l->entities[scopes[i]][e].columns)
                        meet = machine_first_cpu(m, SCOPE_MODULE, e); /* a core is of one module */
        }
        w.core = m->cpus[meet].id;
        l->reads->want(l->reads->userdata, m->cpus[cpu].id, &w);
}

int local_sweep_init(LocalSweep *l, MsrSweep *s, const Machine *m, const LocalReads *reads, uint32_t first_reg,
        uint32_t (*cpu_of)(void *userdata, Scope scope, uint32_t e), void *userdata) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        *l = (LocalSweep){
                .reads = reads,
                .first_reg = first_reg,
                .readings = calloc(m->n_cpus + 1, sizeof(LocalReading)),
                .heard_ns = calloc(m->n_cpus + 1, sizeof(uint64_t)),
                .heard_running = calloc(m->n_cpus + 1, sizeof(uint64_t)),
                .alive = calloc(m->n_cpus + 1, sizeof(bool)),
                .covered_ns = calloc(m->n_cpus + 1, sizeof(uint64_t)),
                .asked = calloc(m->n_cpus + 1, sizeof(bool)),
                .opened_ns = (uint64_t) ts.tv_sec * NS_PER_S + (uint64_t) ts.tv_nsec,
        };
        if (!l->readings || !l->heard_ns || !l->heard_running || !l->alive || !l->covered_ns || !l->asked)
                return -ENOMEM;
        for (size_t i = 0; i < ARRAY_SIZE(scopes); i++)
                if (init_scope(l, s, m, scopes[i], cpu_of, userdata) < 0)
                        return -ENOMEM;
        for (uint32_t i = 0; i < m->n_cpus; i++)
                want(l, m, i);
        return 0;
}

void local_sweep_adopt(LocalSweep *l, const Machine *m, const LocalSweep *old, const Machine *m_old) {
        for (uint32_t i = 0; i < m->n_cpus; i++) {
                uint32_t k = machine_cpu_index(m_old, m->cpus[i].id);

                if (k == UINT32_MAX)
                        continue;
                l->heard_ns[i] = old->heard_ns[k];
                l->heard_running[i] = old->heard_running[k];
                l->alive[i] = old->alive[k];
        }
}

void local_sweep_deinit(LocalSweep *l) {
        for (unsigned i = 0; i < SCOPE_N; i++) {
                free(l->entities[i]);
                free(l->newest[i]);
        }
        free(l->readings);
        free(l->heard_ns);
        free(l->heard_running);
        free(l->alive);
        free(l->covered_ns);
        free(l->asked);
        *l = (LocalSweep){};
}

/* ---- the clock ---- */

/* TSC and CLOCK_MONOTONIC of one moment: the best of three tries, since we may be interrupted between the two. */
static void take_time(MsrTurn *t) {
        uint64_t best = UINT64_MAX;

        for (unsigned i = 0; i < 3; i++) {
                uint64_t a = __rdtsc(), b;
                struct timespec ts;

                (void) clock_gettime(CLOCK_MONOTONIC, &ts);
                b = __rdtsc();
                if (b - a >= best)
                        continue;
                best = b - a;
                t->tsc = a + best / 2;
                t->ns = (uint64_t) ts.tv_sec * NS_PER_S + (uint64_t) ts.tv_nsec;
        }
}

/* The TSC at a time near this turn; between it and the one before, exactly so. */
static uint64_t tsc_at(const LocalTurn *x, uint64_t ns) {
        uint64_t ticks = x->t.m->tsc_hz, per_ns = NS_PER_S;

        if (x->l->prev_ns > 0 && x->t.ns > x->l->prev_ns && x->t.tsc > x->l->prev_tsc) {
                ticks = x->t.tsc - x->l->prev_tsc;
                per_ns = x->t.ns - x->l->prev_ns;
        }
        return x->t.tsc + (uint64_t) ((__int128) (int64_t) (ns - x->t.ns) * ticks / per_ns);
}

/* ---- readings ---- */

/*
 * It went offline and came back between two turns: its events are gone and answer with what they had. Their time of
 * counting then stands still; a kernel that has never let it go on is not judged by it.
 */
static bool is_dead(LocalSweep *l, uint32_t cpu, const LocalReading *r) {
        uint64_t elapsed = r->ns - l->heard_ns[cpu];

        if (!l->heard_ns[cpu] || elapsed < ALIVE_NS)
                return false;
        if (r->running >= l->heard_running[cpu] + elapsed / 2) {
                l->alive[cpu] = true;
                return false;
        }
        return l->alive[cpu];
}

/* Whether a CPU has read itself since it was heard of last; readings[cpu] is then new, else as it was. */
static bool hear(LocalTurn *x, uint32_t cpu) {
        LocalSweep *l = x->l;
        uint64_t since = MAX(l->heard_ns[cpu], l->opened_ns);
        LocalReading r;

        if (!l->reads->read(l->reads->userdata, x->t.m->cpus[cpu].id, &r) || r.ns <= since)
                return false;
        if (is_dead(l, cpu, &r)) {
                l->has_dead = true;
                return false;
        }
        l->readings[cpu] = r;
        l->heard_ns[cpu] = r.ns;
        l->heard_running[cpu] = r.running;
        return true;
}

/* A CPU's reading, for everything that it is a part of. */
static void offer(LocalTurn *x, uint32_t cpu) {
        const LocalReading *r = &x->l->readings[cpu];

        for (size_t i = 0; i < ARRAY_SIZE(scopes); i++) {
                uint32_t e = entity_of(x->t.m, cpu, scopes[i]), *newest;
                const LocalEntity *n;

                if (e == NONE)
                        continue;
                n = &x->l->entities[scopes[i]][e];
                newest = &x->l->newest[scopes[i]][e];
                if (n->needed == 0 || (r->got & n->needed) != n->needed || r->ns <= n->read_ns)
                        continue;
                if (*newest == NONE || x->l->readings[*newest].ns < r->ns)
                        *newest = cpu;
        }
}

static void collect(LocalTurn *x) {
        const Machine *m = x->t.m;

        for (size_t i = 0; i < ARRAY_SIZE(scopes); i++)
                for (uint32_t e = 0; e < machine_n_entities(m, scopes[i]); e++)
                        x->l->newest[scopes[i]][e] = NONE;
        for (uint32_t cpu = 0; cpu < m->n_cpus; cpu++) {
                x->l->asked[cpu] = false;
                for (size_t i = 0; i < ARRAY_SIZE(scopes) && !x->t.turn->activity[cpu].slept; i++) {
                        uint32_t e = entity_of(m, cpu, scopes[i]);

                        if (e != NONE)
                                x->l->entities[scopes[i]][e].moved = true;
                }
                if (hear(x, cpu))
                        offer(x, cpu);
        }
}

/* ---- one entity ---- */

static void settle(LocalTurn *x, Scope scope, uint32_t e) {
        LocalEntity *n = &x->l->entities[scope][e];

        n->read_ns = x->t.s->stamps[scope][e].ns;
        n->moved = false;
        if (scope == SCOPE_CORE)
                msr_turn_split_c6(&x->t, e);
        if (scope == SCOPE_CPU)
                x->l->covered_ns[e] = n->read_ns;
}

/* A counter that this reading lacks: it comes with another one, or, if none ever brought it, by the lazy rule. */
static void fill_missing(LocalTurn *x, MsrColumn *c, uint32_t e, uint32_t cpu, uint32_t ever_got) {
        MsrSlot *slot = &c->slots[e];

        if (!(ever_got >> (c->r.reg - x->l->first_reg) & 1) && x->t.s->usable[cpu] && !msr_turn_is_late(&x->t))
                (void) msr_turn_read_slot(&x->t, c, e, cpu);
        else if (slot->reason == REASON_NONE)
                slot->reason = REASON_ASLEEP;
}

static void take_reading(LocalTurn *x, Scope scope, uint32_t e, uint32_t cpu) {
        const LocalReading *r = &x->l->readings[cpu];
        const MsrConvert *convert = &x->t.s->set.convert[x->t.m->cpus[cpu].package];
        LocalEntity *n = &x->l->entities[scope][e];

        n->got |= r->got;
        MSR_FOR_EACH_COLUMN(c, x->t.s, scope) {
                MsrSlot *slot = &c->slots[e];
                uint32_t column = c->r.reg - x->l->first_reg;

                if (!slot->present)
                        continue;
                if (r->got >> column & 1) {
                        slot->retry_ns = 0;
                        slot->reason = (uint8_t) msr_decode(convert, &c->r, r->values[column], &slot->value);
                } else {
                        fill_missing(x, c, e, cpu, n->got);
                }
        }
        x->t.s->stamps[scope][e] = (MsrStamp){ .tsc = tsc_at(x, r->ns), .ns = r->ns };
        settle(x, scope, e);
}

static bool is_asleep(const LocalTurn *x, uint32_t cpu) {
        const CpuActivity *a = &x->t.turn->activity[cpu];

        return !x->l->asked[cpu] && (a->asleep_since_ns > 0 || a->slept);
}

/* Sleepers that went to bed together are not woken together. */
static bool is_too_old(const LocalTurn *x, uint32_t e, const LocalEntity *n) {
        const SourceTurn *turn = x->t.turn;
        uint64_t interval = turn->prev_ns && turn->now_ns > turn->prev_ns ? turn->now_ns - turn->prev_ns : 0;

        return turn->now_ns + interval > n->read_ns + WAKE_PLAN_MAX_AGE_NS - SPREAD_NS * (e % 64) / 64;
}

static bool must_ask(const LocalTurn *x, Scope scope, uint32_t e) {
        const LocalEntity *n = &x->l->entities[scope][e];

        if (n->read_ns == 0 || !is_asleep(x, n->cpu))
                return true;
        if (n->moved && (n->got & n->needed) != n->needed)
                return true;
        if (scope == SCOPE_CPU && x->t.turn->activity[e].asleep_since_ns <= n->read_ns)
                return false; /* all it did is in that reading */
        return is_too_old(x, e, n);
}

static void ask(LocalTurn *x, Scope scope, uint32_t e, uint32_t cpu) {
        msr_turn_skip(&x->t, scope, e, REASON_GAP);
        if (!x->t.s->usable[cpu] || msr_turn_is_late(&x->t))
                return;
        x->l->asked[cpu] = true;
        if (msr_turn_read_group(&x->t, scope, e, cpu) == 0)
                settle(x, scope, e);
}

static void leave_asleep(LocalTurn *x, Scope scope, uint32_t e) {
        MsrStamp *stamp = &x->t.s->stamps[scope][e];
        uint64_t from;

        msr_turn_skip(&x->t, scope, e, REASON_ASLEEP);
        if (scope != SCOPE_CPU)
                return;
        from = MAX(x->t.turn->activity[e].asleep_since_ns, x->l->covered_ns[e]);
        if (x->t.ns > from) {
                stamp->tsc += x->t.tsc - tsc_at(x, from);
                stamp->ns += x->t.ns - from;
                x->l->covered_ns[e] = x->t.ns;
        }
        stamp->tsc_reason = stamp->ns_reason = REASON_NONE;
}

static void run_entity(LocalTurn *x, Scope scope, uint32_t e) {
        uint32_t *newest = &x->l->newest[scope][e], cpu = x->l->entities[scope][e].cpu;

        if (cpu == NONE || x->l->entities[scope][e].columns == 0)
                return;
        if (*newest == NONE && must_ask(x, scope, e)) {
                /* It may have gone idle since we looked. */
                if (!x->l->asked[cpu] && hear(x, cpu))
                        offer(x, cpu);
                if (*newest == NONE) {
                        ask(x, scope, e, cpu);
                        return;
                }
        }
        if (*newest != NONE)
                take_reading(x, scope, e, *newest);
        else
                leave_asleep(x, scope, e);
}

void local_sweep_run(LocalSweep *l, MsrSweep *s, SourceTurn *turn) {
        LocalTurn x = { .l = l };

        msr_turn_begin(&x.t, s, turn);
        take_time(&x.t);
        collect(&x);
        l->reads->due(l->reads->userdata);
        for (size_t i = 0; i < ARRAY_SIZE(scopes); i++)
                for (uint32_t e = 0; e < machine_n_entities(turn->machine, scopes[i]); e++)
                        run_entity(&x, scopes[i], e);
        l->prev_tsc = x.t.tsc;
        l->prev_ns = x.t.ns;
}
