/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Which model-specific registers a CPU should have, what they mean and in which units. Pure: addresses and
 * arithmetic. */

#include "cstated/field.h"
#include "model/cpu-table.h"

enum {
        MSR_TSC = 0x10,
        MSR_SMI_COUNT = 0x34,
        MSR_PLATFORM_INFO = 0xCE,
        MSR_PKG_CST_CONFIG = 0xE2,
        MSR_MPERF = 0xE7,
        MSR_APERF = 0xE8,
        MSR_THERM_STATUS = 0x19C,
        MSR_TEMPERATURE_TARGET = 0x1A2,
        MSR_PKG_THERM_STATUS = 0x1B1,
        MSR_PC3 = 0x3F8,
        MSR_PC6 = 0x3F9,
        MSR_PC7 = 0x3FA,
        MSR_CORE_C3 = 0x3FC,
        MSR_CORE_C6 = 0x3FD,
        MSR_CORE_C7 = 0x3FE,
        MSR_KNL_CORE_C6 = 0x3FF,
        MSR_RAPL_UNIT = 0x606,
        MSR_PC2 = 0x60D,
        MSR_ENERGY_PKG = 0x611,
        MSR_THROTTLE_PKG = 0x613,
        MSR_ENERGY_RAM = 0x619,
        MSR_THROTTLE_RAM = 0x61B,
        MSR_PC8 = 0x630,
        MSR_PC9 = 0x631,
        MSR_PC10 = 0x632,
        MSR_ENERGY_COR = 0x639,
        MSR_ENERGY_GFX = 0x641,
        MSR_ENERGY_SYS = 0x64D,
        MSR_CORE_C1 = 0x660,
        MSR_MODULE_C6 = 0x664,
};
#define MSR_AMD_RAPL_UNIT   0xC0010299u
#define MSR_AMD_ENERGY_CORE 0xC001029Au
#define MSR_AMD_ENERGY_PKG  0xC001029Bu

typedef enum MsrDecode {
        MSR_DECODE_PLAIN,     /* of the field's width */
        MSR_DECODE_WIDE,      /* 64 bits whatever the field's width: accumulated by the kernel */
        MSR_DECODE_TICK, /* at the TSC's rate, or at the base clock on models with CPU_QUIRK_TSC_TWEAK */
        MSR_DECODE_TICK_1024, /* Knights Landing's MPERF and APERF */
        MSR_DECODE_CORE_TEMP, /* degrees below TjMax, bit 31 valid */
        MSR_DECODE_PKG_TEMP,  /* the same without a validity bit */
} MsrDecode;

/* What a reading of 0 at the probe proves. A register may be readable and yet mean nothing, most of all in a
 * VM. */
typedef enum MsrZero {
        MSR_ZERO_IS_VALUE,
        MSR_ZERO_IS_ABSENT,
        MSR_ZERO_IS_ABSENT_IN_VM,
} MsrZero;

typedef struct MsrRegister {
        FieldId field;
        uint32_t reg;
        MsrDecode decode;
        MsrZero zero;
} MsrRegister;

#define MSR_REGISTERS_MAX 32

/*
 * The registers worth probing on this CPU, in the order they are read; model NULL (unknown): only what is
 * architectural. Returns how many.
 */
size_t msr_registers(const CpuIdent *c, const CpuModel *model, MsrRegister ret[MSR_REGISTERS_MAX]);

/* The register that holds the RAPL units, 0 where the model has no RAPL. */
uint32_t msr_unit_register(const CpuIdent *c, const CpuModel *model);

/*
 * Joules (energy fields) or seconds (throttle fields) a count, from the unit register's value; 1.0 for other
 * fields. DRAM 15.3 uJ and PSYS 1 J where the model says so, Silvermont 2^n uJ, else 2^-n J (SDM 15.10;
 * quirks in cpu-table.c).
 */
double msr_scale(FieldId field, const CpuModel *model, uint64_t unit);

/* Numbers that turn raw values of one CPU into ours. */
typedef struct MsrConvert {
        uint64_t tick_mul, tick_div; /* to TSC ticks; 0/0: counted in TSC ticks already */
        uint32_t tjmax;              /* C, 0 unknown */
} MsrConvert;

/* The TSC-to-base correction of a model with CPU_QUIRK_TSC_TWEAK; left 0/0 where it is implausible or not
 * needed. */
void msr_convert_set_tweak(MsrConvert *c, const CpuModel *model, uint64_t tsc_hz, uint64_t base_hz);
/* Raw to value: REASON_NONE and *ret (temperatures are signed), or REASON_ERROR for a temperature that is
 * marked invalid. */
Reason msr_decode(const MsrConvert *c, const MsrRegister *r, uint64_t raw, uint64_t *ret);
