/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Which directory holds what. Static files come from tables of names; CPUs, states and zones from the
 * machine. A lookup lists the directory until the name comes up, except for the two directories that are as
 * long as the machine is big.
 */

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "node.h"

static const char *const files_sys[] = { "online", "offline", "possible", "present", "kernel_max",
        "isolated", "enabled", NULL };
static const char *const files_sys_idle[] = { "current_driver", "current_governor", "current_governor_ro",
        "available_governors", NULL };
static const char *const files_smt[] = { "active", "control", NULL };
static const char *const files_cpu[] = { "online", NULL };
static const char *const files_topology[] = { "physical_package_id", "die_id", "cluster_id", "core_id",
        "thread_siblings", "thread_siblings_list", "core_cpus", "core_cpus_list", "cluster_cpus",
        "cluster_cpus_list", "die_cpus", "die_cpus_list", "package_cpus", "package_cpus_list",
        "core_siblings", "core_siblings_list", NULL };
static const char *const files_numa[] = { "cpulist", "cpumap", NULL };
static const char *const files_freq[] = { "scaling_driver", "scaling_governor", "scaling_cur_freq",
        "cpuinfo_min_freq", "cpuinfo_max_freq", "base_frequency", NULL };
static const char *const files_state[] = { "name", "desc", "latency", "residency", "disable", "usage",
        "time", "above", "below", "rejected", "power", "default_status", NULL };
static const char *const files_s2idle[] = { "usage", "time", NULL };
static const char *const files_control[] = { "enabled", NULL };
static const char *const files_zone[] = { "name", "energy_uj", "max_energy_range_uj", "enabled",
        "constraint_0_name", "constraint_0_power_limit_uw", "constraint_0_time_window_us",
        "constraint_0_max_power_uw", NULL };
static const char *const files_parameters[] = { "max_cstate", "preferred_cstates", "states_off", "use_acpi",
        NULL };
static const char *const files_proc[] = { "cpuinfo", "interrupts", "stat", NULL };
static const char *const files_ctl[] = { "set", "reset", "ledger", "counters", "expect", NULL };
static const char *const points[] = { "class", "virtual", "module", NULL };
static const char *const point_dirs[] = { "powercap", "powercap", "intel_idle", NULL };

uint64_t node_ino(Node n) {
        return (uint64_t) n.kind | (uint64_t) n.a << 8 | (uint64_t) n.b << 24 | (uint64_t) n.c << 40;
}

Node node_of_ino(uint64_t ino) {
        return (Node){
                .kind = (NodeKind) (ino & 0xff),
                .a = ino >> 8 & 0xffff,
                .b = ino >> 24 & 0xffff,
                .c = ino >> 40 & 0xffff,
        };
}

bool node_is_dir(Node n) {
        static const bool directories[NODE_KIND_N] = { [NODE_ROOT] = true,
                [NODE_DEV] = true,
                [NODE_DEV_CPU] = true,
                [NODE_SYS] = true,
                [NODE_SYS_IDLE] = true,
                [NODE_SMT] = true,
                [NODE_CPU] = true,
                [NODE_TOPOLOGY] = true,
                [NODE_NUMA] = true,
                [NODE_FREQ] = true,
                [NODE_IDLE] = true,
                [NODE_IDLE_ENTRY] = true,
                [NODE_STATE] = true,
                [NODE_S2IDLE] = true,
                [NODE_CLASS] = true,
                [NODE_VIRTUAL] = true,
                [NODE_CONTROL] = true,
                [NODE_ZONE] = true,
                [NODE_MODULE] = true,
                [NODE_PARAMETERS] = true,
                [NODE_PROC] = true,
                [NODE_POINTS] = true,
                [NODE_POINT] = true,
                [NODE_POINT_DIR] = true,
                [NODE_CTL] = true };

        return n.kind < NODE_KIND_N && directories[n.kind];
}

mode_t node_mode(const Machine *m, Node n) {
        if (node_is_dir(n))
                return S_IFDIR | 0755;
        if (n.kind == NODE_CLASS_LINK)
                return S_IFLNK | 0777;
        if (n.kind == NODE_MSR)
                return S_IFREG | m->files[FILE_MSR].mode;
        if (n.kind == NODE_CPUID)
                return S_IFREG | m->files[FILE_CPUID].mode;
        if (n.kind == NODE_ZONE_FILE && n.c == ZONE_FILE_ENERGY)
                return S_IFREG | m->files[FILE_ENERGY].mode;
        if ((n.kind == NODE_STATE_FILE && n.c == STATE_FILE_DISABLE) || n.kind == NODE_CPU_FILE)
                return S_IFREG | 0644;
        if (n.kind == NODE_CTL_FILE)
                return S_IFREG | 0666;
        return S_IFREG | 0444;
}

static bool cpu_ready(Machine *m, unsigned id, FileClass class) {
        const Cpu *cpu = machine_cpu(m, id);

        return cpu && cpu->online && (class == FILE_CLASS_N || !m->files[class].hidden);
}

