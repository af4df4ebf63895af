/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One table from what the model table says a CPU has to registers and fields. The model table is a hint:
 * whoever probes may find a register missing (EIO) or meaningless (0), and drops that one only.
 *
 * Core C6 goes before core C7, since on Atom-type cores the first holds the second
 * (CPU_QUIRK_C6_INCLUDES_C7).
 */

#include <string.h>

#include "cstated/macro.h"
#include "sampler/msr-regs.h"

typedef enum ModelWord {
        WORD_CORE,
        WORD_PACKAGE,
        WORD_RAPL,
} ModelWord;

typedef struct ModelRegister {
        ModelWord word;
        unsigned bit;
        MsrRegister r;
} ModelRegister;

#define TICKS(word_, bit_, field_, reg_)                                                                    \
        {                                                                                                   \
                WORD_##word_, bit_, {                                                                       \
                        FIELD_##field_, reg_, MSR_DECODE_TICK, MSR_ZERO_IS_ABSENT_IN_VM                     \
                }                                                                                           \
        }
#define ENERGY(bit_, field_, reg_)                                                                          \
        {                                                                                                   \
                WORD_RAPL, bit_, {                                                                          \
                        FIELD_##field_, reg_, MSR_DECODE_PLAIN, MSR_ZERO_IS_ABSENT                          \
                }                                                                                           \
        }
#define THROTTLE(bit_, field_, reg_)                                                                        \
        {                                                                                                   \
                WORD_RAPL, bit_, {                                                                          \
                        FIELD_##field_, reg_, MSR_DECODE_PLAIN, MSR_ZERO_IS_ABSENT_IN_VM                    \
                }                                                                                           \
        }

static const ModelRegister model_registers[] = {
        TICKS(CORE, CPU_HAS_C1_MSR, C1_RES, MSR_CORE_C1),
        TICKS(CORE, CPU_HAS_C3, C3, MSR_CORE_C3),
        TICKS(CORE, CPU_HAS_C6, C6, MSR_CORE_C6),
        TICKS(CORE, CPU_HAS_C7, C7, MSR_CORE_C7),
        TICKS(CORE, CPU_HAS_MC6, MC6, MSR_MODULE_C6),
        TICKS(PACKAGE, CPU_HAS_PC2, PC2, MSR_PC2),
        TICKS(PACKAGE, CPU_HAS_PC3, PC3, MSR_PC3),
        TICKS(PACKAGE, CPU_HAS_PC6, PC6, MSR_PC6),
        TICKS(PACKAGE, CPU_HAS_PC7, PC7, MSR_PC7),
        TICKS(PACKAGE, CPU_HAS_PC8, PC8, MSR_PC8),
        TICKS(PACKAGE, CPU_HAS_PC9, PC9, MSR_PC9),
        TICKS(PACKAGE, CPU_HAS_PC10, PC10, MSR_PC10),
        ENERGY(CPU_RAPL_PKG, ENERGY_PKG, MSR_ENERGY_PKG),
        ENERGY(CPU_RAPL_DRAM, ENERGY_RAM, MSR_ENERGY_RAM),
        ENERGY(CPU_RAPL_CORES, ENERGY_COR, MSR_ENERGY_COR),
        ENERGY(CPU_RAPL_GFX, ENERGY_GFX, MSR_ENERGY_GFX),
        ENERGY(CPU_RAPL_PSYS, ENERGY_SYS, MSR_ENERGY_SYS),
        THROTTLE(CPU_RAPL_PKG_THROTTLE, PKG_THROTTLE, MSR_THROTTLE_PKG),
        THROTTLE(CPU_RAPL_DRAM_THROTTLE, RAM_THROTTLE, MSR_THROTTLE_RAM),
};

static bool is_intel(const CpuModel *model) {
        return strcmp(model->vendor, "GenuineIntel") == 0;
}

static bool has_amd_rapl(const CpuIdent *c, const CpuModel *model) {
        return model && (model->rapl & CPU_RAPL_AMD) && c->amd_rapl;
}

static uint32_t quirk_register(const CpuModel *model, const MsrRegister *r) {
        if (r->field == FIELD_C6 && (model->quirks & CPU_QUIRK_KNL_C6))
                return MSR_KNL_CORE_C6;
        if (r->field == FIELD_PC6 && (model->quirks & CPU_QUIRK_SLM_PC6))
                return MSR_PC7; /* Silvermont counts package C6 there */
        return r->reg;
}

static size_t add_model_registers(const CpuModel *model, MsrRegister *ret) {
        const unsigned words[] = {
                [WORD_CORE] = model->core,
                [WORD_PACKAGE] = model->package,
                [WORD_RAPL] = model->rapl,
        };
        size_t n = 0;

        for (size_t i = 0; i < ARRAY_SIZE(model_registers); i++) {
                const ModelRegister *r = &model_registers[i];

                if (!(words[r->word] & r->bit) || (r->word == WORD_RAPL && (model->rapl & CPU_RAPL_AMD)))
                        continue;
                ret[n] = r->r;
                ret[n++].reg = quirk_register(model, &r->r);
        }
        return n;
}

