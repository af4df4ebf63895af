/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whole turns on fixture trees: layout, generations, hotplug (C13), sources that come back, words of the
 * configuration. */

#include "tests/unit/test.h"

#include <errno.h>

#include "sampler/sampler-private.h"
#include "tests/unit/sysfs-fixture.h"

#define CPU "sys/devices/system/cpu"
#define INTR "intr 1\n"

static int setup(void **state) {
        static Fixture f;

        fixture_init(&f);
        fixture_write(&f, "0-1\n", CPU "/online");
        fixture_write(&f, "0-1\n", CPU "/present");
        fixture_write(&f, "cpu0 1 0 0 100 0\ncpu1 1 0 0 100 0\n" INTR, "proc/stat");
        fixture_write(&f, "     CPU0       CPU1\n  9:          1          2   acpi\n", "proc/interrupts");
        fixture_write(&f, "intel_idle\n", CPU "/cpuidle/current_driver");
        for (unsigned i = 0; i < 2; i++) {
                fixture_cpu(&f, i, 0, 0, (int) i, -2);
                fixture_state(&f, i, 0, "POLL", "CPUIDLE CORE POLL IDLE", 0, 0);
                fixture_state(&f, i, 1, "C6", "MWAIT 0x20", 100, 300);
        }
        *state = &f;
        return 0;
}

static int teardown(void **state) {
        fixture_deinit(*state);
        return 0;
}

static Sampler *start(Fixture *f) {
        SamplerConfig config = SAMPLER_CONFIG_INIT;
        Sampler *s = NULL;

        /* the others look at this machine, not at the fixture */
        assert_int_equal(sampler_parse_sources("stat,irq,cpuidle", &config.disabled_sources), 0);
        assert_int_equal(sampler_new(&config, f->sysfs, &s), 0);
        return s;
}

static const SourceStatus *status_of(const Sampler *s, const char *name) {
        const SamplerStatus *st = sampler_status(s);

        for (uint32_t i = 0; i < st->n_sources; i++)
                if (strcmp(st->sources[i].name, name) == 0)
                        return &st->sources[i];
        return NULL;
}

static void test_a_turn(void **state) {
        Sampler *s = start(*state);
        const Machine *m = sampler_machine(s);
        const Tick *t = NULL;

        assert_int_equal(m->generation, 1);
        assert_string_equal(status_of(s, "stat")->name, "stat");
        assert_int_equal(status_of(s, "cpuidle")->state, SOURCE_OK);
        assert_int_equal(status_of(s, "msr")->state, SOURCE_DISABLED);
        assert_string_equal(sampler_status(s)->wake_policy, "lazy");
        assert_non_null(strstr(sampler_status(s)->wake_policy_hint, "local cannot be had: "));
        assert_int_equal(sampler_turn(s, &t), 0);
        assert_int_equal(t->h.seq, 1);
        assert_int_equal(t->h.generation, 1);
        assert_int_equal(t->h.interval_ns, 1000000000);
        assert_true(t->h.mono_ns > 0 && t->h.boot_ns >= t->h.mono_ns && t->h.real_us > 0 &&
                    t->h.self_cpu_ns > 0);
        assert_int_equal(t->n_values, m->layout.n_values);
        assert_int_equal(t->values[layout_find(&m->layout, FIELD_IRQ, 0)->offset + 1], 2);
        for (size_t i = 0; i < t->n_values; i++)
                assert_int_equal(t->reasons[i], REASON_NONE);
        assert_int_equal(sampler_turn(s, &t), 0);
        assert_int_equal(t->h.seq, 2);
        assert_int_equal(t->reasons[layout_find(&m->layout, FIELD_IDLE_TIME, 1)->offset], REASON_ASLEEP);
        s = sampler_free(s);
}

static void test_turns_without_change_keep_the_tick(void **state) {
        Sampler *s = start(*state);
        const Tick *first, *t;

        assert_int_equal(sampler_turn(s, &first), 0);
        for (unsigned i = 0; i < 100; i++) {
                assert_int_equal(sampler_turn(s, &t), 0);
                assert_ptr_equal(t, first); /* nothing is allocated a turn */
        }
        s = sampler_free(s);
}

