/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One turn: is the machine still the same, then every source in its order, passive ones first, so that the
 * ones that would wake a CPU know which sleep. All sources write into one tick that is allocated with the
 * machine; a turn allocates nothing.
 *
 * The machine is read anew (sampler-machine.c) when the online list or the idle driver changes, when a
 * source says that its columns have changed, and when one that was absent or denied would now work (looked
 * at every 50 s).
 */

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "cstated/num.h"
#include "cstated/timespan.h"

#include "sampler/cpuid-live.h"
#include "sampler/sampler-private.h"

#define RETRY_NS (10 * NSEC_PER_SEC) /* of what was denied: a file opened in vain costs nothing */
#define RETRY_ABSENT 5                /* every so many of them also of what was absent or failed */
#define RSS_NS (10 * NSEC_PER_SEC)
#define EVENT_HOLD_NS (60 * NSEC_PER_SEC) /* a source that flaps is told of once a minute */
#define SUSPEND_MIN_NS (100 * 1000000ULL)

static uint64_t clock_ns(clockid_t clock) {
        struct timespec t;

        (void) clock_gettime(clock, &t);
        return (uint64_t) t.tv_sec * NSEC_PER_SEC + (uint64_t) t.tv_nsec;
}

/* CLOCK_BOOTTIME runs on in suspend; read second, so that the difference is never negative. */
static uint64_t clock_suspended_ns(void) {
        uint64_t mono = clock_ns(CLOCK_MONOTONIC);

        return clock_ns(CLOCK_BOOTTIME) - mono;
}

void sampler_event_add(Sampler *s, const char *kind, int64_t cpu, const char *format, ...) {
        FrameEvent *e;
        va_list ap;

        if (s->n_events == SAMPLER_EVENTS_MAX) {
                memmove(&s->events[0], &s->events[1], (SAMPLER_EVENTS_MAX - 1) * sizeof(s->events[0]));
                s->n_events--;
        }
        e = &s->events[s->n_events++];
        *e = (FrameEvent){ .time_us = clock_ns(CLOCK_REALTIME) / NSEC_PER_USEC, .cpu = cpu };
        (void) snprintf(e->kind, sizeof(e->kind), "%s", kind);
        va_start(ap, format);
        (void) vsnprintf(e->text, sizeof(e->text), format, ap);
        va_end(ap);
}

int sampler_take_event(Sampler *s, FrameEvent *ret) {
        if (s->n_events == 0)
                return 0;
        *ret = s->events[0];
        memmove(&s->events[0], &s->events[1], --s->n_events * sizeof(s->events[0]));
        return 1;
}

/* Capabilities that decide what can be read, of CapEff in /proc/self/status. */
static void capabilities_describe(Sysfs *sysfs, char *buf, size_t size) {
        static const struct {
                unsigned bit;
                const char *name;
        } caps[] = { { 2, "dac_read_search" }, { 17, "sys_rawio" }, { 21, "sys_admin" }, { 38, "perfmon" },
                { 39, "bpf" } };
        _cleanup_free_ char *text = NULL;
        uint64_t effective = 0;
        const char *line;
        char hex[24] = "0x";
        size_t n, at = 0;

        buf[0] = 0;
        if (sysfs_read_file(sysfs, 64u << 10, &text, &n, "proc/self/status") < 0)
                return;
        line = strstr(text, "\nCapEff:\t");
        if (!line)
                return;
        (void) snprintf(hex + 2, sizeof(hex) - 2, "%.16s", line + strlen("\nCapEff:\t"));
        if (num_parse_u64(hex, &effective) < 0)
                return;
        for (size_t i = 0; i < ARRAY_SIZE(caps) && at < size; i++)
                if (effective >> caps[i].bit & 1)
                        at += (size_t) snprintf(
                                buf + at, size - at, "%s%s", at > 0 ? " " : "", caps[i].name);
}

