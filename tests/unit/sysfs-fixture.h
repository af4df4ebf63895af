/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A small /sys and /proc in a temporary directory, for tests of what reads them. */

#include "sampler/sysfs.h"

typedef struct Fixture {
        char root[64];
        Sysfs *sysfs;
} Fixture;

void fixture_init(Fixture *f);
void fixture_deinit(Fixture *f);
/* Writes a file and the directories above it; an existing file keeps its inode, as the kernel's do. */
void fixture_write(Fixture *f, const char *text, const char *format, ...) _printf_(3, 4);
/* Removes a file or a whole directory. */
void fixture_remove(Fixture *f, const char *format, ...) _printf_(2, 3);
/* topology/ of one CPU; cluster < -1: no such file. */
void fixture_cpu(Fixture *f, unsigned cpu, int package, int die, int core, int cluster);
/* One idle state of one CPU with its counters 0. */
void fixture_state(Fixture *f, unsigned cpu, unsigned state, const char *name, const char *desc,
        unsigned latency, unsigned residency);
/* Sets the counters of a state. */
void fixture_idle(Fixture *f, unsigned cpu, unsigned state, unsigned long long usage,
        unsigned long long time, unsigned long long above, unsigned long long below);
/* /dev/cpu/N/cpuid as a file with leaf 0 alone (its offsets are leaf numbers, so a file cannot hold more):
 * the vendor. */
void fixture_cpuid(Fixture *f, unsigned cpu, const char *vendor);
