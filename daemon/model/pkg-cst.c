/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the limit's four bits mean differs by generation; the tables are turbostat's. Ice Lake's value 3
 * means pc6 (no retention variant there). An unknown model keeps its raw value: a guess would be read as a
 * firmware limit.
 */

#include <string.h>

#include "model/cpu-table.h"
#include "model/pkg-cst.h"

static const char *const limits[CPU_CST_N][16] = {
        [CPU_CST_NHM] = { "pc0", "pc1", "pc3", "pc6", "pc7", NULL, NULL, "unlimited" },
        [CPU_CST_SNB] = { "pc0", "pc2", "pc6n", "pc6r", "pc7", "pc7s", NULL, "unlimited" },
        [CPU_CST_HSW] = { "pc0", "pc2", "pc3", "pc6", "pc7", "pc7s", "pc8", "pc9", "unlimited" },
        [CPU_CST_SKX] = { "pc0", "pc2", "pc6n", "pc6r", NULL, NULL, NULL, "unlimited" },
        [CPU_CST_ICX] = { "pc0", "pc2", "pc6", "pc6", NULL, NULL, NULL, "unlimited" },
        [CPU_CST_KNL] = { "pc0", "pc2", "pc6n", "pc6r", NULL, NULL, NULL, "unlimited" },
        [CPU_CST_SLM] = { "pc0", "pc1", NULL, NULL, "pc4", NULL, "pc6", "pc7", [14] = "pc6", [15] = "pc7" },
        [CPU_CST_AMT] = { "unlimited", "pc1", "pc2", NULL, NULL, NULL, "pc6", "pc7" },
        [CPU_CST_GLM] = { "unlimited", "pc1", "pc3", "pc6", "pc7", "pc7s", "pc8", "pc9", "pc10" },
};

static bool has_undemotion(CpuCst generation) {
        switch (generation) {
        case CPU_CST_SNB:
        case CPU_CST_HSW:
        case CPU_CST_SKX:
        case CPU_CST_ICX:
        case CPU_CST_KNL:
                return true;
        case CPU_CST_NONE:
        case CPU_CST_NHM:
        case CPU_CST_SLM:
        case CPU_CST_AMT:
        case CPU_CST_GLM:
        case CPU_CST_N:
                break;
        }
        return false;
}

bool pkg_cst_decode(const CpuIdent *c, uint64_t msr, PkgCst *ret) {
        const CpuModel *model = cpu_table_find(c);

        if (strcmp(c->vendor, "GenuineIntel") != 0 || (model && model->cst == CPU_CST_NONE))
                return false;
        *ret = (PkgCst){
                .limit_raw = msr & 0xf,
                .locked = msr >> 15 & 1,
                .auto_conversion = msr >> 16 & 1,
                .c3_demotion = msr >> 25 & 1,
                .c1_demotion = msr >> 26 & 1,
        };
        if (!model)
                return true;
        ret->limit = limits[model->cst][msr & 0xf];
        if (!ret->limit)
                ret->limit = "reserved";
        ret->has_undemotion = has_undemotion(model->cst);
        if (ret->has_undemotion) {
                ret->c1_undemotion = msr >> 27 & 1;
                ret->c3_undemotion = msr >> 28 & 1;
        }
        return true;
}
