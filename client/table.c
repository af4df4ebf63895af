/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The part of libsmartcols that the verbs need. Its errors are -errno already. */

#include <errno.h>
#include <langinfo.h>
#include <libsmartcols.h>
#include <string.h>

#include "client/table.h"

struct Table {
        struct libscols_table *table;
        size_t n_columns;
};

Table *table_free(Table *t) {
        if (!t)
                return NULL;
        scols_unref_table(t->table);
        free(t);
        return NULL;
}

static int scols_flags(unsigned flags) {
        return (flags & TABLE_RIGHT ? SCOLS_FL_RIGHT : 0) | (flags & TABLE_TRUNC ? SCOLS_FL_TRUNC : 0) |
                (flags & TABLE_WRAP ? SCOLS_FL_WRAP : 0);
}

Table *table_new(const TableColumn *columns, size_t n, FILE *out) {
        _cleanup_(table_freep) Table *t = calloc(1, sizeof(*t));

        if (!t)
                return NULL;
        t->table = scols_new_table();
        if (!t->table || scols_table_set_stream(t->table, out) < 0)
                return NULL;
        for (size_t i = 0; i < n; i++)
                if (!scols_table_new_column(t->table, columns[i].name, 0, scols_flags(columns[i].flags)))
                        return NULL;
        t->n_columns = n;
        return TAKE_PTR(t);
}

int table_add(Table *t, const char *const *cells) {
        struct libscols_line *line = scols_table_new_line(t->table, NULL);

        if (!line)
                return -ENOMEM;
        for (size_t i = 0; i < t->n_columns; i++) {
                int r = cells[i] ? scols_line_set_data(line, i, cells[i]) : 0;

                if (r < 0)
                        return r;
        }
        return 0;
}

int table_print(Table *t) {
        return scols_table_get_nlines(t->table) > 0 ? scols_print_table(t->table) : 0;
}

bool table_is_utf8(void) {
        return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}
