/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What CPUs read themselves, merged with what has to be asked for: 2 packages x 2 cores x 2 threads; CPU i and i + 4
 * share core i, cores 0 and 1 are package 0. Events of a core and a package are on their first CPU.
 */

#include "tests/unit/test.h"

#include <stdlib.h>
#include <time.h>

#include "sampler/local-sweep.h"
#include "sampler/msr-columns.h"
#include "tests/unit/sampler-fixture.h"

#define N      8
#define CORES  4
#define SECOND UINT64_C(1000000000)
#define MS     UINT64_C(1000000)
#define TSC_HZ UINT64_C(2000000000)
#define FIRST  0x10000u

enum { /* columns */
        MPERF,
        APERF,
        C1,
        C6,
        PC6,
        ENERGY,
        COLUMNS,
};
#define OWN    (1u << MPERF | 1u << APERF | 1u << C1 | 1u << C6)
#define SHARED (1u << PC6 | 1u << ENERGY)

typedef struct Bed {
        Machine *m;
        MsrSweep sweep;
        LocalReads reads;
        LocalSweep local;
        Tick *tick;
        CpuActivity activity[N];
        SourceTurn turn;
        uint64_t prev_ns;

        LocalReading readings[N]; /* what each CPU has read last */
        bool torn[N];
        LocalWant wants[N];
        unsigned n_due;
        uint32_t goes_idle; /* CPU that reads itself right after the turn has asked for it, N: none */
        unsigned n_remote[N];
        uint64_t remote_value;
} Bed;

static uint64_t now(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * SECOND + (uint64_t) ts.tv_nsec;
}

static void pass(unsigned ms) {
        struct timespec ts = { .tv_nsec = (long) (ms * MS) };

        (void) nanosleep(&ts, NULL);
}

static int remote_read(void *userdata, uint32_t cpu, uint32_t reg, uint64_t *ret) {
        Bed *b = userdata;

        assert_true(cpu < N && reg >= FIRST && reg < FIRST + COLUMNS);
        b->n_remote[cpu]++;
        *ret = b->remote_value;
        return 0;
}

/* The CPU goes idle now and reads columns; each has the value v. */
static void idle_entry(Bed *b, uint32_t cpu, uint32_t got, uint64_t v) {
        b->readings[cpu] = (LocalReading){ .ns = now(), .running = now(), .got = got };
        for (unsigned i = 0; i < COLUMNS; i++)
                b->readings[cpu].values[i] = v;
}

static int fake_set(void *userdata, uint32_t cpu, unsigned column, int fd) {
        return 0;
}

static void fake_want(void *userdata, uint32_t cpu, const LocalWant *want) {
        Bed *b = userdata;

        assert_true(cpu < N);
        b->wants[cpu] = *want;
}

static void fake_due(void *userdata) {
        Bed *b = userdata;

        b->n_due++;
        if (b->goes_idle < N)
                idle_entry(b, b->goes_idle, OWN, 777);
}

static bool fake_read(void *userdata, uint32_t cpu, LocalReading *ret) {
        Bed *b = userdata;

        *ret = b->readings[cpu];
        return ret->ns > 0 && !b->torn[cpu];
}

static uint32_t first_cpu_of(void *userdata, Scope scope, uint32_t e) {
        Bed *b = userdata;

        return machine_first_cpu(b->m, scope, e);
}

static void add_register(Bed *b, unsigned column, FieldId field) {
        MsrRegister r = { field, FIRST + column, MSR_DECODE_WIDE, MSR_ZERO_IS_VALUE };
        MsrColumn *c = msr_set_add(&b->sweep.set, b->m, &r);

        assert_non_null(c);
        c->scale = 1;
        for (uint32_t e = 0; e < c->n; e++)
                c->slots[e].present = true;
}

