/* SPDX-License-Identifier: GPL-2.0-or-later */

/* An open-addressing table that grows; a client is a thread and the name it had when it last opened
 * something. */

#include <inttypes.h>
#include <string.h>

#include "ledger.h"

static const char *const class_names[CLASS_N] = { [CLASS_MSR] = "msr",
        [CLASS_CPUID] = "cpuid",
        [CLASS_CPU] = "cpu",
        [CLASS_TOPOLOGY] = "topology",
        [CLASS_CPUIDLE] = "cpuidle",
        [CLASS_POWERCAP] = "powercap",
        [CLASS_CPUINFO] = "cpuinfo",
        [CLASS_INTERRUPTS] = "interrupts",
        [CLASS_STAT] = "stat",
        [CLASS_OTHER] = "other" };

/* Order of node.h's STATE_FILE_*. */
static const char *const idle_names[] = { "name", "desc", "latency", "residency", "disable", "usage", "time",
        "above", "below", "rejected", "power", "default_status" };

static void client_read(Client *c) {
        char path[64], line[256];
        unsigned long long caps;

        (void) snprintf(path, sizeof(path), "/proc/%d/status", (int) c->pid);
        _cleanup_(fclosep) FILE *f = fopen(path, "re");
        while (f && fgets(line, sizeof(line), f)) {
                if (sscanf(line, "Name:\t%19[^\n]", c->comm) == 1) {
                        for (char *p = c->comm; *p != '\0'; p++)
                                if (*p == ' ' || *p == '\t')
                                        *p = '_';
                } else if (sscanf(line, "CapEff:\t%llx", &caps) == 1) {
                        c->caps = caps;
                        break;
                } else
                        (void) sscanf(line, "Tgid:\t%d", &c->tgid);
        }
}

uint32_t ledger_client(Ledger *l, pid_t pid, int64_t t_ns, int64_t max_age_ns) {
        Client now = { .pid = pid, .tgid = pid, .comm = "?", .seen_ns = t_ns };

        if (max_age_ns == INT64_MAX && l->last_client < l->n_clients &&
                l->clients[l->last_client].pid == pid)
                return l->last_client;
        /* Latest first: a process id that came round again is a new client. */
        for (uint32_t i = l->n_clients; i-- > 0;)
                if (l->clients[i].pid == pid) {
                        if (t_ns - l->clients[i].seen_ns < max_age_ns)
                                return l->last_client = i;
                        break;
                }
        client_read(&now);
        for (uint32_t i = l->n_clients; i-- > 0;)
                if (l->clients[i].pid == pid && strcmp(l->clients[i].comm, now.comm) == 0) {
                        l->clients[i] = now;
                        return l->last_client = i;
                }
        if (l->n_clients == LEDGER_CLIENTS_MAX)
                return LEDGER_CLIENTS_MAX - 1;
        l->clients[l->n_clients] = now;
        return l->last_client = l->n_clients++;
}

static uint64_t key_hash(const LedgerKey *k) {
        uint64_t h = ((uint64_t) k->kind << 56 ^ (uint64_t) k->a << 32 ^ (uint64_t) k->client << 16 ^ k->c) ^
                     k->b * 31;

        h *= UINT64_C(0x9e3779b97f4a7c15);
        return h ^ h >> 29;
}

static bool key_equal(const LedgerKey *x, const LedgerKey *y) {
        return x->kind == y->kind && x->a == y->a && x->b == y->b && x->c == y->c && x->client == y->client;
}

static LedgerEntry *slot_find(LedgerEntry *entries, size_t size, const LedgerKey *key) {
        size_t i = key_hash(key) & (size - 1);

        while (entries[i].used && !key_equal(&entries[i].key, key))
                i = (i + 1) & (size - 1);
        return &entries[i];
}

static bool ledger_grow(Ledger *l) {
        size_t size = l->size > 0 ? l->size * 2 : 4096;
        LedgerEntry *entries = calloc(size, sizeof(*entries));

        if (!entries)
                return false;
        for (size_t i = 0; i < l->size; i++)
                if (l->entries[i].used)
                        *slot_find(entries, size, &l->entries[i].key) = l->entries[i];
        free(l->entries);
        l->entries = entries;
        l->size = size;
        return true;
}

