/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Fields are what the sampler reads and the store keeps: one additive counter or gauge of one scope. Metrics (the
 * catalogue) are what people ask for: sums of fields over sums of fields. In a frame a field holds the cumulative
 * counter as read; in a sample the difference over the interval.
 *
 * "Spans": a counter that is not read every interval (a core that slept through) has its own clock, the span field
 * read beside it (TSC ticks or ns). Numerator and denominator then always cover the same time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum Scope {
        SCOPE_SYSTEM,
        SCOPE_PACKAGE, /* a (package, die) where the machine counts by die */
        SCOPE_MODULE,
        SCOPE_CORE,
        SCOPE_CPU,
} Scope;
#define SCOPE_N 5

const char *scope_name(Scope s);
/* "system", "package", "die" (= package), "module", "core", "cpu", "node" (= system); -EINVAL otherwise. */
int scope_from_name(const char *name, Scope *ret);

/* Why a value is null. Names are public: first, absent, ... in this order. */
typedef enum Reason {
        REASON_NONE, /* there is a value */
        REASON_FIRST,
        REASON_ABSENT,
        REASON_DENIED,
        REASON_OFFLINE,
        REASON_RESET,
        REASON_BACKWARDS,
        REASON_GAP,
        REASON_ASLEEP,
        REASON_OUT_OF_RANGE,
        REASON_VM,
        REASON_NOT_APPLICABLE,
        REASON_ERROR,
} Reason;
#define REASON_N 13

const char *reason_name(Reason r); /* NULL for REASON_NONE */

typedef enum FieldKind {
        FIELD_COUNTER,  /* cumulative in a frame, difference in a sample */
        FIELD_GAUGE,    /* as read, in both */
        FIELD_SPAN,     /* a counter that is the clock of its neighbours */
        FIELD_DERIVED,  /* exists in samples only, computed by the sample module */
} FieldKind;

typedef enum FieldUnit {
        FIELD_UNIT_COUNT,
        /* TSC ticks; samples hold them >> FIELD_TICK_SHIFT, differenced after the shift so that nothing drifts */
        FIELD_UNIT_TICK,
        FIELD_UNIT_NS,
        FIELD_UNIT_USEC,
        FIELD_UNIT_ENERGY, /* native units; the layout column's scale gives joules */
        FIELD_UNIT_CELSIUS, /* signed */
        FIELD_UNIT_JIFFY,  /* USER_HZ */
        FIELD_UNIT_TIME,   /* throttle time: native units; the column's scale gives seconds */
        FIELD_UNIT_BYTE,
} FieldUnit;

#define FIELD_TICK_SHIFT 10

