/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Break storms and lost deep idle. Both are a run of bad intervals at one place (a CPU; a core, kept under its first
 * CPU), so one mechanism serves them: a verdict for every place and interval (bad, good, or none: a core that slept
 * through says nothing new), a run length a place, and an active condition for the machine.
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cstated/num.h"
#include "cstated/timespan.h"
#include "model/alarms.h"
#include "model/metric.h"

/* Less requested deep idle than this share of the time proves nothing. */
#define REQUESTED_MIN_SHARE 0.05

typedef struct Condition {
        uint8_t *runs;      /* by CPU index: bad intervals in a row, saturating */
        bool active;
        uint32_t n_told;    /* places when it was last told */
        uint64_t n_quiet;   /* intervals without any place, while active */
} Condition;

struct Alarms {
        uint32_t generation;
        uint32_t n_cpus;
        uint32_t *cpu_ids;
        Condition conditions[ALARM_N];
};

typedef enum Verdict { VERDICT_NONE, VERDICT_GOOD, VERDICT_BAD } Verdict;

/* The worst place so far, and how many there are. */
typedef struct Worst {
        uint32_t n;
        uint32_t cpu;
        double weight;
        char what[128];
} Worst;

const char *alarm_kind_name(AlarmKind k) {
        return k == ALARM_BREAK_STORM ? "break-storm" : "deep-idle-lost";
}

Alarms *alarms_new(void) {
        return calloc(1, sizeof(Alarms));
}

Alarms *alarms_free(Alarms *a) {
        if (!a)
                return NULL;
        for (unsigned k = 0; k < ALARM_N; k++)
                free(a->conditions[k].runs);
        free(a->cpu_ids);
        free(a);
        return NULL;
}

/* Run lengths follow their CPU into a new machine. */
static int move_runs(const Alarms *a, const Machine *m, Condition *c) {
        uint8_t *runs = calloc(MAX(m->n_cpus, 1u), 1);

        if (!runs)
                return -ENOMEM;
        for (uint32_t i = 0; i < a->n_cpus; i++) {
                uint32_t at = machine_cpu_index(m, a->cpu_ids[i]);

                if (at != UINT32_MAX)
                        runs[at] = c->runs[i];
        }
        free(c->runs);
        c->runs = runs;
        return 0;
}

static int follow_machine(Alarms *a, const Machine *m) {
        uint32_t *ids;

        if (a->cpu_ids && a->generation == m->generation && a->n_cpus == m->n_cpus)
                return 0;
        ids = calloc(MAX(m->n_cpus, 1u), sizeof(*ids));
        if (!ids)
                return -ENOMEM;
        for (unsigned k = 0; k < ALARM_N; k++)
                if (move_runs(a, m, &a->conditions[k]) < 0) {
                        free(ids);
                        return -ENOMEM;
                }
        for (uint32_t i = 0; i < m->n_cpus; i++)
                ids[i] = m->cpus[i].id;
        free(a->cpu_ids);
        a->cpu_ids = ids;
        a->n_cpus = m->n_cpus;
        a->generation = m->generation;
        return 0;
}

/* ---- verdicts ---- */

static bool gather_count(const MetricSpec *m, const Sample *s, uint32_t cpu, int64_t *ret) {
        MetricSum sum = {};

        if (!m || !metric_available(m, s->layout))
                return false;
        metric_gather(m, s, SCOPE_CPU, cpu, 0, &sum);
        *ret = sum.count;
        return sum.n > 0;
}

/* The idle state most of whose entries the CPU made: where a storm lives. */
static const char *busiest_state(const Sample *s, uint32_t cpu) {
        const Machine *m = s->machine;
        const IdleSet *set =
                m->cpus[cpu].idle_set < m->n_idle_sets ? &m->idle_sets[m->cpus[cpu].idle_set] : NULL;
        const char *name = "?";
        int64_t most = -1;

        for (uint32_t i = 0; set && i < set->n_states; i++) {
                const LayoutColumn *c = layout_find(s->layout, FIELD_WAKE_BREAK, (uint8_t) i);

                if (!c)
                        c = layout_find(s->layout, FIELD_IDLE_USAGE, (uint8_t) i);
                if (!c || set->states[i].is_poll || s->reasons[c->offset + cpu] ||
                        s->values[c->offset + cpu] <= most)
                        continue;
                most = s->values[c->offset + cpu];
                name = set->states[i].name;
        }
        return name;
}

static Verdict judge_breaks(const AlarmRules *rules, const Sample *s, uint32_t cpu, Worst *w) {
        const MetricSpec *breaks_metric = metric_find("wakeups_break");
        const char *method;
        int64_t exits, breaks;
        double rate;

        if (!gather_count(metric_find("wakeups"), s, cpu, &exits) ||
                !gather_count(breaks_metric, s, cpu, &breaks) || s->h.dt_ns == 0)
                return VERDICT_NONE;
        rate = (double) breaks * 1e9 / (double) s->h.dt_ns;
        if (rate <= (double) rules->break_rate ||
                (double) breaks * 1e4 <= (double) exits * (double) rules->break_share_permyriad)
                return VERDICT_GOOD;
        if (rate > w->weight) {
                w->weight = rate;
                w->cpu = cpu;
                method = metric_method(breaks_metric, s->layout);
                (void) snprintf(w->what, sizeof(w->what), "%.0f breaks/s of %.0f idle exits/s in %s%s%s%s",
                        rate, (double) exits * 1e9 / (double) s->h.dt_ns, busiest_state(s, cpu),
                        method ? " (" : "", method ? method : "", method ? ")" : "");
        }
        return VERDICT_BAD;
}

