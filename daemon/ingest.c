/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One turn of the server: machine, status, event and tick frames, each a few lines. A new machine is told to
 * the store with the first tick under it, since only ticks carry a time, and a replayed file's time is not
 * ours.
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cstated/api.h"
#include "cstated/log.h"
#include "cstated/timespan.h"
#include "ingest.h"
#include "model/alarms.h"
#include "model/errata.h"

#define KINDS_MAX   16
#define REPEAT_USEC (60 * USEC_PER_SEC)

struct Ingest {
        Store *store;
        Service *service;
        const Config *config;
        Alarms *alarms;
        FrameReader *reader;
        SampleDelta *delta;
        Totals *totals;
        TickHeader tick;
        SamplerStatus status;
        bool has_status;
        bool machine_pending; /* the store does not know it yet */
        uint64_t n_ticks;
        uint32_t errata_logged, errata_stored; /* masks of the unmitigated ones that have been told */
        bool store_degraded;
        struct {
                char kind[32];
                uint64_t logged_us;
                unsigned n_silent;
        } kinds[KINDS_MAX];
};

int ingest_new(Store *store, Service *service, const Config *config, Ingest **ret) {
        _cleanup_(ingest_freep) Ingest *i = calloc(1, sizeof(*i));

        if (!i)
                return -ENOMEM;
        i->store = store;
        i->service = service;
        i->config = config;
        i->reader = frame_reader_new();
        i->delta = sample_delta_new();
        i->totals = totals_new();
        i->alarms = alarms_new();
        if (!i->reader || !i->delta || !i->totals || !i->alarms)
                return -ENOMEM;
        *ret = TAKE_PTR(i);
        return 0;
}

Ingest *ingest_free(Ingest *i) {
        if (!i)
                return NULL;
        frame_reader_free(i->reader);
        sample_delta_free(i->delta);
        totals_free(i->totals);
        alarms_free(i->alarms);
        free(i);
        return NULL;
}

uint64_t ingest_n_ticks(const Ingest *i) {
        return i->n_ticks;
}

/* ---- conditions ---- */

static void log_erratum(const ErratumProblem *p) {
        char erratum[64], model[64];
        const char *fields[] = { erratum, model, NULL };

        (void) snprintf(erratum, sizeof(erratum), "CSTATED_ERRATUM=%s", erratum_name(p->id));
        (void) snprintf(model, sizeof(model), "CSTATED_CPU_MODEL=%02X_%02X", p->cpu->family, p->cpu->model);
        log_event(LOG_LEVEL_WARNING, CSTATED_MESSAGE_ERRATUM, fields, "%s", p->text);
}

/* Once as long as it lasts, whatever else changes in the machine. */
static void check_errata(Ingest *i, const Machine *m) {
        ErratumProblem problems[ERRATUM_N];
        size_t n = errata_summary(m, problems);
        uint32_t mask = 0;

        for (size_t k = 0; k < n; k++) {
                mask |= 1u << problems[k].id;
                if (!(i->errata_logged & 1u << problems[k].id))
                        log_erratum(&problems[k]);
        }
        i->errata_logged = mask;
}

static void store_errata(Ingest *i, const Machine *m, uint64_t time_us) {
        ErratumProblem problems[ERRATUM_N];
        size_t n = errata_summary(m, problems);
        uint32_t mask = 0;

        for (size_t k = 0; k < n; k++) {
                mask |= 1u << problems[k].id;
                if (!(i->errata_stored & 1u << problems[k].id))
                        (void) store_event(i->store, time_us, "erratum", -1, problems[k].text);
        }
        i->errata_stored = mask;
}

static void log_source(const SourceStatus *s) {
        bool trouble = s->state == SOURCE_DENIED || s->state == SOURCE_ERROR;
        char source[64], state[64];
        const char *fields[] = { source, state, NULL };

        (void) snprintf(source, sizeof(source), "CSTATED_SOURCE=%s", s->name);
        (void) snprintf(state, sizeof(state), "CSTATED_SOURCE_STATE=%s", source_state_name(s->state));
        log_event(trouble ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, CSTATED_MESSAGE_SOURCE, fields,
                "source %s: %s%s%s%s%s", s->name, source_state_name(s->state), s->error ? ", " : "",
                s->error ? strerror(s->error) : "", s->hint[0] ? ": " : "", s->hint);
}

