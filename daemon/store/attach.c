/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From a path to a file that can be written: made, migrated, or, where it is damaged, moved aside under a
 * dated name so that a new one can begun while a person may still rescue the old. And what an earlier
 * process left behind: ticks in the head file (a kill), or in the head table (a power cut, with
 * DurableHead=).
 */

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "cstated/timespan.h"

#include "store/schema.h"
#include "store/writer.h"

#define ASIDE_KEPT_MAX 3

/* One bound, of which the smaller counts: with two, sqlite searches by one and walks all rows for the other. */
#define EXPIRE_ROWS(table)                                                                                  \
        "DELETE FROM " table " WHERE id < min(?1 * 8192, (SELECT min(id) FROM " table ") / 8192 * 8192 + ?2 * 8192)"

static const DbStatement store_statements[STMT_N] = {
        [STMT_TOPO_INSERT] = { "topo insert", "INSERT INTO topo (t, json) VALUES (?, ?)" },
        [STMT_TOPO_NEWEST] = { "topo newest", "SELECT id, json FROM topo ORDER BY id DESC LIMIT 1" },
        [STMT_META_PUT] = { "meta put", "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)" },
        [STMT_EPOCH_INSERT] = { "epoch insert",
                "INSERT OR IGNORE INTO epoch (id, t, boot_id) VALUES (?, ?, ?)" },
        [STMT_EVENT_INSERT] = { "event insert",
                "INSERT INTO event (id, t, kind, cpu, text) VALUES (?, ?, ?, nullif(?, -1), ?)" },
        [STMT_LABEL_CLOSE] = { "label close", "UPDATE label SET t1 = ?3, meta = coalesce(?4, meta) WHERE "
                                              "name = ?1 AND t0 = ?2 AND t1 IS NULL" },
        [STMT_LABEL_INSERT] = { "label insert",
                "INSERT INTO label (name, t0, t1, meta) VALUES (?, ?, nullif(?, 0), ?)" },
        [STMT_LABEL_DELETE] = { "label delete", "DELETE FROM label WHERE name = ?" },
        [STMT_CHUNK_INSERT] = { "chunk insert",
                "INSERT INTO chunk (seq, t0, t1, n, topo, epoch, b) VALUES (?, ?, ?, ?, ?, ?, ?)" },
        [STMT_CHUNK_UNROLLED] = { "chunk unrolled",
                "SELECT seq, (t1 - 1) / 60000000 FROM chunk c WHERE seq > ?1 AND t1 > ?2 AND NOT EXISTS"
                " (SELECT 1 FROM sys_1m m WHERE m.id = (c.t1 - 1) / 60000000 * 8192) ORDER BY seq LIMIT 1" },
        [STMT_CHUNK_OF_MINUTE] = { "chunk of minute",
                "SELECT c.t1, c.epoch, c.b, t.id, t.json FROM chunk c JOIN topo t ON t.id = c.topo"
                " WHERE c.t0 > (?1 - 11) * 60000000 AND c.t0 <= (?1 + 1) * 60000000 AND (c.t1 - 1) / "
                "60000000 = ?1"
                " ORDER BY c.seq LIMIT 1 OFFSET ?2" },
        [STMT_MINUTE_EXISTS] = { "minute exists", "SELECT 1 FROM sys_1m WHERE id = ? * 8192" },
        [STMT_HEAD_PUT] = { "head put",
                "INSERT OR REPLACE INTO head (id, seq, topo, epoch, b) VALUES (1, ?, ?, ?, ?)" },
        [STMT_HEAD_DELETE] = { "head delete", "DELETE FROM head" },
        [STMT_HOUR_MISSING] = { "hour missing",
                "SELECT id / 8192 / 60 FROM sys_1m m WHERE id >= ?1 * 60 * 8192 AND id < ?2 * 60 * 8192 AND "
                "NOT EXISTS"
                " (SELECT 1 FROM sys_1h h WHERE h.id = m.id / 8192 / 60 * 8192) ORDER BY id LIMIT 1" },
        [STMT_HOUR_FORGET] = { "hour forget", "DELETE FROM sys_1h WHERE id = ? * 8192" },
        [STMT_EXPIRE_CHUNK] = { "expire chunk",
                "DELETE FROM chunk WHERE seq IN (SELECT seq FROM chunk WHERE "
                "t0 < ?1 ORDER BY t0 LIMIT ?2) AND t1 < ?1" },
        [STMT_EXPIRE_CHUNK_ANY] = { "expire any chunk",
                "DELETE FROM chunk WHERE seq IN (SELECT seq FROM chunk ORDER BY seq LIMIT ?)" },
        [STMT_EXPIRE_CPU_1M] = { "expire cpu_1m", EXPIRE_ROWS("cpu_1m") },
        [STMT_EXPIRE_PKG_1M] = { "expire pkg_1m", EXPIRE_ROWS("pkg_1m") },
        [STMT_EXPIRE_SYS_1M] = { "expire sys_1m", EXPIRE_ROWS("sys_1m") },
        [STMT_EXPIRE_CPU_1H] = { "expire cpu_1h", EXPIRE_ROWS("cpu_1h") },
        [STMT_EXPIRE_PKG_1H] = { "expire pkg_1h", EXPIRE_ROWS("pkg_1h") },
        [STMT_EXPIRE_SYS_1H] = { "expire sys_1h", EXPIRE_ROWS("sys_1h") },
        [STMT_EXPIRE_EVENT] = { "expire event",
                "DELETE FROM event WHERE id IN (SELECT id FROM event WHERE t < ? ORDER BY t LIMIT 256)" },
        [STMT_CUT_EVENT] = { "cut event",
                "DELETE FROM event WHERE id < min(?1 + 1, (SELECT min(id) FROM event) + ?2)" },
        [STMT_EXPIRE_TOPO] = { "expire topo",
                "DELETE FROM topo WHERE id < (SELECT min(m) FROM (SELECT min(topo) AS m FROM chunk UNION ALL"
                " SELECT min(topo) FROM sys_1m UNION ALL SELECT min(topo) FROM sys_1h))" },
};

