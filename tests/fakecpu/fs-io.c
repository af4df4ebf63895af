/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Reads and writes. All is direct I/O: a read asks us, always. A text is rendered when it is read from
 * offset 0 and kept with the open file for the rest, as the kernel's own sysfs and seq files do. A register
 * is answered at once, or after its scenario's delay without holding up anybody else.
 */

#include <errno.h>
#include <string.h>

#include "fs-internal.h"
#include "machine-apply.h"
#include "registers.h"

#define MSR_BATCH 64 /* one read may ask for the same register many times over */

static void msr_answer(
        Fs *fs, fuse_req_t req, Cpu *cpu, uint64_t reg, size_t size, uint32_t client, int64_t now) {
        uint64_t values[MSR_BATCH], n = MIN(size / 8, (size_t) MSR_BATCH);
        int64_t delay;

        if (!node_present(fs->m, (Node){ .kind = NODE_MSR, .a = cpu->id })) {
                (void) fuse_reply_err(req, ENXIO);
                return;
        }
        machine_touch(fs->m, cpu, now);
        int r = msr_fault(fs->m, cpu, reg, &delay);
        for (size_t i = 0; i < n && r == 0; i++)
                r = msr_read(fs->m, cpu, reg, now, &values[i]);
        ledger_value(&fs->ledger,
                (LedgerKey){ .kind = LEDGER_MSR, .a = cpu->id, .b = reg, .client = client },
                r == 0 ? values[n - 1] : 0, now);
        if (r != 0)
                (void) fuse_reply_err(req, -r);
        else
                (void) fuse_reply_buf(req, (const char *) values, n * 8);
}

int64_t fs_run_delayed(Fs *fs, int64_t now_ns) {
        int64_t next = INT64_MAX;

        for (Delayed **p = &fs->delayed; *p;) {
                Delayed *d = *p;

                if (d->due_ns > now_ns) {
                        next = MIN(next, d->due_ns);
                        p = &d->next;
                        continue;
                }
                *p = d->next;
                fuse_req_interrupt_func(d->req, NULL, NULL);
                msr_answer(fs, d->req, d->cpu, d->reg, d->size, d->client, now_ns);
                free(d);
        }
        return next;
}

/* The reader was killed or signalled: it must not hang here. */
static void delayed_interrupted(fuse_req_t req, void *userdata) {
        Delayed *d = userdata;

        for (Delayed **p = &d->fs->delayed; *p; p = &(*p)->next)
                if (*p == d) {
                        *p = d->next;
                        (void) fuse_reply_err(req, EINTR);
                        free(d);
                        return;
                }
}

static void msr_delay(
        Fs *fs, fuse_req_t req, Cpu *cpu, uint64_t reg, size_t size, uint32_t client, int64_t due_ns) {
        Delayed *d = malloc(sizeof(*d));

        if (!d) {
                (void) fuse_reply_err(req, ENOMEM);
                return;
        }
        *d = (Delayed){
                .next = fs->delayed,
                .fs = fs,
                .req = req,
                .cpu = cpu,
                .reg = reg,
                .size = size,
                .client = client,
                .due_ns = due_ns,
        };
        fs->delayed = d;
        fuse_req_interrupt_func(req, delayed_interrupted, d);
}

static void read_msr(
        Fs *fs, fuse_req_t req, Node n, const OpenFile *f, size_t size, uint64_t reg, int64_t now) {
        Cpu *cpu = machine_cpu(fs->m, n.a);
        uint32_t client = ledger_client(&fs->ledger, fuse_req_ctx(req)->pid, now, INT64_MAX);
        int64_t delay;

        ledger_read(&fs->ledger, f->class, client);
        if (!cpu || !node_present(fs->m, n)) {
                (void) fuse_reply_err(req, ENXIO);
                return;
        }
        if (size % 8 != 0 || size == 0) {
                (void) fuse_reply_err(req, EINVAL);
                return;
        }
        (void) msr_fault(fs->m, cpu, reg, &delay);
        if (delay > 0)
                msr_delay(fs, req, cpu, reg, size, client, now + delay);
        else
                msr_answer(fs, req, cpu, reg, size, client, now);
}

static void read_cpuid(
        Fs *fs, fuse_req_t req, Node n, const OpenFile *f, size_t size, uint64_t at, int64_t now) {
        const Cpu *cpu = machine_cpu(fs->m, n.a);
        uint32_t regs[4];

        ledger_read(&fs->ledger, f->class, f->client);
        if (!cpu || !node_present(fs->m, n)) {
                (void) fuse_reply_err(req, ENXIO);
                return;
        }
        if (size % 16 != 0 || size == 0) {
                (void) fuse_reply_err(req, EINVAL);
                return;
        }
        cpuid_read(fs->m, cpu, (uint32_t) at, (uint32_t) (at >> 32), regs);
        ledger_value(&fs->ledger,
                (LedgerKey){ .kind = LEDGER_CPUID, .a = n.a, .b = (uint32_t) at, .client = f->client },
                regs[0], now);
        (void) fuse_reply_buf(req, (const char *) regs, sizeof(regs));
}

