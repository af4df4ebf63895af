/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The errata of MONITOR/MWAIT, and whether this kernel works around them (DESIGN 6). */

#include "model/cpuid.h"

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

/* bugs: the bugs line of /proc/cpuinfo (whole tokens are matched), NULL where there is none or a dump says
 * nothing. */
ErratumStatus erratum_classify(ErratumId id, const CpuIdent *c, const char *bugs);
/* What it means and what to do, one or two sentences; never NULL. */
const char *erratum_advice(ErratumId id, ErratumStatus s);
