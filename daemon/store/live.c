/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The writer's memory as readers of the same process see it: minutes that wait for the file, then the open
 * one. */

#include "store/writer.h"

bool store_live(const Store *s, uint64_t seq, LiveTicks *ret) {
        TickRows rows;

        for (const Pending *p = s->first; p; p = p->next)
                if (p->seq + p->n > seq) {
                        *ret = (LiveTicks){
                                .seq = p->seq, .epoch = p->epoch, .machine = p->machine, .pending = p};
                        return true;
                }
        rows = head_rows(s->head);
        if (!s->machine || rows.n == 0 || head_owner(s->head)->seq + rows.n <= seq)
                return false;
        *ret = (LiveTicks){
                .seq = head_owner(s->head)->seq,
                .epoch = head_owner(s->head)->epoch,
                .machine = s->machine,
                .rows = rows,
        };
        return true;
}

const PendingEvent *store_live_events(const Store *s) {
        return s->events.first;
}

const Machine *store_live_machine(const Store *s) {
        return s->machine ? s->machine->machine : NULL;
}

bool store_live_bounds(const Store *s, uint64_t *ret_oldest_us, uint64_t *ret_newest_us) {
        TickRows rows = head_rows(s->head);
        bool any = rows.n > 0 || s->first;
        uint64_t oldest = UINT64_MAX, newest = 0;

        for (const Pending *p = s->first; p; p = p->next) {
                oldest = MIN(oldest, p->t0);
                newest = MAX(newest, p->t1);
        }
        if (rows.n > 0) {
                oldest = MIN(oldest, tick_rows_record(&rows, 0)->start_us);
                newest = MAX(newest, tick_rows_record(&rows, rows.n - 1)->end_us);
        }
        if (!any)
                return false;
        *ret_oldest_us = oldest;
        *ret_newest_us = newest;
        return true;
}

unsigned store_generation(const Store *s) {
        return s->generation;
}

void store_suspect(Store *s) {
        s->suspect = true;
}
