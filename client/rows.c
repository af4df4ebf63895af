/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pure: JSON in, text out. The catalogue gives names and units; nothing here knows a metric but by its unit.
 */

#include <errno.h>
#include <math.h>
#include <string.h>

#include "client/rows.h"
#include "client/text.h"
#include "cstated/catalogue.h"
#include "cstated/num.h"

double row_value(const json_t *o, const char *key) {
        json_t *v = json_object_get(o, key);

        return json_is_number(v) ? json_number_value(v) : NAN;
}

void row_name(const json_t *row, char buf[ROW_TEXT]) {
        const MetricSpec *m = metric_find(text_of(row, "metric"));
        const char *state = text_of(row, "state"), *column = m && m->column ? m->column : text_of(row, "metric");

        if (strncmp(column, "%s", 2) == 0)
                (void) snprintf(
                        buf, ROW_TEXT, "%s%s", state, strcmp(column, "%s%%") == 0 ? "%" : column + 2);
        else if (state[0])
                (void) snprintf(buf, ROW_TEXT, "%s %s", state, column);
        else
                (void) snprintf(buf, ROW_TEXT, "%s", column);
}

static long long id_of(const json_t *row, const char *key) {
        return json_integer_value(json_object_get(row, key));
}

void row_entity(const json_t *row, char buf[ROW_TEXT]) {
        const char *scope = text_of(row, "scope");

        if (strcmp(scope, "cpu") == 0)
                (void) snprintf(buf, ROW_TEXT, "cpu %lld", id_of(row, "cpu"));
        else if (strcmp(scope, "core") == 0 || strcmp(scope, "module") == 0)
                (void) snprintf(
                        buf, ROW_TEXT, "%s %lld/%lld", scope, id_of(row, "package"), id_of(row, scope));
        else if (strcmp(scope, "system") == 0)
                buf[0] = '\0';
        else if (json_is_integer(json_object_get(row, "die")))
                (void) snprintf(
                        buf, ROW_TEXT, "%s %lld/%lld", scope, id_of(row, "package"), id_of(row, "die"));
        else
                (void) snprintf(buf, ROW_TEXT, "%s %lld", scope, id_of(row, "package"));
}

const char *row_unit(const json_t *row) {
        const char *unit = text_of(row, "unit");

        return strcmp(unit, "1") == 0 ? "1/s" : unit;
}

static int decimals(const char *unit, double v) {
        if (strcmp(unit, "MHz") == 0 || strcmp(unit, "C") == 0)
                return fabs(v) < 10 ? 1 : 0;
        if (strcmp(unit, "1") != 0)
                return 2;
        return fabs(v) < 10 ? 2 : fabs(v) < 1000 ? 1 : 0;
}

void row_number(const json_t *row, double v, char buf[ROW_TEXT]) {
        if (!isfinite(v))
                (void) snprintf(buf, ROW_TEXT, "-");
        else
                (void) num_format_fixed(v, decimals(text_of(row, "unit"), v), buf, ROW_TEXT);
}

void row_spread(double mean, double stddev, char buf[ROW_TEXT]) {
        double percent = fabs(mean) > 1e-12 ? 100 * stddev / fabs(mean) : NAN;
        char number[ROW_TEXT - 8];

        if (!isfinite(percent)) {
                (void) snprintf(buf, ROW_TEXT, "-");
                return;
        }
        (void) num_format_fixed(percent, percent < 10 ? 1 : 0, number, sizeof(number));
        (void) snprintf(buf, ROW_TEXT, "%s%%", number);
}

bool row_is_dull(const json_t *row, double mean) {
        const MetricSpec *m = metric_find(text_of(row, "metric"));

        if (!m || !isfinite(mean) || m->category == CATEGORY_SELF)
                return true;
        /* a residency of nothing is news; an interrupt that never came is not */
        return fabs(mean) < 1e-12 && m->unit != UNIT_WATT && m->category != CATEGORY_GRANTED;
}

json_t *summary_find(const json_t *summary, const char *metric, const char *state) {
        json_t *row;
        size_t i;

        json_array_foreach(json_object_get(summary, "rows"), i, row)
                if (strcmp(text_of(row, "metric"), metric) == 0 && strcmp(text_of(row, "scope"), "system") == 0 &&
                        (!state || strcmp(text_of(row, "state"), state) == 0))
                        return row;
        return NULL;
}

static void total_text(const json_t *row, char buf[ROW_TEXT]) {
        static const struct {
                const char *key, *format;
        } totals[] = { { "joules", "%s J" }, { "sum", "%s" }, { "seconds", "%s s" } };
        char number[ROW_TEXT - 8];

        buf[0] = '\0';
        for (size_t i = 0; i < ARRAY_SIZE(totals); i++) {
                json_t *v = json_object_get(row, totals[i].key);

                if (!json_is_number(v))
                        continue;
                (void) num_format_fixed(
                        json_number_value(v), json_is_integer(v) ? 0 : 2, number, sizeof(number));
                (void) snprintf(buf, ROW_TEXT, "%s%s", number, totals[i].format + 2);
                return;
        }
}

static bool has_entities(const json_t *rows) {
        char entity[ROW_TEXT];
        json_t *row;
        size_t i;

        json_array_foreach((json_t *) rows, i, row) {
                row_entity(row, entity);
                if (entity[0])
                        return true;
        }
        return false;
}

static int summary_add(Table *t, const json_t *row, bool entities) {
        char entity[ROW_TEXT], name[ROW_TEXT], mean[ROW_TEXT], spread[ROW_TEXT], min[ROW_TEXT],
                max[ROW_TEXT], total[ROW_TEXT];
        const char *cells[] = { entity, name, mean, row_unit(row), spread, min, max, total };
        double m = row_value(row, "mean");

        row_entity(row, entity);
        row_name(row, name);
        row_number(row, m, mean);
        row_spread(m, row_value(row, "stddev"), spread);
        row_number(row, row_value(row, "min"), min);
        row_number(row, row_value(row, "max"), max);
        total_text(row, total);
        return table_add(t, entities ? cells : cells + 1);
}

int summary_print(const json_t *summary, bool all, FILE *out) {
        const TableColumn columns[] = {
                { "WHERE", 0 },
                { "METRIC", 0 },
                { "MEAN", TABLE_RIGHT },
                { "UNIT", 0 },
                { "STDDEV", TABLE_RIGHT },
                { "MIN", TABLE_RIGHT },
                { "MAX", TABLE_RIGHT },
                { "TOTAL", TABLE_RIGHT },
        };
        json_t *rows = json_object_get(summary, "rows"), *row;
        bool entities = has_entities(rows);
        size_t skip = entities ? 0 : 1, i;
        _cleanup_(table_freep) Table *t = table_new(columns + skip, ARRAY_SIZE(columns) - skip, out);

        if (!t)
                return -ENOMEM;
        json_array_foreach(rows, i, row) {
                int r;

                if (!all && row_is_dull(row, row_value(row, "mean")))
                        continue;
                r = summary_add(t, row, entities);
                if (r < 0)
                        return r;
        }
        return table_print(t);
}
