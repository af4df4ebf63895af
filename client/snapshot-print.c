/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows and cells; which columns there are and what stands in them is columns.c's. */

#include <errno.h>
#include <string.h>

#include "client/columns.h"
#include "client/ctl.h"
#include "client/snapshot-print.h"
#include "cstated/api.h"
#include "cstated/num.h"

static int select_columns(const SnapshotOptions *o, ColumnSet *set) {
        bool first = true;
        char word[64];

        for (size_t i = 0; i < o->n_selections; i++) {
                if (columns_select(set, o->selections[i].list, o->selections[i].show, first, word,
                            sizeof(word)) < 0) {
                        ctl_error("--%s: there is no column or group \"%s\" (--list names them)",
                                o->selections[i].show ? "show" : "hide", word);
                        return -EINVAL;
                }
                if (o->selections[i].show)
                        first = false;
        }
        return 0;
}

/* The first CPU of each core or package, where --cpu says so. */
static bool is_first_of(json_t *snapshot, json_t *cpu, bool core) {
        json_t *other;
        size_t i;

        json_array_foreach(json_object_get(snapshot, "cpus"), i, other)
                if (json_equal(json_object_get(other, "package"), json_object_get(cpu, "package")) &&
                        (!core || json_equal(json_object_get(other, "core"), json_object_get(cpu, "core"))))
                        return other == cpu;
        return false;
}

static bool cpu_wanted(const SnapshotOptions *o, json_t *snapshot, json_t *cpu) {
        _cleanup_free_ uint32_t *ids = NULL;
        size_t n;

        if (!o->cpus)
                return true;
        if (strcmp(o->cpus, "core") == 0 || strcmp(o->cpus, "package") == 0)
                return is_first_of(snapshot, cpu, o->cpus[0] == 'c');
        if (num_parse_cpulist(o->cpus, 65536, &ids, &n) < 0)
                return false;
        for (size_t i = 0; i < n; i++)
                if (json_integer_value(json_object_get(cpu, "cpu")) == (json_int_t) ids[i])
                        return true;
        return false;
}

/* No CPU of --cpu is here: exit status of that, with a message that says which are. */
static int none_wanted(const SnapshotOptions *o, json_t *snapshot) {
        json_t *cpus = json_object_get(snapshot, "cpus"), *cpu;
        _cleanup_free_ uint32_t *ids = calloc(json_array_size(cpus) + 1, sizeof(*ids));
        _cleanup_free_ char *list = NULL;
        size_t i;

        if (!ids)
                return CTL_EXIT_FAILURE;
        json_array_foreach(cpus, i, cpu) {
                if (cpu_wanted(o, snapshot, cpu))
                        return CTL_EXIT_OK;
                ids[i] = (uint32_t) json_integer_value(json_object_get(cpu, "cpu"));
        }
        list = num_format_cpulist(ids, json_array_size(cpus));
        ctl_error("--cpu: no CPU of \"%s\" is online here: there are %s", o->cpus, list ?: "none");
        return CTL_EXIT_NO_DATA;
}

static char separator(const SnapshotOptions *o) {
        return o->format == SNAPSHOT_CSV ? ',' : '\t';
}

static void print_header(const SnapshotOptions *o, const ColumnSet *set, FILE *out) {
        bool any = false;

        for (size_t i = 0; i < set->n; i++)
                if (set->columns[i].shown) {
                        if (any)
                                (void) fputc(separator(o), out);
                        (void) fputs(set->columns[i].name, out);
                        any = true;
                }
        (void) fputc('\n', out);
}

/* turbostat ends a row after the last cell that has something to say; a core's later threads have short
 * rows. */
static void print_row(
        const SnapshotOptions *o, const ColumnSet *set, json_t *snapshot, json_t *cpu, FILE *out) {
        ColumnFormat format = o->format == SNAPSHOT_TABLE ? COLUMN_FORMAT_TABLE : COLUMN_FORMAT_FULL;
        size_t pending = 0;
        bool first = true;
        char text[64];

        for (size_t i = 0; i < set->n; i++) {
                if (!set->columns[i].shown)
                        continue;
                if (!first)
                        pending++;
                first = false;
                if (!column_text(&set->columns[i], snapshot, cpu, format, text, sizeof(text)) &&
                        o->format == SNAPSHOT_TABLE)
                        continue;
                for (; pending > 0; pending--)
                        (void) fputc(separator(o), out);
                (void) fputs(text, out);
        }
        (void) fputc('\n', out);
}

static void print_list(const ColumnSet *set, FILE *out) {
        for (size_t i = 0; i < set->n; i++)
                (void) fprintf(out, "%s%s", i > 0 ? "," : "", set->columns[i].name);
        (void) fputc('\n', out);
}

static int compare_topology(const void *a, const void *b) {
        static const char *const keys[] = { "package", "die", "core", "cpu" };
        json_t *x = *(json_t *const *) a, *y = *(json_t *const *) b;

        for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
                json_int_t p = json_integer_value(json_object_get(x, keys[i]));
                json_int_t q = json_integer_value(json_object_get(y, keys[i]));

                if (p != q)
                        return p < q ? -1 : 1;
        }
        return 0;
}

/* turbostat walks package, die, core, thread; the JSON's order is by CPU id. */
static int print_cpus(const SnapshotOptions *o, const ColumnSet *set, json_t *snapshot, FILE *out) {
        json_t *cpus = json_object_get(snapshot, "cpus"), *cpu;
        size_t n = json_array_size(cpus), i;
        _cleanup_free_ json_t **sorted = calloc(n + 1, sizeof(*sorted));

        if (!sorted)
                return CTL_EXIT_FAILURE;
        json_array_foreach(cpus, i, cpu)
                sorted[i] = cpu;
        qsort(sorted, n, sizeof(*sorted), compare_topology);
        for (i = 0; i < n; i++)
                if (cpu_wanted(o, snapshot, sorted[i]))
                        print_row(o, set, snapshot, sorted[i], out);
        return CTL_EXIT_OK;
}

int snapshot_print(const SnapshotOptions *o, json_t *snapshot, bool first, FILE *out) {
        ColumnSet *set;
        int r = o->cpus ? none_wanted(o, snapshot) : CTL_EXIT_OK;

        if (r != CTL_EXIT_OK)
                return r;
        if (o->format == SNAPSHOT_JSON) {
                (void) json_dumpf(snapshot, out, JSON_COMPACT | JSON_REAL_PRECISION(9));
                (void) fputc('\n', out);
                return CTL_EXIT_OK;
        }
        set = malloc(sizeof(*set));
        if (!set)
                return CTL_EXIT_FAILURE;
        columns_from_snapshot(snapshot, o->joules, set);
        if (select_columns(o, set) < 0)
                r = CTL_EXIT_USAGE;
        else if (o->list)
                print_list(set, out);
        else {
                if (first || !o->summary_only)
                        print_header(o, set, out);
                /* One CPU is its own summary: printed once. */
                if (o->summary_only || json_array_size(json_object_get(snapshot, "cpus")) > 1)
                        print_row(o, set, snapshot, NULL, out);
                if (!o->summary_only)
                        r = print_cpus(o, set, snapshot, out);
        }
        free(set);
        return r;
}
