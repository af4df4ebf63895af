/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* One sample as /api/v1/snapshot tells it. */

#include "base/json-writer.h"
#include "model/sample.h"

/*
 * Writes one object: start and end in ms, interval_ms, system, packages, modules, cores, cpus, offline. Keys are
 * catalogue ids; what the layout can never give is left out, what it should and did not is null with an entry in the
 * object's "reasons". Wider scopes sum up the narrower ones ("settled": members that stand in with their last span).
 * 0 or -ENOMEM. m is the sample's machine.
 */
int snapshot_write(JsonWriter *j, const Machine *m, const Sample *s);