/* ---- moving aside ---- */

/* Removes the oldest "<name>.damaged-*" so that `keep` remain (their -wal and -shm go with them). */
static void prune_aside(const char *path, size_t keep) {
        _cleanup_free_ char *dir = strdup(path), *prefix = NULL;
        const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
        struct dirent **list = NULL;
        size_t found = 0;
        int n;

        if (!dir || asprintf(&prefix, "%s.damaged-", name) < 0)
                return;
        *(strrchr(dir, '/') ? strrchr(dir, '/') + 1 : dir) = '\0';
        n = scandir(dir[0] ? dir : ".", &list, NULL, alphasort);
        for (int i = n - 1; i >= 0; i--) {
                size_t length = strlen(list[i]->d_name);
                _cleanup_free_ char *victim = NULL;
                bool side = length > 4 && (strcmp(list[i]->d_name + length - 4, "-wal") == 0 ||
                                                  strcmp(list[i]->d_name + length - 4, "-shm") == 0);

                /* the side files sort behind their file: they are counted with it when it comes */
                if (strncmp(list[i]->d_name, prefix, strlen(prefix)) == 0) {
                        if (found + (side ? 1 : 0) >= keep + (side ? 1 : 0) &&
                                asprintf(&victim, "%s%s", dir, list[i]->d_name) >= 0)
                                (void) unlink(victim);
                        found += !side;
                }
        }
        for (int i = 0; i < n; i++)
                free(list[i]);
        free(list);
}

static int rename_with(const char *from, const char *to, const char *suffix) {
        _cleanup_free_ char *a = NULL, *b = NULL;

        if (asprintf(&a, "%s%s", from, suffix) < 0 || asprintf(&b, "%s%s", to, suffix) < 0)
                return -ENOMEM;
        return rename(a, b) < 0 && errno != ENOENT ? -errno : 0;
}

static int move_aside(Store *s, uint64_t now_us) {
        _cleanup_free_ char *to = NULL;
        time_t t = (time_t) (now_us / USEC_PER_SEC);
        struct tm tm;
        char stamp[32];
        int r;

        (void) strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", gmtime_r(&t, &tm));
        for (unsigned i = 0; i < 100; i++) {
                char *name;

                if (asprintf(&name, i > 0 ? "%s.damaged-%s-%02u" : "%s.damaged-%s", s->path, stamp, i) < 0)
                        return -ENOMEM;
                free(to);
                to = name;
                if (access(to, F_OK) < 0)
                        break;
        }
        prune_aside(s->path, ASIDE_KEPT_MAX - 1);
        r = rename_with(s->path, to, "");
        if (r == 0)
                r = rename_with(s->path, to, "-wal");
        if (r == 0)
                r = rename_with(s->path, to, "-shm");
        if (r == 0)
                (void) snprintf(s->figures.moved_aside, sizeof(s->figures.moved_aside), "%s", to);
        return r;
}

