/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The writer's outside. Ticks go into the open minute (head.c) and from there, packed, into the file
 * (commit.c). Trouble with the disk is a state of the store (degraded), never an error of the caller:
 * sampling goes on.
 *
 * A tick's sequence number is the store's own and only ever grows; wall time orders nothing. A minute is the
 * wall minute that a tick's end lies in (an end at the full minute belongs to the minute that it ends).
 *
 * A minute is committed with its last tick, not with the next one's first: which tick is the last is foretold
 * from the interval. So less than 60 s of ticks are in no chunk at any moment, which is all that a power cut can
 * take. A tick that comes after all is a chunk of its own, and merged into its minute's rows.
 */

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "cstated/timespan.h"

#include "store/writer.h"

#define CLOCK_STEP_US USEC_PER_SEC
#define LATENESS_US   (100 * USEC_PER_MSEC) /* of a tick, at most: what foretelling the next one allows for */

const char *store_tier_name(StoreTier t) {
        static const char *const names[] = {"raw", "1m", "1h"};

        return names[t];
}

/* <runtime_dir>/<name>.head, or beside the database, so that two instances never share it. */
static int store_name_head(Store *s) {
        const char *name = strrchr(s->path, '/');
        int n;

        if (s->config.runtime_dir)
                n = asprintf(&s->head_path, "%s/%s.head", s->config.runtime_dir, name ? name + 1 : s->path);
        else
                n = asprintf(&s->head_path, "%s.head", s->path);
        if (n < 0) {
                s->head_path = NULL;
                return -ENOMEM;
        }
        return 0;
}

static int store_open_head(Store *s) {
        int r = head_new(s->head_path, &s->head);

        if (r == -EBUSY || r == -ENOMEM)
                return r;
        if (r < 0)
                (void) snprintf(s->figures.head_problem, sizeof(s->figures.head_problem), "%s: %s",
                        s->head_path, strerror(-r));
        return 0;
}

int store_open(const StoreConfig *c, uint64_t now_us, Store **ret) {
        _cleanup_(store_closep) Store *s = NULL;
        int r;

        s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        s->config = *c;
        s->config.path = s->config.runtime_dir = NULL;
        s->last = &s->first;
        event_queue_init(&s->events);
        s->next_seq = 1;
        s->path = strdup(c->path);
        if (!s->path)
                return -ENOMEM;
        s->config.runtime_dir = c->runtime_dir;
        r = store_name_head(s);
        s->config.runtime_dir = NULL;
        if (r < 0)
                return r;
        (void) snprintf(s->figures.path, sizeof(s->figures.path), "%s", c->path);
        r = store_open_head(s);
        if (r < 0)
                return r;
        r = store_attach(s, now_us);
        if (r > 0 || r == -ENOMEM)
                return r;
        *ret = TAKE_PTR(s);
        return r;
}

static void store_free_pending(Store *s) {
        while (s->first) {
                Pending *p = s->first;

                s->first = p->next;
                (void) store_machine_unref(p->machine);
                free(p->bytes);
                free(p);
        }
        event_queue_deinit(&s->events);
}

Store *store_close(Store *s) {
        if (!s)
                return NULL;
        (void) event_queue_settle(&s->events, s->last_end_us, true);
        (void) store_flush(s);
        store_detach(s);
        store_free_pending(s);
        (void) store_machine_unref(s->machine);
        (void) head_free(s->head);
        rollup_tables_deinit(&s->rollups);
        free(s->path);
        free(s->head_path);
        free(s);
        return NULL;
}

/* ---- machines ---- */

StoreMachine *store_machine_ref(StoreMachine *m) {
        m->refs++;
        return m;
}

StoreMachine *store_machine_unref(StoreMachine *m) {
        if (!m || --m->refs > 0)
                return NULL;
        free(m->json);
        (void) machine_free(m->machine);
        free(m);
        return NULL;
}

