/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "cstated/api.h"

typedef struct Said {
        unsigned n_fatal, n_warnings, line;
        char file[256], text[512];
} Said;

static void hear(void *userdata, bool fatal, const char *file, unsigned line, const char *text) {
        Said *s = userdata;

        if (fatal)
                s->n_fatal++;
        else
                s->n_warnings++;
        s->line = line;
        (void) snprintf(s->file, sizeof(s->file), "%s", file ? file : "");
        (void) snprintf(s->text, sizeof(s->text), "%s", text);
}

static int parse(Config *c, Said *said, const char *text) {
        const ConfigReport report = { hear, said };

        *said = (Said){};
        return config_parse_text(c, "test.conf", text, strlen(text), &report);
}

static void test_defaults(void **state) {
        Config c;

        assert_int_equal(config_init(&c), 0);
        assert_int_equal(c.interval_usec, 1000000);
        assert_int_equal(c.raw_retention_usec / 1000000, 3 * 86400);
        assert_int_equal(c.max_connections, 256);
        assert_int_equal(c.idle_timeout_usec, 30000000);
        assert_int_equal(c.break_share_permyriad, 1000);
        assert_string_equal(c.path, CSTATED_DEFAULT_DB);
        assert_int_equal(c.n_listen, 1);
        assert_string_equal(c.listen[0], CSTATED_DEFAULT_SOCKET);
        config_deinit(&c);
}

static void test_every_key(void **state) {
        Config c;
        Said s;

        assert_int_equal(config_init(&c), 0);
        assert_int_equal(parse(&c, &s,
                                 "# a comment\n; another\n\n[Sampler]\nInterval = "
                                 "250ms\nWakePolicy=always\nSources=-perf,-idletrace\n"
                                 "[Store]\nPath=/srv/"
                                 "idle.db\nRawRetention=1d\nMinuteRetention=10d\nHourRetention=1y\nMaxSize="
                                 "512M\nDurableHead=10s\n"
                                 "[Http]\nListen=/run/"
                                 "a.sock\nListen=127.0.0.1:9290\nMaxConnections=10\nIdleTimeout=5s\n"
                                 "[Events]\nBreakShare=2.5%\nBreakRate=7\nDeepIdleShare=40%\nIntervals=4\n"),
                0);
        assert_int_equal(s.n_fatal + s.n_warnings, 0);
        assert_int_equal(c.interval_usec, 250000);
        assert_true(c.wake_policy_set);
        assert_int_equal(c.wake_policy, WAKE_ALWAYS);
        assert_int_not_equal(c.disabled_sources, 0);
        assert_string_equal(c.path, "/srv/idle.db");
        assert_int_equal(c.raw_retention_usec, 86400 * 1000000ULL);
        assert_int_equal(c.max_size_bytes, 512ULL << 20);
        assert_int_equal(c.durable_head_usec, 10000000);
        assert_int_equal(c.n_listen, 2);
        assert_string_equal(c.listen[1], "127.0.0.1:9290");
        assert_int_equal(c.break_share_permyriad, 250);
        assert_int_equal(c.break_rate, 7);
        assert_int_equal(c.deep_idle_share_permyriad, 4000);
        assert_int_equal(c.intervals, 4);
        config_deinit(&c);
}

/* Invalid values are refused with their line, and the old value stays. */
static void test_refusals(void **state) {
        static const char *const bad[] = {
                "[Sampler]\nInterval=99ms\n",
                "[Sampler]\nInterval=61s\n",
                "[Sampler]\nInterval=\n",
                "[Sampler]\nInterval=0\n",
                "[Sampler]\nInterval=soon\n",
                "[Sampler]\nWakePolicy=never\n",
                "[Sampler]\nSources=nosuch\n",
                "[Store]\nPath=relative.db\n",
                "[Store]\nPath=\n",
                "[Store]\nPath=/var/lib/\n",
                "[Store]\nMaxSize=1K\n",
                "[Store]\nMaxSize=2GB\n",
                "[Http]\nListen=nonsense\n",
                "[Http]\nListen=localhost:0\n",
                "[Http]\nListen=localhost:70000\n",
                "[Http]\nMaxConnections=0\n",
                "[Http]\nMaxConnections=1.5\n",
                "[Events]\nBreakShare=10\n",
                "[Events]\nBreakShare=101%\n",
                "[Events]\nBreakShare=-1%\n",
                "[Events]\nIntervals=0\n",
                "[Sampler]\njust words\n",
                "[Sampler\nInterval=1s\n",
        };

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                Config c, d;
                Said s;

                assert_int_equal(config_init(&c), 0);
                assert_int_equal(config_init(&d), 0);
                assert_int_equal(parse(&c, &s, bad[i]), -EINVAL);
                assert_int_equal(s.n_fatal, 1);
                assert_string_equal(s.file, "test.conf");
                assert_int_equal(s.line,
                        bad[i][strlen("[Sampler")] == ']' || bad[i][1] != 'S' || bad[i][2] != 'a' ? 2 : 1);
                assert_int_equal(config_compare(&c, &d, NULL, NULL), 0);
                config_deinit(&c);
                config_deinit(&d);
        }
}

