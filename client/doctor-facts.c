/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The doctor's facts out of the daemon's JSON: rows of the summary sorted into CPUs, cores and packages. */

#include <errno.h>
#include <math.h>
#include <string.h>

#include "client/doctor-facts.h"
#include "client/text.h"
#include "cstated/num.h"

const char *const doctor_questions[DOCTOR_QUESTIONS][2] = {
        { "cpu", "busy,irq,wakeups,wakeups_break,idle_usage,idle_above,idle_below,idle_time" },
        { "core", "c6,c7,demotion" },
        { "package", "pc3,pc6,pc7,pc8,pc9,pc10" },
};

/* NAN where there is no number. */
static double number(json_t *o, const char *key) {
        json_t *v = json_object_get(o, key);

        return json_is_number(v) ? json_number_value(v) : NAN;
}

static int64_t id(json_t *o, const char *key) {
        json_t *v = json_object_get(o, key);

        return json_is_integer(v) ? json_integer_value(v) : -1;
}

static void copy(char *to, size_t size, const char *from) {
        (void) snprintf(to, size, "%s", from);
}

/* ---- who it is ---- */

static void take_errata(json_t *cpu, DoctorFacts *f) {
        json_t *kind, *erratum;
        size_t i, k;

        json_array_foreach(json_object_get(cpu, "cpus"), i, kind)
                json_array_foreach(json_object_get(kind, "errata"), k, erratum) {
                        if (strcmp(text_of(erratum, "status"), "unmitigated") != 0 || f->erratum[0])
                                continue;
                        copy(f->erratum, sizeof(f->erratum), text_of(erratum, "id"));
                        copy(f->erratum_advice, sizeof(f->erratum_advice), text_of(erratum, "advice"));
                        copy(f->erratum_model, sizeof(f->erratum_model),
                                text_of(kind, *text_of(kind, "uarch") ? "uarch" : "brand"));
                }
}

/* "pc6", "pc6n", "pc10": the number; false for everything else. */
static bool package_level(const char *name, uint64_t *ret) {
        char digits[4] = "";

        if (strncmp(name, "pc", 2) != 0)
                return false;
        for (size_t i = 0; i < sizeof(digits) - 1 && name[2 + i] >= '0' && name[2 + i] <= '9'; i++)
                digits[i] = name[2 + i];
        return num_parse_u64(digits, ret) == 0;
}

/* The firmware's limit matters where the package has a state deeper than it; "unlimited" and raw values never do. */
static void take_package_limit(json_t *cpu, json_t *packages, DoctorFacts *f) {
        const char *limit = text_of(json_object_get(cpu, "pkg_cst"), "limit");
        uint64_t allowed, deepest = 0, level;
        json_t *row;
        size_t i;

        copy(f->pkg_limit, sizeof(f->pkg_limit), limit);
        if (!package_level(limit, &allowed))
                return;
        json_array_foreach(json_object_get(packages, "rows"), i, row)
                if (package_level(text_of(row, "metric"), &level))
                        deepest = MAX(deepest, level);
        f->pkg_limit_blocks = allowed < deepest;
}

static void take_status(json_t *status, DoctorFacts *f) {
        json_t *source, *problem;
        bool traced = false, powercap_ok = false;
        size_t i;

        json_array_foreach(json_object_get(status, "sources"), i, source) {
                const char *name = text_of(source, "name"), *state = text_of(source, "state");
                bool msr = strcmp(name, "msr") == 0, denied = strcmp(state, "denied") == 0;

                traced |= strcmp(name, "idletrace") == 0 && strcmp(state, "ok") == 0;
                powercap_ok |= strcmp(name, "powercap") == 0 && strcmp(state, "ok") == 0;
                f->msr_denied |= msr && denied;
                if (denied && (msr || !f->denied_hint[0]))
                        copy(f->denied_hint, sizeof(f->denied_hint), text_of(source, "hint"));
        }
        f->power_denied = f->msr_denied && !powercap_ok;
        copy(f->break_method, sizeof(f->break_method), traced ? "" : "bound");
        json_array_foreach(json_object_get(status, "problems"), i, problem) {
                const char *s = json_string_value(problem);
                size_t n = strlen(f->problems);

                /* Sources and errata have rules of their own. */
                if (s && strncmp(s, "erratum", 7) != 0 && strncmp(s, "source msr", 10) != 0 &&
                        strncmp(s, "source powercap", 15) != 0)
                        (void) snprintf(f->problems + n, sizeof(f->problems) - n, "%s%s", n > 0 ? "; " : "", s);
        }
}

