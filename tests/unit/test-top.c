/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The frames of top, and snapshots made of summaries. */

#include "tests/unit/test.h"

#include <stdlib.h>

#include "client/top-view.h"
#include "client/window-snapshot.h"

/* Four CPUs on two packages; CPU 9 breaks, CPU 1 is the busiest. */
static const char snapshot_text[] =
        "{\"start\":1000,\"end\":3000,\"interval_ms\":2000,"
        "\"system\":{\"busy\":14,\"c6\":70,\"pc6\":null,\"node_watts\":94.5,\"self_cpu_seconds\":0.004,\"self_wakeups_caused\":3,"
        "\"wakeups\":{\"total\":100,\"break\":420,\"method\":\"bound\"}},"
        "\"packages\":[{\"package\":0,\"die\":null,\"pkg_watts\":40},{\"package\":1,\"die\":null,\"pkg_watts\":54.5}],"
        "\"cores\":[{\"package\":0,\"core\":0,\"c6\":90},{\"package\":0,\"core\":1,\"c6\":91},{\"package\":1,\"core\":0,\"c6\":null}],"
        "\"cpus\":["
        "{\"cpu\":0,\"core\":0,\"package\":0,\"busy\":1.2,\"idle\":{\"POLL\":{\"time\":0},\"C6\":{\"time\":97}},\"wakeups\":{\"total\":8,\"break\":2}},"
        "{\"cpu\":1,\"core\":1,\"package\":0,\"busy\":50,\"idle\":{\"C6\":{\"time\":40}},\"wakeups\":{\"total\":4,\"break\":0}},"
        "{\"cpu\":8,\"core\":0,\"package\":0,\"busy\":3,\"wakeups\":{\"total\":88,\"break\":0}},"
        "{\"cpu\":9,\"core\":0,\"package\":1,\"busy\":2,\"wakeups\":{\"total\":500,\"break\":418}}]}";

typedef struct Fixture {
        json_t *snapshot;
        TopView view;
        TopFrame frame;
} Fixture;

static int setup(void **state) {
        Fixture *f = calloc(1, sizeof(*f));

        f->snapshot = json_loads(snapshot_text, 0, NULL);
        assert_non_null(f->snapshot);
        f->view.own_percent = -1;
        *state = f;
        return 0;
}

static int teardown(void **state) {
        Fixture *f = *state;

        json_decref(f->snapshot);
        top_frame_deinit(&f->frame);
        free(f);
        return 0;
}

/* The ids of the CPU rows, in order. */
static const char *order(Fixture *f, unsigned width, unsigned height) {
        static char text[256];
        bool cpus = false;

        text[0] = '\0';
        assert_int_equal(top_render(&f->view, f->snapshot, width, height, &f->frame), 0);
        for (size_t i = 0; i < f->frame.n; i++) {
                const TopLine *l = &f->frame.lines[i];

                if (cpus && l->attr != TOP_FOOT && l->text[0])
                        (void) snprintf(text + strlen(text), sizeof(text) - strlen(text), "%ld ", strtol(l->text, NULL, 10));
                cpus |= strncmp(l->text, "CPU", 3) == 0;
        }
        return text;
}

static void test_sort(void **state) {
        Fixture *f = *state;
        static const struct {
                TopSort sort;
                bool reverse;
                const char *order;
        } cases[] = {
                { TOP_SORT_HOT, false, "9 1 8 0 " }, { TOP_SORT_BUSY, false, "1 8 9 0 " }, { TOP_SORT_BUSY, true, "0 9 8 1 " },
                { TOP_SORT_BREAK, false, "9 0 1 8 " }, { TOP_SORT_WAKE, false, "9 8 0 1 " }, { TOP_SORT_CPU, false, "0 1 8 9 " },
                { TOP_SORT_CPU, true, "9 8 1 0 " }, { TOP_SORT_C6, false, "0 8 1 9 " },
        };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                f->view.sort = cases[i].sort;
                f->view.reverse = cases[i].reverse;
                assert_string_equal(order(f, 200, 0), cases[i].order);
        }
}

static void test_filter(void **state) {
        Fixture *f = *state;
        static const char *const bad[] = { "x", "p", "1-", ">", "p1x", "0,,", "70000" };
        static const struct {
                const char *filter, *order;
        } cases[] = { { "0-1", "1 0 " }, { "p1", "9 " }, { ">2.5", "1 8 " }, { "5", "" }, { "", "9 1 8 0 " } };

        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                assert_true(top_filter_is_valid(cases[i].filter));
                strcpy(f->view.filter, cases[i].filter);
                assert_string_equal(order(f, 200, 0), cases[i].order);
        }
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_false(top_filter_is_valid(bad[i]));
}

