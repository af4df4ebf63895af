/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Values and rates. value(t) = (acc + rate * (t - t0)) / 1e18 in 128 bits: 1e11 counts a second over a year
 * still fit. A CPU in step mode shows what it had at its last wake, as the kernel's cpuidle does, which
 * updates time and usage at idle exit only; a sleeper shows what it had when it fell asleep, and catches up
 * when it wakes (machine-apply.c).
 */

#include <stdio.h>

#include "machine.h"

#define ACC_UNIT ((u128) NANO * (u128) NANO)

uint64_t counter_value(const Counter *c, int64_t dt_ns) {
        return (uint64_t) ((c->acc + (u128) c->rate * (u128) MAX(dt_ns, INT64_C(0))) / ACC_UNIT);
}

uint64_t rate_of_percent(int64_t percent_nano, uint64_t full_per_s) {
        return (uint64_t) ((u128) percent_nano * full_per_s / 100);
}

uint64_t rate_of_watts(int64_t watts_nano, uint64_t unit_num_nj, uint64_t unit_den) {
        return (uint64_t) ((u128) watts_nano * (uint64_t) NANO * unit_den / unit_num_nj);
}

static void counters_advance(Counter *c, size_t n, int64_t dt_ns) {
        for (size_t i = 0; i < n && dt_ns > 0; i++)
                c[i].acc += (u128) c[i].rate * (u128) dt_ns;
}

static int64_t cpu_dt(const Cpu *cpu, int64_t t_ns) {
        if (!cpu->online || cpu->asleep || t_ns <= cpu->t0)
                return 0;
        if (cpu->step) {
                int64_t since = t_ns - cpu->phase_ns;
                int64_t wake = cpu->phase_ns + since / cpu->wake_ns * cpu->wake_ns;

                return since < 0 ? 0 : MAX(wake - cpu->t0, INT64_C(0));
        }
        return t_ns - cpu->t0;
}

uint64_t cpu_counter(const Cpu *cpu, unsigned counter, int64_t t_ns) {
        return counter_value(&cpu->c[counter], cpu_dt(cpu, t_ns));
}

uint64_t cpu_irqs(const Cpu *cpu, int64_t t_ns) {
        uint64_t sum = 0;

        /* Each row is an unsigned int in the kernel and wraps by itself. */
        for (unsigned i = CPU_LOC; i <= CPU_DEV; i++)
                sum += (uint32_t) cpu_counter(cpu, i, t_ns);
        return sum;
}

uint64_t core_counter(const Machine *m, const Core *core, unsigned counter, int64_t t_ns) {
        if (counter == CORE_MC6)
                core = &m->cores[core->module_core];
        return counter_value(&core->c[counter], t_ns - core->t0);
}

uint64_t die_counter(const Machine *m, const Die *die, unsigned counter, int64_t t_ns) {
        if (counter == DIE_PKG)
                die = &m->dies[die->energy_die];
        return counter_value(&die->c[counter], t_ns - die->t0);
}

uint64_t system_counter(const Machine *m, unsigned counter, int64_t t_ns) {
        return counter_value(&m->system[counter], t_ns - m->system_t0);
}

void machine_energy_unit(const Machine *m, int domain, uint64_t *ret_num, uint64_t *ret_den) {
        unsigned rapl = m->profile->rapl;

        *ret_den = 1;
        if (domain == DIE_RAM && (rapl & RAPL_RAM_15_3))
                *ret_num = 15300;
        else if (domain == ZONE_PSYS && (rapl & RAPL_SYS_1J))
                *ret_num = (uint64_t) NANO;
        else {
                *ret_num = (uint64_t) NANO;
                *ret_den = UINT64_C(1) << m->esu;
        }
}

uint64_t zone_energy_uj(const Machine *m, const Zone *zone, int64_t t_ns) {
        const Die *die = &m->dies[zone->die_index];
        uint64_t raw, num, den;

        if (zone->domain == ZONE_OWN)
                return counter_value(&zone->own, t_ns - zone->t0) % (zone->range_uj + 1);
        if (zone->domain == ZONE_PSYS)
                raw = system_counter(m, SYSTEM_PSYS, t_ns);
        else if (zone->domain == ZONE_AMD_CORE) {
                for (unsigned i = 0; i < m->n_cores; i++)
                        if (m->cores[i].package == die->package)
                                return (uint32_t) core_counter(m, &m->cores[i], CORE_ENERGY, t_ns) *
                                       ((uint64_t) NANO >> m->esu) / 1000;
                return 0;
        } else
                raw = die_counter(m, die, (unsigned) zone->domain, t_ns);

        /* The kernel keeps the unit as a whole number of nanojoules. */
        machine_energy_unit(m, zone->domain, &num, &den);
        return (uint32_t) raw * (num / den) / 1000;
}

void cpu_advance(Cpu *cpu, int64_t t_ns) {
        if (cpu->online && !cpu->asleep)
                counters_advance(cpu->c, CPU_N, t_ns - cpu->t0);
        cpu->t0 = MAX(cpu->t0, t_ns);
}

void core_advance(Core *core, int64_t t_ns) {
        counters_advance(core->c, CORE_N, t_ns - core->t0);
        core->t0 = MAX(core->t0, t_ns);
}

void die_advance(Die *die, int64_t t_ns) {
        counters_advance(die->c, DIE_N, t_ns - die->t0);
        die->t0 = MAX(die->t0, t_ns);
}