size_t msr_registers(const CpuIdent *c, const CpuModel *model, MsrRegister ret[MSR_REGISTERS_MAX]) {
        size_t n = 0;

        if (c->has_aperfmperf) {
                bool slow = model && (model->quirks & CPU_QUIRK_KNL_PERF1024);
                MsrDecode mperf = slow ? MSR_DECODE_TICK_1024 : MSR_DECODE_TICK;
                MsrDecode aperf = slow ? MSR_DECODE_TICK_1024 : MSR_DECODE_PLAIN;

                ret[n++] = (MsrRegister){FIELD_MPERF, MSR_MPERF, mperf, MSR_ZERO_IS_ABSENT};
                ret[n++] = (MsrRegister){FIELD_APERF, MSR_APERF, aperf, MSR_ZERO_IS_ABSENT};
        }
        if (!model)
                return n; /* DTS bits alone give no temperature: TjMax stands in a model-specific register */

        if (is_intel(model) && !(model->quirks & CPU_QUIRK_NO_SMI))
                ret[n++] =
                        (MsrRegister){FIELD_SMI, MSR_SMI_COUNT, MSR_DECODE_PLAIN, MSR_ZERO_IS_ABSENT_IN_VM};
        n += add_model_registers(model, ret + n);
        if (has_amd_rapl(c, model)) {
                ret[n++] = (MsrRegister){
                        FIELD_ENERGY_CORE, MSR_AMD_ENERGY_CORE, MSR_DECODE_PLAIN, MSR_ZERO_IS_ABSENT};
                ret[n++] = (MsrRegister){
                        FIELD_ENERGY_PKG, MSR_AMD_ENERGY_PKG, MSR_DECODE_PLAIN, MSR_ZERO_IS_ABSENT};
        }
        if (is_intel(model) && c->has_dts)
                ret[n++] = (MsrRegister){
                        FIELD_CORE_TEMP, MSR_THERM_STATUS, MSR_DECODE_CORE_TEMP, MSR_ZERO_IS_ABSENT_IN_VM};
        if (is_intel(model) && c->has_pkg_dts)
                ret[n++] = (MsrRegister){
                        FIELD_PKG_TEMP, MSR_PKG_THERM_STATUS, MSR_DECODE_PKG_TEMP, MSR_ZERO_IS_ABSENT_IN_VM};
        return n;
}

uint32_t msr_unit_register(const CpuIdent *c, const CpuModel *model) {
        if (!model || model->rapl == 0)
                return 0;
        if (model->rapl & CPU_RAPL_AMD)
                return c->amd_rapl ? MSR_AMD_RAPL_UNIT : 0;
        return MSR_RAPL_UNIT;
}

double msr_scale(FieldId field, const CpuModel *model, uint64_t unit) {
        FieldUnit kind = field_spec(field)->unit;
        unsigned energy = unit >> 8 & 0x1f, time = unit >> 16 & 0xf;

        if (kind == FIELD_UNIT_TIME)
                return 1.0 / (double) (1u << time);
        if (kind != FIELD_UNIT_ENERGY)
                return 1.0;
        if (field == FIELD_ENERGY_RAM && (model->quirks & CPU_QUIRK_DRAM_15UJ))
                return 15.3e-6;
        if (field == FIELD_ENERGY_SYS && (model->quirks & CPU_QUIRK_PSYS_1J))
                return 1.0;
        if (model->quirks & CPU_QUIRK_RAPL_POW2_UJ)
                return (double) (1u << energy) * 1e-6;
        return 1.0 / (double) (1u << energy);
}

void msr_convert_set_tweak(MsrConvert *c, const CpuModel *model, uint64_t tsc_hz, uint64_t base_hz) {
        if (!model || !(model->quirks & CPU_QUIRK_TSC_TWEAK) || tsc_hz == 0 || base_hz == 0)
                return;
        /* The two clocks differ by a crystal's rounding; anything else is a misread base clock. */
        if (tsc_hz / 10 * 9 > base_hz || base_hz / 10 * 9 > tsc_hz)
                return;
        c->tick_mul = tsc_hz;
        c->tick_div = base_hz;
}

static uint64_t to_tsc_ticks(const MsrConvert *c, uint64_t raw) {
        if (c->tick_div == 0 || c->tick_mul == c->tick_div)
                return raw;
        return (uint64_t) ((unsigned __int128) raw * c->tick_mul / c->tick_div);
}

static Reason decode_temperature(const MsrConvert *c, uint64_t raw, uint64_t *ret) {
        if (c->tjmax == 0)
                return REASON_ABSENT;
        *ret = (uint64_t) ((int64_t) c->tjmax - (int64_t) (raw >> 16 & 0x7f));
        return REASON_NONE;
}

Reason msr_decode(const MsrConvert *c, const MsrRegister *r, uint64_t raw, uint64_t *ret) {
        switch (r->decode) {
        case MSR_DECODE_PLAIN:
                *ret = field_spec(r->field)->width == 32 ? (uint32_t) raw : raw;
                return REASON_NONE;
        case MSR_DECODE_WIDE:
                *ret = raw;
                return REASON_NONE;
        case MSR_DECODE_TICK:
                *ret = to_tsc_ticks(c, raw);
                return REASON_NONE;
        case MSR_DECODE_TICK_1024:
                *ret = raw << 10;
                return REASON_NONE;
        case MSR_DECODE_CORE_TEMP:
                return raw >> 31 & 1 ? decode_temperature(c, raw, ret) : REASON_ERROR;
        case MSR_DECODE_PKG_TEMP:
                return decode_temperature(c, raw, ret);
        }
        return REASON_ERROR;
}
