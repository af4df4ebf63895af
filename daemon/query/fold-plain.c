/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The loops that a long window of a large machine spends its time in: no null, no branch, columns that lie side by
 * side. Values are added as the integers they are, which is exact, and become doubles once a tick instead of once a
 * member. Built with -O3 (meson.build): the compiler makes vectors of them.
 */

#include <math.h>
#include <string.h>

#include "cstated/macro.h"
#include "model/metric.h"

#include "query/fold-private.h"

void fold_plain_begin(Fold *f) {
        f->n_plain = f->n_timed = 0;
        f->plain_num = f->plain_den = NULL;
        f->plain_count = f->plain_den_sum = 0;
}

static bool any_null(const uint8_t *reasons, size_t n) {
        uint8_t any = REASON_NONE;

        for (size_t i = 0; i < n; i++)
                any |= reasons[i];
        return any != REASON_NONE;
}

/* Modulo 2^64, here and below: a damaged file's numbers must not be undefined behaviour. */
static uint64_t sum_of(const int64_t *v, size_t n) {
        uint64_t sum = 0;

        for (size_t i = 0; i < n; i++)
                sum += (uint64_t) v[i];
        return sum;
}

/*
 * Adds v to *sum, which is at first nothing, then v itself, and from the second v on its own room. Returns the sum over
 * the ticks.
 */
static uint64_t add_whole(const int64_t **sum, int64_t *restrict room, const int64_t *restrict v, size_t n) {
        const int64_t *restrict first = *sum;

        if (!first)
                *sum = v;
        else if (first == room) /* from the third on */
                for (size_t i = 0; i < n; i++)
                        room[i] = (int64_t) ((uint64_t) room[i] + (uint64_t) v[i]);
        else {
                for (size_t i = 0; i < n; i++)
                        room[i] = (int64_t) ((uint64_t) first[i] + (uint64_t) v[i]);
                *sum = room;
        }
        return sum_of(v, n);
}

/* By its quotients: each tick's, and the member's own sums. Returns the sum of num. */
static uint64_t add_quotients(
        Fold *f, Member *m, const int64_t *restrict num, const int64_t *restrict den, size_t n) {
        double *restrict sum = f->num, *restrict members = f->den, sum_den = 0, last = m->last;
        uint64_t total = sum_of(num, n);

        for (size_t i = 0; i < n; i++) {
                double d = (double) den[i];

                sum_den += d;
                last = d > 0 ? (double) num[i] * m->scale / d : last;
                sum[i] += last;
                members[i] += 1;
        }
        m->sum_num += (double) (int64_t) total * m->scale;
        m->sum_den += sum_den;
        m->last = last;
        for (size_t i = 0; i < n; i++)
                f->n[i] = MAX(f->n[i], 1u);
        return total;
}

static bool is_other_scale(const Fold *f, const Member *m) {
        return f->n_plain > 0 && (f->scale < m->scale || f->scale > m->scale);
}

/* Whether the loops above are right for this member's ticks. */
static bool is_plain(const Fold *f, const Series *s, const Member *m, const StoreBlock *b, size_t from, size_t n) {
        bool by_time = m->den == PLAN_SLOT_TIME;

        if (b->n_ticks || s->metric->kind == METRIC_GAUGE || is_other_scale(f, m))
                return false;
        if (s->by_member && (by_time || !(isfinite(m->last) || b->values[(size_t) m->den * b->n + from] > 0)))
                return false;
        if (s->metric->kind == METRIC_COUNTER && !by_time)
                return false;
        return !any_null(b->reasons + (size_t) m->num * b->n + from, n) &&
               (by_time || !any_null(b->reasons + (size_t) m->den * b->n + from, n));
}

bool fold_plain(Fold *f, Series *s, Member *m, const StoreBlock *b, size_t from, size_t to) {
        const int64_t *num = b->values + (size_t) m->num * b->n + from;
        const int64_t *den = b->values + (size_t) m->den * b->n + from;
        size_t n = to - from;
        uint64_t count;

        if (!is_plain(f, s, m, b, from, n))
                return false;
        if (s->by_member)
                count = add_quotients(f, m, num, den, n);
        else {
                count = add_whole(&f->plain_num, f->room_num, num, n);
                f->plain_count += count;
                f->scale = m->scale;
                f->n_plain++;
                if (m->den == PLAN_SLOT_TIME)
                        f->n_timed++;
                else
                        f->plain_den_sum += add_whole(&f->plain_den, f->room_den, den, n);
        }
        s->count = (int64_t) ((uint64_t) s->count + count);
        s->total += (double) (int64_t) count * m->scale;
        return true;
}

/* What all plain members have of a tick's denominator; a counter's time is the tick's own, however many count in it. */
static void plain_den(const Fold *f, const Series *s, const uint64_t *restrict dt_ns, size_t n, double *restrict den) {
        double unit = s->metric->kind == METRIC_COUNTER ? 1e-9 : f->n_timed;

        if (f->n_timed == 0)
                for (size_t i = 0; i < n; i++)
                        den[i] = (double) f->plain_den[i];
        else if (!f->plain_den)
                for (size_t i = 0; i < n; i++)
                        den[i] = (double) (int64_t) dt_ns[i] * unit;
        else
                for (size_t i = 0; i < n; i++)
                        den[i] = (double) f->plain_den[i] + (double) (int64_t) dt_ns[i] * unit;
}

void fold_plain_all(Fold *f, const Plan *p, Series *s, const StoreBlock *b, size_t from, size_t to, bool spread) {
        const int64_t *restrict num = f->plain_num;
        double unit = s->metric->kind == METRIC_COUNTER ? 1e-9 : f->n_timed;
        double *restrict v = f->num, *restrict den = f->den;
        uint64_t dt_ns = 0;
        size_t n = to - from;

        for (size_t i = from; i < to; i++)
                dt_ns += b->dt_ns[i];
        s->n += n;
        s->num += (double) (int64_t) f->plain_count * f->scale;
        s->den += (double) (int64_t) f->plain_den_sum + (double) dt_ns * unit;
        if (!spread)
                return;
        plain_den(f, s, b->dt_ns + from, n, den);
        for (size_t i = 0; i < n; i++)
                v[i] = den[i] > 0 ? (double) num[i] * f->scale / den[i] : NAN;
        metric_values(s->metric, p->tsc_hz, v, n);
        stats_add_many(&s->stats, v, n);
}

void fold_plain_some(Fold *f, const Series *s, const StoreBlock *b, size_t from, size_t to) {
        size_t n = to - from;

        if (f->n_plain == 0)
                return;
        for (size_t i = 0; i < n; i++) {
                double dt = (double) b->dt_ns[from + i], den = f->plain_den ? (double) f->plain_den[i] : 0;

                f->n[i] = MAX(f->n[i], 1u);
                f->num[i] += (double) f->plain_num[i] * f->scale;
                f->den[i] = s->metric->kind == METRIC_COUNTER ? dt * 1e-9 : f->den[i] + den + dt * f->n_timed;
        }
}
