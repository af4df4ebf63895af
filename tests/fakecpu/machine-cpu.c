/* SPDX-License-Identifier: GPL-2.0-or-later */

/* CPUs that come and go, fall asleep and wake, by the scenario's word or because somebody read their
 * registers. */

#include <string.h>

#include "machine-apply.h"

#define ACC_COUNT ((u128) NANO * (u128) NANO)

void machine_set_online(Machine *m, Cpu *cpu, bool online, bool keep, int64_t t_ns) {
        bool others = false;

        if (cpu->online == online)
                return;
        cpu_advance(cpu, t_ns);
        for (unsigned i = 0; i < m->n_cpus; i++)
                others |= m->cpus[i].core == cpu->core && m->cpus[i].online;
        if (online && !keep) {
                counters_clear(cpu->c, CPU_MPERF, CPU_C1 + 1);
                counters_clear(cpu->c, CPU_STATES, CPU_N);
                if (!others) {
                        core_advance(&m->cores[cpu->core], t_ns);
                        counters_clear(m->cores[cpu->core].c, CORE_C3, CORE_MC6 + 1);
                }
        }
        cpu->online = online;
        cpu->asleep = false;
        m->online.bits[cpu->id / 64] ^= UINT64_C(1) << (cpu->id % 64);
        m->generation++;
}

static void cpu_sleep(Cpu *cpu, int64_t t_ns) {
        cpu_advance(cpu, t_ns);
        cpu->asleep = true;
        cpu->sleep_since = t_ns;
}

/* What the kernel books at idle exit: the whole sleep in the deepest state, one entry, and the interrupt
 * that ended it. */
static void cpu_book_sleep(const Machine *m, Cpu *cpu, unsigned irq_row, int64_t t_ns) {
        unsigned n = m->n_states[cpu->type];

        if (n > 0) {
                Counter *state = &cpu->c[CPU_STATES + (n - 1) * STATE_N];

                state[STATE_TIME].acc +=
                        (u128) MAX(t_ns - cpu->sleep_since, INT64_C(0)) * (ACC_COUNT / 1000);
                state[STATE_USAGE].acc += ACC_COUNT;
        }
        cpu->c[irq_row].acc += ACC_COUNT;
        cpu->sleep_since = t_ns;
}

void machine_touch(Machine *m, Cpu *cpu, int64_t t_ns) {
        if (!cpu->online || (!cpu->asleep && !cpu->step))
                return;
        cpu->wakes_caused++;
        if (cpu->asleep) {
                /* It cannot answer asleep: the registers that count C0 saw about a microsecond of it. */
                cpu->c[CPU_MPERF].acc += (u128) m->tsc_hz / 1000000 * ACC_COUNT;
                cpu->c[CPU_APERF].acc += (u128) (cpu->c[CPU_APERF].param / NANO) * ACC_COUNT;
        }
        if (!m->wake_on_read)
                return;
        if (cpu->asleep)
                cpu_book_sleep(m, cpu, CPU_CAL, t_ns);
        else {
                cpu->c[CPU_CAL].acc += ACC_COUNT;
                if (m->n_states[cpu->type] > 0)
                        cpu->c[CPU_STATES + (m->n_states[cpu->type] - 1) * STATE_N + STATE_USAGE].acc +=
                                ACC_COUNT;
        }
}

/* offline, online, sleep, wake */
bool machine_apply_cpus(Machine *m, const Statement *st, int64_t t_ns, bool check_only, char *error) {
        const char *keep = statement_get(st, "keep");
        IdSet cpus;

        if (!machine_select_cpus(m, st, &cpus, error))
                return false;
        for (size_t i = 0; i < st->n_words; i++)
                if (!machine_is_selector(st->words[i].key))
                        return scenario_error(error, 0, st->verb, st->words[i].key);
        for (unsigned i = 0; i < m->n_cpus && !check_only; i++) {
                Cpu *cpu = &m->cpus[i];

                if (!idset_has(&cpus, cpu->id))
                        continue;
                if (st->verb[0] == 'o')
                        machine_set_online(m, cpu, st->verb[1] == 'n', keep && keep[0] != '0', t_ns);
                else if (st->verb[0] == 's' && cpu->online && !cpu->asleep)
                        cpu_sleep(cpu, t_ns);
                else if (st->verb[0] == 'w' && cpu->asleep) {
                        cpu_book_sleep(m, cpu, CPU_LOC, t_ns);
                        cpu->asleep = false;
                        cpu->t0 = t_ns;
                }
        }
        return check_only || machine_settle(m, t_ns, error);
}
