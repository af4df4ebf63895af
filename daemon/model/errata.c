/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The errata of MONITOR/MWAIT. The lists are Linux's own: X86_BUG_CLFLUSH_MONITOR and X86_BUG_MONITOR, set
 * in arch/x86/kernel/cpu/intel.c. The kernel sets its bug bit by model, also in virtual machines and where
 * MWAIT is not in use; so a listed model whose bugs line lacks the token runs on a kernel that knows nothing
 * of the erratum: that is the alarm. A token on the line of an unlisted model changes nothing.
 */

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "model/errata.h"

static const char *const erratum_names[ERRATUM_N] = {
        [ERRATUM_CLFLUSH_MONITOR] = "clflush_monitor",
        [ERRATUM_MONITOR] = "monitor",
        [ERRATUM_ICX143] = "icx143",
};

const char *erratum_name(ErratumId id) {
        return erratum_names[id];
}

const char *erratum_status_name(ErratumStatus s) {
        static const char *const names[] = {
                [ERRATUM_NOT_AFFECTED] = "not-affected",
                [ERRATUM_MITIGATED] = "mitigated",
                [ERRATUM_UNMITIGATED] = "unmitigated",
                [ERRATUM_UNKNOWN] = "unknown",
                [ERRATUM_ADVISORY] = "advisory",
        };

        return names[s];
}

static bool erratum_affects(ErratumId id, const CpuIdent *c) {
        if (strcmp(c->vendor, "GenuineIntel") != 0 || c->family != 6)
                return false;
        switch (id) {
        case ERRATUM_CLFLUSH_MONITOR: /* AAI65: Dunnington, Nehalem-EX, Westmere-EX */
                return c->has_clflush && (c->model == 0x1d || c->model == 0x2e || c->model == 0x2f);
        case ERRATUM_MONITOR: /* APL30 Goldmont, LNL030 Lunar Lake */
                return c->has_monitor && (c->model == 0x5c || c->model == 0xbd);
        case ERRATUM_ICX143: /* Ice Lake-SP */
                return c->model == 0x6a;
        case ERRATUM_N:
                break;
        }
        return false;
}

/* Whole tokens between blanks. */
static bool bugs_line_has(const char *bugs, const char *token) {
        size_t n = strlen(token);

        while (*bugs) {
                size_t length;

                bugs += strspn(bugs, " \t\n");
                length = strcspn(bugs, " \t\n");
                if (length == n && memcmp(bugs, token, n) == 0)
                        return true;
                bugs += length;
        }
        return false;
}

ErratumStatus erratum_classify(ErratumId id, const CpuIdent *c, const char *bugs) {
        if (!erratum_affects(id, c))
                return ERRATUM_NOT_AFFECTED;
        if (id == ERRATUM_ICX143)
                return ERRATUM_ADVISORY;
        if (!bugs)
                return ERRATUM_UNKNOWN;
        return bugs_line_has(bugs, erratum_names[id]) ? ERRATUM_MITIGATED : ERRATUM_UNMITIGATED;
}

static const char *clflush_monitor_advice(ErratumStatus s) {
        switch (s) {
        case ERRATUM_MITIGATED:
                return "MONITOR may miss its cache line on this model, so that MWAIT returns at once. "
                       "The kernel flushes the line first (CLFLUSH): nothing to do.";
        case ERRATUM_UNMITIGATED:
                return "MONITOR may miss its cache line on this model: MWAIT returns at once, deep "
                       "C-states are lost and some 50 W more are drawn while idle. This kernel does not "
                       "list the erratum: run an unmodified Linux 3.17 or later.";
        case ERRATUM_UNKNOWN:
                return "MONITOR may miss its cache line on this model, so that MWAIT returns at once. There "
                       "is no bugs line to tell whether the kernel flushes the line first: run Linux 3.17 or "
                       "later, or watch break wakeups.";
        case ERRATUM_NOT_AFFECTED:
        case ERRATUM_ADVISORY:
                break;
        }
        return "This CPU does not need CLFLUSH before MONITOR.";
}

static const char *monitor_advice(ErratumStatus s) {
        switch (s) {
        case ERRATUM_MITIGATED:
                return "A store may fail to wake MWAIT on this model. The kernel wakes remote CPUs by "
                       "interrupt instead: nothing to do (store wakeups stay 0, rescheduling "
                       "interrupts rise).";
        case ERRATUM_UNMITIGATED:
                return "A store may fail to wake MWAIT on this model: wakeups come late, up to the next "
                       "timer. This kernel does not list the erratum: update it (Lunar Lake: Linux 6.13 or "
                       "6.12.5), or boot with idle=nomwait.";
        case ERRATUM_UNKNOWN:
                return "A store may fail to wake MWAIT on this model. There is no bugs line to tell whether "
                       "the kernel wakes by interrupt instead: run Linux 6.13 or 6.12.5 or later.";
        case ERRATUM_NOT_AFFECTED:
        case ERRATUM_ADVISORY:
                break;
        }
        return "Stores wake this CPU's MWAIT.";
}

static const char *icx143_advice(ErratumStatus s) {
        if (s != ERRATUM_ADVISORY)
                return "Erratum ICX143 concerns Ice Lake-SP only.";
        return "Ice Lake-SP erratum ICX143: a store may rarely fail to wake MWAIT. No Linux release works "
               "around it; where wakeups are seen to hang, boot with idle=nomwait.";
}

const char *erratum_advice(ErratumId id, ErratumStatus s) {
        switch (id) {
        case ERRATUM_CLFLUSH_MONITOR:
                return clflush_monitor_advice(s);
        case ERRATUM_MONITOR:
                return monitor_advice(s);
        case ERRATUM_ICX143:
                return icx143_advice(s);
        case ERRATUM_N:
                break;
        }
        return "";
}

const char *errata_bugs(const Machine *m) {
        return m->has_bugs ? m->bugs : NULL;
}

size_t errata_summary(const Machine *m, ErratumProblem ret[ERRATUM_N]) {
        size_t n = 0;

        for (unsigned id = 0; id < ERRATUM_N; id++)
                for (uint32_t i = 0; i < m->n_idents; i++) {
                        const CpuIdent *c = &m->idents[i];
                        ErratumStatus s = erratum_classify((ErratumId) id, c, errata_bugs(m));

                        if (s != ERRATUM_UNMITIGATED)
                                continue;
                        ret[n].id = (ErratumId) id;
                        ret[n].cpu = c;
                        (void) snprintf(ret[n].text, sizeof(ret[n].text),
                                "erratum %s of %s (%02X_%02XH) is not worked around by kernel %s: %s",
                                erratum_names[id], c->uarch, c->family, c->model,
                                m->kernel[0] ? m->kernel : "(unknown)",
                                erratum_advice((ErratumId) id, s));
                        n++;
                        break;
                }
        return n;
}
