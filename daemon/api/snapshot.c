/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The snapshot walks the catalogue, never a list of its own: a metric added there appears here. Metrics by idle state
 * go to "idle", those by cause to "wakeups", the histogram to "sleep_length", all others stand in their scope's
 * objects by id.
 */

#include <string.h>

#include "cstated/catalogue.h"
#include "cstated/macro.h"

#include "api/snapshot.h"
#include "model/metric.h"

#define DIGITS 6
#define REASONS_MAX 64

/* Keys of the object in work that are null, and why. */
typedef struct Reasons {
        struct {
                const char *key;
                Reason reason;
        } items[REASONS_MAX];
        size_t n;
} Reasons;

typedef struct Snapshot {
        JsonWriter *j;
        const Machine *m;
        const Sample *s;
        const char *states[4 * IDLE_STATES_MAX]; /* names of all idle sets */
        size_t n_states;
        bool available[128]; /* by catalogue index: the layout can give it */
} Snapshot;

static void reasons_write(JsonWriter *j, const Reasons *r) {
        if (r->n == 0)
                return;
        jw_key(j, "reasons");
        jw_begin_object(j);
        for (size_t i = 0; i < r->n; i++)
                jw_key_string(j, r->items[i].key, reason_name(r->items[i].reason));
        jw_end_object(j);
}

static void null_write(JsonWriter *j, const char *key, Reason reason, Reasons *r) {
        jw_key_null(j, key);
        if (r->n < REASONS_MAX) {
                r->items[r->n].key = key;
                r->items[r->n++].reason = reason;
        }
}

static void value_write(Snapshot *w, const char *key, const MetricSpec *m, const MetricSum *sum, Reasons *r) {
        double v;
        Reason reason = metric_value(m, sum, w->m->tsc_hz, &v);

        if (reason != REASON_NONE)
                null_write(w->j, key, reason, r);
        else if (m->kind == METRIC_COUNTER && m->unit == UNIT_COUNT)
                jw_key_i64(w->j, key, sum->count);
        else
                jw_key_double(w->j, key, v, DIGITS);
}

/* ---- metrics of their own ---- */

/* Wider objects carry what can be summed up to them; cores and modules only what is read there. */
static bool belongs(const MetricSpec *m, Scope own, Scope scope) {
        if (m->instance != INSTANCE_NONE)
                return false;
        if (scope == SCOPE_SYSTEM)
                return true;
        return scope == SCOPE_PACKAGE ? own >= SCOPE_PACKAGE && m->scope != SCOPE_SYSTEM : own == scope;
}

static void metrics_write(Snapshot *w, Scope scope, uint32_t e, Reasons *r) {
        struct {
                const char *id;
                uint32_t n;
        } settled[REASONS_MAX];
        size_t n_settled = 0;
        const char *method;

        for (size_t i = 0; i < metric_catalogue_n; i++) {
                const MetricSpec *m = &metric_catalogue[i];
                MetricSum sum = {};

                if (!w->available[i] || !belongs(m, metric_scope(m, w->s->layout), scope))
                        continue;
                metric_gather(m, w->s, scope, e, 0, &sum);
                value_write(w, m->id, m, &sum, r);
                if (sum.n_settled > 0 && n_settled < ARRAY_SIZE(settled)) {
                        settled[n_settled].id = m->id;
                        settled[n_settled++].n = sum.n_settled;
                }
        }
        method = metric_method(metric_find("busy"), w->s->layout);
        if (method && (scope == SCOPE_CPU || scope <= SCOPE_PACKAGE))
                jw_key_string(w->j, "busy_method", method);
        if (n_settled == 0)
                return;
        jw_key(w->j, "settled");
        jw_begin_object(w->j);
        for (size_t i = 0; i < n_settled; i++)
                jw_key_u64(w->j, settled[i].id, settled[i].n);
        jw_end_object(w->j);
}

/* ---- idle states ---- */

static const struct {
        const char *key, *id;
} idle_keys[] = {
        { "time", "idle_time" },
        { "usage", "idle_usage" },
        { "above", "idle_above" },
        { "below", "idle_below" },
        { "rejected", "idle_rejected" },
};

static bool has_idle(const Snapshot *w) {
        for (size_t i = 0; i < ARRAY_SIZE(idle_keys); i++)
                if (metric_available(metric_find(idle_keys[i].id), w->s->layout))
                        return true;
        return false;
}

