/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One object a kind of CPU, whether it comes from this machine or from a dump. What a CPU does not tell is
 * null; every erratum is listed with its status, so that a program needs no list of its own.
 */

#include <errno.h>
#include <string.h>

#include "api/cpu-json.h"
#include "cstated/num.h"
#include "model/errata.h"
#include "model/pkg-cst.h"

/* 0 means unknown. */
static void key_u64_or_null(JsonWriter *j, const char *key, uint64_t v) {
        jw_key(j, key);
        if (v != 0)
                jw_u64(j, v);
        else
                jw_null(j);
}

static void key_text_or_null(JsonWriter *j, const char *key, const char *s) {
        jw_key_string(j, key, s[0] ? s : NULL);
}

static const char *core_type_name(CpuCoreType t) {
        switch (t) {
        case CORE_TYPE_PERFORMANCE:
                return "performance";
        case CORE_TYPE_EFFICIENT:
                return "efficient";
        case CORE_TYPE_NONE:
                break;
        }
        return NULL;
}

static void write_mwait(JsonWriter *j, const CpuIdent *c) {
        jw_key(j, "mwait");
        if (!c->has_monitor) {
                jw_null(j);
                return;
        }
        jw_begin_object(j);
        jw_key_u64(j, "smallest_line", c->mwait_smallest);
        jw_key_u64(j, "largest_line", c->mwait_largest);
        jw_key_bool(j, "extensions", c->mwait_emx);
        jw_key_bool(j, "interrupt_break", c->mwait_ibe);
        jw_key(j, "substates");
        jw_begin_array(j);
        for (size_t i = 0; i < ARRAY_SIZE(c->mwait_substates); i++)
                jw_u64(j, c->mwait_substates[i]);
        jw_end_array(j);
        jw_end_object(j);
}

static void write_errata(JsonWriter *j, const CpuIdent *c, const char *bugs) {
        jw_key(j, "errata");
        jw_begin_array(j);
        for (unsigned id = 0; id < ERRATUM_N; id++) {
                ErratumStatus s = erratum_classify((ErratumId) id, c, bugs);

                jw_begin_object(j);
                jw_key_string(j, "id", erratum_name((ErratumId) id));
                jw_key_string(j, "status", erratum_status_name(s));
                jw_key_string(j, "advice", erratum_advice((ErratumId) id, s));
                jw_end_object(j);
        }
        jw_end_array(j);
}

/* The bugs line as an array of its tokens; null where there is no such line. */
static void write_bugs(JsonWriter *j, const char *bugs) {
        jw_key(j, "bugs");
        if (!bugs) {
                jw_null(j);
                return;
        }
        jw_begin_array(j);
        while (*bugs) {
                size_t n;

                bugs += strspn(bugs, " \t\n");
                n = strcspn(bugs, " \t\n");
                if (n > 0)
                        jw_string_n(j, bugs, n);
                bugs += n;
        }
        jw_end_array(j);
}

/* tsc_hz: known from elsewhere, or 0: what the leaves say. */
static void write_cpu(JsonWriter *j, const CpuIdent *c, uint32_t count, uint64_t tsc_hz, const char *bugs) {
        jw_begin_object(j);
        jw_key_string(j, "vendor", c->vendor);
        jw_key_u64(j, "family", c->family);
        jw_key_u64(j, "model", c->model);
        jw_key_u64(j, "stepping", c->stepping);
        jw_key_u64(j, "signature", c->signature);
        key_text_or_null(j, "brand", c->brand);
        key_text_or_null(j, "uarch", c->uarch);
        jw_key_bool(j, "hypervisor", c->hypervisor);
        key_text_or_null(j, "hypervisor_vendor", c->hypervisor_vendor);
        jw_key_bool(j, "hybrid", c->hybrid);
        jw_key_string(j, "core_type", core_type_name(c->core_type));
        jw_key_u64(j, "count", count);
        key_u64_or_null(j, "microcode", c->microcode);
        jw_key_bool(j, "monitor", c->has_monitor);
        write_mwait(j, c);
        jw_key_bool(j, "clflush", c->has_clflush);
        jw_key_bool(j, "aperfmperf", c->has_aperfmperf);
        jw_key_bool(j, "dts", c->has_dts);
        jw_key_bool(j, "pkg_dts", c->has_pkg_dts);
        jw_key_bool(j, "arat", c->has_arat);
        jw_key_bool(j, "invariant_tsc", c->invariant_tsc);
        key_u64_or_null(j, "tsc_hz", tsc_hz ? tsc_hz : cpuid_tsc_hz(c));
        key_u64_or_null(j, "crystal_hz", c->crystal_hz);
        key_u64_or_null(j, "base_mhz", c->base_mhz);
        key_u64_or_null(j, "max_mhz", c->max_mhz);
        key_u64_or_null(j, "topology_leaf", c->topology_leaf);
        write_bugs(j, bugs);
        write_errata(j, c, bugs);
        jw_end_object(j);
}

