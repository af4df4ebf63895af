/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <math.h>

#include "tests/unit/sample-rig.h"

#include "model/metric.h"

#define JOULE_14 (1 << 14)

static Reason value_of(const Rig *r, const char *id, Scope scope, uint32_t e, uint8_t instance, double *ret) {
        const MetricSpec *m = metric_find(id);
        MetricSum sum = {};

        assert_non_null(m);
        metric_gather(m, r->s, scope, e, instance, &sum);
        return metric_value(m, &sum, r->m->tsc_hz, ret);
}

#define assert_metric(r, id, scope, e, instance, expected, tolerance) \
        do { \
                double value_ = NAN; \
                assert_int_equal(value_of(r, id, scope, e, instance, &value_), REASON_NONE); \
                if (!(fabs(value_ - (expected)) <= (tolerance))) \
                        fail_msg("%s is %f, not %f", id, value_, (double) (expected)); \
        } while (0)
#define assert_no_metric(r, id, scope, e, instance, reason) \
        do { \
                double value_ = 42; \
                assert_int_equal(value_of(r, id, scope, e, instance, &value_), reason); \
                assert_true(value_ > 41 && value_ < 43); \
        } while (0)

static Machine *machine_with(uint32_t packages, uint32_t cores, uint32_t threads, const FieldId *fields) {
        Machine *m = fixture_machine(packages, cores, threads);

        for (; *fields != FIELD_NONE; fields++)
                fixture_column(m, *fields, 0)->scale = field_spec(*fields)->unit == FIELD_UNIT_ENERGY ? 1.0 / JOULE_14 : 1;
        machine_finish_layout(m);
        return m;
}

static void start(Rig *r, Machine *m) {
        *r = (Rig){};
        rig_machine(r, m);
        rig_wait(r, 10);
        assert_int_equal(rig_push(r), SAMPLE_E_FIRST);
}

static void next(Rig *r) {
        rig_wait(r, 1);
        assert_int_equal(rig_push(r), 0);
}

/* ---- the table ---- */

static void test_catalogue_is_sound(void **state) {
        for (size_t i = 0; i < metric_catalogue_n; i++) {
                const MetricSpec *m = &metric_catalogue[i];

                assert_ptr_equal(metric_find(m->id), m);
                assert_true(m->numerator != FIELD_NONE && m->factor > 0);
                assert_non_null(m->help);
                assert_int_equal(m->help[strlen(m->help) - 1], '.');
                assert_non_null(m->sources);
                assert_non_null(metric_unit_name(m->unit));
                assert_non_null(metric_kind_name(m->kind));
                assert_non_null(metric_category_name(m->category));
                assert_int_equal(m->kind == METRIC_RATIO, m->den != DEN_NONE);
                if (m->den == DEN_FIELD)
                        assert_int_equal(field_spec(m->numerator)->scope, field_spec(m->denominator)->scope);
                if (m->alt_denominator != FIELD_NONE)
                        assert_int_equal(field_spec(m->alt_numerator)->scope, field_spec(m->alt_denominator)->scope);
                for (size_t k = 0; m->column && k < i; k++)
                        assert_true(!metric_catalogue[k].column || strcmp(metric_catalogue[k].column, m->column) != 0);
        }
}

static void test_catalogue_is_complete(void **state) {
        static const char *const ids[] = {
                "busy", "avg_mhz", "bzy_mhz", "tsc_mhz", "irq", "nmi", "smi", "idle_time", "idle_usage", "idle_above",
                "idle_below", "idle_rejected", "c1", "c3", "c6", "c7", "mod_c6", "pc2", "pc3", "pc6", "pc7", "pc8",
                "pc9", "pc10", "pkg_watts", "ram_watts", "cor_watts", "gfx_watts", "sys_watts", "pkg_throttle",
                "ram_throttle", "core_temp", "pkg_temp", "wakeups", "wakeups_interrupt", "wakeups_store",
                "wakeups_break", "wakeups_break_immediate", "demotion", "node_watts",
        };

        for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
                assert_non_null(metric_find(ids[i]));
        assert_string_equal(metric_find("pc10")->column, "Pk%pc10");
        assert_null(metric_find("psys"));
}

