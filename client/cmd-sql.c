/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cstatectl sql: questions that no verb asks, put to the database itself; read-only. */

#include <errno.h>
#include <string.h>

#include "base/json-writer.h"
#include "client/ctl.h"
#include "cstated/api.h"
#include "store/sql.h"
#include "store/store.h"

const struct option options_sql[] = {
        { "format", required_argument, NULL, 'f' },
        { "help", no_argument, NULL, 'h' },
        {},
};

typedef enum SqlFormat { SQL_TSV, SQL_CSV, SQL_JSON } SqlFormat;

static void print_help(void) {
        puts("usage: cstatectl [--db FILE] sql [OPTION]... STATEMENT\n\n"
             "Runs SQL on the history, read-only. Without --db it is the daemon's own file,\n"
             "which has to be readable; the open minute is not in it yet.\n\n"
             "      --format FORMAT  tsv (default), csv, json (an object a line)\n\n"
             "Tables: cpu_raw (t, cpu, core, package, dt, a column a counter) has every tick;\n"
             "cpu_agg(T_FROM, T_TO) its sums; cpu_1m pkg_1m sys_1m cpu_1h pkg_1h sys_1h the\n"
             "rollups, v_cpu_1m ... the same in percent, MHz and watts; event, label, topo.\n"
             "Times are microseconds since 1970.\n\n"
             "  cstatectl sql \"SELECT cpu, 100.0 * mperf / cpu_tsc AS busy\n"
             "      FROM cpu_agg((unixepoch() - 600) * 1000000, unixepoch() * 1000000)\"");
}

static int parse_options(int argc, char **argv, SqlFormat *ret) {
        static const char *const names[] = { "tsv", "csv", "json" };
        int c;

        optind = 0;
        while ((c = getopt_long(argc, argv, "", options_sql, NULL)) >= 0) {
                bool known = false;

                if (c == 'h') {
                        print_help();
                        return 1;
                }
                for (size_t i = 0; c == 'f' && i < ARRAY_SIZE(names); i++)
                        if (strcmp(optarg, names[i]) == 0) {
                                *ret = (SqlFormat) i;
                                known = true;
                        }
                if (c == 'f' && !known)
                        ctl_error("--format is tsv, csv or json, not \"%s\"", optarg);
                if (!known)
                        return -EINVAL;
        }
        return ctl_words(argc, argv, 1, 1, "an SQL statement");
}

/* RFC 4180 quotes where they are needed; in TSV what would break a line becomes a space. */
static void put_cell(SqlFormat format, const char *text) {
        bool quote = format == SQL_CSV && strpbrk(text, "\",\r\n");

        if (quote)
                putchar('"');
        for (const char *p = text; *p; p++) {
                if (quote && *p == '"')
                        putchar('"');
                putchar(format == SQL_TSV && strchr("\t\r\n", *p) ? ' ' : *p);
        }
        if (quote)
                putchar('"');
}

static void put_header(StoreSql *sql, SqlFormat format) {
        for (size_t i = 0; i < store_sql_n_columns(sql); i++) {
                if (i > 0)
                        putchar(format == SQL_CSV ? ',' : '\t');
                put_cell(format, store_sql_column(sql, i));
        }
        putchar('\n');
}

static int put_json(StoreSql *sql) {
        _cleanup_(jw_deinit) JsonWriter j = JSON_WRITER_INIT;

        jw_begin_object(&j);
        for (size_t i = 0; i < store_sql_n_columns(sql); i++) {
                const char *v;
                StoreSqlType type = store_sql_value(sql, i, &v);

                jw_key(&j, store_sql_column(sql, i));
                if (type == STORE_SQL_NULL)
                        jw_null(&j);
                else if (type == STORE_SQL_INTEGER)
                        jw_i64(&j, store_sql_i64(sql, i));
                else if (type == STORE_SQL_REAL)
                        jw_double(&j, store_sql_double(sql, i), 15);
                else
                        jw_string(&j, v);
        }
        jw_end_object(&j);
        if (jw_error(&j) < 0)
                return -ENOMEM;
        puts(j.buf);
        return 0;
}

static int put_row(StoreSql *sql, SqlFormat format) {
        if (format == SQL_JSON)
                return put_json(sql);
        for (size_t i = 0; i < store_sql_n_columns(sql); i++) {
                const char *v;

                if (i > 0)
                        putchar(format == SQL_CSV ? ',' : '\t');
                (void) store_sql_value(sql, i, &v);
                put_cell(format, v); /* null is empty, as in the other verbs' TSV and CSV */
        }
        putchar('\n');
        return 0;
}

static int run_text(StoreSql *sql, const char *text, SqlFormat format) {
        int r;

        while ((r = store_sql_prepare(sql, text, &text)) > 0) {
                if (format != SQL_JSON && store_sql_n_columns(sql) > 0)
                        put_header(sql, format);
                while ((r = store_sql_step(sql)) > 0)
                        if (put_row(sql, format) < 0 || ferror(stdout))
                                return ctl_finish_stdout();
                if (r < 0)
                        break;
        }
        if (r < 0) {
                ctl_error("%s", store_sql_error(sql));
                return CTL_EXIT_FAILURE;
        }
        return ctl_finish_stdout();
}

static int open_file(const char *path, StoreSql **ret) {
        int r = store_sql_open(path, ret);

        if (r == 0)
                return CTL_EXIT_OK;
        if (r == STORE_E_NEWER)
                ctl_error("%s was written by a newer version of cstated", path);
        else if (r == STORE_E_OLDER)
                ctl_error("%s was written by an older version: cstated brings it up to date when it starts",
                        path);
        else if (r == STORE_E_FOREIGN)
                ctl_error("%s is not a database of cstated", path);
        else
                ctl_error("%s: %s", path, strerror(-r));
        return r == -ENOENT ? CTL_EXIT_NO_DATA : CTL_EXIT_FAILURE;
}

int cmd_sql(const Ctl *ctl, int argc, char **argv) {
        _cleanup_(store_sql_closep) StoreSql *sql = NULL;
        SqlFormat format = SQL_TSV;
        int r;

        r = parse_options(argc, argv, &format);
        if (r > 0)
                return ctl_finish_stdout();
        if (r < 0)
                return ctl_usage_error("sql ");
        if (ctl->connect || ctl->local) {
                ctl_error("sql reads a file: give it with --db");
                return CTL_EXIT_USAGE;
        }
        r = open_file(ctl->db ?: CSTATED_DEFAULT_DB, &sql);
        return r == CTL_EXIT_OK ? run_text(sql, argv[optind], format) : r;
}
