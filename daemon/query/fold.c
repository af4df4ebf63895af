/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The arithmetic of a bucket. For each series and run of ticks the members are added tick by tick into small
 * arrays (columns of a block lie side by side, so this is the loop that costs), then the ticks into the
 * series.
 *
 * How members of a wider scope combine depends on the metric:
 *   counters      counts add; time is the tick's own, once
 *   ratios        numerators and denominators add
 *   gauges        the mean, or the maximum (temperatures)
 *   watts         each member's joules over its own time, quotients added: an energy counter that was not
 *                 read while its package slept is right over the bucket, and two packages never average
 *                 each other
 *   settled       residencies of cores that are read only when they woke: the mean of each core's quotient,
 *                 the last known one for a core without a reading in this bucket; adding parts would count
 *                 only who woke
 */

#include <errno.h>
#include <math.h>
#include <string.h>

#include "cstated/macro.h"
#include "model/metric.h"

#include "query/fold-private.h"

void fold_deinit(Fold *f) {
        free(f->num);
        free(f->den);
        free(f->room_num);
        free(f->room_den);
        free(f->n);
        *f = (Fold){};
}

static int fold_reserve(Fold *f, size_t n) {
        int64_t *room_num, *room_den;
        double *num, *den;
        uint32_t *count;

        if (n <= f->size)
                return 0;
        room_num = reallocarray(f->room_num, n, sizeof(*room_num));
        if (room_num)
                f->room_num = room_num;
        room_den = reallocarray(f->room_den, n, sizeof(*room_den));
        if (room_den)
                f->room_den = room_den;
        num = reallocarray(f->num, n, sizeof(*num));
        if (num)
                f->num = num;
        den = reallocarray(f->den, n, sizeof(*den));
        if (den)
                f->den = den;
        count = reallocarray(f->n, n, sizeof(*count));
        if (count)
                f->n = count;
        if (!num || !den || !count || !room_num || !room_den)
                return -ENOMEM;
        f->size = n;
        return 0;
}

/* Ticks (of a rollup row: how many) in which the slot had a value. */
static uint32_t slot_ticks(const StoreBlock *b, size_t at) {
        return b->n_ticks ? b->n_ticks[at] : b->reasons[at] == REASON_NONE;
}

static Reason slot_reason(const StoreBlock *b, size_t at) {
        Reason r = (Reason) b->reasons[at];

        return r == REASON_NONE ? REASON_GAP : r;
}

static void fold_reason(Series *s, Reason reason) {
        if (s->reason == REASON_NONE)
                s->reason = reason;
}

/*
 * The member's newest quotient into tick k. A core that has none yet does not take part; watts without it
 * are unknown.
 */
static void fold_quotient(Fold *f, const Series *s, const Member *m, size_t k) {
        if (!isfinite(m->last) && !(s->metric->flags & METRIC_SUM_WATTS))
                return;
        f->num[k] += m->last;
        f->den[k] += 1;
}

/* One member's ticks into the run's arrays and, by_member, into its own sums. */
static void fold_member(Fold *f, Series *s, Member *m, const StoreBlock *b, size_t from, size_t to) {
        bool is_max = s->metric->flags & METRIC_MAX_UP, is_counter = s->metric->kind == METRIC_COUNTER;
        bool is_gauge = s->metric->kind == METRIC_GAUGE;
        /* sums in registers: a series in memory would be written back at every tick */
        uint64_t count = 0; /* modulo 2^64, whatever was read */
        double total = 0, scale = m->scale;

        for (size_t i = from; i < to; i++) {
                size_t at = (size_t) m->num * b->n + i, den_at = (size_t) m->den * b->n + i, k = i - from;
                uint32_t ticks = slot_ticks(b, at);
                double num, den = (double) b->dt_ns[i] * (is_counter ? 1e-9 : 1);

                if (ticks == 0 || (m->den != PLAN_SLOT_TIME && slot_ticks(b, den_at) == 0)) {
                        Reason reason = slot_reason(b, ticks == 0 ? at : den_at);

                        fold_reason(s, reason);
                        if (reason != REASON_ASLEEP)
                                m->last = NAN;
                        /* a lazily read counter's next difference covers this time too */
                        if (is_counter && reason == REASON_ASLEEP)
                                s->den += s->n_members == 1 ? den : 0;
                        if (s->by_member)
                                fold_quotient(f, s, m, k);
                        continue;
                }
                if (m->den != PLAN_SLOT_TIME)
                        den = (double) b->values[den_at];
                num = (double) b->values[at] * scale;
                if (s->by_member) {
                        m->sum_num += num;
                        m->sum_den += den;
                        if (den > 0)
                                m->last = num / den;
                        fold_quotient(f, s, m, k);
                } else if (is_gauge) {
                        num /= ticks;
                        f->num[k] = is_max && f->n[k] > 0 ? MAX(f->num[k], num)
                                    : is_max              ? num
                                                          : f->num[k] + num;
                        f->den[k] = is_max ? 1 : f->den[k] + 1;
                } else {
                        f->num[k] += num;
                        f->den[k] = is_counter ? den : f->den[k] + den;
                }
                f->n[k] = MAX(f->n[k], ticks);
                count += (uint64_t) b->values[at];
                total += num;
        }
        s->count = (int64_t) ((uint64_t) s->count + count);
        s->total += total;
}

