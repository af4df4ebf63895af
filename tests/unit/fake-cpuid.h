/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A CPU made of a few leaves that remembers what it was asked. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/cpuid.h"

#define FAKE_LEAVES_MAX 32

typedef struct FakeCpuid {
        size_t n_leaves, n_asked;
        struct {
                uint32_t leaf;
                CpuidRegs regs;
        } leaves[FAKE_LEAVES_MAX];
        uint32_t asked[128];
} FakeCpuid;

static inline CpuidRegs *fake_leaf(FakeCpuid *f, uint32_t leaf) {
        for (size_t i = 0; i < f->n_leaves; i++)
                if (f->leaves[i].leaf == leaf)
                        return &f->leaves[i].regs;
        f->leaves[f->n_leaves].leaf = leaf;
        return &f->leaves[f->n_leaves++].regs;
}

/* Every answered leaf is plausible nonsense where nothing was set: what must not be asked shows. */
static inline int fake_read(void *userdata, uint32_t leaf, uint32_t subleaf, CpuidRegs *ret) {
        FakeCpuid *f = userdata;

        if (f->n_asked < sizeof(f->asked) / sizeof(f->asked[0]))
                f->asked[f->n_asked++] = leaf;
        for (size_t i = 0; i < f->n_leaves; i++)
                if (f->leaves[i].leaf == leaf) {
                        *ret = f->leaves[i].regs;
                        return 0;
                }
        return -EIO;
}

static inline bool fake_was_asked(const FakeCpuid *f, uint32_t leaf) {
        for (size_t i = 0; i < f->n_asked; i++)
                if (f->asked[i] == leaf)
                        return true;
        return false;
}

static inline uint32_t fake_word(const char *s) {
        uint32_t v = 0;

        for (unsigned i = 0; i < 4; i++)
                v |= (uint32_t) (unsigned char) s[i] << (8 * i);
        return v;
}

/* Leaves 0 and 1; vendor has twelve bytes. */
static inline void fake_init(FakeCpuid *f, const char *vendor, uint32_t max_leaf, uint32_t signature) {
        *f = (FakeCpuid){};
        *fake_leaf(f, 0) = (CpuidRegs){
                .eax = max_leaf,
                .ebx = fake_word(vendor),
                .edx = fake_word(vendor + 4),
                .ecx = fake_word(vendor + 8),
        };
        fake_leaf(f, 1)->eax = signature;
}

static inline void fake_brand(FakeCpuid *f, unsigned lead, const char *brand) {
        char raw[48] = {};

        memset(raw, ' ', lead);
        memcpy(raw + lead, brand, strnlen(brand, sizeof(raw) - lead));
        for (uint32_t i = 0; i < 3; i++)
                *fake_leaf(f, 0x80000002 + i) = (CpuidRegs){
                        fake_word(raw + 16 * i),
                        fake_word(raw + 16 * i + 4),
                        fake_word(raw + 16 * i + 8),
                        fake_word(raw + 16 * i + 12),
                };
}
