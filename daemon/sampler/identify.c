/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Identification of the live machine. CPUID comes from /dev/cpu/N/cpuid where that can be read, since it
 * answers for CPU N (an IPI, so only one CPU of each core type is asked, and the one we run on rather than a
 * sleeper); else from the instruction, which answers for wherever we happen to run.
 *
 * Core types: a hybrid part says so in leaf 7; the perf PMUs cpu_core and cpu_atom list the CPUs of each
 * type. Where they are missing leaf 0x1A of each core's CPU is asked through the device.
 *
 * The TSC's frequency: CPUID's where it tells one that a short measurement confirms, else the measurement.
 * Hypervisors and early steppings state nominal values that are off.
 */

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "cstated/num.h"
#include "cstated/timespan.h"

#include "sampler/cpuid-live.h"
#include "sampler/identify.h"

#define CPUINFO_HEAD_MAX (16u << 10)
#define TSC_MEASURE_NS (50 * 1000000L)
#define PAIR_ATTEMPTS 8
#define TSC_TOLERANCE 1000 /* CPUID's frequency holds where it is within 1/1000 of the measured one */

/* CPUID of one CPU: through its device, or fd -1 and the instruction. */
typedef struct CpuidSource {
        int fd;
} CpuidSource;

static int device_read(void *userdata, uint32_t leaf, uint32_t subleaf, CpuidRegs *ret) {
        const CpuidSource *c = userdata;
        uint32_t regs[4];
        ssize_t n = pread(c->fd, regs, sizeof(regs), (off_t) ((uint64_t) subleaf << 32 | leaf));

        if (n != sizeof(regs))
                return n < 0 ? -errno : -EIO;
        *ret = (CpuidRegs){ .eax = regs[0], .ebx = regs[1], .ecx = regs[2], .edx = regs[3] };
        return 0;
}

/* 0 where the device of this CPU answers, -errno otherwise. */
static int ident_from_device(Sysfs *s, uint32_t cpu, CpuIdent *ret) {
        _cleanup_close_ int fd = sysfs_open(s, "dev/cpu/%u/cpuid", cpu);
        CpuidSource source = { .fd = fd };
        CpuidRegs regs;
        int r;

        if (fd < 0)
                return fd;
        r = device_read(&source, 0, 0, &regs);
        if (r < 0)
                return r;
        cpuid_decode(device_read, &source, ret);
        return 0;
}

/* A CPU that is awake anyway: the one we run on where it is one of the machine's, else the first. */
static uint32_t cpu_awake(const Machine *m) {
        int here = sched_getcpu();
        uint32_t i = here < 0 ? UINT32_MAX : machine_cpu_index(m, (uint32_t) here);

        return i == UINT32_MAX ? 0 : i;
}

static void ident_first(Sysfs *s, const Machine *m, CpuIdent *ret) {
        if (ident_from_device(s, m->cpus[cpu_awake(m)].id, ret) == 0 ||
                ident_from_device(s, m->cpus[0].id, ret) == 0)
                return;
        if (sysfs_is_host(s))
                cpuid_decode(cpuid_live_read, NULL, ret);
}

/* Marks the CPUs a PMU lists with its core type; how many were of this machine. */
static uint32_t types_from_pmu(
        Sysfs *s, const Machine *m, const char *pmu, CpuCoreType type, CpuCoreType *types) {
        _cleanup_free_ uint32_t *ids = NULL;
        uint32_t n_found = 0;
        size_t n;

        if (sysfs_read_cpulist(s, &ids, &n, "sys/devices/%s/cpus", pmu) < 0)
                return 0;
        for (size_t i = 0; i < n; i++) {
                uint32_t c = machine_cpu_index(m, ids[i]);

                if (c == UINT32_MAX)
                        continue;
                types[c] = type;
                n_found++;
        }
        return n_found;
}

static void types_from_devices(Sysfs *s, const Machine *m, CpuCoreType fallback, CpuCoreType *types) {
        for (uint32_t i = 0; i < m->n_cpus; i++) {
                CpuIdent ident = {};

                types[i] = ident_from_device(s, m->cpus[i].id, &ident) == 0 ? ident.core_type : fallback;
        }
}

static void types_read(Sysfs *s, const Machine *m, const CpuIdent *first, CpuCoreType *types) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < m->n_cpus; i++)
                types[i] = first->core_type;
        if (!first->hybrid)
                return;
        n += types_from_pmu(s, m, "cpu_core", CORE_TYPE_PERFORMANCE, types);
        n += types_from_pmu(s, m, "cpu_atom", CORE_TYPE_EFFICIENT, types);
        n += types_from_pmu(s, m, "cpu_lowpower", CORE_TYPE_EFFICIENT, types);
        if (n == 0)
                types_from_devices(s, m, first->core_type, types);
}

/* One ident a core type, in order of appearance. first answers for its own type; others are asked. */
static void idents_assign(Sysfs *s, Machine *m, const CpuIdent *first, const CpuCoreType *types) {
        for (uint32_t i = 0; i < m->n_cpus; i++) {
                uint32_t k = 0;

                while (k < m->n_idents && m->idents[k].core_type != types[i])
                        k++;
                if (k == m->n_idents) {
                        CpuIdent *ident = &m->idents[m->n_idents++];

                        if (types[i] == first->core_type || ident_from_device(s, m->cpus[i].id, ident) < 0)
                                *ident = *first;
                        ident->core_type = types[i];
                        ident->n_cpus = 0;
                }
                m->cpus[i].ident = (uint16_t) k;
                m->idents[k].n_cpus++;
        }
}