/* ---- values ---- */

static void test_ratios_and_frequencies(void **state) {
        static const FieldId fields[] = { FIELD_CPU_TSC, FIELD_CPU_NS, FIELD_MPERF, FIELD_APERF, FIELD_NONE };
        Rig r;

        start(&r, machine_with(1, 2, 1, fields));
        rig_add(&r, FIELD_MPERF, 0, 0, RIG_HZ / 10);
        rig_add(&r, FIELD_APERF, 0, 0, RIG_HZ / 10 * 3 / 2);
        next(&r);
        assert_metric(&r, "busy", SCOPE_CPU, 0, 0, 10, 0.001);
        assert_metric(&r, "avg_mhz", SCOPE_CPU, 0, 0, 315, 0.01);
        assert_metric(&r, "bzy_mhz", SCOPE_CPU, 0, 0, 3150, 0.1);
        assert_metric(&r, "tsc_mhz", SCOPE_CPU, 0, 0, 2100, 0.01);
        assert_metric(&r, "busy", SCOPE_CPU, 1, 0, 0, 0);
        assert_no_metric(&r, "bzy_mhz", SCOPE_CPU, 1, 0, REASON_ASLEEP);
        /* sum over sum: the CPU that never ran has no say in Bzy_MHz, and half in busy */
        assert_metric(&r, "busy", SCOPE_SYSTEM, 0, 0, 5, 0.001);
        assert_metric(&r, "bzy_mhz", SCOPE_PACKAGE, 0, 0, 3150, 0.1);
        assert_no_metric(&r, "c6", SCOPE_CORE, 0, 0, REASON_ABSENT);
        rig_deinit(&r);
}

static void test_tolerance(void **state) {
        const MetricSpec *busy = metric_find("busy"), *demotion = metric_find("demotion");
        double v = 42;

        assert_int_equal(metric_value(busy, &(MetricSum){ .num = 1004, .den = 1000, .n = 1 }, 1, &v), REASON_NONE);
        assert_true(v > 99.999 && v < 100.001);
        assert_int_equal(
                metric_value(busy, &(MetricSum){ .num = 1006, .den = 1000, .n = 1 }, 1, &v), REASON_OUT_OF_RANGE);
        assert_int_equal(metric_value(busy, &(MetricSum){ .num = -4, .den = 1000, .n = 1 }, 1, &v), REASON_NONE);
        assert_true(v > -0.001 && v < 0.001);
        assert_int_equal(
                metric_value(busy, &(MetricSum){ .num = -6, .den = 1000, .n = 1 }, 1, &v), REASON_OUT_OF_RANGE);
        assert_int_equal(metric_value(demotion, &(MetricSum){ .num = -60, .den = 1000, .n = 1 }, 1, &v), REASON_NONE);
        assert_true(v > -6.001 && v < -5.999);
}

static void test_c20_null_and_never_nan(void **state) {
        for (size_t i = 0; i < metric_catalogue_n; i++) {
                const MetricSpec *m = &metric_catalogue[i];
                double v = 42;

                if (m->kind != METRIC_RATIO)
                        continue;
                assert_int_not_equal(metric_value(m, &(MetricSum){ .n = 1 }, RIG_HZ, &v), REASON_NONE);
                assert_int_not_equal(metric_value(m, &(MetricSum){ .num = 5, .n = 1 }, RIG_HZ, &v), REASON_NONE);
                assert_int_not_equal(
                        metric_value(m, &(MetricSum){ .num = INFINITY, .den = 1, .n = 1 }, RIG_HZ, &v), REASON_NONE);
                assert_int_not_equal(
                        metric_value(m, &(MetricSum){ .num = NAN, .den = 1, .n = 1 }, RIG_HZ, &v), REASON_NONE);
                assert_int_equal(metric_value(m, &(MetricSum){ .num = 1, .den = 1 }, RIG_HZ, &v), REASON_ABSENT);
                assert_int_equal(
                        metric_value(m, &(MetricSum){ .reason = REASON_DENIED }, RIG_HZ, &v), REASON_DENIED);
                assert_true(v > 41 && v < 43);
        }
}

