/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Thin wrappers so that no caller sees a raw sqlite code and no bind goes unchecked. Codes become errnos
 * that keep the distinctions the store acts on: -ENOSPC (ring and retry), -EIO, -EROFS (degraded), -EUCLEAN
 * (damaged: moved aside), -EMEDIUMTYPE (no database at all: damaged likewise), -EBUSY, -ETIME (a deadline's
 * interrupt).
 */

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>

#include "store/db.h"

int db_errno(int code) {
        static const struct {
                int code, error;
        } table[] = {
                {SQLITE_OK, 0},
                {SQLITE_ROW, 0},
                {SQLITE_DONE, 0},
                {SQLITE_NOMEM, -ENOMEM},
                {SQLITE_FULL, -ENOSPC},
                {SQLITE_IOERR, -EIO},
                {SQLITE_READONLY, -EROFS},
                {SQLITE_CORRUPT, -EUCLEAN},
                {SQLITE_NOTADB, -EMEDIUMTYPE},
                {SQLITE_BUSY, -EBUSY},
                {SQLITE_LOCKED, -EBUSY},
                {SQLITE_INTERRUPT, -ETIME},
                {SQLITE_PERM, -EACCES},
                {SQLITE_AUTH, -EACCES},
                {SQLITE_CANTOPEN, -ENOENT},
                {SQLITE_TOOBIG, -EFBIG},
                {SQLITE_CONSTRAINT, -EEXIST},
        };

        if (code == SQLITE_IOERR_NOMEM)
                return -ENOMEM;
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (table[i].code == (code & 0xff))
                        return table[i].error;
        return -EINVAL;
}

static int db_open_flags(const char *path, int flags, sqlite3 **ret) {
        sqlite3 *db = NULL;
        int code = sqlite3_open_v2(path, &db, flags | SQLITE_OPEN_NOMUTEX, NULL);

        if (code != SQLITE_OK) {
                int r = db_errno(code), e = db ? sqlite3_system_errno(db) : 0;

                sqlite3_close(db);
                return r == -ENOENT && e > 0 ? -e : r;
        }
        (void) sqlite3_extended_result_codes(db, 1);
        (void) sqlite3_busy_timeout(db, 1000);
        *ret = db;
        return 0;
}

/* A file that cannot be locked or given a -shm (read-only medium) can still be read where no writer is
 * about. */
static int db_open_immutable(const char *path, sqlite3 **ret) {
        _cleanup_free_ char *wal = NULL, *uri = NULL;
        char *out;

        if (asprintf(&wal, "%s-wal", path) < 0)
                return -ENOMEM;
        if (access(wal, F_OK) == 0)
                return -EACCES;
        uri = malloc(strlen(path) * 3 + 32);
        if (!uri)
                return -ENOMEM;
        out = stpcpy(uri, "file:");
        for (const char *p = path; *p; p++)
                if (strchr("?#%", *p))
                        out += sprintf(out, "%%%02X", (unsigned) (unsigned char) *p);
                else
                        *out++ = *p;
        (void) strcpy(out, "?immutable=1");
        return db_open_flags(uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, ret);
}

static int db_open_read(const char *path, sqlite3 **ret) {
        int64_t n;
        int r;

        r = db_open_flags(path, SQLITE_OPEN_READONLY, ret);
        if (r < 0)
                return r;
        r = db_query_i64(*ret, "SELECT count(*) FROM sqlite_schema", &n);
        if (r == 0)
                return 0;
        *ret = db_close(*ret);
        if (r != -ENOENT && r != -EROFS)
                return r;
        return db_open_immutable(path, ret);
}

int db_open(const char *path, DbOpen how, sqlite3 **ret) {
        sqlite3 *db = NULL;
        int r;

        if (how == DB_OPEN_READ)
                r = db_open_read(path, &db);
        else
                r = db_open_flags(
                        path, SQLITE_OPEN_READWRITE | (how == DB_OPEN_WRITE ? SQLITE_OPEN_CREATE : 0), &db);
        if (r < 0)
                return r;
        if (how != DB_OPEN_WRITE)
                r = db_exec(db, "PRAGMA query_only=1");
        if (r < 0) {
                (void) db_close(db);
                return r;
        }
        *ret = db;
        return 0;
}

