/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Families that say who the machine is, how well its sources and store are, and what measuring costs. */

#include "cstated/timespan.h"
#include "model/errata.h"

#include "api/om-view.h"
#include "api/route-private.h"

void families_info(OpenMetrics *o, Service *s, bool wide) {
        const Machine *m = service_machine(s);

        om_family(o, "cstated_build", FAMILY_INFO, NULL, "Version of the daemon.");
        om_line(o);
        om_label(o, "version", CSTATED_VERSION);
        om_count(o, 1);
        if (!m)
                return;
        om_family(o, "cstated_cpu", FAMILY_INFO, NULL, "What the CPUs are; one line a core type.");
        for (uint32_t i = 0; i < m->n_idents; i++) {
                const CpuIdent *c = &m->idents[i];
                char number[16];

                om_line(o);
                om_label(o, "vendor", c->vendor);
                (void) snprintf(number, sizeof(number), "%u", c->family);
                om_label(o, "family", number);
                (void) snprintf(number, sizeof(number), "%u", c->model);
                om_label(o, "model", number);
                (void) snprintf(number, sizeof(number), "%u", c->stepping);
                om_label(o, "stepping", number);
                (void) snprintf(number, sizeof(number), "0x%x", c->microcode);
                om_label(o, "microcode", number);
                om_label(o, "brand", c->brand);
                om_label(o, "uarch", c->uarch);
                om_label(o, "kernel", m->kernel);
                om_label(o, "driver", m->idle_driver);
                om_label(o, "governor", m->idle_governor);
                om_count(o, 1);
        }
        om_family(o, "cstated_erratum", FAMILY_INFO, NULL,
                "Errata of MONITOR/MWAIT and whether the kernel works around them.");
        for (unsigned id = 0; id < ERRATUM_N && m->n_idents > 0; id++) {
                ErratumStatus worst = ERRATUM_NOT_AFFECTED;

                for (uint32_t i = 0; i < m->n_idents; i++) {
                        ErratumStatus status = erratum_classify(
                                (ErratumId) id, &m->idents[i], m->has_bugs ? m->bugs : NULL);

                        if (worst == ERRATUM_NOT_AFFECTED || status == ERRATUM_UNMITIGATED)
                                worst = status;
                }
                om_line(o);
                om_label(o, "erratum", erratum_name((ErratumId) id));
                om_label(o, "status", erratum_status_name(worst));
                om_count(o, 1);
        }
}

void families_machine(OpenMetrics *o, Service *s, bool wide) {
        const Machine *m = service_machine(s);

        if (!m)
                return;
        om_family(o, "cstated_package_cpus", FAMILY_GAUGE, NULL, "Online CPUs of the package.");
        for (uint32_t p = 0; p < m->n_packages; p++) {
                int64_t n = 0;

                for (uint32_t i = 0; i < m->n_cpus; i++)
                        n += m->cpus[i].package == p;
                om_line(o);
                om_label_id(o, "package", m->packages[p].package);
                om_label_id(o, "die", m->packages[p].die);
                om_count(o, n);
        }
        om_family(
                o, "cstated_package_cores", FAMILY_GAUGE, NULL, "Cores of the package with an online CPU.");
        for (uint32_t p = 0; p < m->n_packages; p++) {
                int64_t n = 0;

                for (uint32_t i = 0; i < m->n_cores; i++)
                        n += m->cores[i].package == p;
                om_line(o);
                om_label_id(o, "package", m->packages[p].package);
                om_label_id(o, "die", m->packages[p].die);
                om_count(o, n);
        }
}

void families_sources(OpenMetrics *o, Service *s, bool wide) {
        if (!s->sampler)
                return;
        om_family(o, "cstated_source_up", FAMILY_GAUGE, NULL, "1 where the source gives counters.");
        for (uint32_t i = 0; i < s->sampler->n_sources; i++) {
                om_line(o);
                om_label(o, "source", s->sampler->sources[i].name);
                om_count(o, s->sampler->sources[i].state == SOURCE_OK);
        }
}

static void self_count(OpenMetrics *o, const char *name, const char *help, uint64_t v) {
        om_family(o, name, FAMILY_COUNTER, NULL, help);
        om_line(o);
        om_count(o, (int64_t) v);
}

static void self_gauge(OpenMetrics *o, const char *name, const char *unit, const char *help, double v) {
        om_family(o, name, FAMILY_GAUGE, unit, help);
        om_line(o);
        om_value(o, v);
}

void families_self(OpenMetrics *o, Service *s, bool wide) {
        const TickHeader none = {}, *t = s->tick ? s->tick : &none;

        om_family(o, "cstated_self_cpu_seconds", FAMILY_COUNTER, "seconds", "CPU time the daemon took.");
        om_line(o);
        om_label(o, "process", "sampler");
        om_value(o, (double) t->self_cpu_ns * 1e-9);
        om_line(o);
        om_label(o, "process", "server");
        om_value(o, (double) s->server_cpu_ns * 1e-9);
        self_gauge(o, "cstated_self_resident_bytes", "bytes", "Resident memory of both processes.",
                (double) (t->rss_bytes + s->server_rss_bytes));
        self_count(o, "cstated_self_remote_reads", "Reads on another CPU, one interrupt there each.",
                t->self_reads);
        self_count(o, "cstated_self_wakeups_caused", "Sleeping CPUs that were woken to be read.",
                t->self_wakeups);
        self_count(
                o, "cstated_self_missed_ticks", "Samples that came too late to be taken.", t->self_missed);
        self_count(o, "cstated_self_dropped_frames", "Samples lost between the processes.", t->self_dropped);
        self_gauge(o, "cstated_self_sample_seconds", "seconds", "How long the last sample took.",
                (double) t->sample_ns * 1e-9);
        self_gauge(o, "cstated_self_interval_seconds", "seconds", "The sampling interval.",
                (double) s->interval_usec / USEC_PER_SEC);
        if (s->sample)
                self_gauge(o, "cstated_self_last_sample_timestamp_seconds", "seconds",
                        "When the last sample was taken.", (double) s->sample->h.end_us / USEC_PER_SEC);
}

void families_store(OpenMetrics *o, Service *s, bool wide) {
        StoreFigures f;

        if (!s->store)
                return;
        store_figures(s->store, &f);
        self_gauge(o, "cstated_self_store_bytes", "bytes", "Size of the database.", (double) f.bytes);
        self_gauge(o, "cstated_self_store_degraded", NULL, "1 while samples cannot be written.", f.degraded);
        self_count(o, "cstated_self_store_ticks_lost",
                "Samples lost because the store could not be written.", f.ticks_lost);
}
