/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The doctor's rules at their limits: what is just healthy, and what is not. */

#include "tests/unit/test.h"

#include <math.h>
#include <stdio.h>

#include "client/doctor.h"

#define CPUS 8

/* Two packages of four cores, all well: 95 % in C6. */
static int setup(void **state) {
        static DoctorFacts f;

        f = (DoctorFacts){ .n_cpus = CPUS, .n_cores = CPUS, .n_packages = 2, .seconds = 3600 };
        f.cpus = calloc(CPUS, sizeof(*f.cpus));
        f.cores = calloc(CPUS, sizeof(*f.cores));
        f.packages = calloc(2, sizeof(*f.packages));
        for (uint32_t i = 0; i < CPUS; i++) {
                f.cpus[i] = (DoctorCpu){
                        .id = i, .package = i / 4, .core = i % 4, .busy = 2, .irq = 40, .wakeups = 38, .breaks = 0, .n_states = 3,
                        .states = {
                                { .name = "POLL", .usage = 2, .is_poll = true },
                                { .name = "C1", .usage = 8, .below = 3, .exit_latency_us = 2, .target_residency_us = 2 },
                                { .name = "C6", .usage = 30, .above = 2, .time_percent = 95, .exit_latency_us = 133,
                                        .target_residency_us = 600 },
                        },
                };
                f.cores[i] = (DoctorCore){ .package = i / 4, .die = -1, .core = i % 4, .deep = 94, .demotion = 1, .busy = 2 };
        }
        f.packages[0] = (DoctorPackage){ .package = 0, .die = -1, .deep = 60 };
        f.packages[1] = (DoctorPackage){ .package = 1, .die = -1, .deep = 60 };
        *state = &f;
        return 0;
}

static int teardown(void **state) {
        doctor_facts_deinit(*state);
        return 0;
}

/* The ids of all findings, heaviest first. */
static const char *examine(const DoctorFacts *f) {
        static DoctorFinding findings[DOCTOR_FINDINGS_MAX];
        static char ids[512];
        size_t n = doctor_examine(f, findings);

        ids[0] = '\0';
        for (size_t i = 0; i < n; i++) {
                assert_true(findings[i].evidence[0] && findings[i].advice[0] && findings[i].title[0]);
                (void) snprintf(ids + strlen(ids), sizeof(ids) - strlen(ids), "%s%s", i > 0 ? " " : "", findings[i].id);
        }
        return ids;
}

static void test_healthy(void **state) {
        assert_string_equal(examine(*state), "");
}

/* A machine of which nothing is known is not ill. */
static void test_unknown_is_not_ill(void **state) {
        DoctorFacts *f = *state;

        for (size_t i = 0; i < CPUS; i++) {
                f->cpus[i].busy = f->cpus[i].irq = f->cpus[i].wakeups = f->cpus[i].breaks = NAN;
                for (size_t k = 0; k < 3; k++)
                        f->cpus[i].states[k].usage = f->cpus[i].states[k].above = f->cpus[i].states[k].below = NAN;
                f->cores[i].deep = f->cores[i].demotion = f->cores[i].busy = NAN;
        }
        f->packages[0].deep = f->packages[1].deep = NAN;
        assert_string_equal(examine(f), "");
        /* nor is it well */
        assert_false(doctor_saw_idle(f));
        f->cpus[3].wakeups = 0;
        assert_true(doctor_saw_idle(f));
        f->cpus[3].wakeups = NAN;
        f->cpus[5].states[2].usage = 1;
        assert_true(doctor_saw_idle(f));
}

static void test_erratum_first(void **state) {
        DoctorFacts *f = *state;

        strcpy(f->erratum, "clflush_monitor");
        strcpy(f->erratum_advice, "upgrade");
        f->cpus[3].wakeups = 2000;
        f->cpus[3].breaks = 1500;
        assert_string_equal(examine(f), "erratum break-storm");
}

