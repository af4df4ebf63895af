/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sleep in progress, from two accounts of the same thing: /proc/stat's idle time has it (nohz kernels
 * add the sleep in progress when the file is read) in steps of 10 ms, cpuidle's `time` has all sleeps but it
 * in microseconds. What one has gained over the other since the last settled reading is how much the sleep
 * in progress has grown. It began after the reading before, since the CPU has left idle in between, so it is
 * no longer than the interval.
 *
 * The two drift apart by some microseconds an entry (the way into the idle state and out of it) and by
 * whatever else one counts and the other does not. An allowance for that is taken off, so that nothing piles
 * up, and where a CPU leaves idle often nothing is carried from one interval to the next: its sleeps are
 * short. A lag of less than three steps is noise (they round, and the two are not read at once) and counts
 * as none; what remains of it is caught by the last rule, that the clock moves by no less than the idle time
 * it stands for.
 */

#include "cstated/macro.h"

#include "sampler/cpuidle-lag.h"

#define OVERHEAD_NS 5000 /* an idle entry's, of what /proc/stat calls idle and cpuidle does not */
#define DRIFT 128        /* 1/128 of the time, whatever the reason */
#define NOISE 3          /* jiffies */
#define OFTEN 32         /* exits an interval from which on sleeps are short */

/* How much later the sleep in progress is than it was, signed. */
static int64_t growth(const CpuidleLag *l, const CpuidleReading *r) {
        if (r->stat_idle_ns == UINT64_MAX || l->stat_idle_ns == UINT64_MAX ||
                r->stat_idle_ns < l->stat_idle_ns)
                return 0;
        return (int64_t) (r->stat_idle_ns - l->stat_idle_ns) - (int64_t) (r->time_ns - l->time_ns) -
               (int64_t) (MIN(r->n_exits, (uint64_t) 1 << 32) * OVERHEAD_NS +
                          (r->now_ns - l->span_ns) / DRIFT);
}

static uint64_t lag_estimate(const CpuidleLag *l, const CpuidleReading *r) {
        uint64_t interval = r->now_ns - l->seen_ns;
        int64_t lag = growth(l, r);

        if (r->n_exits == 0)
                return 0; /* busy all along */
        if (r->n_exits < OFTEN)
                lag += (int64_t) l->lag_ns;
        else if (lag < (int64_t) (interval / 8))
                lag = 0;
        return lag < 0 ? 0 : MIN((uint64_t) lag, interval);
}

/* More idle time than time went by, on the first exit that we see: most of that sleep was before we came. */
static bool began_before(const CpuidleLag *l, const CpuidleReading *r) {
        uint64_t elapsed = r->now_ns - l->span_ns;

        return l->is_fresh && r->time_ns - l->time_ns > elapsed + elapsed / 16;
}

uint64_t cpuidle_lag_settle(CpuidleLag *l, const CpuidleReading *r) {
        uint64_t lag = 0, span = r->now_ns;
        bool comparable = l->valid && r->time_ns >= l->time_ns && r->now_ns >= l->seen_ns;
        bool restarted = comparable && began_before(l, r);

        if (comparable && !restarted) {
                lag = lag_estimate(l, r);
                if (lag >= NOISE * r->jiffy_ns)
                        span -= lag;
                span = MAX(span, l->span_ns + (r->time_ns - l->time_ns));
        }
        *l = (CpuidleLag){
                .valid = true,
                .is_fresh = !comparable || (l->is_fresh && r->n_exits == 0),
                .is_restarted = restarted,
                .seen_ns = r->now_ns,
                .span_ns = MAX(span, l->span_ns),
                .lag_ns = lag,
                .stat_idle_ns = r->stat_idle_ns,
                .time_ns = r->time_ns,
        };
        return l->span_ns;
}

void cpuidle_lag_sleep(CpuidleLag *l, uint64_t now_ns) {
        l->seen_ns = now_ns;
}
