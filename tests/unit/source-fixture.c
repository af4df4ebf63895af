/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include "sampler/topology.h"
#include "tests/unit/source-fixture.h"

void source_fixture_start(SourceFixture *f, const SourceOps *ops) {
        f->ops = ops;
        f->status = (SourceStatus){ .state = SOURCE_OK };
        assert_int_equal(topology_read(f->fixture.sysfs, NULL, &f->machine), 0);
        assert_true(f->machine->n_cpus <= ARRAY_SIZE(f->activity));
        assert_int_equal(ops->probe(f->fixture.sysfs, f->machine, 3, &f->source, &f->status), 0);
        layout_finish(&f->machine->layout);
        f->tick = tick_new(f->machine->layout.n_values);
        assert_non_null(f->tick);
        if (f->source)
                assert_int_equal(ops->open(f->source, f->machine), 0);
}

void source_fixture_stop(SourceFixture *f) {
        if (f->source)
                f->source = f->ops->close(f->source);
        f->machine = machine_free(f->machine);
        f->tick = tick_free(f->tick);
}

int source_fixture_turn(SourceFixture *f, uint8_t evidence) {
        memset(f->activity, 0, sizeof(f->activity));
        for (uint32_t i = 0; i < f->machine->n_cpus; i++)
                f->activity[i] = (CpuActivity){ .evidence = evidence, .asked = f->asked };
        f->turn = (SourceTurn){ .machine = f->machine, .tick = f->tick, .activity = f->activity };
        return f->ops->read(f->source, &f->turn, &f->status);
}

static size_t slot_of(const SourceFixture *f, FieldId field, uint8_t instance, uint32_t cpu) {
        const LayoutColumn *c = layout_find(&f->machine->layout, field, instance);

        assert_non_null(c);
        return c->offset + cpu;
}

uint64_t source_fixture_value(const SourceFixture *f, FieldId field, uint8_t instance, uint32_t cpu) {
        return f->tick->values[slot_of(f, field, instance, cpu)];
}

Reason source_fixture_reason(const SourceFixture *f, FieldId field, uint8_t instance, uint32_t cpu) {
        return (Reason) f->tick->reasons[slot_of(f, field, instance, cpu)];
}