void system_advance(Machine *m, int64_t t_ns) {
        counters_advance(m->system, SYSTEM_N, t_ns - m->system_t0);
        m->system_t0 = MAX(m->system_t0, t_ns);
}

unsigned machine_deepest(const Machine *m) {
        return m->profile->core & HAVE_C7 ? CORE_C7 : m->profile->core & HAVE_C6 ? CORE_C6 : CORE_C3;
}

bool machine_core_counter_exists(const Machine *m, unsigned counter) {
        static const unsigned bits[CORE_N] = {
                [CORE_C3] = HAVE_C3,
                [CORE_C6] = HAVE_C6,
                [CORE_C7] = HAVE_C7,
                [CORE_MC6] = HAVE_MC6,
        };

        if (counter == CORE_ENERGY)
                return m->profile->rapl & RAPL_AMD;
        if (counter == CORE_TEMP)
                return m->profile->temperatures;
        return counter < CORE_N && (m->profile->core & bits[counter]);
}

bool machine_package_counter_exists(const Machine *m, unsigned counter) {
        static const unsigned bits[DIE_N] = {
                [DIE_PKG] = RAPL_PKG,
                [DIE_RAM] = RAPL_RAM,
                [DIE_COR] = RAPL_COR,
                [DIE_GFX] = RAPL_GFX,
                [DIE_THROTTLE] = RAPL_THROTTLE,
                [DIE_RAM_THROTTLE] = RAPL_THROTTLE,
        };

        if (counter <= DIE_PC10)
                return m->profile->package >> counter & 1;
        if (counter == DIE_TEMP)
                return m->profile->temperatures;
        if (counter == DIE_COR && (m->profile->rapl & RAPL_AMD))
                return false;
        return counter < DIE_N && (m->profile->rapl & bits[counter]);
}

Cpu *machine_cpu(Machine *m, unsigned id) {
        return id < MACHINE_CPUS_MAX && m->by_id[id] >= 0 ? &m->cpus[m->by_id[id]] : NULL;
}

static bool core_sleeps(const Machine *m, const Core *core) {
        bool any = false;

        for (unsigned i = 0; i < m->n_cpus; i++) {
                const Cpu *cpu = &m->cpus[i];

                if (&m->cores[cpu->core] != core)
                        continue;
                if (cpu->online && !cpu->asleep)
                        return false;
                any |= cpu->asleep;
        }
        return any;
}

/* A core that sleeps whole is in its deepest state all the time; its parameters stay for when it wakes. */
static void core_settle(Machine *m, Core *core, bool sleeps, int64_t t_ns) {
        unsigned deepest = machine_deepest(m);

        for (unsigned i = CORE_C3; i <= CORE_MC6; i++) {
                int64_t percent = !sleeps                         ? core->c[i].param
                                  : i == deepest || i == CORE_MC6 ? 100 * NANO
                                                                  : 0;
                uint64_t rate = rate_of_percent(percent, m->tsc_hz);

                if (rate != core->c[i].rate) {
                        core_advance(core, t_ns);
                        core->c[i].rate = rate;
                }
        }
}

static void cpu_set_rate(Cpu *cpu, unsigned counter, uint64_t rate, int64_t t_ns) {
        if (cpu->c[counter].rate != rate) {
                cpu_advance(cpu, t_ns);
                cpu->c[counter].rate = rate;
        }
}

static bool cpu_settle(Machine *m, Cpu *cpu, int64_t t_ns, char *error) {
        const Core *core = &m->cores[cpu->core];
        int64_t busy = cpu->c[CPU_MPERF].param;
        int64_t c1 =
                100 * NANO - busy - core->c[CORE_C3].param - core->c[CORE_C6].param - core->c[CORE_C7].param;

        if (c1 < 0) {
                (void) snprintf(error, SCENARIO_ERROR_MAX,
                        "cpu%u: busy, c3, c6 and c7 add up to more than 100 %%", cpu->id);
                return false;
        }
        cpu->c[CPU_C1].param = c1;
        cpu_set_rate(cpu, CPU_C1, rate_of_percent(c1, m->tsc_hz), t_ns);
        cpu_set_rate(cpu, CPU_APERF,
                (uint64_t) ((u128) busy * (u128) cpu->c[CPU_APERF].param / (u128) NANO * 1000000 / 100),
                t_ns);
        if (!cpu->user_given) {
                int64_t rest = busy;

                for (unsigned i = CPU_NICE; i <= CPU_STEAL; i++)
                        rest -= i == CPU_IOWAIT ? 0 : cpu->c[i].param;
                cpu->c[CPU_USER].param = MAX(rest, INT64_C(0));
                cpu_set_rate(cpu, CPU_USER, rate_of_percent(cpu->c[CPU_USER].param, MACHINE_HZ), t_ns);
        }
        return true;
}

bool machine_settle(Machine *m, int64_t t_ns, char error[SCENARIO_ERROR_MAX]) {
        bool any_asleep = false;

        if (m->building)
                return true;
        for (unsigned i = 0; i < m->n_cpus; i++) {
                if (!cpu_settle(m, &m->cpus[i], t_ns, error))
                        return false;
                any_asleep |= m->cpus[i].asleep;
        }
        for (unsigned i = 0; i < m->n_cores; i++)
                core_settle(m, &m->cores[i], any_asleep && core_sleeps(m, &m->cores[i]), t_ns);
        return true;
}
