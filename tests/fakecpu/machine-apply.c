/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The verbs. Selectors (cpus=, packages=, dies=, types=) choose entities; a core or die is meant when one of
 * its CPUs is. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "machine-apply.h"
#include "machine-key.h"

#define ACC_COUNT ((u128) NANO * (u128) NANO)

static const char *get_either(const Statement *st, const char *one, const char *many) {
        const char *v = statement_get(st, one);

        return v ? v : statement_get(st, many);
}

bool machine_is_selector(const char *key) {
        static const char *const names[] = { "cpu", "cpus", "package", "packages", "die", "dies", "type",
                "zone", "in", "keep" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcmp(key, names[i]) == 0)
                        return true;
        return false;
}

/* The CPUs a statement means; all of them where it names none. */
bool machine_select_cpus(const Machine *m, const Statement *st, IdSet *ret, char *error) {
        const char *cpus = get_either(st, "cpu", "cpus"), *packages = get_either(st, "package", "packages");
        const char *dies = get_either(st, "die", "dies"), *type = statement_get(st, "type");
        IdSet by_cpu, by_package, by_die;

        if ((cpus && !idset_parse(&by_cpu, cpus)) || (packages && !idset_parse(&by_package, packages)) ||
                (dies && !idset_parse(&by_die, dies)))
                return scenario_error(error, 0, st->verb, "bad list");
        *ret = (IdSet){};
        bool any = false;
        for (unsigned i = 0; i < m->n_cpus; i++) {
                const Cpu *cpu = &m->cpus[i];

                if ((cpus && !idset_has(&by_cpu, cpu->id)) ||
                        (packages && !idset_has(&by_package, cpu->package)) ||
                        (dies && !idset_has(&by_die, cpu->die)) || (type && cpu->type != (type[0] == 'E')))
                        continue;
                idset_add(ret, cpu->id);
                any = true;
        }
        return any ? true : scenario_error(error, 0, st->verb, "selects no CPU");
}

static bool sets_meet(const IdSet *a, const IdSet *b) {
        for (size_t i = 0; i < ARRAY_SIZE(a->bits); i++)
                if (a->bits[i] & b->bits[i])
                        return true;
        return false;
}

static Zone *zone_find(Machine *m, const char *dir) {
        for (unsigned i = 0; i < m->n_zones; i++)
                if (strcmp(m->zones[i].dir, dir) == 0)
                        return &m->zones[i];
        return NULL;
}

/* What is done to each counter that a word and the selection mean. */
typedef struct Change {
        enum { CHANGE_SET, CHANGE_PRESET, CHANGE_WRAP } what;
        RateKind kind;
        int64_t param;  /* set */
        uint64_t value; /* preset */
        int64_t in_ns;  /* wrap */
        unsigned width;
} Change;

static void counter_change(Counter *c, const Change *change, uint64_t rate) {
        u128 range = (u128) 1 << change->width, ahead = (u128) c->rate * (u128) change->in_ns;

        switch (change->what) {
        case CHANGE_SET:
                c->param = change->param;
                if (change->kind != RATE_MHZ && change->kind != RATE_GAUGE)
                        c->rate = rate;
                break;
        case CHANGE_PRESET:
                c->acc = change->value * ACC_COUNT;
                break;
        case CHANGE_WRAP:
                c->acc = range * ACC_COUNT - ahead;
                break;
        }
}

static void change_cpus(Machine *m, const IdSet *cpus, const char *state, unsigned counter,
        const Change *change, int64_t t_ns) {
        for (unsigned i = 0; i < m->n_cpus; i++) {
                Cpu *cpu = &m->cpus[i];
                RateKind kind;
                int n = state ? key_state(m, cpu->type, state, &kind) : (int) counter;

                if (n < 0 || !idset_has(cpus, cpu->id))
                        continue;
                cpu_advance(cpu, t_ns);
                if (n == CPU_USER && change->what == CHANGE_SET)
                        cpu->user_given = true;
                counter_change(&cpu->c[n], change,
                        key_rate(m, SCOPE_CPU, (unsigned) n, change->kind, change->param));
        }
}

static void change_others(
        Machine *m, const IdSet *cpus, const Key *key, const Change *change, int64_t t_ns) {
        uint64_t rate = key_rate(m, key->scope, key->counter, change->kind, change->param);

        for (unsigned i = 0; key->scope == SCOPE_CORE && i < m->n_cores; i++)
                if (sets_meet(&m->cores[i].cpus, cpus)) {
                        core_advance(&m->cores[i], t_ns);
                        counter_change(&m->cores[i].c[key->counter], change, rate);
                }
        for (unsigned i = 0; key->scope == SCOPE_DIE && i < m->n_dies; i++)
                if (sets_meet(&m->dies[i].cpus, cpus)) {
                        die_advance(&m->dies[i], t_ns);
                        counter_change(&m->dies[i].c[key->counter], change, rate);
                }
        if (key->scope == SCOPE_SYSTEM) {
                system_advance(m, t_ns);
                counter_change(&m->system[key->counter], change, rate);
        }
}

