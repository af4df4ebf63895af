/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A source of counters: one `const SourceOps` table, one opaque instance. Each can fail alone, per CPU and
 * per register, and come back. The sampler asks in this order: probe (what columns could you give? adds them
 * to the layout), open, then read once a tick; close. A source never logs; it fills its SourceStatus.
 *
 * Columns: probe adds with layout_add and sets width, range, scale and source. After layout_finish() the
 * sampler calls open with the finished machine. read() writes values and reasons of its own columns only.
 */

#include "model/machine.h"
#include "model/sample.h"
#include "sampler/local-reads.h"
#include "sampler/status.h"
#include "sampler/sysfs.h"

typedef enum WakePolicy {
        WAKE_LOCAL,
        WAKE_LAZY,
        WAKE_ALWAYS,
} WakePolicy;

/* What a passive source saw of a CPU since its reading before. */
enum {
        ACTIVITY_IRQ_KNOWN = 1 << 0,
        ACTIVITY_IRQ = 1 << 1, /* it took an interrupt */
        ACTIVITY_BUSY_KNOWN = 1 << 2,
        ACTIVITY_BUSY = 1 << 3, /* /proc/stat counted a busy tick */
        ACTIVITY_USAGE_KNOWN = 1 << 4,
        ACTIVITY_USAGE = 1 << 5, /* it left an idle state */
        ACTIVITY_TRACE_KNOWN = 1 << 6,
        ACTIVITY_TRACE = 1 << 7, /* idletrace saw it awake: this alone decides, where it is known */
};

/* What passive sources (which come first) found out in this turn, for the ones that may wake CPUs. By cpu
 * index. */
typedef struct CpuActivity {
        uint8_t evidence; /* ACTIVITY_*, cleared at the turn's start, collected by passive sources */
        bool slept;    /* never left idle since the last tick: reading it remotely would wake it */
        uint32_t busy_permille; /* how much of the interval it was awake, as far as known */
        uint64_t asleep_since_ns; /* the sleep in progress, halted or deeper, began then; 0: awake, or not known */
        /*
         * Remote reads of it in the turn before, and in this one (sources that make them add). Each is at
         * most one function-call interrupt and one idle exit of our own making: no evidence that it woke by
         * itself, or a sleeper that was asked once would be asked for ever.
         */
        uint32_t asked, asking;
} CpuActivity;

/*
 * True where the evidence says the CPU slept through: idletrace saw one and the same sleep at both ends;
 * without it, no interrupt, no busy tick, no idle exit, and the first two are known (a machine without
 * cpuidle has no usage to look at).
 */
bool activity_slept(uint8_t evidence);

typedef struct SourceTurn {
        const Machine *machine;
        Tick *tick;              /* header filled as far as known; values to fill */
        CpuActivity *activity;   /* n_cpus; passive sources fill, others read */
        WakePolicy wake_policy;
        uint64_t now_ns;         /* CLOCK_MONOTONIC at the turn's start */
        uint64_t prev_ns;        /* of the turn before, 0: none */
        uint64_t n_remote_reads; /* sources add */
        uint64_t n_wakeups;      /* reads of sleeping CPUs */
} SourceTurn;

typedef struct Source Source;

typedef struct SourceOps {
        const char *name;
        bool passive; /* read() touches no other CPU */
        /* Allocates the instance and adds its columns to m->layout; m has entities and idle sets filled.
         * Sets *status. <0 only for -ENOMEM. */
        int (*probe)(Sysfs *sysfs, Machine *m, uint8_t index, Source **ret, SourceStatus *status);
        /*
         * Optional: as probe, for an instance that lives on in a new machine (its columns are gone with the
         * old one). Without it an instance is closed and made anew.
         */
        int (*reprobe)(Source *s, Machine *m, SourceStatus *status);
        /*
         * Optional: lends what makes CPUs read counters themselves as they go idle, NULL where this kernel does not
         * (then *why is told, a literal or text of the source's). Lives as long as the source.
         */
        const LocalReads *(*local)(Source *s, const char **why);
        /*
         * Optional: as probe, of a source that can have its counters read that way. *ret stays NULL where it has none
         * to be read so, and probe is called instead.
         */
        int (*probe_local)(Sysfs *sysfs, Machine *m, uint8_t index, const LocalReads *reads, Source **ret,
                SourceStatus *status);
        /*
         * Optional, before open: takes over from an instance of the machine before what it knows of CPUs
         * that are in both (baselines, descriptors). The old one is closed afterwards.
         */
        void (*adopt)(Source *s, const Machine *m, Source *old, const Machine *m_old);
        /* Opens what read needs, against the finished layout. */
        int (*open)(Source *s, const Machine *m);
        /* One turn. A failed value gets a reason, never a made-up number. Returns 1 where the set of columns
         * it could give has changed (re-probe), else 0 or -errno. */
        int (*read)(Source *s, SourceTurn *turn, SourceStatus *status);
        /* Optional, of a passive source: the part of a turn that reaches other CPUs, once it is known which sleep. */
        void (*read_remote)(Source *s, SourceTurn *turn);
        Source *(*close)(Source *s); /* NULL ok; returns NULL */
} SourceOps;

/* Embedded first in each source's own struct. */
struct Source {
        const SourceOps *ops;
        uint8_t index;
        bool is_local; /* probed by probe_local: CPUs read its counters themselves */
};

/* All sources in the order they are read (passive ones first), NULL-terminated; optional ones have fallback
 * twins that say absent. */
extern const SourceOps *const source_table[];
extern const size_t source_table_n;

extern const SourceOps source_ops_cpuidle, source_ops_irq, source_ops_stat, source_ops_idletrace,
        source_ops_msr, source_ops_perf, source_ops_powercap;

/* A column's slots in a tick for tests and sources: NULL where the layout lacks it. */
static inline uint64_t *source_values(
        const SourceTurn *t, FieldId f, uint8_t instance, uint8_t **ret_reasons) {
        const LayoutColumn *c = layout_find(&t->machine->layout, f, instance);
        if (!c)
                return NULL;
        *ret_reasons = t->tick->reasons + c->offset;
        return t->tick->values + c->offset;
}

/* The reason of a value whose reading failed with this errno. */
Reason source_reason(int error);

/* It works (again). */
void source_status_set_ok(SourceStatus *s);
/* Maps an errno of opening or reading to state and hint ("needs CAP_SYS_RAWIO ... then restart cstated"). */
void source_status_set_error(SourceStatus *s, int error, const char *what);
