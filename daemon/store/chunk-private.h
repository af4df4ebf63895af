/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the writing half (chunk.c) and the reading half (chunk-read.c) share. */

#include <zlib.h>

#include "store/chunk.h"

#define CHUNK_MAGIC 0x4b43
#define HEAD_SIZE   32
#define ENTRY_SIZE  12

static inline uint32_t chunk_checksum(const uint8_t *p, size_t n) {
        return (uint32_t) crc32_z(0, p, n);
}
