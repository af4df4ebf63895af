/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The connection behind `cstatectl sql`. Nothing can be written through it: the file is opened read-only,
 * query_only is on and no other file can be attached.
 */

#include <errno.h>
#include <string.h>

#include "cstated/num.h"

#include "store/schema.h"
#include "store/sql-functions.h"
#include "store/sql.h"
#include "store/store.h"

struct StoreSql {
        sqlite3 *db;
        sqlite3_stmt *statement;
        char *text; /* of the last value that had to be made */
};

int store_sql_open(const char *path, StoreSql **ret) {
        _cleanup_(store_sql_closep) StoreSql *s = NULL;
        int64_t version;
        int r;

        s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        r = db_open(path, DB_OPEN_READ, &s->db);
        if (r < 0)
                return r;
        r = schema_probe(s->db, &version);
        if (r < 0)
                return r;
        if (r == SCHEMA_EMPTY)
                return -ENOENT;
        if (r != SCHEMA_OURS)
                return r == SCHEMA_NEWER ? STORE_E_NEWER : STORE_E_FOREIGN;
        if (version < SCHEMA_READABLE)
                return STORE_E_OLDER;
        (void) sqlite3_limit(s->db, SQLITE_LIMIT_ATTACHED, 0);
        r = sql_functions_register(s->db, path);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

StoreSql *store_sql_close(StoreSql *s) {
        if (!s)
                return NULL;
        (void) sqlite3_finalize(s->statement);
        s->db = db_close(s->db);
        free(s->text);
        free(s);
        return NULL;
}

int store_sql_prepare(StoreSql *s, const char *text, const char **ret_rest) {
        (void) sqlite3_finalize(s->statement);
        s->statement = NULL;
        if (sqlite3_prepare_v2(s->db, text, -1, &s->statement, ret_rest) != SQLITE_OK)
                return -EINVAL;
        return s->statement ? 1 : 0;
}

int store_sql_step(StoreSql *s) {
        return db_step(s->statement);
}

const char *store_sql_error(const StoreSql *s) {
        return sqlite3_errmsg(s->db);
}

size_t store_sql_n_columns(const StoreSql *s) {
        return (size_t) sqlite3_column_count(s->statement);
}

const char *store_sql_column(const StoreSql *s, size_t i) {
        return sqlite3_column_name(s->statement, (int) i) ?: "";
}

StoreSqlType store_sql_value(StoreSql *s, size_t i, const char **ret) {
        char number[NUM_DOUBLE_MAX];

        *ret = "";
        switch (sqlite3_column_type(s->statement, (int) i)) {
        case SQLITE_NULL:
                return STORE_SQL_NULL;
        case SQLITE_INTEGER:
                *ret = (const char *) sqlite3_column_text(s->statement, (int) i) ?: "";
                return STORE_SQL_INTEGER;
        case SQLITE_FLOAT:
                (void) num_format_double(sqlite3_column_double(s->statement, (int) i), 15, number);
                free(s->text);
                s->text = strdup(number);
                *ret = s->text ?: "";
                return STORE_SQL_REAL;
        case SQLITE_BLOB: {
                const uint8_t *b = sqlite3_column_blob(s->statement, (int) i);
                size_t n = (size_t) sqlite3_column_bytes(s->statement, (int) i);
                char *out;

                free(s->text);
                s->text = malloc(2 * n + 4);
                if (!s->text)
                        return STORE_SQL_BLOB;
                out = stpcpy(s->text, "X'");
                for (size_t k = 0; k < n; k++)
                        out += sprintf(out, "%02X", b[k]);
                (void) strcpy(out, "'");
                *ret = s->text;
                return STORE_SQL_BLOB;
        }
        default:
                *ret = (const char *) sqlite3_column_text(s->statement, (int) i) ?: "";
                return STORE_SQL_TEXT;
        }
}

int64_t store_sql_i64(StoreSql *s, size_t i) {
        return sqlite3_column_int64(s->statement, (int) i);
}

double store_sql_double(StoreSql *s, size_t i) {
        return sqlite3_column_double(s->statement, (int) i);
}
