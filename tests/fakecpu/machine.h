/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The machine: topology, and every counter as a pure function of time. A counter keeps what it had at the
 * beginning of its entity's present stretch, and its rate since; statements that change a rate close the
 * stretch. Counts are held in 1e-18, rates in 1e-9 a second, both integers: a rate of 94.0 % of the TSC is
 * exact however long it runs.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "profile.h"
#include "scenario.h"
#include "text.h"

typedef unsigned __int128 u128;

#define MACHINE_CPUS_MAX  1024
#define MACHINE_RULES_MAX 64
#define MACHINE_HZ        100 /* USER_HZ: jiffies of /proc/stat */

typedef enum Scope {
        SCOPE_CPU,
        SCOPE_CORE,
        SCOPE_DIE,
        SCOPE_SYSTEM,
} Scope;

enum { /* per state, from CPU_STATES + state * STATE_N on */
        STATE_TIME,
        STATE_USAGE,
        STATE_ABOVE,
        STATE_BELOW,
        STATE_REJECTED,
        STATE_N,
};

enum {
        CPU_MPERF,
        CPU_APERF,
        CPU_C1,
        CPU_SMI,
        CPU_LOC,
        CPU_RES,
        CPU_CAL,
        CPU_NMI,
        CPU_DEV,
        CPU_USER,
        CPU_NICE,
        CPU_SYSTEM,
        CPU_IOWAIT,
        CPU_HIRQ,
        CPU_SOFTIRQ,
        CPU_STEAL,
        CPU_STATES,
        CPU_N = CPU_STATES + SCENARIO_STATES_MAX * STATE_N,

        CORE_C3 = 0,
        CORE_C6,
        CORE_C7,
        CORE_MC6,
        CORE_ENERGY,
        CORE_TEMP, /* a gauge: its parameter is the value */
        CORE_N,

        DIE_PC2 = 0,
        DIE_PC3,
        DIE_PC6,
        DIE_PC7,
        DIE_PC8,
        DIE_PC9,
        DIE_PC10,
        DIE_PKG,
        DIE_RAM,
        DIE_COR,
        DIE_GFX,
        DIE_THROTTLE,
        DIE_RAM_THROTTLE,
        DIE_TEMP,
        DIE_N,

        SYSTEM_PSYS = 0,
        SYSTEM_N,
};

typedef struct Counter {
        u128 acc;      /* at the stretch's begin, 1e-18 counts */
        uint64_t rate; /* 1e-9 counts a second */
        int64_t param; /* what the scenario said, in nano of its unit */
} Counter;

typedef struct Cpu {
        unsigned id, package, die, core_id, smt, type; /* kernel ids */
        unsigned core, die_index;                      /* positions in Machine.cores and .dies */
        bool online, asleep, step, user_given;
        int64_t t0;                /* begin of the stretch */
        int64_t sleep_since;       /* its counters stand since then */
        int64_t wake_ns, phase_ns; /* step mode: wakes at phase + k * wake */
        uint64_t wakes_caused;     /* remote reads that found it asleep */
        bool disabled[SCENARIO_STATES_MAX];
        Counter c[CPU_N];
} Cpu;

typedef struct Core {
        unsigned package, die, core_id, type, module;
        unsigned module_core; /* the core of its module that holds the module's counter */
        int64_t t0;
        IdSet cpus;
        Counter c[CORE_N];
} Core;

typedef struct Die {
        unsigned package, die;
        unsigned energy_die; /* AMD: the die of its package that holds the package's energy */
        int64_t t0;
        IdSet cpus;
        Counter c[DIE_N];
} Die;

/* A zone of powercap: a view of a RAPL counter, or (domain < 0) a counter of its own in microjoules. */
typedef struct Zone {
        char dir[64], name[64];
        int parent; /* position, -1: top */
        int domain; /* DIE_PKG..DIE_GFX, ZONE_PSYS, ZONE_AMD_CORE, ZONE_OWN */
        unsigned die_index;
        uint64_t range_uj;
        int64_t t0;
        Counter own;
        int read_errno; /* of energy_uj */
} Zone;

enum {
        ZONE_PSYS = 100,
        ZONE_AMD_CORE,
        ZONE_OWN = -1,
};