/* ---- attaching ---- */

static int wal_hook(void *userdata, sqlite3 *db, const char *name, int pages) {
        Store *s = userdata;

        s->wal_pages = pages;
        return SQLITE_OK;
}

/* Numbers that were given without the file follow on what it holds. */
static void store_number(Store *s, uint64_t last_seq, uint64_t last_epoch) {
        for (Pending *p = s->first; p; p = p->next) {
                p->machine->topo = 0;
                p->seq += s->numbered ? 0 : last_seq;
                p->epoch += s->numbered ? 0 : last_epoch;
        }
        if (s->machine)
                s->machine->topo = 0;
        if (!s->numbered) {
                s->next_seq += last_seq;
                s->epoch += last_epoch;
                if (s->machine)
                        head_renumber(s->head, last_seq, last_epoch);
        }
        s->numbered = true;
}

static int attach_read(Store *s) {
        int64_t seq = 0, epoch = 0, page_size = 0, event = 0;
        struct stat st;
        int r;

        r = rollup_tables_load(&s->rollups, s->db);
        if (r == 0)
                r = db_query_i64(s->db, "SELECT coalesce(max(id), 0) FROM epoch", &epoch);
        if (r == 0)
                r = db_query_i64(s->db,
                        "SELECT coalesce((SELECT seq + n - 1 FROM chunk ORDER BY seq DESC LIMIT 1), 0)",
                        &seq);
        if (r == 0)
                r = db_query_i64(s->db, "SELECT coalesce(max(id), 0) FROM event", &event);
        if (r == 0)
                r = db_query_i64(s->db, "PRAGMA page_size", &page_size);
        if (r == 0)
                r = retain_clock_load(s);
        if (r < 0)
                return r;
        s->page_size = (uint32_t) page_size;
        store_number(s, (uint64_t) seq, (uint64_t) epoch);
        event_queue_number(&s->events, (uint64_t) event);
        if (stat(s->path, &st) == 0) {
                s->inode = st.st_ino;
                s->device = st.st_dev;
        }
        return 0;
}

static int attach_once(Store *s) {
        int r;

        r = db_open(s->path, DB_OPEN_WRITE, &s->db);
        if (r < 0)
                return r;
        r = schema_open(s->db, s->config.progress, s->config.userdata);
        if (r > 0)
                return r == SCHEMA_NEWER ? STORE_E_NEWER : STORE_E_FOREIGN;
        if (r == 0)
                r = db_prepare_all(s->db, store_statements, STMT_N, s->stmts);
        if (r == 0)
                r = attach_read(s);
        if (r == 0)
                (void) sqlite3_wal_hook(
                        s->db, wal_hook, s); /* in place of sqlite's own: retain_checkpoint() */
        return r;
}

int store_attach(Store *s, uint64_t now_us) {
        int r = 0;

        for (unsigned attempt = 0; attempt < 2; attempt++) {
                if (s->suspect)
                        r = move_aside(s, now_us);
                s->suspect = false;
                if (r == 0)
                        r = attach_once(s);
                if (r == 0)
                        break;
                if (r < 0)
                        store_trouble(s, "opening", r);
                store_detach(s);
                if (!s->suspect)
                        return r;
                r = 0;
        }
        if (r == 0 && s->db) {
                s->figures.degraded = false;
                s->figures.problem[0] = '\0';
        }
        s->generation++;
        s->more_unrolled = s->more_hours = true;
        s->unrolled_seq = 0;
        return r;
}

void store_detach(Store *s) {
        db_finalize_all(s->stmts, STMT_N);
        rollup_write_forget(s);
        s->metrics_topo = 0;
        s->db = db_close(s->db);
}

/* ---- adopting ---- */

