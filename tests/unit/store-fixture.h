/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Hand-made machines and samples for the store's tests, and a directory that goes away. */

#include "store/store.h"

/* n_cpus CPUs, two to a core, in n_packages packages; a handful of columns of every scope. */
Machine *fixture_machine(uint32_t n_cpus, uint32_t n_packages, uint32_t generation);

/* Every column that can be read, two lists of 16 idle states that share no name. */
Machine *fixture_fullest_machine(void);

/* A sample of m whose values follow from (seq, slot) by fixture_value(), null where fixture_reason() says
 * so. */
typedef struct Fixture {
        Machine *machine;
        Layout layout;
        Sample sample;
} Fixture;
void fixture_init(Fixture *f, uint32_t n_cpus, uint32_t n_packages, uint32_t generation);
void fixture_init_machine(Fixture *f, Machine *m); /* the same of any machine; takes m */
void fixture_deinit(Fixture *f);
/* The seq'th second after base_us. */
const Sample *fixture_sample(Fixture *f, uint64_t base_us, uint64_t seq);
int64_t fixture_value(uint64_t seq, size_t slot);
Reason fixture_reason(uint64_t seq, size_t slot);

/* A fresh directory under $TMPDIR or /tmp; remove it with fixture_remove_dir, which frees the name. */
char *fixture_make_dir(void);
void fixture_remove_dir(char *dir);
