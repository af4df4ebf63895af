/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPUs, errata, topology and idle states as paragraphs; the advice on an erratum is wrapped to 80 columns.
 */

#include <errno.h>
#include <inttypes.h>
#include <libsmartcols.h>
#include <stdbool.h>
#include <string.h>

#include "client/cpu-print.h"
#include "client/text.h"
#include "cstated/macro.h"
#include "cstated/num.h"

#define COLUMNS 79

static json_int_t integer(json_t *o, const char *key) {
        return json_integer_value(json_object_get(o, key));
}

static bool is_true(json_t *o, const char *key) {
        return json_is_true(json_object_get(o, key));
}

static const char *plural(json_int_t n) {
        return n == 1 ? "" : "s";
}

static void print_identity(json_t *cpu, FILE *out) {
        json_int_t count = integer(cpu, "count"), microcode = integer(cpu, "microcode");
        const char *brand = text_of(cpu, "brand"), *uarch = text_of(cpu, "uarch"), *type = text_of(cpu, "core_type");

        (void) fprintf(out, "%s\n", *brand ? brand : "(no brand string)");
        (void) fprintf(out,
                "  %s, %s family %" JSON_INTEGER_FORMAT " model %" JSON_INTEGER_FORMAT
                " (0x%02x) stepping %" JSON_INTEGER_FORMAT,
                *uarch ? uarch : "unknown model", text_of(cpu, "vendor"), integer(cpu, "family"),
                integer(cpu, "model"), (unsigned) integer(cpu, "model"), integer(cpu, "stepping"));
        if (microcode)
                (void) fprintf(out, ", microcode 0x%x", (unsigned) microcode);
        (void) fputc('\n', out);
        if (count)
                (void) fprintf(out, "  %" JSON_INTEGER_FORMAT " CPU%s%s%s%s\n", count, plural(count),
                        *type ? " of type " : "", type, is_true(cpu, "hybrid") ? ", hybrid" : "");
        if (is_true(cpu, "hypervisor"))
                (void) fprintf(out, "  virtual machine%s%s\n", *text_of(cpu, "hypervisor_vendor") ? ": " : "",
                        text_of(cpu, "hypervisor_vendor"));
}

static void print_mwait(json_t *cpu, FILE *out) {
        json_t *mwait = json_object_get(cpu, "mwait"), *n;
        const char *separator = ", sub-states";
        size_t i;

        if (!is_true(cpu, "monitor")) {
                (void) fputs("  no MONITOR/MWAIT\n", out);
                return;
        }
        (void) fputs("  MONITOR/MWAIT", out);
        json_array_foreach(json_object_get(mwait, "substates"), i, n)
                if (json_integer_value(n) > 0) {
                (void) fprintf(out, "%s C%zu:%" JSON_INTEGER_FORMAT, separator, i, json_integer_value(n));
                separator = "";
                }
        (void) fprintf(
                out, "%s\n", is_true(mwait, "interrupt_break") ? ", breaks on masked interrupts" : "");
}

static void print_features(json_t *cpu, FILE *out) {
        static const struct {
                const char *key, *name;
        } table[] = {
                { "aperfmperf", "APERF/MPERF" },
                { "dts", "thermal sensor" },
                { "pkg_dts", "package thermal sensor" },
                { "invariant_tsc", "invariant TSC" },
        };
        json_int_t hz = integer(cpu, "tsc_hz");
        const char *separator = "  ";

        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (is_true(cpu, table[i].key)) {
                        (void) fprintf(out, "%s%s", separator, table[i].name);
                        separator = ", ";
                }
        if (hz) {
                char mhz[32];

                (void) num_format_fixed((double) hz / 1e6, 3, mhz, sizeof(mhz));
                (void) fprintf(out, "%sTSC %s MHz", separator, mhz);
                separator = ", ";
        }
        if (separator[0] == ',')
                (void) fputc('\n', out);
}

static void print_errata(json_t *cpu, FILE *out) {
        json_t *erratum;
        size_t i;

        json_array_foreach(json_object_get(cpu, "errata"), i, erratum) {
                const char *status = text_of(erratum, "status");

                (void) fprintf(out, "  erratum %s: %s\n", text_of(erratum, "id"),
                        strcmp(status, "unmitigated") == 0 ? "UNMITIGATED" : status);
                if (strcmp(status, "not-affected") != 0)
                        text_wrapped(out, "    ", COLUMNS, text_of(erratum, "advice"));
        }
}

static void print_topology(json_t *root, FILE *out) {
        json_t *t = json_object_get(root, "topology");
        json_int_t packages = (json_int_t) json_array_size(json_object_get(t, "packages"));

        if (!json_is_object(t))
                return;
        (void) fprintf(out,
                "\n%" JSON_INTEGER_FORMAT " package%s, %" JSON_INTEGER_FORMAT
                " core%s, %" JSON_INTEGER_FORMAT " CPU%s online (%s)",
                packages, plural(packages), integer(t, "cores"), plural(integer(t, "cores")),
                integer(t, "cpus"), plural(integer(t, "cpus")), text_of(t, "online"));
        if (*text_of(t, "offline"))
                (void) fprintf(out, ", offline %s", text_of(t, "offline"));
        (void) fputc('\n', out);
        if (*text_of(root, "kernel"))
                (void) fprintf(out, "kernel %s\n", text_of(root, "kernel"));
}

