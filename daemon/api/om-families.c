/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The families of /metrics made of counters. Names are public interface. Sums over a package hold every CPU
 * it ever had, so that a counter does not fall when one goes offline; a series of a single CPU or core ends
 * with it.
 */

#include <string.h>

#include "cstated/num.h"

#include "api/om-view.h"

/* ---- idle states as the kernel asked for them ---- */

static void lines_by_state(OpenMetrics *o, const OmView *v, FieldId field) {
        const TotalsEntity *entities;
        size_t n = totals_entities(v->t, SCOPE_CPU, &entities);

        for (size_t i = 0; i < n; i++) {
                if (!om_view_is_online(v, SCOPE_CPU, &entities[i]))
                        continue;
                for (uint8_t k = 0; k < IDLE_STATES_MAX; k++) {
                        const char *name = totals_state_name(v->t, i, k);
                        TotalsColumn c;

                        if (!name || !totals_column(v->t, field, k, &c) || !c.seen[i])
                                continue;
                        om_line(o);
                        om_label_id(o, "cpu", entities[i].cpu);
                        om_label(o, "state", name);
                        om_view_put(o, v, &c, om_view_value(v, &c, c.values[i]));
                }
        }
}

static void family_states(OpenMetrics *o, const OmView *v, const char *name, const char *unit, FieldId field,
        FieldId other, const char *help) {
        if (!om_view_has(v, field))
                field = other;
        if (field == FIELD_NONE || !om_view_has(v, field))
                return;
        om_family(o, name, FAMILY_COUNTER, unit, help);
        lines_by_state(o, v, field);
}

static void families_cpuidle(OpenMetrics *o, Service *s, bool wide) {
        OmView v;

        if (!wide || !om_view_begin(&v, s))
                return;
        family_states(o, &v, "cstated_cpuidle_state_seconds", "seconds", FIELD_IDLE_TIME, FIELD_TRACE_NS,
                "Time the CPU spent in an idle state as the kernel asked for it.");
        family_states(o, &v, "cstated_cpuidle_state_usage", NULL, FIELD_IDLE_USAGE, FIELD_TRACE_ENTRIES,
                "How often the kernel asked for an idle state.");
        family_states(o, &v, "cstated_cpuidle_state_above", NULL, FIELD_IDLE_ABOVE, FIELD_NONE,
                "Sleeps shorter than the state's target residency.");
        family_states(o, &v, "cstated_cpuidle_state_below", NULL, FIELD_IDLE_BELOW, FIELD_NONE,
                "Sleeps long enough for a deeper state.");
        family_states(o, &v, "cstated_cpuidle_state_rejected", NULL, FIELD_IDLE_REJECTED, FIELD_NONE,
                "Requests the driver refused.");
}

/* Each name of a state once, whichever CPU had it. */
static void families_package_cpuidle(OpenMetrics *o, Service *s, bool wide) {
        char names[32][16];
        size_t n_names = 0, n;
        const TotalsEntity *entities;
        FieldId field;
        OmView v;

        if (!om_view_begin(&v, s))
                return;
        field = om_view_has(&v, FIELD_IDLE_TIME) ? FIELD_IDLE_TIME : FIELD_TRACE_NS;
        if (!om_view_has(&v, field))
                return;
        n = totals_entities(v.t, SCOPE_CPU, &entities);
        for (size_t i = 0; i < n; i++)
                for (uint8_t k = 0; k < IDLE_STATES_MAX; k++) {
                        const char *name = totals_state_name(v.t, i, k);
                        bool known = !name;

                        for (size_t a = 0; a < n_names && !known; a++)
                                known = strcmp(names[a], name) == 0;
                        if (!known && n_names < ARRAY_SIZE(names))
                                (void) snprintf(names[n_names++], sizeof(names[0]), "%s", name);
                }
        om_family(o, "cstated_package_cpuidle_state_seconds", FAMILY_COUNTER, "seconds",
                "Time the package's CPUs together spent in an idle state as the kernel asked for it.");
        for (size_t i = 0; i < n_names; i++)
                om_lines_by_package(o, &v, field, names[i], "state", names[i]);
}

