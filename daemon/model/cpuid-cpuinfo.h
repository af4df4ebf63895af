/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* One CPU's block of an x86 /proc/cpuinfo, line by line. */

#include "model/cpuid.h"

#define CPUID_BUGS_MAX 2048 /* of a bugs line; 300 bytes are usual in 2026 */

typedef struct CpuinfoBlock {
        CpuIdent ident;
        bool has_bugs;
        char bugs[CPUID_BUGS_MAX];
        bool started, has_vendor, has_family, has_model, has_flags, has_end;
} CpuinfoBlock;

/* True where the line opens a /proc/cpuinfo ("processor : 0"). */
bool cpuinfo_line_opens(const char *line);
/* Takes one line, which it may cut up. NULL, or what is wrong with it. */
const char *cpuinfo_line(CpuinfoBlock *b, char *line);
/* The block is over, at an empty line or at the end of the text: completes ident. NULL, or what it lacks. */
const char *cpuinfo_block_finish(CpuinfoBlock *b, bool at_end);