static bool change_apply(Machine *m, const IdSet *cpus, const char *name, Change *change, int64_t t_ns,
        bool check_only, char *error) {
        const Key *key = key_find(name);
        bool known = key != NULL;

        change->width = key ? key->width : 64;
        if (key)
                change->kind = key->kind;
        for (unsigned type = 0; !key && type < 2; type++)
                known |= key_state(m, type, name, &change->kind) >= 0;
        if (!known || (change->what == CHANGE_SET && change->kind == RATE_DERIVED) ||
                (change->what != CHANGE_SET && change->width == 0))
                return scenario_error(error, 0, "no such counter", name);
        if (change->what == CHANGE_SET && change->kind != RATE_GAUGE && change->param < 0)
                return scenario_error(error, 0, "negative", name);
        if (change->what == CHANGE_SET && change->param > 100 * NANO &&
                (change->kind == RATE_TSC || change->kind == RATE_JIFFIES || change->kind == RATE_STATE))
                return scenario_error(error, 0, "above 100 %", name);
        if (check_only)
                return true;
        if (!key || key->scope == SCOPE_CPU)
                change_cpus(m, cpus, key ? NULL : name, key ? key->counter : 0, change, t_ns);
        else
                change_others(m, cpus, key, change, t_ns);
        return true;
}

/* The words of `set` that are no counter. 1: done, 0: not one of them, -1: bad value. */
static int set_special(Machine *m, const IdSet *cpus, const Word *w, int64_t t_ns, bool check_only) {
        bool mode = strcmp(w->key, "mode") == 0, wake = strcmp(w->key, "wake") == 0,
             phase = strcmp(w->key, "phase") == 0;
        int64_t ns = 0;

        if (strcmp(w->key, "wake_on_read") == 0) {
                if (!check_only)
                        m->wake_on_read = w->value && strcmp(w->value, "0") != 0;
                return 1;
        }
        if (!mode && !wake && !phase)
                return 0;
        if (mode && strcmp(w->value, "step") != 0 && strcmp(w->value, "smooth") != 0)
                return -1;
        if (!mode && (!text_time_ns(w->value, &ns) || ns < 0 || (wake && ns < 1000000)))
                return -1;
        for (unsigned i = 0; i < m->n_cpus && !check_only; i++) {
                Cpu *cpu = &m->cpus[i];

                if (!idset_has(cpus, cpu->id))
                        continue;
                cpu_advance(cpu, t_ns);
                if (mode)
                        cpu->step = w->value[1] == 't';
                else if (wake)
                        cpu->wake_ns = ns;
                else
                        cpu->phase_ns = ns;
        }
        return 1;
}

static bool apply_zone(Machine *m, const Statement *st, int64_t t_ns, bool check_only, char *error) {
        Zone *zone = zone_find(m, statement_get(st, "zone"));
        const char *watts = statement_get(st, "watts"), *uj = statement_get(st, "uj"),
                   *in = statement_get(st, "in");
        Change change = { .what = uj ? CHANGE_PRESET : in ? CHANGE_WRAP : CHANGE_SET, .kind = RATE_PER_S };

        if (!zone || zone->domain != ZONE_OWN)
                return scenario_error(
                        error, 0, "no such zone with a counter of its own", statement_get(st, "zone"));
        if ((watts && !text_nano(watts, &change.param)) || (uj && !text_u64(uj, &change.value)) ||
                (in && !text_time_ns(in, &change.in_ns)) || (!watts && !uj && !in))
                return scenario_error(error, 0, st->verb, "needs watts=, uj= or in=");
        if (check_only)
                return true;
        zone->own.acc += (u128) zone->own.rate * (u128) MAX(t_ns - zone->t0, INT64_C(0));
        zone->t0 = t_ns;
        if (in)
                zone->own.acc = (u128) (zone->range_uj + 1) * ACC_COUNT -
                                (u128) zone->own.rate * (u128) change.in_ns;
        else
                counter_change(&zone->own, &change, (uint64_t) change.param * 1000000);
        return true;
}

