/* SPDX-License-Identifier: GPL-2.0-or-later */

/* /sys/devices/system/cpu as the kernel words it: lists, masks, idle states. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "node.h"

static void line(Buf *b, const char *text) {
        buf_add(b, text, strlen(text));
        buf_add(b, "\n", 1);
}

static const char *driver(const Machine *m) {
        if (m->files[FILE_CPUIDLE].hidden)
                return "none";
        return m->scenario->driver[0] != '\0' ? m->scenario->driver : m->profile->driver;
}

static const char *governor(const Machine *m) {
        return m->scenario->governor[0] != '\0' ? m->scenario->governor : "menu";
}

static int render_sys(const Machine *m, unsigned file, Buf *b) {
        IdSet offline = {};

        for (unsigned i = 0; i < m->n_cpus; i++)
                if (!m->cpus[i].online)
                        idset_add(&offline, m->cpus[i].id);
        switch (file) {
        case 0:
                idset_list(&m->online, b);
                break;
        case 1:
                idset_list(&offline, b);
                break;
        case 4:
                buf_printf(b, "%d\n", ID_MAX - 1);
                break;
        case 5:
                line(b, "");
                break;
        default:
                idset_list(&m->present, b);
                break;
        }
        return 0;
}

static int render_sys_idle(const Machine *m, unsigned file, Buf *b) {
        static const char *const governors = "ladder menu teo";

        line(b, file == 0 ? driver(m) : file == 3 ? governors : governor(m));
        return 0;
}

/* The CPUs that share something with this one, the offline ones left out as the kernel leaves them out. */
static void siblings(const Machine *m, const Cpu *cpu, unsigned what, IdSet *set) {
        const Core *core = &m->cores[cpu->core];

        for (unsigned i = 0; i < m->n_cpus; i++) {
                const Cpu *other = &m->cpus[i];
                bool package = other->package == cpu->package, die = package && other->die == cpu->die;

                if (!other->online)
                        continue;
                if (what == 0       ? other->core == cpu->core
                        : what == 1 ? m->cores[other->core].module_core == core->module_core
                        : what == 2 ? die
                                    : package)
                        idset_add(set, other->id);
        }
}

static int render_topology(const Machine *m, const Cpu *cpu, unsigned file, Buf *b) {
        /* After the four ids, pairs of mask and list: threads, core, cluster, die, package, package. */
        static const unsigned char kinds[] = { 0, 0, 1, 2, 3, 3 };
        IdSet set = {};

        switch (file) {
        case 0:
                buf_printf(b, "%u\n", cpu->package);
                return 0;
        case 1:
                buf_printf(b, "%u\n", cpu->die);
                return 0;
        case 2:
                buf_printf(b, "%u\n", m->cores[cpu->core].module);
                return 0;
        case 3:
                buf_printf(b, "%u\n", cpu->core_id);
                return 0;
        default:
                siblings(m, cpu, kinds[(file - 4) / 2], &set);
                if (file % 2 == 0)
                        idset_mask(&set, m->max_id + 1, b);
                else
                        idset_list(&set, b);
                return 0;
        }
}

static int render_numa(const Machine *m, const Cpu *cpu, unsigned file, Buf *b) {
        IdSet set = {};

        siblings(m, cpu, 3, &set);
        if (file == 0)
                idset_list(&set, b);
        else
                idset_mask(&set, m->max_id + 1, b);
        return 0;
}

static int render_freq(const Machine *m, const Cpu *cpu, unsigned file, Buf *b) {
        uint64_t base = m->base_mhz * 1000, now = (uint64_t) cpu->c[CPU_APERF].param / 1000000;

        switch (file) {
        case 0:
                line(b, m->profile->amd ? "acpi-cpufreq" : "intel_pstate");
                break;
        case 1:
                line(b, m->profile->amd ? "schedutil" : "powersave");
                break;
        case 2:
                buf_printf(b, "%" PRIu64 "\n", MAX(now, UINT64_C(800000)));
                break;
        case 3:
                line(b, "800000");
                break;
        case 4:
                buf_printf(b, "%" PRIu64 "\n", base + base / 2);
                break;
        default:
                buf_printf(b, "%" PRIu64 "\n", base);
                break;
        }
        return 0;
}

