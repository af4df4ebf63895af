/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

#include "cstated/timespan.h"
#include "tests/unit/store-fixture.h"

static void *fixture_alloc(size_t n, size_t size) {
        void *p = calloc(n, size);

        assert_non_null(p);
        return p;
}

static void fixture_add(Machine *m, FieldId field, uint8_t n_instances) {
        for (uint8_t i = 0; i < n_instances; i++)
                assert_non_null(layout_add(&m->layout, field, i));
}

static void fixture_entities(Machine *m, uint32_t n_cpus, uint32_t n_packages) {
        m->n_cpus = n_cpus;
        m->n_cores = (n_cpus + 1) / 2;
        m->n_packages = n_packages;
        m->cpus = fixture_alloc(n_cpus, sizeof(*m->cpus));
        m->cores = fixture_alloc(m->n_cores, sizeof(*m->cores));
        m->packages = fixture_alloc(n_packages, sizeof(*m->packages));
        for (uint32_t i = 0; i < n_cpus; i++)
                m->cpus[i] = (MachineCpu){
                        .id = i,
                        .core = i / 2,
                        .package = i / 2 * n_packages / m->n_cores,
                        .module = UINT32_MAX,
                        .thread = i % 2,
                };
        for (uint32_t i = 0; i < m->n_cores; i++)
                m->cores[i] = (MachineCore){
                        .id = (int32_t) i, .package = m->cpus[i * 2].package, .first_cpu = i * 2};
        for (uint32_t i = n_cpus; i-- > 0;)
                m->packages[m->cpus[i].package] = (MachinePackage){
                        .package = (int32_t) m->cpus[i].package,
                        .die = -1,
                        .first_cpu = i,
                };
}

Machine *fixture_machine(uint32_t n_cpus, uint32_t n_packages, uint32_t generation) {
        static const char *const names[] = {"POLL", "C1", "C6"};
        Machine *m = machine_new();

        assert_non_null(m);
        m->generation = generation;
        (void) strcpy(m->boot_id, "0123456789abcdef0123456789abcdef");
        (void) strcpy(m->host, "fixture");
        (void) strcpy(m->kernel, "6.1.0");
        (void) strcpy(m->idle_driver, "intel_idle");
        (void) strcpy(m->idle_governor, "menu");
        m->tsc_hz = 2100000000;
        m->user_hz = 100;
        fixture_entities(m, n_cpus, n_packages);
        m->n_idle_sets = 1;
        m->idle_sets = fixture_alloc(1, sizeof(*m->idle_sets));
        m->idle_sets[0].n_states = 3;
        for (unsigned i = 0; i < 3; i++) {
                (void) strcpy(m->idle_sets[0].states[i].name, names[i]);
                m->idle_sets[0].states[i].mwait_hint = -1;
                m->idle_sets[0].states[i].is_poll = i == 0;
        }
        m->n_idents = 1;
        m->idents = fixture_alloc(1, sizeof(*m->idents));
        (void) strcpy(m->idents[0].vendor, "GenuineIntel");
        m->layout.n_entities[SCOPE_SYSTEM] = 1;
        m->layout.n_entities[SCOPE_PACKAGE] = n_packages;
        m->layout.n_entities[SCOPE_CORE] = m->n_cores;
        m->layout.n_entities[SCOPE_CPU] = n_cpus;
        fixture_add(m, FIELD_CPU_TSC, 1);
        fixture_add(m, FIELD_CPU_NS, 1);
        fixture_add(m, FIELD_MPERF, 1);
        fixture_add(m, FIELD_APERF, 1);
        fixture_add(m, FIELD_IRQ, 1);
        fixture_add(m, FIELD_IDLE_NS, 1);
        fixture_add(m, FIELD_IDLE_TIME, 3);
        fixture_add(m, FIELD_IDLE_USAGE, 3);
        fixture_add(m, FIELD_CORE_TSC, 1);
        fixture_add(m, FIELD_C6, 1);
        fixture_add(m, FIELD_PKG_TSC, 1);
        fixture_add(m, FIELD_PKG_NS, 1);
        fixture_add(m, FIELD_PC6, 1);
        fixture_add(m, FIELD_ENERGY_PKG, 1);
        layout_finish(&m->layout);
        return m;
}

