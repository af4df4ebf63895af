/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * LKP's table, with two additions: the change of a residency is in percentage points ("pp"), since 2 % of C6
 * that becomes 1 % is no halving anybody feels; and a side that has fewer values in a row than runs says how
 * many.
 */

#include <math.h>
#include <string.h>

#include "client/compare-print.h"
#include "client/rows.h"
#include "cstated/num.h"

#define NARROW 72

static void change_text(const json_t *row, char buf[ROW_TEXT]) {
        const char *unit = json_string_value(json_object_get(row, "change_unit"));
        double change = row_value(row, "change");
        char number[ROW_TEXT - 8];

        if (!isfinite(change)) {
                (void) snprintf(buf, ROW_TEXT, "-");
                return;
        }
        (void) num_format_fixed(change, fabs(change) < 1000 ? 1 : 0, number, sizeof(number));
        (void) snprintf(buf, ROW_TEXT, "%s%s%s", change > 0 ? "+" : "", number, unit ? unit : "");
}

static void side_text(const json_t *row, const char *key, const ComparePrint *p, char number[ROW_TEXT],
        char spread[ROW_TEXT]) {
        const json_t *side = json_object_get(row, key);
        double percent = row_value(side, "stddev_percent");
        char text[ROW_TEXT - 8];

        row_number(row, row_value(side, "mean"), number);
        spread[0] = '\0';
        if (!isfinite(percent))
                return;
        (void) num_format_fixed(percent, percent < 10 ? 1 : 0, text, sizeof(text));
        (void) snprintf(spread, ROW_TEXT, "%s%4s%%", p->utf8 ? "±" : "+-", text);
}

static bool is_hidden(const json_t *row, const ComparePrint *p) {
        double a = row_value(json_object_get(row, "a"), "mean"),
               b = row_value(json_object_get(row, "b"), "mean");
        double change = row_value(row, "change");

        if (!p->all && row_is_dull(row, a) && row_is_dull(row, b))
                return true;
        if (!p->all && fabs(a) < 1e-12 && fabs(b) < 1e-12)
                return true;
        return p->threshold > 0 && isfinite(change) && fabs(change) < p->threshold;
}

/* "(n=3 5)" where a row rests on fewer values than its sides have. */
static void count_text(const json_t *root, const json_t *row, char buf[ROW_TEXT]) {
        json_int_t n[2], all[2];

        for (int i = 0; i < 2; i++) {
                const char *key = i == 0 ? "a" : "b";
                const json_t *side = json_object_get(root, key);
                bool per_sample = json_is_true(json_object_get(side, "per_sample"));

                n[i] = json_integer_value(json_object_get(json_object_get(row, key), "n"));
                all[i] = json_integer_value(json_object_get(side, per_sample ? "samples" : "windows"));
        }
        buf[0] = '\0';
        if (n[0] != all[0] || n[1] != all[1])
                (void) snprintf(buf, ROW_TEXT, "  (n=%lld, %lld)", (long long) n[0], (long long) n[1]);
}

static void print_row(const json_t *root, const json_t *row, const ComparePrint *p, FILE *out) {
        char a[ROW_TEXT], b[ROW_TEXT], spread_a[ROW_TEXT], spread_b[ROW_TEXT], change[ROW_TEXT],
                name[ROW_TEXT], entity[ROW_TEXT];
        char count[ROW_TEXT];
        int wide = p->utf8 ? 8 : 7; /* bytes of a spread seven columns wide: "±" has two */

        side_text(row, "a", p, a, spread_a);
        side_text(row, "b", p, b, spread_b);
        change_text(row, change);
        row_name(row, name);
        row_entity(row, entity);
        count_text(root, row, count);
        if (p->width > 0 && p->width < NARROW)
                (void) fprintf(out, "%s%s%s%s\n  %s %s  %s  %s %s\n", name, entity[0] ? " " : "", entity,
                        count, a, spread_a, change, b, spread_b);
        else
                (void) fprintf(out, "%11s %-*s %11s %11s %-*s  %s%s%s%s\n", a, spread_a[0] ? wide : 7,
                        spread_a, change, b, spread_b[0] ? wide : 7, spread_b, name, entity[0] ? " " : "",
                        entity, count);
}

/* "5 runs", or how many samples of one window. */
static void side_count(const json_t *root, const char *key, char buf[ROW_TEXT]) {
        const json_t *side = json_object_get(root, key);
        bool per_sample = json_is_true(json_object_get(side, "per_sample"));
        long long n = json_integer_value(json_object_get(side, per_sample ? "samples" : "windows"));

        (void) snprintf(buf, ROW_TEXT, "%lld %s%s", n, per_sample ? "sample" : "run", n == 1 ? "" : "s");
}

static void print_head(const json_t *root, const char *a, const char *b, const ComparePrint *p, FILE *out) {
        const char *mark = p->utf8 ? "±%stddev" : "+-%stddev";
        char n_a[ROW_TEXT], n_b[ROW_TEXT];
        json_t *warning;
        size_t i;

        side_count(root, "a", n_a);
        side_count(root, "b", n_b);
        (void) fprintf(out, "a: %s (%s)\nb: %s (%s)\n", a, n_a, b, n_b);
        json_array_foreach(json_object_get(root, "warnings"), i, warning)
                (void) fprintf(out, "warning: %s\n", json_string_value(warning));
        if (p->width > 0 && p->width < NARROW)
                (void) fprintf(out, "\nmetric\n  a %s  change  b %s\n--------------------------------\n",
                        mark, mark);
        else
                (void) fprintf(out,
                        "\n                  a                            b\n------------------- "
                        "--------------------------------\n"
                        "%*s     %%change %*s\n           \\                |           \\\n",
                        p->utf8 ? 20 : 19, mark, p->utf8 ? 20 : 19, mark);
}

size_t compare_print(const json_t *root, const char *a, const char *b, const ComparePrint *p, FILE *out) {
        json_t *row;
        size_t i, n = 0;

        print_head(root, a, b, p, out);
        json_array_foreach(json_object_get(root, "rows"), i, row) {
                if (is_hidden(row, p))
                        continue;
                print_row(root, row, p, out);
                n++;
        }
        return n;
}