/* (id, name, scope, kind, unit, width in bits, span field) - ids are stored in databases: append, never renumber. */
#define FIELD_TABLE(X) \
        X(NONE, "", SYSTEM, GAUGE, COUNT, 64, NONE) \
        /* cpu: read through MSR or perf; cpu_tsc and cpu_ns are taken beside the reads */ \
        X(CPU_TSC, "cpu_tsc", CPU, SPAN, TICK, 64, NONE) \
        X(CPU_NS, "cpu_ns", CPU, SPAN, NS, 64, NONE) \
        X(MPERF, "mperf", CPU, COUNTER, TICK, 64, CPU_TSC) \
        X(APERF, "aperf", CPU, COUNTER, TICK, 64, CPU_TSC) \
        X(SMI, "smi", CPU, COUNTER, COUNT, 32, CPU_TSC) \
        X(C1_RES, "c1_res", CPU, COUNTER, TICK, 64, CPU_TSC) \
        /* cpu: passive */ \
        X(IRQ, "irq", CPU, COUNTER, COUNT, 32, NONE) \
        X(NMI, "nmi", CPU, COUNTER, COUNT, 32, NONE) \
        X(IRQ_RES, "irq_res", CPU, COUNTER, COUNT, 32, NONE) \
        X(IRQ_CAL, "irq_cal", CPU, COUNTER, COUNT, 32, NONE) \
        X(IRQ_LOC, "irq_loc", CPU, COUNTER, COUNT, 32, NONE) \
        X(STAT_BUSY, "stat_busy", CPU, COUNTER, JIFFY, 64, NONE) \
        X(STAT_IDLE, "stat_idle", CPU, COUNTER, JIFFY, 64, NONE) \
        X(IDLE_NS, "idle_ns", CPU, SPAN, NS, 64, NONE) \
        X(IDLE_TIME, "idle_time", CPU, COUNTER, USEC, 64, IDLE_NS) \
        X(IDLE_USAGE, "idle_usage", CPU, COUNTER, COUNT, 64, NONE) \
        X(IDLE_ABOVE, "idle_above", CPU, COUNTER, COUNT, 64, NONE) \
        X(IDLE_BELOW, "idle_below", CPU, COUNTER, COUNT, 64, NONE) \
        X(IDLE_REJECTED, "idle_rejected", CPU, COUNTER, COUNT, 64, NONE) \
        /* cpu: idletrace, per requested state; trace_ns includes the sleep in progress */ \
        X(TRACE_ENTRIES, "trace_entries", CPU, COUNTER, COUNT, 64, NONE) \
        X(TRACE_NS, "trace_ns", CPU, COUNTER, NS, 64, NONE) \
        X(WAKE_INTERRUPT, "wake_interrupt", CPU, COUNTER, COUNT, 64, NONE) \
        X(WAKE_STORE, "wake_store", CPU, COUNTER, COUNT, 64, NONE) \
        X(WAKE_BREAK, "wake_break", CPU, COUNTER, COUNT, 64, NONE) \
        X(WAKE_IMMEDIATE, "wake_immediate", CPU, COUNTER, COUNT, 64, NONE) \
        /* core */ \
        X(CORE_TSC, "core_tsc", CORE, SPAN, TICK, 64, NONE) \
        X(CORE_NS, "core_ns", CORE, SPAN, NS, 64, NONE) \
        X(C3, "c3", CORE, COUNTER, TICK, 64, CORE_TSC) \
        X(C6, "c6", CORE, COUNTER, TICK, 64, CORE_TSC) \
        X(C7, "c7", CORE, COUNTER, TICK, 64, CORE_TSC) \
        X(CORE_TEMP, "core_temp", CORE, GAUGE, CELSIUS, 64, NONE) \
        X(ENERGY_CORE, "energy_core", CORE, COUNTER, ENERGY, 32, CORE_NS) /* AMD */ \
        /* module */ \
        X(MODULE_TSC, "module_tsc", MODULE, SPAN, TICK, 64, NONE) \
        X(MC6, "mc6", MODULE, COUNTER, TICK, 64, MODULE_TSC) \
        /* package (or die) */ \
        X(PKG_TSC, "pkg_tsc", PACKAGE, SPAN, TICK, 64, NONE) \
        X(PKG_NS, "pkg_ns", PACKAGE, SPAN, NS, 64, NONE) \
        X(PC2, "pc2", PACKAGE, COUNTER, TICK, 64, PKG_TSC) \
        X(PC3, "pc3", PACKAGE, COUNTER, TICK, 64, PKG_TSC) \
        X(PC6, "pc6", PACKAGE, COUNTER, TICK, 64, PKG_TSC) \
        X(PC7, "pc7", PACKAGE, COUNTER, TICK, 64, PKG_TSC) \
        X(PC8, "pc8", PACKAGE, COUNTER, TICK, 64, PKG_TSC) \
        X(PC9, "pc9", PACKAGE, COUNTER, TICK, 64, PKG_TSC) \
        X(PC10, "pc10", PACKAGE, COUNTER, TICK, 64, PKG_TSC) \
        X(ENERGY_PKG, "energy_pkg", PACKAGE, COUNTER, ENERGY, 32, PKG_NS) \
        X(ENERGY_RAM, "energy_ram", PACKAGE, COUNTER, ENERGY, 32, PKG_NS) \
        X(ENERGY_COR, "energy_cor", PACKAGE, COUNTER, ENERGY, 32, PKG_NS) \
        X(ENERGY_GFX, "energy_gfx", PACKAGE, COUNTER, ENERGY, 32, PKG_NS) \
        X(PKG_THROTTLE, "pkg_throttle", PACKAGE, COUNTER, TIME, 32, PKG_NS) \
        X(RAM_THROTTLE, "ram_throttle", PACKAGE, COUNTER, TIME, 32, PKG_NS) \
        X(PKG_TEMP, "pkg_temp", PACKAGE, GAUGE, CELSIUS, 64, NONE) \
        /* system */ \
        X(SYS_NS, "sys_ns", SYSTEM, SPAN, NS, 64, NONE) \
        X(ENERGY_SYS, "energy_sys", SYSTEM, COUNTER, ENERGY, 32, SYS_NS) \
        /* derived by the sample module */ \
        X(C1, "c1", CPU, DERIVED, TICK, 64, C1_SPAN) \
        X(C1_SPAN, "c1_span", CPU, DERIVED, TICK, 64, NONE) \
        X(DEMOTION, "demotion", CORE, DERIVED, TICK, 64, CORE_TSC) /* signed; only where core_tsc has a span */ \
        X(BOUND_BREAK, "bound_break", CPU, DERIVED, COUNT, 64, NONE) /* max(0, non-POLL exits - interrupts) */ \
        X(SELF_CPU_NS, "self_cpu_ns", SYSTEM, DERIVED, NS, 64, NONE) \
        X(SELF_READS, "self_remote_reads", SYSTEM, DERIVED, COUNT, 64, NONE) \
        X(SELF_WAKEUPS, "self_wakeups_caused", SYSTEM, DERIVED, COUNT, 64, NONE) \
        X(SELF_MISSED, "self_missed_ticks", SYSTEM, DERIVED, COUNT, 64, NONE) \
        X(SELF_SAMPLE_NS, "self_sample_ns", SYSTEM, DERIVED, NS, 64, NONE) \
        X(STAT_ALL, "stat_all", CPU, DERIVED, JIFFY, 64, NONE) /* stat_busy + stat_idle */ \
        /* in rollups only: ratios tick by tick, for their spread; the block's column scale gives % (W, 1/s) */ \
        X(RATIO_BUSY, "ratio_busy", CPU, DERIVED, COUNT, 64, NONE) \
        X(RATIO_C1, "ratio_c1", CPU, DERIVED, COUNT, 64, NONE) \
        X(RATIO_WAKEUPS, "ratio_wakeups", CPU, DERIVED, COUNT, 64, NONE) \
        X(RATIO_C6, "ratio_c6", CORE, DERIVED, COUNT, 64, NONE) \
        X(RATIO_PC6, "ratio_pc6", PACKAGE, DERIVED, COUNT, 64, NONE) \
        X(RATIO_PKG_WATTS, "ratio_pkg_watts", PACKAGE, DERIVED, COUNT, 64, NONE) \
        X(RATIO_RAM_WATTS, "ratio_ram_watts", PACKAGE, DERIVED, COUNT, 64, NONE) \
        /* package: idletrace, sleeps of its CPUs that ended (polling is no sleep), by length, and their time */ \
        X(SLEEP_HIST, "sleep_hist", PACKAGE, COUNTER, COUNT, 64, NONE) \
        X(SLEEP_NS, "sleep_ns", PACKAGE, COUNTER, NS, 64, NONE)

