/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The probe. An error at the first CPU of a kind is confirmed at another one, since a single CPU may have a
 * fault of its own; only then the register is absent for the kind. A register that reads 0 proves nothing
 * where the table says so: RAPL that never counted, MPERF and residencies under a hypervisor, which hands
 * out zeros for what it does not know.
 */

#include <errno.h>
#include <stdlib.h>

#include "cstated/macro.h"
#include "sampler/msr-probe.h"

typedef struct Probe {
        MsrSet *set;
        MsrReadFn read;
        void *userdata;
        Machine *m;
        const CpuModel *const *models;
} Probe;

static bool layout_has(const Layout *l, FieldId field) {
        for (size_t i = 0; i < l->n_columns; i++)
                if (l->columns[i].field == field)
                        return true;
        return false;
}

/*
 * Another source reads the clock of this counter, at times of its own: a quotient of the two would be of different
 * times. SMI is a count and nobody's numerator.
 */
static bool has_foreign_clock(const Layout *l, FieldId field) {
        FieldId span = field_spec(field)->span;

        return span != FIELD_NONE && field != FIELD_SMI && layout_has(l, span);
}

static void note_absent(MsrSet *set, uint32_t reg) {
        for (size_t i = 0; i < set->n_absent; i++)
                if (set->absent[i] == reg)
                        return;
        if (set->n_absent < ARRAY_SIZE(set->absent))
                set->absent[set->n_absent++] = reg;
}

MsrColumn *msr_set_find(MsrSet *set, FieldId field) {
        for (size_t i = 0; i < set->n_columns; i++)
                if (set->columns[i].r.field == field)
                        return &set->columns[i];
        return NULL;
}

MsrColumn *msr_set_add(MsrSet *set, const Machine *m, const MsrRegister *r) {
        MsrColumn *c = msr_set_find(set, r->field);
        uint32_t n = machine_n_entities(m, field_spec(r->field)->scope);

        if (c || set->n_columns == ARRAY_SIZE(set->columns))
                return c;
        c = &set->columns[set->n_columns];
        *c = (MsrColumn){.r = *r, .scale = 1.0, .n = n, .slots = calloc(n + 1, sizeof(MsrSlot))};
        if (!c->slots)
                return NULL;
        for (uint32_t i = 0; i < n; i++)
                c->slots[i].reason = REASON_ABSENT;
        set->n_columns++;
        return c;
}

/* True where the register can be read on this CPU and the value proves that it counts. */
static bool passes(Probe *p, uint32_t cpu, const MsrRegister *r) {
        uint64_t value = 0;
        int k;

        k = p->read(p->userdata, cpu, r->reg, &value);
        if (k < 0 && k != -EIO && p->set->error == 0)
                p->set->error = k;
        if (k < 0)
                return false;
        if (value == 0 && r->zero == MSR_ZERO_IS_ABSENT && p->read(p->userdata, cpu, r->reg, &value) < 0)
                return false;
        if (value != 0)
                return true;
        if (p->m->hypervisor && r->zero != MSR_ZERO_IS_VALUE)
                p->set->zero_in_vm = true;
        return r->zero == MSR_ZERO_IS_VALUE || (r->zero == MSR_ZERO_IS_ABSENT_IN_VM && !p->m->hypervisor);
}

/* The last CPU of the same core type (and package, unless UINT32_MAX): a second witness. */
static uint32_t other_cpu(const Machine *m, uint32_t cpu, uint32_t package) {
        for (uint32_t i = m->n_cpus; i-- > 0;)
                if (m->cpus[i].ident == m->cpus[cpu].ident &&
                        (package == UINT32_MAX || m->cpus[i].package == package))
                        return i;
        return cpu;
}

static bool passes_twice(Probe *p, uint32_t cpu, uint32_t package, const MsrRegister *r) {
        uint32_t other;

        if (passes(p, cpu, r))
                return true;
        other = other_cpu(p->m, cpu, package);
        return other != cpu && passes(p, other, r);
}

/* The first online CPU of a kind, UINT32_MAX: none. */
static uint32_t first_cpu(const Machine *m, uint16_t ident) {
        for (uint32_t i = 0; i < m->n_cpus; i++)
                if (m->cpus[i].ident == ident)
                        return i;
        return UINT32_MAX;
}

static uint32_t entity_of(const Machine *m, Scope scope, uint32_t cpu) {
        return scope == SCOPE_CPU ? cpu : machine_parent(m, SCOPE_CPU, cpu, scope);
}

