/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* MSR 0xE2 (PKG_CST_CONFIG_CONTROL): how deep a package may sleep, and whether requests are demoted. */

#include "model/cpuid.h"

typedef struct PkgCst {
        const char *limit; /* "pc6", "unlimited", "reserved"; NULL: unknown model, see limit_raw */
        uint32_t limit_raw; /* bits 3:0 */
        bool locked;        /* bit 15: only firmware can change it */
        bool auto_conversion; /* bit 16: HLT and C-state requests become C1E or deeper by themselves */
        bool c1_demotion, c3_demotion; /* bits 26, 25 */
        bool has_undemotion;           /* Sandy Bridge and later */
        bool c1_undemotion, c3_undemotion; /* bits 27, 28 */
} PkgCst;

/* False where this CPU has no such register (other vendors, Core 2 and older): *ret untouched. */
bool pkg_cst_decode(const CpuIdent *c, uint64_t msr, PkgCst *ret);
