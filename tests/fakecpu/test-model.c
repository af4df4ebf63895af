/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The scenario language and the counters, without a file system: both are pure. */

#include "tests/unit/test.h"

#include <errno.h>

#include "machine-apply.h"
#include "machine.h"
#include "registers.h"

#define HZ UINT64_C(2300000000)
#define SECOND NANO

typedef struct World {
        Scenario s;
        Machine m;
} World;

static void world_build(World *w, const char *text) {
        char error[SCENARIO_ERROR_MAX] = "";

        if (!scenario_parse(&w->s, text, error) || !machine_build(&w->m, &w->s, HZ, error))
                fail_msg("%s", error);
}

static void world_end(World *w) {
        machine_deinit(&w->m);
        scenario_free(&w->s);
}

/* What both steps say of a text that is wrong. */
static void world_fails(const char *text, const char *expected) {
        char error[SCENARIO_ERROR_MAX] = "";
        World w = {};
        bool ok = scenario_parse(&w.s, text, error) && machine_build(&w.m, &w.s, HZ, error);

        assert_false(ok);
        assert_non_null(strstr(error, expected));
        world_end(&w);
}

static void submit(World *w, const char *line, int64_t t_ns) {
        char error[SCENARIO_ERROR_MAX] = "";
        Statement *st = statement_parse(line, 0, error);

        if (!st || !machine_submit(&w->m, st, t_ns, error))
                fail_msg("%s: %s", line, error);
}

static uint64_t msr(const World *w, unsigned index, uint64_t reg, int64_t t_ns) {
        uint64_t v = 0;

        assert_int_equal(msr_read(&w->m, &w->m.cpus[index], reg, t_ns, &v), 0);
        return v;
}

static void test_numbers(void **state) {
        int64_t v;
        uint64_t u;

        assert_true(text_nano("94.0", &v) && v == 94 * NANO);
        assert_true(text_nano("0.000000001", &v) && v == 1);
        assert_true(text_nano("-2.5", &v) && v == -2500000000);
        assert_false(text_nano("", &v));
        assert_false(text_nano("1e3", &v));
        assert_false(text_nano("1.5x", &v));
        assert_false(text_nano("99999999999999999999", &v));
        assert_true(text_time_ns("1.5s", &v) && v == 1500000000);
        assert_true(text_time_ns("250ms", &v) && v == 250000000);
        assert_true(text_time_ns("2m", &v) && v == 120 * NANO);
        assert_true(text_time_ns("3", &v) && v == 3 * NANO);
        assert_false(text_time_ns("3h", &v));
        assert_true(text_u64("0x3fd", &u) && u == 0x3fd);
        assert_false(text_u64("0x", &u));
        assert_false(text_u64("18446744073709551616", &u));
}

static void test_lists(void **state) {
        static const char *const wrong[] = { "", "1-", "-1", "3-2", "1,,2", "1,", "8192", "1:2", "0-7:3/2", "a" };
        IdSet set;
        Buf b = {};

        assert_true(idset_parse(&set, "0-3,8,16-23:2/4"));
        idset_list(&set, &b);
        idset_mask(&set, 40, &b);
        buf_add(&b, "", 1);
        assert_string_equal(b.data, "0-3,8,16-17,20-21\n00000000,0033010f\n");
        buf_deinit(&b);
        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
                assert_false(idset_parse(&set, wrong[i]));
}