static int setup(void **state) {
        static const FieldId fields[COLUMNS] = { FIELD_MPERF, FIELD_APERF, FIELD_C1_RES, FIELD_C6, FIELD_PC6,
                FIELD_ENERGY_PKG };
        Bed *b = calloc(1, sizeof(*b));

        assert_non_null(b);
        b->m = fixture_machine((FixtureShape){ 2, 0, 2, 2 }, 6, 0x55, false);
        b->m->tsc_hz = TSC_HZ;
        b->m->idents[0].invariant_tsc = true;
        b->sweep.read = remote_read;
        b->sweep.userdata = b;
        b->sweep.set.n_packages = b->m->n_packages;
        b->sweep.set.convert = calloc(b->m->n_packages + 1, sizeof(MsrConvert));
        assert_non_null(b->sweep.set.convert);
        for (unsigned i = 0; i < COLUMNS; i++)
                add_register(b, i, fields[i]);
        msr_set_group(&b->sweep.set);
        assert_true(msr_columns_add(&b->sweep.set, &b->m->layout, 5) > 0);
        layout_finish(&b->m->layout);
        b->tick = tick_new(b->m->layout.n_values);
        assert_non_null(b->tick);
        b->reads = (LocalReads){ b, fake_set, fake_want, fake_due, fake_read };
        b->goes_idle = N;
        b->remote_value = 5;
        assert_int_equal(msr_sweep_init(&b->sweep, b->m), 0);
        assert_int_equal(local_sweep_init(&b->local, &b->sweep, b->m, &b->reads, FIRST, first_cpu_of, b), 0);
        *state = b;
        return 0;
}

static int teardown(void **state) {
        Bed *b = *state;

        local_sweep_deinit(&b->local);
        msr_sweep_deinit(&b->sweep);
        (void) tick_free(b->tick);
        (void) machine_free(b->m);
        free(b);
        return 0;
}

/* A turn; later: that many ns from now, as far as ages are concerned. */
static void turn_later(Bed *b, uint64_t later) {
        memset(b->n_remote, 0, sizeof(b->n_remote));
        b->turn = (SourceTurn){
                .machine = b->m,
                .tick = b->tick,
                .activity = b->activity,
                .wake_policy = WAKE_LOCAL,
                .now_ns = now() + later,
                .prev_ns = b->prev_ns,
        };
        b->prev_ns = b->turn.now_ns;
        local_sweep_run(&b->local, &b->sweep, &b->turn);
        msr_columns_publish(&b->sweep, &b->turn, 5);
}

static void turn(Bed *b) {
        turn_later(b, 0);
}

static unsigned n_remote(const Bed *b) {
        unsigned n = 0;

        for (unsigned i = 0; i < N; i++)
                n += b->n_remote[i];
        return n;
}

static uint8_t reason(const Bed *b, FieldId f, uint32_t e) {
        return b->tick->reasons[layout_find(&b->m->layout, f, 0)->offset + e];
}

static uint64_t value(const Bed *b, FieldId f, uint32_t e) {
        return b->tick->values[layout_find(&b->m->layout, f, 0)->offset + e];
}

/* Each CPU reads itself, the first of each package its package too, and sleeps on from there. */
static void all_go_idle(Bed *b, uint64_t v) {
        for (unsigned i = 0; i < N; i++) {
                idle_entry(b, i, i % 2 == 0 && i < CORES ? OWN | SHARED : OWN, v);
                b->activity[i] = (CpuActivity){ .asleep_since_ns = b->readings[i].ns };
        }
}

/* They have slept through since. */
static void all_sleep(Bed *b) {
        for (unsigned i = 0; i < N; i++)
                b->activity[i].slept = true;
}

/* A first turn, which knows nothing and asks, and one in which every CPU has read itself. */
static void begin(Bed *b) {
        turn(b);
        pass(2);
        all_go_idle(b, 100);
        turn(b);
        assert_int_equal(n_remote(b), 0);
}

static void test_what_is_wanted_of_whom(void **state) {
        Bed *b = *state;

        for (unsigned i = 0; i < N; i++) {
                const LocalWant *w = &b->wants[i];

                assert_int_equal(w->own, OWN & ~(1u << C6));
                assert_int_equal(w->core_columns, 1u << C6);
                assert_int_equal(w->package_columns, SHARED);
                assert_int_equal(w->core, i % CORES);        /* threads of a core meet, and no others */
                assert_int_equal(w->package, i % CORES & ~1u);
        }
}

static void test_first_turn_asks_for_all(void **state) {
        Bed *b = *state;

        turn(b);
        assert_int_equal(b->n_due, 1);
        assert_int_equal(n_remote(b), N * 3 + CORES + 2 * 2);
        for (unsigned i = 0; i < N; i++) {
                assert_int_equal(reason(b, FIELD_MPERF, i), REASON_NONE);
                assert_int_equal(reason(b, FIELD_CPU_TSC, i), REASON_NONE);
        }
}

