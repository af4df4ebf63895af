/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loading and attaching idle.bpf.c with libbpf. A tracepoint this kernel lacks is left out before loading (its BTF has
 * no btf_trace_<name> type); power:cpu_idle is the one that must be there. Whether tracing programs may read perf
 * events is not asked but tried: where the kernel refuses the whole, it gets the object without that part.
 */

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>

#include "idle.skel.h"
#include "sampler/idle-trace.h"

struct IdleTrace {
        struct idle_bpf *skeleton;
        struct idle_trace_slot *slots;
        size_t slots_size;
        struct idle_local_slot *local; /* NULL: local_error says why */
        size_t local_size;
        int local_error;
        uint32_t n_cpus;
        char attached[256];
};

static int quiet(enum libbpf_print_level level, const char *format, va_list ap) {
        return 0;
}

IdleTrace *idle_trace_free(IdleTrace *t) {
        if (!t)
                return NULL;
        if (t->slots)
                (void) munmap(t->slots, t->slots_size);
        if (t->local)
                (void) munmap(t->local, t->local_size);
        idle_bpf__destroy(t->skeleton);
        free(t);
        return NULL;
}

static bool is_test(const struct bpf_program *p) {
        return strncmp(bpf_program__name(p), "test_", 5) == 0;
}

/* "tp_btf/cpu_idle" -> "cpu_idle" */
static const char *tracepoint_of(const struct bpf_program *p) {
        const char *slash = strchr(bpf_program__section_name(p), '/');

        return slash ? slash + 1 : "";
}

static bool kernel_has(const struct btf *btf, const char *tracepoint) {
        char name[64];

        (void) snprintf(name, sizeof(name), "btf_trace_%s", tracepoint);
        return btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF) >= 0;
}

/* Decides which programs are loaded at all. */
static int choose_programs(IdleTrace *t, bool with_tests) {
        struct bpf_program *p;
        struct btf *btf;
        int r = 0;

        btf = btf__load_vmlinux_btf();
        if (!btf)
                return errno == EPERM || errno == EACCES ? -errno : -ENOENT;
        bpf_object__for_each_program(p, t->skeleton->obj) {
                bool load = is_test(p) ? with_tests : !with_tests && kernel_has(btf, tracepoint_of(p));

                (void) bpf_program__set_autoload(p, load);
                if (!load && !with_tests && strcmp(tracepoint_of(p), "cpu_idle") == 0)
                        r = -ENOENT;
        }
        btf__free(btf);
        return r;
}

static int map_memory(const struct bpf_map *map, size_t size, void **ret) {
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

        if (p == MAP_FAILED)
                return -errno;
        *ret = p;
        return 0;
}

static int load(IdleTrace *t, bool with_local) {
        uint32_t n_local = with_local ? t->n_cpus : 1;
        void *p = NULL;
        int r;

        (void) bpf_map__set_max_entries(t->skeleton->maps.slots, t->n_cpus);
        (void) bpf_map__set_max_entries(t->skeleton->maps.stores, t->n_cpus);
        (void) bpf_map__set_max_entries(t->skeleton->maps.local_slots, n_local);
        (void) bpf_map__set_max_entries(t->skeleton->maps.local_packages, n_local);
        (void) bpf_map__set_max_entries(t->skeleton->maps.local_events, n_local * IDLE_LOCAL_COLUMNS);
        t->skeleton->rodata->with_local = with_local;
        r = idle_bpf__load(t->skeleton);
        if (r < 0)
                return r;
        t->slots_size = (size_t) t->n_cpus * sizeof(struct idle_trace_slot);
        r = map_memory(t->skeleton->maps.slots, t->slots_size, &p);
        if (r < 0)
                return r;
        t->slots = p;
        if (!with_local)
                return 0;
        t->local_size = (size_t) t->n_cpus * sizeof(struct idle_local_slot);
        r = map_memory(t->skeleton->maps.local_slots, t->local_size, &p);
        if (r < 0)
                return r;
        t->local = p;
        return 0;
}

static int attach(IdleTrace *t) {
        struct bpf_program *p;
        size_t n = 0;

        bpf_object__for_each_program(p, t->skeleton->obj) {
                if (is_test(p) || !bpf_program__autoload(p))
                        continue;
                /* Links live as long as the skeleton's object: each is kept where the skeleton looks for it. */
                for (int i = 0; i < t->skeleton->skeleton->prog_cnt; i++)
                        if (*t->skeleton->skeleton->progs[i].prog == p) {
                                struct bpf_link *link = bpf_program__attach(p);

                                if (!link)
                                        return -errno;
                                *t->skeleton->skeleton->progs[i].link = link;
                        }
                if (n < sizeof(t->attached))
                        n += (size_t) snprintf(t->attached + n, sizeof(t->attached) - n, "%s%s",
                                n > 0 ? " " : "", tracepoint_of(p));
        }
        return 0;
}