static bool core_value(const Sample *s, FieldId field, uint32_t core, double *ret) {
        const LayoutColumn *c = layout_find(s->layout, field, 0);

        if (!c || s->reasons[c->offset + core])
                return false;
        *ret = (double) s->values[c->offset + core];
        return true;
}

static Verdict judge_deep_idle(const AlarmRules *rules, const Sample *s, uint32_t cpu, Worst *w) {
        uint32_t core = s->machine->cpus[cpu].core;
        double lost, span, c6 = 0, c7 = 0, granted, requested;
        bool has_c6, has_c7;

        if (s->machine->cpus[cpu].thread != 0)
                return VERDICT_NONE;
        has_c6 = core_value(s, FIELD_C6, core, &c6);
        has_c7 = core_value(s, FIELD_C7, core, &c7);
        if ((!has_c6 && !has_c7) || !core_value(s, FIELD_DEMOTION, core, &lost) ||
                !core_value(s, FIELD_CORE_TSC, core, &span) || span <= 0)
                return VERDICT_NONE;
        granted = c6 + c7;
        requested = lost + granted;
        if (requested < REQUESTED_MIN_SHARE * span ||
                granted * 1e4 >= requested * (double) rules->deep_idle_share_permyriad)
                return VERDICT_GOOD;
        if (lost / span > w->weight) {
                w->weight = lost / span;
                w->cpu = cpu;
                (void) snprintf(w->what, sizeof(w->what),
                        "C6 or deeper requested %.1f %% of the time, granted %.1f %%",
                        100 * requested / span, 100 * granted / span);
        }
        return VERDICT_BAD;
}

/* ---- conditions ---- */

static uint64_t run_length(const AlarmRules *rules) {
        return rules->intervals < 1 ? 1 : MIN(rules->intervals, (uint64_t) UINT8_MAX);
}

/* One interval of one kind: updates every run; *w then holds the places whose run is long enough. */
static void judge_all(Alarms *a, AlarmKind kind, const AlarmRules *rules, const Sample *s, Worst *w) {
        Condition *c = &a->conditions[kind];

        for (uint32_t i = 0; i < a->n_cpus; i++) {
                Worst here = *w;
                Verdict v = kind == ALARM_BREAK_STORM ? judge_breaks(rules, s, i, &here)
                                                      : judge_deep_idle(rules, s, i, &here);

                if (v == VERDICT_GOOD)
                        c->runs[i] = 0;
                else if (v == VERDICT_BAD && c->runs[i] < UINT8_MAX)
                        c->runs[i]++;
                if (c->runs[i] < run_length(rules))
                        continue;
                if (v == VERDICT_BAD)
                        *w = here;
                w->n++;
        }
}

static void tell_begin(
        AlarmKind kind, const AlarmRules *rules, const Machine *m, const Worst *w, AlarmEvent *ret) {
        *ret = (AlarmEvent){ .kind = kind, .begins = true, .cpu = m->cpus[w->cpu].id };
        (void) snprintf(ret->text, sizeof(ret->text), "CPU %" PRIu32 ": %s; %" PRIu32 " %s%s",
                m->cpus[w->cpu].id, w->what, w->n,
                kind == ALARM_BREAK_STORM ? (w->n == 1 ? "CPU" : "CPUs") : (w->n == 1 ? "core" : "cores"),
                rules->unmitigated ? "; this CPU's MONITOR erratum is not worked around" : "");
}

static bool condition_step(Condition *c, AlarmKind kind, const AlarmRules *rules, const Machine *m,
        const Worst *w, AlarmEvent *ret) {
        if (w->n > 0) {
                bool news = !c->active || w->n >= 2 * c->n_told;

                c->n_quiet = 0;
                if (!news || w->what[0] == '\0')
                        return false;
                c->active = true;
                c->n_told = w->n;
                tell_begin(kind, rules, m, w, ret);
                return true;
        }
        if (!c->active || ++c->n_quiet < run_length(rules))
                return false;
        *c = (Condition){ .runs = c->runs };
        *ret = (AlarmEvent){ .kind = kind, .cpu = -1, .text = "over" };
        return true;
}

int alarms_push(Alarms *a, const AlarmRules *rules, const Sample *s, AlarmEvent ret[ALARM_N], size_t *ret_n) {
        size_t n = 0;
        int r;

        r = follow_machine(a, s->machine);
        if (r < 0)
                return r;
        for (unsigned k = 0; k < ALARM_N && !s->h.is_first; k++) {
                Worst w = {};

                judge_all(a, (AlarmKind) k, rules, s, &w);
                n += condition_step(&a->conditions[k], (AlarmKind) k, rules, s->machine, &w, &ret[n]);
        }
        *ret_n = n;
        return 0;
}
