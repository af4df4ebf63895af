/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cpu_raw and cpu_agg against the ticks they are about; and that nothing can be written. */

#include "tests/unit/test.h"

#include <errno.h>
#include <stdlib.h>

#include "cstated/num.h"
#include "cstated/timespan.h"
#include "store/sql.h"
#include "tests/unit/store-context.h"

#define BASE_US (472222ULL * 3600 * USEC_PER_SEC)
#define TICKS   130

typedef struct SqlContext {
        Context *c;
        Fixture f;
        StoreSql *sql;
} SqlContext;

static int setup(void **state) {
        SqlContext *x = calloc(1, sizeof(*x));
        void *inner = NULL;
        Store *s;

        assert_non_null(x);
        assert_int_equal(context_setup(&inner), 0);
        x->c = inner;
        fixture_init(&x->f, 4, 2, 1);
        s = context_store(x->c);
        assert_int_equal(store_set_machine(s, x->f.machine, BASE_US), 0);
        for (uint64_t i = 1; i <= TICKS; i++)
                assert_int_equal(store_append(s, fixture_sample(&x->f, BASE_US, i)), 0);
        (void) store_close(s);
        assert_int_equal(store_sql_open(x->c->path, &x->sql), 0);
        *state = x;
        return 0;
}

static int teardown(void **state) {
        SqlContext *x = *state;
        void *inner = x->c;

        (void) store_sql_close(x->sql);
        fixture_deinit(&x->f);
        free(x);
        return context_teardown(&inner);
}

/* The first value of the first row; INT64_MIN for null or no row. */
static int64_t value(SqlContext *x, const char *text) {
        const char *rest, *v;
        int64_t n;

        if (store_sql_prepare(x->sql, text, &rest) != 1)
                fail_msg("%s: %s", text, store_sql_error(x->sql));
        if (store_sql_step(x->sql) <= 0 || store_sql_value(x->sql, 0, &v) != STORE_SQL_INTEGER)
                return INT64_MIN;
        assert_int_equal(num_parse_i64(v, &n), 0);
        return n;
}

static size_t slot(const SqlContext *x, FieldId field, uint8_t instance, uint32_t e) {
        return layout_find(&x->f.layout, field, instance)->offset + e;
}

static void test_raw_values(void **state) {
        SqlContext *x = *state;
        char text[300];

        assert_int_equal(value(x, "SELECT count(*) FROM cpu_raw"), 4 * TICKS);
        assert_int_equal(value(x, "SELECT count(DISTINCT t) FROM cpu_raw WHERE cpu = 3"), TICKS);
        for (uint64_t seq = 1; seq <= TICKS; seq += 7)
                for (uint32_t cpu = 0; cpu < 4; cpu++) {
                        size_t at = slot(x, FIELD_IDLE_TIME, 2, cpu);
                        int64_t expected = fixture_reason(seq, at) ? INT64_MIN : fixture_value(seq, at);

                        (void) snprintf(text, sizeof(text),
                                "SELECT idle_time_C6 FROM cpu_raw WHERE cpu = %u AND t = %llu", cpu,
                                (unsigned long long) (BASE_US + seq * USEC_PER_SEC));
                        assert_int_equal(value(x, text), expected);
                        at = slot(x, FIELD_C6, 0, cpu / 2);
                        expected = fixture_reason(seq, at) ? INT64_MIN : fixture_value(seq, at);
                        (void) snprintf(text, sizeof(text),
                                "SELECT c6 FROM cpu_raw WHERE t > %llu AND t <= %llu AND cpu = %u",
                                (unsigned long long) (BASE_US + (seq - 1) * USEC_PER_SEC),
                                (unsigned long long) (BASE_US + seq * USEC_PER_SEC), cpu);
                        assert_int_equal(value(x, text), expected);
                }
}

/* Each bound in each form gives the rows it should. */
static void test_bounds(void **state) {
        static const struct {
                const char *where;
                int64_t rows;
        } cases[] = {
                { "t >= %llu", 4 * (TICKS - 49) },
                { "t > %llu", 4 * (TICKS - 50) },
                { "t < %llu", 4 * 49 },
                { "t <= %llu", 4 * 50 },
                { "t = %llu", 4 },
                { "t > %llu.5", 4 * (TICKS - 50) },
                { "t < %llu.5", 4 * 50 },
                { "t >= %llu - 0.5", 4 * (TICKS - 49) },
                { "t > %llu AND cpu = 9", 0 },
                { "t > %llu AND cpu = -1", 0 },
                { "t > %llu AND cpu = 'x'", 0 },
                { "t > 'x' || %llu", 0 },
                { "cpu IN (0, 2) AND t < %llu", 2 * 49 },
        };
        SqlContext *x = *state;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char where[100], text[200];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                (void) snprintf(where, sizeof(where), cases[i].where,
                        (unsigned long long) (BASE_US + 50 * USEC_PER_SEC));
#pragma GCC diagnostic pop
                (void) snprintf(text, sizeof(text), "SELECT count(*) FROM cpu_raw WHERE %s", where);
                if (value(x, text) != cases[i].rows)
                        fail_msg("%s: %lld", text, (long long) value(x, text));
        }
}

