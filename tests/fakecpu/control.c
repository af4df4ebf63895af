/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The control directory: what the scenario makes a right tool show (expect), every true counter, and the
 * ledger. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "fs.h"
#include "machine-apply.h"
#include "node.h"

/* "94.0" of 94000000000, without a double. */
static void put_nano(Buf *b, int64_t v) {
        if (v < 0)
                buf_add(b, "-", 1);
        uint64_t u = (uint64_t) (v < 0 ? -v : v), frac = u % (uint64_t) NANO;
        int digits = 9;

        while (digits > 1 && frac % 10 == 0) {
                frac /= 10;
                digits--;
        }
        buf_printf(b, "%" PRIu64 ".%0*" PRIu64, u / (uint64_t) NANO, digits, frac);
}

static void row(Buf *b, const char *metric, const char *scope, const char *id, int64_t nano) {
        buf_printf(b, "%s\t%s\t%s\t", metric, scope, id);
        put_nano(b, nano);
        buf_add(b, "\n", 1);
}

static void expect_states(const Machine *m, const Cpu *cpu, const char *id, Buf *b) {
        static const char *const suffix[STATE_N] = { "%", "", "-", "+", "!" };
        char name[48];

        for (unsigned i = 0; i < m->n_states[cpu->type]; i++)
                for (unsigned k = 0; k < STATE_N; k++) {
                        (void) snprintf(name, sizeof(name), "%s%s", m->states[cpu->type][i].name, suffix[k]);
                        row(b, name, "cpu", id, cpu->c[CPU_STATES + i * STATE_N + k].param);
                }
}

/* Rates while awake: exits are all usages, break_bound what interrupts cannot explain of those outside POLL.
 */
static void expect_cpu(const Machine *m, const Cpu *cpu, Buf *b) {
        int64_t irqs = 0, exits = 0, deep = 0;
        char id[16];

        (void) snprintf(id, sizeof(id), "%u", cpu->id);
        row(b, "Busy%", "cpu", id, cpu->c[CPU_MPERF].param);
        row(b, "Bzy_MHz", "cpu", id, cpu->c[CPU_APERF].param);
        row(b, "Avg_MHz", "cpu", id,
                (int64_t) ((__int128) cpu->c[CPU_APERF].param * cpu->c[CPU_MPERF].param / NANO / 100));
        row(b, "CPU%c1", "cpu", id, cpu->c[CPU_C1].param);
        row(b, "SMI/s", "cpu", id, cpu->c[CPU_SMI].param);
        for (unsigned i = CPU_LOC; i <= CPU_DEV; i++)
                irqs += cpu->c[i].param;
        row(b, "IRQ/s", "cpu", id, irqs);
        for (unsigned i = 0; i < m->n_states[cpu->type]; i++) {
                int64_t usage = cpu->c[CPU_STATES + i * STATE_N + STATE_USAGE].param;

                exits += usage;
                deep += strcmp(m->states[cpu->type][i].name, "POLL") == 0 ? 0 : usage;
        }
        row(b, "exits/s", "cpu", id, exits);
        row(b, "break_bound/s", "cpu", id, MAX(deep - irqs, INT64_C(0)));
        expect_states(m, cpu, id, b);
}

static void expect_cores(const Machine *m, Buf *b) {
        static const char *const names[CORE_N] = { "CPU%c3", "CPU%c6", "CPU%c7", "Mod%c6", "CorWatt",
                "CoreTmp" };
        char id[32];

        for (unsigned i = 0; i < m->n_cores; i++) {
                (void) snprintf(id, sizeof(id), "%u/%u", m->cores[i].package, m->cores[i].core_id);
                for (unsigned k = 0; k < CORE_N; k++)
                        if (machine_core_counter_exists(m, k))
                                row(b, names[k], "core", id, m->cores[i].c[k].param);
        }
}

static void expect_dies(const Machine *m, Buf *b) {
        static const char *const names[DIE_N] = { "Pkg%pc2", "Pkg%pc3", "Pkg%pc6", "Pkg%pc7", "Pkg%pc8",
                "Pkg%pc9", "Pk%pc10", "PkgWatt", "RAMWatt", "CorWatt", "GFXWatt", "PKG_%", "RAM_%",
                "PkgTmp" };
        char id[32];

        for (unsigned i = 0; i < m->n_dies; i++) {
                const Die *energy = &m->dies[m->dies[i].energy_die];

                (void) snprintf(id, sizeof(id), "%u/%u", m->dies[i].package, m->dies[i].die);
                for (unsigned k = 0; k < DIE_N; k++)
                        if (machine_package_counter_exists(m, k) &&
                                (k != DIE_PKG || m->dies[i].energy_die == i))
                                row(b, names[k], "package", id,
                                        (k == DIE_PKG ? energy : &m->dies[i])->c[k].param);
        }
        if (m->profile->rapl & RAPL_SYS)
                row(b, "SysWatt", "system", "-", m->system[SYSTEM_PSYS].param);
}