static void test_first_sample_has_reasons(void **state) {
        static const FieldId fields[] = { FIELD_CPU_TSC, FIELD_MPERF, FIELD_CORE_TSC, FIELD_C6, FIELD_PKG_NS,
                FIELD_ENERGY_PKG, FIELD_NONE };
        Rig r;

        start(&r, machine_with(1, 2, 1, fields));
        assert_no_metric(&r, "busy", SCOPE_CPU, 0, 0, REASON_FIRST);
        assert_no_metric(&r, "busy", SCOPE_SYSTEM, 0, 0, REASON_FIRST);
        assert_no_metric(&r, "c6", SCOPE_SYSTEM, 0, 0, REASON_FIRST);
        assert_no_metric(&r, "pkg_watts", SCOPE_SYSTEM, 0, 0, REASON_FIRST);
        assert_no_metric(&r, "node_watts", SCOPE_SYSTEM, 0, 0, REASON_FIRST);
        rig_deinit(&r);
}

static void test_c04_unit_of_the_column(void **state) {
        static const FieldId fields[] = { FIELD_PKG_NS, FIELD_ENERGY_RAM, FIELD_NONE };
        Machine *m = machine_with(2, 1, 1, fields);
        Rig r;

        m->layout.columns[1].scale = 15.3e-6;
        start(&r, m);
        rig_add(&r, FIELD_ENERGY_RAM, 0, 0, 1000000);
        next(&r);
        assert_metric(&r, "ram_watts", SCOPE_PACKAGE, 0, 0, 15.3, 0.001);
        assert_metric(&r, "ram_watts", SCOPE_PACKAGE, 1, 0, 0, 0);
        rig_deinit(&r);
        m = machine_with(1, 1, 1, fields);
        start(&r, m);
        rig_add(&r, FIELD_ENERGY_RAM, 0, 0, 1000000);
        next(&r);
        assert_metric(&r, "ram_watts", SCOPE_PACKAGE, 0, 0, 61.035, 0.001);
        rig_deinit(&r);
}

static void test_c05_nothing_is_counted_twice(void **state) {
        static const FieldId fields[] = { FIELD_PKG_NS, FIELD_ENERGY_PKG, FIELD_ENERGY_COR, FIELD_ENERGY_GFX,
                FIELD_SYS_NS, FIELD_ENERGY_SYS, FIELD_NONE };
        static const FieldId with_ram[] = { FIELD_PKG_NS, FIELD_ENERGY_PKG, FIELD_ENERGY_RAM, FIELD_SYS_NS,
                FIELD_ENERGY_SYS, FIELD_NONE };
        Rig r;

        start(&r, machine_with(1, 2, 1, fields));
        rig_add(&r, FIELD_ENERGY_PKG, 0, 0, (uint64_t) (3.78 * JOULE_14));
        rig_add(&r, FIELD_ENERGY_COR, 0, 0, (uint64_t) (0.84 * JOULE_14));
        rig_add(&r, FIELD_ENERGY_GFX, 0, 0, (uint64_t) (0.21 * JOULE_14));
        rig_add(&r, FIELD_ENERGY_SYS, 0, 0, (uint64_t) (9.61 * JOULE_14));
        next(&r);
        assert_metric(&r, "node_watts", SCOPE_SYSTEM, 0, 0, 3.78, 0.001);
        assert_metric(&r, "sys_watts", SCOPE_SYSTEM, 0, 0, 9.61, 0.001);
        assert_metric(&r, "cor_watts", SCOPE_PACKAGE, 0, 0, 0.84, 0.001);
        rig_deinit(&r);

        start(&r, machine_with(2, 2, 1, with_ram));
        for (uint32_t e = 0; e < 2; e++) {
                rig_add(&r, FIELD_ENERGY_PKG, 0, e, 50 * JOULE_14);
                rig_add(&r, FIELD_ENERGY_RAM, 0, e, 7 * JOULE_14);
        }
        rig_add(&r, FIELD_ENERGY_SYS, 0, 0, 180 * JOULE_14);
        next(&r);
        assert_metric(&r, "node_watts", SCOPE_SYSTEM, 0, 0, 114, 0.001);
        rig_reason(&r, FIELD_ENERGY_RAM, 0, 1, REASON_DENIED);
        next(&r);
        assert_no_metric(&r, "node_watts", SCOPE_SYSTEM, 0, 0, REASON_DENIED);
        assert_metric(&r, "pkg_watts", SCOPE_SYSTEM, 0, 0, 0, 0);
        rig_deinit(&r);
}

