/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sweeps over registers in a table: 2 packages x 2 cores x 2 threads; CPU i and i + 4 share core i. */

#include "tests/unit/test.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "sampler/msr-columns.h"
#include "tests/unit/sampler-fixture.h"

#define N      8
#define ANY    UINT32_MAX
#define SECOND UINT64_C(1000000000)

typedef struct Bed {
        Machine *m;
        MsrSweep sweep;
        Tick *tick;
        CpuActivity activity[N];
        SourceTurn turn;
        uint64_t now_ns; /* advanced by a second a turn; the sweep's own clock is the real one */

        uint32_t bad_cpu, bad_reg; /* the fault: its error, or milliseconds */
        int bad_error;
        unsigned bad_ms;
        unsigned n_reads[N];
        uint64_t c7; /* of every core; core C6 is 1000 more */
} Bed;

static int fake_read(void *userdata, uint32_t cpu, uint32_t reg, uint64_t *ret) {
        Bed *b = userdata;

        assert_true(cpu < N);
        b->n_reads[cpu]++;
        if ((b->bad_cpu == cpu || b->bad_cpu == ANY) && (b->bad_reg == reg || b->bad_reg == ANY)) {
                struct timespec ts = { .tv_nsec = (long) b->bad_ms * 1000000 };

                (void) nanosleep(&ts, NULL);
                if (b->bad_error)
                        return b->bad_error;
        }
        *ret = reg == MSR_RAPL_UNIT            ? 0xa0e03
               : reg == MSR_TEMPERATURE_TARGET ? 100u << 16
               : reg == MSR_CORE_C6            ? b->c7 + 1000
               : reg == MSR_CORE_C7            ? b->c7
                                               : 0x1000u * reg + b->now_ns / SECOND;
        return 0;
}

static void start(Bed *b, uint32_t model, CpuCoreType type) {
        const CpuModel *row;

        *b = (Bed){
                .m = fixture_machine((FixtureShape){ 2, 0, 2, 2 }, 6, model, false), .bad_cpu = N, .c7 = 5000
        };
        b->m->idents[0].core_type = type;
        b->m->idents[0].hybrid = type != CORE_TYPE_NONE;
        row = cpu_table_find(&b->m->idents[0]);
        assert_non_null(row);
        b->now_ns = 100 * SECOND;
        b->sweep.read = fake_read;
        b->sweep.userdata = b;
        assert_int_equal(msr_probe(&b->sweep.set, fake_read, b, b->m, &row), 0);
        assert_true(msr_columns_add(&b->sweep.set, &b->m->layout, 5) > 0);
        layout_finish(&b->m->layout);
        b->tick = tick_new(b->m->layout.n_values);
        assert_non_null(b->tick);
        assert_int_equal(msr_sweep_init(&b->sweep, b->m), 0);
}

static void stop(Bed *b) {
        msr_sweep_deinit(&b->sweep);
        (void) tick_free(b->tick);
        (void) machine_free(b->m);
}

static void turn(Bed *b, WakePolicy policy) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        b->turn = (SourceTurn){
                .machine = b->m,
                .tick = b->tick,
                .activity = b->activity,
                .wake_policy = policy,
                .prev_ns = b->turn.now_ns,
                .now_ns = (uint64_t) ts.tv_sec * SECOND + (uint64_t) ts.tv_nsec,
        };
        b->now_ns += SECOND;
        memset(b->n_reads, 0, sizeof(b->n_reads));
        msr_sweep_run(&b->sweep, &b->turn);
        msr_columns_publish(&b->sweep, &b->turn, 5);
}

static size_t slot(const Bed *b, FieldId field, uint32_t e) {
        const LayoutColumn *c = layout_find(&b->m->layout, field, 0);

        assert_non_null(c);
        return c->offset + e;
}

static Reason reason(const Bed *b, FieldId field, uint32_t e) {
        return (Reason) b->tick->reasons[slot(b, field, e)];
}

static uint64_t value(const Bed *b, FieldId field, uint32_t e) {
        return b->tick->values[slot(b, field, e)];
}

static void sleep_all(Bed *b) {
        for (unsigned i = 0; i < N; i++)
                b->activity[i] = (CpuActivity){ .slept = true };
}

static void test_all_is_read_once(void **state) {
        Bed b;

        start(&b, 0x55, CORE_TYPE_NONE);
        turn(&b, WAKE_LAZY);
        for (uint32_t e = 0; e < N; e++)
                assert_int_equal(reason(&b, FIELD_MPERF, e), REASON_NONE);
        for (uint32_t e = 0; e < 4; e++)
                assert_int_equal(reason(&b, FIELD_C6, e), REASON_NONE);
        assert_int_equal(value(&b, FIELD_PC6, 1), 0x1000 * MSR_PC6 + 101);
        /* threads: MPERF, APERF, SMI; cores: C6, temperature; packages: 2 residencies, 2 energies, 2
         * throttles, 1 */
        assert_int_equal(b.turn.n_wakeups, 0);
        {
                unsigned sum = 0;

                for (unsigned i = 0; i < N; i++)
                        sum += b.n_reads[i];
                assert_int_equal(sum, 8 * 3 + 4 * 2 + 2 * 7);
        }
        stop(&b);
}