/* What is fine from the start, and whole, is not worth a line. */
static bool source_is_news(const Ingest *i, const SourceStatus *s) {
        for (uint32_t k = 0; i->has_status && k < i->status.n_sources; k++)
                if (strcmp(i->status.sources[k].name, s->name) == 0)
                        return i->status.sources[k].state != s->state ||
                               i->status.sources[k].error != s->error;
        return s->state == SOURCE_OK ? s->error != 0 : s->state != SOURCE_DISABLED;
}

void ingest_check_store(Ingest *i) {
        const char *problem;
        bool degraded;

        if (!i->store)
                return;
        degraded = store_is_degraded(i->store, &problem);
        if (degraded == i->store_degraded)
                return;
        i->store_degraded = degraded;
        if (degraded)
                log_event(LOG_LEVEL_WARNING, CSTATED_MESSAGE_STORE, NULL,
                        "store degraded, samples are kept in memory: %s", problem);
        else
                log_event(LOG_LEVEL_NOTICE, CSTATED_MESSAGE_STORE, NULL, "store well again");
}

/* ---- frames ---- */

static int take_machine(Ingest *i, const uint8_t *payload, size_t n) {
        Machine *m = NULL;
        int r;

        r = frame_decode_machine(payload, n, &m);
        if (r < 0)
                return r;
        i->service->sample = NULL;
        i->service->machine = NULL;
        r = sample_delta_set_machine(i->delta, m);
        if (r < 0)
                return r;
        i->service->machine = sample_delta_machine(i->delta);
        i->machine_pending = true;
        check_errata(i, i->service->machine);
        return 0;
}

static int take_status(Ingest *i, const uint8_t *payload, size_t n) {
        SamplerStatus s;
        int r;

        r = frame_decode_status(payload, n, &s);
        if (r < 0)
                return r;
        for (uint32_t k = 0; k < s.n_sources; k++)
                if (source_is_news(i, &s.sources[k]))
                        log_source(&s.sources[k]);
        i->status = s;
        i->has_status = true;
        i->service->sampler = &i->status;
        return 0;
}

static const char *message_id_of(const char *kind) {
        return strcmp(kind, "gap") == 0 || strcmp(kind, "missed") == 0 ? CSTATED_MESSAGE_GAP : NULL;
}

/* At most one line a minute and kind. */
static void log_frame_event(Ingest *i, const FrameEvent *e) {
        size_t k = 0;

        while (k < KINDS_MAX - 1 && i->kinds[k].kind[0] && strcmp(i->kinds[k].kind, e->kind) != 0)
                k++;
        if (i->kinds[k].logged_us && e->time_us - i->kinds[k].logged_us < REPEAT_USEC) {
                i->kinds[k].n_silent++;
                return;
        }
        if (i->kinds[k].n_silent)
                log_event(LOG_LEVEL_NOTICE, message_id_of(e->kind), NULL,
                        "%s: %s (and %u more since the last such message)", e->kind, e->text,
                        i->kinds[k].n_silent);
        else
                log_event(LOG_LEVEL_NOTICE, message_id_of(e->kind), NULL, "%s: %s", e->kind, e->text);
        (void) snprintf(i->kinds[k].kind, sizeof(i->kinds[k].kind), "%s", e->kind);
        i->kinds[k].logged_us = e->time_us;
        i->kinds[k].n_silent = 0;
}

static int take_event(Ingest *i, const uint8_t *payload, size_t n) {
        FrameEvent e;
        int r;

        r = frame_decode_event(payload, n, &e);
        if (r < 0)
                return r;
        /* A source's state is said by its status; here it is history only. */
        if (strcmp(e.kind, "source") != 0)
                log_frame_event(i, &e);
        if (i->store)
                (void) store_event(i->store, e.time_us, e.kind, e.cpu, e.text);
        return 0;
}