/* ---- idle states as the hardware granted them ---- */

static const struct {
        FieldId field;
        const char *state;
} core_states[] = {
        { FIELD_C3, "c3" }, { FIELD_C6, "c6" }, { FIELD_C7, "c7" },
}, package_states[] = {
        { FIELD_PC2, "pc2" }, { FIELD_PC3, "pc3" }, { FIELD_PC6, "pc6" }, { FIELD_PC7, "pc7" },
        { FIELD_PC8, "pc8" }, { FIELD_PC9, "pc9" }, { FIELD_PC10, "pc10" },
};

static void families_granted(OpenMetrics *o, Service *s, bool wide) {
        OmView v;

        if (!om_view_begin(&v, s))
                return;
        om_family(o, "cstated_package_cstate_seconds", FAMILY_COUNTER, "seconds",
                "Time the package was granted a state.");
        for (size_t i = 0; i < ARRAY_SIZE(package_states); i++)
                om_lines_by_entity(o, &v, package_states[i].field, "state", package_states[i].state);
        om_family(o, "cstated_package_core_cstate_seconds", FAMILY_COUNTER, "seconds",
                "Time the package's cores together were granted a state.");
        for (size_t i = 0; i < ARRAY_SIZE(core_states); i++)
                om_lines_by_package(o, &v, core_states[i].field, NULL, "state", core_states[i].state);
        if (!wide)
                return;
        om_family(o, "cstated_core_cstate_seconds", FAMILY_COUNTER, "seconds",
                "Time the core was granted a state.");
        for (size_t i = 0; i < ARRAY_SIZE(core_states); i++)
                om_lines_by_entity(o, &v, core_states[i].field, "state", core_states[i].state);
        if (om_view_has(&v, FIELD_MC6)) {
                om_family(o, "cstated_module_cstate_seconds", FAMILY_COUNTER, "seconds",
                        "Time the module was granted a state.");
                om_lines_by_entity(o, &v, FIELD_MC6, "state", "c6");
        }
}

static void families_busy(OpenMetrics *o, Service *s, bool wide) {
        FieldId field = FIELD_MPERF;
        const char *method = NULL;
        OmView v;

        if (!om_view_begin(&v, s))
                return;
        if (!om_view_has(&v, FIELD_MPERF)) {
                field = FIELD_STAT_BUSY;
                method = "stat";
        }
        om_family(o, "cstated_package_cpu_unhalted_seconds", FAMILY_COUNTER, "seconds",
                "Time the package's CPUs together were in C0.");
        om_lines_by_package(o, &v, field, NULL, method ? "method" : NULL, method);
        if (!wide)
                return;
        om_family(o, "cstated_cpu_unhalted_seconds", FAMILY_COUNTER, "seconds", "Time the CPU was in C0.");
        om_lines_by_entity(o, &v, field, method ? "method" : NULL, method);
}

/* ---- energy and heat ---- */

static void families_rapl(OpenMetrics *o, Service *s, bool wide) {
        static const struct {
                FieldId field;
                const char *zone;
        } zones[] = {
                { FIELD_ENERGY_PKG, "package" },
                { FIELD_ENERGY_RAM, "dram" },
                { FIELD_ENERGY_COR, "core" },
                { FIELD_ENERGY_GFX, "uncore" },
                { FIELD_ENERGY_SYS, "psys" },
        };
        OmView v;

        if (!om_view_begin(&v, s))
                return;
        om_family(o, "cstated_rapl_joules", FAMILY_COUNTER, "joules",
                "Energy by zone; core and uncore are parts of package, dram is not, psys is the whole "
                "platform.");
        for (size_t i = 0; i < ARRAY_SIZE(zones); i++)
                om_lines_by_entity(o, &v, zones[i].field, "zone", zones[i].zone);
        if (om_view_has(&v, FIELD_ENERGY_CORE))
                om_lines_by_package(o, &v, FIELD_ENERGY_CORE, NULL, "zone", "core");
}

