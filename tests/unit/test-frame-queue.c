/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a slow reader costs: whole ticks, the oldest first, never a machine. */

#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "sampler/frame-queue.h"

static void push(FrameQueue *q, FrameType type, uint8_t mark, size_t n) {
        uint8_t *data = malloc(n);

        assert_non_null(data);
        memset(data, mark, n);
        frame_queue_push(q, type, data, n);
}

static void pair(int fds[2]) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
}

static void test_writes_in_order(void **state) {
        FrameQueue q = FRAME_QUEUE_INIT;
        uint8_t buf[16];
        int fds[2];

        pair(fds);
        push(&q, FRAME_MACHINE, 1, 2);
        push(&q, FRAME_TICK, 2, 3);
        push(&q, FRAME_EVENT, 3, 1);
        assert_int_equal(frame_queue_write(&q, fds[0]), 0);
        assert_int_equal(q.n_frames, 0);
        assert_int_equal(read(fds[1], buf, sizeof(buf)), 6);
        assert_memory_equal(buf, "\1\1\2\2\2\3", 6);
        frame_queue_deinit(&q);
        (void) close(fds[0]);
        (void) close(fds[1]);
}

static void test_oldest_tick_goes(void **state) {
        FrameQueue q = FRAME_QUEUE_INIT;

        push(&q, FRAME_MACHINE, 0, 1);
        push(&q, FRAME_STATUS, 0, 1);
        for (unsigned i = 0; i < FRAME_QUEUE_MAX + 3; i++)
                push(&q, FRAME_TICK, (uint8_t) (i + 1), 1);
        assert_int_equal(q.n_frames, FRAME_QUEUE_MAX);
        assert_int_equal(q.n_dropped, 5);
        assert_int_equal(q.frames[0].type, FRAME_MACHINE);
        assert_int_equal(q.frames[1].type, FRAME_STATUS);
        assert_int_equal(q.frames[2].data[0], 6); /* ticks 1 to 5 are gone */
        assert_true(FRAME_QUEUE_MAX >= 16 + 2);
        frame_queue_deinit(&q);
}

static void test_newer_ones_supersede(void **state) {
        FrameQueue q = FRAME_QUEUE_INIT;

        push(&q, FRAME_MACHINE, 1, 1);
        push(&q, FRAME_STATUS, 1, 1);
        push(&q, FRAME_MACHINE, 2, 1); /* nothing was laid out by machine 1 */
        push(&q, FRAME_STATUS, 2, 1);
        assert_int_equal(q.n_frames, 2);
        assert_int_equal(q.frames[0].data[0], 2);
        assert_int_equal(q.frames[1].data[0], 2);
        push(&q, FRAME_TICK, 2, 1);
        push(&q, FRAME_MACHINE, 3, 1); /* the tick needs machine 2 */
        assert_int_equal(q.n_frames, 4);
        assert_int_equal(q.n_dropped, 0);
        frame_queue_deinit(&q);
}

/* A reader that stops: the queue stays bounded, the frame half on the wire stays whole, what arrives is
 * whole frames. */
static void test_stopped_reader(void **state) {
        enum { SIZE = 100000 };
        FrameQueue q = FRAME_QUEUE_INIT;
        static uint8_t buf[1 << 20];
        size_t n = 0;
        int fds[2];

        pair(fds);
        push(&q, FRAME_MACHINE, 255, SIZE);
        for (unsigned i = 0; i < 60; i++) {
                push(&q, FRAME_TICK, (uint8_t) i, SIZE);
                assert_true(frame_queue_write(&q, fds[0]) >= 0);
                assert_true(q.n_frames <= FRAME_QUEUE_MAX);
        }
        assert_true(q.n_dropped > 0);
        assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
        for (uint8_t mark = 255;;) {
                ssize_t k = read(fds[1], buf + n, SIZE - n);

                if (k < 0 && frame_queue_write(&q, fds[0]) == 0 && q.n_frames == 0 && n == 0) {
                        k = read(fds[1], buf, SIZE);
                        if (k < 0)
                                break;
                }
                if (k < 0)
                        continue;
                n += (size_t) k;
                if (n < SIZE)
                        continue;
                for (size_t i = 1; i < SIZE; i += 997)
                        assert_int_equal(buf[i], buf[0]);
                assert_true(mark == 255 || buf[0] > mark);
                mark = buf[0];
                n = 0;
                if (mark == 59)
                        break;
        }
        frame_queue_deinit(&q);
        (void) close(fds[0]);
        (void) close(fds[1]);
}

static void test_reader_is_gone(void **state) {
        FrameQueue q = FRAME_QUEUE_INIT;
        int fds[2];

        pair(fds);
        (void) close(fds[1]);
        push(&q, FRAME_TICK, 1, 1);
        assert_int_equal(frame_queue_write(&q, fds[0]), -EPIPE);
        frame_queue_deinit(&q);
        (void) close(fds[0]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_writes_in_order),
                cmocka_unit_test(test_oldest_tick_goes),
                cmocka_unit_test(test_newer_ones_supersede),
                cmocka_unit_test(test_stopped_reader),
                cmocka_unit_test(test_reader_is_gone),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