static int adopt_rows(
        Store *s, const HeadOwner *owner, const char *json, const Layout *layout, const TickRows *rows) {
        _cleanup_(store_machine_unrefp) StoreMachine *m = NULL;
        char *copy = strdup(json);
        uint8_t *bytes;
        size_t size;
        int r;

        if (!copy)
                return -ENOMEM;
        r = store_machine_new(copy, layout, owner->epoch_us, &m);
        if (r < 0) {
                free(copy);
                return r;
        }
        r = chunk_encode(&m->layout, rows, &bytes, &size);
        return r < 0 ? r : store_pend(s, m, owner, rows, bytes, size);
}

/* The head table's row, where it is younger than all chunks. */
static int adopt_table(Store *s) {
        static const char text[] =
                "SELECT h.seq, h.epoch, h.b, t.json, e.t FROM head h JOIN topo t ON t.id = h.topo"
                " JOIN epoch e ON e.id = h.epoch WHERE h.seq >= ?";
        sqlite3_stmt *q = NULL;
        int r;

        r = db_errno(sqlite3_prepare_v2(s->db, text, -1, &q, NULL));
        if (r == 0)
                r = db_bind(q, "i", (int64_t) s->next_seq);
        if (r == 0)
                r = db_step(q);
        if (r > 0)
                r = store_adopt_chunk(s, q);
        (void) sqlite3_finalize(q);
        return r;
}

/* A (seq, epoch, chunk, json, epoch_us) row becomes a pending minute. */
int store_adopt_chunk(Store *s, sqlite3_stmt *q) {
        _cleanup_(store_machine_unrefp) StoreMachine *m = NULL;
        _cleanup_free_ uint64_t *times = NULL;
        _cleanup_free_ uint8_t *records = NULL, *bytes = NULL;
        HeadOwner owner = {
                .seq = (uint64_t) sqlite3_column_int64(q, 0),
                .epoch = (uint64_t) sqlite3_column_int64(q, 1),
                .epoch_us = (uint64_t) sqlite3_column_int64(q, 4),
        };
        size_t size = (size_t) sqlite3_column_bytes(q, 2);
        char *json = strdup((const char *) sqlite3_column_text(q, 3) ?: "");
        TickRows rows;
        Chunk c = {};
        int r;

        bytes = malloc(size + 1);
        if (!json || !bytes) {
                free(json);
                return -ENOMEM;
        }
        memcpy(bytes, sqlite3_column_blob(q, 2) ?: "", size);
        r = store_machine_new(json, NULL, owner.epoch_us, &m);
        if (r < 0) {
                free(json);
                return r;
        }
        r = chunk_open_memory(&c, bytes, size);
        if (r < 0)
                return r;
        times = calloc(3 * c.n, sizeof(*times));
        records = calloc(c.n, tick_rows_stride(0));
        if (!times || !records)
                return -ENOMEM;
        r = chunk_times(&c, times, times + c.n, times + 2 * c.n);
        if (r < 0)
                return r;
        rows = (TickRows){ .records = records, .stride = tick_rows_stride(0), .n = c.n };
        for (size_t i = 0; i < c.n; i++)
                memcpy(records + i * rows.stride,
                        &(TickRecord){ times[i], times[c.n + i], times[2 * c.n + i] }, sizeof(TickRecord));
        s->next_seq = MAX(s->next_seq, owner.seq + c.n);
        s->figures.adopted_ticks += c.n;
        return store_pend(s, m, &owner, &rows, TAKE_PTR(bytes), size);
}

int store_adopt(Store *s, const char *boot_id, uint64_t now_us) {
        HeadOwner owner;
        const char *json;
        Layout layout;
        TickRows rows;
        int r;

        if (s->adopted)
                return 0;
        s->adopted = true;
        r = head_left(s->head, &owner, &json, &layout, &rows);
        if (r > 0 && strcmp(owner.boot_id, boot_id) == 0 && (owner.seq >= s->next_seq || !s->numbered)) {
                r = adopt_rows(s, &owner, json, &layout, &rows);
                if (r == 0) {
                        s->next_seq = owner.seq + rows.n;
                        s->epoch = MAX(s->epoch, owner.epoch);
                        s->figures.adopted_ticks += rows.n;
                        s->numbered = true;
                }
        } else if (s->db)
                r = adopt_table(s);
        if (r == -ENOMEM)
                return r;
        /* whatever else is wrong with it: it cannot be helped, and must not stop us */
        return store_drain(s, now_us);
}
