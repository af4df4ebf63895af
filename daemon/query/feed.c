/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts lie one behind the other on the time axis, each end of a part being the start of the next, on borders of
 * the coarser of the two; a tick or row belongs to the part its end lies in. Rows are taken up to where the store
 * calls them final when the query begins, so that a minute that is committed meanwhile is still told by its ticks.
 */

#include <errno.h>

#include "cstated/macro.h"
#include "cstated/timespan.h"

#include "query/feed.h"

#define MINUTE_US (60 * USEC_PER_SEC)
#define HOUR_US   (3600 * USEC_PER_SEC)

static void feed_add(Feed *f, StoreTier tier, uint64_t start, uint64_t end) {
        if (start < end)
                f->parts[f->n_parts++] = (FeedPart) { .tier = tier, .start_us = start, .end_us = end };
}

static void feed_split(Feed *f, StoreTier tier, uint64_t start, uint64_t end, const uint64_t final_us[3]) {
        static const uint64_t units[] = { [TIER_1M] = MINUTE_US, [TIER_1H] = HOUR_US };
        uint64_t unit, first, last;

        if (tier == TIER_RAW) {
                feed_add(f, tier, start, end);
                return;
        }
        unit = units[tier];
        first = (start + unit - 1) / unit * unit;
        last = MIN(end, final_us[tier]) / unit * unit;
        if (first >= last) {
                feed_split(f, (StoreTier) (tier - 1), start, end, final_us);
                return;
        }
        feed_split(f, (StoreTier) (tier - 1), start, first, final_us);
        feed_add(f, tier, first, last);
        feed_split(f, (StoreTier) (tier - 1), last, end, final_us);
}

int feed_init(Feed *f, StoreReader *r, const StoreScanSpec *spec) {
        uint64_t final_us[3] = {};

        *f = (Feed) { .reader = r, .spec = *spec, .tier = spec->tier };
        for (unsigned t = TIER_1M; t <= (unsigned) spec->tier; t++) {
                int code = store_reader_final(r, (StoreTier) t, &final_us[t]);

                if (code < 0)
                        return code;
        }
        feed_split(f, spec->tier, spec->start_us, spec->end_us, final_us);
        return 0;
}

void feed_deinit(Feed *f) {
        f->scan = store_scan_free(f->scan);
}

int feed_next(Feed *f, const StoreBlock **ret) {
        for (; f->at < f->n_parts; f->at++) {
                int r = 0;

                if (!f->scan) {
                        StoreScanSpec spec = f->spec;

                        spec.tier = f->tier = f->parts[f->at].tier;
                        spec.start_us = f->parts[f->at].start_us;
                        spec.end_us = f->parts[f->at].end_us;
                        r = store_scan_new(f->reader, &spec, &f->scan);
                }
                if (r == 0)
                        r = store_scan_next(f->scan, ret);
                if (r != 0)
                        return r;
                f->scan = store_scan_free(f->scan);
        }
        return 0;
}
