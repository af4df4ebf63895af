/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Order matters on a new file: auto_vacuum has to be the very first statement (once page 1 exists it is
 * ignored without a word), then application_id and user_version in the transaction that makes the tables, so
 * that a file is either empty or whole. WAL comes last and only for files that are ours: a foreign database
 * is never touched.
 *
 * Times are integer microseconds UTC. Nothing is unique on wall time, since a clock can be set back. Rowid
 * tables only, with keys that grow in time order.
 */

#include <errno.h>

#include "cstated/macro.h"

#include "store/migrate.h"
#include "store/schema.h"

static const char packed_tables[] =
        "CREATE TABLE metric (id INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL, name TEXT NOT NULL,"
        " state TEXT NOT NULL, unit TEXT NOT NULL, scale REAL NOT NULL, kind TEXT NOT NULL, \"column\" "
        "TEXT) STRICT;"
        "CREATE TABLE chunk (seq INTEGER PRIMARY KEY, t0 INTEGER NOT NULL, t1 INTEGER NOT NULL, n INTEGER "
        "NOT NULL,"
        " topo INTEGER NOT NULL, epoch INTEGER NOT NULL, b BLOB NOT NULL) STRICT;"
        "CREATE INDEX chunk_t0 ON chunk (t0);"
        "CREATE TABLE head (id INTEGER PRIMARY KEY CHECK (id = 1), seq INTEGER NOT NULL, topo INTEGER NOT "
        "NULL,"
        " epoch INTEGER NOT NULL, b BLOB NOT NULL) STRICT;";

static const char schema_tables[] =
        "CREATE TABLE meta (key TEXT PRIMARY KEY, value ANY NOT NULL) STRICT;"
        "CREATE TABLE topo (id INTEGER PRIMARY KEY AUTOINCREMENT, t INTEGER NOT NULL, json TEXT NOT NULL) "
        "STRICT;"
        "CREATE TABLE epoch (id INTEGER PRIMARY KEY, t INTEGER NOT NULL, boot_id TEXT NOT NULL) STRICT;"
        "CREATE TABLE event (id INTEGER PRIMARY KEY, t INTEGER NOT NULL, kind TEXT NOT NULL, cpu INTEGER,"
        " text TEXT NOT NULL) STRICT;"
        "CREATE INDEX event_t ON event (t);"
        "CREATE TABLE label (id INTEGER PRIMARY KEY, name TEXT NOT NULL, t0 INTEGER NOT NULL, t1 INTEGER,"
        " meta TEXT) STRICT;"
        "CREATE INDEX label_name ON label (name);"
        "INSERT INTO meta (key, value) VALUES ('created_by', 'cstated " CSTATED_VERSION "');";

int schema_probe(sqlite3 *db, int64_t *ret_version) {
        int64_t id, version, tables;
        int r;

        r = db_query_i64(db, "PRAGMA application_id", &id);
        if (r < 0)
                return r;
        r = db_query_i64(db, "PRAGMA user_version", &version);
        if (r < 0)
                return r;
        r = db_query_i64(db, "SELECT count(*) FROM sqlite_schema", &tables);
        if (r < 0)
                return r;
        *ret_version = version;
        if (id != SCHEMA_APPLICATION_ID)
                return id == 0 && version == 0 && tables == 0 ? SCHEMA_EMPTY : SCHEMA_FOREIGN;
        return version > SCHEMA_VERSION ? SCHEMA_NEWER : SCHEMA_OURS;
}

int schema_make_rollup(sqlite3 *db, RollupScope scope, StoreTier tier, const char *columns) {
        static const char cpu_keys[] = "cpu INTEGER AS (id % 8192) VIRTUAL, ";
        static const char pkg_keys[] = "package INTEGER AS (id % 8192 / 32) VIRTUAL,"
                                       " die INTEGER AS (id % 32 - 1) VIRTUAL, ";
        const char *keys = scope == ROLLUP_CPU ? cpu_keys : scope == ROLLUP_PKG ? pkg_keys : "";

        return db_execf(db,
                "CREATE TABLE %s (id INTEGER PRIMARY KEY, t INTEGER AS (id / 8192 * %s) VIRTUAL, %stopo "
                "INTEGER NOT NULL,"
                " epoch INTEGER NOT NULL, n INTEGER NOT NULL, dt INTEGER NOT NULL%s) STRICT",
                rollup_table_name(scope, tier), tier == TIER_1H ? "3600000000" : "60000000", keys, columns);
}

int schema_make_packed(sqlite3 *db) {
        int r = db_exec(db, packed_tables);

        for (unsigned scope = 0; scope < ROLLUP_SCOPES; scope++)
                for (unsigned tier = TIER_1M; r == 0 && tier <= TIER_1H; tier++)
                        r = schema_make_rollup(db, (RollupScope) scope, (StoreTier) tier, "");
        return r;
}

static int schema_make(sqlite3 *db) {
        int r;

        r = db_begin(db);
        if (r < 0)
                return r;
        r = db_execf(db, "PRAGMA application_id=%d; PRAGMA user_version=%d", SCHEMA_APPLICATION_ID,
                SCHEMA_VERSION);
        if (r == 0)
                r = db_exec(db, schema_tables);
        if (r == 0)
                r = schema_make_packed(db);
        if (r < 0) {
                db_rollback(db);
                return r;
        }
        return db_commit(db);
}

static int schema_pragmas(sqlite3 *db) {
        int persist = 1;
        int r;

        r = db_exec(db, "PRAGMA journal_mode=WAL;"
                        "PRAGMA synchronous=FULL;"
                        "PRAGMA wal_autocheckpoint=1000;"
                        "PRAGMA journal_size_limit=8388608;"
                        "PRAGMA secure_delete=OFF;"
                        "PRAGMA foreign_keys=OFF;");
        if (r < 0)
                return r;
        /* Without the -wal and -shm files an unprivileged sqlite3 cannot read once the daemon has stopped.
         */
        (void) sqlite3_file_control(db, "main", SQLITE_FCNTL_PERSIST_WAL, &persist);
        return 0;
}

int schema_open(sqlite3 *db, void (*progress)(void *userdata), void *userdata) {
        int64_t version, pages;
        int r;

        /* Said again to a file that is there it would write to it, whosever it is. */
        r = db_query_i64(db, "PRAGMA page_count", &pages);
        if (r == 0 && pages == 0)
                r = db_exec(db, "PRAGMA auto_vacuum=INCREMENTAL");
        if (r < 0)
                return r;
        r = schema_probe(db, &version);
        if (r < 0 || r == SCHEMA_NEWER || r == SCHEMA_FOREIGN)
                return r;
        if (r == SCHEMA_EMPTY) {
                r = schema_make(db);
                if (r < 0)
                        return r;
                version = SCHEMA_VERSION;
        }
        r = schema_pragmas(db);
        if (r == 0)
                r = migrate(db, version, progress, userdata);
        return r < 0 ? r : SCHEMA_OURS;
}