/* ---- what it did ---- */

static void *grow(void *list, size_t n, size_t size) {
        return n % 64 == 0 ? reallocarray(list, n + 64, size) : list;
}

static DoctorCpu *cpu_of(DoctorFacts *f, json_t *row) {
        int64_t cpu = id(row, "cpu");
        void *p;

        for (size_t i = f->n_cpus; i-- > 0;)
                if (f->cpus[i].id == cpu)
                        return &f->cpus[i];
        p = grow(f->cpus, f->n_cpus, sizeof(*f->cpus));
        if (!p)
                return NULL;
        f->cpus = p;
        f->cpus[f->n_cpus] = (DoctorCpu){
                .id = (uint32_t) cpu, .package = id(row, "package"), .core = id(row, "core"),
                .busy = NAN, .irq = NAN, .wakeups = NAN, .breaks = NAN,
        };
        return &f->cpus[f->n_cpus++];
}

static DoctorCore *core_of(DoctorFacts *f, int64_t package, int64_t die, int64_t core) {
        void *p;

        for (size_t i = f->n_cores; i-- > 0;)
                if (f->cores[i].package == package && f->cores[i].core == core &&
                        (die < 0 || f->cores[i].die < 0 || f->cores[i].die == die))
                        return &f->cores[i];
        p = grow(f->cores, f->n_cores, sizeof(*f->cores));
        if (!p)
                return NULL;
        f->cores = p;
        f->cores[f->n_cores] = (DoctorCore){
                .package = package, .die = die, .core = core, .deep = NAN, .demotion = NAN, .busy = NAN
        };
        return &f->cores[f->n_cores++];
}

static DoctorPackage *package_of(DoctorFacts *f, int64_t package, int64_t die) {
        void *p;

        for (size_t i = 0; i < f->n_packages; i++)
                if (f->packages[i].package == package && f->packages[i].die == die)
                        return &f->packages[i];
        p = grow(f->packages, f->n_packages, sizeof(*f->packages));
        if (!p)
                return NULL;
        f->packages = p;
        f->packages[f->n_packages] = (DoctorPackage){ .package = package, .die = die, .deep = NAN };
        return &f->packages[f->n_packages++];
}

static DoctorState *state_of(DoctorCpu *c, const char *name) {
        for (size_t i = 0; i < c->n_states; i++)
                if (strcmp(c->states[i].name, name) == 0)
                        return &c->states[i];
        if (c->n_states == DOCTOR_STATES_MAX)
                return NULL;
        c->states[c->n_states] = (DoctorState){
                .usage = NAN, .above = NAN, .below = NAN, .time_percent = NAN, .mwait_hint = -1
        };
        copy(c->states[c->n_states].name, sizeof(c->states[0].name), name);
        return &c->states[c->n_states++];
}

static void add_to(double *sum, double v) {
        if (isfinite(v))
                *sum = isfinite(*sum) ? *sum + v : v;
}

static int take_state_row(DoctorCpu *c, const char *metric, json_t *row) {
        DoctorState *s = state_of(c, text_of(row, "state"));
        double mean = number(row, "mean");

        if (!s)
                return 0;
        if (strcmp(metric, "idle_usage") == 0)
                s->usage = mean;
        else if (strcmp(metric, "idle_above") == 0)
                s->above = mean;
        else if (strcmp(metric, "idle_below") == 0)
                s->below = mean;
        else
                s->time_percent = mean;
        return 0;
}

