/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Faults (eio, slow, fail, chmod, hide) and the timetable of all statements. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "machine-apply.h"

static const struct {
        const char *name;
        int number;
} errnos[] = {
        { "ok", 0 },
        { "EACCES", EACCES },
        { "EPERM", EPERM },
        { "EINVAL", EINVAL },
        { "EIO", EIO },
        { "ENXIO", ENXIO },
        { "ENOENT", ENOENT },
        { "ENODEV", ENODEV },
        { "ENODATA", ENODATA },
};

static const char *const classes[FILE_CLASS_N] = {
        [FILE_MSR] = "msr",
        [FILE_CPUID] = "cpuid",
        [FILE_ENERGY] = "energy_uj",
        [FILE_CPUIDLE] = "cpuidle",
        [FILE_POWERCAP] = "powercap",
        [FILE_CPUIDLE_DIR] = "cpuidle-dir",
};

static bool class_find(const Statement *st, size_t *ret, char *error) {
        for (size_t i = 0; st->n_words > 0 && i < FILE_CLASS_N; i++)
                if (strcmp(st->words[0].key, classes[i]) == 0) {
                        *ret = i;
                        return true;
                }
        return scenario_error(error, 0, st->verb, "needs msr, cpuid, energy_uj, cpuidle or powercap first");
}

static bool apply_chmod(Machine *m, const Statement *st, bool check_only, char *error) {
        unsigned mode;
        size_t class;
        char rest;

        if (!class_find(st, &class, error))
                return false;
        if (st->n_words != 2 || sscanf(st->words[1].key, "%o%c", &mode, &rest) != 1 || mode > 0777)
                return scenario_error(error, 0, "chmod", "needs an octal mode");
        if (!check_only) {
                m->files[class].mode = mode;
                m->generation++;
        }
        return true;
}

/* fail msr EPERM: open fails. fail energy_uj EINVAL [zone=intel-rapl:0]: read fails. fail ... ok: as before.
 */
static bool apply_fail(Machine *m, const Statement *st, bool check_only, char *error) {
        const char *zone = statement_get(st, "zone");
        size_t class;
        int number = -1;

        if (!class_find(st, &class, error))
                return false;
        for (size_t i = 0; st->n_words > 1 && i < ARRAY_SIZE(errnos); i++)
                if (strcmp(st->words[1].key, errnos[i].name) == 0)
                        number = errnos[i].number;
        if (number < 0 || class >= FILE_CPUIDLE)
                return scenario_error(error, 0, "fail", "needs msr, cpuid or energy_uj and an errno or ok");
        if (check_only)
                return true;
        if (class == FILE_ENERGY) {
                for (unsigned i = 0; i < m->n_zones; i++)
                        if (!zone || strcmp(zone, m->zones[i].dir) == 0)
                                m->zones[i].read_errno = number;
        } else
                m->files[class].open_errno = number;
        return true;
}

static bool apply_hide(Machine *m, const Statement *st, bool check_only, char *error) {
        size_t class;

        if (!class_find(st, &class, error))
                return false;
        if (!check_only) {
                m->files[class].hidden = st->verb[0] == 'h';
                m->generation++;
        }
        return true;
}

/* ok [reg=] [cpus=]: takes these CPUs out of the rules of this register. */
static void rules_forget(
        Machine *m, const Statement *st, const char *reg, uint64_t number, const IdSet *cpus) {
        bool all_cpus = !statement_get(st, "cpu") && !statement_get(st, "cpus");
        unsigned kept = 0;

        for (unsigned i = 0; i < m->n_rules; i++) {
                Rule rule = m->rules[i];

                if (!reg || rule.all_regs || rule.reg == number) {
                        if (all_cpus)
                                continue;
                        for (size_t k = 0; k < ARRAY_SIZE(rule.cpus.bits); k++)
                                rule.cpus.bits[k] &= ~cpus->bits[k];
                }
                m->rules[kept++] = rule;
        }
        m->n_rules = kept;
}

static bool apply_rule(Machine *m, const Statement *st, bool check_only, char *error) {
        const char *reg = statement_get(st, "reg"), *ms = statement_get(st, "ms");
        uint64_t number = 0, delay = 0;
        bool all = reg && strcmp(reg, "all") == 0;
        Rule rule;

        if (reg && !all && !text_u64(reg, &number))
                return scenario_error(error, 0, st->verb, "bad reg=");
        rule = (Rule){ .all_regs = all, .reg = number, .eio = st->verb[0] == 'e' };
        if (!machine_select_cpus(m, st, &rule.cpus, error))
                return false;
        if (strcmp(st->verb, "ok") == 0) {
                if (!check_only)
                        rules_forget(m, st, reg, number, &rule.cpus);
                return true;
        }
        if (!reg || (!rule.eio && (!ms || !text_u64(ms, &delay) || delay > 600000)))
                return scenario_error(error, 0, st->verb, rule.eio ? "needs reg=" : "needs reg= and ms=");
        if (m->n_rules == MACHINE_RULES_MAX)
                return scenario_error(error, 0, st->verb, "too many rules");
        rule.delay_ns = (int64_t) delay * 1000000;
        if (!check_only)
                m->rules[m->n_rules++] = rule;
        return true;
}

bool machine_apply_faults(Machine *m, const Statement *st, bool check_only, char *error) {
        if (strcmp(st->verb, "chmod") == 0)
                return apply_chmod(m, st, check_only, error);
        if (strcmp(st->verb, "fail") == 0)
                return apply_fail(m, st, check_only, error);
        if (strcmp(st->verb, "hide") == 0 || strcmp(st->verb, "show") == 0)
                return apply_hide(m, st, check_only, error);
        return apply_rule(m, st, check_only, error);
}

