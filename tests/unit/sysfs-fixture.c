/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "tests/unit/sysfs-fixture.h"

#define CPU "sys/devices/system/cpu"

void fixture_init(Fixture *f) {
        (void) snprintf(f->root, sizeof(f->root), "/tmp/cstated-fixture-XXXXXX");
        assert_non_null(mkdtemp(f->root));
        assert_int_equal(sysfs_new(f->root, &f->sysfs), 0);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
        return remove(path);
}

void fixture_deinit(Fixture *f) {
        f->sysfs = sysfs_free(f->sysfs);
        assert_int_equal(nftw(f->root, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void make_folders(char *path, size_t from) {
        for (char *p = path + from; (p = strchr(p, '/')); p++) {
                *p = 0;
                assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
                *p = '/';
        }
}

static _printf_(4, 0) size_t path_vformat(const Fixture *f, char *path, size_t size, const char *format, va_list ap) {
        size_t n = (size_t) snprintf(path, size, "%s/", f->root);

        assert_true((size_t) vsnprintf(path + n, size - n, format, ap) < size - n);
        return n;
}

void fixture_write(Fixture *f, const char *text, const char *format, ...) {
        _cleanup_close_ int fd = -1;
        char path[512];
        va_list ap;
        size_t n;

        va_start(ap, format);
        n = path_vformat(f, path, sizeof(path), format, ap);
        va_end(ap);
        make_folders(path, n);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

void fixture_remove(Fixture *f, const char *format, ...) {
        char path[512];
        va_list ap;

        va_start(ap, format);
        (void) path_vformat(f, path, sizeof(path), format, ap);
        va_end(ap);
        assert_int_equal(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void write_number(Fixture *f, long long v, const char *path) {
        char text[32];

        (void) snprintf(text, sizeof(text), "%lld\n", v);
        fixture_write(f, text, "%s", path);
}

void fixture_cpu(Fixture *f, unsigned cpu, int package, int die, int core, int cluster) {
        const struct {
                const char *name;
                int value;
        } files[] = { { "physical_package_id", package }, { "die_id", die }, { "core_id", core },
                { "cluster_id", cluster } };
        char path[128];

        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                if (i == 3 && cluster < -1)
                        continue;
                (void) snprintf(path, sizeof(path), CPU "/cpu%u/topology/%s", cpu, files[i].name);
                write_number(f, files[i].value, path);
        }
}

static void write_state(Fixture *f, unsigned cpu, unsigned state, const char *name, unsigned long long v) {
        char text[32];

        (void) snprintf(text, sizeof(text), "%llu\n", v);
        fixture_write(f, text, CPU "/cpu%u/cpuidle/state%u/%s", cpu, state, name);
}

void fixture_state(Fixture *f, unsigned cpu, unsigned state, const char *name, const char *desc,
        unsigned latency, unsigned residency) {
        fixture_write(f, name, CPU "/cpu%u/cpuidle/state%u/name", cpu, state);
        fixture_write(f, desc, CPU "/cpu%u/cpuidle/state%u/desc", cpu, state);
        write_state(f, cpu, state, "latency", latency);
        write_state(f, cpu, state, "residency", residency);
        write_state(f, cpu, state, "disable", 0);
        write_state(f, cpu, state, "rejected", 0);
        fixture_idle(f, cpu, state, 0, 0, 0, 0);
}

void fixture_idle(Fixture *f, unsigned cpu, unsigned state, unsigned long long usage,
        unsigned long long time, unsigned long long above, unsigned long long below) {
        write_state(f, cpu, state, "usage", usage);
        write_state(f, cpu, state, "time", time);
        write_state(f, cpu, state, "above", above);
        write_state(f, cpu, state, "below", below);
}

void fixture_cpuid(Fixture *f, unsigned cpu, const char *vendor) {
        _cleanup_close_ int fd = -1;
        uint32_t leaf[4] = {};
        char path[128];

        fixture_write(f, "", "dev/cpu/%u/cpuid", cpu);
        (void) snprintf(path, sizeof(path), "%s/dev/cpu/%u/cpuid", f->root, cpu);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        memcpy(&leaf[1], vendor, 4);
        memcpy(&leaf[3], vendor + 4, 4);
        memcpy(&leaf[2], vendor + 8, 4);
        assert_int_equal(write(fd, leaf, sizeof(leaf)), sizeof(leaf));
}