static int probe_kind(Probe *p, uint16_t ident, uint32_t cpu, const MsrRegister *r) {
        Scope scope = field_spec(r->field)->scope;
        MsrColumn *c;

        if (machine_n_entities(p->m, scope) == 0)
                return 0;
        if (!passes_twice(p, cpu, UINT32_MAX, r)) {
                note_absent(p->set, r->reg);
                return 0;
        }
        c = msr_set_add(p->set, p->m, r);
        if (!c)
                return -ENOMEM;
        for (uint32_t i = 0; i < p->m->n_cpus; i++) {
                uint32_t e = p->m->cpus[i].ident == ident ? entity_of(p->m, scope, i) : UINT32_MAX;

                if (e >= c->n)
                        continue;
                c->slots[e].present = true;
                c->slots[e].holds_c7 = r->field == FIELD_C6 && p->models[ident] &&
                                       (p->models[ident]->quirks & CPU_QUIRK_C6_INCLUDES_C7);
        }
        return 0;
}

static int probe_package(Probe *p, uint32_t package, const MsrRegister *r) {
        uint32_t e = field_spec(r->field)->scope == SCOPE_SYSTEM ? 0 : package;
        MsrColumn *c = msr_set_find(p->set, r->field);

        if (field_spec(r->field)->scope == SCOPE_SYSTEM && c)
                return 0; /* the platform's counter is one, whichever package shows it */
        if (!passes_twice(p, p->m->packages[package].first_cpu, package, r)) {
                note_absent(p->set, r->reg);
                return 0;
        }
        c = msr_set_add(p->set, p->m, r);
        if (!c)
                return -ENOMEM;
        c->slots[e].present = true;
        return 0;
}

static void probe_tjmax(Probe *p, uint32_t package) {
        uint32_t cpu = p->m->packages[package].first_cpu;
        const CpuModel *model = p->models[p->m->cpus[cpu].ident];
        uint64_t value;

        if (!model || p->read(p->userdata, cpu, MSR_TEMPERATURE_TARGET, &value) < 0)
                return;
        value = value >> 16 & 0xff;
        if (value >= 40 && value <= 130)
                p->set->convert[package].tjmax = (uint32_t) value;
}

/*
 * The clock that MPERF and the residencies of some models count: PLATFORM_INFO's ratio times the bus clock; leaf 0x16
 * says the same in MHz where both speak of this core type.
 */
static uint64_t base_hz(const CpuIdent *c, const CpuModel *model, uint64_t platform_info) {
        uint64_t leaf = (uint64_t) c->base_mhz * 1000000;
        uint64_t hz = (platform_info >> 8 & 0xff) * (model->bclk_khz ? model->bclk_khz : 100000u) * 1000u;
        uint64_t apart = hz > leaf ? hz - leaf : leaf - hz;

        return hz == 0 || apart <= 50000000 ? leaf : hz;
}

static void probe_tweak(Probe *p, uint32_t package) {
        uint32_t cpu = p->m->packages[package].first_cpu;
        const CpuIdent *c = &p->m->idents[p->m->cpus[cpu].ident];
        const CpuModel *model = p->models[p->m->cpus[cpu].ident];
        uint64_t value, tsc = cpuid_tsc_hz(c);

        if (!model || !(model->quirks & CPU_QUIRK_TSC_TWEAK))
                return;
        if (p->read(p->userdata, cpu, MSR_PLATFORM_INFO, &value) < 0)
                value = 0;
        msr_convert_set_tweak(
                &p->set->convert[package], model, tsc ? tsc : p->m->tsc_hz, base_hz(c, model, value));
}

static void probe_limit(Probe *p, uint32_t cpu) {
        const CpuModel *model = p->models[p->m->cpus[cpu].ident];
        uint64_t value;

        if (!model || !model->package || p->read(p->userdata, cpu, MSR_PKG_CST_CONFIG, &value) < 0)
                return;
        if (value == 0 && p->m->hypervisor)
                return;
        p->m->pkg_cst_config = value;
        p->m->has_pkg_cst_config = true;
}

static bool needs_tjmax(const MsrRegister *r) {
        return r->decode == MSR_DECODE_CORE_TEMP || r->decode == MSR_DECODE_PKG_TEMP;
}

