/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* libFuzzer's entry: runs one input; must never crash, leak or read past it. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
