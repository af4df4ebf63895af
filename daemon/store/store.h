/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One sqlite file of history (docs/database.md). The Store is the one writer; a StoreReader is a read-only view of
 * a file,
 * with
 * the writer's open minute where the writer lives in the same process. Nobody else opens the file.
 *
 * Time in the store is microseconds UTC; order is by sequence, since a clock can be set back.
 */

#include "model/sample.h"

typedef struct StoreConfig {
        const char *path;        /* the database */
        const char *runtime_dir; /* where the open minute lives; NULL: beside the database */
        uint64_t raw_retention_usec, minute_retention_usec, hour_retention_usec;
        uint64_t max_size_bytes;
        uint64_t durable_head_usec; /* 0: off */
        uint64_t ring_bytes;        /* of packed minutes that wait in memory while the file is in trouble */
        /* Called now and then while an old schema is migrated (EXTEND_TIMEOUT_USEC=); NULL ok. */
        void (*progress)(void *userdata);
        void *userdata;
} StoreConfig;

#define STORE_CONFIG_INIT { \
                .raw_retention_usec = 3ULL * 86400 * 1000000, \
                .minute_retention_usec = 30ULL * 86400 * 1000000, \
                .hour_retention_usec = 730ULL * 86400 * 1000000, \
                .max_size_bytes = 2ULL << 30, \
                .ring_bytes = 32ULL << 20, \
        }

typedef enum StoreTier {
        TIER_RAW,
        TIER_1M,
        TIER_1H,
} StoreTier;
const char *store_tier_name(StoreTier t); /* "raw", "1m", "1h" */

typedef struct Store Store;

enum {
        STORE_E_NEWER = 1, /* written by a newer version: untouched; exit 78 */
        STORE_E_FOREIGN,   /* not a cstated database (application_id): untouched */
        STORE_E_OLDER,     /* readers only: the daemon has to migrate it first */
};
/*
 * Opens or creates; migrates older schemas; a damaged file is moved aside under a dated name and a new one begun
 * (store_figures tells). -errno where the directory cannot be written: then the Store still comes back in *ret, keeps
 * ticks in its bounded ring and retries (degraded); NULL only for -ENOMEM, -EBUSY (another process writes it) and
 * STORE_E_*.
 */
int store_open(const StoreConfig *c, uint64_t now_us, Store **ret);
Store *store_close(Store *s); /* commits the open minute first; NULL ok */
DEFINE_CLEANUP(Store *, store_close);

/* New retention, size and DurableHead from c; the rest of it is ignored. */
void store_set_limits(Store *s, const StoreConfig *c);

/* A new machine: the open minute ends, a topo row begins. m is borrowed for the call. */
int store_set_machine(Store *s, const Machine *m, uint64_t now_us);
/*
 * One sample, into the open minute; commits with the last one of a wall minute. Disk trouble is not an error here (the
 * ring keeps it, figures say so); -ENOMEM only.
 */
int store_append(Store *s, const Sample *sample);
/*
 * Readers in this process see it at once; it is in the file within seconds. Of a kind EVENT_KIND_MAX a minute are
 * kept, the others are counted (figures, a row that says how many). -ENOMEM only.
 */
int store_event(Store *s, uint64_t time_us, const char *kind, int64_t cpu, const char *text);
/* Ends the open minute now (SIGTERM, hotplug, clock step). */
int store_flush(Store *s);
/* A bounded piece of housekeeping (expiry, incremental vacuum, checkpoint): 1 where more is left. */
int store_maintain(Store *s, uint64_t now_us);

typedef struct StoreLabel {
        char name[65];
        uint64_t start_us, end_us; /* end 0: still open */
        char *meta;                /* JSON object text or NULL */
} StoreLabel;
/* A label is a set of windows of the same name. */
int store_label_add(Store *s, const StoreLabel *l);
int store_label_remove(Store *s, const char *name); /* -ENOENT */

typedef struct StoreTierFigures {
        uint64_t rows, oldest_us, newest_us;
} StoreTierFigures;

typedef struct StoreFigures {
        char path[256];
        bool degraded;
        char problem[160];        /* "database or disk is full: ...", "" if none */
        uint64_t bytes, wal_bytes;
        uint64_t last_commit_us;
        uint64_t commits, ticks, ticks_lost, ring_ticks; /* lost: pushed out of the ring while degraded */
        uint64_t events_dropped;  /* more of a kind in a minute than are kept */
        uint64_t head_ticks;      /* in the open minute */
        uint64_t adopted_ticks;   /* taken over from a process that died */
        char head_problem[160];   /* why the open minute is in memory only, "" if it is a file */
        uint64_t bytes_written;   /* by us since start, for bytes an hour */
        StoreTierFigures tier[3];
        uint32_t metrics_left_out; /* columns that the tables of minutes and hours have no room for */
        uint64_t clock_ahead_us;  /* by which the clock went forward, while retention by age does not believe it */
        char moved_aside[256];    /* name of a damaged file moved away at open, "" if none */
} StoreFigures;
void store_figures(Store *s, StoreFigures *ret);
/* The part of it that costs nothing, for every tick: whether it is degraded, and figures.problem (borrowed). */
bool store_is_degraded(const Store *s, const char **ret_problem);

