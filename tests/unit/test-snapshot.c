/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <math.h>

#include <jansson.h>

#include "tests/unit/sample-rig.h"

#include "api/snapshot.h"

#define JOULE_14 (1 << 14)

static Machine *machine_full(void) {
        Machine *m = fixture_machine(2, 2, 2);

        for (FieldId f = FIELD_CPU_TSC; f <= FIELD_SMI; f++)
                fixture_column(m, f, 0);
        fixture_column(m, FIELD_IRQ, 0);
        fixture_column(m, FIELD_IDLE_NS, 0);
        for (uint8_t k = 0; k < 4; k++) {
                fixture_column(m, FIELD_IDLE_TIME, k);
                fixture_column(m, FIELD_IDLE_USAGE, k);
                fixture_column(m, FIELD_IDLE_ABOVE, k);
        }
        fixture_column(m, FIELD_CORE_TSC, 0);
        fixture_column(m, FIELD_C6, 0);
        fixture_column(m, FIELD_PKG_TSC, 0);
        fixture_column(m, FIELD_PKG_NS, 0);
        fixture_column(m, FIELD_PC6, 0);
        fixture_column(m, FIELD_ENERGY_PKG, 0)->scale = 1.0 / JOULE_14;
        fixture_column(m, FIELD_ENERGY_RAM, 0)->scale = 15.3e-6;
        machine_finish_layout(m);
        return m;
}

/* Strictly parsed: what is no JSON fails here. */
static json_t *snapshot(const Rig *r) {
        JsonWriter j = JSON_WRITER_INIT;
        _cleanup_free_ char *text = NULL;
        json_t *root;
        size_t n;

        assert_int_equal(snapshot_write(&j, r->m, r->s), 0);
        text = jw_take(&j, &n);
        assert_non_null(text);
        assert_null(strstr(text, "nan"));
        assert_null(strstr(text, "inf"));
        root = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(root);
        return root;
}

static json_t *entity(json_t *root, const char *key, size_t i) {
        json_t *e = json_array_get(json_object_get(root, key), i);

        assert_non_null(e);
        return e;
}

static void assert_number(json_t *object, const char *key, double expected, double tolerance) {
        json_t *v = json_object_get(object, key);

        if (!json_is_number(v) || fabs(json_number_value(v) - expected) > tolerance)
                fail_msg("%s is %f, not %f", key, json_number_value(v), expected);
}

static void assert_null_because(json_t *object, const char *key, const char *reason) {
        const char *why = json_string_value(json_object_get(json_object_get(object, "reasons"), key));

        assert_true(json_is_null(json_object_get(object, key)));
        assert_non_null(why);
        assert_string_equal(why, reason);
}

static void start(Rig *r, Machine *m) {
        *r = (Rig){};
        rig_machine(r, m);
        rig_wait(r, 10);
        assert_int_equal(rig_push(r), SAMPLE_E_FIRST);
}

static void a_second(Rig *r) {
        rig_wait(r, 1);
        rig_add(r, FIELD_MPERF, 0, 2, RIG_HZ / 4);
        rig_add(r, FIELD_IRQ, 0, 2, 1000);
        rig_add(r, FIELD_IRQ, 0, 3, 10);
        rig_add(r, FIELD_IDLE_USAGE, 3, 2, 1200);
        rig_add(r, FIELD_IDLE_ABOVE, 3, 2, 7);
        rig_add(r, FIELD_IDLE_TIME, 3, 2, 740000);
        for (uint32_t e = 0; e < 4; e++)
                rig_add(r, FIELD_C6, 0, e, RIG_HZ / 10 * 7);
        for (uint32_t e = 0; e < 2; e++) {
                rig_add(r, FIELD_PC6, 0, e, RIG_HZ / 2);
                rig_add(r, FIELD_ENERGY_PKG, 0, e, 50 * JOULE_14);
                rig_add(r, FIELD_ENERGY_RAM, 0, e, 1000000);
        }
        assert_int_equal(rig_push(r), 0);
}