static int render_counter(
        const Cpu *cpu, unsigned counter, int64_t t_ns, Buf *b, uint64_t *ret_value, bool *ret_counts) {
        *ret_value = cpu_counter(cpu, counter, t_ns);
        *ret_counts = true;
        buf_u64(b, *ret_value, 0);
        buf_add(b, "\n", 1);
        return 0;
}

static int render_state(
        Machine *m, const Cpu *cpu, Node n, int64_t t_ns, Buf *b, uint64_t *ret_value, bool *ret_counts) {
        static const unsigned char parts[] = {
                [STATE_FILE_USAGE] = STATE_USAGE,
                [STATE_FILE_TIME] = STATE_TIME,
                [STATE_FILE_ABOVE] = STATE_ABOVE,
                [STATE_FILE_BELOW] = STATE_BELOW,
                [STATE_FILE_REJECTED] = STATE_REJECTED,
        };
        const ScenarioState *state = &m->states[cpu->type][n.b];

        if (n.b >= m->n_states[cpu->type])
                return -ENODEV;
        switch (n.c) {
        case STATE_FILE_NAME:
                line(b, state->name);
                return 0;
        case STATE_FILE_DESC:
                line(b, state->desc);
                return 0;
        case STATE_FILE_LATENCY:
                buf_printf(b, "%" PRIu64 "\n", state->latency_us);
                return 0;
        case STATE_FILE_RESIDENCY:
                buf_printf(b, "%" PRIu64 "\n", state->residency_us);
                return 0;
        case STATE_FILE_DISABLE:
                line(b, cpu->disabled[n.b] ? "1" : "0");
                return 0;
        case STATE_FILE_POWER:
                line(b, "0");
                return 0;
        case STATE_FILE_DEFAULT_STATUS:
                line(b, "enabled");
                return 0;
        default:
                return render_counter(
                        cpu, CPU_STATES + n.b * STATE_N + parts[n.c], t_ns, b, ret_value, ret_counts);
        }
}

static int render_smt(const Machine *m, unsigned file, Buf *b) {
        bool smt = false;

        for (unsigned i = 0; i < m->n_cpus; i++)
                smt |= m->cpus[i].smt > 0 && m->cpus[i].online;
        line(b, file == 0       ? (smt ? "1" : "0")
                : m->hypervisor ? "notimplemented"
                : smt           ? "on"
                                : "notsupported");
        return 0;
}

int sysfs_render(Machine *m, Node n, int64_t t_ns, Buf *b, uint64_t *ret_value, bool *ret_counts) {
        static const char *const parameters[] = { "9", "0", "0", "N" };
        const Cpu *cpu = machine_cpu(m, n.a);

        switch ((int) n.kind) {
        case NODE_SYS_FILE:
                return render_sys(m, n.c, b);
        case NODE_SYS_IDLE_FILE:
                return render_sys_idle(m, n.c, b);
        case NODE_SMT_FILE:
                return render_smt(m, n.c, b);
        case NODE_PARAMETER:
                line(b, parameters[n.c]);
                return 0;
        default:
                break;
        }
        if (!cpu || !node_present(m, n))
                return -ENODEV;
        switch ((int) n.kind) {
        case NODE_CPU_FILE:
                line(b, cpu->online ? "1" : "0");
                return 0;
        case NODE_TOPOLOGY_FILE:
                return render_topology(m, cpu, n.c, b);
        case NODE_NUMA_FILE:
                return render_numa(m, cpu, n.c, b);
        case NODE_FREQ_FILE:
                return render_freq(m, cpu, n.c, b);
        case NODE_STATE_FILE:
                return render_state(m, cpu, n, t_ns, b, ret_value, ret_counts);
        case NODE_S2IDLE_FILE:
                line(b, "0");
                return 0;
        default:
                return -EINVAL;
        }
}