/* ---- reading ---- */

typedef struct StoreReader StoreReader;
/* live: the writer in this process (its open minute is included) or NULL. STORE_E_* as store_open; -ENOENT. */
int store_reader_open(const char *path, Store *live, StoreReader **ret);
StoreReader *store_reader_close(StoreReader *r);
DEFINE_CLEANUP(StoreReader *, store_reader_close);
/* Time budget of the statements that follow, from now; 0: none. Past it calls return -ETIME. */
void store_reader_set_deadline(StoreReader *r, uint64_t usec);

/* Which fields over which window. */
typedef struct StoreScanSpec {
        /* half-open; a tick belongs to the window its end lies in: start < end_of_tick <= end */
        uint64_t start_us, end_us;
        StoreTier tier;
        const FieldId *fields;     /* only these are decoded (all their instances) */
        size_t n_fields;
        unsigned no_spread;        /* rollups: 1 << Scope of fields whose m2, min and max are not wanted */
} StoreScanSpec;

/* A run of ticks (raw) or rollup rows (1m, 1h) under one machine. Borrowed until the next call. */
typedef struct StoreBlock {
        const Machine *machine;
        const Layout *layout;   /* of the samples: only columns asked for, all entities */
        uint32_t epoch;
        size_t n;               /* ticks or rollup rows */
        const uint64_t *start_us, *end_us; /* n each */
        const uint64_t *dt_ns;  /* n each: time covered */
        /*
         * raw: values[slot * n + i], reasons likewise, slot as in the layout (column offset + entity).
         * rollups: sums in values; n_ticks[slot * n + i] ticks with a value (0: null, reason says why). Fields
         * FIELD_RATIO_* exist here only. An idle state's field is the state of that index of the CPU's set, as in
         * raw.
         */
        const int64_t *values;
        const uint8_t *reasons;
        const uint32_t *n_ticks; /* NULL for raw */
        /* rollups only: spread over ticks of the value itself; m2 is NAN (and min, max 0) where none is kept: clocks,
           and numerators whose ratio is kept */
        const double *m2;
        const int64_t *min, *max;
} StoreBlock;

typedef struct StoreScan StoreScan;
int store_scan_new(StoreReader *r, const StoreScanSpec *spec, StoreScan **ret);
StoreScan *store_scan_free(StoreScan *s);
DEFINE_CLEANUP(StoreScan *, store_scan_free);
/*
 * 1: *ret is the next block in order of sequence; 0: end; -ETIME past the deadline. Holds no transaction between
 * calls.
 * A chunk that is damaged is passed over (a gap).
 */
int store_scan_next(StoreScan *s, const StoreBlock **ret);

/* Oldest and newest tick of a tier, 0 where empty. */
int store_reader_bounds(StoreReader *r, StoreTier tier, uint64_t *ret_oldest_us, uint64_t *ret_newest_us);
/*
 * Up to when rows of 1m or 1h change no more: a border of the tier, 0 where there are none. What ended later is to be
 * had from finer tiers; but where the clock was set back, or was ahead for a while, rows lie behind the open minute and
 * the one that follows it, in [resume_us, resume_end_us), 0 and 0 where not.
 */
typedef struct StoreFinal {
        uint64_t end_us, resume_us, resume_end_us;
} StoreFinal;

int store_reader_final(StoreReader *r, StoreTier tier, StoreFinal *ret);
/* The newest machine, owned by the reader; NULL where there is none yet. */
int store_reader_machine(StoreReader *r, const Machine **ret);
/*
 * The machine at the beginning of a window, as the file knows it, owned by the reader until a few others were asked
 * for; NULL where the file has nothing of it.
 */
int store_reader_machine_at(StoreReader *r, uint64_t start_us, uint64_t end_us, const Machine **ret);
/* Calls fn for each label (name NULL: all), newest start first; fn returns <0 to stop. */
int store_reader_labels(
        StoreReader *r, const char *name, int (*fn)(void *userdata, const StoreLabel *l), void *userdata);
typedef struct StoreEvent {
        uint64_t id, time_us;
        int64_t cpu;
        const char *kind, *text;
} StoreEvent;
int store_reader_events(StoreReader *r, uint64_t start_us, uint64_t end_us, const char *kind, size_t max,
        int (*fn)(void *userdata, const StoreEvent *e), void *userdata);