static void ledger_text(Fs *fs, Node n, const OpenFile *f, uint64_t value, bool counts, int64_t now) {
        Ledger *l = &fs->ledger;

        if (n.kind == NODE_PROC_FILE && n.c == PROC_INTERRUPTS)
                for (unsigned i = 0; i < fs->m->n_cpus; i++)
                        if (fs->m->cpus[i].online)
                                ledger_value(l,
                                        (LedgerKey){ .kind = LEDGER_IRQ,
                                                .a = fs->m->cpus[i].id,
                                                .client = f->client },
                                        cpu_irqs(&fs->m->cpus[i], now), now);
        if (!counts)
                return;
        if (n.kind == NODE_STATE_FILE)
                ledger_value(l,
                        (LedgerKey){
                                .kind = LEDGER_IDLE, .a = n.a, .b = n.b, .c = n.c, .client = f->client },
                        value, now);
        else if (n.kind == NODE_ZONE_FILE)
                ledger_value(
                        l, (LedgerKey){ .kind = LEDGER_ENERGY, .a = n.b, .client = f->client }, value, now);
}

static int render_text(Fs *fs, Node n, OpenFile *f, int64_t now) {
        uint64_t value = 0;
        bool counts = false;
        int r = 0;

        f->text.len = 0;
        if (n.kind == NODE_CTL_FILE)
                control_render(fs->m, &fs->ledger, n.c, now, &f->text);
        else
                r = node_render(fs->m, n, now, &f->text, &value, &counts);
        if (r == 0 && f->text.failed)
                return -ENOMEM;
        if (r == 0)
                ledger_text(fs, n, f, value, counts, now);
        return r;
}

void fs_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi) {
        Fs *fs = fs_of(req);
        OpenFile *f = (OpenFile *) (uintptr_t) fi->fh;
        Node n = node_of_ino(ino);
        int64_t now = fs_now(fs);

        if (n.kind == NODE_MSR) {
                read_msr(fs, req, n, f, size, (uint64_t) off, now);
                return;
        }
        if (n.kind == NODE_CPUID) {
                read_cpuid(fs, req, n, f, size, (uint64_t) off, now);
                return;
        }
        if (n.kind != NODE_CTL_FILE && off == 0)
                ledger_read(&fs->ledger, f->class, f->client);
        int r = off == 0 ? render_text(fs, n, f, now) : 0;
        if (r < 0) {
                (void) fuse_reply_err(req, -r);
                return;
        }
        size_t from = MIN((size_t) off, f->text.len);
        (void) fuse_reply_buf(req, f->text.data + from, MIN(size, f->text.len - from));
}

/* "0" and "1" to cpuN/online. */
static int write_online(Fs *fs, unsigned id, const char *data, size_t size, int64_t now) {
        char line[64];

        if (size == 0 || (data[0] != '0' && data[0] != '1'))
                return -EINVAL;
        int n = snprintf(line, sizeof(line), "%s cpu=%u", data[0] == '0' ? "offline" : "online", id);
        return control_set(fs->m, line, (size_t) n, now);
}

static int write_node(Fs *fs, Node n, const char *data, size_t size, int64_t now) {
        Cpu *cpu = machine_cpu(fs->m, n.a);

        switch ((int) n.kind) {
        case NODE_CTL_FILE:
                if (n.c == CTL_RESET) {
                        ledger_reset(&fs->ledger);
                        for (unsigned i = 0; i < fs->m->n_cpus; i++)
                                fs->m->cpus[i].wakes_caused = 0;
                        return 0;
                }
                return n.c == CTL_SET ? control_set(fs->m, data, size, now) : -EPERM;
        case NODE_MSR:
                fs->ledger.pwrites++;
                return -EPERM;
        case NODE_CPU_FILE:
                fs->ledger.sysfs_writes++;
                return write_online(fs, n.a, data, size, now);
        case NODE_STATE_FILE:
                fs->ledger.sysfs_writes++;
                if (!cpu || n.c != STATE_FILE_DISABLE || size == 0 || n.b >= SCENARIO_STATES_MAX)
                        return -EACCES;
                cpu->disabled[n.b] = data[0] != '0';
                return 0;
        default:
                return -EPERM;
        }
}

void fs_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t off,
        struct fuse_file_info *fi) {
        Fs *fs = fs_of(req);
        int r = write_node(fs, node_of_ino(ino), data, size, fs_now(fs));

        if (r < 0) {
                (void) fuse_reply_err(req, -r);
                return;
        }
        /* Whoever wrote sees the change when the write returns. */
        if (fs_collect(fs))
                inval_send(fs->inval, req, size);
        else
                (void) fuse_reply_write(req, size);
}