static void test_hotplug(void **state) {
        Fixture *f = *state;
        Sampler *s = start(f);
        const Tick *t;
        FrameEvent e;

        assert_int_equal(sampler_turn(s, &t), 0);
        fixture_write(f, "0\n", CPU "/online");
        fixture_write(f, "cpu0 1 0 0 100 0\n" INTR, "proc/stat");
        assert_int_equal(sampler_turn(s, &t), 1);
        assert_int_equal(sampler_machine(s)->generation, 2);
        assert_int_equal(sampler_machine(s)->n_cpus, 1);
        assert_int_equal(sampler_machine(s)->n_offline, 1);
        assert_int_equal(t->h.generation, 2);
        assert_int_equal(t->n_values, sampler_machine(s)->layout.n_values);
        assert_int_equal(sampler_take_event(s, &e), 1);
        assert_string_equal(e.kind, "hotplug");
        assert_int_equal(e.cpu, 1);
        assert_string_equal(e.text, "offline: 1");
        assert_int_equal(sampler_turn(s, &t), 0);
        fixture_write(f, "0-1\n", CPU "/online");
        assert_int_equal(sampler_turn(s, &t), 1);
        assert_int_equal(sampler_machine(s)->generation, 3);
        assert_int_equal(sampler_machine(s)->n_cpus, 2);
        assert_int_equal(sampler_take_event(s, &e), 1);
        assert_string_equal(e.text, "online: 1");
        assert_int_equal(sampler_take_event(s, &e), 0);
        s = sampler_free(s);
}

/* The CPU that was not touched sleeps on through the change: same clock, same reason; the other starts anew
 * (C13). */
static void test_hotplug_leaves_others_alone(void **state) {
        Fixture *f = *state;
        Sampler *s = start(f);
        const LayoutColumn *ns;
        uint64_t span;
        const Tick *t;

        assert_int_equal(sampler_turn(s, &t), 0);
        assert_int_equal(sampler_turn(s, &t), 0);
        ns = layout_find(&sampler_machine(s)->layout, FIELD_IDLE_NS, 0);
        assert_int_equal(t->reasons[ns->offset], REASON_ASLEEP);
        span = t->values[ns->offset];
        fixture_write(f, "0\n", CPU "/online");
        assert_int_equal(sampler_turn(s, &t), 1);
        ns = layout_find(&sampler_machine(s)->layout, FIELD_IDLE_NS, 0);
        assert_int_equal(t->reasons[ns->offset], REASON_ASLEEP);
        assert_true(t->values[ns->offset] == span);
        fixture_write(f, "0-1\n", CPU "/online");
        assert_int_equal(sampler_turn(s, &t), 1);
        ns = layout_find(&sampler_machine(s)->layout, FIELD_IDLE_NS, 0);
        assert_int_equal(t->reasons[ns->offset], REASON_ASLEEP);
        assert_true(t->values[ns->offset] == span);
        assert_int_equal(t->reasons[ns->offset + 1], REASON_NONE);
        s = sampler_free(s);
}

/* A CPU is online before its idle states are registered. */
static void test_idle_states_come_late(void **state) {
        Fixture *f = *state;
        const Tick *t;
        Sampler *s;

        fixture_remove(f, CPU "/cpu1/cpuidle");
        s = start(f);
        assert_int_equal(sampler_turn(s, &t), 0);
        assert_int_equal(sampler_machine(s)->cpus[1].idle_set, UINT16_MAX);
        fixture_state(f, 1, 0, "POLL", "CPUIDLE CORE POLL IDLE", 0, 0);
        fixture_state(f, 1, 1, "C6", "MWAIT 0x20", 100, 300);
        assert_int_equal(sampler_turn(s, &t), 0); /* seen */
        assert_int_equal(sampler_turn(s, &t), 1); /* taken in */
        assert_int_equal(sampler_machine(s)->cpus[1].idle_set, 0);
        assert_int_equal(sampler_turn(s, &t), 0);
        s = sampler_free(s);
}

/* sysfs that cannot be read for a moment: the machine stays, values are null or old, the next turn is well.
 */