int store_machine_new(char *json, const Layout *layout, uint64_t since_us, StoreMachine **ret) {
        _cleanup_(store_machine_unrefp) StoreMachine *m = NULL;
        int r;

        m = calloc(1, sizeof(*m));
        if (!m)
                return -ENOMEM;
        m->refs = 1;
        m->since_us = since_us;
        r = machine_from_json(json, strlen(json), &m->machine);
        if (r < 0)
                return r;
        if (layout)
                m->layout = *layout;
        else
                sample_layout(m->machine, &m->layout);
        if (memcmp(m->layout.n_entities, m->machine->layout.n_entities, sizeof(m->layout.n_entities)) != 0)
                return -EBADMSG;
        m->json = json;
        *ret = TAKE_PTR(m);
        return 0;
}

int store_reopen_head(Store *s, const HeadOwner *owner) {
        _cleanup_(head_freep) Head *h = NULL;
        int r;

        /* The file was full: it is locked by us, so that opening it anew would find it taken. */
        if (head_has_fd(s->head)) {
                r = head_begin(s->head, owner, &s->machine->layout, s->machine->json);
                if (r == 0)
                        s->figures.head_problem[0] = '\0';
                return r;
        }
        r = head_new(s->head_path, &h);
        if (r == 0)
                r = head_begin(h, owner, &s->machine->layout, s->machine->json);
        if (r < 0)
                return r;
        (void) head_free(s->head);
        s->head = TAKE_PTR(h);
        s->figures.head_problem[0] = '\0';
        return 0;
}

static void store_fill_owner(const Store *s, HeadOwner *ret) {
        *ret = (HeadOwner){.seq = s->next_seq, .epoch = s->epoch, .epoch_us = s->epoch_us};
        (void) snprintf(ret->boot_id, sizeof(ret->boot_id), "%s", s->machine->machine->boot_id);
}

int store_set_machine(Store *s, const Machine *m, uint64_t now_us) {
        _cleanup_(store_machine_unrefp) StoreMachine *fresh = NULL;
        _cleanup_free_ char *json = machine_to_json(m);
        HeadOwner owner;
        int r;

        if (!json)
                return -ENOMEM;
        r = store_machine_new(json, NULL, now_us, &fresh);
        if (r < 0)
                return r;
        json = NULL;
        r = store_flush(s);
        if (r < 0)
                return r;
        r = store_adopt(s, m->boot_id, now_us);
        if (r < 0)
                return r;
        (void) store_machine_unref(s->machine);
        s->machine = TAKE_PTR(fresh);
        s->machine->serial = ++s->last_serial;
        store_fill_owner(s, &owner);
        r = head_begin(s->head, &owner, &s->machine->layout, s->machine->json);
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                (void) snprintf(s->figures.head_problem, sizeof(s->figures.head_problem), "%s: %s",
                        s->head_path, strerror(-r));
        return 0;
}

/* ---- ticks ---- */

static uint64_t minute_of(uint64_t end_us) {
        return end_us > 0 ? (end_us - 1) / ROLLUP_MINUTE_US : 0;
}

static uint64_t distance(uint64_t a, uint64_t b) {
        return a > b ? a - b : b - a;
}

/* Whether this tick belongs to another chunk than the open minute's. */
static bool store_ends_minute(const Store *s, const TickRows *rows, const SampleHeader *h) {
        const TickRecord *last;

        if (rows->n == 0)
                return false;
        if (!s->has_epoch || s->sample_epoch != h->epoch)
                return true;
        last = tick_rows_record(rows, rows->n - 1);
        if (minute_of(last->end_us) != minute_of(h->end_us) || h->end_us < last->end_us)
                return true;
        return distance(h->end_us - h->start_us, h->dt_ns / NSEC_PER_USEC) > CLOCK_STEP_US;
}

static void store_begin_epoch(Store *s, const SampleHeader *h) {
        if (s->has_epoch && s->sample_epoch == h->epoch)
                return;
        s->epoch++;
        s->epoch_us = h->end_us;
        s->sample_epoch = h->epoch;
        s->has_epoch = true;
}

static void store_begin_minute(Store *s, const SampleHeader *h) {
        HeadOwner owner;

        store_begin_epoch(s, h);
        s->first_head_us = h->end_us;
        s->head_ns = 0;
        store_fill_owner(s, &owner);
        head_restart(s->head, &owner);
}

