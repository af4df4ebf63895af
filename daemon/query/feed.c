/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts lie one behind the other on the time axis, each end of a part being the start of the next, on borders of
 * the coarser of the two; a tick or row belongs to the part its end lies in. Rows are taken up to where the store
 * calls them final when the query begins, so that a minute that is committed meanwhile is still told by its ticks.
 * Where the clock was set back there are rows behind the open minute, too: they follow where it cannot reach them.
 */

#include <errno.h>

#include "cstated/macro.h"

#include "query/feed.h"
#include "query/tier.h"

static void feed_add(Feed *f, StoreTier tier, uint64_t start, uint64_t end) {
        if (start < end && f->n_parts < FEED_PARTS_MAX)
                f->parts[f->n_parts++] = (FeedPart) { .tier = tier, .start_us = start, .end_us = end };
}

static uint64_t round_up(uint64_t v, uint64_t unit) {
        return v / unit * unit + (v % unit > 0 ? unit : 0);
}

static void feed_split(Feed *f, StoreTier tier, uint64_t start, uint64_t end, const StoreFinal finals[3]) {
        const StoreFinal *final = &finals[tier];
        const uint64_t spans[][2] = { { 0, final->end_us }, { final->resume_us, final->resume_end_us } };
        uint64_t unit = tier_length_us(tier);

        for (size_t i = 0; tier != TIER_RAW && i < ARRAY_SIZE(spans); i++) {
                uint64_t first = round_up(MAX(start, spans[i][0]), unit), last = MIN(end, spans[i][1]) / unit * unit;

                if (first >= last)
                        continue;
                feed_split(f, (StoreTier) (tier - 1), start, first, finals);
                feed_add(f, tier, first, last);
                start = last;
        }
        if (tier == TIER_RAW)
                feed_add(f, tier, start, end);
        else
                feed_split(f, (StoreTier) (tier - 1), start, end, finals);
}

int feed_init(Feed *f, StoreReader *r, const StoreScanSpec *spec) {
        StoreFinal finals[3] = {};

        *f = (Feed) { .reader = r, .spec = *spec, .tier = spec->tier };
        for (unsigned t = TIER_1M; t <= (unsigned) spec->tier; t++) {
                int code = store_reader_final(r, (StoreTier) t, &finals[t]);

                if (code < 0)
                        return code;
        }
        /* a time that no store has: nothing is added to it that could overflow */
        feed_split(f, spec->tier, MIN(spec->start_us, (uint64_t) INT64_MAX), MIN(spec->end_us, (uint64_t) INT64_MAX),
                finals);
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
