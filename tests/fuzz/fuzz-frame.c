/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A stream of frames from anybody: header, checksum and every payload decoder; also each decoder on the bare input. */

#include "sampler/frame.h"
#include "tests/fuzz/fuzz.h"

static void decode(FrameType type, const uint8_t *payload, size_t n) {
        SamplerStatus status;
        FrameEvent event;
        Machine *m = NULL;
        Tick *t = NULL;

        switch (type) {
        case FRAME_MACHINE:
                if (frame_decode_machine(payload, n, &m) == 0)
                        (void) machine_free(m);
                break;
        case FRAME_TICK:
                if (frame_decode_tick(payload, n, &t) == 0)
                        (void) tick_free(t);
                break;
        case FRAME_STATUS:
                (void) frame_decode_status(payload, n, &status);
                break;
        case FRAME_EVENT:
                (void) frame_decode_event(payload, n, &event);
                break;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        FrameReader *r = frame_reader_new();
        size_t step = n > 0 ? (size_t) data[0] % 64 + 1 : 1;
        const uint8_t *payload;
        FrameType type;
        size_t n_payload;

        for (size_t at = 0; r && at < n; at += step) {
                if (frame_reader_feed(r, data + at, n - at < step ? n - at : step) < 0)
                        break;
                while (frame_reader_next(r, &type, &payload, &n_payload) > 0)
                        decode(type, payload, n_payload);
        }
        (void) frame_reader_free(r);
        for (FrameType t = FRAME_MACHINE; t <= FRAME_EVENT; t++)
                decode(t, data, n);
        return 0;
}