static void tell_alarm(Ingest *i, const AlarmEvent *e, uint64_t time_us) {
        const char *kind = alarm_kind_name(e->kind);
        char cpu[32];
        const char *fields[] = { cpu, NULL };

        (void) snprintf(cpu, sizeof(cpu), "CSTATED_CPU=%" PRId64, e->cpu);
        if (e->begins)
                log_event(LOG_LEVEL_WARNING,
                        e->kind == ALARM_BREAK_STORM ? CSTATED_MESSAGE_BREAK_STORM
                                                     : CSTATED_MESSAGE_DEEP_IDLE_LOST,
                        fields, "%s: %s", kind, e->text);
        else
                log_notice("%s: %s", kind, e->text);
        if (i->store)
                (void) store_event(i->store, time_us, kind, e->cpu, e->text);
}

static int check_alarms(Ingest *i, const Sample *s) {
        AlarmEvent events[ALARM_N];
        AlarmRules rules = {
                .break_share_permyriad = i->config->break_share_permyriad,
                .break_rate = i->config->break_rate,
                .deep_idle_share_permyriad = i->config->deep_idle_share_permyriad,
                .intervals = i->config->intervals,
                .unmitigated = i->errata_logged != 0,
        };
        size_t n;
        int r;

        r = alarms_push(i->alarms, &rules, s, events, &n);
        for (size_t k = 0; r >= 0 && k < n; k++)
                tell_alarm(i, &events[k], s->h.end_us);
        return r;
}

/* With a baseline already: a predecessor's open minute can then be asked for. */
static int tell_machine(Ingest *i, const Sample *s) {
        int r;

        if (!i->store || !i->machine_pending)
                return 0;
        r = store_set_machine(i->store, s->machine, s->h.start_us);
        if (r < 0)
                return r;
        i->machine_pending = false;
        store_errata(i, s->machine, s->h.start_us);
        return 0;
}

static int keep(Ingest *i, const Sample *s) {
        int r;

        r = totals_add(i->totals, s);
        if (r < 0)
                return r;
        i->service->totals = i->totals;
        r = check_alarms(i, s);
        if (r < 0)
                return r;
        return i->store ? store_append(i->store, s) : 0;
}

static int take_tick(Ingest *i, const uint8_t *payload, size_t n) {
        _cleanup_(tick_freep) Tick *t = NULL;
        const Sample *s = NULL;
        int r;

        r = frame_decode_tick(payload, n, &t);
        if (r < 0)
                return r;
        r = sample_delta_push(i->delta, t, &s);
        if (r < 0)
                return r;
        i->tick = t->h;
        i->service->tick = &i->tick;
        i->n_ticks++;
        if (!s)
                return 0; /* too early, or of another machine: the sample before stands */
        i->service->sample = s->h.is_first ? NULL : s;
        r = tell_machine(i, s);
        if (r < 0)
                return r;
        /* A baseline has no interval yet, and nothing to be kept. */
        return s->h.is_first ? 0 : keep(i, s);
}

static int take_frame(Ingest *i, FrameType type, const uint8_t *payload, size_t n) {
        switch (type) {
        case FRAME_MACHINE:
                return take_machine(i, payload, n);
        case FRAME_TICK:
                return take_tick(i, payload, n);
        case FRAME_STATUS:
                return take_status(i, payload, n);
        case FRAME_EVENT:
                return take_event(i, payload, n);
        }
        return -EBADMSG;
}

int ingest_feed(Ingest *i, const void *data, size_t n, unsigned *ret_ticks) {
        uint64_t before = i->n_ticks;
        const uint8_t *payload;
        size_t n_payload;
        FrameType type;
        int r;

        r = frame_reader_feed(i->reader, data, n);
        if (r < 0)
                return r;
        while ((r = frame_reader_next(i->reader, &type, &payload, &n_payload)) > 0) {
                r = take_frame(i, type, payload, n_payload);
                if (r < 0)
                        return r;
        }
        *ret_ticks = (unsigned) (i->n_ticks - before);
        return r;
}
