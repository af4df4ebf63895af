/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading the registers of one entity: their slots, the stamp beside them, what it cost. A CPU that took longer than
 * SLOW_NS is left alone for a while, and what it answered is dropped: nobody knows when it was true.
 */

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#include "cstated/macro.h"
#include "sampler/msr-turn.h"

#define NS_PER_S         1000000000ull
#define SLOW_NS          (100ull * 1000000ull)
#define RETRY_NS         (30 * NS_PER_S)
#define BACKOFF_FIRST_NS (8 * NS_PER_S)
#define BACKOFF_LEVELS   3 /* 8, 16, 32, 60 s */
#define BACKOFF_MAX_NS   (60 * NS_PER_S)

static uint64_t now_ns(void) {
        struct timespec ts;

        (void) clock_gettime(CLOCK_MONOTONIC, &ts);
        return (uint64_t) ts.tv_sec * NS_PER_S + (uint64_t) ts.tv_nsec;
}

/* Gives an entity's slots a reason; one that failed says so until it has been read again, asleep or not. */
static void set_reason(MsrSweep *s, Scope scope, uint32_t e, Reason reason) {
        MSR_FOR_EACH_COLUMN(c, s, scope) {
                MsrSlot *slot = &c->slots[e];
                bool keep =
                        reason == REASON_ASLEEP && slot->reason != REASON_NONE && slot->reason != REASON_GAP;

                if (slot->present && !keep)
                        slot->reason = (uint8_t) reason;
        }
}

void msr_turn_skip(MsrTurn *t, Scope scope, uint32_t e, Reason reason) {
        MsrStamp *stamp = &t->s->stamps[scope][e];

        set_reason(t->s, scope, e, reason);
        stamp->tsc_reason = stamp->ns_reason = (uint8_t) reason;
}

static void account(MsrTurn *t, uint32_t cpu) {
        uint32_t core = t->m->cpus[cpu].core;

        if (t->m->cpus[cpu].id == t->own_cpu)
                return;
        t->turn->n_remote_reads++;
        t->turn->activity[cpu].asking++;
        if (!t->turn->activity[cpu].slept || t->s->woken[core])
                return;
        t->s->woken[core] = true;
        t->turn->n_wakeups++;
}

int msr_turn_read_slot(MsrTurn *t, MsrColumn *c, uint32_t e, uint32_t cpu) {
        const MsrConvert *convert = &t->s->set.convert[t->m->cpus[cpu].package];
        MsrSlot *slot = &c->slots[e];
        uint64_t raw;
        int r;

        if (slot->retry_ns > t->ns) {
                slot->reason = REASON_ERROR;
                return 0;
        }
        account(t, cpu);
        r = t->s->read(t->s->userdata, cpu, c->r.reg, &raw);
        if (r == 0) {
                slot->retry_ns = 0;
                slot->reason = (uint8_t) msr_decode(convert, &c->r, raw, &slot->value);
                return 0;
        }
        slot->reason = (uint8_t) source_reason(-r);
        if (slot->reason == REASON_DENIED)
                t->s->denied = -r;
        if (slot->reason != REASON_ERROR)
                return r;
        t->s->has_failed = true;
        slot->retry_ns = t->ns + RETRY_NS;
        return 0;
}

void msr_turn_split_c6(MsrTurn *t, uint32_t core) {
        MsrColumn *c6 = msr_set_find(&t->s->set, FIELD_C6), *c7 = msr_set_find(&t->s->set, FIELD_C7);

        if (!c6 || !c7 || !c6->slots[core].holds_c7 || !c7->slots[core].present)
                return;
        if (c6->slots[core].reason != REASON_NONE)
                return;
        if (c7->slots[core].reason != REASON_NONE)
                c6->slots[core].reason = c7->slots[core].reason;
        else
                c6->slots[core].value -= c7->slots[core].value;
}

static void back_off(MsrSweep *s, uint32_t cpu, uint64_t now) {
        MsrBackoff *b = &s->backoff[cpu];

        b->until_ns = now + MIN(BACKOFF_FIRST_NS << b->level, BACKOFF_MAX_NS);
        if (b->level < BACKOFF_LEVELS)
                b->level++;
}

static int read_tsc(MsrTurn *t, uint32_t cpu, uint64_t *ret) {
        if (t->s->invariant_tsc) {
                *ret = __rdtsc();
                return 0;
        }
        account(t, cpu);
        return t->s->read(t->s->userdata, cpu, MSR_TSC, ret);
}

int msr_turn_read_group(MsrTurn *t, Scope scope, uint32_t e, uint32_t cpu) {
        MsrStamp *stamp = &t->s->stamps[scope][e];
        uint64_t begin_ns = now_ns(), begin_tsc = __rdtsc(), end_ns, end_tsc;
        bool any = false;
        int r;

        MSR_FOR_EACH_COLUMN(c, t->s, scope) {
                if (!c->slots[e].present)
                        continue;
                r = msr_turn_read_slot(t, c, e, cpu);
                if (r < 0) {
                        msr_turn_skip(t, scope, e, source_reason(-r));
                        return r;
                }
                any = true;
        }
        if (!any)
                return 0;
        if (read_tsc(t, cpu, &end_tsc) < 0)
                return -EIO;
        end_ns = now_ns();
        if (end_ns - begin_ns > SLOW_NS) {
                back_off(t->s, cpu, end_ns);
                msr_turn_skip(t, scope, e, REASON_GAP);
                return -EAGAIN;
        }
        t->s->backoff[cpu].level = 0;
        *stamp = (MsrStamp){
                .tsc = t->s->invariant_tsc ? begin_tsc + (end_tsc - begin_tsc) / 2 : end_tsc,
                .ns = begin_ns + (end_ns - begin_ns) / 2,
        };
        return 0;
}

bool msr_turn_is_late(const MsrTurn *t) {
        return now_ns() > t->deadline_ns;
}

/* Half of the interval is the turn's, a quarter the sweep's at least: a first turn opens files for long. */
static uint64_t deadline(const SourceTurn *turn, uint64_t begin_ns) {
        uint64_t interval = turn->tick->h.interval_ns;

        return interval ? MAX(turn->now_ns + interval / 2, begin_ns + interval / 4) : UINT64_MAX;
}

void msr_turn_begin(MsrTurn *t, MsrSweep *s, SourceTurn *turn) {
        int own = sched_getcpu();

        *t = (MsrTurn){
                .s = s,
                .turn = turn,
                .m = turn->machine,
                .tsc = __rdtsc(),
                .ns = now_ns(),
                .own_cpu = own < 0 ? UINT32_MAX : (uint32_t) own,
        };
        t->deadline_ns = deadline(turn, t->ns);
        for (uint32_t i = 0; i < t->m->n_cpus; i++)
                s->usable[i] = s->backoff[i].until_ns <= t->ns;
        memset(s->woken, 0, t->m->n_cores * sizeof(bool));
        s->denied = 0;
}
