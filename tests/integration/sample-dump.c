/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the sampler reads, without a server: sample-dump [-n TURNS] [-i MILLISECONDS] [-p POLICY] [-s
 * SOURCES]. Tab-separated lines on stdout, a word first: tick    turn, mono_ns, self_reads, self_wakeups,
 * generation value   turn, field, instance, entity (kernel ids), cumulative value (signed), reason or "-",
 * scale, range source  turn, name, state, errno, counters, hint, detail
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cstated/macro.h"
#include "cstated/num.h"
#include "sampler/sampler.h"

static void entity_name(const Machine *m, Scope scope, uint32_t e, char *buf, size_t size) {
        const MachinePackage *p;

        switch (scope) {
        case SCOPE_SYSTEM:
                (void) snprintf(buf, size, "-");
                break;
        case SCOPE_PACKAGE:
                (void) snprintf(buf, size, "%d/%d", m->packages[e].package, m->packages[e].die);
                break;
        case SCOPE_MODULE:
                (void) snprintf(buf, size, "%d", m->modules[e].id);
                break;
        case SCOPE_CORE:
                p = &m->packages[m->cores[e].package];
                (void) snprintf(buf, size, "%d/%d/%d", p->package, p->die, m->cores[e].id);
                break;
        case SCOPE_CPU:
                (void) snprintf(buf, size, "%u", (unsigned) m->cpus[e].id);
                break;
        }
}

static void print_column(unsigned turn, const Machine *m, const Tick *t, const LayoutColumn *c) {
        const FieldSpec *f = field_spec(c->field);
        char entity[64], scale[NUM_DOUBLE_MAX];

        (void) num_format_double(c->scale, 15, scale);
        for (uint32_t e = 0; e < machine_n_entities(m, f->scope); e++) {
                const char *reason = reason_name((Reason) t->reasons[c->offset + e]);

                entity_name(m, f->scope, e, entity, sizeof(entity));
                (void) printf("value\t%u\t%s\t%u\t%s\t%" PRId64 "\t%s\t%s\t%" PRIu64 "\n", turn, f->name,
                        (unsigned) c->instance, entity, (int64_t) t->values[c->offset + e],
                        reason ? reason : "-", scale, c->range);
        }
}

static void print_turn(unsigned turn, Sampler *s, const Tick *t) {
        const Machine *m = sampler_machine(s);
        const SamplerStatus *st = sampler_status(s);

        (void) printf("tick\t%u\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%u\n", turn, t->h.mono_ns,
                t->h.self_reads, t->h.self_wakeups, (unsigned) m->generation);
        for (size_t i = 0; i < m->layout.n_columns; i++)
                print_column(turn, m, t, &m->layout.columns[i]);
        for (uint32_t i = 0; i < st->n_sources; i++) {
                const SourceStatus *o = &st->sources[i];

                (void) printf("source\t%u\t%s\t%s\t%d\t%u\t%s\t%s\n", turn, o->name,
                        source_state_name(o->state), o->error, (unsigned) o->n_counters, o->hint, o->detail);
        }
        (void) fflush(stdout);
}

static int sleep_until(uint64_t ns) {
        struct timespec ts = {.tv_sec = (time_t) (ns / 1000000000u), .tv_nsec = (long) (ns % 1000000000u)};

        return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static int run(const SamplerConfig *config, unsigned n_turns) {
        _cleanup_(sysfs_freep) Sysfs *sysfs = NULL;
        _cleanup_(sampler_freep) Sampler *s = NULL;
        struct timespec begin;
        int r;

        r = sysfs_new("/", &sysfs);
        if (r < 0)
                return r;
        r = sampler_new(config, sysfs, &s);
        if (r < 0)
                return r;
        (void) clock_gettime(CLOCK_MONOTONIC, &begin);
        for (unsigned i = 0; i < n_turns; i++) {
                const Tick *t;

                (void) sleep_until((uint64_t) begin.tv_sec * 1000000000u + (uint64_t) begin.tv_nsec +
                                   i * config->interval_usec * 1000u);
                r = sampler_turn(s, &t);
                if (r < 0)
                        return r;
                print_turn(i, s, t);
        }
        return 0;
}

int main(int argc, char *argv[]) {
        SamplerConfig config = SAMPLER_CONFIG_INIT;
        uint32_t turns = 2, interval_ms = 1000;
        int o, r = 0;

        while (r == 0 && (o = getopt(argc, argv, "n:i:p:s:")) != -1)
                switch (o) {
                case 'n':
                        r = num_parse_u32(optarg, &turns);
                        break;
                case 'i':
                        r = num_parse_u32(optarg, &interval_ms);
                        break;
                case 'p':
                        r = wake_policy_from_name(optarg, &config.wake_policy);
                        config.wake_policy_set = true;
                        break;
                case 's':
                        r = sampler_parse_sources(optarg, &config.disabled_sources);
                        break;
                default:
                        r = -EINVAL;
                        break;
                }
        config.interval_usec = interval_ms * 1000ull;
        if (r == 0)
                r = run(&config, turns);
        if (r < 0)
                (void) fprintf(stderr, "sample-dump: %s\n", strerror(-r));
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
