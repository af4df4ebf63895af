/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What /dev/cpu/N/msr and /dev/cpu/N/cpuid answer. */

#include "machine.h"

/* A register's value on this CPU at time t: 0, or -EIO where the model has none (rules of the scenario:
 * msr_fault()). */
int msr_read(const Machine *m, const Cpu *cpu, uint64_t reg, int64_t t_ns, uint64_t *ret);
/* The scenario's faults for this register: -EIO or 0, and how long the answer takes. */
int msr_fault(const Machine *m, const Cpu *cpu, uint64_t reg, int64_t *ret_delay_ns);

/* EAX, EBX, ECX, EDX of a leaf as this CPU would give them. */
void cpuid_read(const Machine *m, const Cpu *cpu, uint32_t leaf, uint32_t subleaf, uint32_t ret[4]);
