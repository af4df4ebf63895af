/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Busy and idle time of each CPU from /proc/stat, in USER_HZ ticks: the stand-in for MPERF, and the word on
 * whether a CPU was awake. guest time stands in user already; iowait is idle time with a reason, and can
 * fall by a little, so idle is held where it stood until it rises again. The cpu lines come first in the
 * file and in ascending order, like the machine's CPUs: one walk over both. The read ends where they end,
 * the long intr line is not copied.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cstated/num.h"

#include "sampler/source.h"

#define STAT_LINE_MAX 224 /* "cpu8191" and ten counters of 20 digits */
#define STAT_BUFFER_MIN 4096
#define IDLE_JITTER 100 /* USER_HZ */

enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, N_FIELDS };

typedef struct StatBaseline {
        uint64_t busy, idle;
        bool valid;
} StatBaseline;

typedef struct StatSource {
        Source base;
        int fd;
        char *buf;
        size_t size;
        uint32_t n_cpus;
        StatBaseline *baselines;
} StatSource;

static Source *stat_close(Source *source) {
        StatSource *s = (StatSource *) source;

        if (s) {
                closep(&s->fd);
                free(s->buf);
                free(s->baselines);
                free(s);
        }
        return NULL;
}

static int stat_probe(Sysfs *sysfs, Machine *m, uint8_t index, Source **ret, SourceStatus *status) {
        StatSource *s = calloc(1, sizeof(*s));

        if (!s)
                return -ENOMEM;
        s->base = (Source){ .ops = &source_ops_stat, .index = index };
        s->n_cpus = m->n_cpus;
        s->size = MAX((size_t) STAT_BUFFER_MIN, (size_t) (m->n_cpus + 2) * STAT_LINE_MAX);
        s->buf = malloc(s->size);
        s->baselines = calloc(m->n_cpus, sizeof(*s->baselines));
        s->fd = sysfs_open(sysfs, "proc/stat");
        if (!s->buf || !s->baselines) {
                (void) stat_close(&s->base);
                return -ENOMEM;
        }
        if (s->fd < 0) {
                source_status_set_error(status, s->fd, "/proc/stat");
                (void) stat_close(&s->base);
                return 0;
        }
        for (unsigned i = 0; i < 2; i++) {
                LayoutColumn *c = layout_add(&m->layout, i == 0 ? FIELD_STAT_BUSY : FIELD_STAT_IDLE, 0);

                if (c)
                        c->source = index;
        }
        status->n_counters = 2;
        *ret = &s->base;
        return 0;
}

static void stat_adopt(Source *source, const Machine *m, Source *source_old, const Machine *m_old) {
        StatSource *s = (StatSource *) source, *old = (StatSource *) source_old;

        for (uint32_t i = 0; i < m->n_cpus; i++) {
                uint32_t k = machine_cpu_index(m_old, m->cpus[i].id);

                if (k != UINT32_MAX)
                        s->baselines[i] = old->baselines[k];
        }
}

static int stat_open(Source *source, const Machine *m) {
        return 0;
}

/* The cpu lines; stops reading at the first other line. */
static int text_read(StatSource *s, size_t *ret_n) {
        size_t n = 0;

        while (n < s->size) {
                ssize_t k = pread(s->fd, s->buf + n, s->size - n, (off_t) n);

                if (k < 0 && errno == EINTR)
                        continue;
                if (k < 0)
                        return -errno;
                n += (size_t) k;
                if (k == 0 || memmem(s->buf, n, "\nintr", 5))
                        break;
        }
        *ret_n = n;
        return 0;
}

