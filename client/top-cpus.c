/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One key a CPU, larger first; equal ones by id, so that rows do not jump. */

#include <errno.h>
#include <math.h>
#include <string.h>

#include "client/top-cpus.h"
#include "cstated/macro.h"
#include "cstated/num.h"

#define ID_MAX 65536

double top_value(const json_t *o, const char *key) {
        json_t *v = json_object_get(o, key);

        return json_is_number(v) ? json_number_value(v) : NAN;
}

double top_wakeups(const json_t *o, const char *key, double seconds) {
        return top_value(json_object_get(o, "wakeups"), key) / seconds;
}

static double sort_key(const TopCpu *c, TopSort sort, double seconds) {
        double busy = top_value(c->cpu, "busy"), key;

        switch (sort) {
        case TOP_SORT_BUSY:
                key = busy;
                break;
        case TOP_SORT_BREAK:
                key = c->breaks;
                break;
        case TOP_SORT_WAKE:
                key = top_wakeups(c->cpu, "total", seconds);
                break;
        case TOP_SORT_C6:
                key = -top_value(c->core, "c6");
                break;
        case TOP_SORT_DEMOTION:
                key = top_value(c->core, "demotion");
                break;
        case TOP_SORT_CPU:
                key = -(double) c->id;
                break;
        case TOP_SORT_HOT:
        case TOP_SORT_N:
        default:
                key = c->breaks >= TOP_STORM ? 1e6 + c->breaks
                                         : rint(busy); /* rows of the same load keep their places */
        }
        return isfinite(key) ? key : -1e300;
}

static int compare_cpus(const void *a, const void *b) {
        const TopCpu *x = a, *y = b;

        if (x->key < y->key || x->key > y->key)
                return x->key > y->key ? -1 : 1;
        return x->id < y->id ? -1 : x->id > y->id;
}

/* "package/core" -> the core's object. */
static json_t *index_cores(json_t *snapshot) {
        json_t *index = json_object(), *core;
        char key[48];
        size_t i;

        json_array_foreach(json_object_get(snapshot, "cores"), i, core) {
                (void) snprintf(key, sizeof(key), "%lld/%lld",
                        (long long) json_integer_value(json_object_get(core, "package")),
                        (long long) json_integer_value(json_object_get(core, "core")));
                (void) json_object_set(index, key, core);
        }
        return index;
}

static json_t *find_core(json_t *index, const json_t *cpu) {
        char key[48];

        (void) snprintf(key, sizeof(key), "%lld/%lld",
                (long long) json_integer_value(json_object_get(cpu, "package")),
                (long long) json_integer_value(json_object_get(cpu, "core")));
        return json_object_get(index, key);
}

bool top_filter_is_valid(const char *filter) {
        uint32_t id;
        double v;
        size_t n;
        int r;

        if (!filter[0])
                return true;
        if (filter[0] == '>')
                return num_parse_double(filter + 1, &v) == 0;
        if (filter[0] == 'p')
                return num_parse_u32(filter + 1, &id) == 0;
        _cleanup_free_ uint32_t *ids = NULL;
        r = num_parse_cpulist(filter, ID_MAX, &ids, &n);
        return r == 0 && n > 0;
}

typedef struct Filter {
        uint32_t *ids;
        size_t n_ids;
        uint32_t package;
        double busier;
        char kind; /* 'a'll, 'p'ackage, '>', 'l'ist */
} Filter;

static void filter_parse(const char *text, Filter *ret) {
        *ret = (Filter){ .kind = 'a' };
        if (!text[0] || !top_filter_is_valid(text))
                return;
        ret->kind = text[0] == '>' || text[0] == 'p' ? text[0] : 'l';
        if (ret->kind == '>')
                (void) num_parse_double(text + 1, &ret->busier);
        else if (ret->kind == 'p')
                (void) num_parse_u32(text + 1, &ret->package);
        else if (num_parse_cpulist(text, ID_MAX, &ret->ids, &ret->n_ids) < 0)
                ret->kind = 'a';
}

static bool filter_takes(const Filter *f, const TopCpu *c) {
        if (f->kind == 'p')
                return json_integer_value(json_object_get(c->cpu, "package")) == (json_int_t) f->package;
        if (f->kind == '>')
                return top_value(c->cpu, "busy") > f->busier;
        if (f->kind != 'l')
                return true;
        for (size_t i = 0; i < f->n_ids; i++)
                if ((json_int_t) f->ids[i] == c->id)
                        return true;
        return false;
}

int top_cpus_collect(const TopView *v, json_t *snapshot, TopCpus *ret) {
        json_t *cpus = json_object_get(snapshot, "cpus"), *index = index_cores(snapshot), *cpu;
        Filter filter;
        size_t i;

        ret->n_all = json_array_size(cpus);
        ret->list = calloc(ret->n_all + 1, sizeof(*ret->list));
        filter_parse(v->filter, &filter);
        json_array_foreach(cpus, i, cpu) {
                TopCpu c = { .cpu = cpu,
                        .core = find_core(index, cpu),
                        .id = json_integer_value(json_object_get(cpu, "cpu")) };

                c.breaks = top_wakeups(cpu, "break", ret->seconds);
                c.key = sort_key(&c, v->sort, ret->seconds) * (v->reverse ? -1 : 1);
                if (ret->list && filter_takes(&filter, &c))
                        ret->list[ret->n++] = c;
        }
        free(filter.ids);
        json_decref(index); /* the cores live on in the snapshot */
        if (!ret->list)
                return -ENOMEM;
        qsort(ret->list, ret->n, sizeof(*ret->list), compare_cpus);
        return 0;
}
