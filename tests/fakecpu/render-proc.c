/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * /proc/cpuinfo, interrupts and stat. Rendered whole when a reader begins at offset 0 and kept for its
 * further reads, as a seq_file does in one sitting; the interrupt table of 512 CPUs is some 10,000 numbers.
 */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "node.h"
#include "registers.h"

static const char *or_profile(const char *given, const char *profile) {
        return given[0] == '\0' ? profile : strcmp(given, "none") == 0 ? "" : given;
}

static void render_cpuinfo_cpu(const Machine *m, const Cpu *cpu, Buf *b) {
        const Profile *p = m->profile;
        unsigned siblings = 0, cores = 0;
        uint64_t khz = (uint64_t) cpu->c[CPU_APERF].param / 1000000;
        uint32_t leaf[4];

        for (unsigned i = 0; i < m->n_cpus; i++) {
                bool here = m->cpus[i].package == cpu->package && m->cpus[i].online;

                siblings += here;
                cores += here && m->cpus[i].smt == 0;
        }
        cpuid_read(m, cpu, 0xb, 0, leaf);
        buf_printf(b,
                "processor\t: %u\nvendor_id\t: %s\ncpu family\t: %u\nmodel\t\t: %u\nmodel name\t: %s\n",
                cpu->id, p->vendor, p->family, p->model, or_profile(m->scenario->brand, p->brand));
        buf_printf(b,
                "stepping\t: %" PRIu64 "\nmicrocode\t: 0x%" PRIx64 "\ncpu MHz\t\t: %" PRIu64 ".%03" PRIu64
                "\n",
                m->stepping, m->microcode, khz / 1000, khz % 1000);
        buf_printf(b,
                "cache size\t: 22528 KB\nphysical id\t: %u\nsiblings\t: %u\ncore id\t\t: %u\ncpu cores\t: "
                "%u\n",
                cpu->package, siblings, cpu->core_id, cores);
        buf_printf(b,
                "apicid\t\t: %u\ninitial apicid\t: %u\nfpu\t\t: yes\nfpu_exception\t: yes\ncpuid level\t: "
                "%u\nwp\t\t: yes\n",
                leaf[3], leaf[3], p->max_leaf);
        buf_printf(b, "flags\t\t: %s%s\nbugs\t\t: %s\n", p->flags, m->hypervisor ? " hypervisor" : "",
                or_profile(m->scenario->bugs, p->bugs));
        buf_printf(b, "bogomips\t: %" PRIu64 ".00\nclflush size\t: 64\ncache_alignment\t: 64\n",
                m->base_mhz * 2);
        buf_printf(b, "address sizes\t: 46 bits physical, 48 bits virtual\npower management:\n\n");
}

static void interrupts_row(
        const Machine *m, const char *label, int counter, const char *text, int64_t t_ns, Buf *b) {
        buf_printf(b, "%s", label);
        for (unsigned i = 0; i < m->n_cpus; i++)
                if (m->cpus[i].online)
                        buf_u64(b,
                                counter < 0 ? 0
                                            : (uint32_t) cpu_counter(&m->cpus[i], (unsigned) counter, t_ns),
                                11);
        buf_printf(b, "%s\n", text);
}

static int render_interrupts(const Machine *m, int64_t t_ns, Buf *b) {
        static const struct {
                const char *label;
                int counter;
                const char *text;
        } rows[] = {
                { "  24:", CPU_DEV, " IR-PCI-MSI 524288-edge      eth0-TxRx-0" },
                { " NMI:", CPU_NMI, "   Non-maskable interrupts" },
                { " LOC:", CPU_LOC, "   Local timer interrupts" },
                { " SPU:", -1, "   Spurious interrupts" },
                { " PMI:", -1, "   Performance monitoring interrupts" },
                { " IWI:", -1, "   IRQ work interrupts" },
                { " RTR:", -1, "   APIC ICR read retries" },
                { " RES:", CPU_RES, "   Rescheduling interrupts" },
                { " CAL:", CPU_CAL, "   Function call interrupts" },
                { " TLB:", -1, "   TLB shootdowns" },
                { " TRM:", -1, "   Thermal event interrupts" },
                { " MCE:", -1, "   Machine check exceptions" },
        };

        buf_printf(b, "      ");
        for (unsigned i = 0; i < m->n_cpus; i++)
                if (m->cpus[i].online)
                        buf_printf(b, "CPU%-8u", m->cpus[i].id);
        buf_printf(b, "\n");
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                interrupts_row(m, rows[i].label, rows[i].counter, rows[i].text, t_ns, b);
        buf_printf(b, " ERR:          7\n MIS:          3\n");
        interrupts_row(m, " PIN:", -1, "   Posted-interrupt notification event", t_ns, b);
        return 0;
}

/* user nice system idle iowait irq softirq steal guest guest_nice; idle is what the others leave of the
 * uptime. */
static void stat_times(const Cpu *cpu, int64_t t_ns, uint64_t out[8]) {
        static const unsigned order[8] = { CPU_USER, CPU_NICE, CPU_SYSTEM, CPU_N, CPU_IOWAIT, CPU_HIRQ,
                CPU_SOFTIRQ, CPU_STEAL };
        uint64_t used = 0, total = 10000000 + (uint64_t) (t_ns / (NANO / MACHINE_HZ));

        for (unsigned i = 0; i < 8; i++)
                if (order[i] != CPU_N)
                        used += out[i] = cpu_counter(cpu, order[i], t_ns);
        out[3] = total > used ? total - used : 0;
}

static void stat_line(Buf *b, const uint64_t times[8]) {
        for (unsigned i = 0; i < 8; i++) {
                buf_add(b, " ", 1);
                buf_u64(b, times[i], 0);
        }
        buf_printf(b, " 0 0\n");
}

static int render_stat(const Machine *m, int64_t t_ns, Buf *b) {
        uint64_t sum[8] = {}, times[8], irqs = 0;

        for (unsigned i = 0; i < m->n_cpus; i++) {
                if (!m->cpus[i].online)
                        continue;
                stat_times(&m->cpus[i], t_ns, times);
                for (unsigned k = 0; k < 8; k++)
                        sum[k] += times[k];
                irqs += cpu_irqs(&m->cpus[i], t_ns);
        }
        buf_printf(b, "cpu ");
        stat_line(b, sum);
        for (unsigned i = 0; i < m->n_cpus; i++) {
                if (!m->cpus[i].online)
                        continue;
                stat_times(&m->cpus[i], t_ns, times);
                buf_printf(b, "cpu%u", m->cpus[i].id);
                stat_line(b, times);
        }
        buf_printf(b, "intr %" PRIu64 " 0\nctxt %" PRIu64 "\nbtime 1700000000\nprocesses 12345\n", irqs,
                irqs * 2);
        buf_printf(b, "procs_running 1\nprocs_blocked 0\nsoftirq %" PRIu64 " 0 0 0 0 0 0 0 0 0 0\n", irqs);
        return 0;
}

int proc_render(Machine *m, Node n, int64_t t_ns, Buf *b) {
        switch (n.c) {
        case PROC_CPUINFO:
                for (unsigned i = 0; i < m->n_cpus; i++)
                        if (m->cpus[i].online)
                                render_cpuinfo_cpu(m, &m->cpus[i], b);
                return 0;
        case PROC_INTERRUPTS:
                return render_interrupts(m, t_ns, b);
        case PROC_STAT:
                return render_stat(m, t_ns, b);
        default:
                return -EINVAL;
        }
}