bool node_present(Machine *m, Node n) {
        switch ((int) n.kind) {
        case NODE_DEV_CPU:
                return machine_cpu(m, n.a) && (cpu_ready(m, n.a, FILE_MSR) || cpu_ready(m, n.a, FILE_CPUID));
        case NODE_MSR:
                return cpu_ready(m, n.a, FILE_MSR);
        case NODE_CPUID:
                return cpu_ready(m, n.a, FILE_CPUID);
        case NODE_CPU:
                return machine_cpu(m, n.a) != NULL;
        case NODE_CPU_FILE:
                return machine_cpu(m, n.a) && n.a != 0;
        case NODE_TOPOLOGY:
        case NODE_TOPOLOGY_FILE:
                return cpu_ready(m, n.a, FILE_CLASS_N);
        case NODE_FREQ:
        case NODE_FREQ_FILE:
                return cpu_ready(m, n.a, FILE_CLASS_N) && m->profile->msr;
        case NODE_IDLE:
        case NODE_IDLE_ENTRY:
        case NODE_STATE:
        case NODE_STATE_FILE:
        case NODE_S2IDLE:
        case NODE_S2IDLE_FILE:
                return cpu_ready(m, n.a, FILE_CPUIDLE);
        case NODE_SYS_IDLE:
        case NODE_SYS_IDLE_FILE:
                return !m->files[FILE_CPUIDLE_DIR].hidden;
        case NODE_CLASS_LINK:
        case NODE_CONTROL:
        case NODE_CONTROL_FILE:
        case NODE_ZONE:
        case NODE_ZONE_FILE:
                return !m->files[FILE_POWERCAP].hidden;
        default:
                return n.kind > NODE_NONE && n.kind < NODE_KIND_N;
        }
}

/* One directory's children; stops where emit has seen enough. */
typedef struct Listing {
        Machine *m;
        NodeEmit emit;
        void *userdata;
        bool done;
} Listing;

static void put(Listing *l, const char *name, NodeKind kind, unsigned a, unsigned b, unsigned c) {
        Node n = { kind, a, b, c };

        if (!l->done && node_present(l->m, n))
                l->done = !l->emit(l->userdata, name, n);
}

static void put_files(Listing *l, const char *const *names, NodeKind kind, unsigned a, unsigned b) {
        for (unsigned i = 0; names[i]; i++)
                put(l, names[i], kind, a, b, i);
}

static void list_cpus(Listing *l, const char *prefix, NodeKind kind) {
        char name[32];

        for (unsigned i = 0; i < l->m->n_cpus; i++) {
                (void) snprintf(name, sizeof(name), "%s%u", prefix, l->m->cpus[i].id);
                put(l, name, kind, l->m->cpus[i].id, 0, 0);
        }
}

static void list_cpu(Listing *l, unsigned id) {
        const Cpu *cpu = machine_cpu(l->m, id);
        char name[32];

        put_files(l, files_cpu, NODE_CPU_FILE, id, 0);
        put(l, "topology", NODE_TOPOLOGY, id, 0, 0);
        put(l, "cpufreq", NODE_FREQ, id, 0, 0);
        put(l, "cpuidle", NODE_IDLE, id, 0, 0);
        (void) snprintf(name, sizeof(name), "node%u", cpu ? cpu->package : 0);
        put(l, name, NODE_NUMA, id, 0, 0);
}

static void list_idle(Listing *l, unsigned id) {
        const Cpu *cpu = machine_cpu(l->m, id);
        char name[32];

        for (unsigned i = 0; cpu && i < l->m->n_states[cpu->type]; i++) {
                (void) snprintf(name, sizeof(name), "state%u", i);
                put(l, name, NODE_STATE, id, i, 0);
        }
        for (unsigned i = 0; i < l->m->scenario->n_entries; i++)
                put(l, l->m->scenario->entries[i].name, NODE_IDLE_ENTRY, id, i, 0);
}

static void list_powercap(Listing *l, Node dir) {
        char name[64];

        for (unsigned i = 0;
                dir.kind != NODE_ZONE && dir.kind != NODE_CONTROL && i < powercap_controls(l->m); i++) {
                powercap_control_name(l->m, i, name);
                put(l, name, dir.kind == NODE_CLASS ? NODE_CLASS_LINK : NODE_CONTROL, 0, i, 0);
        }
        for (unsigned i = 0; i < l->m->n_zones; i++) {
                const Zone *z = &l->m->zones[i];

                if (dir.kind == NODE_CLASS)
                        put(l, z->dir, NODE_CLASS_LINK, 1, i, 0);
                else if ((dir.kind == NODE_CONTROL && z->parent < 0 &&
                                 powercap_in_control(l->m, dir.b, z)) ||
                         (dir.kind == NODE_ZONE && z->parent == (int) dir.b))
                        put(l, z->dir, NODE_ZONE, 0, i, 0);
        }
}

static void list_root(Listing *l) {
        put(l, "dev", NODE_DEV, 0, 0, 0);
        put(l, "cpu", NODE_SYS, 0, 0, 0);
        put(l, "class", NODE_CLASS, 0, 0, 0);
        put(l, "virtual", NODE_VIRTUAL, 0, 0, 0);
        put(l, "module", NODE_MODULE, 0, 0, 0);
        put(l, "proc", NODE_PROC, 0, 0, 0);
        put(l, "points", NODE_POINTS, 0, 0, 0);
        put(l, "ctl", NODE_CTL, 0, 0, 0);
}