/* A number of a state as text; "-" for null. */
static const char *cell(json_t *state, const char *key, bool hexadecimal, char buf[24]) {
        json_t *v = json_object_get(state, key);

        if (!json_is_integer(v))
                (void) snprintf(buf, 24, "-");
        else if (hexadecimal)
                (void) snprintf(buf, 24, "0x%02" PRIx64, (uint64_t) json_integer_value(v));
        else
                (void) snprintf(buf, 24, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
        return buf;
}

static int fill_states(struct libscols_table *table, json_t *states) {
        json_t *s;
        size_t i;

        json_array_foreach(states, i, s) {
                struct libscols_line *line = scols_table_new_line(table, NULL);
                char hint[24], latency[24], residency[24];

                if (!line || scols_line_set_data(line, 0, text_of(s, "name")) < 0 ||
                        scols_line_set_data(line, 1, cell(s, "mwait_hint", true, hint)) < 0 ||
                        scols_line_set_data(line, 2, cell(s, "exit_latency_us", false, latency)) < 0 ||
                        scols_line_set_data(line, 3, cell(s, "target_residency_us", false, residency)) < 0 ||
                        scols_line_set_data(line, 4, is_true(s, "disabled") ? "disabled" : "") < 0 ||
                        scols_line_set_data(line, 5, text_of(s, "desc")) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int print_states(json_t *states, FILE *out) {
        static const struct {
                const char *name;
                int flags;
        } columns[] = {
                { "STATE", 0 },
                { "MWAIT", SCOLS_FL_RIGHT },
                { "LATENCY/us", SCOLS_FL_RIGHT },
                { "RESIDENCY/us", SCOLS_FL_RIGHT },
                { "", 0 },
                { "DESCRIPTION", SCOLS_FL_TRUNC },
        };
        struct libscols_table *table = scols_new_table();
        int r = table ? 0 : -ENOMEM;

        for (size_t i = 0; i < ARRAY_SIZE(columns) && r == 0; i++)
                if (!scols_table_new_column(table, columns[i].name, 0, columns[i].flags))
                        r = -ENOMEM;
        if (r == 0)
                r = scols_table_set_stream(table, out);
        if (r == 0)
                r = fill_states(table, states);
        if (r == 0)
                r = scols_print_table(table);
        scols_unref_table(table);
        return r;
}

static int print_idle(json_t *root, FILE *out) {
        json_t *idle = json_object_get(root, "idle"), *set;
        size_t i;
        int r = 0;

        if (!json_is_object(idle))
                return 0;
        if (json_array_size(json_object_get(idle, "sets")) == 0) {
                (void) fputs("\nno idle states: this kernel has no cpuidle driver here\n", out);
                return 0;
        }
        (void) fprintf(out, "\nidle states by %s, governor %s\n",
                *text_of(idle, "driver") ? text_of(idle, "driver") : "none",
                *text_of(idle, "governor") ? text_of(idle, "governor") : "none");
        json_array_foreach(json_object_get(idle, "sets"), i, set) {
                (void) fprintf(out, "CPUs %s%s%s%s\n", text_of(set, "cpus"),
                        *text_of(set, "core_type") ? " (" : "", text_of(set, "core_type"),
                        *text_of(set, "core_type") ? ")" : "");
                r = print_states(json_object_get(set, "states"), out);
                if (r < 0)
                        break;
        }
        return r;
}

static void print_pkg_cst(json_t *root, FILE *out) {
        json_t *cst = json_object_get(root, "pkg_cst");
        const char *limit = text_of(cst, "limit");

        if (!json_is_object(cst)) {
                const char *reason = text_of(json_object_get(root, "reasons"), "pkg_cst");

                if (strcmp(reason, "denied") == 0 || strcmp(reason, "error") == 0)
                        (void) fprintf(out,
                                "\npackage C-state limit unknown: reading it %s (cstatectl status says why)\n",
                                reason[0] == 'd' ? "is denied" : "fails");
                return;
        }
        if (*limit)
                (void) fprintf(out, "\npackage C-state limit %s", limit);
        else
                (void) fprintf(out,
                        "\npackage C-state limit value %" JSON_INTEGER_FORMAT " (meaning unknown)",
                        integer(cst, "limit_raw"));
        (void) fprintf(out, "%s, C1 demotion %s, C3 demotion %s\n",
                is_true(cst, "locked") ? " (locked)" : "", is_true(cst, "c1_demotion") ? "on" : "off",
                is_true(cst, "c3_demotion") ? "on" : "off");
}

int cpu_print(json_t *root, FILE *out) {
        json_t *cpu;
        size_t i;
        int r;

        json_array_foreach(json_object_get(root, "cpus"), i, cpu) {
                if (i > 0)
                        (void) fputc('\n', out);
                print_identity(cpu, out);
                print_mwait(cpu, out);
                print_features(cpu, out);
                print_errata(cpu, out);
        }
        print_topology(root, out);
        r = print_idle(root, out);
        print_pkg_cst(root, out);
        return r;
}
