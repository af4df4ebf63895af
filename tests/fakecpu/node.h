/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The tree the file system shows. A node is four small numbers and its inode number holds them all, so
 * nothing is kept per node: 512 CPUs have some 60,000 files.
 */

#include <sys/types.h>

#include "machine.h"

typedef enum NodeKind {
        NODE_NONE,
        NODE_ROOT,
        NODE_DEV,     /* dev/: /dev/cpu */
        NODE_DEV_CPU, /* dev/N/ */
        NODE_MSR,
        NODE_CPUID,
        NODE_SYS, /* cpu/: /sys/devices/system/cpu */
        NODE_SYS_FILE,
        NODE_SYS_IDLE, /* cpu/cpuidle/ */
        NODE_SYS_IDLE_FILE,
        NODE_SMT,
        NODE_SMT_FILE,
        NODE_CPU, /* cpu/cpuN/ */
        NODE_CPU_FILE,
        NODE_TOPOLOGY,
        NODE_TOPOLOGY_FILE,
        NODE_NUMA, /* cpu/cpuN/nodeP/ */
        NODE_NUMA_FILE,
        NODE_FREQ,
        NODE_FREQ_FILE,
        NODE_IDLE,       /* cpu/cpuN/cpuidle/ */
        NODE_IDLE_ENTRY, /* an odd directory there */
        NODE_STATE,
        NODE_STATE_FILE,
        NODE_S2IDLE,
        NODE_S2IDLE_FILE,
        NODE_CLASS, /* class/: /sys/class/powercap, links */
        NODE_CLASS_LINK,
        NODE_VIRTUAL, /* virtual/: /sys/devices/virtual/powercap */
        NODE_CONTROL, /* virtual/intel-rapl/ */
        NODE_CONTROL_FILE,
        NODE_ZONE,
        NODE_ZONE_FILE,
        NODE_MODULE, /* module/: /sys/module/intel_idle */
        NODE_PARAMETERS,
        NODE_PARAMETER,
        NODE_PROC,
        NODE_PROC_FILE,
        NODE_POINTS, /* points/: directories to hang overlays on */
        NODE_POINT,
        NODE_POINT_DIR,
        NODE_CTL,
        NODE_CTL_FILE,
        NODE_KIND_N,
} NodeKind;

typedef struct Node {
        NodeKind kind;
        unsigned a, b, c; /* CPU id or zone; state; file */
} Node;

/* Files by their position in the tables of node.c. */
enum {
        PROC_CPUINFO,
        PROC_INTERRUPTS,
        PROC_STAT,

        CTL_SET = 0,
        CTL_RESET,
        CTL_LEDGER,
        CTL_COUNTERS,
        CTL_EXPECT,

        CPU_FILE_ONLINE = 0,

        STATE_FILE_NAME = 0,
        STATE_FILE_DESC,
        STATE_FILE_LATENCY,
        STATE_FILE_RESIDENCY,
        STATE_FILE_DISABLE,
        STATE_FILE_USAGE,
        STATE_FILE_TIME,
        STATE_FILE_ABOVE,
        STATE_FILE_BELOW,
        STATE_FILE_REJECTED,
        STATE_FILE_POWER,
        STATE_FILE_DEFAULT_STATUS,

        ZONE_FILE_NAME = 0,
        ZONE_FILE_ENERGY,
        ZONE_FILE_RANGE,
        ZONE_FILE_ENABLED,
};

uint64_t node_ino(Node n);
Node node_of_ino(uint64_t ino);

/* False: the node is not there now (CPU offline, hidden). */
bool node_present(Machine *m, Node n);
bool node_is_dir(Node n);
/* Type and permission bits. */
mode_t node_mode(const Machine *m, Node n);

typedef bool (*NodeEmit)(void *userdata, const char *name, Node child); /* false: enough */
/* Calls emit for each present child of a directory. */
void node_list(Machine *m, Node dir, NodeEmit emit, void *userdata);
/* NODE_NONE where there is none of this name. */
Node node_lookup(Machine *m, Node dir, const char *name);

/* Text of a file (or target of a link) at time t: 0 or -errno. A counter's value goes to *ret_value too,
 * true to *ret_counts. */
int node_render(Machine *m, Node n, int64_t t_ns, Buf *b, uint64_t *ret_value, bool *ret_counts);

/* Renderers by tree. */
int sysfs_render(Machine *m, Node n, int64_t t_ns, Buf *b, uint64_t *ret_value, bool *ret_counts);
int powercap_render(Machine *m, Node n, int64_t t_ns, Buf *b, uint64_t *ret_value, bool *ret_counts);
int proc_render(Machine *m, Node n, int64_t t_ns, Buf *b);
/* The control type ("intel-rapl") of a zone directory name; number of different ones, and the i-th. */
unsigned powercap_controls(const Machine *m);
void powercap_control_name(const Machine *m, unsigned i, char name[64]);
bool powercap_in_control(const Machine *m, unsigned control, const Zone *zone);