/*
 * Whether the open minute has its last tick: the next will lie in another minute, or the ticks span a minute
 * already (a grid of ticks that meets the full minute may bring one more). Of the last two intervals the
 * shorter one counts, since a late tick is followed by an early one. Where the next tick is due only just
 * after the full minute nothing is foretold: to wait costs nothing, to be wrong a commit.
 */
static bool store_fills_minute(const Store *s) {
        TickRows rows = head_rows(s->head);
        const TickRecord *last;
        uint64_t dt_us;

        if (rows.n == 0)
                return false;
        if (s->head_ns >= ROLLUP_MINUTE_US * NSEC_PER_USEC)
                return true;
        last = tick_rows_record(&rows, rows.n - 1);
        dt_us = last->dt_ns;
        if (rows.n > 1)
                dt_us = MIN(dt_us, tick_rows_record(&rows, rows.n - 2)->dt_ns);
        dt_us /= NSEC_PER_USEC;
        return minute_of(last->end_us + dt_us - MIN(dt_us / 8, (uint64_t) LATENESS_US)) != minute_of(last->end_us);
}

static int store_append_tick(Store *s, const Sample *sample) {
        const SampleHeader *h = &sample->h;
        TickRecord record = {h->start_us, h->end_us, h->dt_ns};
        int r;

        if (head_rows(s->head).n == 0)
                store_begin_minute(s, h);
        r = head_append(s->head, &record, sample->values, sample->reasons);
        if (r == 0)
                s->head_ns += h->dt_ns;
        return r;
}

int store_append(Store *s, const Sample *sample) {
        const SampleHeader *h = &sample->h;
        TickRows rows = head_rows(s->head);
        int r = 0;

        if (!s->machine || sample->layout->n_values != s->machine->layout.n_values)
                return -EINVAL;
        r = event_queue_settle(&s->events, h->end_us, false);
        if (r == 0 && store_ends_minute(s, &rows, h))
                r = store_close_minute(s, h->end_us);
        if (r == 0)
                r = store_append_tick(s, sample);
        if (r == -ENOBUFS) {
                r = store_close_minute(s, h->end_us);
                if (r == 0)
                        r = store_append_tick(s, sample);
        }
        if (r < 0 && r != -ENOBUFS)
                return r;
        s->figures.ticks++;
        s->figures.ticks_lost += r == -ENOBUFS;
        s->last_end_us = h->end_us;
        if (store_fills_minute(s))
                return store_close_minute(s, h->end_us);
        if (s->config.durable_head_usec > 0 &&
                distance(h->end_us, s->last_durable_us) >= s->config.durable_head_usec)
                return store_write_head(s, h->end_us);
        return event_queue_is_due(&s->events, h->end_us) ? store_drain(s, h->end_us) : 0;
}

int store_flush(Store *s) {
        int r;

        s->retry_us = 0; /* it may be the last chance of what waits in memory */
        if (!s->machine) /* no tick yet, so that the newest time known is an event's */
                return s->events.first ? store_drain(s, s->figures.last_commit_us) : 0;
        r = store_close_minute(s, s->last_end_us);
        return r < 0 ? r : store_drain(s, s->last_end_us);
}

int store_maintain(Store *s, uint64_t now_us) {
        int r;

        (void) store_drain(s, now_us);
        if (!s->db)
                return 0;
        r = rollup_catch_up(s, now_us);
        if (r < 0)
                store_trouble(s, "rolling up", r);
        if (r == 0)
                r = retain_shrink(s, now_us);
        if (r < 0)
                store_trouble(s, "expiring", r);
        retain_checkpoint(s);
        return r > 0;
}

/* ---- events and labels ---- */

int store_event(Store *s, uint64_t time_us, const char *kind, int64_t cpu, const char *text) {
        int r = event_queue_add(&s->events, time_us, kind, cpu, text);

        if (r < 0)
                return r;
        return event_queue_is_due(&s->events, time_us) ? store_drain(s, time_us) : 0;
}

