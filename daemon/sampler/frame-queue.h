/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A bounded queue of frames before a socket that is never waited for. When it is full the oldest tick goes;
 * a machine is never lost (ticks make no sense without theirs), a newer status replaces an older one.
 */

#include "sampler/frame.h"

#define FRAME_QUEUE_MAX 24

typedef struct QueuedFrame {
        FrameType type;
        uint8_t *data;
        size_t n;
} QueuedFrame;

typedef struct FrameQueue {
        QueuedFrame frames[FRAME_QUEUE_MAX]; /* oldest first */
        size_t n_frames;
        size_t n_sent;      /* bytes of the oldest that are on the wire already */
        uint64_t n_dropped; /* ticks and events, cumulative */
} FrameQueue;

#define FRAME_QUEUE_INIT {}

void frame_queue_deinit(FrameQueue *q);
/* Takes the frame over, making room where there is none. */
void frame_queue_push(FrameQueue *q, FrameType type, uint8_t *data, size_t n);
/* Writes until all is sent (0) or the socket is full (1). -EPIPE, -ECONNRESET: the reader is gone; other
 * -errno. */
int frame_queue_write(FrameQueue *q, int fd);
