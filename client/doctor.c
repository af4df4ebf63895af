/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rules. Each looks at the facts, remembers the worst place, and writes at most one finding: a person reads a
 * list of
 * causes, not of CPUs. Limits are deliberately far from what a healthy machine shows; each stands beside its rule.
 */

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/doctor.h"

typedef struct Findings {
        DoctorFinding *list;
        size_t n;
} Findings;

void doctor_facts_deinit(DoctorFacts *f) {
        free(f->cpus);
        free(f->cores);
        free(f->packages);
        *f = (DoctorFacts){};
}

static DoctorFinding *add(Findings *f, const char *id, unsigned weight, const char *title, const char *advice) {
        DoctorFinding *x;

        if (f->n == DOCTOR_FINDINGS_MAX)
                return NULL;
        x = &f->list[f->n++];
        *x = (DoctorFinding){ .id = id, .weight = weight };
        (void) snprintf(x->title, sizeof(x->title), "%s", title);
        (void) snprintf(x->advice, sizeof(x->advice), "%s", advice);
        return x;
}

static _printf_(2, 3) void say(DoctorFinding *x, const char *format, ...) {
        va_list ap;

        if (!x)
                return;
        va_start(ap, format);
        (void) vsnprintf(x->evidence, sizeof(x->evidence), format, ap);
        va_end(ap);
}

/* Unknown values never exceed a limit. */
static bool exceeds(double v, double limit) {
        return isfinite(v) && v > limit;
}

static double zero_if_unknown(double v) {
        return isfinite(v) ? v : 0;
}

/* ---- what the machine is ---- */

static void rule_erratum(const DoctorFacts *f, Findings *out) {
        if (f->erratum[0])
                say(add(out, "erratum", 100, "The kernel does not work around an erratum of this CPU",
                            f->erratum_advice),
                        "%s has erratum %s and the bugs line of /proc/cpuinfo does not list it",
                        f->erratum_model, f->erratum);
}

static void rule_disabled_states(const DoctorFacts *f, Findings *out) {
        char names[64] = "";
        uint32_t n_cpus = 0;

        for (size_t i = 0; i < f->n_cpus; i++) {
                bool any = false;

                for (size_t k = 0; k < f->cpus[i].n_states; k++) {
                        const DoctorState *s = &f->cpus[i].states[k];

                        if (!s->disabled || s->is_poll)
                                continue;
                        any = true;
                        if (!strstr(names, s->name))
                                (void) snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
                                        names[0] ? ", " : "", s->name);
                }
                n_cpus += any;
        }
        if (n_cpus > 0)
                say(add(out, "states-disabled", 70, "Idle states are disabled",
                            "Write 0 to /sys/devices/system/cpu/cpu*/cpuidle/state*/disable, or find what "
                            "writes 1 there (tuned, "
                            "cpupower idle-set, a boot script)."),
                        "%s on %u of %zu CPUs", names, n_cpus, f->n_cpus);
}

static void rule_package_limit(const DoctorFacts *f, Findings *out) {
        if (f->pkg_limit_blocks)
                say(add(out, "package-limit", 60, "The firmware limits package C-states",
                            "Look for \"Package C-state\" in the BIOS set-up; the register is locked by the "
                            "firmware, no kernel "
                            "parameter lifts it."),
                        "MSR 0xE2 allows no deeper than %s", f->pkg_limit);
}

static void rule_power_denied(const DoctorFacts *f, Findings *out) {
        if (f->power_denied)
                say(add(out, "power-denied", 20, "Power readings are denied",
                            "Run the daemon with CAP_SYS_RAWIO and CAP_DAC_READ_SEARCH, as its unit does; "
                            "kernel lockdown forbids "
                            "MSRs to everybody."),
                        "%s", f->denied_hint);
        else if (f->msr_denied)
                say(add(out, "counters-denied", 15, "Hardware counters are denied",
                            "Granted residency, frequency and temperatures are missing. Run the daemon with "
                            "CAP_SYS_RAWIO and "
                            "CAP_DAC_READ_SEARCH, as its unit does; kernel lockdown forbids MSRs to "
                            "everybody."),
                        "%s", f->denied_hint);
}