Machine *fixture_fullest_machine(void) {
        Machine *m = fixture_machine(4, 1, 1);

        free(m->idle_sets);
        m->n_idle_sets = 2;
        m->idle_sets = fixture_alloc(2, sizeof(*m->idle_sets));
        for (unsigned set = 0; set < 2; set++) {
                m->idle_sets[set].n_states = IDLE_STATES_MAX;
                for (unsigned i = 0; i < IDLE_STATES_MAX; i++) {
                        (void) snprintf(m->idle_sets[set].states[i].name, sizeof(m->idle_sets[set].states[i].name),
                                "%c%u", set ? 'E' : 'P', i);
                        m->idle_sets[set].states[i].mwait_hint = -1;
                        m->cpus[set * 2].idle_set = m->cpus[set * 2 + 1].idle_set = (uint16_t) set;
                }
        }
        for (unsigned field = FIELD_NONE + 1; field < FIELD_N; field++)
                for (unsigned i = 0; i < field_n_instances((FieldId) field); i++)
                        if (field_spec((FieldId) field)->kind != FIELD_DERIVED)
                                (void) layout_add(&m->layout, (FieldId) field, (uint8_t) i);
        layout_finish(&m->layout);
        return m;
}

int64_t fixture_value(uint64_t seq, size_t slot) {
        uint64_t x = (seq * 0x9e3779b97f4a7c15u) ^ (slot * 0xc2b2ae3d27d4eb4fu);

        x ^= x >> 29;
        return slot % 7 == 3 ? -(int64_t) (x % 1000) : (int64_t) (x % (1u << (slot % 30 + 1)));
}

Reason fixture_reason(uint64_t seq, size_t slot) {
        if (slot % 11 == 5 && seq % 3 == 0)
                return REASON_ASLEEP;
        return slot % 13 == 12 ? REASON_ABSENT : REASON_NONE;
}

void fixture_init(Fixture *f, uint32_t n_cpus, uint32_t n_packages, uint32_t generation) {
        fixture_init_machine(f, fixture_machine(n_cpus, n_packages, generation));
}

void fixture_init_machine(Fixture *f, Machine *m) {
        *f = (Fixture){.machine = m};
        sample_layout(f->machine, &f->layout);
        f->sample = (Sample){
                .machine = f->machine,
                .layout = &f->layout,
                .values = fixture_alloc(f->layout.n_values, sizeof(int64_t)),
                .reasons = fixture_alloc(f->layout.n_values, 1),
        };
}

void fixture_deinit(Fixture *f) {
        free(f->sample.values);
        free(f->sample.reasons);
        (void) machine_free(f->machine);
}

const Sample *fixture_sample(Fixture *f, uint64_t base_us, uint64_t seq) {
        f->sample.h = (SampleHeader){
                .seq = seq,
                .start_us = base_us + (seq - 1) * USEC_PER_SEC,
                .end_us = base_us + seq * USEC_PER_SEC,
                .dt_ns = NSEC_PER_SEC + seq,
                .generation = f->machine->generation,
                .epoch = 1,
        };
        for (size_t i = 0; i < f->layout.n_values; i++) {
                f->sample.reasons[i] = (uint8_t) fixture_reason(seq, i);
                f->sample.values[i] = f->sample.reasons[i] ? 0 : fixture_value(seq, i);
        }
        return &f->sample;
}

char *fixture_make_dir(void) {
        /* memory where there is some: the tests sync a lot */
        const char *top = getenv("TMPDIR") ?: access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
        char *dir = NULL;

        assert_true(asprintf(&dir, "%s/cstated-test-XXXXXX", top) > 0);
        assert_non_null(mkdtemp(dir));
        return dir;
}

static int fixture_remove(const char *path, const struct stat *st, int type, struct FTW *ftw) {
        return remove(path);
}

void fixture_remove_dir(char *dir) {
        assert_int_equal(nftw(dir, fixture_remove, 8, FTW_DEPTH | FTW_PHYS), 0);
        free(dir);
}