typedef enum FieldId {
#define X(id, name, scope, kind, unit, width, span) FIELD_##id,
        FIELD_TABLE(X)
#undef X
        FIELD_N,
} FieldId;

typedef struct FieldSpec {
        const char *name;
        Scope scope;
        FieldKind kind;
        FieldUnit unit;
        uint8_t width; /* bits of the counter; the layout's column may say less or give a range */
        FieldId span;  /* FIELD_NONE: the sample's own interval */
} FieldSpec;

/* The description of a field; id < FIELD_N. */
const FieldSpec *field_spec(FieldId id);
/* True where a field has one column for each idle state (instance = state index). */
bool field_is_by_state(FieldId id);
/* How many columns a field may have: one for each idle state, for each bucket of a histogram, or just one. */
unsigned field_n_instances(FieldId id);
/* The upper bound of a bucket of sleep lengths in us: "0.002" (2 ns), ..., "2147483.648", "+Inf". */
void field_bucket_name(uint8_t bucket, char ret[16]);
/* FIELD_NONE where no field has that name. */
FieldId field_from_name(const char *name);

/*
 * A layout says which columns a frame, sample or chunk carries, in which order: (field, instance) ascending, derived
 * fields last, each with one value for every entity of the field's scope, in the machine's order. Value of column c,
 * entity e: values[column[c].offset + e].
 */
#define LAYOUT_COLUMNS_MAX 288 /* all fields with all their instances: asserted in field.c */
#define IDLE_STATES_MAX 16 /* the kernel has up to 10 (CPUIDLE_STATE_MAX) today */
#define SLEEP_BUCKETS 32   /* bucket b: sleeps of [2^b, 2^(b+1)) ns; the last one is open */

typedef struct LayoutColumn {
        FieldId field;
        uint8_t instance;  /* idle state index, bucket of a histogram, else 0 */
        uint8_t width;     /* bits of the counter as read */
        uint64_t range;    /* the counter wraps from range-1 to 0 (powercap: max_energy_range + 1); 0: 2^width */
        double scale;      /* base units (J, s) a native unit; 1 elsewhere */
        uint8_t source;    /* index into the source table, for "method" labels */
        uint32_t offset;   /* set by layout_finish() */
} LayoutColumn;

typedef struct Layout {
        uint32_t n_entities[SCOPE_N];
        size_t n_columns;
        size_t n_values; /* all columns together */
        LayoutColumn columns[LAYOUT_COLUMNS_MAX];
} Layout;

/* Appends a column with the field's defaults, to be amended by the caller. NULL when full or there already. */
LayoutColumn *layout_add(Layout *l, FieldId field, uint8_t instance);
/* Sorts by (field, instance) and sets offsets and n_values from n_entities. */
void layout_finish(Layout *l);
/* The column, or NULL. Binary search on a finished layout. */
const LayoutColumn *layout_find(const Layout *l, FieldId field, uint8_t instance);
/* True where both have the same columns (field, instance, width, range, scale) and entity counts. */
bool layout_equal(const Layout *a, const Layout *b);