/*
 * A rollup row's spread over its ticks: of the ratio that was kept, or of the numerator over what a tick had
 * of the denominator (which is all but constant: time). False where none was kept, or members would have to
 * be combined: how they moved together is not known then, and the row's own value must do.
 */
static bool fold_row_spread(const Plan *p, Series *s, const StoreBlock *b, size_t i) {
        const Member *m = &p->members[s->first_member];
        bool kept = m->spread != PLAN_SLOT_NONE;
        size_t at = (size_t) (kept ? m->spread : m->num) * b->n + i;
        double ticks = b->n_ticks[at], den = (double) b->dt_ns[i] * 1e-9, k;
        Stats stats;

        if (!s->is_own || (!kept && s->n_members > 1) || !(ticks > 0) || isnan(b->m2[at]))
                return false;
        if (kept)
                k = m->spread_scale;
        else if (s->metric->kind == METRIC_GAUGE)
                k = s->metric->factor * m->scale;
        else {
                if (s->metric->kind == METRIC_RATIO && m->den != PLAN_SLOT_TIME)
                        den = (double) b->values[(size_t) m->den * b->n + i];
                else if (s->metric->kind == METRIC_RATIO)
                        den *= 1e9;
                if (!(den > 0))
                        return false;
                k = s->metric->factor * m->scale * ticks / den;
                if (s->metric->flags & METRIC_TSC_HZ)
                        k *= (double) p->tsc_hz / 1e6;
        }
        stats = (Stats){
                .n = b->n_ticks[at],
                .mean = k * (double) b->values[at] / ticks,
                .m2 = k * k * b->m2[at],
                .min = k * (double) b->min[at],
                .max = k * (double) b->max[at],
                .sum = k * (double) b->values[at],
        };
        stats_merge(&s->stats, &stats);
        return true;
}

/* What a tick is worth, num over den, into num. */
static void fold_values(const Plan *p, const Series *s, double *num, const double *den, size_t n) {
        bool parts = s->by_member && s->metric->kind == METRIC_RATIO && (s->metric->flags & METRIC_SUM_WATTS);

        for (size_t i = 0; i < n && !parts; i++)
                num[i] = den[i] > 0 ? num[i] / den[i] : NAN;
        metric_values(s->metric, p->tsc_hz, num, n);
}

static void fold_clear(Fold *f, size_t n) {
        memset(f->num, 0, n * sizeof(*f->num));
        memset(f->den, 0, n * sizeof(*f->den));
        memset(f->n, 0, n * sizeof(*f->n));
}

/* True where every member was plain; else the ticks' num, den and n hold what was added. */
static bool fold_members(Fold *f, Plan *p, Series *s, const StoreBlock *b, size_t from, size_t to) {
        bool clear = false;

        fold_plain_begin(f);
        for (uint32_t i = 0; i < s->n_members; i++) {
                Member *m = &p->members[s->first_member + i];

                if (!s->by_member && fold_plain(f, s, m, b, from, to))
                        continue;
                if (!clear)
                        fold_clear(f, to - from);
                clear = true;
                if (!s->by_member || !fold_plain(f, s, m, b, from, to))
                        fold_member(f, s, m, b, from, to);
        }
        if (clear)
                fold_plain_some(f, s, b, from, to);
        return !clear;
}

/*
 * What the ticks add to the series itself; those without a value are not counted. A row's gauge is the mean of its
 * ticks, and counts as many times.
 */
static void fold_sums(const Fold *f, Series *s, const StoreBlock *b, size_t from, size_t n) {
        bool by_ticks = s->metric->kind == METRIC_GAUGE && b->n_ticks;
        double num = 0, den = 0;

        for (size_t k = 0; k < n; k++) {
                double weight = by_ticks ? f->n[k] : 1;

                s->n += f->n[k];
                num += f->num[k] * weight; /* 0 of 0 where there was none */
                den += f->den[k] * weight;
        }
        if (!s->by_member) {
                s->num += num;
                s->den += den;
                return;
        }
        for (size_t k = 0; k < n; k++)
                s->span_ns += b->dt_ns[from + k];
}