static void test_shape(void **state) {
        json_t *root, *system, *cpu, *core, *package, *c6;
        Rig r;

        start(&r, machine_full());
        a_second(&r);
        root = snapshot(&r);
        assert_true(json_is_integer(json_object_get(root, "start")));
        assert_int_equal(json_integer_value(json_object_get(root, "end")) -
                        json_integer_value(json_object_get(root, "start")), 1000);
        assert_number(root, "interval_ms", 1000, 0);
        assert_int_equal(json_array_size(json_object_get(root, "packages")), 2);
        assert_int_equal(json_array_size(json_object_get(root, "modules")), 0);
        assert_int_equal(json_array_size(json_object_get(root, "cores")), 4);
        assert_int_equal(json_array_size(json_object_get(root, "cpus")), 8);
        assert_int_equal(json_array_size(json_object_get(root, "offline")), 0);

        cpu = entity(root, "cpus", 2);
        assert_number(cpu, "cpu", 2, 0);
        assert_number(cpu, "package", 1, 0);
        assert_number(cpu, "core", 0, 0);
        assert_number(cpu, "busy", 25, 0.001);
        assert_true(json_is_integer(json_object_get(cpu, "irq")));
        assert_number(cpu, "irq", 1000, 0);
        assert_number(cpu, "c1", 5, 0.01);
        assert_null(json_object_get(cpu, "c6"));
        c6 = json_object_get(json_object_get(cpu, "idle"), "C6");
        assert_number(c6, "time", 74, 0.001);
        assert_number(c6, "usage", 1200, 0);
        assert_number(c6, "above", 7, 0);
        assert_null(json_object_get(c6, "rejected"));
        assert_non_null(json_object_get(json_object_get(cpu, "idle"), "POLL"));

        core = entity(root, "cores", 2);
        assert_number(core, "package", 1, 0);
        assert_number(core, "core", 0, 0);
        assert_number(core, "c6", 70, 0.001);
        package = entity(root, "packages", 1);
        assert_true(json_is_null(json_object_get(package, "die")));
        assert_number(package, "pc6", 50, 0.001);
        assert_number(package, "pkg_watts", 50, 0.001);
        assert_number(package, "ram_watts", 15.3, 0.001);
        assert_number(package, "c6", 70, 0.001);

        system = json_object_get(root, "system");
        assert_number(system, "node_watts", 130.6, 0.001);
        assert_number(system, "irq", 1010, 0);
        assert_number(system, "busy", 25.0 / 8, 0.001);
        assert_number(json_object_get(json_object_get(system, "idle"), "C6"), "usage", 1200, 0);
        assert_number(system, "self_remote_reads", 0, 0);
        assert_null(json_object_get(system, "reasons"));
        /* this model has none of these: no key rather than a null */
        assert_null(json_object_get(package, "pc10"));
        assert_null(json_object_get(system, "sys_watts"));
        json_decref(root);
        rig_deinit(&r);
}

static void test_wakeups_by_bound(void **state) {
        json_t *root, *wakeups;
        Rig r;

        start(&r, machine_full());
        a_second(&r);
        root = snapshot(&r);
        wakeups = json_object_get(entity(root, "cpus", 2), "wakeups");
        assert_string_equal(json_string_value(json_object_get(wakeups, "method")), "bound");
        assert_number(wakeups, "break", 200, 0);
        assert_number(wakeups, "total", 1200, 0);
        assert_null_because(wakeups, "interrupt", "absent");
        assert_null_because(wakeups, "store", "absent");
        assert_null_because(wakeups, "break_immediate", "absent");
        json_decref(root);
        rig_deinit(&r);
}

/* Unavailable is null with a reason, never 0. */
static void test_nulls_have_reasons(void **state) {
        json_t *root;
        Rig r;

        start(&r, machine_full());
        root = snapshot(&r);
        assert_null_because(entity(root, "cpus", 0), "busy", "first");
        assert_null_because(json_object_get(root, "system"), "node_watts", "first");
        assert_null_because(json_object_get(json_object_get(entity(root, "cpus", 0), "idle"), "C1"), "usage", "first");
        json_decref(root);
        rig_reason(&r, FIELD_ENERGY_PKG, 0, 1, REASON_DENIED);
        rig_reason(&r, FIELD_PC6, 0, 0, REASON_VM);
        a_second(&r);
        root = snapshot(&r);
        assert_null_because(entity(root, "packages", 1), "pkg_watts", "denied");
        assert_number(entity(root, "packages", 0), "pkg_watts", 50, 0.001);
        assert_null_because(json_object_get(root, "system"), "pkg_watts", "denied");
        assert_null_because(json_object_get(root, "system"), "node_watts", "denied");
        assert_null_because(entity(root, "packages", 0), "pc6", "vm");
        json_decref(root);
        rig_deinit(&r);
}

static void test_settled_is_said(void **state) {
        json_t *root, *package;
        Rig r;

        start(&r, machine_full());
        a_second(&r);
        rig_reason(&r, FIELD_CORE_TSC, 0, 0, REASON_ASLEEP);
        rig_reason(&r, FIELD_C6, 0, 0, REASON_ASLEEP);
        a_second(&r);
        root = snapshot(&r);
        package = entity(root, "packages", 0);
        assert_null_because(entity(root, "cores", 0), "c6", "asleep");
        assert_number(package, "c6", 70, 0.001);
        assert_number(json_object_get(package, "settled"), "c6", 1, 0);
        assert_null(json_object_get(entity(root, "packages", 1), "settled"));
        json_decref(root);
        rig_deinit(&r);
}