static void render_expect(const Machine *m, Buf *b) {
        row(b, "TSC_MHz", "system", "-", (int64_t) (m->tsc_hz * 1000));
        row(b, "Base_MHz", "system", "-", (int64_t) m->base_mhz * NANO);
        for (unsigned i = 0; i < m->n_cpus; i++)
                if (m->cpus[i].online)
                        expect_cpu(m, &m->cpus[i], b);
        expect_cores(m, b);
        expect_dies(m, b);
        for (unsigned i = 0; i < m->n_zones; i++)
                if (m->zones[i].domain == ZONE_OWN)
                        row(b, "zone_watts", "zone", m->zones[i].dir, m->zones[i].own.param);
}

static void render_cpu_counters(const Machine *m, const Cpu *cpu, int64_t t_ns, Buf *b) {
        static const char *const names[CPU_STATES] = { "mperf", "aperf", "c1", "smi", "loc", "res", "cal",
                "nmi", "dev", "user", "nice", "system", "iowait", "hirq", "softirq", "steal" };
        static const char *const parts[STATE_N] = { "time", "usage", "above", "below", "rejected" };

        for (unsigned i = 0; i < CPU_STATES; i++)
                buf_printf(b, "cpu %u %s %" PRIu64 "\n", cpu->id, names[i], cpu_counter(cpu, i, t_ns));
        for (unsigned i = 0; i < m->n_states[cpu->type]; i++)
                for (unsigned k = 0; k < STATE_N; k++)
                        buf_printf(b, "cpu %u %s.%s %" PRIu64 "\n", cpu->id, m->states[cpu->type][i].name,
                                parts[k], cpu_counter(cpu, CPU_STATES + i * STATE_N + k, t_ns));
        buf_printf(b, "cpu %u irqs %" PRIu64 "\ncpu %u wakes_caused %" PRIu64 "\ncpu %u state %s\n", cpu->id,
                cpu_irqs(cpu, t_ns), cpu->id, cpu->wakes_caused, cpu->id,
                !cpu->online  ? "offline"
                : cpu->asleep ? "asleep"
                              : "awake");
}

static void render_counters(const Machine *m, int64_t t_ns, Buf *b) {
        static const char *const core_names[] = { "c3", "c6", "c7", "mc6", "energy" };
        static const char *const die_names[] = { "pc2", "pc3", "pc6", "pc7", "pc8", "pc9", "pc10", "pkg",
                "ram", "cor", "gfx", "throttle", "ram_throttle" };

        buf_printf(b, "time_ns %" PRId64 "\ntsc_hz %" PRIu64 "\n", t_ns, m->tsc_hz);
        for (unsigned i = 0; i < m->n_cpus; i++)
                render_cpu_counters(m, &m->cpus[i], t_ns, b);
        for (unsigned i = 0; i < m->n_cores; i++)
                for (unsigned k = 0; k < ARRAY_SIZE(core_names); k++)
                        if (machine_core_counter_exists(m, k))
                                buf_printf(b, "core %u/%u %s %" PRIu64 "\n", m->cores[i].package,
                                        m->cores[i].core_id, core_names[k],
                                        core_counter(m, &m->cores[i], k, t_ns));
        for (unsigned i = 0; i < m->n_dies; i++)
                for (unsigned k = 0; k < ARRAY_SIZE(die_names); k++)
                        if (machine_package_counter_exists(m, k))
                                buf_printf(b, "package %u/%u %s %" PRIu64 "\n", m->dies[i].package,
                                        m->dies[i].die, die_names[k], die_counter(m, &m->dies[i], k, t_ns));
        for (unsigned i = 0; i < m->n_zones; i++)
                buf_printf(b, "zone %s uj %" PRIu64 "\n", m->zones[i].dir,
                        zone_energy_uj(m, &m->zones[i], t_ns));
}

static const char *zone_name(void *userdata, unsigned zone) {
        const Machine *m = userdata;

        return zone < m->n_zones ? m->zones[zone].dir : "?";
}

static void render_wakes(const Machine *m, Buf *b) {
        for (unsigned i = 0; i < m->n_cpus; i++)
                if (m->cpus[i].wakes_caused > 0)
                        buf_printf(b, "wakes %u %" PRIu64 "\n", m->cpus[i].id, m->cpus[i].wakes_caused);
}

void control_render(Machine *m, const Ledger *ledger, unsigned file, int64_t t_ns, Buf *b) {
        switch (file) {
        case CTL_LEDGER:
                ledger_print(ledger, zone_name, m, b);
                render_wakes(m, b);
                break;
        case CTL_COUNTERS:
                render_counters(m, t_ns, b);
                break;
        case CTL_EXPECT:
                render_expect(m, b);
                break;
        default:
                break;
        }
}

int control_set(Machine *m, const char *text, size_t len, int64_t t_ns) {
        char line[STATEMENT_TEXT_MAX], error[SCENARIO_ERROR_MAX];
        const char *end = text + len;

        while (text < end) {
                const char *newline = memchr(text, '\n', (size_t) (end - text));
                size_t n = (size_t) ((newline ? newline : end) - text);

                if (n >= sizeof(line))
                        return -EINVAL;
                memcpy(line, text, n);
                line[n] = '\0';
                text += n + 1;
                if (line[strspn(line, " \t")] == '\0' || line[strspn(line, " \t")] == '#')
                        continue;
                Statement *st = statement_parse(line, 0, error);
                if (!st || !machine_submit(m, st, t_ns, error)) {
                        (void) fprintf(stderr, "fakecpu: set: %s\n", error);
                        return -EINVAL;
                }
        }
        return 0;
}