static void test_unknown_warns(void **state) {
        Config c;
        Said s;

        assert_int_equal(config_init(&c), 0);
        assert_int_equal(parse(&c, &s, "[Sampler]\nIntervall=2s\nInterval=2s\n"), 0);
        assert_int_equal(s.n_warnings, 1);
        assert_int_equal(s.line, 2);
        assert_non_null(strstr(s.text, "Intervall"));
        assert_int_equal(c.interval_usec, 2000000);
        assert_int_equal(parse(&c, &s, "[Sampling]\nInterval=3s\n"), 0);
        assert_int_equal(s.n_warnings, 1);
        assert_int_equal(c.interval_usec, 2000000);
        /* names are exact, sections are needed */
        assert_int_equal(parse(&c, &s, "Interval=3s\n"), -EINVAL);
        config_deinit(&c);
}

static void test_lists_and_lines(void **state) {
        Config c;
        Said s;

        assert_int_equal(config_init(&c), 0);
        assert_int_equal(parse(&c, &s, "[Http]\nListen=/a\nListen=\nListen=/b\nListen=/c"), 0);
        assert_int_equal(c.n_listen, 2);
        assert_string_equal(c.listen[0], "/b");
        /* a joined line; what follows is counted right */
        assert_int_equal(parse(&c, &s, "[Sampler]\nSources=cpuidle,\\\nirq\nInterval=x\n"), -EINVAL);
        assert_int_equal(s.n_fatal, 2); /* "cpuidle, irq" holds a blank */
        assert_int_equal(s.line, 4);
        config_deinit(&c);
}

/* What is printed parses back to the same, in any locale. */
static void test_print_round_trip(void **state) {
        const char *text = "[Sampler]\nInterval=1.5s\nSources=cpuidle\n[Store]\nMaxSize=100M\nDurableHead="
                           "0\n[Http]\nListen=/x y\nListen=*:1\n[Events]\nBreakShare=0.05%\n";
        Config a, b;
        char *printed = NULL;
        size_t n = 0;
        FILE *f;
        Said s;

        (void) setlocale(LC_ALL, "de_DE.UTF-8");
        assert_int_equal(config_init(&a), 0);
        assert_int_equal(config_init(&b), 0);
        assert_int_equal(parse(&a, &s, text), 0);
        assert_true(config_compare(&a, &b, NULL, NULL) > 0);
        f = open_memstream(&printed, &n);
        assert_non_null(f);
        config_print(&a, f);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(parse(&b, &s, printed), 0);
        assert_int_equal(s.n_warnings, 0);
        assert_int_equal(config_compare(&a, &b, NULL, NULL), 0);
        free(printed);
        config_deinit(&a);
        config_deinit(&b);
        (void) setlocale(LC_ALL, "C");
}

typedef struct Changes {
        unsigned n_now, n_restart;
} Changes;

static void count_change(void *userdata, const char *section, const char *key, ConfigReload reload) {
        Changes *c = userdata;

        if (reload == CONFIG_RELOAD_NOW)
                c->n_now++;
        else
                c->n_restart++;
}

