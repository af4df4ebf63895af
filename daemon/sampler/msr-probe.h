/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds out which registers really exist and mean something, once for each kind of entity: core and thread
 * registers per core type, package registers per (package, die), the platform's once. EIO or an unsupported
 * 0 drops that register only.
 */

#include "model/machine.h"
#include "sampler/msr-regs.h"

typedef int (*MsrReadFn)(void *userdata, uint32_t cpu_index, uint32_t reg, uint64_t *ret);

/* One value of one entity, kept between turns. */
typedef struct MsrSlot {
        uint64_t value;    /* as published; the last known one where reason is set */
        uint64_t retry_ns; /* not read again before, after an error */
        uint8_t reason;    /* Reason */
        bool present;
        bool holds_c7; /* core C6 of an Atom-type core: C7 is to be taken off */
} MsrSlot;

typedef struct MsrColumn {
        MsrRegister r;
        double scale;
        uint8_t width;   /* of the counter in bits, 0: the field's */
        uint32_t n; /* entities of the field's scope */
        MsrSlot *slots;
} MsrColumn;

typedef struct MsrSet {
        size_t n_columns;
        MsrColumn columns[MSR_REGISTERS_MAX]; /* grouped by scope, in the order they are read */
        size_t first[SCOPE_N + 1]; /* of each scope: columns[first[s]] up to columns[first[s + 1]] */
        MsrConvert *convert;       /* by package */
        uint32_t n_packages;
        size_t n_absent; /* registers that did not pass */
        uint32_t absent[MSR_REGISTERS_MAX];
        bool zero_in_vm; /* some read 0 under a hypervisor */
        int error;       /* of the first read that failed for another reason than EIO; 0 none */
} MsrSet;

/*
 * Probes all registers that the models ask for and whose column the layout does not have yet. models[i]: of
 * m->idents[i], NULL unknown. Sets m->pkg_cst_config. Nothing is added to the layout. -ENOMEM; or the error
 * of the very first read where no CPU can be asked at all (the set is then empty).
 */
int msr_probe(MsrSet *set, MsrReadFn read, void *userdata, Machine *m, const CpuModel *const *models);
void msr_set_deinit(MsrSet *set);
/* The column of a register's field, made with all slots absent where it is new; NULL: no memory, or full. */
MsrColumn *msr_set_add(MsrSet *set, const Machine *m, const MsrRegister *r);
/* Sorts the columns by scope and fills `first`; after the last msr_set_add(). */
void msr_set_group(MsrSet *set);
/* The column of a field, NULL if there is none. */
MsrColumn *msr_set_find(MsrSet *set, FieldId field);
