/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The catalogue: what can be asked for, in the order it is listed to people. The one place that adds a metric; JSON
 * keys, columns, OpenMetrics, documentation and completion follow from it. Ids and columns are public interface.
 *
 * Factors turn numerator / denominator into the unit. Numerators come in joules, seconds, counts, degrees and ticks
 * (>> FIELD_TICK_SHIFT), denominators as their field has them: ticks (>> FIELD_TICK_SHIFT), ns, jiffies.
 */

#include <string.h>

#include "cstated/catalogue.h"
#include "cstated/macro.h"

#define PERCENT 100.0
#define PERCENT_S_PER_NS 1e11
#define PER_NS 1e9
#define MHZ_TICKS_PER_NS (1e3 * (1 << FIELD_TICK_SHIFT))

#define COUNTER(category_, scope_, field_) \
        .kind = METRIC_COUNTER, .unit = UNIT_COUNT, .category = CATEGORY_##category_, .scope = SCOPE_##scope_, \
        .numerator = FIELD_##field_, .factor = 1
#define RESIDENCY(scope_, field_, span_) \
        .kind = METRIC_RATIO, .unit = UNIT_PERCENT, .category = CATEGORY_GRANTED, .scope = SCOPE_##scope_, \
        .numerator = FIELD_##field_, .den = DEN_FIELD, .denominator = FIELD_##span_, .factor = PERCENT, \
        .flags = METRIC_SETTLED, .sources = "perf,msr"
#define WATTS(scope_, field_, span_) WATTS_PLAIN(scope_, field_, span_), .flags = METRIC_SUM_WATTS
#define WATTS_PLAIN(scope_, field_, span_) \
        .kind = METRIC_RATIO, .unit = UNIT_WATT, .category = CATEGORY_POWER, .scope = SCOPE_##scope_, \
        .numerator = FIELD_##field_, .den = DEN_FIELD, .denominator = FIELD_##span_, .factor = PER_NS
#define FREQUENCY(field_, span_, factor_) \
        .kind = METRIC_RATIO, .unit = UNIT_MHZ, .category = CATEGORY_GRANTED, .scope = SCOPE_CPU, \
        .numerator = FIELD_##field_, .den = DEN_FIELD, .denominator = FIELD_##span_, .factor = factor_, \
        .sources = "perf,msr"
#define THROTTLE(field_) \
        .kind = METRIC_RATIO, .unit = UNIT_PERCENT, .category = CATEGORY_POWER, .scope = SCOPE_PACKAGE, \
        .numerator = FIELD_##field_, .den = DEN_FIELD, .denominator = FIELD_PKG_NS, .factor = PERCENT_S_PER_NS, \
        .sources = "msr"
#define TEMPERATURE(scope_, field_) \
        .kind = METRIC_GAUGE, .unit = UNIT_CELSIUS, .category = CATEGORY_THERMAL, .scope = SCOPE_##scope_, \
        .numerator = FIELD_##field_, .factor = 1, .flags = METRIC_MAX_UP, .sources = "msr"
#define STATE .instance = INSTANCE_STATE
#define CAUSE .instance = INSTANCE_CAUSE
#define BUCKET .instance = INSTANCE_BUCKET

