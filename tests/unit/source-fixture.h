/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* One source on a fixture tree, turned by hand. */

#include "sampler/source.h"
#include "tests/unit/sysfs-fixture.h"

typedef struct SourceFixture {
        Fixture fixture;
        const SourceOps *ops;
        Machine *machine;
        Source *source; /* NULL: the probe gave none */
        SourceStatus status;
        Tick *tick;
        CpuActivity activity[80];
        uint32_t asked; /* of every CPU, by us, in the turn before */
        SourceTurn turn;
} SourceFixture;

/* Reads the machine from the fixture and probes. */
void source_fixture_start(SourceFixture *f, const SourceOps *ops);
void source_fixture_stop(SourceFixture *f);
/* One turn; evidence: what others saw of every CPU before. Returns what read() did. */
int source_fixture_turn(SourceFixture *f, uint8_t evidence);
uint64_t source_fixture_value(const SourceFixture *f, FieldId field, uint8_t instance, uint32_t cpu);
Reason source_fixture_reason(const SourceFixture *f, FieldId field, uint8_t instance, uint32_t cpu);
