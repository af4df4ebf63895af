/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One turn: is the machine still the same, then every source in its order, passive ones first, so that the ones that
 * would wake a CPU know which sleep. All sources write into one tick that is allocated with the machine; a turn
 * allocates nothing.
 *
 * The machine is read anew when the online list or the idle driver changes, when a source says that its columns have
 * changed, and when one that was absent or denied would now work (looked at every 50 s). Only what really differs
 * begins a new generation.
 */

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "cstated/num.h"
#include "cstated/timespan.h"

#include "sampler/cpuid-live.h"
#include "sampler/sampler.h"
#include "sampler/topology.h"

#define RETRY_NS (50 * NSEC_PER_SEC)
#define RSS_NS (10 * NSEC_PER_SEC)
#define EVENT_HOLD_NS (60 * NSEC_PER_SEC) /* a source that flaps is told of once a minute */
#define SUSPEND_MIN_NS (100 * 1000000ULL)
#define EVENTS_MAX 32

struct Sampler {
        SamplerConfig config;
        Sysfs *sysfs;
        Machine *machine;
        Source *sources[SOURCES_MAX];
        SamplerStatus status;
        SourceState told[SOURCES_MAX];     /* state the last event was about */
        uint64_t told_ns[SOURCES_MAX];
        Tick *tick;
        CpuActivity *activity;
        TopologyWatch watch;
        uint64_t fingerprint;
        WakePolicy wake_policy;
        bool reprobe;
        uint64_t seq, prev_ns, next_retry_ns, suspended_ns;
        uint64_t n_reads, n_wakeups, n_missed, n_dropped, rss_bytes, rss_ns;
        int statm_fd;
        FrameEvent events[EVENTS_MAX];
        size_t n_events;
};

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

static _printf_(4, 5) void event_add(Sampler *s, const char *kind, int64_t cpu, const char *format, ...) {
        FrameEvent *e;
        va_list ap;

        if (s->n_events == EVENTS_MAX) {
                memmove(&s->events[0], &s->events[1], (EVENTS_MAX - 1) * sizeof(s->events[0]));
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
        } caps[] = { { 2, "dac_read_search" }, { 17, "sys_rawio" }, { 21, "sys_admin" }, { 38, "perfmon" }, { 39, "bpf" } };
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
                        at += (size_t) snprintf(buf + at, size - at, "%s%s", at > 0 ? " " : "", caps[i].name);
}

static bool is_disabled(const Sampler *s, size_t i) {
        return s->config.disabled_sources >> i & 1;
}

/* Probes one source against m; *ret stays NULL where it gives nothing. An instance that is there is probed again. */
static int source_probe(Sampler *s, size_t i, Machine *m, Source **ret, SourceStatus *status) {
        int r;

        *status = (SourceStatus){ .state = SOURCE_OK };
        (void) snprintf(status->name, sizeof(status->name), "%s", source_table[i]->name);
        if (is_disabled(s, i)) {
                status->state = SOURCE_DISABLED;
                (void) snprintf(status->hint, sizeof(status->hint), "switched off by Sources=");
                return 0;
        }
        r = *ret ? source_table[i]->reprobe(*ret, m, status) :
                   source_table[i]->probe(s->sysfs, m, (uint8_t) i, ret, status);
        if (r < 0)
                return r;
        if (!*ret && status->state == SOURCE_OK)
                status->state = SOURCE_ABSENT;
        if (!*ret)
                status->n_counters = 0;
        return 0;
}

/* keep: those that can live on do. */
static void sources_close(Sampler *s, bool keep) {
        for (size_t i = 0; i < source_table_n; i++)
                if (s->sources[i] && !(keep && source_table[i]->reprobe))
                        s->sources[i] = source_table[i]->close(s->sources[i]);
}

/* All values of a source's columns are null for one reason. */
static void columns_void(const Machine *m, Tick *t, size_t source, Reason reason) {
        for (size_t i = 0; i < m->layout.n_columns; i++) {
                const LayoutColumn *c = &m->layout.columns[i];

                if (c->source == source)
                        memset(t->reasons + c->offset, (int) reason, m->layout.n_entities[field_spec(c->field)->scope]);
        }
}

static int sources_open(Sampler *s, Machine *m, Tick *t) {
        for (size_t i = 0; i < source_table_n; i++) {
                int r;

                if (!s->sources[i])
                        continue;
                r = source_table[i]->open(s->sources[i], m);
                if (r == -ENOMEM)
                        return r;
                if (r < 0) {
                        source_status_set_error(&s->status.sources[i], r, source_table[i]->name);
                        columns_void(m, t, i, source_reason(-r));
                        s->sources[i] = source_table[i]->close(s->sources[i]);
                }
        }
        return 0;
}

/* Columns of a new machine, from whatever the sources can give now. */
static int sources_probe(Sampler *s, Machine *m) {
        sources_close(s, true);
        s->status.n_sources = (uint32_t) source_table_n;
        for (size_t i = 0; i < source_table_n; i++) {
                int r = source_probe(s, i, m, &s->sources[i], &s->status.sources[i]);

                if (r < 0)
                        return r;
        }
        layout_finish(&m->layout);
        return 0;
}

static bool same_machine(const Machine *a, const Machine *b) {
        _cleanup_free_ char *x = machine_to_json(a), *y = machine_to_json(b);

        return x && y && strcmp(x, y) == 0;
}

/* Ids of a that are no CPU of b, as a list; NULL where there is none. */
static char *cpus_missing(const Machine *a, const Machine *b, int64_t *ret_only) {
        _cleanup_free_ uint32_t *ids = calloc(a->n_cpus, sizeof(*ids));
        size_t n = 0;

        for (uint32_t i = 0; ids && i < a->n_cpus; i++)
                if (machine_cpu_index(b, a->cpus[i].id) == UINT32_MAX)
                        ids[n++] = a->cpus[i].id;
        *ret_only = n == 1 ? (int64_t) ids[0] : -1;
        return n > 0 ? num_format_cpulist(ids, n) : NULL;
}