/* CPUs of the machine for which belongs() says yes, as a kernel list. */
static int key_cpulist(JsonWriter *j, const char *key, const Machine *m,
        bool (*belongs)(const MachineCpu *c, uint32_t which), uint32_t which) {
        _cleanup_free_ uint32_t *ids = calloc(m->n_cpus ? m->n_cpus : 1, sizeof(*ids));
        _cleanup_free_ char *text = NULL;
        size_t n = 0;

        if (!ids)
                return -ENOMEM;
        for (uint32_t i = 0; i < m->n_cpus; i++)
                if (belongs(&m->cpus[i], which))
                        ids[n++] = m->cpus[i].id;
        text = num_format_cpulist(ids, n);
        if (!text)
                return -ENOMEM;
        jw_key_string(j, key, text);
        return 0;
}

static bool in_package(const MachineCpu *c, uint32_t package) {
        return c->package == package;
}

static bool in_idle_set(const MachineCpu *c, uint32_t set) {
        return c->idle_set == set;
}

static bool is_any(const MachineCpu *c, uint32_t which) {
        return true;
}

static uint32_t n_threads_per_core(const Machine *m) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < m->n_cpus; i++)
                n = MAX(n, (uint32_t) m->cpus[i].thread + 1);
        return n;
}

static int write_package(JsonWriter *j, const Machine *m, uint32_t p) {
        uint32_t n_cores = 0;
        int r;

        for (uint32_t i = 0; i < m->n_cores; i++)
                n_cores += m->cores[i].package == p;
        jw_begin_object(j);
        jw_key_i64(j, "package", m->packages[p].package);
        jw_key(j, "die");
        if (m->packages[p].die >= 0)
                jw_i64(j, m->packages[p].die);
        else
                jw_null(j);
        jw_key_u64(j, "cores", n_cores);
        r = key_cpulist(j, "cpus", m, in_package, p);
        jw_end_object(j);
        return r;
}

static int write_topology(JsonWriter *j, const Machine *m) {
        _cleanup_free_ char *offline = NULL;
        int r;

        jw_key(j, "topology");
        jw_begin_object(j);
        jw_key_u64(j, "cpus", m->n_cpus);
        jw_key_u64(j, "cores", m->n_cores);
        jw_key_u64(j, "modules", m->n_modules);
        jw_key_u64(j, "threads_per_core", n_threads_per_core(m));
        r = key_cpulist(j, "online", m, is_any, 0);
        if (r < 0)
                return r;
        offline = num_format_cpulist(m->offline, m->n_offline);
        if (!offline)
                return -ENOMEM;
        jw_key_string(j, "offline", offline);
        jw_key(j, "packages");
        jw_begin_array(j);
        for (uint32_t p = 0; p < m->n_packages && r == 0; p++)
                r = write_package(j, m, p);
        jw_end_array(j);
        jw_end_object(j);
        return r;
}

static void write_state(JsonWriter *j, const IdleState *s) {
        jw_begin_object(j);
        jw_key_string(j, "name", s->name);
        jw_key_string(j, "desc", s->desc);
        jw_key(j, "mwait_hint");
        if (s->mwait_hint >= 0)
                jw_i64(j, s->mwait_hint);
        else
                jw_null(j);
        jw_key_u64(j, "exit_latency_us", s->exit_latency_us);
        jw_key_u64(j, "target_residency_us", s->target_residency_us);
        jw_key_bool(j, "disabled", s->disabled);
        jw_end_object(j);
}

/* The core type of the set's CPUs, NULL where they are of several or of none. */
static const char *idle_set_core_type(const Machine *m, uint32_t set) {
        CpuCoreType type = CORE_TYPE_NONE;

        for (uint32_t i = 0; i < m->n_cpus; i++) {
                CpuCoreType t;

                if (m->cpus[i].idle_set != set || m->cpus[i].ident >= m->n_idents)
                        continue;
                t = m->idents[m->cpus[i].ident].core_type;
                if (t == CORE_TYPE_NONE || (type != CORE_TYPE_NONE && t != type))
                        return NULL;
                type = t;
        }
        return core_type_name(type);
}

