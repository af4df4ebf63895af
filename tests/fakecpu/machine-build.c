/* SPDX-License-Identifier: GPL-2.0-or-later */

/* From a scenario's structure to CPUs, cores, dies, zones and the figures they start with. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "machine-apply.h"
#include "machine.h"

static uint64_t value_or(uint64_t value, uint64_t fallback) {
        return value == SCENARIO_UNSET ? fallback : value;
}

/* A scattered but repeatable number: every counter begins somewhere, and none where its neighbour does. */
static uint64_t scatter(uint64_t a, uint64_t b, uint64_t c) {
        uint64_t x = a * UINT64_C(0x9e3779b97f4a7c15) + b * UINT64_C(0xbf58476d1ce4e5b9) +
                     c * UINT64_C(0x94d049bb133111eb);

        x ^= x >> 31;
        x *= UINT64_C(0xd6e8feb86659fd93);
        return x ^ x >> 32;
}

static u128 start_count(uint64_t a, uint64_t b, uint64_t c, uint64_t below) {
        return (u128) (scatter(a, b, c) % below) * (u128) NANO * (u128) NANO;
}

typedef struct Layout {
        unsigned packages, dies, pcores, ecores, threads; /* cores a die */
        bool sequential;
        IdSet ids, core_ids;
        bool ids_given, core_ids_given;
} Layout;

static bool layout_read(Layout *l, const Scenario *s, const Profile *p, char *error) {
        *l = (Layout){
                .packages = (unsigned) value_or(s->packages, 1),
                .dies = (unsigned) value_or(s->dies, 1),
                .pcores = (unsigned) value_or(p->hybrid ? s->pcores : s->cores, 4),
                .ecores = (unsigned) (p->hybrid ? value_or(s->ecores, 4) : 0),
                .threads = (unsigned) value_or(s->threads, 1),
                .sequential = strcmp(s->numbering, "seq") == 0 || p->hybrid,
                .ids_given = s->cpus[0] != '\0',
                .core_ids_given = s->core_ids[0] != '\0',
        };
        uint64_t n = (uint64_t) l->packages * l->dies * ((uint64_t) l->pcores * l->threads + l->ecores);

        if (l->packages == 0 || l->dies == 0 || l->pcores == 0 || l->threads == 0 || n > MACHINE_CPUS_MAX)
                return scenario_error(error, 0, "topology", "needs 1 to 1024 CPUs");
        if (l->ids_given && !idset_parse(&l->ids, s->cpus))
                return scenario_error(error, 0, "cpus: bad list", s->cpus);
        if (l->core_ids_given && !idset_parse(&l->core_ids, s->core_ids))
                return scenario_error(error, 0, "core_ids: bad list", s->core_ids);
        return true;
}

/* The index-th member of a set. */
static unsigned idset_nth(const IdSet *set, unsigned index) {
        for (unsigned i = 0; i < ID_MAX; i++)
                if (idset_has(set, i) && index-- == 0)
                        return i;
        return ID_MAX;
}

static void build_core(
        Machine *m, const Layout *l, const Scenario *s, unsigned position, unsigned die_index, unsigned c) {
        Core *core = &m->cores[position];
        unsigned per_die = l->pcores + l->ecores, in_package = m->dies[die_index].die * per_die + c;
        bool e = c >= l->pcores;
        unsigned module_cores = (unsigned) value_or(s->module_cores, e ? 4 : 1);

        *core = (Core){
                .package = m->dies[die_index].package,
                .die = m->dies[die_index].die,
                .type = e,
                .core_id = l->core_ids_given ? idset_nth(&l->core_ids, in_package)
                           : l->ecores > 0   ? (e ? l->pcores * 4 + (c - l->pcores) : c * 4)
                                             : in_package,
        };
        unsigned in_module = (e ? c - l->pcores : c) % MAX(module_cores, 1U);

        core->module_core = position - in_module;
        core->module = m->cores[core->module_core].core_id;
        for (unsigned i = CORE_C3; i <= CORE_MC6; i++)
                core->c[i].acc = start_count(2, position, i, UINT64_C(1000000000000000));
        core->c[CORE_ENERGY].acc = start_count(2, position, CORE_ENERGY, UINT64_C(1) << 30);
}

static void build_cpu(
        Machine *m, unsigned index, unsigned core_index, unsigned smt, unsigned die_index, unsigned id) {
        const Core *core = &m->cores[core_index];
        Cpu *cpu = &m->cpus[index];

        *cpu = (Cpu){
                .id = id,
                .package = core->package,
                .die = core->die,
                .core_id = core->core_id,
                .smt = smt,
                .type = core->type,
                .core = core_index,
                .die_index = die_index,
                .online = true,
                .wake_ns = NANO / 4,
                .phase_ns = (int64_t) (id * UINT64_C(37000000) % 250000000),
        };
        for (unsigned i = 0; i < CPU_N; i++)
                cpu->c[i].acc = start_count(1, id, i,
                        i <= CPU_C1      ? UINT64_C(1000000000000000)
                        : i < CPU_USER   ? 100000000
                        : i < CPU_STATES ? 1000000
                                         : UINT64_C(1000000000));
        cpu->c[CPU_SMI].acc = start_count(1, id, CPU_SMI, 5000);
        m->by_id[id] = (int16_t) index;
        m->max_id = MAX(m->max_id, id);
        idset_add(&m->present, id);
        idset_add(&m->online, id);
        idset_add(&m->cores[core_index].cpus, id);
        idset_add(&m->dies[die_index].cpus, id);
}