static void families_heat(OpenMetrics *o, Service *s, bool wide) {
        OmView v;

        if (!om_view_begin(&v, s))
                return;
        if (om_view_has(&v, FIELD_PKG_TEMP)) {
                om_family(o, "cstated_package_temperature_celsius", FAMILY_GAUGE, "celsius",
                        "Temperature of the package.");
                om_lines_by_entity(o, &v, FIELD_PKG_TEMP, NULL, NULL);
        }
        if (wide && om_view_has(&v, FIELD_CORE_TEMP)) {
                om_family(o, "cstated_core_temperature_celsius", FAMILY_GAUGE, "celsius",
                        "Temperature of the core.");
                om_lines_by_entity(o, &v, FIELD_CORE_TEMP, NULL, NULL);
        }
}

/* ---- wakeups ---- */

static const struct {
        FieldId field;
        const char *cause;
} causes[] = {
        { FIELD_WAKE_INTERRUPT, "interrupt" },
        { FIELD_WAKE_STORE, "store" },
        { FIELD_WAKE_BREAK, "break" },
};

/* A CPU's wakeups: its idle states that sleep added up. */
static void lines_by_cpu(
        OpenMetrics *o, const OmView *v, FieldId field, const char *label, const char *value) {
        const TotalsEntity *entities;
        size_t n = totals_entities(v->t, SCOPE_CPU, &entities);

        for (size_t i = 0; i < n; i++) {
                int64_t sum = 0;
                bool seen = false;

                for (uint8_t k = 0; k < (field_is_by_state(field) ? IDLE_STATES_MAX : 1); k++) {
                        const char *name = field_is_by_state(field) ? totals_state_name(v->t, i, k) : NULL;
                        TotalsColumn c;

                        if ((name && om_is_poll(name)) || !totals_column(v->t, field, k, &c) || !c.seen[i])
                                continue;
                        sum += c.values[i];
                        seen = true;
                }
                if (!seen || !om_view_is_online(v, SCOPE_CPU, &entities[i]))
                        continue;
                om_line(o);
                om_label_id(o, "cpu", entities[i].cpu);
                om_label(o, label, value);
                om_count(o, sum);
        }
}

static void families_wakeups(OpenMetrics *o, Service *s, bool wide) {
        FieldId total;
        bool traced;
        OmView v;

        if (!om_view_begin(&v, s))
                return;
        traced = om_view_has(&v, FIELD_WAKE_BREAK);
        total = om_view_has(&v, FIELD_IDLE_USAGE) ? FIELD_IDLE_USAGE : FIELD_TRACE_ENTRIES;
        if (!traced && !om_view_has(&v, total))
                return;
        om_family(o, "cstated_package_idle_wakeups", FAMILY_COUNTER, NULL,
                "Sleeps of the package's CPUs that ended, by cause; unknown where nothing traces them.");
        for (size_t i = 0; i < ARRAY_SIZE(causes) && traced; i++)
                om_lines_by_package(o, &v, causes[i].field, NULL, "cause", causes[i].cause);
        if (!traced)
                om_lines_by_package(o, &v, total, NULL, "cause", "unknown");
        if (!wide)
                return;
        om_family(
                o, "cstated_idle_wakeups", FAMILY_COUNTER, NULL, "Sleeps of the CPU that ended, by cause.");
        for (size_t i = 0; i < ARRAY_SIZE(causes) && traced; i++)
                lines_by_cpu(o, &v, causes[i].field, "cause", causes[i].cause);
        if (!traced)
                lines_by_cpu(o, &v, total, "cause", "unknown");
}

static void families_breaks(OpenMetrics *o, Service *s, bool wide) {
        FieldId field = FIELD_WAKE_BREAK;
        const char *method = "trace";
        OmView v;

        if (!om_view_begin(&v, s))
                return;
        if (!om_view_has(&v, field)) {
                field = FIELD_BOUND_BREAK;
                method = "bound";
        }
        if (!om_view_has(&v, field))
                return;
        om_family(o, "cstated_package_idle_break_wakeups", FAMILY_COUNTER, NULL,
                "Sleeps of the package's CPUs that ended for nothing; method bound is a lower bound.");
        om_lines_by_package(o, &v, field, NULL, "method", method);
        if (!wide)
                return;
        om_family(o, "cstated_idle_break_wakeups", FAMILY_COUNTER, NULL,
                "Sleeps of the CPU that ended for nothing.");
        lines_by_cpu(o, &v, field, "method", method);
}