static int idents_read(Sysfs *s, Machine *m) {
        _cleanup_free_ CpuCoreType *types = calloc(m->n_cpus, sizeof(*types));
        CpuIdent first = {};

        m->idents = calloc(CORE_TYPE_EFFICIENT + 1, sizeof(*m->idents));
        if (!types || !m->idents)
                return -ENOMEM;
        ident_first(s, m, &first);
        types_read(s, m, &first, types);
        idents_assign(s, m, &first, types);
        m->hypervisor = first.hypervisor;
        return 0;
}

/* The first CPU's paragraph of /proc/cpuinfo; the rest repeats it. */
static size_t cpuinfo_head(Sysfs *s, char buf[CPUINFO_HEAD_MAX]) {
        _cleanup_close_ int fd = sysfs_open(s, "proc/cpuinfo");
        size_t n = 0;

        buf[0] = 0;
        while (fd >= 0 && n < CPUINFO_HEAD_MAX - 1) {
                ssize_t k = read(fd, buf + n, CPUINFO_HEAD_MAX - 1 - n);

                if (k <= 0)
                        break;
                n += (size_t) k;
                buf[n] = 0;
                if (strstr(buf, "\n\n"))
                        break;
        }
        return n;
}

/* The text behind "key<blanks>:" of a line; NULL where no line has that key. Ends at *ret_n. */
static const char *cpuinfo_value(const char *text, const char *key, size_t *ret_n) {
        size_t n_key = strlen(key);

        for (const char *line = text; line && *line && *line != '\n';) {
                const char *end = strchrnul(line, '\n');
                const char *p = line + n_key;

                if (strncmp(line, key, n_key) == 0 && p[strspn(p, " \t")] == ':') {
                        p += strspn(p, " \t") + 1;
                        while (p < end && *p == ' ')
                                p++;
                        *ret_n = (size_t) (end - p);
                        return p;
                }
                line = *end ? end + 1 : NULL;
        }
        return NULL;
}

/* Copies whole tokens only, so that a cut list never ends in half a name. */
static void copy_tokens(char *buf, size_t size, const char *s, size_t n) {
        if (n >= size) {
                n = size - 1;
                while (n > 0 && s[n] != ' ')
                        n--;
        }
        memcpy(buf, s, n);
        buf[n] = 0;
}

static void cpuinfo_read(Sysfs *s, Machine *m) {
        char text[CPUINFO_HEAD_MAX], number[24];
        const char *v;
        size_t n;

        if (cpuinfo_head(s, text) == 0)
                return;
        v = cpuinfo_value(text, "bugs", &n);
        if (v) {
                m->has_bugs = true;
                copy_tokens(m->bugs, sizeof(m->bugs), v, n);
        }
        v = cpuinfo_value(text, "microcode", &n);
        if (v) {
                uint32_t microcode;

                copy_tokens(number, sizeof(number), v, n);
                if (num_parse_u32(number, &microcode) == 0)
                        for (uint32_t i = 0; i < m->n_idents; i++)
                                m->idents[i].microcode = microcode;
        }
}

static uint64_t raw_ns(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC_RAW, &t);
        return (uint64_t) t.tv_sec * NSEC_PER_SEC + (uint64_t) t.tv_nsec;
}

typedef struct ClockPair {
        uint64_t tsc, ns;
} ClockPair;

/* Both clocks at one moment: of some attempts the one in which least time went by, since we may lose the CPU within. */
static ClockPair clock_pair(void) {
        ClockPair best = {};
        uint64_t least = UINT64_MAX;

        for (unsigned i = 0; i < PAIR_ATTEMPTS; i++) {
                uint64_t begin = raw_ns(), tsc = cpuid_live_tsc(), took = raw_ns() - begin;

                if (took >= least)
                        continue;
                least = took;
                best = (ClockPair){ .tsc = tsc, .ns = begin + took / 2 };
        }
        return best;
}

/* The TSC against CLOCK_MONOTONIC_RAW over 50 ms: a few ppm, most of it the two reads not being one. */
static uint64_t tsc_measure(void) {
        ClockPair a = clock_pair(), b;

        if (a.tsc == 0)
                return 0;
        (void) nanosleep(&(struct timespec){ .tv_nsec = TSC_MEASURE_NS }, NULL);
        b = clock_pair();
        return b.ns > a.ns ? (uint64_t) ((unsigned __int128) (b.tsc - a.tsc) * NSEC_PER_SEC / (b.ns - a.ns))
                           : 0;
}

static uint64_t tsc_frequency(Sysfs *s, const Machine *m) {
        uint64_t stated = cpuid_tsc_hz(&m->idents[0]), measured, off;

        if (!sysfs_is_host(s))
                return stated;
        measured = tsc_measure();
        off = stated > measured ? stated - measured : measured - stated;
        return measured == 0 || off < measured / TSC_TOLERANCE ? stated : measured;
}

int identify_read(Sysfs *s, uint64_t tsc_hz, Machine *m) {
        long hz = sysconf(_SC_CLK_TCK);
        int r;

        r = idents_read(s, m);
        if (r < 0)
                return r;
        cpuinfo_read(s, m);
        m->tsc_hz = tsc_hz > 0 ? tsc_hz : tsc_frequency(s, m);
        m->user_hz = hz > 0 ? (uint32_t) hz : 100;
        (void) sysfs_read_line(s, m->host, sizeof(m->host), "proc/sys/kernel/hostname");
        (void) sysfs_read_line(s, m->kernel, sizeof(m->kernel), "proc/sys/kernel/osrelease");
        (void) sysfs_read_line(s, m->boot_id, sizeof(m->boot_id), "proc/sys/kernel/random/boot_id");
        return 0;
}
