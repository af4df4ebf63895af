/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The powercap source on trees of files. */

#include "tests/unit/test.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cstated/macro.h"
#include "sampler/powercap-probe.h"
#include "sampler/source.h"
#include "tests/unit/sampler-fixture.h"

typedef struct Tree {
        char root[64];
        Sysfs *sysfs;
        Machine *m;
        Source *source;
        Tick *tick;
        CpuActivity *activity;
        SourceStatus status;
        uint64_t now_ns;
        uint64_t n_reads, n_wakeups; /* of the last turn */
} Tree;

static void put(const Tree *t, const char *dir, const char *file, const char *text) {
        char path[256];
        FILE *f;

        (void) snprintf(path, sizeof(path), "%s/sys/class/powercap/%s", t->root, dir);
        (void) mkdir(path, 0755);
        (void) snprintf(path, sizeof(path), "%s/sys/class/powercap/%s/%s", t->root, dir, file);
        f = fopen(path, "we");
        assert_non_null(f);
        assert_true(fprintf(f, "%s\n", text) > 0);
        assert_int_equal(fclose(f), 0);
}

static void zone(const Tree *t, const char *dir, const char *name, const char *energy, const char *range) {
        put(t, dir, "name", name);
        if (energy)
                put(t, dir, "energy_uj", energy);
        if (range)
                put(t, dir, "max_energy_range_uj", range);
}

static void new_tree(Tree *t, FixtureShape shape, bool amd) {
        char path[128];

        *t = (Tree){.root = "/tmp/cstated-powercap-XXXXXX", .now_ns = 1000000000};
        assert_non_null(mkdtemp(t->root));
        (void) snprintf(path, sizeof(path), "%s/sys", t->root);
        assert_int_equal(mkdir(path, 0755), 0);
        (void) snprintf(path, sizeof(path), "%s/sys/class", t->root);
        assert_int_equal(mkdir(path, 0755), 0);
        (void) snprintf(path, sizeof(path), "%s/sys/class/powercap", t->root);
        assert_int_equal(mkdir(path, 0755), 0);
        assert_int_equal(sysfs_new(t->root, &t->sysfs), 0);
        t->m = fixture_machine(shape, 6, 0x55, amd);
        t->activity = calloc(t->m->n_cpus, sizeof(*t->activity));
        assert_non_null(t->activity);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
        return remove(path);
}