static void test_break_storm_needs_share_and_rate(void **state) {
        DoctorFacts *f = *state;

        f->cpus[3].breaks = 100;
        assert_string_equal(examine(f), "");
        f->cpus[3].breaks = 101;
        assert_string_equal(examine(f), "break-storm");
        f->cpus[3].wakeups = 1011;
        assert_string_equal(examine(f), "");
}

static void test_disabled(void **state) {
        DoctorFacts *f = *state;

        f->cpus[0].states[0].disabled = true; /* POLL off is nobody's loss */
        assert_string_equal(examine(f), "");
        f->cpus[5].states[2].disabled = true;
        assert_string_equal(examine(f), "states-disabled");
}

static void test_never_deep(void **state) {
        DoctorFacts *f = *state;

        f->cpus[2].states[2].usage = 0;
        assert_string_equal(examine(f), ""); /* C1's sleeps are short: nothing was missed */
        f->cpus[2].states[1].below = 5;
        assert_string_equal(examine(f), "never-deep");
        f->cpus[2].busy = 90;
        assert_string_equal(examine(f), "");
}

static void test_demotion(void **state) {
        DoctorFacts *f = *state;

        f->cores[1].demotion = 20;
        assert_string_equal(examine(f), "");
        f->cores[1].demotion = 21;
        assert_string_equal(examine(f), "demotion");
}

static void test_package_limit(void **state) {
        DoctorFacts *f = *state;

        f->pkg_limit_blocks = true;
        strcpy(f->pkg_limit, "pc2");
        assert_string_equal(examine(f), "package-limit");
}

static void test_one_busy_core(void **state) {
        DoctorFacts *f = *state;

        f->packages[1].deep = 0;
        assert_string_equal(examine(f), ""); /* no core to blame */
        f->cores[6].busy = 80;
        f->cores[6].deep = 5;
        assert_string_equal(examine(f), "one-busy-core");
        f->cores[5].deep = 50; /* another one that is not deeply idle either */
        assert_string_equal(examine(f), "");
}

static void test_interrupts(void **state) {
        DoctorFacts *f = *state;

        f->cpus[7].irq = 501;
        assert_string_equal(examine(f), "interrupts");
        f->cpus[7].busy = 60; /* a busy CPU may take interrupts */
        assert_string_equal(examine(f), "");
        f->cpus[7].busy = 2;
        for (size_t i = 0; i < CPUS; i++)
                f->cpus[i].irq = 501; /* all alike: the workload's way */
        assert_string_equal(examine(f), "");
}

static void test_too_short(void **state) {
        DoctorFacts *f = *state;

        f->cpus[4].states[2].above = 15;
        assert_string_equal(examine(f), "");
        f->cpus[4].states[2].above = 16;
        assert_string_equal(examine(f), "too-short");
}

static void test_exit_latency(void **state) {
        DoctorFacts *f = *state;

        f->cpus[4].states[2].usage = 75; /* 133 us x 75 + 2 us x 8 = 0.999 % */
        assert_string_equal(examine(f), "");
        f->cpus[4].states[2].usage = 76;
        assert_string_equal(examine(f), "exit-latency");
}

static void test_denied_and_degraded(void **state) {
        DoctorFacts *f = *state;

        f->msr_denied = true;
        strcpy(f->denied_hint, "kernel lockdown");
        assert_string_equal(examine(f), "counters-denied");
        f->power_denied = true;
        strcpy(f->problems, "store: database or disk is full");
        assert_string_equal(examine(f), "degraded power-denied");
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                T(test_healthy), T(test_unknown_is_not_ill), T(test_erratum_first), T(test_break_storm_needs_share_and_rate),
                T(test_disabled), T(test_never_deep), T(test_demotion), T(test_package_limit), T(test_one_busy_core),
                T(test_interrupts), T(test_too_short), T(test_exit_latency), T(test_denied_and_degraded),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
