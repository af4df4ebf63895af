/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The choice of a tier. A step below a minute needs raw ticks; from a minute on rollups do, and are taken
 * where the window is long or raw ticks have expired. Where no tier reaches back to the start the one that
 * reaches furthest is taken, and `gaps` says what is missing. What rows of that tier do not cover at the window's ends
 * comes from finer ones (feed.c). Costs are counted in values of ticks to be added up, measured at 2-4 ns each.
 */

#include <errno.h>
#include <string.h>

#include "cstated/api.h"
#include "cstated/macro.h"
#include "cstated/timespan.h"

#include "query/tier.h"

#define MINUTE_US      (60 * USEC_PER_SEC)
#define HOUR_US        (3600 * USEC_PER_SEC)
#define VALUES_MAX     120000000.0 /* a third of a second */
#define TICK_VALUES    64          /* what fetching a tick costs, in values */
#define CELL_VALUES    60          /* a rollup's sum and count: two columns of a wide row */
#define SPREAD_VALUES  70          /* and its m2, min and max */
#define ROW_BYTES      160         /* of a reply's row, at most, usually */

/* Of ticks, or of the ends of rows; 0: the tier is empty. */
typedef struct Bounds {
        uint64_t oldest, newest;
} Bounds;

/* Does the tier hold something of the window, from its start on as far as any tier does? */
static bool tier_covers(const Bounds *b, uint64_t start, uint64_t slack) {
        return b->oldest > 0 && b->oldest <= start + slack;
}

static bool tier_touches(const Bounds *b, const QuerySpec *q) {
        return b->oldest > 0 && b->oldest <= q->end_us && b->newest > q->start_us;
}

/* The coarsest tier whose rows are no longer than a bucket. */
static StoreTier coarsest(const QuerySpec *q) {
        if (q->step_us == 0 || q->step_us < MINUTE_US)
                return TIER_RAW;
        return q->step_us < HOUR_US ? TIER_1M : TIER_1H;
}

uint64_t tier_length_us(StoreTier tier) {
        return tier == TIER_1H ? HOUR_US : tier == TIER_1M ? MINUTE_US : 0;
}

int tier_choose(StoreReader *r, const QuerySpec *q, TierChoice *ret) {
        uint64_t window = q->end_us - q->start_us, first = UINT64_MAX;
        StoreTier tier = TIER_RAW, limit = coarsest(q);
        Bounds bounds[3];

        for (unsigned t = TIER_RAW; t <= TIER_1H; t++) {
                int code = store_reader_bounds(r, (StoreTier) t, &bounds[t].oldest, &bounds[t].newest);

                if (code < 0)
                        return code;
                if (bounds[t].oldest > 0)
                        first = MIN(first, bounds[t].oldest);
        }
        first = MAX(first, q->start_us);
        /*
         * Expired raw ticks: minutes, then hours, whatever the step, where a whole row of theirs is older. The
         * first minute and the first hour of a young database begin before its first tick and hold no more.
         */
        while (tier < TIER_1H &&
                !(tier_covers(&bounds[tier], first, 2 * MINUTE_US) && tier_touches(&bounds[tier], q)) &&
                tier_touches(&bounds[tier + 1], q) &&
                (bounds[tier].oldest == 0 || bounds[tier + 1].oldest <= bounds[tier].oldest))
                tier++;
        /* long windows, where the answer is as good */
        if (tier == TIER_RAW && limit >= TIER_1M && window >= 6 * HOUR_US && q->step_us % MINUTE_US == 0 &&
                tier_covers(&bounds[TIER_1M], first, 2 * MINUTE_US))
                tier = TIER_1M;
        if (tier == TIER_1M && limit == TIER_1H && window >= 48 * HOUR_US && q->step_us % HOUR_US == 0 &&
                tier_covers(&bounds[TIER_1H], first, 2 * HOUR_US))
                tier = TIER_1H;
        *ret = (TierChoice){.tier = tier};
        for (unsigned t = TIER_1M; t <= (unsigned) limit; t++)
                ret->answers[t] = tier_covers(&bounds[t], first, 2 * tier_length_us((StoreTier) t));
        return 0;
}

static double tier_cost(StoreTier tier, const QuerySpec *q, size_t n_slots, bool spread, uint64_t tick_us) {
        double rows = (double) (q->end_us - q->start_us) / (double) (tier_length_us(tier) ?: tick_us);
        double cell = tier == TIER_RAW ? 1 : CELL_VALUES + (spread ? SPREAD_VALUES : 0);

        return rows * ((double) n_slots * cell + TICK_VALUES);
}

StoreTier tier_affordable(
        const TierChoice *c, const QuerySpec *q, size_t n_slots, bool spread, uint64_t tick_us) {
        StoreTier best = c->tier;
        double least;

        if (tick_us == 0)
                return best;
        least = tier_cost(best, q, n_slots, spread, tick_us);
        for (unsigned t = best + 1; t <= TIER_1H && least > VALUES_MAX; t++) {
                double cost = tier_cost((StoreTier) t, q, n_slots, spread, tick_us);

                if (!c->answers[t] || cost >= least)
                        continue;
                best = (StoreTier) t;
                least = cost;
        }
        return best;
}

uint64_t tier_tick_us(const StoreBlock *b) {
        uint64_t sorted[64];
        size_t n = MIN(b->n, ARRAY_SIZE(sorted));

        for (size_t i = 0; i < n; i++) {
                uint64_t v = b->dt_ns[i] / NSEC_PER_USEC;
                size_t k = i;

                for (; k > 0 && sorted[k - 1] > v; k--)
                        sorted[k] = sorted[k - 1];
                sorted[k] = v;
        }
        return n > 0 ? sorted[n / 2] : 0;
}

int tier_check_size(StoreReader *r, const QuerySpec *q, const QueryInfo *info, size_t n_series,
        uint64_t tick_us, QueryError *error) {
        uint64_t oldest, newest, start, end, step = info->step_us > 0 ? info->step_us : tick_us, points;
        int code;

        code = store_reader_bounds(r, info->tier, &oldest, &newest);
        if (code < 0 || step == 0)
                return code;
        start = MAX(q->start_us, oldest);
        end = MIN(q->end_us, MAX(newest, oldest));
        points = end > start ? (end - start) / step : 0;
        if (points > QUERY_POINTS_MAX) {
                (void) query_error(error, "step",
                        "about %llu points a series, at most %d: ask with points=1000 or step=%llus",
                        (unsigned long long) points, QUERY_POINTS_MAX,
                        (unsigned long long) ((end - start) / USEC_PER_SEC / 1000 + 1));
                return QUERY_E_TOO_MANY;
        }
        if (points * n_series > API_REPLY_MAX / ROW_BYTES) {
                (void) query_error(error, q->step_us > 0 || q->n_cpus > 0 ? "step" : "cpu",
                        "about %llu rows, more than a reply may hold: ask for fewer CPUs or metrics, a "
                        "wider scope, or points=%llu",
                        (unsigned long long) (points * n_series),
                        (unsigned long long) MAX(
                                API_REPLY_MAX / ROW_BYTES / MAX(n_series, (size_t) 1), (size_t) 1));
                return QUERY_E_TOO_MANY;
        }
        return 0;
}