static void histogram_line(OpenMetrics *o, const TotalsEntity *e, const char *suffix) {
        om_line_of(o, suffix);
        om_label_id(o, "package", e->package);
        om_label_id(o, "die", e->die);
}

/* One package's histogram: buckets add up from below, as Prometheus has it. */
static void lines_of_sleeps(OpenMetrics *o, const OmView *v, const TotalsEntity *e, size_t i) {
        TotalsColumn c, ns;
        int64_t sum = 0;

        for (uint8_t k = 0; k < SLEEP_BUCKETS; k++) {
                char le[NUM_DOUBLE_MAX] = "+Inf";

                if (!totals_column(v->t, FIELD_SLEEP_HIST, k, &c))
                        return;
                sum += c.values[i];
                if (k < SLEEP_BUCKETS - 1)
                        le[num_format_double((double) (UINT64_C(2) << k) * 1e-9, 10, le)] = '\0';
                histogram_line(o, e, "_bucket");
                om_label(o, "le", le);
                om_count(o, sum);
        }
        histogram_line(o, e, "_count");
        om_count(o, sum);
        if (!totals_column(v->t, FIELD_SLEEP_NS, 0, &ns))
                return;
        histogram_line(o, e, "_sum");
        om_value(o, om_view_value(v, &ns, ns.values[i]));
}

static void families_sleeps(OpenMetrics *o, Service *s, bool wide) {
        const TotalsEntity *entities;
        TotalsColumn c;
        size_t n;
        OmView v;

        if (!om_view_begin(&v, s) || !totals_column(v.t, FIELD_SLEEP_HIST, 0, &c))
                return;
        om_family(o, "cstated_package_sleep_seconds", FAMILY_HISTOGRAM, "seconds",
                "Sleeps of the package's CPUs that ended, by length.");
        n = totals_entities(v.t, SCOPE_PACKAGE, &entities);
        for (size_t i = 0; i < n; i++)
                if (c.seen[i])
                        lines_of_sleeps(o, &v, &entities[i], i);
}

static void families_interrupts(OpenMetrics *o, Service *s, bool wide) {
        PackageSums sums = {};
        double total = 0;
        OmView v;

        if (!om_view_begin(&v, s))
                return;
        if (om_view_has(&v, FIELD_IRQ)) {
                om_family(o, "cstated_package_interrupts", FAMILY_COUNTER, NULL,
                        "Interrupts the package's CPUs serviced.");
                om_lines_by_package(o, &v, FIELD_IRQ, NULL, NULL, NULL);
                if (wide) {
                        om_family(o, "cstated_cpu_interrupts", FAMILY_COUNTER, NULL,
                                "Interrupts the CPU serviced.");
                        om_lines_by_entity(o, &v, FIELD_IRQ, NULL, NULL);
                }
        }
        if (!om_view_has(&v, FIELD_SMI))
                return;
        om_sum_field(&v, FIELD_SMI, NULL, &sums);
        for (size_t i = 0; i < sums.n; i++)
                total += sums.list[i].value;
        om_family(o, "cstated_smi", FAMILY_COUNTER, NULL,
                "System management interrupts, counted by every CPU and added up.");
        om_line(o);
        om_count(o, (int64_t) total);
}

const OmFamilyFn om_families[] = {
        families_info,
        families_machine,
        families_sources,
        families_busy,
        families_package_cpuidle,
        families_cpuidle,
        families_granted,
        families_rapl,
        families_heat,
        families_wakeups,
        families_breaks,
        families_sleeps,
        families_interrupts,
        families_self,
        families_store,
};

const size_t om_families_n = ARRAY_SIZE(om_families);
