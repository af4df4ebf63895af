/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames as the sampler writes them, and what the server makes and says of them. */

#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cstated/log.h"
#include "ingest.h"
#include "tests/unit/store-fixture.h"

#define SECOND_NS 1000000000ULL

typedef struct Rig {
        Config config;
        Service service;
        Ingest *ingest;
        Machine *machine;
        uint64_t seq;
        int saved_stderr, log_fd;
} Rig;

static uint64_t now_us(void) {
        return 0;
}

static int setup(void **state) {
        char path[] = "/tmp/test-ingest-XXXXXX";
        Rig *r = calloc(1, sizeof(*r));

        assert_non_null(r);
        r->service.now_us = now_us;
        assert_int_equal(config_init(&r->config), 0);
        assert_int_equal(ingest_new(NULL, &r->service, &r->config, &r->ingest), 0);
        r->machine = fixture_machine(4, 1, 1);
        assert_non_null(r->machine);
        r->log_fd = mkstemp(path);
        assert_true(r->log_fd >= 0);
        (void) unlink(path);
        (void) fflush(stderr);
        r->saved_stderr = dup(STDERR_FILENO);
        assert_int_equal(dup2(r->log_fd, STDERR_FILENO), STDERR_FILENO);
        *state = r;
        return 0;
}

static int teardown(void **state) {
        Rig *r = *state;

        (void) fflush(stderr);
        (void) dup2(r->saved_stderr, STDERR_FILENO);
        (void) close(r->saved_stderr);
        (void) close(r->log_fd);
        ingest_free(r->ingest);
        config_deinit(&r->config);
        machine_free(r->machine);
        free(r);
        return 0;
}

static unsigned lines_with(const Rig *r, const char *what) {
        char *text = calloc(1, 1 << 20);
        unsigned n = 0;

        assert_non_null(text);
        assert_true(pread(r->log_fd, text, (1 << 20) - 1, 0) >= 0);
        for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
                *end = '\0';
                n += strstr(line, what) != NULL;
        }
        free(text);
        return n;
}

static unsigned feed(Rig *r, uint8_t *frame, size_t n) {
        unsigned ticks = 0;

        assert_int_equal(ingest_feed(r->ingest, frame, n, &ticks), 0);
        free(frame);
        return ticks;
}

static void feed_machine(Rig *r) {
        uint8_t *frame;
        size_t n;

        assert_int_equal(frame_encode_machine(r->machine, &frame, &n), 0);
        assert_int_equal(feed(r, frame, n), 0);
}

static void feed_status(Rig *r, SourceState msr, int error) {
        static const char *const denied[] = { "msr", "powercap", "perf" };
        SamplerStatus s = { .n_sources = 4, .wake_policy = "lazy" };
        uint8_t *frame;
        size_t n;

        for (unsigned i = 0; i < 3; i++) {
                s.sources[i].state = i == 0 ? msr : SOURCE_DENIED;
                s.sources[i].error = i == 0 ? error : EACCES;
                (void) strcpy(s.sources[i].name, denied[i]);
                (void) strcpy(s.sources[i].hint, "needs something");
        }
        (void) strcpy(s.sources[3].name, "irq");
        assert_int_equal(frame_encode_status(&s, &frame, &n), 0);
        assert_int_equal(feed(r, frame, n), 0);
}

static void feed_event(Rig *r, const char *kind) {
        FrameEvent e = { .cpu = -1, .time_us = r->seq * 1000000 + 1000000 };
        uint8_t *frame;
        size_t n;

        (void) snprintf(e.kind, sizeof(e.kind), "%s", kind);
        (void) snprintf(e.text, sizeof(e.text), "at %llu", (unsigned long long) r->seq);
        assert_int_equal(frame_encode_event(&e, &frame, &n), 0);
        assert_int_equal(feed(r, frame, n), 0);
}

static unsigned feed_tick(Rig *r) {
        Tick *t = tick_new(r->machine->layout.n_values);
        unsigned ticks;
        uint8_t *frame;
        size_t n;

        assert_non_null(t);
        r->seq++;
        t->h = (TickHeader){
                .seq = r->seq,
                .generation = r->machine->generation,
                .interval_ns = SECOND_NS,
                .mono_ns = r->seq * SECOND_NS,
                .boot_ns = r->seq * SECOND_NS,
                .real_us = 1700000000000000ULL + r->seq * 1000000,
                .tsc = r->seq * 2000000000ULL,
        };
        for (size_t i = 0; i < t->n_values; i++)
                t->values[i] = r->seq * 1000;
        assert_int_equal(frame_encode_tick(t, &frame, &n), 0);
        ticks = feed(r, frame, n);
        tick_free(t);
        return ticks;
}

