/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sampler/idle-trace.h"
#include "tests/unit/idle-sequences.h"

typedef struct Twin {
        struct idle_trace_slot slot;
        struct idle_trace_stores stores;
} Twin;

static void twin_init(Twin *t) {
        static const uint32_t residency_us[IDLE_TRACE_STATES] = SEQUENCE_RESIDENCY_US;

        *t = (Twin){};
        for (unsigned i = 0; i < IDLE_TRACE_STATES; i++) {
                t->slot.states[i].is_mwait = (SEQUENCE_MWAIT_MASK >> i) & 1;
                t->slot.states[i].target_residency_ns = residency_us[i] * 1000;
        }
}

static int twin_event(void *userdata, const IdleEvent *e) {
        Twin *t = userdata;

        switch (e->kind) {
        case 'E':
                idle_classify_enter(&t->slot, &t->stores, e->state, e->ns);
                break;
        case 'X':
                idle_classify_exit(&t->slot, &t->stores, e->ns);
                break;
        case 'I':
                idle_classify_interrupt(&t->slot, &t->stores, e->ns);
                break;
        case 'S':
                idle_classify_switch(&t->slot, &t->stores, e->ns);
                break;
        default:
                idle_classify_store(&t->stores, e->ns);
                break;
        }
        return 0;
}

static void test_sequences(void **state) {
        for (size_t i = 0; i < N_IDLE_SEQUENCES; i++) {
                IdleTraceReading r;
                Twin t;

                twin_init(&t);
                (void) idle_sequence_run(&idle_sequences[i], twin_event, &t);
                idle_trace_read(&t.slot, 0, &r);
                idle_sequence_check(&idle_sequences[i], &r);
        }
}

/* A sleep in progress is 100 % idle, and the sum never shrinks when it ends. */
static void test_sleep_in_progress(void **state) {
        const uint64_t t0 = SEQUENCE_BASE_NS;
        IdleTraceReading r;
        Twin t;

        twin_init(&t);
        idle_trace_read(&t.slot, t0, &r);
        assert_false(r.seen);
        idle_classify_enter(&t.slot, &t.stores, MWAIT_STATE, t0);
        for (uint64_t s = 1; s <= 3; s++) {
                idle_trace_read(&t.slot, t0 + s * 1000000000, &r);
                assert_true(r.seen);
                assert_true(r.asleep_since == t0);
                assert_true(r.ns[MWAIT_STATE] == s * 1000000000);
        }
        idle_classify_exit(&t.slot, &t.stores, t0 + 3500000000ULL);
        idle_trace_read(&t.slot, t0 + 4000000000ULL, &r);
        assert_true(r.asleep_since == 0);
        assert_true(r.ns[MWAIT_STATE] == 3500000000ULL);
}

/* Whatever comes in whatever order: no finished sleep gets two causes, and all but those still open get one. */
static void test_random_events_conserve_sleeps(void **state) {
        uint64_t x = 88172645463325252ULL, now = SEQUENCE_BASE_NS;

        for (unsigned round = 0; round < 200; round++) {
                uint64_t causes, exits = 0;
                IdleTraceReading r;
                IdleTotals totals;
                Twin t;

                twin_init(&t);
                for (unsigned i = 0; i < 2000; i++) {
                        x ^= x << 13;
                        x ^= x >> 7;
                        x ^= x << 17;
                        now += x % 20000;
                        exits += (x >> 20) % 5 == 1 && t.slot.sleep_start;
                        (void) twin_event(&t, &(IdleEvent){ "EXISW"[(x >> 20) % 5], (uint32_t) (x >> 30) % 3, now });
                }
                idle_trace_read(&t.slot, 0, &r);
                totals = idle_totals(&r);
                causes = totals.interrupt + totals.store + totals.other + totals.brk;
                causes += !!(t.slot.flags & IDLE_PENDING) + !!(t.slot.flags & IDLE_PROVISIONAL);
                assert_true(causes == exits);
        }
}

static void test_buckets(void **state) {
        assert_int_equal(idle_classify_bucket(0), 0);
        for (unsigned b = 1; b < 32; b++) {
                assert_int_equal(idle_classify_bucket(1ULL << b), b);
                assert_int_equal(idle_classify_bucket((2ULL << b) - 1), b);
        }
        assert_int_equal(idle_classify_bucket(UINT64_MAX), IDLE_TRACE_BUCKETS - 1);
}

static void local_write(struct idle_local_slot *slot, uint64_t v) {
        __atomic_store_n(&slot->seq, slot->seq + 1, __ATOMIC_RELAXED);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        slot->ns = v;
        slot->running = v;
        slot->got = (uint32_t) v;
        for (unsigned i = 0; i < IDLE_LOCAL_COLUMNS; i++)
                slot->values[i] = v;
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        __atomic_store_n(&slot->seq, slot->seq + 1, __ATOMIC_RELAXED);
}

static void test_local_reading_is_whole_or_none(void **state) {
        struct idle_local_slot slot = {};
        LocalReading r;

        assert_false(idle_local_read(&slot, &r)); /* never written */
        local_write(&slot, 7);
        assert_true(idle_local_read(&slot, &r));
        assert_int_equal(r.ns, 7);
        assert_int_equal(r.got, 7);
        assert_int_equal(r.values[IDLE_LOCAL_COLUMNS - 1], 7);
        slot.seq++; /* its CPU is at it */
        assert_false(idle_local_read(&slot, &r));
}

/* Another process writes all the time, with just pause enough to be read at all: what is read is of one writing, and never of two. */
static void test_local_reading_under_its_writer(void **state) {
        struct idle_local_slot *slot =
                mmap(NULL, sizeof(*slot), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        unsigned n_whole = 0, n_torn = 0;
        pid_t pid;

        assert_true(slot != MAP_FAILED);
        pid = fork();
        (void) (pid == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL));
        if (pid == 0)
                for (uint64_t v = 1;; v++) {
                        local_write(slot, v);
                        for (unsigned i = 0; i < 50; i++)
                                (void) __atomic_load_n(&slot->seq, __ATOMIC_SEQ_CST);
                }
        assert_true(pid > 0);
        for (unsigned i = 0; i < 10000000 && n_whole < 200000; i++) {
                LocalReading r;

                if (!idle_local_read(slot, &r))
                        continue;
                n_whole++;
                n_torn += r.running != r.ns || r.got != (uint32_t) r.ns;
                for (unsigned k = 0; k < IDLE_LOCAL_COLUMNS; k++)
                        n_torn += r.values[k] != r.ns;
        }
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        assert_true(n_whole > 0);
        assert_int_equal(n_torn, 0);
        (void) munmap(slot, sizeof(*slot));
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_sequences),
                cmocka_unit_test(test_local_reading_is_whole_or_none),
                cmocka_unit_test(test_local_reading_under_its_writer),
                cmocka_unit_test(test_sleep_in_progress),
                cmocka_unit_test(test_random_events_conserve_sleeps),
                cmocka_unit_test(test_buckets),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