/* C13: an offline CPU is named as such and has no values, old ones least of all. */
static void test_c13_offline(void **state) {
        json_t *root, *offline;
        Rig r;

        start(&r, fixture_unplug(machine_full(), 5));
        a_second(&r);
        root = snapshot(&r);
        offline = json_object_get(root, "offline");
        assert_int_equal(json_array_size(offline), 1);
        assert_int_equal(json_integer_value(json_array_get(offline, 0)), 5);
        assert_int_equal(json_array_size(json_object_get(root, "cpus")), 7);
        assert_number(entity(root, "cpus", 5), "cpu", 6, 0);
        json_decref(root);
        rig_deinit(&r);
}

/* A VM with nothing but /proc: busy by stat and interrupts are real, break is not applicable. */
static void test_c08_bare_vm(void **state) {
        Machine *m = fixture_machine(1, 2, 1);
        json_t *root, *cpu;
        Rig r;

        m->cpus[0].idle_set = m->cpus[1].idle_set = UINT16_MAX;
        m->n_idle_sets = 0;
        fixture_column(m, FIELD_IRQ, 0);
        fixture_column(m, FIELD_STAT_BUSY, 0);
        fixture_column(m, FIELD_STAT_IDLE, 0);
        machine_finish_layout(m);
        start(&r, m);
        rig_wait(&r, 1);
        rig_add(&r, FIELD_IRQ, 0, 1, 250);
        rig_add(&r, FIELD_STAT_BUSY, 0, 1, 40);
        rig_add(&r, FIELD_STAT_IDLE, 0, 1, 60);
        assert_int_equal(rig_push(&r), 0);
        root = snapshot(&r);
        cpu = entity(root, "cpus", 1);
        assert_number(cpu, "busy", 40, 0.001);
        assert_string_equal(json_string_value(json_object_get(cpu, "busy_method")), "stat");
        assert_number(cpu, "irq", 250, 0);
        assert_null_because(json_object_get(cpu, "wakeups"), "break", "not-applicable");
        assert_null(json_object_get(cpu, "idle"));
        assert_null(json_object_get(entity(root, "packages", 0), "pkg_watts"));
        assert_null(json_object_get(json_object_get(root, "system"), "node_watts"));
        json_decref(root);
        rig_deinit(&r);
}

/* No cpuidle, but idletrace: the default idle loop has a name, and its share is known. */
static void test_idletrace_without_cpuidle(void **state) {
        Machine *m = fixture_machine(1, 1, 1);
        json_t *root, *cpu;
        Rig r;

        m->cpus[0].idle_set = UINT16_MAX;
        m->n_idle_sets = 0;
        for (uint8_t k = 0; k < 2; k++) {
                fixture_column(m, FIELD_TRACE_ENTRIES, k);
                fixture_column(m, FIELD_TRACE_NS, k);
                fixture_column(m, FIELD_WAKE_INTERRUPT, k);
                fixture_column(m, FIELD_WAKE_STORE, k);
                fixture_column(m, FIELD_WAKE_BREAK, k);
                fixture_column(m, FIELD_WAKE_IMMEDIATE, k);
        }
        machine_finish_layout(m);
        start(&r, m);
        rig_wait(&r, 1);
        rig_add(&r, FIELD_TRACE_NS, 1, 0, RIG_SECOND / 100 * 99);
        rig_add(&r, FIELD_TRACE_ENTRIES, 1, 0, 30);
        rig_add(&r, FIELD_WAKE_INTERRUPT, 1, 0, 29);
        rig_add(&r, FIELD_WAKE_STORE, 1, 0, 1);
        rig_reason(&r, FIELD_WAKE_BREAK, 1, 0, REASON_NOT_APPLICABLE);
        rig_reason(&r, FIELD_WAKE_IMMEDIATE, 1, 0, REASON_NOT_APPLICABLE);
        assert_int_equal(rig_push(&r), 0);
        root = snapshot(&r);
        cpu = entity(root, "cpus", 0);
        assert_number(json_object_get(json_object_get(cpu, "idle"), "IDLE"), "time", 99, 0.001);
        assert_string_equal(json_string_value(json_object_get(cpu, "idle_method")), "idletrace");
        assert_number(json_object_get(cpu, "wakeups"), "interrupt", 29, 0);
        assert_number(json_object_get(cpu, "wakeups"), "store", 1, 0);
        assert_null_because(json_object_get(cpu, "wakeups"), "break", "not-applicable");
        assert_string_equal(json_string_value(json_object_get(json_object_get(cpu, "wakeups"), "method")), "idletrace");
        json_decref(root);
        rig_deinit(&r);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_shape),
                cmocka_unit_test(test_wakeups_by_bound),
                cmocka_unit_test(test_nulls_have_reasons),
                cmocka_unit_test(test_settled_is_said),
                cmocka_unit_test(test_c13_offline),
                cmocka_unit_test(test_c08_bare_vm),
                cmocka_unit_test(test_idletrace_without_cpuidle),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