/* Units: without a believable unit register energy means nothing. */
static bool read_unit(Probe *p, uint32_t cpu, uint64_t *ret) {
        uint16_t ident = p->m->cpus[cpu].ident;
        uint32_t reg = msr_unit_register(&p->m->idents[ident], p->models[ident]);

        if (reg == 0)
                return false;
        if (p->read(p->userdata, cpu, reg, ret) < 0 || *ret == 0) {
                note_absent(p->set, reg);
                return false;
        }
        return true;
}

static bool is_rapl(const MsrRegister *r) {
        FieldUnit unit = field_spec(r->field)->unit;

        return unit == FIELD_UNIT_ENERGY || unit == FIELD_UNIT_TIME;
}

/* All registers of one scope class on one CPU: thread to module registers of a core type, or a package's. */
static int probe_cpu(Probe *p, uint32_t cpu, bool wide) {
        MsrRegister regs[MSR_REGISTERS_MAX];
        uint16_t ident = p->m->cpus[cpu].ident;
        uint32_t package = p->m->cpus[cpu].package;
        const CpuModel *model = p->models[ident];
        size_t n = msr_registers(&p->m->idents[ident], model, regs);
        uint64_t unit = 0;
        bool has_unit = read_unit(p, cpu, &unit);
        int r;

        for (size_t i = 0; i < n; i++) {
                Scope scope = field_spec(regs[i].field)->scope;
                MsrColumn *c;

                if ((scope == SCOPE_PACKAGE || scope == SCOPE_SYSTEM) != wide ||
                        layout_has(&p->m->layout, regs[i].field) ||
                        has_foreign_clock(&p->m->layout, regs[i].field))
                        continue;
                if (is_rapl(&regs[i]) && !has_unit)
                        continue;
                if (needs_tjmax(&regs[i]) && p->set->convert[package].tjmax == 0)
                        continue;
                r = wide ? probe_package(p, package, &regs[i]) : probe_kind(p, ident, cpu, &regs[i]);
                if (r < 0)
                        return r;
                c = msr_set_find(p->set, regs[i].field);
                if (c && is_rapl(&regs[i]))
                        c->scale = msr_scale(regs[i].field, model, unit);
        }
        return 0;
}

static int scope_compare(const void *a, const void *b) {
        const MsrColumn *x = a, *y = b;
        Scope sx = field_spec(x->r.field)->scope, sy = field_spec(y->r.field)->scope;

        if (sx != sy)
                return sx < sy ? -1 : 1;
        return (x->r.field > y->r.field) - (x->r.field < y->r.field);
}

void msr_set_group(MsrSet *set) {
        size_t i = 0;

        qsort(set->columns, set->n_columns, sizeof(set->columns[0]), scope_compare);
        for (unsigned scope = 0; scope < SCOPE_N; scope++) {
                set->first[scope] = i;
                while (i < set->n_columns && field_spec(set->columns[i].r.field)->scope == (Scope) scope)
                        i++;
        }
        set->first[SCOPE_N] = i;
}

static int probe_all(Probe *p) {
        int r;

        for (uint32_t i = 0; i < p->m->n_packages; i++) {
                probe_tjmax(p, i);
                probe_tweak(p, i);
        }
        for (uint16_t i = 0; i < p->m->n_idents; i++) {
                uint32_t cpu = first_cpu(p->m, i);

                if (cpu == UINT32_MAX)
                        continue;
                r = probe_cpu(p, cpu, false);
                if (r < 0)
                        return r;
        }
        for (uint32_t i = 0; i < p->m->n_packages; i++) {
                r = probe_cpu(p, p->m->packages[i].first_cpu, true);
                if (r < 0)
                        return r;
        }
        probe_limit(p, 0);
        return 0;
}

int msr_probe(MsrSet *set, MsrReadFn read, void *userdata, Machine *m, const CpuModel *const *models) {
        Probe p = {set, read, userdata, m, models};
        uint64_t unused;
        int r;

        *set = (MsrSet){
                .n_packages = m->n_packages, .convert = calloc(m->n_packages + 1, sizeof(MsrConvert))};
        if (!set->convert)
                return -ENOMEM;
        r = m->n_cpus == 0 ? -ENODEV : read(userdata, 0, MSR_TSC, &unused);
        if (r < 0 && r != -EIO) /* is anybody there at all? */
                return r;
        r = probe_all(&p);
        msr_set_group(set);
        return r;
}

void msr_set_deinit(MsrSet *set) {
        for (size_t i = 0; i < set->n_columns; i++)
                free(set->columns[i].slots);
        free(set->convert);
        *set = (MsrSet){};
}
