/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A regular machine for the tests of sources: packages x cores x threads; threads of a core are n_cores
 * apart. */

#include "model/machine.h"

typedef struct FixtureShape {
        uint32_t packages, dies, cores, threads; /* dies a package (0: not counted), cores a die */
} FixtureShape;

/* One ident of this signature's family and model, "GenuineIntel" unless amd; aperfmperf and DTS bits set. */
Machine *fixture_machine(FixtureShape shape, uint32_t family, uint32_t model, bool amd);
