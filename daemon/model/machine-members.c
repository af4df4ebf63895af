/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The members themselves. The JSON's keys are the members' names. */

#include "cstated/macro.h"

#include "model/machine-members.h"
#include "model/machine.h"

#define MEMBER(struct_, type_, name_) \
        { #name_, MEMBER_##type_, offsetof(struct_, name_), sizeof(((struct_ *) NULL)->name_) }
#define TABLE(name_, ...) \
        static const Member name_##_[] = { __VA_ARGS__ }; \
        const MemberTable name_ = { name_##_, ARRAY_SIZE(name_##_) }

TABLE(machine_members,
        MEMBER(Machine, U32, generation),
        MEMBER(Machine, STRING, boot_id),
        MEMBER(Machine, STRING, host),
        MEMBER(Machine, STRING, kernel),
        MEMBER(Machine, STRING, idle_driver),
        MEMBER(Machine, STRING, idle_governor),
        MEMBER(Machine, STRING, bugs),
        MEMBER(Machine, BOOL, has_bugs),
        MEMBER(Machine, BOOL, hypervisor),
        MEMBER(Machine, U64, tsc_hz),
        MEMBER(Machine, U32, user_hz),
        MEMBER(Machine, HEX64, pkg_cst_config),
        MEMBER(Machine, BOOL, has_pkg_cst_config));

TABLE(cpu_members,
        MEMBER(MachineCpu, U32, id),
        MEMBER(MachineCpu, U32, package),
        MEMBER(MachineCpu, U32, core),
        MEMBER(MachineCpu, INDEX32, module),
        MEMBER(MachineCpu, U16, thread),
        MEMBER(MachineCpu, INDEX16, idle_set),
        MEMBER(MachineCpu, U16, ident));

TABLE(core_members,
        MEMBER(MachineCore, I32, id),
        MEMBER(MachineCore, U32, package),
        MEMBER(MachineCore, U32, first_cpu));

TABLE(module_members,
        MEMBER(MachineModule, I32, id),
        MEMBER(MachineModule, U32, package),
        MEMBER(MachineModule, U32, first_cpu));

TABLE(package_members,
        MEMBER(MachinePackage, I32, package),
        MEMBER(MachinePackage, I32, die),
        MEMBER(MachinePackage, U32, first_cpu));

TABLE(state_members,
        MEMBER(IdleState, STRING, name),
        MEMBER(IdleState, STRING, desc),
        MEMBER(IdleState, U32, exit_latency_us),
        MEMBER(IdleState, U32, target_residency_us),
        MEMBER(IdleState, I32, mwait_hint),
        MEMBER(IdleState, BOOL, disabled),
        MEMBER(IdleState, BOOL, is_poll));

TABLE(ident_members,
        MEMBER(CpuIdent, STRING, vendor),
        MEMBER(CpuIdent, STRING, brand),
        MEMBER(CpuIdent, STRING, uarch),
        MEMBER(CpuIdent, STRING, hypervisor_vendor),
        MEMBER(CpuIdent, U32, family),
        MEMBER(CpuIdent, U32, model),
        MEMBER(CpuIdent, U32, stepping),
        MEMBER(CpuIdent, U32, signature),
        MEMBER(CpuIdent, U32, microcode),
        MEMBER(CpuIdent, U32, max_leaf),
        MEMBER(CpuIdent, U32, max_extended_leaf),
        MEMBER(CpuIdent, BOOL, hypervisor),
        MEMBER(CpuIdent, BOOL, has_monitor),
        MEMBER(CpuIdent, BOOL, has_clflush),
        MEMBER(CpuIdent, BOOL, hybrid),
        MEMBER(CpuIdent, BOOL, has_aperfmperf),
        MEMBER(CpuIdent, BOOL, has_dts),
        MEMBER(CpuIdent, BOOL, has_pkg_dts),
        MEMBER(CpuIdent, BOOL, has_arat),
        MEMBER(CpuIdent, BOOL, invariant_tsc),
        MEMBER(CpuIdent, BOOL, amd_rapl),
        MEMBER(CpuIdent, U32, mwait_smallest),
        MEMBER(CpuIdent, U32, mwait_largest),
        MEMBER(CpuIdent, BOOL, mwait_emx),
        MEMBER(CpuIdent, BOOL, mwait_ibe),
        MEMBER(CpuIdent, U32, tsc_ratio_den),
        MEMBER(CpuIdent, U32, tsc_ratio_num),
        MEMBER(CpuIdent, U32, crystal_hz),
        MEMBER(CpuIdent, U32, base_mhz),
        MEMBER(CpuIdent, U32, max_mhz),
        MEMBER(CpuIdent, U32, bus_mhz),
        MEMBER(CpuIdent, U32, topology_leaf),
        MEMBER(CpuIdent, U32, n_cpus));

TABLE(column_members,
        MEMBER(LayoutColumn, U8, width),
        MEMBER(LayoutColumn, U64, range),
        MEMBER(LayoutColumn, DOUBLE, scale),
        MEMBER(LayoutColumn, U8, source));