/* A fault of registers: EIO or a delay. */
typedef struct Rule {
        bool all_cpus, all_regs, eio;
        IdSet cpus;
        uint64_t reg;
        int64_t delay_ns;
} Rule;

/* Classes of files whose mode, presence and errors a scenario may change. */
typedef enum FileClass {
        FILE_MSR,
        FILE_CPUID,
        FILE_ENERGY,
        FILE_CPUIDLE,
        FILE_POWERCAP,
        FILE_CPUIDLE_DIR, /* cpu/cpuidle, that of the driver and governor */
        FILE_CLASS_N,
} FileClass;

typedef struct Machine {
        const Profile *profile;
        const Scenario *scenario;
        uint64_t tsc_hz;
        uint64_t tjmax, esu, pkg_limit, microcode, stepping, base_mhz;
        bool hypervisor, msr_zero, wake_on_read;
        bool building; /* sums of residencies are looked at once all statements of time 0 are in */

        Cpu *cpus;
        Core *cores;
        Die *dies;
        unsigned n_cpus, n_cores, n_dies, n_packages, max_id;
        int16_t by_id[MACHINE_CPUS_MAX];
        IdSet present, online;
        int64_t system_t0;
        Counter system[SYSTEM_N];

        ScenarioState states[2][SCENARIO_STATES_MAX]; /* by core type */
        unsigned n_states[2];
        Zone zones[SCENARIO_ZONES_MAX];
        unsigned n_zones;

        Rule rules[MACHINE_RULES_MAX];
        unsigned n_rules;
        struct {
                mode_t mode;
                bool hidden;
                int open_errno;
        } files[FILE_CLASS_N];

        Statement **pending; /* by time */
        size_t n_pending;
        uint64_t generation; /* moves when a node's presence or mode changed: cached names must go */
} Machine;

/* Builds the machine of a scenario (which must outlive it) on a TSC of this rate and applies the statements
 * of time 0. */
bool machine_build(Machine *m, const Scenario *s, uint64_t tsc_hz, char error[SCENARIO_ERROR_MAX]);
void machine_deinit(Machine *m);

Cpu *machine_cpu(Machine *m, unsigned id); /* NULL: no such CPU */
bool machine_package_counter_exists(const Machine *m, unsigned counter);
bool machine_core_counter_exists(const Machine *m, unsigned counter);

/* Values at time t. Sleeping, offline and stepping CPUs stand where they last woke. */
uint64_t cpu_counter(const Cpu *cpu, unsigned counter, int64_t t_ns);
uint64_t cpu_irqs(const Cpu *cpu, int64_t t_ns);
uint64_t core_counter(const Machine *m, const Core *core, unsigned counter, int64_t t_ns);
uint64_t die_counter(const Machine *m, const Die *die, unsigned counter, int64_t t_ns);
uint64_t system_counter(const Machine *m, unsigned counter, int64_t t_ns);
/* Raw 32-bit energy of a RAPL domain, and a zone's microjoules as the kernel computes them from it. */
uint64_t zone_energy_uj(const Machine *m, const Zone *zone, int64_t t_ns);
/* Energy unit as the fraction num/den of nanojoules. */
void machine_energy_unit(const Machine *m, int domain, uint64_t *ret_num, uint64_t *ret_den);

/* Moves the beginning of an entity's stretch to t. */
void cpu_advance(Cpu *cpu, int64_t t_ns);
void core_advance(Core *core, int64_t t_ns);
void die_advance(Die *die, int64_t t_ns);
void system_advance(Machine *m, int64_t t_ns);

/* Recomputes the rates that depend on others: APERF, C1, user time, a sleeping core's deepest state. False:
 * sum > 100 %. */
bool machine_settle(Machine *m, int64_t t_ns, char error[SCENARIO_ERROR_MAX]);

/* 1e-9 counts a second of a parameter. */
uint64_t rate_of_percent(int64_t percent_nano, uint64_t full_per_s);
uint64_t rate_of_watts(int64_t watts_nano, uint64_t unit_num_nj, uint64_t unit_den);
uint64_t counter_value(const Counter *c, int64_t dt_ns);

/* The model's deepest core state counter. */
unsigned machine_deepest(const Machine *m);
