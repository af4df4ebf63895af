/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The errata of MONITOR/MWAIT, and whether this kernel works around them. */

#include "model/machine.h"

typedef enum ErratumId {
        ERRATUM_CLFLUSH_MONITOR,
        ERRATUM_MONITOR,
        ERRATUM_ICX143,
        ERRATUM_N,
} ErratumId;

typedef enum ErratumStatus {
        ERRATUM_NOT_AFFECTED,
        ERRATUM_MITIGATED,
        ERRATUM_UNMITIGATED,
        ERRATUM_UNKNOWN,
        ERRATUM_ADVISORY,
} ErratumStatus;

const char *erratum_name(ErratumId id);            /* "clflush_monitor" */
const char *erratum_status_name(ErratumStatus s);  /* "not-affected", ... */

/* bugs: that line of /proc/cpuinfo (whole tokens are matched); NULL: there is none, or a dump has none. */
ErratumStatus erratum_classify(ErratumId id, const CpuIdent *c, const char *bugs);
/* What it means and what to do, one or two sentences; never NULL. */
const char *erratum_advice(ErratumId id, ErratumStatus s);

typedef struct ErratumProblem {
        ErratumId id;
        const CpuIdent *cpu; /* borrowed from the machine */
        char text[512]; /* one line for the log, the event and status */
} ErratumProblem;

/* The unmitigated errata of this machine, each once. Returns how many. */
size_t errata_summary(const Machine *m, ErratumProblem ret[ERRATUM_N]);
/* The bugs line as erratum_classify() wants it. */
const char *errata_bugs(const Machine *m);
