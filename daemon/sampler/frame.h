/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The wire between sampler and server, and the format of --record files: length-prefixed, versioned,
 * checksummed frames, little endian. A reader trusts nothing: lengths are bounded, types known, checksums
 * right, counts agree.
 *
 *   header  magic "CSTF" u32, version u16, type u16, length u32 (of the payload), crc32 u32 (of the payload)
 *   MACHINE payload: JSON of model/machine.h
 *   TICK    payload: TickHeader fields in order, n_values u32, values u64[n], reasons u8[n]
 *   STATUS  payload: JSON of SamplerStatus
 *   EVENT   payload: JSON {"kind","time_us","cpu"?,"text"}: hotplug, suspend, gap, source changes
 */

#include "model/machine.h"
#include "model/sample.h"
#include "sampler/status.h"

#define FRAME_MAGIC 0x46545343u
#define FRAME_VERSION 1
#define FRAME_HEADER_SIZE 16
#define FRAME_PAYLOAD_MAX (16u << 20) /* 8192 CPUs fit */

typedef enum FrameType {
        FRAME_MACHINE = 1,
        FRAME_TICK = 2,
        FRAME_STATUS = 3,
        FRAME_EVENT = 4,
} FrameType;

typedef struct FrameEvent {
        char kind[32]; /* "hotplug", "suspend", "gap", "source", "missed" */
        uint64_t time_us;
        int64_t cpu;   /* -1: none */
        char text[160];
} FrameEvent;

/* A whole frame (header and payload), malloc'd. -ENOMEM, -EMSGSIZE. */
int frame_encode_machine(const Machine *m, uint8_t **ret, size_t *ret_n);
int frame_encode_tick(const Tick *t, uint8_t **ret, size_t *ret_n);
int frame_encode_status(const SamplerStatus *s, uint8_t **ret, size_t *ret_n);
int frame_encode_event(const FrameEvent *e, uint8_t **ret, size_t *ret_n);

/*
 * A reader over a byte stream that arrives in pieces. Feed bytes, then take frames until 0.
 */
typedef struct FrameReader FrameReader;

FrameReader *frame_reader_new(void);
FrameReader *frame_reader_free(FrameReader *r);
DEFINE_CLEANUP(FrameReader *, frame_reader_free);
int frame_reader_feed(FrameReader *r, const void *data, size_t n);
/* 1: *ret_type, and payload borrowed until the next call; 0: needs more; -EBADMSG: the stream is damaged and
 * stays so. */
int frame_reader_next(FrameReader *r, FrameType *ret_type, const uint8_t **ret_payload, size_t *ret_n);

/* Payload decoders; -EBADMSG for anything that does not fit. */
int frame_decode_tick(const uint8_t *payload, size_t n, Tick **ret);
int frame_decode_machine(const uint8_t *payload, size_t n, Machine **ret);
int frame_decode_status(const uint8_t *payload, size_t n, SamplerStatus *ret);
int frame_decode_event(const uint8_t *payload, size_t n, FrameEvent *ret);