/* set, preset, wrap */
static bool apply_counters(Machine *m, const Statement *st, int64_t t_ns, bool check_only, char *error) {
        const char *in = statement_get(st, "in");
        Change change = { .what = st->verb[0] == 's'   ? CHANGE_SET
                                  : st->verb[0] == 'p' ? CHANGE_PRESET
                                                       : CHANGE_WRAP };
        IdSet cpus;

        if (statement_get(st, "zone"))
                return apply_zone(m, st, t_ns, check_only, error);
        if (!machine_select_cpus(m, st, &cpus, error))
                return false;
        if (change.what == CHANGE_WRAP && (!in || !text_time_ns(in, &change.in_ns) || change.in_ns < 0))
                return scenario_error(error, 0, "wrap", "needs in=TIME");
        for (size_t i = 0; i < st->n_words; i++) {
                const Word *w = &st->words[i];
                int special;

                if (machine_is_selector(w->key))
                        continue;
                if (change.what != CHANGE_WRAP && !w->value)
                        return scenario_error(error, 0, "needs a value", w->key);
                special = change.what == CHANGE_SET ? set_special(m, &cpus, w, t_ns, check_only) : 0;
                if (special > 0)
                        continue;
                if (special < 0 || (change.what == CHANGE_SET && !text_nano(w->value, &change.param)) ||
                        (change.what == CHANGE_PRESET && !text_u64(w->value, &change.value)))
                        return scenario_error(error, 0, "bad value", w->key);
                if (!change_apply(m, &cpus, w->key, &change, t_ns, check_only, error))
                        return false;
        }
        return check_only || machine_settle(m, t_ns, error);
}

void counters_clear(Counter *c, size_t first, size_t end) {
        for (size_t i = first; i < end; i++)
                c[i].acc = 0;
}

/* reset [energy] [residency] [msr] [cpuidle] [irq] [all]: counters begin again at 0. */
static bool apply_reset(Machine *m, const Statement *st, int64_t t_ns, bool check_only, char *error) {
        bool energy = false, residency = false, cpu_msr = false, cpuidle = false, irq = false, any = false;
        IdSet cpus;

        if (!machine_select_cpus(m, st, &cpus, error))
                return false;
        for (size_t i = 0; i < st->n_words; i++) {
                const char *k = st->words[i].key;
                bool all = strcmp(k, "all") == 0, msr = all || strcmp(k, "msr") == 0;

                if (machine_is_selector(k))
                        continue;
                if (!msr && strcmp(k, "energy") != 0 && strcmp(k, "residency") != 0 &&
                        strcmp(k, "cpuidle") != 0 && strcmp(k, "irq") != 0)
                        return scenario_error(error, 0, "reset", k);
                any = true;
                energy |= msr || k[0] == 'e';
                residency |= msr || k[0] == 'r';
                cpu_msr |= msr;
                cpuidle |= all || k[0] == 'c';
                irq |= all || k[0] == 'i';
        }
        if (!any)
                energy = residency = cpu_msr = true;
        for (unsigned i = 0; i < m->n_cpus && !check_only; i++) {
                Cpu *cpu = &m->cpus[i];

                if (!idset_has(&cpus, cpu->id))
                        continue;
                cpu_advance(cpu, t_ns);
                counters_clear(cpu->c, CPU_MPERF, cpu_msr ? CPU_SMI + 1 : CPU_MPERF);
                counters_clear(cpu->c, CPU_LOC, irq ? CPU_DEV + 1 : CPU_LOC);
                counters_clear(cpu->c, CPU_STATES, cpuidle ? CPU_N : CPU_STATES);
        }
        for (unsigned i = 0; i < m->n_cores && !check_only; i++)
                if (sets_meet(&m->cores[i].cpus, &cpus)) {
                        core_advance(&m->cores[i], t_ns);
                        counters_clear(m->cores[i].c, CORE_C3, residency ? CORE_MC6 + 1 : CORE_C3);
                        counters_clear(m->cores[i].c, CORE_ENERGY, energy ? CORE_ENERGY + 1 : CORE_ENERGY);
                }
        for (unsigned i = 0; i < m->n_dies && !check_only; i++)
                if (sets_meet(&m->dies[i].cpus, &cpus)) {
                        die_advance(&m->dies[i], t_ns);
                        counters_clear(m->dies[i].c, DIE_PC2, residency ? DIE_PC10 + 1 : DIE_PC2);
                        counters_clear(m->dies[i].c, DIE_PKG, energy ? DIE_RAM_THROTTLE + 1 : DIE_PKG);
                }
        return true;
}

bool machine_apply_counters(Machine *m, const Statement *st, int64_t t_ns, bool check_only, char *error) {
        if (strcmp(st->verb, "set") == 0 || strcmp(st->verb, "preset") == 0 || strcmp(st->verb, "wrap") == 0)
                return apply_counters(m, st, t_ns, check_only, error);
        if (strcmp(st->verb, "reset") == 0)
                return apply_reset(m, st, t_ns, check_only, error);
        return machine_apply_cpus(m, st, t_ns, check_only, error);
}