sqlite3 *db_close(sqlite3 *db) {
        (void) sqlite3_close_v2(db);
        return NULL;
}

int db_exec(sqlite3 *db, const char *sql) {
        return db_errno(sqlite3_exec(db, sql, NULL, NULL, NULL));
}

int db_execf(sqlite3 *db, const char *format, ...) {
        va_list ap;
        char *sql;
        int r;

        va_start(ap, format);
        sql = sqlite3_vmprintf(format, ap);
        va_end(ap);
        if (!sql)
                return -ENOMEM;
        r = db_exec(db, sql);
        sqlite3_free(sql);
        return r;
}

int db_query_i64(sqlite3 *db, const char *sql, int64_t *ret) {
        sqlite3_stmt *s = NULL;
        int r;

        r = db_errno(sqlite3_prepare_v2(db, sql, -1, &s, NULL));
        if (r < 0)
                return r;
        r = db_step(s);
        if (r > 0)
                *ret = sqlite3_column_int64(s, 0);
        (void) sqlite3_finalize(s);
        return r > 0 ? 0 : r < 0 ? r : -ENODATA;
}

int db_prepare_all(sqlite3 *db, const DbStatement *table, size_t n, sqlite3_stmt **ret) {
        for (size_t i = 0; i < n; i++)
                ret[i] = NULL;
        for (size_t i = 0; i < n; i++) {
                int r = db_errno(
                        sqlite3_prepare_v3(db, table[i].sql, -1, SQLITE_PREPARE_PERSISTENT, &ret[i], NULL));

                if (r < 0) {
                        db_finalize_all(ret, n);
                        return r;
                }
        }
        return 0;
}

void db_finalize_all(sqlite3_stmt **stmts, size_t n) {
        for (size_t i = 0; i < n; i++) {
                (void) sqlite3_finalize(stmts[i]);
                stmts[i] = NULL;
        }
}

static int db_bind_one(sqlite3_stmt *s, int at, char type, va_list *ap) {
        switch (type) {
        case 'i':
                return sqlite3_bind_int64(s, at, va_arg(*ap, int64_t));
        case 'd':
                return sqlite3_bind_double(s, at, va_arg(*ap, double));
        case 't':
                return sqlite3_bind_text(s, at, va_arg(*ap, const char *), -1, SQLITE_STATIC);
        case 'b': {
                const void *data = va_arg(*ap, const void *);
                size_t n = va_arg(*ap, size_t);

                if (n > INT_MAX)
                        return SQLITE_TOOBIG;
                return sqlite3_bind_blob(s, at, data ?: "", (int) n, SQLITE_STATIC);
        }
        default:
                return SQLITE_MISUSE;
        }
}

int db_bind(sqlite3_stmt *s, const char *types, ...) {
        va_list ap;
        int code = SQLITE_OK;

        db_reset(s);
        va_start(ap, types);
        for (int i = 0; types[i] && code == SQLITE_OK; i++)
                code = db_bind_one(s, i + 1, types[i], &ap);
        va_end(ap);
        return db_errno(code);
}

int db_step(sqlite3_stmt *s) {
        int code = sqlite3_step(s);

        if (code == SQLITE_ROW)
                return 1;
        (void) sqlite3_reset(s);
        return db_errno(code);
}

int db_run(sqlite3_stmt *s) {
        int r = db_step(s);

        db_reset(s);
        return r < 0 ? r : 0;
}

void db_reset(sqlite3_stmt *s) {
        (void) sqlite3_reset(s);
}

int db_begin(sqlite3 *db) {
        return db_exec(db, "BEGIN IMMEDIATE");
}

int db_commit(sqlite3 *db) {
        int r = db_exec(db, "COMMIT");

        if (r < 0)
                db_rollback(db);
        return r;
}

void db_rollback(sqlite3 *db) {
        if (!sqlite3_get_autocommit(db))
                (void) db_exec(db, "ROLLBACK");
}
