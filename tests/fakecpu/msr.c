/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The registers. Thread registers follow the CPU, core registers its core (both siblings read the same
 * counter), package registers its (package, die). What a model has not, and what nobody needs, is EIO, as a
 * #GP is.
 */

#include <errno.h>

#include "clock.h"
#include "registers.h"

static int value(uint64_t v, uint64_t *ret) {
        *ret = v;
        return 0;
}

static int core_residency(const Machine *m, const Cpu *cpu, unsigned counter, int64_t t_ns, uint64_t *ret) {
        if (!machine_core_counter_exists(m, counter))
                return -EIO;
        return value(core_counter(m, &m->cores[cpu->core], counter, t_ns), ret);
}

static int die_value(const Machine *m, const Cpu *cpu, unsigned counter, int64_t t_ns, uint64_t *ret) {
        if (!machine_package_counter_exists(m, counter))
                return -EIO;
        uint64_t v = die_counter(m, &m->dies[cpu->die_index], counter, t_ns);
        return value(counter >= DIE_PKG ? (uint32_t) v : v, ret);
}

static uint64_t temperature(const Machine *m, int64_t param) {
        int64_t below = (int64_t) m->tjmax - param / NANO;

        return UINT64_C(1) << 31 | (uint64_t) (below < 0 ? 0 : MIN(below, INT64_C(127))) << 16;
}

static int msr_intel(const Machine *m, const Cpu *cpu, uint64_t reg, int64_t t_ns, uint64_t *ret) {
        const Profile *p = m->profile;
        uint64_t bclk_x3 = p->bclk_mhz_x3 > 0 ? p->bclk_mhz_x3 : 300;
        uint64_t ratio = (m->base_mhz * 3 + bclk_x3 / 2) / bclk_x3;

        switch (reg) {
        case 0x34:
                return p->smi ? value((uint32_t) cpu_counter(cpu, CPU_SMI, t_ns), ret) : -EIO;
        case 0xce: /* maximum non-turbo ratio, and the lowest one */
                return value(ratio << 8 | UINT64_C(8) << 40, ret);
        case 0xe2: /* C-state limit, locked */
                return value(UINT64_C(1) << 15 | m->pkg_limit, ret);
        case 0x1a2:
                return p->temperatures ? value(m->tjmax << 16, ret) : -EIO;
        case 0x19c:
                return p->temperatures ? value(temperature(m, m->cores[cpu->core].c[CORE_TEMP].param), ret)
                                       : -EIO;
        case 0x1b1:
                return p->temperatures
                               ? value(temperature(m, m->dies[cpu->die_index].c[DIE_TEMP].param), ret)
                               : -EIO;
        case 0x1a0: /* MISC_ENABLE: turbo on, EIST on */
                return value(0x850089, ret);
        case 0x1ad: /* turbo ratios of eight group sizes: all the same */
        case 0x1ae:
                return value(ratio * UINT64_C(0x0101010101010101), ret);
        case 0x1b0: /* energy-performance bias: balanced */
                return value(6, ret);
        case 0x1fc: /* POWER_CTL: C1E on */
                return value(2, ret);
        case 0x3fc:
                return core_residency(m, cpu, CORE_C3, t_ns, ret);
        case 0x3fd:
                return core_residency(m, cpu, CORE_C6, t_ns, ret);
        case 0x3fe:
                return core_residency(m, cpu, CORE_C7, t_ns, ret);
        case 0x660:
                return p->core & HAVE_C1 ? value(cpu_counter(cpu, CPU_C1, t_ns), ret) : -EIO;
        case 0x664:
                return core_residency(m, cpu, CORE_MC6, t_ns, ret);
        case 0x60d:
                return die_value(m, cpu, DIE_PC2, t_ns, ret);
        case 0x3f8:
                return die_value(m, cpu, DIE_PC3, t_ns, ret);
        case 0x3f9:
                return die_value(m, cpu, DIE_PC6, t_ns, ret);
        case 0x3fa:
                return die_value(m, cpu, DIE_PC7, t_ns, ret);
        case 0x630:
                return die_value(m, cpu, DIE_PC8, t_ns, ret);
        case 0x631:
                return die_value(m, cpu, DIE_PC9, t_ns, ret);
        case 0x632:
                return die_value(m, cpu, DIE_PC10, t_ns, ret);
        case 0x606: /* power 1/8 W, energy 2^-esu J, time 2^-10 s */
                return p->rapl ? value(0xa0003 | m->esu << 8, ret) : -EIO;
        case 0x610:
        case 0x614: /* limit and thermal specification in 1/8 W */
                return p->rapl ? value(p->tdp_watts * UINT64_C(8), ret) : -EIO;
        case 0x611:
                return die_value(m, cpu, DIE_PKG, t_ns, ret);
        case 0x619:
                return die_value(m, cpu, DIE_RAM, t_ns, ret);
        case 0x639:
                return die_value(m, cpu, DIE_COR, t_ns, ret);
        case 0x641:
                return die_value(m, cpu, DIE_GFX, t_ns, ret);
        case 0x613:
                return die_value(m, cpu, DIE_THROTTLE, t_ns, ret);
        case 0x61b:
                return die_value(m, cpu, DIE_RAM_THROTTLE, t_ns, ret);
        case 0x64d:
                return p->rapl & RAPL_SYS ? value((uint32_t) system_counter(m, SYSTEM_PSYS, t_ns), ret)
                                          : -EIO;
        default:
                return -EIO;
        }
}

