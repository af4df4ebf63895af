/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * CPUs out of text from another machine: what `cpuid -r` prints, or a /proc/cpuinfo. Fed in pieces of any
 * size, in bounded memory; the CPUs that are the same are one group with a count.
 */

#include "model/cpuid-cpuinfo.h"

#define CPUID_DUMP_BYTES_MAX (64u << 20) /* 8192 CPUs as `cpuid -r` or as /proc/cpuinfo fit in */
#define CPUID_DUMP_LINE_MAX 16384
#define CPUID_DUMP_GROUPS_MAX 64

typedef struct CpuidDumpGroup {
        CpuIdent ident; /* n_cpus counts the group */
        bool has_bugs;  /* from /proc/cpuinfo only */
        char bugs[CPUID_BUGS_MAX];
} CpuidDumpGroup;

typedef struct CpuidDump CpuidDump;

/* NULL when out of memory. */
CpuidDump *cpuid_dump_new(void);
CpuidDump *cpuid_dump_free(CpuidDump *d);
DEFINE_CLEANUP(CpuidDump *, cpuid_dump_free);

/* The next piece of text. -EBADMSG: it is no dump, for the reason in cpuid_dump_error(), and stays none. */
int cpuid_dump_feed(CpuidDump *d, const char *text, size_t n);
/* The text is over: -EBADMSG also where it is empty or broken off. */
int cpuid_dump_finish(CpuidDump *d);
/* "line 7: ..." after -EBADMSG, else NULL. */
const char *cpuid_dump_error(const CpuidDump *d);
/* In order of appearance; valid after cpuid_dump_finish() as long as d lives. */
const CpuidDumpGroup *cpuid_dump_groups(const CpuidDump *d, size_t *ret_n);