/* state NULL: by index, as idletrace counts CPUs without cpuidle. */
static void idle_state_write(Snapshot *w, Scope scope, uint32_t e, const char *state, uint8_t index) {
        Reasons r = {};

        jw_begin_object(w->j);
        for (size_t i = 0; i < ARRAY_SIZE(idle_keys); i++) {
                const MetricSpec *m = metric_find(idle_keys[i].id);
                MetricSum sum = {};

                if (!metric_available(m, w->s->layout))
                        continue;
                if (state)
                        metric_gather_state(m, w->s, scope, e, state, &sum);
                else
                        metric_gather(m, w->s, scope, e, index, &sum);
                value_write(w, idle_keys[i].key, m, &sum, &r);
        }
        reasons_write(w->j, &r);
        jw_end_object(w->j);
}

/* Whether any CPU of the entity has the state. */
static bool has_state(const Snapshot *w, Scope scope, uint32_t e, const char *state) {
        for (uint32_t i = 0; i < w->m->n_cpus; i++)
                if (machine_parent(w->m, SCOPE_CPU, i, scope) == e && machine_state_index(w->m, i, state) >= 0)
                        return true;
        return false;
}

static void idle_write(Snapshot *w, Scope scope, uint32_t e) {
        static const char *const nameless[] = { "POLL", "IDLE" };
        const IdleSet *set = scope == SCOPE_CPU ? machine_idle_set(w->m, e) : NULL;
        const char *method = metric_method(metric_find("idle_time"), w->s->layout);

        if (!has_idle(w))
                return;
        jw_key(w->j, "idle");
        jw_begin_object(w->j);
        for (uint8_t k = 0; set && k < set->n_states; k++) {
                jw_key(w->j, set->states[k].name);
                idle_state_write(w, scope, e, NULL, k);
        }
        for (size_t i = 0; scope != SCOPE_CPU && i < w->n_states; i++) {
                if (!has_state(w, scope, e, w->states[i]))
                        continue;
                jw_key(w->j, w->states[i]);
                idle_state_write(w, scope, e, w->states[i], 0);
        }
        /* No cpuidle driver: the default idle loop is idletrace's state 1. */
        for (uint8_t k = 0; k < ARRAY_SIZE(nameless); k++)
                if (!set && w->n_states == 0 && layout_find(w->s->layout, FIELD_TRACE_NS, k)) {
                        jw_key(w->j, nameless[k]);
                        idle_state_write(w, scope, e, NULL, k);
                }
        jw_end_object(w->j);
        if (method)
                jw_key_string(w->j, "idle_method", method);
}

/* ---- wakeups ---- */

static void wakeups_write(Snapshot *w, Scope scope, uint32_t e) {
        static const struct {
                const char *key, *id;
        } causes[] = {
                { "total", "wakeups" },
                { "interrupt", "wakeups_interrupt" },
                { "store", "wakeups_store" },
                { "break", "wakeups_break" },
                { "break_immediate", "wakeups_break_immediate" },
        };
        const Layout *l = w->s->layout;
        const MetricSpec *brk = metric_find("wakeups_break");
        const char *method = metric_method(brk, l), *total = metric_method(metric_find("wakeups"), l);
        Reasons r = {};

        if (!metric_available(brk, l) && !metric_available(metric_find("wakeups"), l))
                return;
        jw_key(w->j, "wakeups");
        jw_begin_object(w->j);
        for (size_t i = 0; i < ARRAY_SIZE(causes); i++) {
                const MetricSpec *m = metric_find(causes[i].id);
                MetricSum sum = {};

                metric_gather(m, w->s, scope, e, 0, &sum);
                value_write(w, causes[i].key, m, &sum, &r);
        }
        if (metric_available(metric_find("wakeups_interrupt"), l))
                method = "idletrace";
        jw_key_string(w->j, "method", method);
        if (total)
                jw_key_string(w->j, "total_method", total);
        reasons_write(w->j, &r);
        jw_end_object(w->j);
}

/*
 * {"1.024": sleeps of more than 0.512 us and at most that, ...}: every bucket, or null with the reason of the
 * first.
 */