static void test_unreadable_for_a_moment(void **state) {
        Fixture *f = *state;
        Sampler *s = start(f);
        const Tick *t;

        assert_int_equal(sampler_turn(s, &t), 0);
        fixture_write(f, "", CPU "/online");
        assert_int_equal(sampler_turn(s, &t), 0);
        assert_int_equal(sampler_machine(s)->n_cpus, 2);
        fixture_write(f, "0-1\n", CPU "/online");
        assert_int_equal(sampler_turn(s, &t), 0);
        assert_int_equal(sampler_machine(s)->generation, 1);
        s = sampler_free(s);
}

static void test_driver_change(void **state) {
        Fixture *f = *state;
        Sampler *s = start(f);
        const Tick *t;
        FrameEvent e;

        assert_int_equal(sampler_turn(s, &t), 0);
        fixture_write(f, "acpi_idle\n", CPU "/cpuidle/current_driver");
        assert_int_equal(sampler_turn(s, &t), 1);
        assert_string_equal(sampler_machine(s)->idle_driver, "acpi_idle");
        assert_int_equal(sampler_take_event(s, &e), 1);
        assert_string_equal(e.text, "idle driver: intel_idle -> acpi_idle");
        s = sampler_free(s);
}

static void test_fewer_sources(void **state) {
        Fixture *f = *state;
        const Tick *t;
        Sampler *s;

        fixture_remove(f, "proc/interrupts");
        fixture_remove(f, CPU "/cpu0/cpuidle");
        fixture_remove(f, CPU "/cpu1/cpuidle");
        s = start(f);
        assert_int_equal(status_of(s, "irq")->state, SOURCE_ABSENT);
        assert_int_equal(status_of(s, "cpuidle")->state, SOURCE_ABSENT);
        assert_true(status_of(s, "cpuidle")->hint[0]);
        assert_int_equal(sampler_turn(s, &t), 0);
        assert_int_equal(t->n_values, 4);
        assert_int_equal(sampler_take_event(s, &(FrameEvent){}), 0); /* what was never there is no event */
        s = sampler_free(s);
}

/* What was absent is looked for again: not each turn, but when its time has come; then it is a new machine,
 * and told. */
static void test_source_comes_back(void **state) {
        Fixture *f = *state;
        const Tick *t;
        FrameEvent e;
        Sampler *s;

        fixture_remove(f, "proc/interrupts");
        s = start(f);
        assert_int_equal(sampler_turn(s, &t), 0);
        fixture_write(f, "     CPU0       CPU1\n  9:          1          2   acpi\n", "proc/interrupts");
        assert_int_equal(sampler_turn(s, &t), 0);
        assert_int_equal(status_of(s, "irq")->state, SOURCE_ABSENT);
        assert_true(s->next_retry_ns - s->prev_ns <= 60000000000ULL); /* within the minute */
        s->next_retry_ns = 0;
        assert_int_equal(sampler_turn(s, &t), 1);
        assert_int_equal(status_of(s, "irq")->state, SOURCE_OK);
        assert_int_equal(status_of(s, "irq")->error, 0);
        assert_int_equal(sampler_machine(s)->generation, 2);
        assert_int_equal(t->values[layout_find(&sampler_machine(s)->layout, FIELD_IRQ, 0)->offset + 1], 2);
        assert_int_equal(sampler_take_event(s, &e), 1);
        assert_string_equal(e.kind, "source");
        assert_int_equal(strncmp(e.text, "irq: absent -> ok", 17), 0);
        assert_int_equal(sampler_turn(s, &t), 0);
        s = sampler_free(s);
}

/* A source that comes and goes every turn is told of once a minute. */
static void test_flapping_is_told_once(void **state) {
        Fixture *f = *state;
        Sampler *s = start(f);
        unsigned n_events = 0;
        const Tick *t;
        FrameEvent e;

        for (unsigned i = 0; i < 100; i++) {
                fixture_write(f, i % 2 ? "     CPU0       CPU1\n  9:          1          2   acpi\n" : "",
                        "proc/interrupts");
                assert_true(sampler_turn(s, &t) >= 0);
        }
        while (sampler_take_event(s, &e))
                n_events++;
        assert_int_equal(n_events, 1);
        s = sampler_free(s);
}

static void test_no_cpus(void **state) {
        SamplerConfig config = SAMPLER_CONFIG_INIT;
        Fixture *f = *state;
        Sampler *s = NULL;

        fixture_remove(f, CPU "/online");
        assert_int_equal(sampler_new(&config, f->sysfs, &s), -ENOENT);
        assert_null(s);
}