int fold_run(Fold *f, Plan *p, Series *s, const StoreBlock *b, size_t from, size_t to, bool spread) {
        size_t n = to - from, n_values = 0;
        int r;

        if (s->n_members == 0)
                return 0;
        r = fold_reserve(f, n);
        if (r < 0)
                return r;
        s->touched = true;
        if (fold_members(f, p, s, b, from, to)) {
                fold_plain_all(f, p, s, b, from, to, spread);
                return 0;
        }
        fold_sums(f, s, b, from, n);
        for (size_t k = 0; k < n && spread; k++) {
                if (f->n[k] == 0 || (b->n_ticks && fold_row_spread(p, s, b, from + k)))
                        continue;
                f->num[n_values] = f->num[k];
                f->den[n_values++] = f->den[k];
        }
        fold_values(p, s, f->num, f->den, n_values);
        stats_add_many(&s->stats, f->num, n_values);
        return 0;
}

int fold_run_as_row(Fold *f, Plan *p, Series *s, const StoreBlock *b, size_t from, size_t to, bool spread) {
        Stats before = s->stats;
        int r;

        if (!spread || s->keeps_spread)
                return fold_run(f, p, s, b, from, to, spread);
        s->stats = (Stats) STATS_INIT;
        r = fold_run(f, p, s, b, from, to, true);
        if (s->stats.n > 0)
                stats_add(&before, s->stats.mean);
        s->stats = before;
        return r;
}

void fold_settle(Plan *p, Series *s) {
        double sum = 0, weight = (double) s->span_ns * 1e-9;
        uint32_t n = 0;
        bool whole = true;

        if (!s->by_member || s->n_members == 0)
                return;
        for (uint32_t i = 0; i < s->n_members; i++) {
                Member *m = &p->members[s->first_member + i];
                double v = m->sum_den > 0 ? m->sum_num / m->sum_den : m->last;

                m->sum_num = m->sum_den = 0;
                if (isfinite(v)) {
                        sum += v;
                        n++;
                } else
                        whole = false;
        }
        s->span_ns = 0;
        /* half a machine's watts are not its watts */
        if (n == 0 || ((s->metric->flags & METRIC_SUM_WATTS) && !whole))
                return;
        s->num += weight * ((s->metric->flags & METRIC_SUM_WATTS) ? sum : sum / n);
        s->den += weight;
}

static Reason series_value(Plan *p, const Series *s, double *ret) {
        MetricSum sum = { .num = s->num, .den = s->den, .count = s->count, .n = 1 };

        if (s->n == 0 || !(s->den > 0))
                return s->reason == REASON_NONE ? REASON_GAP : s->reason;
        if (s->metric->kind != METRIC_RATIO) {
                *ret = s->metric->factor * s->num / s->den;
                return REASON_NONE;
        }
        if (s->by_member && (s->metric->flags & METRIC_SUM_WATTS)) {
                sum.parts = s->num;
                sum.weight = s->den;
        }
        return metric_value(s->metric, &sum, p->tsc_hz, ret);
}

/* What `sum` means: events, joules, seconds; nothing for a gauge or a share of ticks. */
static double series_sum(const Series *s) {
        switch (field_spec(s->metric->numerator)->unit) {
        case FIELD_UNIT_ENERGY:
        case FIELD_UNIT_USEC:
        case FIELD_UNIT_NS:
        case FIELD_UNIT_TIME:
                return s->metric->kind == METRIC_GAUGE ? NAN : s->total;
        case FIELD_UNIT_COUNT:
                return s->metric->kind == METRIC_COUNTER ? s->total : NAN;
        case FIELD_UNIT_TICK:
        case FIELD_UNIT_CELSIUS:
        case FIELD_UNIT_JIFFY:
        case FIELD_UNIT_BYTE:
        default:
                return NAN;
        }
}

void fold_take(Plan *p, Series *s, QueryRow *ret) {
        QueryRow row = {
                .metric = s->metric,
                .scope = s->scope,
                .package = s->package,
                .die = s->die,
                .module = s->module,
                .core = s->core,
                .cpu = s->cpu,
                .state = s->state[0] ? s->state : NULL,
                .method = s->method,
                .count = s->n,
                .mean = NAN,
                .min = NAN,
                .max = NAN,
                .stddev = NAN,
                .sum = NAN,
        };

        fold_settle(p, s);
        row.reason = series_value(p, s, &row.mean);
        if (row.reason == REASON_NONE) {
                row.sum = series_sum(s);
                row.is_count = s->metric->kind == METRIC_COUNTER &&
                               field_spec(s->metric->numerator)->unit == FIELD_UNIT_COUNT;
                row.sum_count = s->count;
        }
        if (s->stats.n > 0) {
                row.min = s->stats.min;
                row.max = s->stats.max;
                row.stddev = stats_stddev(&s->stats);
        }
        s->touched = false;
        s->num = s->den = s->total = 0;
        s->count = 0;
        s->n = 0;
        s->reason = REASON_NONE;
        s->stats = (Stats) STATS_INIT;
        *ret = row;
}
