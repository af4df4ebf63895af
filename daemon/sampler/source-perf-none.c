/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The twin of source-perf.c where that is not built. */

#include "sampler/source-none.h"

SOURCE_NONE(perf, "not built in: x86 only");