/* Linux names first all first threads, then all second ones; "seq" (and clients) have siblings side by side.
 */
static bool build_cpus(Machine *m, const Layout *l, char *error) {
        unsigned per_die = l->pcores + l->ecores, n_core = 0, n = 0;

        for (unsigned pass = 0; pass < (l->sequential ? 1 : l->threads); pass++)
                for (n_core = 0; n_core < m->n_cores; n_core++) {
                        unsigned threads = n_core % per_die < l->pcores ? l->threads : 1;

                        for (unsigned smt = 0; smt < threads; smt++) {
                                if (!l->sequential && smt != pass)
                                        continue;
                                unsigned id = l->ids_given ? idset_nth(&l->ids, n) : n;
                                if (id >= MACHINE_CPUS_MAX)
                                        return scenario_error(error, 0, "cpus",
                                                "fewer ids than the topology has CPUs, or one above 1023");
                                build_cpu(m, n++, n_core, smt, n_core / per_die, id);
                        }
                }
        return true;
}

static void build_die(Machine *m, unsigned index, unsigned dies_per_package) {
        Die *die = &m->dies[index];

        *die = (Die){
                .package = index / dies_per_package,
                .die = index % dies_per_package,
                .energy_die = m->profile->rapl & RAPL_AMD ? index - index % dies_per_package : index,
        };
        for (unsigned i = 0; i < DIE_N; i++)
                die->c[i].acc = start_count(
                        3, index, i, i <= DIE_PC10 ? UINT64_C(1000000000000000) : UINT64_C(1) << 30);
}

static bool build_topology(Machine *m, const Scenario *s, char *error) {
        Layout l;

        if (!layout_read(&l, s, m->profile, error))
                return false;
        unsigned per_die = l.pcores + l.ecores;

        m->n_packages = l.packages;
        m->n_dies = l.packages * l.dies;
        m->n_cores = m->n_dies * per_die;
        m->n_cpus = m->n_dies * (l.pcores * l.threads + l.ecores);
        m->cpus = calloc(m->n_cpus, sizeof(Cpu));
        m->cores = calloc(m->n_cores, sizeof(Core));
        m->dies = calloc(m->n_dies, sizeof(Die));
        if (!m->cpus || !m->cores || !m->dies)
                return scenario_error(error, 0, "topology", "out of memory");
        (void) memset(m->by_id, 0xff, sizeof(m->by_id));
        for (unsigned i = 0; i < m->n_dies; i++)
                build_die(m, i, l.dies);
        for (unsigned i = 0; i < m->n_cores; i++)
                build_core(m, &l, s, i, i / per_die, i % per_die);
        return build_cpus(m, &l, error);
}

static void build_states(Machine *m, const Scenario *s) {
        const ScenarioState *from = s->n_states > 0 ? s->states : m->profile->states;
        size_t n = s->n_states > 0 ? s->n_states : m->profile->n_states;

        for (size_t i = 0; i < n; i++)
                for (unsigned type = 0; type < 2; type++)
                        if (from[i].types & (1U << type))
                                m->states[type][m->n_states[type]++] = from[i];
}

static Zone *zone_add(Machine *m, const char *dir, int parent, int domain, unsigned die_index) {
        if (m->n_zones == SCENARIO_ZONES_MAX)
                return NULL;
        Zone *z = &m->zones[m->n_zones++];
        uint64_t num, den;

        *z = (Zone){ .parent = parent, .domain = domain, .die_index = die_index };
        (void) snprintf(z->dir, sizeof(z->dir), "%s", dir);
        machine_energy_unit(m, domain, &num, &den);
        z->range_uj = UINT32_MAX * (num / den) / 1000;
        return z;
}