static void free_tree(Tree *t) {
        (void) source_ops_powercap.close(t->source);
        (void) tick_free(t->tick);
        free(t->activity);
        (void) machine_free(t->m);
        (void) sysfs_free(t->sysfs);
        assert_int_equal(nftw(t->root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void probe(Tree *t) {
        assert_int_equal(source_ops_powercap.probe(t->sysfs, t->m, 6, &t->source, &t->status), 0);
        layout_finish(&t->m->layout);
        t->tick = tick_new(t->m->layout.n_values);
        assert_non_null(t->tick);
        assert_int_equal(source_ops_powercap.open(t->source, t->m), 0);
}

static int turn(Tree *t) {
        SourceTurn turn = {.machine = t->m, .tick = t->tick, .activity = t->activity, .now_ns = t->now_ns};
        int r = source_ops_powercap.read(t->source, &turn, &t->status);

        t->now_ns += 1000000000;
        t->n_reads = turn.n_remote_reads;
        t->n_wakeups = turn.n_wakeups;
        return r;
}

static uint64_t value(const Tree *t, FieldId field, uint32_t e) {
        const LayoutColumn *c = layout_find(&t->m->layout, field, 0);

        assert_non_null(c);
        assert_int_equal(t->tick->reasons[c->offset + e], REASON_NONE);
        return t->tick->values[c->offset + e];
}

static Reason reason(const Tree *t, FieldId field, uint32_t e) {
        const LayoutColumn *c = layout_find(&t->m->layout, field, 0);

        assert_non_null(c);
        return (Reason) t->tick->reasons[c->offset + e];
}

static void test_c05_each_package_once(void **state) {
        Tree t;

        new_tree(&t, (FixtureShape){1, 0, 2, 1}, false);
        zone(&t, "intel-rapl:0", "package-0", "3930000", "262143328850");
        zone(&t, "intel-rapl:0:0", "core", "840000", "262143328850");
        zone(&t, "intel-rapl:0:1", "uncore", "210000", "262143328850");
        zone(&t, "intel-rapl:1", "psys", "9610000", "262143328850");
        zone(&t, "intel-rapl-mmio:0", "package-0", "3780000", "262143328850");
        probe(&t);
        assert_int_equal(t.status.state, SOURCE_OK);
        assert_int_equal(turn(&t), 0);
        assert_int_equal(value(&t, FIELD_ENERGY_PKG, 0), 3930000);
        assert_int_equal(value(&t, FIELD_ENERGY_COR, 0), 840000);
        assert_int_equal(value(&t, FIELD_ENERGY_GFX, 0), 210000);
        assert_int_equal(value(&t, FIELD_ENERGY_SYS, 0), 9610000);
        assert_int_equal(layout_find(&t.m->layout, FIELD_ENERGY_PKG, 0)->range, UINT64_C(262143328851));
        assert_float_equal(layout_find(&t.m->layout, FIELD_ENERGY_PKG, 0)->scale, 1e-6,
                0); /* C04: whatever the model */
        assert_true(value(&t, FIELD_PKG_NS, 0) > 0);
        assert_true(value(&t, FIELD_SYS_NS, 0) > 0);
        assert_int_equal(t.n_reads, 4);
        assert_int_equal(t.n_wakeups, 0);
        free_tree(&t);
}

static void test_mmio_counts_where_nothing_else_does(void **state) {
        Tree t;

        new_tree(&t, (FixtureShape){2, 0, 1, 1}, false);
        zone(&t, "intel-rapl:0", "package-0", "100", "1000");
        zone(&t, "intel-rapl-mmio:0", "package-0", "200", "1000");
        zone(&t, "intel-rapl-mmio:1", "package-1", "300", "1000");
        zone(&t, "intel-rapl-mmio:1:0", "dram", "400", "1000");
        probe(&t);
        assert_int_equal(turn(&t), 0);
        assert_int_equal(value(&t, FIELD_ENERGY_PKG, 0), 100);
        assert_int_equal(value(&t, FIELD_ENERGY_PKG, 1), 300);
        assert_int_equal(value(&t, FIELD_ENERGY_RAM, 1), 400);
        assert_int_equal(reason(&t, FIELD_ENERGY_RAM, 0), REASON_ABSENT);
        assert_int_equal(t.n_reads, 1);
        free_tree(&t);
}

static void test_c06_dies_gaps_and_doubles(void **state) {
        PowercapZones z;
        Tree t;

        new_tree(&t, (FixtureShape){2, 4, 1, 1}, false);
        zone(&t, "intel-rapl:0", "package-0-die-0", "10", "1000");
        zone(&t, "intel-rapl:1", "package-0-die-3", "13", "1000");
        zone(&t, "intel-rapl:1:0", "dram", "5", "1000");
        zone(&t, "intel-rapl:2", "package-1-die-3", "23", "1000");
        zone(&t, "intel-rapl:3", "package-15", "99", "1000");
        zone(&t, "intel-rapl:4", "psys", "7", "1000");
        zone(&t, "intel-rapl:10", "psys", "8", "1000");
        zone(&t, "dtpm:0", "dtpm", "1", "1000");
        probe(&t);
        assert_int_equal(turn(&t), 0);
        assert_int_equal(value(&t, FIELD_ENERGY_PKG, 0), 10);
        assert_int_equal(value(&t, FIELD_ENERGY_PKG, 3), 13);
        assert_int_equal(value(&t, FIELD_ENERGY_PKG, 7), 23);
        assert_int_equal(reason(&t, FIELD_ENERGY_PKG, 1), REASON_ABSENT);
        assert_int_equal(value(&t, FIELD_ENERGY_RAM, 3), 5); /* a child is of its parent's die */
        assert_int_equal(value(&t, FIELD_ENERGY_SYS, 0), 7); /* of equal names the first counts ... */

        assert_int_equal(powercap_zones_read(t.sysfs, t.m, &z), 0);
        assert_int_equal(z.n, 8); /* ... and all are listed */
        for (uint32_t i = 0; i < z.n; i++)
                for (uint32_t k = 0; k < i; k++)
                        assert_string_not_equal(z.zones[i].dir, z.zones[k].dir);
        powercap_zones_deinit(&z);
        free_tree(&t);
}

static void test_two_zones_called_package(void **state) {
        Tree t;

        new_tree(&t, (FixtureShape){1, 0, 1, 1}, false);
        zone(&t, "intel-rapl:0", "package", "10", "1000");
        zone(&t, "intel-rapl:1", "package", "20", "1000");
        probe(&t);
        assert_int_equal(turn(&t), 0);
        assert_int_equal(value(&t, FIELD_ENERGY_PKG, 0), 10);
        free_tree(&t);
}

static void test_c03_range_unknown_or_at_odds(void **state) {
        Tree t;

        new_tree(&t, (FixtureShape){2, 0, 1, 1}, false);
        zone(&t, "intel-rapl:0", "package-0", "10", "1000");
        zone(&t, "intel-rapl:0:0", "dram", "10", "500");
        zone(&t, "intel-rapl:1", "package-1", "10", NULL);
        zone(&t, "intel-rapl:1:0", "dram", "10", "400");
        probe(&t);
        assert_int_equal(layout_find(&t.m->layout, FIELD_ENERGY_PKG, 0)->range, 0);
        assert_int_equal(layout_find(&t.m->layout, FIELD_ENERGY_RAM, 0)->range, 0);
        assert_int_equal(
                layout_find(&t.m->layout, FIELD_ENERGY_RAM, 0)->width, 64); /* a decrease is no wrap then */
        free_tree(&t);
}

static void test_c08_zero_and_nothing(void **state) {
        Tree t;

        new_tree(&t, (FixtureShape){1, 0, 1, 1}, false);
        probe(&t);
        assert_int_equal(t.status.state, SOURCE_ABSENT);
        assert_true(strlen(t.status.hint) > 0);
        assert_int_equal(turn(&t), 0);
        assert_null(layout_find(&t.m->layout, FIELD_ENERGY_PKG, 0));

        free_tree(&t);

        new_tree(&t, (FixtureShape){1, 0, 1, 1}, false);
        zone(&t, "intel-rapl:0", "package-0", "0", "1000"); /* 0.00 W for ever */
        probe(&t);
        assert_null(layout_find(&t.m->layout, FIELD_ENERGY_PKG, 0));
        free_tree(&t);
}

static void test_unreadable_energy_has_a_reason_and_comes_back(void **state) {
        char path[160];
        Tree t;

        new_tree(&t, (FixtureShape){1, 0, 1, 1}, false);
        zone(&t, "intel-rapl:0", "package-0", "garbage", "1000");
        probe(&t);
        assert_int_equal(t.status.state, SOURCE_ERROR);
        (void) turn(&t);
        assert_int_equal(reason(&t, FIELD_ENERGY_PKG, 0), REASON_ERROR);
        put(&t, "intel-rapl:0", "energy_uj", "77");
        for (int i = 0; i < 60; i++)
                (void) turn(&t);
        assert_int_equal(value(&t, FIELD_ENERGY_PKG, 0), 77);
        assert_int_equal(t.status.state, SOURCE_OK);
        assert_string_equal(t.status.hint, "");
        (void) snprintf(path, sizeof(path), "%s/sys/class/powercap/intel-rapl:0/energy_uj", t.root);
        assert_int_equal(truncate(path, 0), 0);
        (void) turn(&t);
        assert_int_not_equal(reason(&t, FIELD_ENERGY_PKG, 0), REASON_NONE);
        free_tree(&t);
}

static void test_amd_core_zone_is_one_core(void **state) {
        Tree t;

        new_tree(&t, (FixtureShape){1, 0, 4, 2}, true);
        zone(&t, "intel-rapl:0", "package-0", "10", "1000");
        zone(&t, "intel-rapl:0:0", "core", "5", "1000");
        probe(&t);
        assert_non_null(layout_find(&t.m->layout, FIELD_ENERGY_PKG, 0));
        assert_null(layout_find(&t.m->layout, FIELD_ENERGY_COR, 0));
        free_tree(&t);
}

static void test_better_sources_come_first(void **state) {
        Tree t;

        new_tree(&t, (FixtureShape){1, 0, 1, 1}, false);
        zone(&t, "intel-rapl:0", "package-0", "10", "1000");
        zone(&t, "intel-rapl:0:0", "dram", "20", "1000");
        layout_add(&t.m->layout, FIELD_ENERGY_PKG, 0)->source = 5;
        layout_add(&t.m->layout, FIELD_PKG_NS, 0)->source = 5;
        probe(&t);
        t.activity[0].slept = true;
        t.tick->values[layout_find(&t.m->layout, FIELD_PKG_NS, 0)->offset] = 4711;
        assert_int_equal(turn(&t), 0);
        assert_int_equal(value(&t, FIELD_ENERGY_RAM, 0), 20);
        assert_int_equal(value(&t, FIELD_ENERGY_PKG, 0), 0); /* not ours to write */
        assert_int_equal(value(&t, FIELD_PKG_NS, 0), 4711);
        assert_int_equal(layout_find(&t.m->layout, FIELD_ENERGY_PKG, 0)->source, 5);
        assert_int_equal(t.n_reads, 1);
        assert_int_equal(t.n_wakeups, 1);
        free_tree(&t);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_c05_each_package_once),
                cmocka_unit_test(test_mmio_counts_where_nothing_else_does),
                cmocka_unit_test(test_c06_dies_gaps_and_doubles),
                cmocka_unit_test(test_two_zones_called_package),
                cmocka_unit_test(test_c03_range_unknown_or_at_odds),
                cmocka_unit_test(test_c08_zero_and_nothing),
                cmocka_unit_test(test_unreadable_energy_has_a_reason_and_comes_back),
                cmocka_unit_test(test_amd_core_zone_is_one_core),
                cmocka_unit_test(test_better_sources_come_first),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