/* "cpuN u n s i w q o t ..." at *p; false where the line is none of one CPU. *p moves behind the line. */
static bool line_parse(const char **p, const char *end, uint64_t *ret_cpu, uint64_t fields[N_FIELDS]) {
        const char *line = *p, *eol = memchr(line, '\n', (size_t) (end - line));
        unsigned n = 0;

        *p = eol ? eol + 1 : end;
        eol = eol ? eol : end;
        if (eol - line < 4 || memcmp(line, "cpu", 3) != 0)
                return false;
        line += 3;
        if (!num_scan_u64(&line, eol, ret_cpu))
                return false;
        for (n = 0; n < N_FIELDS; n++) {
                while (line < eol && *line == ' ')
                        line++;
                if (!num_scan_u64(&line, eol, &fields[n]))
                        break;
        }
        for (; n < N_FIELDS; n++) /* old kernels have fewer columns */
                fields[n] = 0;
        return true;
}

/* A fall of more than iowait's jitter is the kernel's counter beginning anew, which is not ours to hide. */
static uint64_t idle_hold(const StatBaseline *b, uint64_t idle) {
        return b->valid && idle < b->idle && b->idle - idle < IDLE_JITTER ? b->idle : idle;
}

static void activity_note(CpuActivity *a, StatBaseline *b, uint64_t busy, uint64_t idle) {
        if (b->valid) {
                uint64_t d_busy = busy > b->busy ? busy - b->busy : 0,
                         d_idle = idle > b->idle ? idle - b->idle : 0;

                a->evidence |= ACTIVITY_BUSY_KNOWN | (d_busy > 0 ? ACTIVITY_BUSY : 0);
                a->busy_permille = d_busy + d_idle > 0 ? (uint32_t) (d_busy * 1000 / (d_busy + d_idle)) : 0;
        }
        *b = (StatBaseline){ .busy = busy, .idle = idle, .valid = true };
}

static void slots_fill(SourceTurn *turn, Reason r) {
        for (unsigned i = 0; i < 2; i++) {
                uint8_t *reasons;

                if (source_values(turn, i == 0 ? FIELD_STAT_BUSY : FIELD_STAT_IDLE, 0, &reasons))
                        memset(reasons, (int) r, turn->machine->n_cpus);
        }
}

static int stat_read(Source *source, SourceTurn *turn, SourceStatus *status) {
        StatSource *s = (StatSource *) source;
        uint64_t *busy, *idle, cpu, f[N_FIELDS];
        uint8_t *busy_reasons, *idle_reasons;
        const char *p = s->buf, *end;
        uint32_t i = 0;
        size_t n = 0;
        int r;

        busy = source_values(turn, FIELD_STAT_BUSY, 0, &busy_reasons);
        idle = source_values(turn, FIELD_STAT_IDLE, 0, &idle_reasons);
        if (!busy || !idle)
                return 0;
        r = text_read(s, &n);
        if (r < 0) {
                slots_fill(turn, source_reason(-r));
                source_status_set_error(status, r, "/proc/stat");
                return r;
        }
        slots_fill(turn, REASON_OFFLINE);
        end = s->buf + n;
        while (p < end && memcmp(p, "cpu", MIN((size_t) (end - p), (size_t) 3)) == 0) {
                if (!line_parse(&p, end, &cpu, f))
                        continue;
                while (i < s->n_cpus && turn->machine->cpus[i].id < cpu)
                        i++;
                if (i == s->n_cpus || turn->machine->cpus[i].id != cpu)
                        continue;
                busy[i] = f[USER] + f[NICE] + f[SYSTEM] + f[IRQ] + f[SOFTIRQ] + f[STEAL];
                idle[i] = idle_hold(&s->baselines[i], f[IDLE] + f[IOWAIT]);
                busy_reasons[i] = idle_reasons[i] = REASON_NONE;
                activity_note(&turn->activity[i], &s->baselines[i], busy[i], idle[i]);
        }
        source_status_set_ok(status);
        return 0;
}

const SourceOps source_ops_stat = {
        .name = "stat",
        .passive = true,
        .probe = stat_probe,
        .adopt = stat_adopt,
        .open = stat_open,
        .read = stat_read,
        .close = stat_close,
};