static void test_readings_are_taken_at_their_own_time(void **state) {
        Bed *b = *state;
        uint64_t ns;

        begin(b);
        pass(5);
        all_go_idle(b, 250);
        ns = b->readings[6].ns;
        pass(5);
        turn(b);
        assert_int_equal(n_remote(b), 0);
        assert_int_equal(b->turn.n_remote_reads, 0);
        assert_int_equal(b->turn.n_wakeups, 0);
        assert_int_equal(b->n_due, 3);
        for (unsigned i = 0; i < N; i++) {
                assert_int_equal(reason(b, FIELD_MPERF, i), REASON_NONE);
                assert_int_equal(value(b, FIELD_MPERF, i), 250);
        }
        assert_int_equal(value(b, FIELD_CPU_NS, 6), ns);
        assert_int_equal(value(b, FIELD_C6, 2), 250);
        assert_int_equal(value(b, FIELD_CORE_NS, 2), ns); /* CPU 6 came after CPU 2 */
        assert_int_equal(value(b, FIELD_ENERGY_PKG, 1), 250);
        assert_int_equal(value(b, FIELD_PKG_NS, 1), b->readings[2].ns);
}

/* The TSC of a reading lies where its time lies between two turns. */
static void test_tsc_of_a_reading(void **state) {
        uint64_t tsc0, ns0, tsc1, ns1, expected;
        Bed *b = *state;

        begin(b);
        ns0 = b->local.prev_ns;
        tsc0 = b->local.prev_tsc;
        pass(20);
        idle_entry(b, 3, OWN, 300);
        pass(10);
        turn(b);
        ns1 = b->local.prev_ns;
        tsc1 = b->local.prev_tsc;
        expected = tsc0 +
                (uint64_t) ((double) (tsc1 - tsc0) * (double) (b->readings[3].ns - ns0) / (double) (ns1 - ns0));
        assert_in_range(value(b, FIELD_CPU_TSC, 3), expected - 1000, expected + 1000);
}

static void test_sleepers_are_not_asked_and_their_clock_goes_on(void **state) {
        uint64_t tsc[N], ns[N], core_ns;
        Bed *b = *state;

        begin(b);
        all_sleep(b);
        core_ns = value(b, FIELD_CORE_NS, 1);
        for (unsigned k = 0; k < 10; k++) {
                for (unsigned i = 0; i < N; i++) {
                        tsc[i] = value(b, FIELD_CPU_TSC, i);
                        ns[i] = value(b, FIELD_CPU_NS, i);
                }
                pass(2);
                turn(b);
                assert_int_equal(n_remote(b), 0);
                assert_int_equal(b->turn.n_wakeups, 0);
                for (unsigned i = 0; i < N; i++) {
                        assert_int_equal(reason(b, FIELD_MPERF, i), REASON_ASLEEP);
                        assert_int_equal(reason(b, FIELD_CPU_TSC, i), REASON_NONE);
                        assert_true(value(b, FIELD_CPU_TSC, i) > tsc[i]);
                        assert_true(value(b, FIELD_CPU_NS, i) >= ns[i] + 2 * MS);
                        assert_in_range(value(b, FIELD_CPU_NS, i), b->turn.now_ns, b->turn.now_ns + 50 * MS);
                }
                assert_int_equal(reason(b, FIELD_C6, 1), REASON_ASLEEP);
                assert_int_equal(reason(b, FIELD_CORE_TSC, 1), REASON_ASLEEP);
                assert_int_equal(value(b, FIELD_CORE_NS, 1), core_ns);
                assert_int_equal(reason(b, FIELD_PC6, 0), REASON_ASLEEP);
        }
}

/* It ran once more after its reading: that time waits for the next reading, the sleep after it does not. */
static void test_time_after_the_reading_is_left_out(void **state) {
        uint64_t ns, since;
        Bed *b = *state;

        begin(b);
        ns = value(b, FIELD_CPU_NS, 4);
        assert_int_equal(ns, b->readings[4].ns);
        pass(8);
        since = now();
        b->activity[4] = (CpuActivity){ .asleep_since_ns = since, .slept = true };
        pass(4);
        turn(b);
        assert_int_equal(b->n_remote[4], 0);
        assert_int_equal(value(b, FIELD_CPU_NS, 4) - ns, b->local.prev_ns - since);
        assert_true(value(b, FIELD_CPU_NS, 4) + 7 * MS < b->local.prev_ns);
        pass(2);
        idle_entry(b, 4, OWN, 180);
        turn(b);
        assert_int_equal(value(b, FIELD_CPU_NS, 4), b->readings[4].ns); /* and now it is all in */
        assert_int_equal(value(b, FIELD_MPERF, 4), 180);
}

