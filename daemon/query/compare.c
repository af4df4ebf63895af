/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The arithmetic of a comparison and the facts that spoil one. A spread needs three values to mean anything,
 * as in LKP; a percent of zero means nothing at all and stays unknown, so that a metric that was 0 is never
 * "inf %".
 */

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cstated/macro.h"

#include "query/compare.h"

void compare_side_from_stats(const Stats *s, double mean, Reason reason, CompareSide *ret) {
        bool known = reason == REASON_NONE && isfinite(mean);

        *ret = (CompareSide){
                .mean = known ? mean : NAN,
                .stddev = s->n >= 3 ? stats_stddev(s) : NAN,
                .stddev_percent = NAN,
                .n = s->n,
                .reason = known                   ? REASON_NONE
                          : reason == REASON_NONE ? REASON_GAP
                                                  : reason,
        };
        if (known && s->n >= 3 && fabs(mean) > 1e-300)
                ret->stddev_percent = 100 * ret->stddev / fabs(mean);
}

void compare_row(const MetricSpec *m, const CompareSide *a, const CompareSide *b, CompareRow *ret) {
        CompareRow row = { .a = *a, .b = *b, .change = NAN };

        row.points = m->unit == UNIT_PERCENT || m->unit == UNIT_POINT;
        if (a->reason == REASON_NONE && b->reason == REASON_NONE) {
                if (row.points)
                        row.change = b->mean - a->mean;
                else if (fabs(a->mean) > 1e-300)
                        row.change = 100 * (b->mean - a->mean) / fabs(a->mean);
        }
        *ret = row;
}

static void append(char *buf, size_t size, const char *separator, const char *text) {
        size_t n = strlen(buf);

        if (n < size)
                (void) snprintf(buf + n, size - n, "%s%s", n > 0 ? separator : "", text);
}

void compare_facts(const Machine *m, CompareFacts *ret) {
        CompareFacts f = { .known = true, .n_cpus = m->n_cpus };

        if (m->n_idents > 0) {
                const CpuIdent *c = &m->idents[0];

                (void) snprintf(f.model, sizeof(f.model), "%s %02x_%02x stepping %u %s", c->vendor,
                        c->family, c->model, c->stepping, c->brand);
                f.microcode = c->microcode;
        }
        (void) snprintf(f.kernel, sizeof(f.kernel), "%s", m->kernel);
        (void) snprintf(f.driver, sizeof(f.driver), "%s", m->idle_driver);
        (void) snprintf(f.governor, sizeof(f.governor), "%s", m->idle_governor);
        for (uint32_t i = 0; i < m->n_idle_sets; i++)
                for (uint32_t k = 0; k < m->idle_sets[i].n_states; k++) {
                        const IdleState *s = &m->idle_sets[i].states[k];

                        append(f.states, sizeof(f.states), k == 0 ? "; " : " ", s->name);
                        if (s->disabled)
                                append(f.states, sizeof(f.states), "", "(disabled)");
                }
        *ret = f;
}

typedef struct Warnings {
        char (*list)[COMPARE_WARNING_SIZE];
        size_t n;
} Warnings;

static void warn_text(Warnings *w, const char *what, const char *a, const char *b) {
        if (strcmp(a, b) != 0 && w->n < COMPARE_WARNINGS_MAX)
                (void) snprintf(w->list[w->n++], COMPARE_WARNING_SIZE, "%s differs: %s, %s", what,
                        a[0] ? a : "none", b[0] ? b : "none");
}

static void warn_number(Warnings *w, const char *what, bool hex, uint32_t a, uint32_t b) {
        char first[16], second[16];

        (void) snprintf(first, sizeof(first), hex ? "0x%" PRIx32 : "%" PRIu32, a);
        (void) snprintf(second, sizeof(second), hex ? "0x%" PRIx32 : "%" PRIu32, b);
        warn_text(w, what, first, second);
}

size_t compare_warnings(
        const CompareFacts *a, const CompareFacts *b, char ret[COMPARE_WARNINGS_MAX][COMPARE_WARNING_SIZE]) {
        Warnings w = { .list = ret };

        if (!a->known || !b->known)
                return 0;
        warn_text(&w, "CPU model", a->model, b->model);
        warn_number(&w, "microcode", true, a->microcode, b->microcode);
        warn_text(&w, "kernel", a->kernel, b->kernel);
        warn_text(&w, "idle driver", a->driver, b->driver);
        warn_text(&w, "idle governor", a->governor, b->governor);
        warn_text(&w, "set of idle states", a->states, b->states);
        warn_number(&w, "number of online CPUs", false, a->n_cpus, b->n_cpus);
        return w.n;
}
