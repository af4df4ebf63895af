/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sampler never waits for its reader; what that costs is decided here, in whole frames. */

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "sampler/frame-queue.h"

void frame_queue_deinit(FrameQueue *q) {
        for (size_t i = 0; i < q->n_frames; i++)
                free(q->frames[i].data);
        *q = (FrameQueue) FRAME_QUEUE_INIT;
}

static void remove_at(FrameQueue *q, size_t i) {
        free(q->frames[i].data);
        memmove(&q->frames[i], &q->frames[i + 1], (q->n_frames - i - 1) * sizeof(q->frames[0]));
        q->n_frames--;
}

/* The oldest frame of a type that is not half sent; n_frames where there is none. */
static size_t find_oldest(const FrameQueue *q, FrameType type) {
        for (size_t i = q->n_sent > 0; i < q->n_frames; i++)
                if (q->frames[i].type == type)
                        return i;
        return q->n_frames;
}

static void make_room(FrameQueue *q) {
        static const FrameType order[] = { FRAME_TICK, FRAME_EVENT, FRAME_STATUS, FRAME_MACHINE };

        for (size_t k = 0; k < ARRAY_SIZE(order); k++) {
                size_t i = find_oldest(q, order[k]);

                if (i == q->n_frames)
                        continue;
                q->n_dropped += order[k] == FRAME_TICK || order[k] == FRAME_EVENT;
                remove_at(q, i);
                return;
        }
}

/* A newer status says all an older one did; a newer machine too, unless ticks of the older one wait behind
 * it. */
static void supersede(FrameQueue *q, FrameType type) {
        size_t i;

        if (type == FRAME_STATUS) {
                i = find_oldest(q, FRAME_STATUS);
                if (i < q->n_frames)
                        remove_at(q, i);
        }
        if (type != FRAME_MACHINE)
                return;
        for (i = q->n_frames; i > (q->n_sent > 0); i--) {
                if (q->frames[i - 1].type == FRAME_TICK)
                        return;
                if (q->frames[i - 1].type == FRAME_MACHINE)
                        remove_at(q, i - 1);
        }
}

void frame_queue_push(FrameQueue *q, FrameType type, uint8_t *data, size_t n) {
        supersede(q, type);
        if (q->n_frames == FRAME_QUEUE_MAX)
                make_room(q);
        q->frames[q->n_frames++] = (QueuedFrame){ .type = type, .data = data, .n = n };
}

int frame_queue_write(FrameQueue *q, int fd) {
        while (q->n_frames > 0) {
                const QueuedFrame *f = &q->frames[0];
                ssize_t k = send(fd, f->data + q->n_sent, f->n - q->n_sent, MSG_NOSIGNAL | MSG_DONTWAIT);

                if (k < 0 && errno == EINTR)
                        continue;
                if (k < 0)
                        return errno == EAGAIN ? 1 : -errno;
                q->n_sent += (size_t) k;
                if (q->n_sent == f->n) {
                        q->n_sent = 0;
                        remove_at(q, 0);
                }
        }
        return 0;
}
