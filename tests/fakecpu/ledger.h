/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Who read what. Every MSR read, every file opened and read, and for counters the first, last but one and
 * last value served, by client: a test can say what a sample cost, and that a reported count is exactly what
 * was served.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "text.h"

#define LEDGER_CLIENTS_MAX 4096

typedef enum LedgerKind {
        LEDGER_MSR,    /* a: cpu, b: register */
        LEDGER_CPUID,  /* a: cpu, b: leaf */
        LEDGER_IDLE,   /* a: cpu, b: state, c: file of it */
        LEDGER_IRQ,    /* a: cpu */
        LEDGER_ENERGY, /* a: zone */
        LEDGER_FILE,   /* a: class; count = reads, opens apart */
} LedgerKind;

typedef enum LedgerClass {
        CLASS_MSR,
        CLASS_CPUID,
        CLASS_CPU,
        CLASS_TOPOLOGY,
        CLASS_CPUIDLE,
        CLASS_POWERCAP,
        CLASS_CPUINFO,
        CLASS_INTERRUPTS,
        CLASS_STAT,
        CLASS_OTHER,
        CLASS_N,
} LedgerClass;

typedef struct LedgerKey {
        LedgerKind kind;
        uint32_t a, c, client;
        uint64_t b;
} LedgerKey;

typedef struct LedgerEntry {
        LedgerKey key;
        uint64_t count, opens, first, prev, last;
        int64_t first_ns, last_ns;
        bool used;
} LedgerEntry;

typedef struct Client {
        pid_t pid; /* thread id as the kernel names the caller; its process in tgid */
        pid_t tgid;
        uint64_t caps; /* effective capabilities when last looked at */
        int64_t seen_ns;
        char comm[20];
} Client;

typedef struct Ledger {
        LedgerEntry *entries;
        size_t n, size;
        Client clients[LEDGER_CLIENTS_MAX];
        uint32_t n_clients, last_client;
        uint64_t write_opens, pwrites, sysfs_writes;
} Ledger;

/* The client of a request at time t. /proc/PID/status is looked at again where that was longer than
 * max_age_ns ago. */
uint32_t ledger_client(Ledger *l, pid_t pid, int64_t t_ns, int64_t max_age_ns);
/* A value was served. */
void ledger_value(Ledger *l, LedgerKey key, uint64_t value, int64_t t_ns);
void ledger_open(Ledger *l, LedgerClass class, uint32_t client);
void ledger_read(Ledger *l, LedgerClass class, uint32_t client);
void ledger_reset(Ledger *l);
void ledger_free(Ledger *l);
/* The text of ctl/ledger; zone_name maps a zone's number. */
void ledger_print(
        const Ledger *l, const char *(*zone_name)(void *userdata, unsigned zone), void *userdata, Buf *b);