static LedgerEntry *ledger_entry(Ledger *l, LedgerKey key) {
        LedgerEntry *e;

        if (l->n * 2 >= l->size && !ledger_grow(l))
                return NULL;
        e = slot_find(l->entries, l->size, &key);
        if (!e->used) {
                *e = (LedgerEntry){ .key = key, .used = true };
                l->n++;
        }
        return e;
}

void ledger_value(Ledger *l, LedgerKey key, uint64_t value, int64_t t_ns) {
        LedgerEntry *e = ledger_entry(l, key);

        if (!e)
                return;
        if (e->count++ == 0) {
                e->first = e->last = value;
                e->first_ns = t_ns;
        }
        e->prev = e->last;
        e->last = value;
        e->last_ns = t_ns;
}

void ledger_open(Ledger *l, LedgerClass class, uint32_t client) {
        LedgerEntry *e = ledger_entry(l, (LedgerKey){ .kind = LEDGER_FILE, .a = class, .client = client });

        if (e)
                e->opens++;
}

void ledger_read(Ledger *l, LedgerClass class, uint32_t client) {
        LedgerEntry *e = ledger_entry(l, (LedgerKey){ .kind = LEDGER_FILE, .a = class, .client = client });

        if (e)
                e->count++;
}

void ledger_reset(Ledger *l) {
        free(l->entries);
        l->entries = NULL;
        l->n = l->size = 0;
        l->write_opens = l->pwrites = l->sysfs_writes = 0;
}

void ledger_free(Ledger *l) {
        ledger_reset(l);
}

/* Strict order of lines: kind, then CPU and register, so that two ledgers can be compared. */
static int entry_compare(const void *a, const void *b) {
        const LedgerKey *x = &(*(const LedgerEntry *const *) a)->key,
                        *y = &(*(const LedgerEntry *const *) b)->key;
        const uint64_t left[] = { x->kind, x->a, x->b, x->c, x->client },
                       right[] = { y->kind, y->a, y->b, y->c, y->client };

        for (size_t i = 0; i < ARRAY_SIZE(left); i++)
                if (left[i] != right[i])
                        return left[i] < right[i] ? -1 : 1;
        return 0;
}

static void print_what(const LedgerKey *k, const char *(*zone_name)(void *userdata, unsigned zone),
        void *userdata, Buf *b) {
        switch (k->kind) {
        case LEDGER_MSR:
                buf_printf(b, "msr %u 0x%" PRIx64, k->a, k->b);
                break;
        case LEDGER_CPUID:
                buf_printf(b, "cpuid %u 0x%" PRIx64, k->a, k->b);
                break;
        case LEDGER_IDLE:
                buf_printf(b, "idle %u state%" PRIu64 " %s", k->a, k->b,
                        k->c < ARRAY_SIZE(idle_names) ? idle_names[k->c] : "?");
                break;
        case LEDGER_IRQ:
                buf_printf(b, "irq %u", k->a);
                break;
        case LEDGER_ENERGY:
                buf_printf(b, "energy %s", zone_name(userdata, k->a));
                break;
        case LEDGER_FILE:
                buf_printf(b, "file %s", k->a < CLASS_N ? class_names[k->a] : "?");
                break;
        }
}

void ledger_print(
        const Ledger *l, const char *(*zone_name)(void *userdata, unsigned zone), void *userdata, Buf *b) {
        _cleanup_free_ const LedgerEntry **sorted = calloc(l->n + 1, sizeof(*sorted));
        size_t n = 0;

        for (size_t i = 0; sorted && i < l->size; i++)
                if (l->entries[i].used)
                        sorted[n++] = &l->entries[i];
        if (sorted)
                qsort(sorted, n, sizeof(*sorted), entry_compare);
        for (size_t i = 0; i < n; i++) {
                const LedgerEntry *e = sorted[i];
                const Client *c = &l->clients[e->key.client];

                print_what(&e->key, zone_name, userdata, b);
                buf_printf(b, " %d %s", (int) c->tgid, c->comm);
                if (e->key.kind == LEDGER_FILE)
                        buf_printf(b, " %" PRIu64 " %" PRIu64 "\n", e->opens, e->count);
                else
                        buf_printf(b,
                                " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 "\n",
                                e->count, e->first, e->prev, e->last, e->first_ns, e->last_ns);
        }
        buf_printf(b, "write_opens %" PRIu64 "\npwrites %" PRIu64 "\nsysfs_writes %" PRIu64 "\n",
                l->write_opens, l->pwrites, l->sysfs_writes);
}