/* And it does not wait for ever: who sleeps on is asked for that piece within a minute, who did nothing is not. */
static void test_time_after_the_reading_comes_within_a_minute(void **state) {
        Bed *b = *state;

        begin(b);
        all_sleep(b);
        pass(2);
        b->activity[6].asleep_since_ns = now();
        turn_later(b, 20 * SECOND);
        assert_int_equal(n_remote(b), 0);
        turn_later(b, 60 * SECOND);
        assert_true(b->n_remote[6] > 0);
        assert_int_equal(reason(b, FIELD_MPERF, 6), REASON_NONE);
        assert_int_equal(b->n_remote[7], 0);
        assert_int_equal(reason(b, FIELD_MPERF, 7), REASON_ASLEEP);
}

static void test_who_never_went_idle_is_asked_and_not_woken(void **state) {
        Bed *b = *state;

        begin(b);
        all_sleep(b);
        b->activity[5] = (CpuActivity){ .busy_permille = 1000 };
        b->remote_value = 900;
        turn(b);
        assert_int_equal(b->n_remote[5], 3);
        assert_int_equal(n_remote(b), 3); /* its core's events are on CPU 1, which sleeps */
        assert_int_equal(b->turn.n_wakeups, 0);
        assert_int_equal(value(b, FIELD_MPERF, 5), 900);
        b->activity[1] = (CpuActivity){ .busy_permille = 1000 };
        turn(b);
        assert_int_equal(b->n_remote[1], 3 + 1);
        assert_int_equal(value(b, FIELD_C6, 1), 900);
        assert_int_equal(reason(b, FIELD_PC6, 0), REASON_ASLEEP); /* on CPU 0 */
}

/* An interrupt between looking and asking would wake it: it is looked at once more. */
static void test_who_goes_idle_just_now_is_left_alone(void **state) {
        Bed *b = *state;

        begin(b);
        all_sleep(b);
        b->activity[7] = (CpuActivity){ .busy_permille = 1000 };
        b->goes_idle = 7;
        turn(b);
        assert_int_equal(n_remote(b), 0);
        assert_int_equal(value(b, FIELD_MPERF, 7), 777);
}

static void test_a_torn_reading_is_none(void **state) {
        Bed *b = *state;

        begin(b);
        all_sleep(b);
        pass(1);
        idle_entry(b, 2, OWN, 333);
        b->torn[2] = true;
        turn(b);
        assert_int_equal(n_remote(b), 0);
        assert_int_equal(value(b, FIELD_MPERF, 2), 100);
        b->torn[2] = false; /* whole in the next turn: it is not lost */
        turn(b);
        assert_int_equal(value(b, FIELD_MPERF, 2), 333);
}

static void test_old_readings_are_not_taken_twice(void **state) {
        Bed *b = *state;

        begin(b);
        b->activity[6] = (CpuActivity){ .busy_permille = 1000 };
        turn(b); /* asked: newer than its reading */
        assert_int_equal(value(b, FIELD_MPERF, 6), 5);
        turn(b);
        assert_int_equal(b->n_remote[6], 3);
        /* of events that were there before these */
        b->readings[6].ns = b->local.opened_ns;
        b->local.heard_ns[6] = 0;
        turn(b);
        assert_int_equal(value(b, FIELD_MPERF, 6), 5);
}

static void test_no_core_goes_unread_for_more_than_a_minute(void **state) {
        uint64_t last[CORES], later = 0;
        unsigned total = 0;
        Bed *b = *state;

        begin(b);
        all_sleep(b);
        for (unsigned c = 0; c < CORES; c++)
                last[c] = 0;
        for (unsigned i = 0; i < 59; i++) {
                later += SECOND;
                turn_later(b, later);
                total += n_remote(b) > 0;
                for (unsigned c = 0; c < CORES; c++)
                        if (reason(b, FIELD_C6, c) == REASON_NONE)
                                last[c] = later;
                /* one wakeup a core for all that is read of it */
                assert_true(b->turn.n_wakeups <= CORES);
        }
        for (unsigned c = 0; c < CORES; c++)
                assert_true(last[c] > 40 * SECOND);
        assert_true(total <= 59 - 40);
}

