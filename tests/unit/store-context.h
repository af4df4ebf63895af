/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A store in a directory of its own, for each test. */

#include "store/store.h"
#include "tests/unit/store-fixture.h"

typedef struct Context {
        char *dir, *path;
        StoreConfig config;
} Context;

int context_setup(void **state);
int context_teardown(void **state);
#define CONTEXT_TEST(f) cmocka_unit_test_setup_teardown(f, context_setup, context_teardown)

/* The same over the layer that counts, fails and forgets (vfs-shim.h). */
int context_setup_shim(void **state);
int context_teardown_shim(void **state);
#define SHIM_TEST(f) cmocka_unit_test_setup_teardown(f, context_setup_shim, context_teardown_shim)

/* Moves the context to another file of the same directory. */
void context_use(Context *c, const char *name);
Store *context_store(Context *c); /* must open well */
StoreFigures context_figures(Store *s);
StoreReader *context_reader(Context *c, Store *live);
/* Runs SQL behind the store's back: the first column of the first row, -1 without one. */
int64_t context_sql(Context *c, const char *text);