static void test_errors(void **state) {
        world_fails("model what\n", "no such model");
        world_fails("model skx\nnonsense 3\n", "line 2");
        world_fails("model skx\ncores x\n", "not a number");
        world_fails("model skx\ncores 1025\n", "1 to 1024 CPUs");
        world_fails("model skx\ncores 0\n", "1 to 1024 CPUs");
        world_fails("model skx\ncores 4\ncpus 0-2\n", "fewer ids");
        world_fails("model skx\n\nset c6=94.0 busy=7\n", "more than 100");
        world_fails("model skx\nset c6=101\n", "above 100");
        world_fails("model skx\nset C7.time=1\n", "no such counter");
        world_fails("model skx\nset cpus=77 c6=1\n", "selects no CPU");
        world_fails("model skx\nat story set c6=1\n", "story");
        world_fails("model skx\nat 5 set c6=x\n", "bad value");
        world_fails("model skx\neio cpu=0\n", "needs reg=");
        world_fails("model skx\nzone intel-rapl:9 parent=nobody\n", "no such parent");
        world_fails("model skx\nstate C1 colour=red\n", "bad word");
}

static void test_topology(void **state) {
        World w = {};

        world_build(&w, "model skx\npackages 2\ncores 2\nthreads 2\n");
        assert_int_equal(w.m.n_cpus, 8);
        assert_int_equal(w.m.cpus[2].package, 1);
        assert_int_equal(w.m.cpus[5].core_id, 1);
        assert_int_equal(w.m.cpus[5].smt, 1);
        assert_int_equal(w.m.cpus[5].core, w.m.cpus[1].core);
        world_end(&w);

        w = (World) {};
        world_build(&w, "model skx\npackages 1\ncores 2\nthreads 2\nnumbering seq\ncpus 8-9,152-153\ncore_ids 3,9\n");
        assert_int_equal(w.m.cpus[3].id, 153);
        assert_int_equal(w.m.cpus[3].core_id, 9);
        assert_ptr_equal(machine_cpu(&w.m, 152), &w.m.cpus[2]);
        assert_null(machine_cpu(&w.m, 0));
        world_end(&w);
}

/* A residency of 94.0 % is that after a second and after thirty years. */
static void test_rates_are_exact(void **state) {
        static const int64_t times[] = { 1, SECOND, 86400 * SECOND, INT64_C(946080000) * SECOND };
        World w = {};

        world_build(&w, "model skx\nset c6=94.0 busy=2.5 pc6=61.25 pkg_watts=38.5 ram_watts=15.3\n"
                        "preset c6=0 mperf=0 pc6=0 pkg_watts=0 ram_watts=0\n");
        for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
                u128 ns = (u128) times[i];

                assert_true(msr(&w, 0, 0x3fd, times[i]) == (uint64_t) (ns * HZ * 94 / 100 / NANO));
                assert_true(msr(&w, 0, 0xe7, times[i]) == (uint64_t) (ns * HZ * 25 / 1000 / NANO));
                assert_true(msr(&w, 0, 0x3f9, times[i]) == (uint64_t) (ns * HZ * 6125 / 10000 / NANO));
                assert_true(msr(&w, 0, 0x611, times[i]) == (uint32_t) (ns * 77 * 8192 / NANO));
        }
        /* 15.3 W in units of 15.3 uJ */
        assert_true(msr(&w, 0, 0x619, SECOND) == 1000000);
        world_end(&w);
}

static void test_change_of_rate(void **state) {
        World w = {};

        world_build(&w, "model skx\nset c6=95\npreset c6=0\nat 20s set c6=20\n");
        machine_run(&w.m, 25 * SECOND);
        assert_true(msr(&w, 0, 0x3fd, 25 * SECOND) == HZ * 19 + HZ);
        assert_true(machine_next_ns(&w.m) == INT64_MAX);
        world_end(&w);
}

static void test_wrap(void **state) {
        World w = {};

        world_build(&w, "model skx\nset pkg_watts=50 loc=1000\nwrap pkg_watts in=3s\nwrap loc in=2s\n");
        assert_true(msr(&w, 0, 0x611, 2 * SECOND) == UINT32_MAX - 50 * 16384 + 1);
        assert_true(msr(&w, 0, 0x611, 3 * SECOND) == 0);
        assert_true(msr(&w, 0, 0x611, 4 * SECOND) == 50 * 16384);
        assert_true((uint32_t) cpu_counter(&w.m.cpus[0], CPU_LOC, 2 * SECOND - 1000000) == UINT32_MAX);
        assert_true((uint32_t) cpu_counter(&w.m.cpus[0], CPU_LOC, 3 * SECOND) == 1000);
        /* The zone counts what the register does, in the kernel's whole nanojoules. */
        assert_true(zone_energy_uj(&w.m, &w.m.zones[0], 4 * SECOND) == UINT64_C(50) * 16384 * 61035 / 1000);
        assert_true(w.m.zones[0].range_uj == UINT64_C(262143328850));
        world_end(&w);
}