static void test_service_is_kept_current(void **state) {
        Rig *r = *state;

        assert_null(r->service.machine);
        feed_machine(r);
        assert_int_equal(r->service.machine->n_cpus, 4);
        assert_null(r->service.sample);
        assert_int_equal(feed_tick(r), 1);
        assert_null(r->service.sample); /* a baseline */
        assert_int_equal(r->service.tick->seq, 1);
        assert_int_equal(feed_tick(r), 1);
        assert_non_null(r->service.sample);
        assert_int_equal(r->service.sample->h.end_us - r->service.sample->h.start_us, 1000000);
        assert_non_null(r->service.totals);
        feed_status(r, SOURCE_OK, 0);
        assert_int_equal(r->service.sampler->n_sources, 4);
        /* a tick of a machine that is not known any more */
        r->machine->generation = 9;
        assert_int_equal(feed_tick(r), 1);
        assert_non_null(r->service.sample);
        feed_machine(r);
        assert_null(r->service.sample);
        assert_int_equal(ingest_n_ticks(r->ingest), 3);
}

/* C17: a thousand samples with three permanent errors. */
static void test_conditions_are_said_once(void **state) {
        Rig *r = *state;

        feed_machine(r);
        for (unsigned i = 0; i < 1000; i++) {
                feed_status(r, SOURCE_ERROR, EIO);
                assert_int_equal(feed_tick(r), 1);
        }
        assert_int_equal(lines_with(r, "source "), 3);
        assert_true(lines_with(r, "") < 10);
        feed_status(r, SOURCE_OK, 0);
        assert_int_equal(lines_with(r, "source msr: ok"), 1);
        feed_status(r, SOURCE_ERROR, EIO);
        assert_int_equal(lines_with(r, "source msr: error, Input/output error: needs something"), 2);
}

/* What may come every second is said once a minute, with the number of those left out. */
static void test_events_are_bounded(void **state) {
        Rig *r = *state;

        feed_machine(r);
        for (unsigned i = 0; i < 300; i++) {
                (void) feed_tick(r);
                feed_event(r, "gap");
                feed_event(r, "source");
        }
        assert_int_equal(lines_with(r, "gap: "), 5);
        assert_int_equal(lines_with(r, "and 59 more"), 4);
        assert_int_equal(lines_with(r, "source"), 0);
}

static void test_erratum_is_said_once(void **state) {
        Rig *r = *state;
        CpuIdent *c = &r->machine->idents[0];

        assert_true(r->machine->n_idents > 0);
        (void) strcpy(c->vendor, "GenuineIntel");
        c->family = 6;
        c->model = 0x2f;
        c->stepping = 2;
        c->has_monitor = c->has_clflush = true;
        r->machine->has_bugs = true;
        (void) strcpy(r->machine->bugs, "spectre_v1 l1tf");
        feed_machine(r);
        for (unsigned i = 0; i < 5; i++) {
                r->machine->generation++;
                feed_machine(r);
        }
        assert_int_equal(lines_with(r, "erratum clflush_monitor"), 1);
        (void) strcpy(r->machine->bugs, "spectre_v1 clflush_monitor l1tf");
        r->machine->generation++;
        feed_machine(r);
        assert_int_equal(lines_with(r, "erratum "), 1);
}

static void test_pieces_and_damage(void **state) {
        unsigned ticks, total = 0;
        Rig *r = *state;
        uint8_t *frame;
        size_t n;

        assert_int_equal(frame_encode_machine(r->machine, &frame, &n), 0);
        for (size_t i = 0; i < n; i += 7)
                assert_int_equal(ingest_feed(r->ingest, frame + i, n - i < 7 ? n - i : 7, &ticks), 0);
        free(frame);
        total += feed_tick(r);
        total += feed_tick(r);
        assert_int_equal(total, 2);
        assert_int_equal(frame_encode_machine(r->machine, &frame, &n), 0);
        frame[n - 1] ^= 1;
        assert_int_equal(ingest_feed(r->ingest, frame, n, &ticks), -EBADMSG);
        free(frame);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_service_is_kept_current, setup, teardown),
                cmocka_unit_test_setup_teardown(test_conditions_are_said_once, setup, teardown),
                cmocka_unit_test_setup_teardown(test_events_are_bounded, setup, teardown),
                cmocka_unit_test_setup_teardown(test_erratum_is_said_once, setup, teardown),
                cmocka_unit_test_setup_teardown(test_pieces_and_damage, setup, teardown),
        };

        log_open("test", LOG_LEVEL_INFO);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