/* The zones the kernel's RAPL driver would make: package zones with their parts, psys last. */
static void build_rapl_zones(Machine *m, const char *control, unsigned domains) {
        static const struct {
                unsigned bit;
                int domain;
                const char *name;
        } parts[] = {
                { RAPL_COR, DIE_COR, "core" },
                { RAPL_GFX, DIE_GFX, "uncore" },
                { RAPL_RAM, DIE_RAM, "dram" },
        };
        bool amd = m->profile->rapl & RAPL_AMD, die_zones = !amd && m->n_dies > m->n_packages;
        unsigned n = 0;
        char dir[64];
        Zone *z;

        for (unsigned i = 0; i < m->n_dies; i++) {
                if (m->dies[i].energy_die != i)
                        continue;
                (void) snprintf(dir, sizeof(dir), "%s:%u", control, n);
                z = zone_add(m, dir, -1, DIE_PKG, i);
                if (!z)
                        return;
                (void) snprintf(z->name, sizeof(z->name), die_zones ? "package-%u-die-%u" : "package-%u",
                        m->dies[i].package, m->dies[i].die);
                int parent = (int) (z - m->zones);

                for (unsigned k = 0, sub = 0; k < ARRAY_SIZE(parts); k++) {
                        if (!(domains & parts[k].bit))
                                continue;
                        (void) snprintf(dir, sizeof(dir), "%s:%u:%u", control, n, sub++);
                        z = zone_add(m, dir, parent, amd ? ZONE_AMD_CORE : parts[k].domain, i);
                        if (z)
                                (void) snprintf(z->name, sizeof(z->name), "%s", parts[k].name);
                }
                n++;
        }
        (void) snprintf(dir, sizeof(dir), "%s:%u", control, n);
        if ((domains & RAPL_SYS) && (z = zone_add(m, dir, -1, ZONE_PSYS, 0)))
                (void) snprintf(z->name, sizeof(z->name), "psys");
}

static bool build_zones(Machine *m, const Scenario *s, char *error) {
        if (m->profile->rapl && strcmp(s->zones, "none") != 0) {
                build_rapl_zones(m, "intel-rapl", m->profile->rapl);
                if (m->profile->rapl & RAPL_MMIO)
                        build_rapl_zones(m, "intel-rapl-mmio", RAPL_PKG | RAPL_RAM);
        }
        for (size_t i = 0; i < s->n_zones; i++) {
                const ScenarioZone *from = &s->zone[i];
                int parent = -1;

                for (unsigned k = 0; k < m->n_zones && from->parent[0] != '\0'; k++)
                        if (strcmp(m->zones[k].dir, from->parent) == 0)
                                parent = (int) k;
                if (from->parent[0] != '\0' && parent < 0)
                        return scenario_error(error, 0, "zone: no such parent", from->parent);
                Zone *z = zone_add(m, from->dir, parent, ZONE_OWN, 0);
                if (!z)
                        return scenario_error(error, 0, "too many zones", from->dir);
                (void) snprintf(z->name, sizeof(z->name), "%s", from->name);
                z->range_uj = from->range_uj;
                z->own = (Counter){
                        .acc = start_count(5, i, 0, UINT64_C(100000000000)),
                        .param = from->watts_nano,
                        .rate = (uint64_t) from->watts_nano * 1000000,
                };
        }
        return true;
}

static bool build_offline(Machine *m, const Scenario *s, char *error) {
        IdSet off;

        if (s->offline[0] == '\0')
                return true;
        if (!idset_parse(&off, s->offline))
                return scenario_error(error, 0, "offline: bad list", s->offline);
        for (unsigned i = 0; i < m->n_cpus; i++)
                if (idset_has(&off, m->cpus[i].id))
                        machine_set_online(m, &m->cpus[i], false, true, 0);
        return true;
}

bool machine_build(Machine *m, const Scenario *s, uint64_t tsc_hz, char error[SCENARIO_ERROR_MAX]) {
        *m = (Machine){ .scenario = s, .tsc_hz = tsc_hz, .profile = profile_find(s->model) };
        if (!m->profile)
                return scenario_error(error, 0, "no such model", s->model);
        m->tjmax = value_or(s->tjmax, m->profile->tjmax);
        m->esu = value_or(s->esu, m->profile->esu);
        m->pkg_limit = value_or(s->pkg_limit, m->profile->pkg_limit);
        m->microcode = value_or(s->microcode, m->profile->microcode);
        m->stepping = value_or(s->stepping, m->profile->stepping);
        m->base_mhz = value_or(s->base_mhz, (tsc_hz + 500000) / 1000000);
        m->hypervisor = value_or(s->hypervisor, strcmp(s->model, "vm") == 0) != 0;
        m->msr_zero = value_or(s->msr_zero, 0) != 0;
        if (m->esu > 31)
                return scenario_error(error, 0, "esu", "above 31");
        m->files[FILE_MSR].mode = m->files[FILE_CPUID].mode = 0600;
        m->files[FILE_ENERGY].mode = 0400;
        m->files[FILE_MSR].hidden = !m->profile->msr && !m->msr_zero;
        m->files[FILE_CPUID].hidden = m->files[FILE_MSR].hidden;
        m->files[FILE_CPUIDLE].hidden = !m->profile->cpuidle && s->n_states == 0;
        build_states(m, s);
        return build_topology(m, s, error) && build_zones(m, s, error) && build_offline(m, s, error) &&
               machine_schedule(m, s, error);
}

void machine_deinit(Machine *m) {
        free(m->cpus);
        free(m->cores);
        free(m->dies);
        free(m->pending);
        *m = (Machine){};
}