bool machine_apply(
        Machine *m, const Statement *st, int64_t t_ns, bool check_only, char error[SCENARIO_ERROR_MAX]) {
        static const char *const faults[] = { "chmod", "fail", "hide", "show", "eio", "slow", "ok" };

        for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
                if (strcmp(st->verb, faults[i]) == 0)
                        return machine_apply_faults(m, st, check_only, error);
        return machine_apply_counters(m, st, t_ns, check_only, error);
}

static bool pending_add(Machine *m, Statement *st) {
        Statement **p = realloc(m->pending, (m->n_pending + 1) * sizeof(Statement *));
        size_t i = m->n_pending;

        if (!p)
                return false;
        m->pending = p;
        while (i > 0 && p[i - 1]->at_ns > st->at_ns) {
                p[i] = p[i - 1];
                i--;
        }
        p[i] = st;
        m->n_pending++;
        return true;
}

/* "at story+5s" becomes a time. */
static bool resolve_story(const Scenario *s, Statement *st, char *error) {
        int64_t story;

        if (!st->story)
                return true;
        if (!text_time_ns(s->story, &story) || story < 0)
                return scenario_error(error, st->line, "bad or missing time of the story", s->story);
        st->at_ns += story;
        st->story = false;
        return true;
}

static bool schedule_one(Machine *m, const Scenario *s, Statement *st, char *error) {
        char why[SCENARIO_ERROR_MAX];

        if (!resolve_story(s, st, error))
                return false;
        bool now = st->at_ns == 0;

        if (!machine_apply(m, st, 0, !now, why)) {
                (void) snprintf(error, SCENARIO_ERROR_MAX, "line %d: %.200s", st->line, why);
                return false;
        }
        return now || pending_add(m, st) ? true : scenario_error(error, 0, st->verb, "out of memory");
}

bool machine_schedule(Machine *m, const Scenario *s, char error[SCENARIO_ERROR_MAX]) {
        m->building = true;
        for (size_t i = 0; i < s->n_statements; i++)
                if (!schedule_one(m, s, s->statements[i], error))
                        return false;
        m->building = false;
        return machine_settle(m, 0, error);
}

static void statement_done(Statement *st) {
        if (st->owned)
                free(st);
}

/* What a `set` may change, kept so that one which turns out to be too much leaves no trace. */
typedef struct Saved {
        Cpu *cpus;
        Core *cores;
        Die *dies;
        Counter system[SYSTEM_N];
        int64_t system_t0;
} Saved;

static void *copy_of(const void *data, size_t size) {
        void *p = malloc(size);

        return p ? memcpy(p, data, size) : NULL;
}

static void saved_take(Saved *saved, const Machine *m) {
        *saved = (Saved){
                .cpus = copy_of(m->cpus, m->n_cpus * sizeof(Cpu)),
                .cores = copy_of(m->cores, m->n_cores * sizeof(Core)),
                .dies = copy_of(m->dies, m->n_dies * sizeof(Die)),
                .system_t0 = m->system_t0,
        };
        (void) memcpy(saved->system, m->system, sizeof(saved->system));
}

static void saved_restore(const Saved *saved, Machine *m) {
        if (!saved->cpus || !saved->cores || !saved->dies)
                return;
        (void) memcpy(m->cpus, saved->cpus, m->n_cpus * sizeof(Cpu));
        (void) memcpy(m->cores, saved->cores, m->n_cores * sizeof(Core));
        (void) memcpy(m->dies, saved->dies, m->n_dies * sizeof(Die));
        (void) memcpy(m->system, saved->system, sizeof(saved->system));
        m->system_t0 = saved->system_t0;
}

static bool apply_or_undo(Machine *m, const Statement *st, int64_t now_ns, char *error) {
        Saved saved = {};
        bool is_set = strcmp(st->verb, "set") == 0;

        if (is_set)
                saved_take(&saved, m);
        bool ok = machine_apply(m, st, now_ns, false, error);
        if (is_set && !ok)
                saved_restore(&saved, m);
        free(saved.cpus);
        free(saved.cores);
        free(saved.dies);
        return ok;
}

bool machine_submit(Machine *m, Statement *st, int64_t now_ns, char error[SCENARIO_ERROR_MAX]) {
        st->owned = true;
        if (st->relative)
                st->at_ns += now_ns;
        bool ok = resolve_story(m->scenario, st, error), later = st->at_ns > now_ns;

        if (ok && later) {
                ok = machine_apply(m, st, now_ns, true, error);
                if (ok && m->n_pending < SCENARIO_STATEMENTS_MAX && pending_add(m, st))
                        return true;
                ok = ok && scenario_error(error, 0, "too many statements", st->verb);
        } else
                ok = ok && apply_or_undo(m, st, now_ns, error);
        statement_done(st);
        return ok;
}

int64_t machine_next_ns(const Machine *m) {
        return m->n_pending > 0 ? m->pending[0]->at_ns : INT64_MAX;
}

void machine_run(Machine *m, int64_t now_ns) {
        while (machine_next_ns(m) <= now_ns) {
                Statement *st = m->pending[0];
                char error[SCENARIO_ERROR_MAX];

                m->n_pending--;
                (void) memmove(m->pending, m->pending + 1, m->n_pending * sizeof(Statement *));
                if (!machine_apply(m, st, st->at_ns, false, error))
                        (void) fprintf(stderr, "fakecpu: %s at %lld ms: %s\n", st->verb,
                                (long long) (st->at_ns / 1000000), error);
                if (st->period_ns > 0) {
                        st->at_ns += st->period_ns;
                        if (pending_add(m, st))
                                continue;
                }
                statement_done(st);
        }
}
