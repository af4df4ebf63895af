/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "cstated/timespan.h"
#include "tests/unit/store-context.h"
#include "tests/unit/vfs-shim.h"

int context_setup(void **state) {
        Context *c = calloc(1, sizeof(*c));

        assert_non_null(c);
        c->dir = fixture_make_dir();
        c->config = (StoreConfig) STORE_CONFIG_INIT;
        context_use(c, "store.db");
        *state = c;
        return 0;
}

int context_teardown(void **state) {
        Context *c = *state;

        fixture_remove_dir(c->dir);
        free(c->path);
        free(c);
        return 0;
}

int context_setup_shim(void **state) {
        vfs_shim_install();
        return context_setup(state);
}

int context_teardown_shim(void **state) {
        int r = context_teardown(state);

        vfs_shim_remove();
        return r;
}

StoreFigures context_figures(Store *s) {
        StoreFigures f;

        store_figures(s, &f);
        return f;
}

void context_use(Context *c, const char *name) {
        free(c->path);
        assert_true(asprintf(&c->path, "%s/%s", c->dir, name) > 0);
        c->config.path = c->path;
}

Store *context_store(Context *c) {
        Store *s = NULL;

        assert_int_equal(store_open(&c->config, 1700000000ULL * USEC_PER_SEC, &s), 0);
        assert_non_null(s);
        return s;
}

StoreReader *context_reader(Context *c, Store *live) {
        StoreReader *r = NULL;

        assert_int_equal(store_reader_open(c->path, live, &r), 0);
        return r;
}

int64_t context_sql(Context *c, const char *text) {
        sqlite3 *db = NULL;
        sqlite3_stmt *q = NULL;
        int64_t v = -1;

        assert_int_equal(sqlite3_open(c->path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_busy_timeout(db, 1000), SQLITE_OK);
        if (sqlite3_prepare_v2(db, text, -1, &q, NULL) != SQLITE_OK)
                fail_msg("%s: %s", text, sqlite3_errmsg(db));
        if (sqlite3_step(q) == SQLITE_ROW)
                v = sqlite3_column_int64(q, 0);
        assert_int_equal(sqlite3_finalize(q), SQLITE_OK);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        return v;
}