static void test_c09_scopes(void **state) {
        static const FieldId fields[] = { FIELD_CORE_NS, FIELD_ENERGY_CORE, FIELD_PKG_NS, FIELD_ENERGY_PKG, FIELD_NONE };
        const MetricSpec *cor = metric_find("cor_watts");
        Rig r;

        start(&r, machine_with(2, 4, 2, fields));
        for (uint32_t e = 0; e < 8; e++)
                rig_add(&r, FIELD_ENERGY_CORE, 0, e, 5 * JOULE_14);
        rig_add(&r, FIELD_ENERGY_PKG, 0, 0, 100 * JOULE_14);
        rig_add(&r, FIELD_ENERGY_PKG, 0, 1, 110 * JOULE_14);
        next(&r);
        assert_int_equal(metric_scope(cor, r.s->layout), SCOPE_CORE);
        assert_metric(&r, "pkg_watts", SCOPE_PACKAGE, 0, 0, 100, 0.001);
        assert_metric(&r, "pkg_watts", SCOPE_PACKAGE, 1, 0, 110, 0.001);
        assert_metric(&r, "pkg_watts", SCOPE_SYSTEM, 0, 0, 210, 0.001);
        assert_metric(&r, "cor_watts", SCOPE_CORE, 7, 0, 5, 0.001);
        assert_metric(&r, "cor_watts", SCOPE_PACKAGE, 0, 0, 20, 0.001);
        assert_metric(&r, "cor_watts", SCOPE_PACKAGE, 1, 0, 20, 0.001);
        assert_metric(&r, "cor_watts", SCOPE_SYSTEM, 0, 0, 40, 0.001);
        assert_no_metric(&r, "pkg_watts", SCOPE_CPU, 0, 0, REASON_NOT_APPLICABLE);
        rig_deinit(&r);
}

/* Half a machine's watts are not its watts. */
static void test_watts_need_every_member(void **state) {
        static const FieldId fields[] = { FIELD_PKG_NS, FIELD_ENERGY_PKG, FIELD_NONE };
        Rig r;

        start(&r, machine_with(2, 1, 1, fields));
        rig_add(&r, FIELD_ENERGY_PKG, 0, 0, 100 * JOULE_14);
        rig_reason(&r, FIELD_ENERGY_PKG, 0, 1, REASON_ERROR);
        next(&r);
        assert_metric(&r, "pkg_watts", SCOPE_PACKAGE, 0, 0, 100, 0.001);
        assert_no_metric(&r, "pkg_watts", SCOPE_SYSTEM, 0, 0, REASON_ERROR);
        assert_no_metric(&r, "node_watts", SCOPE_SYSTEM, 0, 0, REASON_ERROR);
        rig_deinit(&r);
}

