/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who slept through, from a slot that the classifier fills as the kernel would; our own reads are no waking. */

#include "tests/unit/test.h"

#include "sampler/idle-activity.h"

#define MS 1000000ULL
#define US 1000ULL
#define INTERVAL (1000 * MS)
#define T0 (50 * INTERVAL) /* of the turn before */
#define T1 (T0 + INTERVAL)
#define C6 3

#define ASLEEP ACTIVITY_TRACE_KNOWN
#define AWAKE (ACTIVITY_TRACE_KNOWN | ACTIVITY_TRACE)

typedef struct Cpu {
        struct idle_trace_slot slot;
        struct idle_trace_stores stores;
        IdleTotals before;
} Cpu;

static void enter(Cpu *c, uint64_t ns) {
        idle_classify_enter(&c->slot, &c->stores, C6, ns);
}

/* Woken by an interrupt, and asleep again. */
static void wake(Cpu *c, uint64_t ns, uint64_t awake_ns) {
        idle_classify_exit(&c->slot, &c->stores, ns);
        idle_classify_interrupt(&c->slot, &c->stores, ns + 500);
        enter(c, ns + awake_ns);
}

static uint8_t turn(Cpu *c, uint64_t prev_ns, uint64_t now_ns, uint32_t asked) {
        IdleTraceReading r;

        idle_trace_read(&c->slot, now_ns, &r);
        return idle_activity(&c->before, &r, prev_ns, now_ns, asked);
}

/* Asleep since long before T0, where a turn was. */
static Cpu sleeper(void) {
        Cpu c = {};

        enter(&c, T0 - 10 * INTERVAL);
        assert_int_equal(turn(&c, T0 - INTERVAL, T0, 0), ASLEEP);
        return c;
}

static void test_nothing_known(void **state) {
        Cpu c = {};

        assert_int_equal(turn(&c, T0, T1, 0), 0); /* no event of it yet */
        enter(&c, T0 - INTERVAL);
        assert_int_equal(turn(&c, 0, T1, 0), 0); /* no turn before */
}

static void test_one_sleep(void **state) {
        Cpu c = sleeper();

        assert_int_equal(turn(&c, T0, T1, 0), ASLEEP);
        assert_int_equal(turn(&c, T1, T1 + INTERVAL, 0), ASLEEP);
}

static void test_awake(void **state) {
        Cpu c = sleeper();

        idle_classify_exit(&c.slot, &c.stores, T0 + MS);
        assert_int_equal(turn(&c, T0, T1, 0), AWAKE); /* and still is */
        assert_int_equal(turn(&c, T1, T1 + INTERVAL, 7), AWAKE);
}

static void test_woke_by_itself(void **state) {
        Cpu c = sleeper();

        wake(&c, T0 + 300 * MS, 20 * US);
        assert_int_equal(turn(&c, T0, T1, 0), AWAKE);
        assert_int_equal(turn(&c, T1, T1 + INTERVAL, 0), ASLEEP);
}

/* What we asked of it woke it for a moment: asleep, or it would be asked for ever. */
static void test_woken_by_us(void **state) {
        Cpu c = sleeper();

        wake(&c, T0 + 200 * US, 20 * US);
        assert_int_equal(turn(&c, T0, T1, 1), ASLEEP);
        c = sleeper();
        for (unsigned i = 0; i < 3; i++)
                wake(&c, T0 + (200 + 50 * i) * US, 20 * US);
        assert_int_equal(turn(&c, T0, T1, 3), ASLEEP);
}

/* Our reads explain one waking each, and no longer than an answer takes. */
static void test_woken_by_us_and_itself(void **state) {
        Cpu c = sleeper();

        wake(&c, T0 + 200 * US, 20 * US);
        wake(&c, T0 + 500 * MS, 20 * US);
        assert_int_equal(turn(&c, T0, T1, 1), AWAKE);
        c = sleeper();
        wake(&c, T0 + 200 * US, 5 * MS);
        assert_int_equal(turn(&c, T0, T1, 1), AWAKE);
}

/* Asked while it was awake by itself, before its only sleep began: it was awake. */
static void test_asked_while_awake(void **state) {
        Cpu c = {};

        enter(&c, T0 - 2 * INTERVAL);
        idle_classify_exit(&c.slot, &c.stores, T0 - MS);
        assert_int_equal(turn(&c, T0 - INTERVAL, T0, 0), AWAKE);
        enter(&c, T0 + 400 * MS);
        assert_int_equal(turn(&c, T0, T1, 1), AWAKE);
        assert_int_equal(turn(&c, T1, T1 + INTERVAL, 1), ASLEEP);
}

/* Through a whole interval in POLL: MPERF went on, whoever took that for a sleep would call it idle. */
static void test_polling_is_awake(void **state) {
        static IdleSet set = { .n_states = 2, .states = { { .is_poll = true }, {} } };
        IdleTotals before = {};
        IdleTraceReading r = { .seen = true, .entries = { 1 } };

        r.asleep_since = idle_halted_since(&set, 0, T0 - INTERVAL / 2);
        assert_int_equal(r.asleep_since, 0);
        assert_int_equal(idle_activity(&before, &r, T0 - INTERVAL, T0, 0), AWAKE);
        assert_int_equal(idle_activity(&before, &r, T0, T1, 0), AWAKE);
        assert_int_equal(idle_halted_since(&set, 1, T0), T0);
        assert_int_equal(idle_halted_since(&set, 2, T0), T0); /* not of the list: a halt */
        assert_int_equal(idle_halted_since(NULL, 0, T0), T0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nothing_known),
                cmocka_unit_test(test_one_sleep),
                cmocka_unit_test(test_awake),
                cmocka_unit_test(test_woke_by_itself),
                cmocka_unit_test(test_woken_by_us),
                cmocka_unit_test(test_woken_by_us_and_itself),
                cmocka_unit_test(test_asked_while_awake),
                cmocka_unit_test(test_polling_is_awake),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