static void test_sleepers(void **state) {
        uint64_t mperf, tsc, core_ns;
        Bed b;

        start(&b, 0x55, CORE_TYPE_NONE);
        turn(&b, WAKE_LAZY);
        mperf = value(&b, FIELD_MPERF, 5);
        tsc = value(&b, FIELD_CPU_TSC, 5);
        core_ns = value(&b, FIELD_CORE_NS, 1);
        sleep_all(&b);
        b.activity[0] = (CpuActivity){ .busy_permille = 300 };
        turn(&b, WAKE_LAZY);
        assert_int_equal(reason(&b, FIELD_MPERF, 5), REASON_ASLEEP);
        assert_int_equal(value(&b, FIELD_MPERF, 5), mperf);
        assert_int_equal(reason(&b, FIELD_CPU_TSC, 5), REASON_NONE); /* that MPERF stood still is a fact */
        assert_true(value(&b, FIELD_CPU_TSC, 5) > tsc);
        assert_int_equal(reason(&b, FIELD_C6, 1), REASON_ASLEEP);
        assert_int_equal(reason(&b, FIELD_CORE_NS, 1), REASON_ASLEEP);
        assert_int_equal(value(&b, FIELD_CORE_NS, 1), core_ns);
        assert_int_equal(reason(&b, FIELD_C6, 0), REASON_NONE);
        assert_int_equal(b.n_reads[0], 3 + 2 + 7);
        assert_int_equal(b.n_reads[1] + b.n_reads[4] + b.n_reads[5], 0);
        /* package 1 sleeps whole: one wake for it */
        assert_int_equal(b.n_reads[2] + b.n_reads[3] + b.n_reads[6] + b.n_reads[7], 7);
        assert_int_equal(b.turn.n_wakeups, 1);
        stop(&b);
}

static void test_always_counts_what_it_woke(void **state) {
        Bed b;

        start(&b, 0x55, CORE_TYPE_NONE);
        turn(&b, WAKE_ALWAYS);
        sleep_all(&b);
        turn(&b, WAKE_ALWAYS);
        assert_int_equal(reason(&b, FIELD_C6, 3), REASON_NONE);
        /* one a core at most; the CPU we run on needs no waking */
        assert_in_range(b.turn.n_wakeups, 3, 4);
        stop(&b);
}

static void test_one_register_of_one_cpu(void **state) {
        Bed b;

        start(&b, 0x55, CORE_TYPE_NONE);
        turn(&b, WAKE_LAZY);
        b.bad_cpu = 2;
        b.bad_reg = MSR_APERF;
        b.bad_error = -EIO;
        turn(&b, WAKE_LAZY);
        assert_int_equal(reason(&b, FIELD_APERF, 2), REASON_ERROR);
        assert_int_equal(reason(&b, FIELD_MPERF, 2), REASON_NONE);
        assert_int_equal(reason(&b, FIELD_CPU_TSC, 2), REASON_NONE);
        assert_int_equal(reason(&b, FIELD_C6, 2), REASON_NONE);
        assert_int_equal(reason(&b, FIELD_APERF, 1), REASON_NONE);
        assert_true(b.sweep.has_failed);
        /* not asked again in every turn; asleep or not, it is an error until it has been read */
        turn(&b, WAKE_LAZY);
        assert_int_equal(reason(&b, FIELD_APERF, 2), REASON_ERROR);
        sleep_all(&b);
        turn(&b, WAKE_LAZY);
        assert_int_equal(reason(&b, FIELD_APERF, 2), REASON_ERROR);
        assert_int_equal(reason(&b, FIELD_MPERF, 2), REASON_ASLEEP);
        stop(&b);
}

static void test_c13_offline_reader_hands_over(void **state) {
        Bed b;

        start(&b, 0x55, CORE_TYPE_NONE);
        turn(&b, WAKE_LAZY);
        b.activity[3].busy_permille = 900; /* it would be package 1's reader */
        b.bad_cpu = 3;
        b.bad_reg = ANY;
        b.bad_error = -ENXIO;
        turn(&b, WAKE_LAZY);
        assert_int_equal(reason(&b, FIELD_ENERGY_PKG, 1), REASON_NONE);
        assert_int_equal(reason(&b, FIELD_PKG_NS, 1), REASON_NONE);
        assert_int_not_equal(reason(&b, FIELD_MPERF, 3), REASON_NONE);
        assert_int_equal(reason(&b, FIELD_MPERF, 2), REASON_NONE);
        stop(&b);
}