static int take_cpu_row(DoctorFacts *f, const char *metric, json_t *row) {
        DoctorCpu *c = cpu_of(f, row);
        DoctorCore *core;

        if (!c)
                return -ENOMEM;
        if (strncmp(metric, "idle_", 5) == 0)
                return take_state_row(c, metric, row);
        if (strcmp(metric, "irq") == 0)
                c->irq = number(row, "mean");
        else if (strcmp(metric, "wakeups") == 0)
                c->wakeups = number(row, "mean");
        else if (strcmp(metric, "wakeups_break") == 0)
                c->breaks = number(row, "mean");
        else if (strcmp(metric, "busy") == 0) {
                c->busy = number(row, "mean");
                core = core_of(f, c->package, id(row, "die"), c->core);
                if (!core)
                        return -ENOMEM;
                if (isfinite(c->busy))
                        core->busy = fmax(c->busy, isfinite(core->busy) ? core->busy : 0);
        }
        return 0;
}

static int take_row(DoctorFacts *f, json_t *row) {
        const char *metric = text_of(row, "metric"), *scope = text_of(row, "scope");
        int64_t package = id(row, "package"), die = id(row, "die");
        DoctorPackage *p;
        DoctorCore *c;

        if (strcmp(scope, "cpu") == 0)
                return take_cpu_row(f, metric, row);
        if (strcmp(scope, "core") == 0) {
                c = core_of(f, package, die, id(row, "core"));
                if (!c)
                        return -ENOMEM;
                if (strcmp(metric, "demotion") == 0)
                        c->demotion = number(row, "mean");
                else
                        add_to(&c->deep, number(row, "mean"));
        } else if (strcmp(scope, "package") == 0) {
                p = package_of(f, package, die);
                if (!p)
                        return -ENOMEM;
                add_to(&p->deep, number(row, "mean"));
        }
        return 0;
}

static void take_state_facts(DoctorState *to, json_t *state) {
        json_t *hint = json_object_get(state, "mwait_hint");

        to->exit_latency_us = (uint32_t) json_integer_value(json_object_get(state, "exit_latency_us"));
        to->target_residency_us = (uint32_t) json_integer_value(json_object_get(state, "target_residency_us"));
        to->disabled = json_is_true(json_object_get(state, "disabled"));
        to->is_poll = strcmp(to->name, "POLL") == 0;
        to->mwait_hint = json_is_integer(hint) ? (int) json_integer_value(hint) : -1;
}

/* Latencies and switches of the states, from the inventory of the set each CPU belongs to. */
static int take_idle_sets(DoctorFacts *f, json_t *cpu) {
        json_t *set, *state;
        size_t i, k;

        json_array_foreach(json_object_get(json_object_get(cpu, "idle"), "sets"), i, set) {
                _cleanup_free_ uint32_t *ids = NULL;
                size_t n = 0;

                if (num_parse_cpulist(text_of(set, "cpus"), 65536, &ids, &n) < 0)
                        return -EBADMSG;
                for (size_t c = 0, at = 0; c < f->n_cpus; c++) {
                        for (at = 0; at < n && ids[at] != f->cpus[c].id; at++)
                                ;
                        if (at == n)
                                continue;
                        json_array_foreach(json_object_get(set, "states"), k, state) {
                                DoctorState *to = state_of(&f->cpus[c], text_of(state, "name"));

                                if (to)
                                        take_state_facts(to, state);
                        }
                }
        }
        return 0;
}

int doctor_facts_from_json(
        json_t *cpu, json_t *status, json_t *const summaries[DOCTOR_QUESTIONS], DoctorFacts *ret) {
        DoctorFacts f = {};
        json_t *row;
        size_t i;
        int r = 0;

        take_errata(cpu, &f);
        take_package_limit(cpu, summaries[DOCTOR_QUESTIONS - 1], &f);
        take_status(status, &f);
        f.seconds = (number(summaries[0], "end") - number(summaries[0], "start")) / 1000;
        for (size_t q = 0; q < DOCTOR_QUESTIONS; q++)
                json_array_foreach(json_object_get(summaries[q], "rows"), i, row)
                        if (r == 0)
                                r = take_row(&f, row);
        if (r == 0)
                r = take_idle_sets(&f, cpu);
        if (r < 0) {
                doctor_facts_deinit(&f);
                return r;
        }
        *ret = f;
        return 0;
}