/* Cores that sleep count with what they were last granted, each alike however long its span was. */
static void test_residency_upwards_is_settled(void **state) {
        static const FieldId fields[] = { FIELD_CORE_TSC, FIELD_C6, FIELD_NONE };
        Rig r;

        start(&r, machine_with(1, 2, 1, fields));
        rig_reason(&r, FIELD_CORE_TSC, 0, 1, REASON_ASLEEP);
        rig_reason(&r, FIELD_C6, 0, 1, REASON_ASLEEP);
        for (unsigned i = 0; i < 9; i++) {
                rig_add(&r, FIELD_C6, 0, 0, RIG_HZ / 2);
                next(&r);
        }
        assert_metric(&r, "c6", SCOPE_PACKAGE, 0, 0, 50, 0.001); /* of the one that ever settled */
        memset(r.t->reasons, 0, r.t->n_values);
        rig_add(&r, FIELD_C6, 0, 0, RIG_HZ / 2);
        rig_add(&r, FIELD_C6, 0, 1, RIG_HZ / 10 * 9 * 10);
        next(&r);
        assert_metric(&r, "c6", SCOPE_CORE, 1, 0, 90, 0.001);
        assert_metric(&r, "c6", SCOPE_PACKAGE, 0, 0, 70, 0.001);
        rig_reason(&r, FIELD_CORE_TSC, 0, 1, REASON_ASLEEP);
        rig_reason(&r, FIELD_C6, 0, 1, REASON_ASLEEP);
        rig_add(&r, FIELD_C6, 0, 0, RIG_HZ / 10);
        next(&r);
        assert_no_metric(&r, "c6", SCOPE_CORE, 1, 0, REASON_ASLEEP);
        assert_metric(&r, "c6", SCOPE_SYSTEM, 0, 0, 50, 0.001);
        rig_deinit(&r);
}

static void test_temperatures_go_up_by_maximum(void **state) {
        static const FieldId fields[] = { FIELD_CORE_TEMP, FIELD_PKG_TEMP, FIELD_NONE };
        Rig r;

        start(&r, machine_with(1, 3, 1, fields));
        rig_set(&r, FIELD_CORE_TEMP, 0, 0, 41);
        rig_set(&r, FIELD_CORE_TEMP, 0, 1, 63);
        rig_reason(&r, FIELD_CORE_TEMP, 0, 2, REASON_ASLEEP);
        rig_set(&r, FIELD_PKG_TEMP, 0, 0, (uint64_t) -5);
        next(&r);
        assert_metric(&r, "core_temp", SCOPE_CORE, 0, 0, 41, 0);
        assert_metric(&r, "core_temp", SCOPE_PACKAGE, 0, 0, 63, 0);
        assert_metric(&r, "core_temp", SCOPE_SYSTEM, 0, 0, 63, 0);
        assert_metric(&r, "pkg_temp", SCOPE_PACKAGE, 0, 0, -5, 0);
        assert_no_metric(&r, "core_temp", SCOPE_CORE, 2, 0, REASON_ASLEEP);
        rig_deinit(&r);
}

static void test_busy_by_stat(void **state) {
        static const FieldId fields[] = { FIELD_STAT_BUSY, FIELD_STAT_IDLE, FIELD_NONE };
        Rig r;

        start(&r, machine_with(1, 2, 1, fields));
        rig_add(&r, FIELD_STAT_BUSY, 0, 0, 25);
        rig_add(&r, FIELD_STAT_IDLE, 0, 0, 75);
        next(&r);
        assert_string_equal(metric_method(metric_find("busy"), r.s->layout), "stat");
        assert_metric(&r, "busy", SCOPE_CPU, 0, 0, 25, 0.001);
        assert_no_metric(&r, "busy", SCOPE_CPU, 1, 0, REASON_GAP); /* not one jiffy counted */
        assert_false(metric_available(metric_find("bzy_mhz"), r.s->layout));
        rig_deinit(&r);
}

