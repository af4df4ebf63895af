/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the machine is while a set of samples is taken: its entities by kernel ids, its idle states, its
 * identification, and the layout of the frames. Plain data, one allocation tree, travels as JSON in a frame and lies
 * as JSON in the store's topo table, so that a copied database explains itself. A new machine (generation + 1) begins
 * on hotplug, driver change, and whenever a column comes or goes.
 *
 * Only online CPUs are entities. Arrays are sorted: cpus by id; cores by (package, die, id); packages by
 * (package, die); modules by (package, die, id). Where energy and package states count by package and not by die
 * (AMD), the packages array has one entry a package with die -1.
 */

#include "model/cpuid.h"
#include "cstated/field.h"

#define MACHINE_CPUS_MAX 8192       /* CONFIG_NR_CPUS's highest */
#define MACHINE_CPU_ID_MAX 65536    /* ids have gaps */
#define MACHINE_IDLE_SETS_MAX 64
#define MACHINE_IDENTS_MAX 16

typedef struct IdleState {
        char name[16];
        char desc[48];
        uint32_t exit_latency_us;
        uint32_t target_residency_us;
        int32_t mwait_hint; /* EAX hint ("MWAIT 0x20"), -1 where it is no MWAIT state or not known */
        bool disabled;
        bool is_poll;
} IdleState;

/* CPUs with the same list share a set (P and E cores differ). */
typedef struct IdleSet {
        uint32_t n_states;
        IdleState states[IDLE_STATES_MAX];
} IdleSet;

typedef struct MachineCpu {
        uint32_t id;
        uint32_t package; /* indices into the machine's arrays */
        uint32_t core;
        uint32_t module;  /* UINT32_MAX: no modules */
        uint16_t thread;  /* 0 = the core's first online thread */
        uint16_t idle_set; /* UINT16_MAX: no cpuidle */
        uint16_t ident;   /* index into idents */
} MachineCpu;

typedef struct MachineCore {
        int32_t id;       /* kernel core_id, unique only within its package */
        uint32_t package; /* index */
        uint32_t first_cpu; /* index of thread 0 */
} MachineCore;

typedef struct MachineModule {
        int32_t id; /* cluster_id */
        uint32_t package;
        uint32_t first_cpu;
} MachineModule;

typedef struct MachinePackage {
        int32_t package; /* physical_package_id */
        int32_t die;     /* -1: the package has one, or counts as one */
        uint32_t first_cpu;
} MachinePackage;

typedef struct Machine {
        uint32_t generation;
        char boot_id[40];
        char host[65];
        char kernel[65];     /* uname -r */
        char idle_driver[32]; /* "" where there is none */
        char idle_governor[32];
        char bugs[512];      /* the bugs line of /proc/cpuinfo, "" if empty; has_bugs tells from no such line */
        bool has_bugs;
        bool hypervisor;
        uint64_t tsc_hz;     /* measured or from CPUID; 0 unknown */
        uint32_t user_hz;
        uint64_t pkg_cst_config; /* MSR 0xE2, valid if has_pkg_cst_config */
        bool has_pkg_cst_config;

        uint32_t n_cpus, n_cores, n_modules, n_packages, n_idle_sets, n_idents, n_offline;
        MachineCpu *cpus;
        MachineCore *cores;
        MachineModule *modules;
        MachinePackage *packages;
        IdleSet *idle_sets;
        CpuIdent *idents;    /* one a core type */
        uint32_t *offline;   /* present but offline CPU ids */

        Layout layout; /* of raw frames */
} Machine;

Machine *machine_new(void);
Machine *machine_free(Machine *m);
DEFINE_CLEANUP(Machine *, machine_free);
/* Deep copy; NULL when out of memory. */
Machine *machine_copy(const Machine *m);

/* Entity index by kernel id; UINT32_MAX where it is not. */
uint32_t machine_cpu_index(const Machine *m, uint32_t cpu_id);
uint32_t machine_core_index(const Machine *m, int32_t package, int32_t die, int32_t core_id);
uint32_t machine_module_index(const Machine *m, int32_t package, int32_t die, int32_t module_id);
uint32_t machine_package_index(const Machine *m, int32_t package, int32_t die);
/* Index of the entity's first online CPU. */
uint32_t machine_first_cpu(const Machine *m, Scope s, uint32_t e);
/* The entity of scope `to` that holds entity e of scope `from` (to is the wider one). UINT32_MAX: none (no modules). */
uint32_t machine_parent(const Machine *m, Scope from, uint32_t e, Scope to);
uint32_t machine_n_entities(const Machine *m, Scope s);
/* Sets the layout's entity counts from the arrays and finishes it (again). */
void machine_finish_layout(Machine *m);
/* The CPU's idle states, NULL without cpuidle. */
const IdleSet *machine_idle_set(const Machine *m, uint32_t cpu_index);
/* The state of that name of the CPU's set: index, or -1. */
int machine_state_index(const Machine *m, uint32_t cpu_index, const char *name);

/*
 * Everything that look-ups and loops rely on: counts within bounds, indices that point at something and agree with
 * one another, sorted arrays. 0 or -EBADMSG. The sampler may assert it of what it built.
 */
int machine_validate(const Machine *m);

/* JSON text, malloc'd; NULL when out of memory. */
char *machine_to_json(const Machine *m);
/* Validates everything (never trusts a frame or a file). -EBADMSG, -ENOMEM. */
int machine_from_json(const char *json, size_t n, Machine **ret);
