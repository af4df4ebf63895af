/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sleep lengths by package: sums that only grow, whatever comes, goes and wraps. */

#include "tests/unit/test.h"

#include "sampler/idle-sleeps.h"
#include "tests/unit/machine-fixture.h"

typedef struct Bed {
        IdleSleeps sleeps;
        struct idle_trace_slot slots[4];
        struct idle_trace_stores stores[4];
} Bed;

static void bed_start(Bed *b, const Machine *m) {
        memset(b, 0, sizeof(*b));
        assert_int_equal(idle_sleeps_init(&b->sleeps, ARRAY_SIZE(b->slots)), 0);
        assert_int_equal(idle_sleeps_set_machine(&b->sleeps, m), 0);
}

/* A sleep of that length, by the same code that runs in the kernel. */
static void sleep_once(Bed *b, uint32_t id, uint32_t state, uint64_t ns) {
        static uint64_t now = 1000000;

        idle_classify_enter(&b->slots[id], &b->stores[id], state, now);
        idle_classify_exit(&b->slots[id], &b->stores[id], now + ns);
        now += ns + 1000;
}

static void add_all(Bed *b, const Machine *m) {
        for (uint32_t i = 0; i < m->n_cpus; i++)
                idle_sleeps_add(&b->sleeps, m, i, &b->slots[m->cpus[i].id]);
}

static uint64_t count(const SleepsOfPackage *p) {
        uint64_t n = 0;

        for (unsigned i = 0; i < SLEEP_BUCKETS; i++)
                n += p->buckets[i];
        return n;
}

static void test_by_package_and_length(void **state) {
        Machine *m = fixture_machine(2, 2, 1); /* CPUs 0, 1 in package 0; 2, 3 in package 1 */
        const SleepsOfPackage *p;
        Bed b;

        bed_start(&b, m);
        sleep_once(&b, 0, 3, 1023);    /* [512, 1024) */
        sleep_once(&b, 1, 1, 1024);    /* [1024, 2048), another state */
        sleep_once(&b, 1, 0, 1 << 20); /* POLL: no sleep */
        sleep_once(&b, 3, 3, 1ULL << 40);
        add_all(&b, m);
        p = idle_sleeps_of(&b.sleeps, 0);
        assert_int_equal(p->buckets[9], 1);
        assert_int_equal(p->buckets[10], 1);
        assert_int_equal(count(p), 2);
        assert_int_equal(p->ns, 2047);
        p = idle_sleeps_of(&b.sleeps, 1);
        assert_int_equal(p->buckets[31], 1);
        assert_int_equal(count(p), 1);
        add_all(&b, m); /* nothing happened: nothing is added */
        assert_int_equal(count(idle_sleeps_of(&b.sleeps, 0)), 2);
        idle_sleeps_deinit(&b.sleeps);
        machine_free(m);
}

static void test_hotplug(void **state) {
        Machine *m = fixture_machine(2, 2, 1), *less = fixture_unplug(fixture_machine(2, 2, 1), 1);
        Bed b;

        bed_start(&b, m);
        sleep_once(&b, 0, 3, 600);
        sleep_once(&b, 1, 3, 600);
        add_all(&b, m);
        assert_int_equal(idle_sleeps_set_machine(&b.sleeps, less), 0);
        sleep_once(&b, 0, 3, 600);
        add_all(&b, less);
        assert_int_equal(count(idle_sleeps_of(&b.sleeps, 0)), 3);
        assert_int_equal(idle_sleeps_set_machine(&b.sleeps, m), 0);
        sleep_once(&b, 1, 3, 600);
        add_all(&b, m);
        assert_int_equal(count(idle_sleeps_of(&b.sleeps, 0)), 4);
        assert_int_equal(idle_sleeps_of(&b.sleeps, 0)->ns, 2400);
        assert_int_equal(count(idle_sleeps_of(&b.sleeps, 1)), 0);
        idle_sleeps_deinit(&b.sleeps);
        machine_free(m);
        machine_free(less);
}

/* 32 bits a bucket in the slot, 64 in the sum. */
static void test_wrap(void **state) {
        Machine *m = fixture_machine(1, 1, 1);
        Bed b;

        bed_start(&b, m);
        sleep_once(&b, 0, 3, 600);
        b.slots[0].states[3].histogram[9] = UINT32_MAX;
        add_all(&b, m);
        sleep_once(&b, 0, 3, 600);
        sleep_once(&b, 0, 3, 600);
        assert_int_equal(b.slots[0].states[3].histogram[9], 1);
        add_all(&b, m);
        assert_true(idle_sleeps_of(&b.sleeps, 0)->buckets[9] == UINT32_MAX + UINT64_C(2));
        idle_sleeps_deinit(&b.sleeps);
        machine_free(m);
}

/* A new idle driver: what a state of that number counted before was another state. */
static void test_new_states(void **state) {
        Machine *m = fixture_machine(1, 1, 1);
        Bed b;

        bed_start(&b, m);
        sleep_once(&b, 0, 3, 600);
        add_all(&b, m);
        sleep_once(&b, 0, 0, 600);
        m->idle_sets[0].states[0].is_poll = false;
        add_all(&b, m);
        assert_int_equal(count(idle_sleeps_of(&b.sleeps, 0)), 1);
        sleep_once(&b, 0, 0, 600);
        add_all(&b, m);
        assert_int_equal(count(idle_sleeps_of(&b.sleeps, 0)), 2);
        idle_sleeps_deinit(&b.sleeps);
        machine_free(m);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_by_package_and_length),
                cmocka_unit_test(test_hotplug),
                cmocka_unit_test(test_wrap),
                cmocka_unit_test(test_new_states),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
