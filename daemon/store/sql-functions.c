/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two eponymous virtual tables over StoreScan. Their columns are those of the newest machine; older ticks
 * that lack one give null. Constraints are hints to the scan, sqlite checks every row again.
 */

#include <errno.h>
#include <string.h>

#include "model/machine.h"
#include "store/rollup-table.h"
#include "store/sql-functions.h"
#include "store/sql-private.h"
#include "store/store.h"

typedef struct SqlModule {
        char *path;
        bool aggregate;
} SqlModule;

int sql_code(int error) {
        return error == -ENOMEM ? SQLITE_NOMEM : error < 0 || error > 0 ? SQLITE_ERROR : SQLITE_OK;
}

/* ---- columns ---- */

static bool sql_has(const SqlTable *t, FieldId field, const char *state) {
        for (size_t i = 0; i < t->n; i++)
                if (t->columns[i].field == field && strcmp(t->columns[i].state, state) == 0)
                        return true;
        return false;
}

/* All fields of CPUs, modules and cores, a column for each state's name. */
static int sql_collect(SqlTable *t, const Machine *m) {
        Layout l;

        sample_layout(m, &l);
        t->columns = calloc(SQL_COLUMNS_MAX, sizeof(*t->columns));
        if (!t->columns)
                return -ENOMEM;
        for (size_t i = 0; i < l.n_columns; i++) {
                FieldId field = l.columns[i].field;
                unsigned n_sets = field_is_by_state(field) ? MAX(m->n_idle_sets, 1u) : 1;

                if (rollup_scope(field_spec(field)->scope) != ROLLUP_CPU)
                        continue;
                for (unsigned set = 0; set < n_sets && t->n < SQL_COLUMNS_MAX; set++) {
                        char state[16];

                        rollup_state(m, field, l.columns[i].instance, (uint16_t) set, state);
                        if (sql_has(t, field, state))
                                continue;
                        t->columns[t->n].field = field;
                        memcpy(t->columns[t->n++].state, state, sizeof(state));
                }
        }
        return 0;
}

static int sql_declare(sqlite3 *db, const SqlTable *t) {
        sqlite3_str *text = sqlite3_str_new(db);
        char *sql;
        int code;

        sqlite3_str_appendf(text,
                "CREATE TABLE x(%s INTEGER, cpu INTEGER, core INTEGER, package INTEGER, dt INTEGER",
                t->aggregate ? "n" : "t");
        for (size_t i = 0; i < t->n; i++)
                sqlite3_str_appendf(text, ", \"%w%s%w\" INTEGER", field_spec(t->columns[i].field)->name,
                        t->columns[i].state[0] ? "_" : "", t->columns[i].state);
        sqlite3_str_appendall(text, t->aggregate ? ", t_from INTEGER HIDDEN, t_to INTEGER HIDDEN)" : ")");
        sql = sqlite3_str_finish(text);
        if (!sql)
                return SQLITE_NOMEM;
        code = sqlite3_declare_vtab(db, sql);
        sqlite3_free(sql);
        return code;
}

static int sql_disconnect(sqlite3_vtab *vtab) {
        SqlTable *t = (SqlTable *) (void *) vtab;

        free(t->columns);
        free(t);
        return SQLITE_OK;
}

static int sql_connect(
        sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **ret, char **ret_error) {
        _cleanup_(store_reader_closep) StoreReader *reader = NULL;
        const SqlModule *module = aux;
        const Machine *m = NULL;
        SqlTable *t;
        int r, code;

        r = store_reader_open(module->path, NULL, &reader);
        if (r == 0)
                r = store_reader_machine(reader, &m);
        if (r == 0 && !m)
                r = -ENODATA;
        if (r != 0) {
                *ret_error =
                        sqlite3_mprintf("%s", r == -ENODATA ? "no data yet" : "the database cannot be read");
                return sql_code(r);
        }
        t = calloc(1, sizeof(*t));
        if (!t)
                return SQLITE_NOMEM;
        t->path = module->path;
        t->aggregate = module->aggregate;
        r = sql_collect(t, m);
        code = r < 0 ? sql_code(r) : sql_declare(db, t);
        if (code != SQLITE_OK) {
                (void) sql_disconnect(&t->base);
                return code;
        }
        *ret = &t->base;
        return SQLITE_OK;
}

/* ---- plans ---- */

static int plan_of(const SqlTable *t, const struct sqlite3_index_constraint *c) {
        int from = FIXED_N + (int) t->n;

        if (t->aggregate) {
                if (c->op != SQLITE_INDEX_CONSTRAINT_EQ)
                        return 0;
                return c->iColumn == from ? PLAN_FROM : c->iColumn == from + 1 ? PLAN_TO : 0;
        }
        if (c->iColumn == FIXED_CPU && c->op == SQLITE_INDEX_CONSTRAINT_EQ)
                return PLAN_CPU;
        if (c->iColumn != FIXED_T)
                return 0;
        switch (c->op) {
        case SQLITE_INDEX_CONSTRAINT_GT:
        case SQLITE_INDEX_CONSTRAINT_GE:
                return PLAN_FROM;
        case SQLITE_INDEX_CONSTRAINT_LT:
        case SQLITE_INDEX_CONSTRAINT_LE:
                return PLAN_TO;
        default:
                return 0;
        }
}

/* idxNum: which of from, to, cpu are given, in this order; idxStr: the columns used, as sqlite counts them.
 */
static int sql_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info) {
        const SqlTable *t = (const SqlTable *) (const void *) vtab;
        int which[3] = { -1, -1, -1 }, n = 0;

        for (int i = 0; i < info->nConstraint; i++) {
                int plan = plan_of(t, &info->aConstraint[i]);

                if (plan && !info->aConstraint[i].usable && t->aggregate)
                        return SQLITE_CONSTRAINT;
                for (int k = 0; k < 3; k++)
                        if (plan == 1 << k && info->aConstraint[i].usable && which[k] < 0)
                                which[k] = i;
        }
        info->estimatedCost = 1e9;
        info->estimatedRows = 1000000;
        for (int k = 0; k < 3; k++) {
                if (which[k] < 0)
                        continue;
                info->idxNum |= 1 << k;
                info->aConstraintUsage[which[k]].argvIndex = ++n;
                info->aConstraintUsage[which[k]].omit = t->aggregate;
                info->estimatedCost /= 100;
                info->estimatedRows /= 10;
        }
        info->idxStr = sqlite3_mprintf("%llx", (unsigned long long) info->colUsed);
        info->needToFreeIdxStr = 1;
        return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

static void sql_module_free(void *userdata) {
        SqlModule *m = userdata;

        free(m->path);
        free(m);
}

int sql_functions_register(sqlite3 *db, const char *path) {
        static const sqlite3_module methods = {
                .xConnect = sql_connect, /* no xCreate: it exists by its name alone */
                .xBestIndex = sql_best_index,
                .xDisconnect = sql_disconnect,
                .xOpen = sql_open,
                .xClose = sql_close,
                .xFilter = sql_filter,
                .xNext = sql_next,
                .xEof = sql_eof,
                .xColumn = sql_column,
                .xRowid = sql_rowid,
        };
        static const char *const names[] = { "cpu_raw", "cpu_agg" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                SqlModule *m = calloc(1, sizeof(*m));
                int code;

                if (m)
                        m->path = strdup(path);
                if (!m || !m->path) {
                        free(m);
                        return -ENOMEM;
                }
                m->aggregate = i == 1;
                code = sqlite3_create_module_v2(db, names[i], &methods, m, sql_module_free);
                if (code != SQLITE_OK)
                        return db_errno(code);
        }
        return 0;
}