/* C11: P cores have POLL C1E C6 C8 C10, E cores POLL C1E C6: each state by its name, none shifted. */
static void test_c11_state_lists_differ(void **state) {
        static const char *const p_states[] = { "POLL", "C1E", "C6", "C8", "C10" }, *const e_states[] = { "POLL", "C6" };
        Machine *m = fixture_machine(1, 2, 1);
        double v, total = 0;
        Rig r;

        m->n_idle_sets = 2;
        m->idle_sets = realloc(m->idle_sets, 2 * sizeof(*m->idle_sets));
        memset(m->idle_sets, 0, 2 * sizeof(*m->idle_sets));
        for (uint32_t i = 0; i < 5; i++)
                (void) snprintf(m->idle_sets[0].states[i].name, sizeof(m->idle_sets[0].states[i].name), "%s", p_states[i]);
        for (uint32_t i = 0; i < 2; i++)
                (void) snprintf(m->idle_sets[1].states[i].name, sizeof(m->idle_sets[1].states[i].name), "%s", e_states[i]);
        m->idle_sets[0].n_states = 5;
        m->idle_sets[1].n_states = 2;
        m->cpus[1].idle_set = 1;
        fixture_column(m, FIELD_IDLE_NS, 0);
        for (uint8_t k = 0; k < 5; k++)
                fixture_column(m, FIELD_IDLE_TIME, k);
        machine_finish_layout(m);
        start(&r, m);
        rig_add(&r, FIELD_IDLE_TIME, 1, 0, 100000);
        rig_add(&r, FIELD_IDLE_TIME, 2, 0, 200000);
        rig_add(&r, FIELD_IDLE_TIME, 4, 0, 650000);
        rig_add(&r, FIELD_IDLE_TIME, 1, 1, 900000); /* C6 there */
        for (uint8_t k = 2; k < 5; k++)
                rig_reason(&r, FIELD_IDLE_TIME, k, 1, REASON_NOT_APPLICABLE);
        next(&r);
        for (uint8_t k = 0; k < 5; k++) {
                assert_int_equal(value_of(&r, "idle_time", SCOPE_CPU, 0, k, &v), REASON_NONE);
                total += v;
        }
        assert_true(total > 94.9 && total <= 100.5);
        assert_metric(&r, "idle_time", SCOPE_CPU, 1, 1, 90, 0.001);
        assert_no_metric(&r, "idle_time", SCOPE_CPU, 1, 2, REASON_NOT_APPLICABLE);
        assert_metric(&r, "idle_time", SCOPE_PACKAGE, 0, 2, 55, 0.001); /* C6 of both: 20 % and 90 % */
        assert_metric(&r, "idle_time", SCOPE_PACKAGE, 0, 4, 65, 0.001); /* C10: who has it */
        rig_deinit(&r);
}

static void test_wakeups(void **state) {
        Machine *m = fixture_machine(1, 2, 1);
        Rig r;

        for (uint8_t k = 0; k < 4; k++) {
                fixture_column(m, FIELD_TRACE_ENTRIES, k);
                fixture_column(m, FIELD_WAKE_INTERRUPT, k);
                fixture_column(m, FIELD_WAKE_BREAK, k);
                fixture_column(m, FIELD_TRACE_NS, k);
        }
        machine_finish_layout(m);
        start(&r, m);
        for (uint8_t k = 0; k < 4; k++) {
                rig_add(&r, FIELD_TRACE_ENTRIES, k, 0, 100);
                rig_add(&r, FIELD_WAKE_INTERRUPT, k, 0, 90);
                rig_add(&r, FIELD_WAKE_BREAK, k, 0, 10);
                rig_reason(&r, FIELD_WAKE_BREAK, k, 1, REASON_NOT_APPLICABLE);
        }
        rig_add(&r, FIELD_TRACE_NS, 3, 0, RIG_SECOND / 4);
        next(&r);
        /* three states that are no polling */
        assert_metric(&r, "wakeups", SCOPE_CPU, 0, 0, 300, 0);
        assert_metric(&r, "wakeups_interrupt", SCOPE_CPU, 0, 0, 270, 0);
        assert_metric(&r, "wakeups_break", SCOPE_CPU, 0, 0, 30, 0);
        assert_no_metric(&r, "wakeups_break", SCOPE_CPU, 1, 0, REASON_NOT_APPLICABLE);
        assert_no_metric(&r, "wakeups_break_immediate", SCOPE_CPU, 0, 0, REASON_ABSENT);
        assert_metric(&r, "wakeups_interrupt", SCOPE_SYSTEM, 0, 0, 270, 0);
        assert_null(metric_method(metric_find("wakeups_break"), r.s->layout));
        /* requested time where only idletrace counts it, over the sample's own time */
        assert_string_equal(metric_method(metric_find("idle_time"), r.s->layout), "idletrace");
        assert_metric(&r, "idle_time", SCOPE_CPU, 0, 3, 25, 0.001);
        rig_deinit(&r);
}