static void rule_problems(const DoctorFacts *f, Findings *out) {
        if (f->problems[0])
                say(add(out, "degraded", 30, "The daemon itself is degraded", "See cstatectl status."), "%s",
                        f->problems);
}

/* ---- what it does ---- */

/* The limits of the daemon's own alarm: 10 % of the exits and 100 a second. */
static void rule_break_storm(const DoctorFacts *f, Findings *out) {
        const DoctorCpu *worst = NULL;
        size_t n = 0;

        for (size_t i = 0; i < f->n_cpus; i++) {
                const DoctorCpu *c = &f->cpus[i];

                if (!exceeds(c->breaks, 100) || c->breaks <= 0.1 * zero_if_unknown(c->wakeups))
                        continue;
                n++;
                if (!worst || c->breaks > worst->breaks)
                        worst = c;
        }
        if (worst)
                say(add(out, "break-storm", 90, "CPUs wake for nothing",
                            f->erratum[0] ? "This is what the erratum above does: get a kernel that works "
                                            "around it."
                            : f->break_method[0] ? "Counted as sleeps without an interrupt, so writes by "
                                                   "other CPUs are among them: let "
                                                   "idletrace run (BPF) to tell them apart; then look at "
                                                   "the errata of MONITOR/MWAIT."
                                                 : "MWAIT returns without interrupt or store: look for a "
                                                   "kernel change, at the errata of "
                                                   "MONITOR/MWAIT, and whether idle=halt ends it."),
                        "CPU %" PRIu32 ": %.0f of %.0f wakeups a second%s%s; %zu of %zu CPUs are affected",
                        worst->id, worst->breaks, zero_if_unknown(worst->wakeups),
                        f->break_method[0] ? ", method " : "", f->break_method, n, f->n_cpus);
}

/* C6 or deeper requested, but more than 20 points of it not granted. */
static void rule_demotion(const DoctorFacts *f, Findings *out) {
        const DoctorCore *worst = NULL;
        size_t n = 0;

        for (size_t i = 0; i < f->n_cores; i++) {
                if (!exceeds(f->cores[i].demotion, 20))
                        continue;
                n++;
                if (!worst || f->cores[i].demotion > worst->demotion)
                        worst = &f->cores[i];
        }
        if (worst)
                say(add(out, "demotion", 65, "Deep idle is requested but not granted",
                            "The hardware demotes: look at C1 demotion (cstatectl cpu; MSR 0xE2), at BIOS "
                            "C-state settings, and at "
                            "devices that keep the package from its state."),
                        "core %" PRId64 " of package %" PRId64
                        ": %.1f points of the time asked for in C6 or deeper were not granted; "
                        "%zu of %zu cores",
                        worst->core, worst->package, worst->demotion, n, f->n_cores);
}

static double median_irq(const DoctorFacts *f) {
        double below = -1;

        /* The largest value that at least half of the CPUs do not exceed; n is small and this runs once. */
        for (size_t i = 0; i < f->n_cpus; i++) {
                size_t n = 0;

                for (size_t k = 0; k < f->n_cpus; k++)
                        n += zero_if_unknown(f->cpus[k].irq) >= zero_if_unknown(f->cpus[i].irq);
                if (2 * n >= f->n_cpus && zero_if_unknown(f->cpus[i].irq) > below)
                        below = zero_if_unknown(f->cpus[i].irq);
        }
        return below;
}