static void test_aggregate(void **state) {
        SqlContext *x = *state;
        char text[300];

        for (uint32_t cpu = 0; cpu < 4; cpu++) {
                size_t at = slot(x, FIELD_MPERF, 0, cpu);
                int64_t sum = 0, n = 0;

                for (uint64_t seq = 11; seq <= 100; seq++)
                        if (fixture_reason(seq, at) == REASON_NONE) {
                                sum += fixture_value(seq, at);
                                n++;
                        }
                (void) snprintf(text, sizeof(text), "SELECT mperf FROM cpu_agg(%llu, %llu) WHERE cpu = %u",
                        (unsigned long long) (BASE_US + 10 * USEC_PER_SEC),
                        (unsigned long long) (BASE_US + 100 * USEC_PER_SEC), cpu);
                assert_int_equal(value(x, text), n > 0 ? sum : INT64_MIN);
        }
        assert_int_equal(value(x, "SELECT count(*) FROM cpu_agg"), 4);
        assert_int_equal(value(x, "SELECT sum(n) FROM cpu_agg"), 4 * TICKS);
        assert_int_equal(value(x, "SELECT count(*) FROM cpu_agg(0, 1)"), 0);
        /* the same by raw rows */
        assert_int_equal(value(x, "SELECT count(*) FROM cpu_agg a JOIN (SELECT cpu, sum(irq) AS irq FROM "
                                  "cpu_raw GROUP BY cpu) r"
                                  " ON a.cpu = r.cpu AND a.irq IS r.irq"),
                4);
}

static void test_nothing_can_be_written(void **state) {
        static const char *const texts[] = {
                "DELETE FROM chunk",
                "CREATE TABLE t (x)",
                "PRAGMA user_version = 5; SELECT 1",
                "DROP VIEW v_cpu_1m",
                "UPDATE metric SET name = 'x'",
                "INSERT INTO cpu_raw (cpu) VALUES (1)",
        };
        SqlContext *x = *state;
        const char *rest;
        char text[400];

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                int r = store_sql_prepare(x->sql, texts[i], &rest);

                if (r > 0)
                        r = store_sql_step(x->sql);
                assert_true(r < 0);
                assert_true(store_sql_error(x->sql)[0] != '\0');
        }
        (void) snprintf(text, sizeof(text), "ATTACH '%s/other.db' AS other", x->c->dir);
        if (store_sql_prepare(x->sql, text, &rest) > 0)
                assert_true(store_sql_step(x->sql) < 0);
        (void) snprintf(text, sizeof(text), "VACUUM INTO '%s/copy.db'", x->c->dir);
        if (store_sql_prepare(x->sql, text, &rest) > 0)
                assert_true(store_sql_step(x->sql) < 0);
        assert_int_equal(context_sql(x->c, "SELECT count(*) FROM chunk"), 3);
}

static void test_values_as_text(void **state) {
        SqlContext *x = *state;
        const char *rest, *v;

        assert_int_equal(store_sql_prepare(x->sql,
                                 "SELECT 1.5, 'a', NULL, X'00ff', 9007199254740993; SELECT 2", &rest),
                1);
        assert_string_equal(rest, " SELECT 2");
        assert_int_equal(store_sql_step(x->sql), 1);
        assert_int_equal(store_sql_n_columns(x->sql), 5);
        assert_int_equal(store_sql_value(x->sql, 0, &v), STORE_SQL_REAL);
        assert_string_equal(v, "1.5");
        assert_int_equal(store_sql_value(x->sql, 1, &v), STORE_SQL_TEXT);
        assert_string_equal(v, "a");
        assert_int_equal(store_sql_value(x->sql, 2, &v), STORE_SQL_NULL);
        assert_int_equal(store_sql_value(x->sql, 3, &v), STORE_SQL_BLOB);
        assert_string_equal(v, "X'00FF'");
        assert_int_equal(store_sql_value(x->sql, 4, &v), STORE_SQL_INTEGER);
        assert_string_equal(v, "9007199254740993");
        assert_int_equal(store_sql_step(x->sql), 0);
        assert_int_equal(store_sql_prepare(x->sql, "  -- nothing\n", &rest), 0);
        assert_int_equal(store_sql_prepare(x->sql, "SELEC 1", &rest), -EINVAL);
}

static void test_no_store(void **state) {
        StoreSql *sql = NULL;

        assert_int_equal(store_sql_open("/nonexistent/store.db", &sql), -ENOENT);
        assert_null(sql);
}

#define SQL_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                SQL_TEST(test_raw_values),
                SQL_TEST(test_bounds),
                SQL_TEST(test_aggregate),
                SQL_TEST(test_nothing_can_be_written),
                SQL_TEST(test_values_as_text),
                cmocka_unit_test(test_no_store),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
