/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * /api/v1/status: is it well. What a machine does not have is no fault (a note); what is there and may not
 * be read, what fails, a store that cannot be written, samples that stay away are (degraded, with a problem
 * a person can act on). An erratum that this kernel does not work around is a problem of the machine and
 * leaves our health alone.
 */

#include <errno.h>
#include <stdarg.h>

#include "cstated/timespan.h"
#include "model/errata.h"

#include "api/route-private.h"

#define PROBLEMS_MAX 32
#define PROBLEM_SIZE 420

typedef struct Lines {
        char text[PROBLEMS_MAX][PROBLEM_SIZE];
        size_t n;
} Lines;

typedef struct Health {
        Lines problems, notes;
        bool degraded;
} Health;

static void add_line(Lines *l, const char *format, ...) _printf_(2, 3);

static void add_line(Lines *l, const char *format, ...) {
        va_list ap;

        if (l->n == PROBLEMS_MAX)
                return;
        va_start(ap, format);
        (void) vsnprintf(l->text[l->n++], PROBLEM_SIZE, format, ap);
        va_end(ap);
}

static void judge_source(Health *h, const SourceStatus *source) {
        const char *hint = source->hint[0] ? source->hint : source->detail;

        switch (source->state) {
        case SOURCE_ABSENT:
                add_line(&h->notes, "source %s is absent: %s", source->name, hint);
                break;
        case SOURCE_DISABLED:
                add_line(&h->notes, "source %s is disabled: %s", source->name, hint);
                break;
        case SOURCE_DENIED:
                h->degraded = true;
                add_line(&h->problems, "source %s is denied: %s", source->name, hint);
                break;
        case SOURCE_ERROR:
                h->degraded = true;
                add_line(&h->problems, "source %s fails: %s", source->name, hint);
                break;
        case SOURCE_OK:
                if (source->error != 0)
                        add_line(&h->notes, "source %s: %s", source->name, hint);
                break;
        default:
                break;
        }
}

static void judge_errata(Health *h, const Machine *m) {
        ErratumProblem problems[ERRATUM_N];
        size_t n = errata_summary(m, problems);

        for (size_t i = 0; i < n; i++)
                add_line(&h->problems, "%s", problems[i].text);
}

static void judge_sampling(Health *h, const Service *s) {
        uint64_t now = s->now_us(), patience = MAX(3 * s->interval_usec, 5 * USEC_PER_SEC), last;

        if (!s->sampler)
                return;
        last = s->sample ? s->sample->h.end_us : s->start_us;
        if (now > last && now - last > patience) {
                h->degraded = true;
                add_line(&h->problems, "no sample for %llu s",
                        (unsigned long long) ((now - last) / USEC_PER_SEC));
        }
}

static void judge(Health *h, Service *s, const StoreFigures *store) {
        const Machine *m = service_machine(s);

        for (uint32_t i = 0; s->sampler && i < s->sampler->n_sources; i++)
                judge_source(h, &s->sampler->sources[i]);
        if (s->sampler && s->sampler->wake_policy_hint[0])
                add_line(&h->notes, "wake policy %s: %s", s->sampler->wake_policy, s->sampler->wake_policy_hint);
        if (m)
                judge_errata(h, m);
        judge_sampling(h, s);
        if (store && (store->degraded || store->problem[0])) {
                h->degraded = true;
                add_line(&h->problems, "store: %s", store->problem[0] ? store->problem : "degraded");
        }
        if (store && store->moved_aside[0])
                add_line(&h->notes, "a damaged database was moved aside to %s", store->moved_aside);
        if (store && store->events_dropped > 0)
                add_line(&h->notes, "%llu events were not kept: too many of a kind in a minute",
                        (unsigned long long) store->events_dropped);
        if (store && store->metrics_left_out > 0)
                add_line(&h->notes, "%u columns are kept as samples only: the tables of minutes and hours are full",
                        store->metrics_left_out);
        if (store && store->clock_ahead_us > 0)
                add_line(&h->notes,
                        "the clock went forward by %llu h: nothing expires by age before it has kept to that for a day",
                        (unsigned long long) (store->clock_ahead_us / USEC_PER_SEC / 3600));
        if (store && store->head_problem[0])
                add_line(&h->notes, "the open minute is kept in memory only: %s", store->head_problem);
        for (size_t i = 0; i < s->n_notes && i < ARRAY_SIZE(s->notes); i++)
                add_line(&h->notes, "%s", s->notes[i]);
}

static void write_lines(JsonWriter *j, const char *key, const Lines *l) {
        jw_key(j, key);
        jw_begin_array(j);
        for (size_t i = 0; i < l->n; i++)
                jw_string(j, l->text[i]);
        jw_end_array(j);
}

static void write_sources(JsonWriter *j, const SamplerStatus *status) {
        jw_key(j, "sources");
        jw_begin_array(j);
        for (uint32_t i = 0; status && i < status->n_sources; i++) {
                const SourceStatus *source = &status->sources[i];

                jw_begin_object(j);
                jw_key_string(j, "name", source->name);
                jw_key_string(j, "state", source_state_name(source->state));
                jw_key(j, "errno");
                if (source->error != 0)
                        jw_i64(j, source->error);
                else
                        jw_null(j);
                jw_key_string(j, "hint", source->hint[0] ? source->hint : NULL);
                jw_key_string(j, "detail", source->detail[0] ? source->detail : NULL);
                jw_key_u64(j, "counters", source->n_counters);
                jw_end_object(j);
        }
        jw_end_array(j);
}