static int msr_amd(const Machine *m, const Cpu *cpu, uint64_t reg, int64_t t_ns, uint64_t *ret) {
        switch (reg) {
        case 0xc0010299:
                return value(0xa0003 | m->esu << 8, ret);
        case 0xc001029a:
                return value((uint32_t) core_counter(m, &m->cores[cpu->core], CORE_ENERGY, t_ns), ret);
        case 0xc001029b:
                return value((uint32_t) die_counter(m, &m->dies[cpu->die_index], DIE_PKG, t_ns), ret);
        default:
                return -EIO;
        }
}

int msr_read(const Machine *m, const Cpu *cpu, uint64_t reg, int64_t t_ns, uint64_t *ret) {
        for (size_t i = 0; i < m->scenario->n_msrs; i++)
                if (m->scenario->msrs[i].reg == reg)
                        return value(m->scenario->msrs[i].value, ret);
        if (m->msr_zero)
                return value(0, ret);
        if (reg == 0x10)
                return value(clock_tsc(), ret);
        if (reg == 0x8b) /* microcode revision */
                return value(m->profile->amd ? m->microcode : m->microcode << 32, ret);
        if (reg == 0xe7 || (reg == 0xc00000e7 && m->profile->amd))
                return value(cpu_counter(cpu, CPU_MPERF, t_ns), ret);
        if (reg == 0xe8 || (reg == 0xc00000e8 && m->profile->amd))
                return value(cpu_counter(cpu, CPU_APERF, t_ns), ret);
        return m->profile->amd ? msr_amd(m, cpu, reg, t_ns, ret) : msr_intel(m, cpu, reg, t_ns, ret);
}

int msr_fault(const Machine *m, const Cpu *cpu, uint64_t reg, int64_t *ret_delay_ns) {
        int r = 0;

        *ret_delay_ns = 0;
        for (unsigned i = 0; i < m->n_rules; i++) {
                const Rule *rule = &m->rules[i];

                if ((!rule->all_regs && rule->reg != reg) || !idset_has(&rule->cpus, cpu->id))
                        continue;
                if (rule->eio)
                        r = -EIO;
                else
                        *ret_delay_ns = MAX(*ret_delay_ns, rule->delay_ns);
        }
        return r;
}