static bool must_rebuild(Sampler *s, uint64_t now_ns) {
        uint64_t fingerprint = topology_watch_read(&s->watch);
        bool changed = fingerprint != s->fingerprint;

        s->fingerprint = fingerprint;
        if (now_ns >= s->next_retry_ns) {
                bool all = s->n_retries++ % RETRY_ABSENT == 0;

                s->next_retry_ns = now_ns + RETRY_NS;
                for (size_t i = 0; i < source_table_n && !changed && !s->reprobe; i++)
                        if (all || s->status.sources[i].state == SOURCE_DENIED)
                                changed = sampler_source_would_work(s, i);
        }
        return changed || s->reprobe;
}

/* An event where a source's state has changed and that was not told within the last minute. */
static void states_tell(Sampler *s, uint64_t now_ns, bool is_first) {
        for (size_t i = 0; i < s->status.n_sources; i++) {
                const SourceStatus *st = &s->status.sources[i];

                if (st->state == s->told[i])
                        continue;
                if (!is_first) {
                        if (s->told_ns[i] > 0 && now_ns < s->told_ns[i] + EVENT_HOLD_NS)
                                continue;
                        sampler_event_add(s, "source", -1, "%s: %s -> %s%s%s", st->name,
                                source_state_name(s->told[i]), source_state_name(st->state),
                                st->hint[0] ? ": " : "", st->hint);
                        s->told_ns[i] = now_ns;
                }
                s->told[i] = st->state;
        }
}

static void rlimit_raise(void) {
        struct rlimit l;

        if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_cur >= l.rlim_max)
                return;
        l.rlim_cur = l.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &l);
}

int sampler_new(const SamplerConfig *c, Sysfs *sysfs, Sampler **ret) {
        _cleanup_(sampler_freep) Sampler *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        s->config = *c;
        s->sysfs = sysfs;
        s->watch = (TopologyWatch) TOPOLOGY_WATCH_INIT;
        s->statm_fd = -1;
        rlimit_raise();
        capabilities_describe(sysfs, s->status.capabilities, sizeof(s->status.capabilities));
        topology_watch_init(&s->watch, sysfs);
        s->fingerprint = topology_watch_read(&s->watch);
        s->next_retry_ns = clock_ns(CLOCK_MONOTONIC) + RETRY_NS;
        s->suspended_ns = clock_suspended_ns();
        s->statm_fd = sysfs_open(sysfs, "proc/self/statm");
        r = sampler_machine_rebuild(s);
        if (r < 0)
                return r;
        states_tell(s, 0, true);
        *ret = TAKE_PTR(s);
        return 0;
}

Sampler *sampler_free(Sampler *s) {
        if (!s)
                return NULL;
        sampler_sources_close(s);
        topology_watch_deinit(&s->watch);
        closep(&s->statm_fd);
        (void) machine_free(s->machine);
        (void) tick_free(s->tick);
        free(s->activity);
        free(s);
        return NULL;
}

const Machine *sampler_machine(const Sampler *s) {
        return s->machine;
}

const SamplerStatus *sampler_status(const Sampler *s) {
        return &s->status;
}

void sampler_set_losses(Sampler *s, uint64_t n_missed, uint64_t n_dropped) {
        s->n_missed = n_missed;
        s->n_dropped = n_dropped;
}

static void sources_read(Sampler *s, SourceTurn *turn, bool passive) {
        for (size_t i = 0; i < source_table_n; i++) {
                int r;

                if (s->sources[i] && !passive && source_table[i]->read_remote)
                        source_table[i]->read_remote(s->sources[i], turn);
                if (!s->sources[i] || source_table[i]->passive != passive)
                        continue;
                r = source_table[i]->read(s->sources[i], turn, &s->status.sources[i]);
                if (r == 1)
                        s->reprobe = true;
        }
}

