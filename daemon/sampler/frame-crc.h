/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* CRC-32 of IEEE 802.3 (reflected polynomial 0xEDB88320), as in zlib. */
uint32_t frame_crc32(const void *data, size_t n);