static void test_lines(void **state) {
        Fixture *f = *state;

        (void) order(f, 200, 0);
        assert_non_null(strstr(f->frame.lines[0].text, "sampler 0.20% of a CPU, 3 wakeups"));
        assert_non_null(strstr(f->frame.lines[1].text, "W 94.50  busy% 14.0  c6% 70.0  wake/s 50  break/s 210 (bound)"));
        assert_string_equal(f->frame.lines[2].text, "PKG     PkgWatt");
        assert_string_equal(f->frame.lines[4].text, "1         54.50");
        assert_string_equal(f->frame.lines[5].text, "CPU     Busy%  CPU%c6  Break/s  Wake/s    C6%  Core  Pkg");
        assert_string_equal(f->frame.lines[6].text, "9         2.0       -      209     250      -     0    1");
        assert_int_equal(f->frame.lines[6].attr, TOP_ALARM);
        assert_int_equal(f->frame.lines[7].attr, TOP_PLAIN);
}

static void test_size(void **state) {
        Fixture *f = *state;

        for (unsigned height = 1; height < 14; height++)
                for (unsigned width = 1; width < 60; width += 7) {
                        (void) order(f, width, height);
                        assert_int_equal(f->frame.n, height);
                        for (size_t i = 0; i < f->frame.n; i++)
                                assert_true(strlen(f->frame.lines[i].text) <= width);
                }
        f->view.scroll = 100;
        assert_string_equal(order(f, 80, 9), "8 0 "); /* two rows of room: the last two */
        assert_int_equal(f->view.scroll, 2);
        f->view.typing = true;
        strcpy(f->view.prompt, "p1");
        (void) order(f, 80, 9);
        assert_non_null(strstr(f->frame.lines[8].text, "p1_"));
}

static void test_empty(void **state) {
        TopView view = { .own_percent = -1 };
        TopFrame frame = {};
        json_t *empty = json_object();

        assert_int_equal(top_render(&view, empty, 80, 24, &frame), 0);
        assert_int_equal(frame.n, 24);
        top_frame_deinit(&frame);
        json_decref(empty);
}

static void test_window_snapshot(void **state) {
        json_t *parts[] = {
                json_loads("{\"rows\":[{\"metric\":\"irq\",\"scope\":\"system\",\"mean\":1000,\"sum\":4900},"
                           "{\"metric\":\"pkg_watts\",\"scope\":\"system\",\"mean\":80,\"joules\":400},"
                           "{\"metric\":\"pc6\",\"scope\":\"system\",\"mean\":null,\"reason\":\"denied\"}]}", 0, NULL),
                json_loads("{\"rows\":[{\"metric\":\"busy\",\"scope\":\"cpu\",\"package\":0,\"core\":1,\"cpu\":5,\"mean\":2.5},"
                           "{\"metric\":\"idle_time\",\"scope\":\"cpu\",\"package\":0,\"core\":1,\"cpu\":5,\"state\":\"C6\",\"mean\":95,\"seconds\":4},"
                           "{\"metric\":\"idle_usage\",\"scope\":\"cpu\",\"package\":0,\"core\":1,\"cpu\":5,\"state\":\"C6\",\"mean\":9,\"sum\":45},"
                           "{\"metric\":\"wakeups_break\",\"scope\":\"cpu\",\"package\":0,\"core\":1,\"cpu\":5,\"mean\":1,\"sum\":5,"
                           "\"method\":\"bound\"},"
                           "{\"metric\":\"busy\",\"scope\":\"cpu\",\"package\":1,\"core\":1,\"cpu\":6,\"mean\":3}]}", 0, NULL),
                json_loads("{\"rows\":[{\"metric\":\"c6\",\"scope\":\"core\",\"package\":0,\"core\":1,\"mean\":94}]}", 0, NULL),
        };
        json_t *root = window_snapshot_build(parts, 3, 10000, 15000);
        json_t *want = json_loads(
                "{\"start\":10000,\"end\":15000,\"interval_ms\":4900.0,\"system\":{\"irq\":4900,\"pkg_watts\":80,\"pc6\":null,"
                "\"reasons\":{\"pc6\":\"denied\"}},\"packages\":[],\"modules\":[],\"offline\":[],"
                "\"cores\":[{\"package\":0,\"core\":1,\"c6\":94}],"
                "\"cpus\":[{\"package\":0,\"core\":1,\"cpu\":5,\"busy\":2.5,\"idle\":{\"C6\":{\"time\":95,\"usage\":45}},"
                "\"wakeups\":{\"break\":5,\"method\":\"bound\"}},{\"package\":1,\"core\":1,\"cpu\":6,\"busy\":3}]}", 0, NULL);

        assert_non_null(want);
        if (!json_equal(root, want))
                fail_msg("%s", json_dumps(root, 0));
        json_decref(root);
        json_decref(want);
        for (size_t i = 0; i < 3; i++)
                json_decref(parts[i]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_sort, setup, teardown),
                cmocka_unit_test_setup_teardown(test_filter, setup, teardown),
                cmocka_unit_test_setup_teardown(test_lines, setup, teardown),
                cmocka_unit_test_setup_teardown(test_size, setup, teardown),
                cmocka_unit_test(test_empty),
                cmocka_unit_test(test_window_snapshot),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