/* A mostly idle CPU with more than 500 interrupts a second, and ten times what the others have. */
static void rule_interrupts(const DoctorFacts *f, Findings *out) {
        double median = median_irq(f);
        const DoctorCpu *worst = NULL;
        size_t n = 0;

        for (size_t i = 0; i < f->n_cpus; i++) {
                const DoctorCpu *c = &f->cpus[i];

                if (!exceeds(c->irq, MAX(500.0, 10 * median)) || exceeds(c->busy, 50))
                        continue;
                n++;
                if (!worst || c->irq > worst->irq)
                        worst = c;
        }
        if (worst)
                say(add(out, "interrupts", 50, "Interrupts or a timer keep a CPU awake",
                            "See which row of /proc/interrupts moves on that CPU; move the IRQ "
                            "(smp_affinity, irqbalance), or find the "
                            "process whose timer it is (perf record -e timer:hrtimer_expire_entry -C CPU)."),
                        "CPU %" PRIu32 ": %.0f interrupts a second, the median CPU has %.0f; %zu such CPU%s",
                        worst->id, worst->irq, median, n, n == 1 ? "" : "s");
}

/* Entries times exit latency: more than 1 % of the time spent waking up. */
static void rule_latency(const DoctorFacts *f, Findings *out) {
        const DoctorCpu *worst = NULL;
        double worst_percent = 1;
        size_t n = 0;

        for (size_t i = 0; i < f->n_cpus; i++) {
                double percent = 0;

                for (size_t k = 0; k < f->cpus[i].n_states; k++)
                        percent += zero_if_unknown(f->cpus[i].states[k].usage) *
                                   f->cpus[i].states[k].exit_latency_us / 1e4;
                n += percent > 1;
                if (percent > worst_percent) {
                        worst_percent = percent;
                        worst = &f->cpus[i];
                }
        }
        if (worst)
                say(add(out, "exit-latency", 40, "Time is lost waking up from idle",
                            "Fewer wakeups help: coalesce timers and interrupts. Or give up the deepest "
                            "state on these CPUs "
                            "(cpupower idle-set) at the price of power."),
                        "CPU %" PRIu32 ": idle entries times exit latency are %.1f %% of the time; %zu of "
                                       "%zu CPUs above 1 %%",
                        worst->id, worst_percent, n, f->n_cpus);
}

/* More than half of a state's sleeps shorter than its target residency, at ten or more a second. */
static void rule_too_short(const DoctorFacts *f, Findings *out) {
        const DoctorState *worst = NULL;
        uint32_t cpu = 0;
        double share = 0.5;
        size_t n = 0;

        for (size_t i = 0; i < f->n_cpus; i++) {
                bool any = false;

                for (size_t k = 0; k < f->cpus[i].n_states; k++) {
                        const DoctorState *s = &f->cpus[i].states[k];

                        if (s->is_poll || !exceeds(s->usage, 10) || !exceeds(s->above, 0.5 * s->usage))
                                continue;
                        any = true;
                        if (s->above / s->usage > share) {
                                share = s->above / s->usage;
                                worst = s;
                                cpu = f->cpus[i].id;
                        }
                }
                n += any;
        }
        if (worst)
                say(add(out, "too-short", 45, "Most sleeps are too short for the state the governor picks",
                            "The governor mispredicts: try another one (menu, teo, haltpoll: "
                            "/sys/devices/system/cpu/cpuidle/current_governor). With breaks above, they are "
                            "the cause."),
                        "CPU %" PRIu32
                        ": %.0f %% of %.0f sleeps a second in %s end before %u us; %zu of %zu CPUs",
                        cpu, 100 * share, worst->usage, worst->name, worst->target_residency_us, n,
                        f->n_cpus);
}

static bool same_package(const DoctorCore *c, const DoctorPackage *p) {
        return c->package == p->package && (p->die < 0 || c->die < 0 || c->die == p->die);
}

/*
 * All cores of a package but a few deeply idle (above 70 %), the few busy (above 30 %), and the package hardly
 * ever.
 */