static void test_losses_are_told(void **state) {
        Sampler *s = start(*state);
        const Tick *t;

        sampler_set_losses(s, 3, 4);
        assert_int_equal(sampler_turn(s, &t), 0);
        assert_int_equal(t->h.self_missed, 3);
        assert_int_equal(t->h.self_dropped, 4);
        s = sampler_free(s);
}

static void test_words(void **state) {
        WakePolicy p = WAKE_LOCAL;
        uint32_t disabled = 77, msr, irq;

        assert_int_equal(wake_policy_from_name("always", &p), 0);
        assert_int_equal(p, WAKE_ALWAYS);
        assert_int_equal(wake_policy_from_name("never", &p), -EINVAL);
        assert_string_equal(wake_policy_name(WAKE_LAZY), "lazy");
        assert_int_equal(sampler_parse_sources("-nothing", &disabled), -EINVAL);
        assert_int_equal(sampler_parse_sources("-", &disabled), -EINVAL);
        assert_int_equal(sampler_parse_sources("msr, irq", &disabled), -EINVAL);
        assert_int_equal(sampler_parse_sources("msr,", &disabled), -EINVAL);
        assert_int_equal(sampler_parse_sources(",msr", &disabled), -EINVAL);
        assert_int_equal(disabled, 77);
        assert_int_equal(sampler_parse_sources("", &disabled), 0);
        assert_int_equal(disabled, 0);
        assert_int_equal(sampler_parse_sources("-msr", &msr), 0);
        assert_int_equal(sampler_parse_sources("-irq", &irq), 0);
        assert_int_equal(__builtin_popcount(msr), 1);
        assert_int_equal(sampler_parse_sources("-msr,-irq", &disabled), 0);
        assert_int_equal(disabled, msr | irq);
        assert_int_equal(sampler_parse_sources("msr,irq", &disabled), 0);
        assert_int_equal(disabled, ((1u << source_table_n) - 1) & ~(msr | irq));
}

static void test_hints(void **state) {
        SourceStatus s = {};

        source_status_set_error(&s, -ENOENT, "/dev/cpu/0/msr");
        assert_int_equal(s.state, SOURCE_ABSENT);
        assert_int_equal(s.error, ENOENT);
        assert_true(strstr(s.hint, "modprobe msr") && strstr(s.hint, "virtual machine"));
        source_status_set_error(&s, EACCES, "/dev/cpu/0/msr");
        assert_int_equal(s.state, SOURCE_DENIED);
        assert_true(strstr(s.hint, "CAP_DAC_READ_SEARCH"));
        source_status_set_error(&s, EPERM, "/dev/cpu/0/msr");
        assert_true(strstr(s.hint, "CAP_SYS_RAWIO") && strstr(s.hint, "lockdown"));
        source_status_set_error(&s, EPERM, "perf_event_open");
        assert_true(strstr(s.hint, "CAP_PERFMON") || strstr(s.hint, "lockdown"));
        source_status_set_error(&s, EIO, "/dev/cpu/0/msr");
        assert_int_equal(s.state, SOURCE_ERROR);
        assert_true(s.hint[0]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_turn, setup, teardown),
                cmocka_unit_test_setup_teardown(test_turns_without_change_keep_the_tick, setup, teardown),
                cmocka_unit_test_setup_teardown(test_hotplug, setup, teardown),
                cmocka_unit_test_setup_teardown(test_hotplug_leaves_others_alone, setup, teardown),
                cmocka_unit_test_setup_teardown(test_idle_states_come_late, setup, teardown),
                cmocka_unit_test_setup_teardown(test_unreadable_for_a_moment, setup, teardown),
                cmocka_unit_test_setup_teardown(test_driver_change, setup, teardown),
                cmocka_unit_test_setup_teardown(test_fewer_sources, setup, teardown),
                cmocka_unit_test_setup_teardown(test_source_comes_back, setup, teardown),
                cmocka_unit_test_setup_teardown(test_flapping_is_told_once, setup, teardown),
                cmocka_unit_test_setup_teardown(test_no_cpus, setup, teardown),
                cmocka_unit_test_setup_teardown(test_losses_are_told, setup, teardown),
                cmocka_unit_test(test_words),
                cmocka_unit_test(test_hints),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
