/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How old is old. Age is measured by a clock that may be wrong: a bad RTC can say 2036 for the minutes before the
 * network corrects it, and expiry by that clock would leave nothing of the history. So a clock that runs on from the
 * history is believed, and so is one that was set back, which only keeps more; one that went forward by more than a
 * day has to be kept to for a day of samples first. Until then age is measured from where the history ended. A
 * machine that was off for a year keeps its old history for a day longer than it might.
 *
 * The newest time that was believed stands in the meta table, else a restart would take the wrong clock's own
 * minutes for the end of the history.
 */

#include <errno.h>

#include "store/writer.h"

#define DAY_US       86400000000ULL
#define SAVE_US      3600000000ULL /* of either figure a restart may forget that much */
#define SPAN_US_MAX  120000000ULL  /* of a minute: a step of the clock in it is no time that passed */

static uint64_t apart(uint64_t a, uint64_t b) {
        return a > b ? a - b : b - a;
}

static bool runs_on(const RetainClock *c, uint64_t now_us) {
        return c->believed_us == 0 || now_us <= c->believed_us + DAY_US;
}

uint64_t retain_now(const Store *s, uint64_t now_us) {
        return runs_on(&s->clock, now_us) ? now_us : s->clock.believed_us;
}

void retain_clock_note(Store *s, uint64_t t0, uint64_t t1) {
        RetainClock *c = &s->clock;

        if (runs_on(c, t1)) {
                c->believed_us = MAX(c->believed_us, t1);
                c->ahead_us = 0;
        } else {
                /* another wrong clock has to last a day of its own */
                if (apart(t1, c->last_us) > DAY_US)
                        c->ahead_us = 0;
                c->ahead_us += MIN(t1 - t0, SPAN_US_MAX);
                if (c->ahead_us >= DAY_US) {
                        c->believed_us = t1;
                        c->ahead_us = 0;
                }
        }
        c->last_us = t1;
}

static int meta_put(Store *s, const char *key, uint64_t value) {
        sqlite3_stmt *q = s->stmts[STMT_META_PUT];
        int r = db_bind(q, "ti", key, (int64_t) value);

        return r < 0 ? r : db_run(q);
}

int retain_clock_save(Store *s) {
        RetainClock *c = &s->clock;
        int r;

        if (apart(c->believed_us, c->saved_believed_us) < SAVE_US && apart(c->ahead_us, c->saved_ahead_us) < SAVE_US)
                return 0;
        r = meta_put(s, "retain_believed", c->believed_us);
        if (r == 0)
                r = meta_put(s, "retain_ahead", c->ahead_us);
        if (r == 0) {
                c->saved_believed_us = c->believed_us;
                c->saved_ahead_us = c->ahead_us;
        }
        return r;
}

int retain_clock_load(Store *s) {
        RetainClock *c = &s->clock;
        int64_t believed = 0, ahead = 0, last = 0;
        int r;

        r = db_query_i64(
                s->db, "SELECT coalesce((SELECT value FROM meta WHERE key = 'retain_believed'), 0)", &believed);
        if (r == 0)
                r = db_query_i64(
                        s->db, "SELECT coalesce((SELECT value FROM meta WHERE key = 'retain_ahead'), 0)", &ahead);
        if (r == 0)
                r = db_query_i64(s->db,
                        "SELECT coalesce((SELECT t1 FROM chunk ORDER BY seq DESC LIMIT 1),"
                        " (SELECT max(id) / 8192 * 60000000 FROM sys_1m), 0)",
                        &last);
        if (r < 0)
                return r;
        if (believed <= 0)
                believed = last;
        if (believed > 0 || c->believed_us == 0)
                *c = (RetainClock) {
                        .believed_us = (uint64_t) MAX(believed, 0),
                        .ahead_us = (uint64_t) MAX(ahead, 0),
                        .last_us = (uint64_t) MAX(last, 0),
                };
        c->saved_believed_us = c->saved_ahead_us = 0; /* whatever file it was: this one is told anew */
        return 0;
}
