/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From sysfs to entities. The online list names the CPUs, never a count: ids have gaps, CPU 0 can be
 * missing, a CPU can sit in its package's second die. Packages, cores and modules are the sorted distinct
 * keys of all CPUs.
 *
 * Dies: Intel's package counters (RAPL, package C-states) are counted by die wherever CPUID shows more than
 * one in a package (Cascade Lake-AP; the kernel's cstate_die and RAPL PMUs say the same), so there a
 * "package" entity is a (package, die). AMD's and Hygon's RAPL counts by package though Zen 1 shows four
 * dies: one entity, die -1.
 *
 * Modules: cluster_id is the L2's owner on x86. A cluster of one core tells nothing a core does not, so only
 * those of more cores are modules.
 */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "sampler/identify.h"
#include "sampler/topology.h"

#define CPU_DIR "sys/devices/system/cpu"
#define CPUS_MAX 8192
#define NO_CLUSTER (-1)

/* What sysfs says of one CPU. */
typedef struct CpuPlace {
        int32_t package, die, core, cluster;
} CpuPlace;

/* A sortable identity of an entity, unused parts 0. */
typedef struct Key {
        int32_t package, die, id;
} Key;

static int32_t read_id(Sysfs *s, uint32_t cpu, const char *name, int32_t fallback) {
        int64_t v;

        if (sysfs_read_i64(s, &v, CPU_DIR "/cpu%u/topology/%s", cpu, name) < 0 || v < INT32_MIN ||
                v > INT32_MAX)
                return fallback;
        return (int32_t) v;
}

static void place_read(Sysfs *s, uint32_t cpu, CpuPlace *ret) {
        *ret = (CpuPlace){
                .package = read_id(s, cpu, "physical_package_id", 0),
                .die = read_id(s, cpu, "die_id", 0),
                .core = read_id(s, cpu, "core_id", (int32_t) cpu),
                .cluster = read_id(s, cpu, "cluster_id", NO_CLUSTER),
        };
        if (ret->cluster == UINT16_MAX) /* the kernel's BAD_APICID of narrow ids */
                ret->cluster = NO_CLUSTER;
}

static int key_order(const void *a, const void *b) {
        const Key *x = a, *y = b;

        if (x->package != y->package)
                return x->package < y->package ? -1 : 1;
        if (x->die != y->die)
                return x->die < y->die ? -1 : 1;
        return x->id < y->id ? -1 : x->id > y->id;
}

/* Sorts and removes repetitions; returns how many are left. */
static uint32_t keys_unique(Key *keys, uint32_t n) {
        uint32_t k = 0;

        qsort(keys, n, sizeof(*keys), key_order);
        for (uint32_t i = 0; i < n; i++)
                if (k == 0 || key_order(&keys[k - 1], &keys[i]) != 0)
                        keys[k++] = keys[i];
        return k;
}

static uint32_t key_find(const Key *keys, uint32_t n, const Key *key) {
        const Key *k = bsearch(key, keys, n, sizeof(*keys), key_order);

        return k ? (uint32_t) (k - keys) : UINT32_MAX;
}

static bool has_several_dies(const CpuPlace *places, uint32_t n) {
        for (uint32_t i = 0; i < n; i++)
                for (uint32_t k = 0; k < i; k++)
                        if (places[k].package == places[i].package) {
                                if (places[k].die != places[i].die)
                                        return true;
                                break; /* the first one of the package stands for those before */
                        }
        return false;
}

/*
 * Where dies are folded into their package a core id can stand in several of them: such ids are told apart
 * by adding the die above them, all others stay the kernel's.
 */
static void cores_disambiguate(CpuPlace *places, uint32_t n) {
        bool repeats = false;

        for (uint32_t i = 1; i < n && !repeats; i++)
                for (uint32_t k = 0; k < i && !repeats; k++)
                        repeats = places[k].package == places[i].package &&
                                  places[k].core == places[i].core && places[k].die != places[i].die;
        for (uint32_t i = 0; i < n && repeats; i++)
                if (places[i].core >= 0 && places[i].core <= UINT16_MAX && places[i].die >= 0 &&
                        places[i].die < 0x4000)
                        places[i].core += places[i].die << 16;
}

static Key package_key(const CpuPlace *p) {
        return (Key){ .package = p->package, .die = p->die };
}

static Key core_key(const CpuPlace *p) {
        return (Key){ .package = p->package, .die = p->die, .id = p->core };
}

static Key module_key(const CpuPlace *p) {
        return (Key){ .package = p->package, .die = p->die, .id = p->cluster };
}

/* The distinct keys of all CPUs, those with a cluster only where asked. */
static Key *keys_collect(
        const CpuPlace *places, uint32_t n, Key (*make)(const CpuPlace *p), uint32_t *ret_n) {
        Key *keys = calloc(n, sizeof(*keys));

        if (!keys)
                return NULL;
        for (uint32_t i = 0; i < n; i++)
                keys[i] = make(&places[i]);
        *ret_n = keys_unique(keys, n);
        return keys;
}

static int packages_build(Machine *m, const CpuPlace *places, bool by_die) {
        _cleanup_free_ Key *keys = keys_collect(places, m->n_cpus, package_key, &m->n_packages);

        if (!keys)
                return -ENOMEM;
        m->packages = calloc(m->n_packages, sizeof(*m->packages));
        if (!m->packages)
                return -ENOMEM;
        for (uint32_t i = 0; i < m->n_packages; i++)
                m->packages[i] = (MachinePackage){
                        .package = keys[i].package,
                        .die = by_die ? keys[i].die : -1,
                        .first_cpu = UINT32_MAX,
                };
        for (uint32_t i = 0; i < m->n_cpus; i++) {
                Key k = package_key(&places[i]);
                MachinePackage *p;

                m->cpus[i].package = key_find(keys, m->n_packages, &k);
                p = &m->packages[m->cpus[i].package];
                p->first_cpu = MIN(p->first_cpu, i);
        }
        return 0;
}

static int cores_build(Machine *m, const CpuPlace *places) {
        _cleanup_free_ Key *keys = keys_collect(places, m->n_cpus, core_key, &m->n_cores);
        _cleanup_free_ uint16_t *n_threads = NULL;

        if (!keys)
                return -ENOMEM;
        m->cores = calloc(m->n_cores, sizeof(*m->cores));
        n_threads = calloc(m->n_cores, sizeof(*n_threads));
        if (!m->cores || !n_threads)
                return -ENOMEM;
        for (uint32_t i = 0; i < m->n_cpus; i++) {
                Key k = core_key(&places[i]);
                uint32_t c = key_find(keys, m->n_cores, &k);

                if (n_threads[c] == 0)
                        m->cores[c] =
                                (MachineCore){ .id = k.id, .package = m->cpus[i].package, .first_cpu = i };
                m->cpus[i].core = c;
                m->cpus[i].thread = n_threads[c]++;
        }
        return 0;
}

/* First and last core of a cluster: more than one core where they differ. */
typedef struct ClusterCores {
        uint32_t first_core, first_cpu;
        bool seen, has_several;
} ClusterCores;

static void clusters_count(
        const Machine *m, const CpuPlace *places, const Key *keys, uint32_t n, ClusterCores *clusters) {
        for (uint32_t i = 0; i < m->n_cpus; i++) {
                Key k = module_key(&places[i]);
                ClusterCores *c = &clusters[key_find(keys, n, &k)];

                if (k.id == NO_CLUSTER)
                        continue;
                if (!c->seen)
                        *c = (ClusterCores){ .first_core = m->cpus[i].core, .first_cpu = i, .seen = true };
                else if (c->first_core != m->cpus[i].core)
                        c->has_several = true;
        }
}

static int modules_build(Machine *m, const CpuPlace *places) {
        _cleanup_free_ ClusterCores *clusters = NULL;
        _cleanup_free_ uint32_t *index = NULL;
        _cleanup_free_ Key *keys = NULL;
        uint32_t n;

        keys = keys_collect(places, m->n_cpus, module_key, &n);
        if (!keys)
                return -ENOMEM;
        clusters = calloc(n, sizeof(*clusters));
        index = malloc(n * sizeof(*index));
        if (!clusters || !index)
                return -ENOMEM;
        clusters_count(m, places, keys, n, clusters);
        for (uint32_t i = 0; i < n; i++)
                index[i] = clusters[i].has_several ? m->n_modules++ : UINT32_MAX;
        if (m->n_modules > 0) {
                m->modules = calloc(m->n_modules, sizeof(*m->modules));
                if (!m->modules)
                        return -ENOMEM;
        }
        for (uint32_t i = 0; i < n; i++)
                if (index[i] != UINT32_MAX)
                        m->modules[index[i]] = (MachineModule){
                                .id = keys[i].id,
                                .package = m->cpus[clusters[i].first_cpu].package,
                                .first_cpu = clusters[i].first_cpu,
                        };
        for (uint32_t i = 0; i < m->n_cpus; i++) {
                Key k = module_key(&places[i]);

                m->cpus[i].module = index[key_find(keys, n, &k)];
        }
        return 0;
}

static int entities_build(Sysfs *s, Machine *m) {
        _cleanup_free_ CpuPlace *places = calloc(m->n_cpus, sizeof(*places));
        bool has_dies, by_die;
        int r;

        if (!places)
                return -ENOMEM;
        for (uint32_t i = 0; i < m->n_cpus; i++)
                place_read(s, m->cpus[i].id, &places[i]);
        has_dies = has_several_dies(places, m->n_cpus);
        by_die = has_dies && strcmp(m->idents[0].vendor, "GenuineIntel") == 0;
        if (has_dies && !by_die)
                cores_disambiguate(places, m->n_cpus);
        for (uint32_t i = 0; i < m->n_cpus && !by_die; i++)
                places[i].die = 0;
        r = packages_build(m, places, by_die);
        if (r == 0)
                r = cores_build(m, places);
        if (r == 0)
                r = modules_build(m, places);
        if (r < 0)
                return r;
        m->layout.n_entities[SCOPE_SYSTEM] = 1;
        m->layout.n_entities[SCOPE_PACKAGE] = m->n_packages;
        m->layout.n_entities[SCOPE_MODULE] = m->n_modules;
        m->layout.n_entities[SCOPE_CORE] = m->n_cores;
        m->layout.n_entities[SCOPE_CPU] = m->n_cpus;
        return 0;
}

static int online_read(Sysfs *s, Machine *m) {
        _cleanup_free_ uint32_t *ids = NULL;
        size_t n;
        int r;

        r = sysfs_read_cpulist(s, &ids, &n, CPU_DIR "/online");
        if (r < 0)
                return r;
        if (n == 0 || n > CPUS_MAX)
                return -ENODATA;
        m->cpus = calloc(n, sizeof(*m->cpus));
        if (!m->cpus)
                return -ENOMEM;
        m->n_cpus = (uint32_t) n;
        for (size_t i = 0; i < n; i++)
                m->cpus[i] = (MachineCpu){ .id = ids[i], .module = UINT32_MAX, .idle_set = UINT16_MAX };
        return 0;
}

/* Present and not online. A missing list means that none is known to be offline. */
static int offline_read(Sysfs *s, Machine *m) {
        _cleanup_free_ uint32_t *present = NULL;
        size_t n;

        if (sysfs_read_cpulist(s, &present, &n, CPU_DIR "/present") < 0 || n <= m->n_cpus)
                return 0;
        m->offline = calloc(n, sizeof(*m->offline));
        if (!m->offline)
                return -ENOMEM;
        for (size_t i = 0, k = 0; i < n; i++) {
                while (k < m->n_cpus && m->cpus[k].id < present[i])
                        k++;
                if (k == m->n_cpus || m->cpus[k].id != present[i])
                        m->offline[m->n_offline++] = present[i];
        }
        return 0;
}

int topology_read(Sysfs *s, const Machine *previous, Machine **ret) {
        _cleanup_(machine_freep) Machine *m = machine_new();
        int r;

        if (!m)
                return -ENOMEM;
        r = online_read(s, m);
        if (r == 0)
                r = offline_read(s, m);
        if (r == 0)
                r = identify_read(s, previous ? previous->tsc_hz : 0, m);
        if (r == 0)
                r = entities_build(s, m);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(m);
        return 0;
}

void topology_watch_init(TopologyWatch *w, Sysfs *s) {
        *w = (TopologyWatch){
                .online_fd = sysfs_open(s, CPU_DIR "/online"),
                .driver_fd = sysfs_open(s, CPU_DIR "/cpuidle/current_driver"),
        };
}

void topology_watch_deinit(TopologyWatch *w) {
        closep(&w->online_fd);
        closep(&w->driver_fd);
        *w = (TopologyWatch) TOPOLOGY_WATCH_INIT;
}

/* FNV-1a over the text of one file; an unreadable one is its errno. */
static uint64_t hash_file(uint64_t h, int fd) {
        unsigned char buf[1024];
        off_t at = 0;

        for (ssize_t n; fd >= 0 && (n = pread(fd, buf, sizeof(buf), at)) > 0; at += n) {
                for (ssize_t i = 0; i < n; i++)
                        h = (h ^ buf[i]) * 0x100000001b3ULL;
                if ((size_t) n < sizeof(buf))
                        break;
        }
        return (h ^ (uint64_t) at) * 0x100000001b3ULL;
}

uint64_t topology_watch_read(const TopologyWatch *w) {
        return hash_file(hash_file(0xcbf29ce484222325ULL, w->online_fd), w->driver_fd);
}
