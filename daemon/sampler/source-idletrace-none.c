/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The twin of source-idletrace.c where that is not built. */

#include "sampler/source-none.h"

SOURCE_NONE(idletrace, "not built in: needs libbpf, clang and bpftool at build time");