static void test_denied_while_running(void **state) {
        Bed b;

        start(&b, 0x55, CORE_TYPE_NONE);
        turn(&b, WAKE_LAZY);
        b.bad_cpu = b.bad_reg = ANY;
        b.bad_error = -EPERM;
        turn(&b, WAKE_LAZY);
        assert_int_equal(b.sweep.denied, EPERM);
        assert_int_equal(reason(&b, FIELD_MPERF, 0), REASON_DENIED);
        b.bad_cpu = N;
        turn(&b, WAKE_LAZY);
        assert_int_equal(b.sweep.denied, 0);
        assert_int_equal(reason(&b, FIELD_MPERF, 0), REASON_NONE);
        assert_int_equal(reason(&b, FIELD_C6, 3), REASON_NONE);
        stop(&b);
}

static void test_c15_slow_cpu_is_dropped_and_left_alone(void **state) {
        Bed b;

        start(&b, 0x55, CORE_TYPE_NONE);
        turn(&b, WAKE_LAZY);
        b.bad_cpu = 6;
        b.bad_reg = MSR_MPERF;
        b.bad_ms = 110;
        turn(&b, WAKE_LAZY);
        assert_int_equal(reason(&b, FIELD_MPERF, 6), REASON_GAP);
        assert_int_equal(reason(&b, FIELD_CPU_TSC, 6), REASON_GAP);
        assert_int_equal(reason(&b, FIELD_MPERF, 7), REASON_NONE);
        turn(&b, WAKE_LAZY);
        assert_int_equal(b.n_reads[6], 0); /* for some seconds */
        assert_int_equal(reason(&b, FIELD_MPERF, 6), REASON_GAP);
        assert_int_equal(reason(&b, FIELD_MPERF, 2), REASON_NONE);
        stop(&b);
}

static void test_c15_late_sweep_leaves_gaps_and_goes_on_there(void **state) {
        unsigned gaps = 0;
        Bed b;

        start(&b, 0x55, CORE_TYPE_NONE);
        turn(&b, WAKE_LAZY);
        b.bad_cpu = ANY;
        b.bad_reg = MSR_MPERF;
        b.bad_ms = 40;
        b.tick->h.interval_ns = 200 * SECOND / 1000; /* 100 ms for 8 CPUs of 40 ms */
        turn(&b, WAKE_LAZY);
        for (uint32_t e = 0; e < N; e++)
                gaps += reason(&b, FIELD_MPERF, e) == REASON_GAP;
        assert_in_range(gaps, 4, N - 1);
        assert_int_equal(reason(&b, FIELD_ENERGY_PKG, 0), REASON_NONE); /* packages come first */
        assert_int_equal(reason(&b, FIELD_ENERGY_PKG, 1), REASON_NONE);
        b.bad_cpu = N;
        sleep_all(&b); /* what was left is due although it sleeps by now */
        turn(&b, WAKE_LAZY);
        for (uint32_t e = 0; e < N; e++)
                assert_int_not_equal(reason(&b, FIELD_MPERF, e), REASON_GAP);
        stop(&b);
}

static void test_e_core_c6_is_without_c7(void **state) {
        Bed b;

        start(&b, 0x97, CORE_TYPE_EFFICIENT);
        turn(&b, WAKE_LAZY);
        assert_int_equal(value(&b, FIELD_C6, 0), 1000);
        assert_int_equal(value(&b, FIELD_C7, 0), 5000);
        b.bad_cpu = ANY;
        b.bad_reg = MSR_CORE_C7;
        b.bad_error = -EIO;
        turn(&b, WAKE_LAZY); /* one without the other is no number */
        assert_int_equal(reason(&b, FIELD_C6, 0), REASON_ERROR);
        stop(&b);

        start(&b, 0x97, CORE_TYPE_PERFORMANCE);
        turn(&b, WAKE_LAZY);
        assert_int_equal(value(&b, FIELD_C6, 0), 6000);
        stop(&b);
}

static void test_tsc_of_each_cpu_where_it_is_not_invariant(void **state) {
        Bed b;

        start(&b, 0x55, CORE_TYPE_NONE);
        b.sweep.invariant_tsc = false;
        turn(&b, WAKE_LAZY);
        assert_int_equal(value(&b, FIELD_CPU_TSC, 3), 0x1000 * MSR_TSC + 101);
        sleep_all(&b);
        turn(&b, WAKE_LAZY);
        assert_int_equal(
                reason(&b, FIELD_CPU_TSC, 3), REASON_ASLEEP); /* nobody knows what it did meanwhile */
        stop(&b);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_all_is_read_once),
                cmocka_unit_test(test_sleepers),
                cmocka_unit_test(test_always_counts_what_it_woke),
                cmocka_unit_test(test_one_register_of_one_cpu),
                cmocka_unit_test(test_c13_offline_reader_hands_over),
                cmocka_unit_test(test_denied_while_running),
                cmocka_unit_test(test_c15_slow_cpu_is_dropped_and_left_alone),
                cmocka_unit_test(test_c15_late_sweep_leaves_gaps_and_goes_on_there),
                cmocka_unit_test(test_e_core_c6_is_without_c7),
                cmocka_unit_test(test_tsc_of_each_cpu_where_it_is_not_invariant),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