static void events_of_change(Sampler *s, const Machine *old, const Machine *new) {
        _cleanup_free_ char *gone = NULL, *come = NULL;
        int64_t gone_cpu, come_cpu;

        gone = cpus_missing(old, new, &gone_cpu);
        come = cpus_missing(new, old, &come_cpu);
        if (gone)
                event_add(s, "hotplug", gone_cpu, "offline: %.140s", gone);
        if (come)
                event_add(s, "hotplug", come_cpu, "online: %.140s", come);
        if (strcmp(old->idle_driver, new->idle_driver) != 0)
                event_add(s, "source", -1, "idle driver: %s -> %s", old->idle_driver[0] ? old->idle_driver : "none",
                        new->idle_driver[0] ? new->idle_driver : "none");
}

/* Reads the machine and its sources anew; 1 where it differs from the one before. */
static int machine_rebuild(Sampler *s) {
        _cleanup_(machine_freep) Machine *m = NULL;
        _cleanup_(tick_freep) Tick *t = NULL;
        _cleanup_free_ CpuActivity *activity = NULL;
        int r;

        r = topology_read(s->sysfs, s->machine, &m);
        if (r < 0)
                return r;
        r = sources_probe(s, m);
        if (r < 0)
                return r;
        t = tick_new(m->layout.n_values);
        activity = calloc(m->n_cpus, sizeof(*activity));
        if (!t || !activity)
                return -ENOMEM;
        memset(t->reasons, REASON_ABSENT, t->n_values);
        r = sources_open(s, m, t);
        if (r < 0)
                return r;
        m->generation = s->machine ? s->machine->generation : 1;
        r = !s->machine || !same_machine(s->machine, m);
        if (r > 0 && s->machine) {
                m->generation++;
                events_of_change(s, s->machine, m);
        }
        (void) machine_free(s->machine);
        (void) tick_free(s->tick);
        free(s->activity);
        s->machine = TAKE_PTR(m);
        s->tick = TAKE_PTR(t);
        s->activity = TAKE_PTR(activity);
        s->reprobe = false;
        return r;
}

/* True where a source that gave nothing until now would give something. */
static bool source_would_work(Sampler *s, size_t i) {
        _cleanup_(machine_freep) Machine *scratch = NULL;
        SourceStatus status;
        Source *source = NULL;
        bool works;

        if (s->sources[i] || is_disabled(s, i))
                return false;
        scratch = machine_copy(s->machine);
        if (!scratch)
                return false;
        scratch->layout.n_columns = 0;
        if (source_probe(s, i, scratch, &source, &status) < 0)
                return false;
        works = source != NULL && status.state == SOURCE_OK;
        if (source)
                (void) source_table[i]->close(source);
        if (!works && status.state != s->status.sources[i].state)
                s->status.sources[i] = status; /* the same nothing for another reason */
        return works;
}

static bool must_rebuild(Sampler *s, uint64_t now_ns) {
        uint64_t fingerprint = topology_watch_read(&s->watch);
        bool changed = fingerprint != s->fingerprint;

        s->fingerprint = fingerprint;
        if (now_ns >= s->next_retry_ns) {
                s->next_retry_ns = now_ns + RETRY_NS;
                for (size_t i = 0; i < source_table_n && !changed && !s->reprobe; i++)
                        changed = source_would_work(s, i);
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
                        event_add(s, "source", -1, "%s: %s -> %s%s%s", st->name, source_state_name(s->told[i]),
                                source_state_name(st->state), st->hint[0] ? ": " : "", st->hint);
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

static void wake_policy_choose(Sampler *s) {
        /* local needs reads on the CPU itself at idle entry, which no source offers here yet */
        s->wake_policy = s->config.wake_policy_set && s->config.wake_policy == WAKE_ALWAYS ? WAKE_ALWAYS : WAKE_LAZY;
        (void) snprintf(s->status.wake_policy, sizeof(s->status.wake_policy), "%s", wake_policy_name(s->wake_policy));
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
        r = machine_rebuild(s);
        if (r < 0)
                return r;
        wake_policy_choose(s);
        states_tell(s, 0, true);
        *ret = TAKE_PTR(s);
        return 0;
}

Sampler *sampler_free(Sampler *s) {
        if (!s)
                return NULL;
        sources_close(s, false);
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
        uint64_t mono = clock_ns(CLOCK_MONOTONIC), boot = clock_ns(CLOCK_BOOTTIME), real = clock_ns(CLOCK_REALTIME);
        uint64_t tsc = cpuid_live_tsc(), back = (mono - start_ns) / 2;

        h->mono_ns = mono - back;
        h->boot_ns = boot - back;
        h->real_us = (real - back) / NSEC_PER_USEC;
        h->tsc = tsc == 0 ? 0 : tsc - (uint64_t) ((unsigned __int128) back * s->machine->tsc_hz / NSEC_PER_SEC);
}

static void suspend_check(Sampler *s) {
        uint64_t suspended = clock_suspended_ns();

        if (suspended > s->suspended_ns + SUSPEND_MIN_NS)
                event_add(s, "suspend", -1, "slept %llu ms", (unsigned long long) ((suspended - s->suspended_ns) / 1000000));
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
        if (n <= 0 || !num_scan_u64(&p, buf + n, &size) || p++ == buf + n || !num_scan_u64(&p, buf + n, &pages))
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
                r = machine_rebuild(s);
                if (r < 0)
                        return r;
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