/* Runs one bound statement outside a transaction; the store is degraded where it fails. */
static int store_run(Store *s, int bound, sqlite3_stmt *q, const char *doing) {
        int r = bound < 0 ? bound : db_run(q);

        if (r < 0)
                store_trouble(s, doing, r);
        return r;
}

int store_label_add(Store *s, const StoreLabel *l) {
        sqlite3_stmt *q = s->stmts[STMT_LABEL_CLOSE];
        int r;

        if (!s->db)
                return -EROFS;
        if (l->end_us > 0) {
                r = store_run(s,
                        db_bind(q, "tiit", l->name, (int64_t) l->start_us, (int64_t) l->end_us, l->meta), q,
                        "writing a label");
                if (r < 0 || sqlite3_changes(s->db) > 0)
                        return r;
        }
        q = s->stmts[STMT_LABEL_INSERT];
        return store_run(s, db_bind(q, "tiit", l->name, (int64_t) l->start_us, (int64_t) l->end_us, l->meta),
                q, "writing a label");
}

int store_label_remove(Store *s, const char *name) {
        sqlite3_stmt *q = s->stmts[STMT_LABEL_DELETE];
        int r;

        if (!s->db)
                return -EROFS;
        r = store_run(s, db_bind(q, "t", name), q, "removing a label");
        if (r < 0)
                return r;
        return sqlite3_changes(s->db) > 0 ? 0 : -ENOENT;
}

/* ---- figures ---- */

static uint64_t file_bytes(const char *path, const char *suffix) {
        _cleanup_free_ char *name = NULL;
        struct stat st;

        if (asprintf(&name, "%s%s", path, suffix) < 0)
                return 0;
        return stat(name, &st) == 0 ? (uint64_t) st.st_size : 0;
}

void store_set_limits(Store *s, const StoreConfig *c) {
        s->config.raw_retention_usec = c->raw_retention_usec;
        s->config.minute_retention_usec = c->minute_retention_usec;
        s->config.hour_retention_usec = c->hour_retention_usec;
        s->config.max_size_bytes = c->max_size_bytes;
        s->config.durable_head_usec = c->durable_head_usec;
}

bool store_is_degraded(const Store *s, const char **ret_problem) {
        *ret_problem = s->figures.problem;
        return s->figures.degraded;
}

static void figures_of_tiers(Store *s) {
        static const char *const queries[3][3] = {
                {"SELECT count(*) FROM chunk INDEXED BY chunk_t0",
                        "SELECT t0 FROM chunk ORDER BY t0 LIMIT 1",
                        "SELECT t1 FROM chunk ORDER BY seq DESC LIMIT 1"},
                {"SELECT count(*) FROM sys_1m", "SELECT t FROM sys_1m ORDER BY id LIMIT 1",
                        "SELECT t + 60000000 FROM sys_1m ORDER BY id DESC LIMIT 1"},
                {"SELECT count(*) FROM sys_1h", "SELECT t FROM sys_1h ORDER BY id LIMIT 1",
                        "SELECT t + 3600000000 FROM sys_1h ORDER BY id DESC LIMIT 1"},
        };

        for (unsigned t = 0; t < 3; t++) {
                int64_t v[3] = {};

                for (unsigned i = 0; i < 3; i++)
                        (void) db_query_i64(s->db, queries[t][i], &v[i]);
                s->figures.tier[t] = (StoreTierFigures){(uint64_t) v[0], (uint64_t) v[1], (uint64_t) v[2]};
        }
}

void store_figures(Store *s, StoreFigures *ret) {
        TickRows rows = head_rows(s->head);

        s->figures.bytes = file_bytes(s->path, "");
        s->figures.wal_bytes = file_bytes(s->path, "-wal");
        s->figures.ring_ticks = 0;
        for (const Pending *p = s->first; p; p = p->next)
                s->figures.ring_ticks += p->n;
        s->figures.head_ticks = rows.n;
        s->figures.clock_ahead_us = s->clock.last_us - retain_now(s, s->clock.last_us);
        s->figures.events_dropped = s->events.n_dropped;
        if (s->db)
                figures_of_tiers(s);
        *ret = s->figures;
}