static void test_break_as_a_bound(void **state) {
        Machine *m = fixture_machine(1, 1, 1);
        Rig r;

        fixture_column(m, FIELD_IRQ, 0);
        for (uint8_t k = 0; k < 4; k++)
                fixture_column(m, FIELD_IDLE_USAGE, k);
        machine_finish_layout(m);
        start(&r, m);
        rig_add(&r, FIELD_IDLE_USAGE, 0, 0, 5);
        rig_add(&r, FIELD_IDLE_USAGE, 3, 0, 200000);
        rig_add(&r, FIELD_IRQ, 0, 0, 300);
        next(&r);
        assert_string_equal(metric_method(metric_find("wakeups_break"), r.s->layout), "bound");
        assert_metric(&r, "wakeups_break", SCOPE_CPU, 0, 0, 199700, 0);
        assert_metric(&r, "wakeups", SCOPE_CPU, 0, 0, 200000, 0);
        assert_false(metric_available(metric_find("wakeups_interrupt"), r.s->layout));
        rig_deinit(&r);
}

/* A window's value: sums over ticks of unequal length, not a mean of means. */
static void test_window(void **state) {
        static const FieldId fields[] = { FIELD_PKG_NS, FIELD_ENERGY_PKG, FIELD_NONE };
        const MetricSpec *m = metric_find("pkg_watts");
        MetricSum own = {}, up = {};
        double v = NAN;
        Rig r;

        start(&r, machine_with(2, 1, 1, fields));
        for (unsigned i = 1; i <= 3; i++) {
                rig_wait(&r, i);
                rig_add(&r, FIELD_ENERGY_PKG, 0, 0, 60 * JOULE_14);
                rig_add(&r, FIELD_ENERGY_PKG, 0, 1, i * 10 * JOULE_14);
                assert_int_equal(rig_push(&r), 0);
                metric_gather(m, r.s, SCOPE_PACKAGE, 0, 0, &own);
                metric_gather(m, r.s, SCOPE_SYSTEM, 0, 0, &up);
        }
        assert_int_equal(metric_value(m, &own, RIG_HZ, &v), REASON_NONE);
        assert_true(fabs(v - 30) < 1e-6); /* 180 J in 6 s */
        assert_int_equal(metric_value(m, &up, RIG_HZ, &v), REASON_NONE);
        assert_true(fabs(v - 40) < 1e-6);
        rig_deinit(&r);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_catalogue_is_sound),
                cmocka_unit_test(test_catalogue_is_complete),
                cmocka_unit_test(test_ratios_and_frequencies),
                cmocka_unit_test(test_tolerance),
                cmocka_unit_test(test_c20_null_and_never_nan),
                cmocka_unit_test(test_first_sample_has_reasons),
                cmocka_unit_test(test_c04_unit_of_the_column),
                cmocka_unit_test(test_c05_nothing_is_counted_twice),
                cmocka_unit_test(test_c09_scopes),
                cmocka_unit_test(test_watts_need_every_member),
                cmocka_unit_test(test_residency_upwards_is_settled),
                cmocka_unit_test(test_temperatures_go_up_by_maximum),
                cmocka_unit_test(test_busy_by_stat),
                cmocka_unit_test(test_c11_state_lists_differ),
                cmocka_unit_test(test_wakeups),
                cmocka_unit_test(test_break_as_a_bound),
                cmocka_unit_test(test_window),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