static void list_sys(Listing *l) {
        put_files(l, files_sys, NODE_SYS_FILE, 0, 0);
        put(l, "cpuidle", NODE_SYS_IDLE, 0, 0, 0);
        put(l, "smt", NODE_SMT, 0, 0, 0);
        list_cpus(l, "cpu", NODE_CPU);
}

static void list_dir(Listing *l, Node d) {
        switch ((int) d.kind) {
        case NODE_ROOT:
                list_root(l);
                break;
        case NODE_DEV:
                list_cpus(l, "", NODE_DEV_CPU);
                break;
        case NODE_DEV_CPU:
                put(l, "msr", NODE_MSR, d.a, 0, 0);
                put(l, "cpuid", NODE_CPUID, d.a, 0, 0);
                break;
        case NODE_SYS:
                list_sys(l);
                break;
        case NODE_SYS_IDLE:
                put_files(l, files_sys_idle, NODE_SYS_IDLE_FILE, 0, 0);
                break;
        case NODE_SMT:
                put_files(l, files_smt, NODE_SMT_FILE, 0, 0);
                break;
        case NODE_CPU:
                list_cpu(l, d.a);
                break;
        case NODE_TOPOLOGY:
                put_files(l, files_topology, NODE_TOPOLOGY_FILE, d.a, 0);
                break;
        case NODE_NUMA:
                put_files(l, files_numa, NODE_NUMA_FILE, d.a, 0);
                break;
        case NODE_FREQ:
                put_files(l, files_freq, NODE_FREQ_FILE, d.a, 0);
                break;
        case NODE_IDLE:
                list_idle(l, d.a);
                break;
        case NODE_STATE:
                put_files(l, files_state, NODE_STATE_FILE, d.a, d.b);
                put(l, "s2idle", NODE_S2IDLE, d.a, d.b, 0);
                break;
        case NODE_S2IDLE:
                put_files(l, files_s2idle, NODE_S2IDLE_FILE, d.a, d.b);
                break;
        case NODE_ZONE:
                put_files(l, files_zone, NODE_ZONE_FILE, 0, d.b);
                list_powercap(l, d);
                break;
        case NODE_CONTROL:
                put_files(l, files_control, NODE_CONTROL_FILE, 0, d.b);
                list_powercap(l, d);
                break;
        case NODE_CLASS:
        case NODE_VIRTUAL:
                list_powercap(l, d);
                break;
        case NODE_MODULE:
                put(l, "parameters", NODE_PARAMETERS, 0, 0, 0);
                break;
        case NODE_PARAMETERS:
                put_files(l, files_parameters, NODE_PARAMETER, 0, 0);
                break;
        case NODE_PROC:
                put_files(l, files_proc, NODE_PROC_FILE, 0, 0);
                break;
        case NODE_POINTS:
                for (unsigned i = 0; points[i]; i++)
                        put(l, points[i], NODE_POINT, i, 0, 0);
                break;
        case NODE_POINT:
                put(l, point_dirs[d.a], NODE_POINT_DIR, d.a, 0, 0);
                break;
        case NODE_CTL:
                put_files(l, files_ctl, NODE_CTL_FILE, 0, 0);
                break;
        default:
                break;
        }
}

void node_list(Machine *m, Node dir, NodeEmit emit, void *userdata) {
        list_dir(&(Listing){ .m = m, .emit = emit, .userdata = userdata }, dir);
}

typedef struct Search {
        const char *name;
        Node found;
} Search;

static bool search_emit(void *userdata, const char *name, Node child) {
        Search *s = userdata;

        if (strcmp(s->name, name) != 0)
                return true;
        s->found = child;
        return false;
}

Node node_lookup(Machine *m, Node dir, const char *name) {
        const char *digits = dir.kind == NODE_SYS && strncmp(name, "cpu", 3) == 0 ? name + 3
                             : dir.kind == NODE_DEV                               ? name
                                                                                  : "";
        Search s = { .name = name };
        uint64_t id;

        if (text_u64(digits, &id) && id < MACHINE_CPUS_MAX && (digits[0] != '0' || digits[1] == '\0')) {
                Node n = { .kind = dir.kind == NODE_SYS ? NODE_CPU : NODE_DEV_CPU, .a = (unsigned) id };

                return node_present(m, n) ? n : s.found;
        }
        node_list(m, dir, search_emit, &s);
        return s.found;
}

int node_render(Machine *m, Node n, int64_t t_ns, Buf *b, uint64_t *ret_value, bool *ret_counts) {
        if (n.kind == NODE_PROC_FILE)
                return proc_render(m, n, t_ns, b);
        if (n.kind >= NODE_CLASS && n.kind <= NODE_ZONE_FILE)
                return powercap_render(m, n, t_ns, b, ret_value, ret_counts);
        return sysfs_render(m, n, t_ns, b, ret_value, ret_counts);
}