static int trace_new(uint32_t n_cpus, bool with_tests, bool with_local, IdleTrace **ret) {
        _cleanup_(idle_trace_freep) IdleTrace *t = NULL;
        int r;

        t = calloc(1, sizeof(*t));
        if (!t)
                return -ENOMEM;
        t->n_cpus = n_cpus;
        t->skeleton = idle_bpf__open();
        if (!t->skeleton)
                return -errno;
        r = choose_programs(t, with_tests);
        if (r < 0)
                return r;
        r = load(t, with_local);
        if (r < 0)
                return r;
        if (!with_tests) {
                r = attach(t);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(t);
        return 0;
}

int idle_trace_new(uint32_t n_cpus, bool with_tests, IdleTrace **ret) {
        int r;

        if (n_cpus == 0)
                return -EINVAL;
        (void) libbpf_set_print(quiet);
        r = trace_new(n_cpus, with_tests, true, ret);
        if (r < 0 && r != -ENOENT && r != -EPERM && r != -EACCES) {
                int error = r;

                r = trace_new(n_cpus, with_tests, false, ret);
                if (r == 0)
                        (*ret)->local_error = error;
        }
        /* libbpf has just parsed the kernel's whole BTF twice and freed it: give the megabytes back. */
        (void) malloc_trim(0);
        return r;
}

void idle_trace_configure(IdleTrace *t, uint32_t cpu, uint32_t mwait_mask,
        const uint32_t target_residency_us[IDLE_TRACE_STATES]) {
        if (cpu >= t->n_cpus)
                return;
        for (unsigned i = 0; i < IDLE_TRACE_STATES; i++) {
                struct idle_trace_state *st = &t->slots[cpu].states[i];

                st->target_residency_ns =
                        target_residency_us[i] > UINT32_MAX / 1000 ? UINT32_MAX : target_residency_us[i] * 1000;
                st->is_mwait = (mwait_mask >> i) & 1;
        }
}

void idle_trace_record(IdleTrace *t) {
        t->skeleton->bss->recording = 1;
}

const char *idle_trace_attached(const IdleTrace *t) {
        return t->attached;
}

const struct idle_trace_slot *idle_trace_slot(const IdleTrace *t, uint32_t cpu) {
        return cpu < t->n_cpus ? &t->slots[cpu] : NULL;
}

int idle_trace_local_error(const IdleTrace *t) {
        return t->local_error;
}

int idle_trace_local_event(IdleTrace *t, uint32_t cpu, unsigned column, int fd) {
        uint32_t place = cpu * IDLE_LOCAL_COLUMNS + column;
        int map = bpf_map__fd(t->skeleton->maps.local_events);

        if (!t->local || cpu >= t->n_cpus || column >= IDLE_LOCAL_COLUMNS)
                return -EINVAL;
        if (fd < 0)
                return bpf_map_delete_elem(map, &place) < 0 && errno != ENOENT ? -errno : 0;
        return bpf_map_update_elem(map, &place, &fd, BPF_ANY) < 0 ? -errno : 0;
}

void idle_trace_local_want(IdleTrace *t, uint32_t cpu, const LocalWant *want) {
        if (!t->local || cpu >= t->n_cpus)
                return;
        t->local[cpu].core = want->core;
        t->local[cpu].package = want->package;
        t->local[cpu].own = want->own;
        t->local[cpu].core_columns = want->core_columns;
        t->local[cpu].package_columns = want->package_columns;
}

void idle_trace_local_due(IdleTrace *t) {
        uint32_t next = t->skeleton->bss->local_due + 1;

        __atomic_store_n(&t->skeleton->bss->local_due, next ? next : 1, __ATOMIC_RELAXED);
}

const struct idle_local_slot *idle_trace_local_slot(const IdleTrace *t, uint32_t cpu) {
        return t->local && cpu < t->n_cpus ? &t->local[cpu] : NULL;
}

int idle_trace_cost(const IdleTrace *t, IdleTraceCost *ret) {
        struct bpf_program *p;

        *ret = (IdleTraceCost){};
        bpf_object__for_each_program(p, t->skeleton->obj) {
                struct bpf_prog_info info = {};
                uint32_t size = sizeof(info);

                if (bpf_program__fd(p) < 0)
                        continue;
                if (bpf_obj_get_info_by_fd(bpf_program__fd(p), &info, &size) < 0)
                        return -errno;
                ret->ns += info.run_time_ns;
                ret->runs += info.run_cnt;
        }
        return 0;
}

int idle_trace_count_cost(void) {
        int fd = bpf_enable_stats(BPF_STATS_RUN_TIME);

        return fd < 0 ? -errno : fd;
}

int idle_trace_test_run(IdleTrace *t, const char *program, uint32_t cpu, const uint64_t *args, size_t n_args) {
        struct bpf_program *p = bpf_object__find_program_by_name(t->skeleton->obj, program);
        LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = (uint32_t) (n_args * sizeof(*args)),
                .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = cpu);

        if (!p)
                return -ENOENT;
        return bpf_prog_test_run_opts(bpf_program__fd(p), &opts);
}
