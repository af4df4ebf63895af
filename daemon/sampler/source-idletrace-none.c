/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The twin of source-idletrace.c where that is not built: perf counts entries where cpuidle does not (idle-perf.h). */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "sampler/idle-perf.h"

typedef struct IdletraceSource {
        Source source;
        IdlePerf *perf;
} IdletraceSource;

static void explain(SourceStatus *status) {
        status->state = SOURCE_ABSENT;
        (void) snprintf(status->hint, sizeof(status->hint), "%s",
                "not built in: needs libbpf, clang and bpftool at build time");
}

static Source *idletrace_close(Source *source) {
        IdletraceSource *s = (IdletraceSource *) source;

        if (s)
                (void) idle_perf_free(s->perf);
        free(s);
        return NULL;
}

static int idletrace_probe(Sysfs *sysfs, Machine *m, uint8_t index, Source **ret, SourceStatus *status) {
        IdletraceSource *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        s->source = (Source){ .ops = &source_ops_idletrace, .index = index };
        explain(status);
        r = idle_perf_new(sysfs, m, index, status, &s->perf);
        if (r == 0 && s->perf)
                *ret = &s->source;
        else
                (void) idletrace_close(&s->source);
        return r;
}

static int idletrace_reprobe(Source *source, Machine *m, SourceStatus *status) {
        explain(status);
        return idle_perf_columns(((IdletraceSource *) source)->perf, m, source->index, status);
}

static int idletrace_open(Source *source, const Machine *m) {
        return idle_perf_open(((IdletraceSource *) source)->perf, m);
}

static int idletrace_read(Source *source, SourceTurn *turn, SourceStatus *status) {
        return 0;
}

static void idletrace_read_remote(Source *source, SourceTurn *turn) {
        idle_perf_read(((IdletraceSource *) source)->perf, turn);
}

const SourceOps source_ops_idletrace = {
        .name = "idletrace",
        .passive = true,
        .probe = idletrace_probe,
        .reprobe = idletrace_reprobe,
        .open = idletrace_open,
        .read = idletrace_read,
        .read_remote = idletrace_read_remote,
        .close = idletrace_close,
};