/* It went offline and came back between two turns: its events answer, but with what they had counted. */
static void test_events_that_died(void **state) {
        Bed *b = *state;
        uint64_t running;

        begin(b);
        running = b->readings[3].running;
        pass(2);
        idle_entry(b, 3, OWN, 100);
        b->readings[3].running = running;
        turn(b);
        assert_false(b->local.has_dead); /* a kernel that does not count that time */
        pass(2);
        idle_entry(b, 3, OWN, 100);
        turn(b);
        assert_false(b->local.has_dead);
        running = b->readings[3].running + MS; /* it went on for a little while */
        pass(5);
        idle_entry(b, 3, OWN, 100);
        b->readings[3].running = running;
        b->activity[3] = (CpuActivity){ .asleep_since_ns = b->readings[3].ns };
        turn(b);
        assert_true(b->local.has_dead);
        assert_int_equal(reason(b, FIELD_MPERF, 3), REASON_ASLEEP); /* not 100 with a clock that moved on */
}

/* A kernel that lets none but the CPU of the event read it, or no CPU at all. */
static void test_what_cannot_be_read_locally_is_read_lazily(void **state) {
        Bed *b = *state;

        turn(b);
        for (unsigned k = 0; k < 3; k++) {
                pass(1);
                for (unsigned i = 0; i < N; i++) {
                        idle_entry(b, i, 1u << MPERF | 1u << APERF | (i < CORES ? 1u << C6 : 0), 40 + k);
                        b->activity[i] = (CpuActivity){ .asleep_since_ns = b->readings[i].ns };
                }
                turn(b);
                /* C1 of each, and both packages; cores are read on their first CPU */
                assert_int_equal(n_remote(b), N + 2 * 2);
                assert_int_equal(value(b, FIELD_C6, 3), 40 + k);
                assert_int_equal(value(b, FIELD_CORE_NS, 3), b->readings[3].ns);
        }
        all_sleep(b);
        turn(b);
        assert_int_equal(n_remote(b), 0);
}

/* Old kernels: only the CPU of the events reads a core. When it sleeps and its sibling does not, the core waits. */
static void test_a_core_waits_for_the_cpu_of_its_events(void **state) {
        Bed *b = *state;

        begin(b);
        all_sleep(b);
        pass(1);
        idle_entry(b, 5, 1u << MPERF | 1u << APERF | 1u << C1, 60);
        b->activity[5] = (CpuActivity){ .asleep_since_ns = b->readings[5].ns };
        turn(b);
        assert_int_equal(n_remote(b), 0);
        assert_int_equal(value(b, FIELD_MPERF, 5), 60);
        assert_int_equal(reason(b, FIELD_C6, 1), REASON_ASLEEP);
}

static void test_counts_of_64_bits(void **state) {
        Bed *b = *state;

        begin(b);
        pass(1);
        all_go_idle(b, UINT64_MAX - 3);
        turn(b);
        assert_int_equal(value(b, FIELD_APERF, 7), UINT64_MAX - 3);
        pass(1);
        all_go_idle(b, 2);
        turn(b);
        assert_int_equal(value(b, FIELD_APERF, 7), 2);
        assert_int_equal(reason(b, FIELD_APERF, 7), REASON_NONE);
        assert_int_equal(layout_find(&b->m->layout, FIELD_APERF, 0)->width, 64); /* so that the difference is 6 */
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(test_what_is_wanted_of_whom),
                TEST(test_first_turn_asks_for_all),
                TEST(test_readings_are_taken_at_their_own_time),
                TEST(test_tsc_of_a_reading),
                TEST(test_sleepers_are_not_asked_and_their_clock_goes_on),
                TEST(test_time_after_the_reading_is_left_out),
                TEST(test_time_after_the_reading_comes_within_a_minute),
                TEST(test_who_never_went_idle_is_asked_and_not_woken),
                TEST(test_who_goes_idle_just_now_is_left_alone),
                TEST(test_a_torn_reading_is_none),
                TEST(test_old_readings_are_not_taken_twice),
                TEST(test_no_core_goes_unread_for_more_than_a_minute),
                TEST(test_events_that_died),
                TEST(test_what_cannot_be_read_locally_is_read_lazily),
                TEST(test_a_core_waits_for_the_cpu_of_its_events),
                TEST(test_counts_of_64_bits),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