static void sleep_lengths_write(Snapshot *w, Scope scope, uint32_t e, Reasons *r) {
        const MetricSpec *m = metric_find("sleep_length");
        MetricSum sums[SLEEP_BUCKETS] = {};

        if (!metric_available(m, w->s->layout))
                return;
        for (uint8_t i = 0; i < SLEEP_BUCKETS; i++) {
                metric_gather(m, w->s, scope, e, i, &sums[i]);
                if (sums[i].n > 0)
                        continue;
                null_write(w->j, m->id, sums[i].reason, r);
                return;
        }
        jw_key(w->j, m->id);
        jw_begin_object(w->j);
        for (uint8_t i = 0; i < SLEEP_BUCKETS; i++) {
                char name[16];

                field_bucket_name(i, name);
                jw_key_i64(w->j, name, sums[i].count);
        }
        jw_end_object(w->j);
}

/* ---- objects ---- */

static void id_write(JsonWriter *j, const char *key, int64_t id) {
        jw_key(j, key);
        if (id < 0)
                jw_null(j);
        else
                jw_i64(j, id);
}

static void package_ids_write(Snapshot *w, uint32_t package, bool always_die) {
        const MachinePackage *p = &w->m->packages[package];

        jw_key_i64(w->j, "package", p->package);
        if (always_die || p->die >= 0)
                id_write(w->j, "die", p->die);
}

static void ids_write(Snapshot *w, Scope scope, uint32_t e) {
        const MachineCpu *c = &w->m->cpus[machine_first_cpu(w->m, scope, e)];

        if (scope == SCOPE_CPU) {
                jw_key_u64(w->j, "cpu", c->id);
                jw_key_i64(w->j, "core", w->m->cores[c->core].id);
        }
        if (scope != SCOPE_SYSTEM)
                package_ids_write(w, c->package, scope == SCOPE_PACKAGE);
        if (scope == SCOPE_CORE)
                jw_key_i64(w->j, "core", w->m->cores[e].id);
        if (scope == SCOPE_MODULE || (scope == SCOPE_CPU && c->module != UINT32_MAX))
                jw_key_i64(w->j, "module", w->m->modules[scope == SCOPE_CPU ? c->module : e].id);
}

static void entity_write(Snapshot *w, Scope scope, uint32_t e) {
        Reasons r = {};

        jw_begin_object(w->j);
        ids_write(w, scope, e);
        metrics_write(w, scope, e, &r);
        if (scope != SCOPE_CORE && scope != SCOPE_MODULE) {
                idle_write(w, scope, e);
                wakeups_write(w, scope, e);
        }
        if (scope <= SCOPE_PACKAGE)
                sleep_lengths_write(w, scope, e, &r);
        reasons_write(w->j, &r);
        jw_end_object(w->j);
}

static void scope_write(Snapshot *w, const char *key, Scope scope) {
        jw_key(w->j, key);
        jw_begin_array(w->j);
        for (uint32_t e = 0; e < machine_n_entities(w->m, scope); e++)
                entity_write(w, scope, e);
        jw_end_array(w->j);
}

static void collect(Snapshot *w) {
        for (uint32_t i = 0; i < w->m->n_idle_sets; i++)
                for (uint32_t k = 0; k < w->m->idle_sets[i].n_states; k++) {
                        const char *name = w->m->idle_sets[i].states[k].name;
                        size_t at = 0;

                        while (at < w->n_states && strcmp(w->states[at], name) != 0)
                                at++;
                        if (at == w->n_states && at < ARRAY_SIZE(w->states))
                                w->states[w->n_states++] = name;
                }
        for (size_t i = 0; i < metric_catalogue_n && i < ARRAY_SIZE(w->available); i++)
                w->available[i] = metric_available(&metric_catalogue[i], w->s->layout);
}

int snapshot_write(JsonWriter *j, const Machine *m, const Sample *s) {
        Snapshot w = { .j = j, .m = m, .s = s };

        collect(&w);
        jw_begin_object(j);
        jw_key_u64(j, "start", s->h.start_us / 1000);
        jw_key_u64(j, "end", s->h.end_us / 1000);
        jw_key_double(j, "interval_ms", (double) s->h.dt_ns / 1e6, DIGITS);
        jw_key(j, "system");
        entity_write(&w, SCOPE_SYSTEM, 0);
        scope_write(&w, "packages", SCOPE_PACKAGE);
        scope_write(&w, "modules", SCOPE_MODULE);
        scope_write(&w, "cores", SCOPE_CORE);
        scope_write(&w, "cpus", SCOPE_CPU);
        jw_key(j, "offline");
        jw_begin_array(j);
        for (uint32_t i = 0; i < m->n_offline; i++)
                jw_u64(j, m->offline[i]);
        jw_end_array(j);
        jw_end_object(j);
        return jw_error(j);
}