static void write_time_or_null(JsonWriter *j, const char *key, uint64_t time_us) {
        jw_key(j, key);
        if (time_us > 0)
                jw_u64(j, time_us / USEC_PER_MSEC);
        else
                jw_null(j);
}

static void write_tiers(JsonWriter *j, const StoreFigures *f) {
        jw_key(j, "tiers");
        jw_begin_object(j);
        for (unsigned t = TIER_RAW; t <= TIER_1H; t++) {
                jw_key(j, store_tier_name((StoreTier) t));
                jw_begin_object(j);
                jw_key_u64(j, "rows", f->tier[t].rows);
                write_time_or_null(j, "oldest", f->tier[t].oldest_us);
                write_time_or_null(j, "newest", f->tier[t].newest_us);
                jw_end_object(j);
        }
        jw_end_object(j);
}

static void write_store(JsonWriter *j, const StoreFigures *f) {
        jw_key(j, "store");
        if (!f) {
                jw_null(j);
                return;
        }
        jw_begin_object(j);
        jw_key_string(j, "path", f->path);
        jw_key_bool(j, "degraded", f->degraded);
        jw_key_string(j, "problem", f->problem[0] ? f->problem : NULL);
        jw_key_u64(j, "bytes", f->bytes);
        jw_key_u64(j, "wal_bytes", f->wal_bytes);
        write_time_or_null(j, "last_commit", f->last_commit_us);
        jw_key_u64(j, "commits", f->commits);
        jw_key_u64(j, "ticks", f->ticks);
        jw_key_u64(j, "ticks_lost", f->ticks_lost);
        jw_key_u64(j, "ring_ticks", f->ring_ticks);
        jw_key_u64(j, "events_dropped", f->events_dropped);
        jw_key_u64(j, "head_ticks", f->head_ticks);
        jw_key_u64(j, "adopted_ticks", f->adopted_ticks);
        jw_key_string(j, "head_problem", f->head_problem[0] ? f->head_problem : NULL);
        jw_key_u64(j, "bytes_written", f->bytes_written);
        jw_key_string(j, "moved_aside", f->moved_aside[0] ? f->moved_aside : NULL);
        write_tiers(j, f);
        jw_end_object(j);
}

static void write_self(JsonWriter *j, const Service *s) {
        const TickHeader none = {}, *t = s->tick ? s->tick : &none;

        jw_key(j, "self");
        jw_begin_object(j);
        jw_key_double(j, "cpu_seconds", (double) (t->self_cpu_ns + s->server_cpu_ns) * 1e-9, 9);
        jw_key_double(j, "sampler_cpu_seconds", (double) t->self_cpu_ns * 1e-9, 9);
        jw_key_double(j, "server_cpu_seconds", (double) s->server_cpu_ns * 1e-9, 9);
        jw_key_u64(j, "rss_bytes", t->rss_bytes + s->server_rss_bytes);
        jw_key_u64(j, "remote_reads", t->self_reads);
        jw_key_u64(j, "wakeups_caused", t->self_wakeups);
        jw_key_u64(j, "missed_ticks", t->self_missed);
        jw_key_u64(j, "dropped_frames", t->self_dropped);
        jw_key_u64(j, "sample_us", t->sample_ns / NSEC_PER_USEC);
        jw_end_object(j);
}

static void write_status(JsonWriter *j, Service *s, const StoreFigures *store, const Health *h) {
        const Machine *m = service_machine(s);
        uint64_t now = s->now_us();

        jw_begin_object(j);
        jw_key_string(j, "version", CSTATED_VERSION);
        jw_key_string(j, "host", m ? m->host : NULL);
        jw_key_string(j, "boot_id", m ? m->boot_id : NULL);
        jw_key_double(j, "uptime_s", now > s->start_us ? (double) (now - s->start_us) / USEC_PER_SEC : 0, 9);
        jw_key_u64(j, "interval_ms", s->interval_usec / USEC_PER_MSEC);
        jw_key_string(
                j, "wake_policy", s->sampler && s->sampler->wake_policy[0] ? s->sampler->wake_policy : NULL);
        jw_key_string(j, "health", h->degraded ? "degraded" : "ok");
        write_lines(j, "problems", &h->problems);
        write_lines(j, "notes", &h->notes);
        write_time_or_null(j, "last_sample", s->sample ? s->sample->h.end_us : 0);
        jw_key_u64(j, "cpus", m ? m->n_cpus : 0);
        jw_key_string(j, "sampler_capabilities", s->sampler ? s->sampler->capabilities : NULL);
        write_sources(j, s->sampler);
        write_store(j, store);
        write_self(j, s);
        jw_end_object(j);
}

int route_status(Service *s, const Request *q, Reply *ret) {
        _cleanup_free_ Health *h = NULL;
        JsonWriter j = JSON_WRITER_INIT;
        StoreFigures figures;
        int r = request_only(q, (const char *const[]){ NULL }, ret);

        if (r != 0)
                return r < 0 ? r : 0;
        h = calloc(1, sizeof(*h));
        if (!h)
                return -ENOMEM;
        if (s->store)
                store_figures(s->store, &figures);
        judge(h, s, s->store ? &figures : NULL);
        write_status(&j, s, s->store ? &figures : NULL, h);
        return reply_json(ret, 200, &j);
}