const MetricSpec metric_catalogue[] = {
        { "avg_mhz", "Avg_MHz", FREQUENCY(APERF, CPU_NS, MHZ_TICKS_PER_NS),
                .help = "Mean frequency over the whole interval, idle time counting as 0." },
        { "busy", "Busy%", .kind = METRIC_RATIO, .unit = UNIT_PERCENT, .category = CATEGORY_GRANTED,
                .scope = SCOPE_CPU, .numerator = FIELD_MPERF, .den = DEN_FIELD, .denominator = FIELD_CPU_TSC,
                .factor = PERCENT, .alt_numerator = FIELD_STAT_BUSY, .alt_denominator = FIELD_STAT_ALL,
                .alt_method = "stat", .sources = "perf,msr,stat",
                .help = "Share of the time in C0; from /proc/stat, and labelled so, where MPERF cannot be read." },
        { "bzy_mhz", "Bzy_MHz", FREQUENCY(APERF, MPERF, 1), .flags = METRIC_TSC_HZ,
                .help = "Mean frequency while in C0." },
        { "tsc_mhz", "TSC_MHz", FREQUENCY(CPU_TSC, CPU_NS, MHZ_TICKS_PER_NS),
                .help = "Frequency of the time stamp counter." },
        { "irq", "IRQ", COUNTER(WAKE, CPU, IRQ), .sources = "irq",
                .help = "Interrupts of every kind that the CPU serviced." },
        { "nmi", "NMI", COUNTER(WAKE, CPU, NMI), .sources = "irq",
                .help = "Non-maskable interrupts." },
        { "smi", "SMI", COUNTER(WAKE, CPU, SMI), .sources = "perf,msr",
                .help = "System management interrupts: time the firmware took." },

        { "idle_usage", "%s", COUNTER(REQUESTED, CPU, IDLE_USAGE), STATE, .alt_numerator = FIELD_TRACE_ENTRIES,
                .alt_method = "idletrace", .sources = "cpuidle,idletrace",
                .help = "How often the kernel asked for this idle state." },
        { "idle_above", "%s-", COUNTER(REQUESTED, CPU, IDLE_ABOVE), STATE, .sources = "cpuidle",
                .help = "Sleeps in this state that were shorter than its target residency." },
        { "idle_below", "%s+", COUNTER(REQUESTED, CPU, IDLE_BELOW), STATE, .sources = "cpuidle",
                .help = "Sleeps in this state that were long enough for a deeper one." },
        { "idle_rejected", NULL, COUNTER(REQUESTED, CPU, IDLE_REJECTED), STATE, .sources = "cpuidle",
                .help = "Requests for this state that the driver refused." },
        { "idle_time", "%s%%", .kind = METRIC_RATIO, .unit = UNIT_PERCENT, .category = CATEGORY_REQUESTED,
                .scope = SCOPE_CPU, STATE, .numerator = FIELD_IDLE_TIME, .den = DEN_FIELD,
                .denominator = FIELD_IDLE_NS, .factor = PERCENT_S_PER_NS, .alt_numerator = FIELD_TRACE_NS,
                .alt_method = "idletrace", .flags = METRIC_SETTLED,
                .sources = "cpuidle,idletrace",
                .help = "Share of the time in this state as the kernel asked for it; counted when a sleep ends."
                        " Of several CPUs the mean over those that have the state: C8% and C10% of a hybrid machine"
                        " are the P cores' alone." },

        { "c1", "CPU%c1", RESIDENCY(CPU, C1, C1_SPAN),
                .help = "Share of the time in C1, by its counter or as what C0 and the core's deep states leave." },
        { "wakeups", "Wake/s", COUNTER(WAKE, CPU, TRACE_ENTRIES), CAUSE, .alt_numerator = FIELD_IDLE_USAGE,
                .alt_method = "cpuidle", .flags = METRIC_NO_POLL, .sources = "idletrace,cpuidle",
                .help = "Sleeps that ended, whatever the cause; polling is no sleep." },
        { "wakeups_interrupt", NULL, COUNTER(WAKE, CPU, WAKE_INTERRUPT), CAUSE, .flags = METRIC_NO_POLL,
                .sources = "idletrace", .help = "Sleeps that an interrupt ended." },
        { "wakeups_store", "Store/s", COUNTER(WAKE, CPU, WAKE_STORE), CAUSE, .flags = METRIC_NO_POLL,
                .sources = "idletrace",
                .help = "Sleeps that a write to the monitored line ended, with no interrupt." },
        { "wakeups_break", "Break/s", COUNTER(WAKE, CPU, WAKE_BREAK), CAUSE, .alt_numerator = FIELD_BOUND_BREAK,
                .alt_method = "bound", .flags = METRIC_NO_POLL, .sources = "idletrace,cpuidle",
                .help = "MWAIT came back for nothing; without idletrace a lower bound: sleeps less interrupts." },
        { "wakeups_break_immediate", NULL, COUNTER(WAKE, CPU, WAKE_IMMEDIATE), CAUSE, .flags = METRIC_NO_POLL,
                .sources = "idletrace",
                .help = "Breaks after less than the state's target residency: the sign of the MONITOR errata." },
        { "sleep_length", NULL, COUNTER(WAKE, PACKAGE, SLEEP_HIST), BUCKET, .sources = "idletrace",
                .help = "Sleeps that ended, by length: up to the bound in us, and longer than the bound before." },

        { "c3", "CPU%c3", RESIDENCY(CORE, C3, CORE_TSC), .help = "Share of the time the core was granted C3." },
        { "c6", "CPU%c6", RESIDENCY(CORE, C6, CORE_TSC), .help = "Share of the time the core was granted C6." },
        { "c7", "CPU%c7", RESIDENCY(CORE, C7, CORE_TSC), .help = "Share of the time the core was granted C7." },
        { "mod_c6", "Mod%c6", RESIDENCY(MODULE, MC6, MODULE_TSC),
                .help = "Share of the time the module was granted C6." },
        { "core_temp", "CoreTmp", TEMPERATURE(CORE, CORE_TEMP), .help = "Temperature of the core." },
        { "demotion", "Demo%", .kind = METRIC_RATIO, .unit = UNIT_POINT, .category = CATEGORY_GRANTED,
                .scope = SCOPE_CORE, .numerator = FIELD_DEMOTION, .den = DEN_FIELD, .denominator = FIELD_CORE_TSC,
                .factor = PERCENT, .flags = METRIC_SIGNED | METRIC_SETTLED, .sources = "cpuidle,idletrace,perf,msr",
                .help = "Time for which C6 or deeper was requested, less the time it was granted." },

        { "pkg_temp", "PkgTmp", TEMPERATURE(PACKAGE, PKG_TEMP), .help = "Temperature of the package." },
        { "pc2", "Pkg%pc2", RESIDENCY(PACKAGE, PC2, PKG_TSC), .help = "Share of the time the package was in PC2." },
        { "pc3", "Pkg%pc3", RESIDENCY(PACKAGE, PC3, PKG_TSC), .help = "Share of the time the package was in PC3." },
        { "pc6", "Pkg%pc6", RESIDENCY(PACKAGE, PC6, PKG_TSC), .help = "Share of the time the package was in PC6." },
        { "pc7", "Pkg%pc7", RESIDENCY(PACKAGE, PC7, PKG_TSC), .help = "Share of the time the package was in PC7." },
        { "pc8", "Pkg%pc8", RESIDENCY(PACKAGE, PC8, PKG_TSC), .help = "Share of the time the package was in PC8." },
        { "pc9", "Pkg%pc9", RESIDENCY(PACKAGE, PC9, PKG_TSC), .help = "Share of the time the package was in PC9." },
        { "pc10", "Pk%pc10", RESIDENCY(PACKAGE, PC10, PKG_TSC),
                .help = "Share of the time the package was in PC10." },

        { "pkg_watts", "PkgWatt", WATTS(PACKAGE, ENERGY_PKG, PKG_NS), .sources = "perf,msr,powercap",
                .help = "Power of the package." },
        { "cor_watts", "CorWatt", WATTS(PACKAGE, ENERGY_COR, PKG_NS), .alt_numerator = FIELD_ENERGY_CORE,
                .alt_denominator = FIELD_CORE_NS, .sources = "perf,msr,powercap",
                .help = "Power of the package's cores, a part of its power; counted core by core on AMD." },
        { "gfx_watts", "GFXWatt", WATTS(PACKAGE, ENERGY_GFX, PKG_NS), .sources = "perf,msr,powercap",
                .help = "Power of the graphics in the package, a part of its power." },
        { "ram_watts", "RAMWatt", WATTS(PACKAGE, ENERGY_RAM, PKG_NS), .sources = "perf,msr,powercap",
                .help = "Power of the package's memory, no part of its power." },
        { "pkg_throttle", "PKG_%", THROTTLE(PKG_THROTTLE),
                .help = "Share of the time the package ran under its power limit." },
        { "ram_throttle", "RAM_%", THROTTLE(RAM_THROTTLE),
                .help = "Share of the time the memory ran under its power limit." },
        { "sys_watts", "SysWatt", WATTS(SYSTEM, ENERGY_SYS, SYS_NS), .sources = "perf,msr,powercap",
                .help = "Power of the whole platform as it measures it; never added to anything." },
        { "node_watts", NULL, WATTS_PLAIN(SYSTEM, ENERGY_PKG, PKG_NS), .alt_numerator = FIELD_ENERGY_RAM,
                .alt_denominator = FIELD_PKG_NS, .flags = METRIC_SUM_WATTS | METRIC_SUM_FIELDS,
                .sources = "perf,msr,powercap", .help = "Power of all packages and their memory." },

        { "self_cpu_seconds", NULL, .kind = METRIC_COUNTER, .unit = UNIT_SECOND, .category = CATEGORY_SELF,
                .scope = SCOPE_SYSTEM, .numerator = FIELD_SELF_CPU_NS, .factor = 1, .sources = "self",
                .help = "CPU time the sampler took." },
        { "self_remote_reads", NULL, COUNTER(SELF, SYSTEM, SELF_READS), .sources = "self",
                .help = "Reads on another CPU: one interrupt there each." },
        { "self_wakeups_caused", NULL, COUNTER(SELF, SYSTEM, SELF_WAKEUPS), .sources = "self",
                .help = "Sleeping CPUs that were woken to be read." },
        { "self_missed_ticks", NULL, COUNTER(SELF, SYSTEM, SELF_MISSED), .sources = "self",
                .help = "Samples that came too late to be taken." },
        { "self_sample_us", NULL, .kind = METRIC_GAUGE, .unit = UNIT_MICROSECOND, .category = CATEGORY_SELF,
                .scope = SCOPE_SYSTEM, .numerator = FIELD_SELF_SAMPLE_NS, .factor = 1e6, .sources = "self",
                .help = "How long one sample took." },
};