static void rule_one_busy_core(const DoctorFacts *f, Findings *out) {
        for (size_t i = 0; i < f->n_packages; i++) {
                const DoctorPackage *p = &f->packages[i];
                const DoctorCore *busy = NULL;
                size_t n = 0, n_deep = 0, n_busy = 0;

                if (!isfinite(p->deep) || p->deep > 10)
                        continue;
                for (size_t k = 0; k < f->n_cores; k++) {
                        if (!same_package(&f->cores[k], p))
                                continue;
                        n++;
                        n_deep += exceeds(f->cores[k].deep, 70);
                        if (exceeds(f->cores[k].busy, 30)) {
                                n_busy++;
                                busy = &f->cores[k];
                        }
                }
                if (n < 4 || n_busy == 0 || n_busy * 4 > n || n_deep + n_busy < n)
                        continue;
                say(add(out, "one-busy-core", 55, "A few busy cores keep a whole package from idling",
                            "Move that work to the other package, or let it run in bursts; the package's "
                            "deep state needs every core."),
                        "package %" PRId64 ": %.1f %% in its deep states, though %zu of %zu cores are "
                                           "deeply idle; core %" PRId64 " is %.0f %% busy",
                        p->package, p->deep, n_deep, n, busy->core, busy->busy);
                return;
        }
}

/* The deepest enabled state is never asked for, though shallower sleeps would have been long enough. */
static void rule_never_deep(const DoctorFacts *f, Findings *out) {
        const DoctorState *shallow = NULL, *deep = NULL;
        uint32_t cpu = 0;
        size_t n = 0;

        for (size_t i = 0; i < f->n_cpus; i++) {
                const DoctorCpu *c = &f->cpus[i];
                const DoctorState *last = c->n_states > 2 ? &c->states[c->n_states - 1] : NULL;
                const DoctorState *missed = NULL;

                if (!last || last->disabled || zero_if_unknown(last->usage) > 0.1 || exceeds(c->busy, 70))
                        continue;
                for (size_t k = 0; k + 1 < c->n_states; k++)
                        if (!c->states[k].is_poll && exceeds(c->states[k].usage, 1) &&
                                exceeds(c->states[k].below, 0.5 * c->states[k].usage))
                                missed = &c->states[k];
                if (!missed)
                        continue;
                n++;
                shallow = missed;
                deep = last;
                cpu = c->id;
        }
        if (shallow)
                say(add(out, "never-deep", 68, "The deepest idle state is never asked for",
                            "Something asks for low latency: who has /dev/cpu_dma_latency open (lsof; tuned "
                            "profiles "
                            "latency-performance, network-latency), or "
                            "cpu*/power/pm_qos_resume_latency_us?"),
                        "CPU %" PRIu32 ": %.0f %% of the sleeps in %s were long enough for a deeper state, "
                                       "%s was never entered; %zu of "
                        "%zu CPUs",
                        cpu, 100 * shallow->below / shallow->usage, shallow->name, deep->name, n, f->n_cpus);
}

bool doctor_saw_idle(const DoctorFacts *f) {
        for (size_t i = 0; i < f->n_cpus; i++) {
                if (isfinite(f->cpus[i].wakeups))
                        return true;
                for (size_t k = 0; k < f->cpus[i].n_states; k++)
                        if (isfinite(f->cpus[i].states[k].usage))
                                return true;
        }
        return false;
}

static int by_weight(const void *a, const void *b) {
        const DoctorFinding *x = a, *y = b;

        return x->weight == y->weight ? strcmp(x->id, y->id) : x->weight < y->weight ? 1 : -1;
}

size_t doctor_examine(const DoctorFacts *f, DoctorFinding ret[DOCTOR_FINDINGS_MAX]) {
        static void (*const rules[])(const DoctorFacts *f, Findings *out) = {
                rule_erratum,
                rule_break_storm,
                rule_disabled_states,
                rule_never_deep,
                rule_demotion,
                rule_package_limit,
                rule_one_busy_core,
                rule_interrupts,
                rule_too_short,
                rule_latency,
                rule_problems,
                rule_power_denied,
        };
        Findings out = { .list = ret };

        for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
                rules[i](f, &out);
        qsort(ret, out.n, sizeof(*ret), by_weight);
        return out.n;
}
