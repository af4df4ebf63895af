/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* /api/v1/cpu: who the CPUs are, their errata, topology and idle states. */

#include "base/json-writer.h"
#include "model/cpuid-dump.h"
#include "model/machine.h"

/* {"cpus":[...],"topology":{...},"idle":{...},"pkg_cst":{...},...} of this machine. 0, or -ENOMEM.
 * unread: why registers are not read at all (REASON_DENIED, ...), REASON_NONE where they are. */
int cpu_json_write(JsonWriter *j, const Machine *m, Reason unread);
/* {"cpus":[...]} of the groups of a dump: the same objects, nothing of a kernel. 0, or -ENOMEM. */
int cpu_json_write_dump(JsonWriter *j, const CpuidDumpGroup *groups, size_t n);