/* All clocks of the moment halfway between start_ns and now. */
static void header_stamp(Sampler *s, uint64_t start_ns) {
        TickHeader *h = &s->tick->h;
        uint64_t mono = clock_ns(CLOCK_MONOTONIC), boot = clock_ns(CLOCK_BOOTTIME),
                 real = clock_ns(CLOCK_REALTIME);
        uint64_t tsc = cpuid_live_tsc(), back = (mono - start_ns) / 2;

        h->mono_ns = mono - back;
        h->boot_ns = boot - back;
        h->real_us = (real - back) / NSEC_PER_USEC;
        h->tsc = tsc == 0 ? 0
                          : tsc - (uint64_t) ((unsigned __int128) back * s->machine->tsc_hz / NSEC_PER_SEC);
}

static void suspend_check(Sampler *s) {
        uint64_t suspended = clock_suspended_ns();

        if (suspended > s->suspended_ns + SUSPEND_MIN_NS)
                sampler_event_add(s, "suspend", -1, "slept %llu ms",
                        (unsigned long long) ((suspended - s->suspended_ns) / 1000000));
        s->suspended_ns = suspended;
}

static void rss_read(Sampler *s, uint64_t now_ns) {
        char buf[128];
        const char *p = buf;
        uint64_t size, pages;
        ssize_t n;

        if (s->statm_fd < 0 || (s->rss_ns > 0 && now_ns < s->rss_ns + RSS_NS))
                return;
        s->rss_ns = now_ns;
        n = pread(s->statm_fd, buf, sizeof(buf), 0);
        if (n <= 0 || !num_scan_u64(&p, buf + n, &size) || p++ == buf + n ||
                !num_scan_u64(&p, buf + n, &pages))
                return;
        s->rss_bytes = pages * (uint64_t) sysconf(_SC_PAGESIZE);
}

static void header_finish(Sampler *s, const SourceTurn *turn) {
        TickHeader *h = &s->tick->h;

        s->n_reads += turn->n_remote_reads;
        s->n_wakeups += turn->n_wakeups;
        h->self_reads = s->n_reads;
        h->self_wakeups = s->n_wakeups;
        h->self_missed = s->n_missed;
        h->self_dropped = s->n_dropped;
        rss_read(s, turn->now_ns);
        h->rss_bytes = s->rss_bytes;
        h->self_cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        h->sample_ns = clock_ns(CLOCK_MONOTONIC) - turn->now_ns;
}

int sampler_turn(Sampler *s, const Tick **ret) {
        SourceTurn turn;
        int r = 0;

        suspend_check(s);
        if (s->seq > 0 && must_rebuild(s, clock_ns(CLOCK_MONOTONIC))) {
                topology_watch_deinit(&s->watch);
                topology_watch_init(&s->watch, s->sysfs);
                r = sampler_machine_rebuild(s);
                if (r == -ENOMEM)
                        return r;
                if (r < 0) { /* sysfs is in the middle of a change: the old machine serves until the next
                                turn */
                        s->reprobe = true;
                        r = 0;
                }
        }
        s->tick->h = (TickHeader){
                .seq = ++s->seq,
                .generation = s->machine->generation,
                .interval_ns = s->config.interval_usec * NSEC_PER_USEC,
        };
        for (uint32_t i = 0; i < s->machine->n_cpus; i++)
                s->activity[i] = (CpuActivity){ .asked = s->activity[i].asking };
        turn = (SourceTurn){
                .machine = s->machine,
                .tick = s->tick,
                .activity = s->activity,
                .wake_policy = s->wake_policy,
                .now_ns = clock_ns(CLOCK_MONOTONIC),
                .prev_ns = s->prev_ns,
        };
        sources_read(s, &turn, true);
        header_stamp(s, turn.now_ns);
        for (uint32_t i = 0; i < s->machine->n_cpus; i++)
                s->activity[i].slept = activity_slept(s->activity[i].evidence);
        sources_read(s, &turn, false);
        header_finish(s, &turn);
        states_tell(s, turn.now_ns, false);
        s->prev_ns = turn.now_ns;
        *ret = s->tick;
        return r;
}
