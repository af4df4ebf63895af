/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Between a set of registers and the layout: columns, the clocks beside them, and their slots in a tick. */

#include "sampler/msr-sweep.h"

/* Adds what the layout does not have yet; returns how many columns. */
uint32_t msr_columns_add(const MsrSet *set, Layout *l, uint8_t index);
/* Writes a swept turn into the columns that are this source's. */
void msr_columns_publish(const MsrSweep *s, const SourceTurn *turn, uint8_t index);