const size_t metric_catalogue_n = ARRAY_SIZE(metric_catalogue);

const MetricSpec *metric_find(const char *id) {
        for (size_t i = 0; i < metric_catalogue_n; i++)
                if (strcmp(metric_catalogue[i].id, id) == 0)
                        return &metric_catalogue[i];
        return NULL;
}

const char *metric_kind_name(MetricKind k) {
        static const char *const names[] = {
                [METRIC_COUNTER] = "counter",
                [METRIC_GAUGE] = "gauge",
                [METRIC_RATIO] = "ratio",
        };

        return names[k];
}

const char *metric_unit_name(MetricUnit u) {
        static const char *const names[] = {
                [UNIT_PERCENT] = "%",
                [UNIT_MHZ] = "MHz",
                [UNIT_COUNT] = "1",
                [UNIT_WATT] = "W",
                [UNIT_CELSIUS] = "C",
                [UNIT_POINT] = "pp",
                [UNIT_SECOND] = "s",
                [UNIT_MICROSECOND] = "us",
                [UNIT_BYTE] = "B",
        };

        return names[u];
}

const char *metric_category_name(MetricCategory c) {
        static const char *const names[] = {
                [CATEGORY_REQUESTED] = "requested",
                [CATEGORY_GRANTED] = "granted",
                [CATEGORY_POWER] = "power",
                [CATEGORY_WAKE] = "wake",
                [CATEGORY_THERMAL] = "thermal",
                [CATEGORY_SELF] = "self",
        };

        return names[c];
}