static void test_units(void **state) {
        static const struct {
                const char *text;
                uint64_t reg, counts; /* of 30.6 W in a second */
        } cases[] = {
                { "model skx\nset ram_watts=30.6\npreset ram_watts=0\n", 0x619, 2000000 },
                { "model icx\nset ram_watts=30.6\npreset ram_watts=0\n", 0x619, 2000000 },
                { "model spr\nset ram_watts=30.6\npreset ram_watts=0\n", 0x619, 501350 },
                { "model spr\nset psys_watts=30.6\npreset psys_watts=0\n", 0x64d, 30 },
                { "model icx\nset psys_watts=30.6\npreset psys_watts=0\n", 0x64d, 501350 },
                { "model zen\nset pkg_watts=30.6\npreset pkg_watts=0\n", 0xc001029b, 2005401 },
                { "model zen\nset core_watts=30.6\npreset core_watts=0\n", 0xc001029a, 2005401 },
                { "model skx\nesu 16\nset pkg_watts=30.6\npreset pkg_watts=0\n", 0x611, 2005401 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                World w = {};

                world_build(&w, cases[i].text);
                assert_true(msr(&w, 0, cases[i].reg, SECOND) == cases[i].counts);
                world_end(&w);
        }
}

static void test_absent_registers(void **state) {
        World w = {};
        uint64_t v = 42;

        world_build(&w, "model skx\n");
        assert_int_equal(msr_read(&w.m, &w.m.cpus[0], 0x3fc, 0, &v), -EIO);
        assert_int_equal(msr_read(&w.m, &w.m.cpus[0], 0x660, 0, &v), -EIO);
        assert_true(v == 42);
        world_end(&w);
}

static void test_c1_is_the_rest(void **state) {
        World w = {};
        char error[SCENARIO_ERROR_MAX];

        world_build(&w, "model icx\nset c6=90 busy=3 mhz=2600\npreset c1=0 aperf=0\n");
        assert_true(msr(&w, 0, 0x660, SECOND) == HZ / 100 * 7);
        assert_true(msr(&w, 0, 0xe8, SECOND) == UINT64_C(78000000));
        Statement *st = statement_parse("set busy=11", 0, error);
        assert_non_null(st);
        assert_false(machine_submit(&w.m, st, SECOND, error));
        /* What was too much left nothing behind. */
        assert_true(msr(&w, 0, 0x660, 2 * SECOND) == HZ / 100 * 14);
        submit(&w, "set busy=3", 2 * SECOND);
        world_end(&w);
}

static void test_step(void **state) {
        World w = {};
        const unsigned time = CPU_STATES + 3 * STATE_N;

        world_build(&w, "model skx\nset C6.time=90 mode=step wake=200ms phase=50ms\npreset C6.time=0\n");
        const Cpu *cpu = &w.m.cpus[0];
        assert_true(cpu_counter(cpu, time, SECOND / 25) == 0);
        assert_true(cpu_counter(cpu, time, SECOND / 4) == 225000);
        assert_true(cpu_counter(cpu, time, SECOND * 4 / 10) == 225000);
        assert_true(cpu_counter(cpu, time, SECOND * 45 / 100) == 405000);
        world_end(&w);
}

static void test_sleep(void **state) {
        World w = {};
        const unsigned time = CPU_STATES + 3 * STATE_N, usage = time + STATE_USAGE;

        world_build(&w, "model skx\ncores 1\nset C6.time=90 C6.usage=10 loc=20 c6=80 busy=5\n"
                        "preset C6.time=0 C6.usage=0 loc=0 mperf=0 c6=0\nat 1s sleep cpus=0\nat 11s wake cpus=0\n");
        Cpu *cpu = &w.m.cpus[0];
        machine_run(&w.m, 5 * SECOND);
        assert_true(cpu_counter(cpu, time, 5 * SECOND) == 900000);
        assert_true(cpu_counter(cpu, usage, 5 * SECOND) == 10);
        assert_true(cpu_counter(cpu, CPU_MPERF, 5 * SECOND) == HZ / 20);
        /* The core is in its deepest state all along. */
        assert_true(msr(&w, 0, 0x3fd, 5 * SECOND) == HZ * 4 / 5 + HZ * 4);
        machine_touch(&w.m, cpu, 5 * SECOND);
        assert_true(cpu->wakes_caused == 1 && cpu_counter(cpu, usage, 6 * SECOND) == 10);

        machine_run(&w.m, 12 * SECOND);
        assert_true(cpu_counter(cpu, time, 12 * SECOND) == 900000 + 10000000 + 900000);
        assert_true(cpu_counter(cpu, usage, 12 * SECOND) == 10 + 1 + 10);
        assert_true(cpu_counter(cpu, CPU_LOC, 12 * SECOND) == 20 + 1 + 20);
        assert_true(msr(&w, 0, 0x3fd, 12 * SECOND) == HZ * 8 / 5 + HZ * 10);
        world_end(&w);
}

static void test_hotplug(void **state) {
        World w = {};

        world_build(&w, "model skx\ncores 2\nthreads 2\nset busy=5 c6=50\n");
        Cpu *cpu = &w.m.cpus[1];
        uint64_t c6 = msr(&w, 1, 0x3fd, SECOND);

        submit(&w, "offline cpus=1", SECOND);
        assert_false(idset_has(&w.m.online, 1));
        submit(&w, "online cpus=1", 2 * SECOND);
        assert_true(cpu_counter(cpu, CPU_MPERF, 2 * SECOND) == 0);
        /* Its sibling kept the core alive. */
        assert_true(msr(&w, 1, 0x3fd, 2 * SECOND) > c6);
        submit(&w, "offline cpus=1,3", 3 * SECOND);
        submit(&w, "online cpus=1,3", 4 * SECOND);
        assert_true(msr(&w, 1, 0x3fd, 4 * SECOND) < HZ);
        world_end(&w);
}

static void test_override(void **state) {
        char error[SCENARIO_ERROR_MAX];
        World w = {};

        assert_true(scenario_parse(&w.s, "model skx\nset busy=2 c6=94\n", error));
        assert_true(scenario_override(&w.s, "cores=2", error));
        /* Each alone would add up to more than 100 %. */
        assert_true(scenario_override(&w.s, "busy=10", error));
        assert_true(scenario_override(&w.s, "c6=80", error));
        assert_false(scenario_override(&w.s, "cores", error));
        assert_true(machine_build(&w.m, &w.s, HZ, error));
        assert_int_equal(w.m.n_cpus, 2);
        assert_true(w.m.cpus[1].c[CPU_C1].param == 10 * NANO);
        world_end(&w);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_numbers), cmocka_unit_test(test_lists), cmocka_unit_test(test_errors),
                cmocka_unit_test(test_topology), cmocka_unit_test(test_rates_are_exact),
                cmocka_unit_test(test_change_of_rate), cmocka_unit_test(test_wrap), cmocka_unit_test(test_units),
                cmocka_unit_test(test_absent_registers), cmocka_unit_test(test_c1_is_the_rest),
                cmocka_unit_test(test_step), cmocka_unit_test(test_sleep), cmocka_unit_test(test_hotplug),
                cmocka_unit_test(test_override),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