static void test_compare(void **state) {
        Changes changes = {};
        Config a, b;
        Said s;

        assert_int_equal(config_init(&a), 0);
        assert_int_equal(config_init(&b), 0);
        assert_int_equal(
                parse(&b, &s, "[Sampler]\nInterval=2s\nWakePolicy=lazy\n[Http]\nIdleTimeout=9s\n"), 0);
        assert_int_equal(config_compare(&a, &b, count_change, &changes), 3);
        assert_int_equal(changes.n_now, 1);
        assert_int_equal(changes.n_restart, 2);
        config_deinit(&a);
        config_deinit(&b);
}

static void test_validate(void **state) {
        Said s = {};
        const ConfigReport report = { hear, &s };
        Config c;

        assert_int_equal(config_init(&c), 0);
        assert_int_equal(config_validate(&c, &report), 0);
        assert_int_equal(parse(&c, &s, "[Store]\nMinuteRetention=3y\n"), 0);
        assert_int_equal(config_validate(&c, &report), -EINVAL);
        assert_non_null(strstr(s.text, "MinuteRetention="));
        config_deinit(&c);
        assert_int_equal(config_init(&c), 0);
        assert_int_equal(parse(&c, &s, "[Http]\nListen=/a\nListen=/a\n"), 0);
        assert_int_equal(config_validate(&c, &report), -EINVAL);
        config_deinit(&c);
}

static void test_options(void **state) {
        Said s = {};
        const ConfigReport report = { hear, &s };
        Config c;

        assert_int_equal(config_init(&c), 0);
        assert_int_equal(parse(&c, &s, "[Http]\nListen=/from-file\n"), 0);
        assert_int_equal(config_set(&c, "--listen", "Http", "Listen", "/one", true, &report), 0);
        assert_int_equal(config_set(&c, "--listen", "Http", "Listen", "/two", false, &report), 0);
        assert_int_equal(c.n_listen, 2);
        assert_string_equal(c.listen[0], "/one");
        assert_int_equal(
                config_set(&c, "--interval", "Sampler", "Interval", "0.001", false, &report), -EINVAL);
        assert_non_null(strstr(s.text, "--interval"));
        config_deinit(&c);
}

static void write_file(const char *path, const char *text) {
        FILE *f = fopen(path, "w");

        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
}

static void test_drop_ins(void **state) {
        char dir[] = "/tmp/test-config-XXXXXX", path[4][128];
        Said s = {};
        const ConfigReport report = { hear, &s };
        Config c;

        assert_non_null(mkdtemp(dir));
        (void) snprintf(path[0], sizeof(path[0]), "%s/c.conf", dir);
        (void) snprintf(path[1], sizeof(path[1]), "%s/c.conf.d", dir);
        (void) snprintf(path[2], sizeof(path[2]), "%s/c.conf.d/20-b.conf", dir);
        (void) snprintf(path[3], sizeof(path[3]), "%s/c.conf.d/10-a.conf", dir);
        assert_int_equal(config_init(&c), 0);
        assert_int_equal(config_load(&c, path[0], false, &report), 0);
        assert_int_equal(config_load(&c, path[0], true, &report), -ENOENT);
        assert_int_equal(mkdir(path[1], 0755), 0);
        write_file(path[0], "[Sampler]\nInterval=5s\n");
        write_file(path[2], "[Sampler]\nInterval=7s\n");
        write_file(path[3], "[Sampler]\nInterval=6s\n[Http]\nMaxConnections=9\n");
        assert_int_equal(config_load(&c, path[0], true, &report), 0);
        assert_int_equal(c.interval_usec, 7000000);
        assert_int_equal(c.max_connections, 9);
        write_file(path[2], "\n[Sampler]\nInterval=7\nInterval=never\n");
        assert_int_equal(config_load(&c, path[0], true, &report), -EINVAL);
        assert_string_equal(s.file, path[2]);
        assert_int_equal(s.line, 4);
        config_deinit(&c);
        assert_int_equal(
                unlink(path[2]) + unlink(path[3]) + unlink(path[0]) + rmdir(path[1]) + rmdir(dir), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_defaults),
                cmocka_unit_test(test_every_key),
                cmocka_unit_test(test_refusals),
                cmocka_unit_test(test_unknown_warns),
                cmocka_unit_test(test_lists_and_lines),
                cmocka_unit_test(test_print_round_trip),
                cmocka_unit_test(test_compare),
                cmocka_unit_test(test_validate),
                cmocka_unit_test(test_options),
                cmocka_unit_test(test_drop_ins),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