static int write_idle(JsonWriter *j, const Machine *m) {
        int r = 0;

        jw_key(j, "idle");
        jw_begin_object(j);
        key_text_or_null(j, "driver", m->idle_driver);
        key_text_or_null(j, "governor", m->idle_governor);
        jw_key(j, "sets");
        jw_begin_array(j);
        for (uint32_t set = 0; set < m->n_idle_sets && r == 0; set++) {
                jw_begin_object(j);
                r = key_cpulist(j, "cpus", m, in_idle_set, set);
                jw_key_string(j, "core_type", idle_set_core_type(m, set));
                jw_key(j, "states");
                jw_begin_array(j);
                for (uint32_t i = 0; i < m->idle_sets[set].n_states; i++)
                        write_state(j, &m->idle_sets[set].states[i]);
                jw_end_array(j);
                jw_end_object(j);
        }
        jw_end_array(j);
        jw_end_object(j);
        return r;
}

/* null and a reason in *ret_reason where the register was not read or does not exist. */
static void write_pkg_cst(JsonWriter *j, const Machine *m, Reason unread, const char **ret_reason) {
        const CpuIdent *c = m->n_idents > 0 ? &m->idents[0] : NULL;
        PkgCst cst;

        *ret_reason = NULL;
        jw_key(j, "pkg_cst");
        if (!c || !pkg_cst_decode(c, m->pkg_cst_config, &cst))
                *ret_reason = reason_name(REASON_NOT_APPLICABLE);
        else if (!m->has_pkg_cst_config)
                *ret_reason = reason_name(unread != REASON_NONE ? unread : m->hypervisor ? REASON_VM : REASON_ABSENT);
        if (*ret_reason) {
                jw_null(j);
                return;
        }
        jw_begin_object(j);
        jw_key_string(j, "limit", cst.limit);
        jw_key_u64(j, "limit_raw", cst.limit_raw);
        jw_key_bool(j, "locked", cst.locked);
        jw_key_bool(j, "auto_conversion", cst.auto_conversion);
        jw_key_bool(j, "c1_demotion", cst.c1_demotion);
        jw_key_bool(j, "c3_demotion", cst.c3_demotion);
        if (cst.has_undemotion) {
                jw_key_bool(j, "c1_undemotion", cst.c1_undemotion);
                jw_key_bool(j, "c3_undemotion", cst.c3_undemotion);
        }
        jw_key_u64(j, "raw", m->pkg_cst_config & UINT32_MAX); /* the upper half is reserved */
        jw_end_object(j);
}

static uint32_t ident_count(const Machine *m, uint32_t ident) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < m->n_cpus; i++)
                n += m->cpus[i].ident == ident;
        return n;
}

int cpu_json_write(JsonWriter *j, const Machine *m, Reason unread) {
        const char *reason;
        int r;

        jw_begin_object(j);
        jw_key(j, "cpus");
        jw_begin_array(j);
        for (uint32_t i = 0; i < m->n_idents; i++)
                write_cpu(j, &m->idents[i], ident_count(m, i), m->tsc_hz, errata_bugs(m));
        jw_end_array(j);
        key_text_or_null(j, "host", m->host);
        key_text_or_null(j, "kernel", m->kernel);
        jw_key_bool(j, "hypervisor", m->hypervisor);
        key_u64_or_null(j, "tsc_hz", m->tsc_hz);
        write_bugs(j, errata_bugs(m));
        r = write_topology(j, m);
        if (r == 0)
                r = write_idle(j, m);
        if (r < 0)
                return r;
        write_pkg_cst(j, m, unread, &reason);
        if (reason) {
                jw_key(j, "reasons");
                jw_begin_object(j);
                jw_key_string(j, "pkg_cst", reason);
                jw_end_object(j);
        }
        jw_end_object(j);
        return jw_error(j);
}

int cpu_json_write_dump(JsonWriter *j, const CpuidDumpGroup *groups, size_t n) {
        jw_begin_object(j);
        jw_key(j, "cpus");
        jw_begin_array(j);
        for (size_t i = 0; i < n; i++)
                write_cpu(j, &groups[i].ident, groups[i].ident.n_cpus, 0,
                        groups[i].has_bugs ? groups[i].bugs : NULL);
        jw_end_array(j);
        jw_end_object(j);
        return jw_error(j);
}
