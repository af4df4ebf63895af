/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The most telling columns stand first, so that 40 columns still say which CPU is busy, deep or broken. A
 * core's values stand in the row of each of its CPUs, unlike turbostat's: rows are sorted, and a row must
 * speak for itself.
 */

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "client/top-cpus.h"
#include "client/top-view.h"
#include "cstated/macro.h"
#include "cstated/num.h"

#define STATES_MAX 8

typedef enum CellSource { CELL_CPU, CELL_CORE, CELL_PACKAGE, CELL_RATE, CELL_WAKE } CellSource;

typedef struct Cell {
        const char *name, *key;
        CellSource source;
        int width, decimals;
} Cell;

static const Cell cpu_cells[] = {
        { "Busy%", "busy", CELL_CPU, 6, 1 },
        { "CPU%c6", "c6", CELL_CORE, 7, 1 },
        { "CPU%c7", "c7", CELL_CORE, 7, 1 },
        { "Break/s", "break", CELL_WAKE, 8, 0 },
        { "Wake/s", "total", CELL_WAKE, 7, 0 },
        { "Demo%", "demotion", CELL_CORE, 6, 1 },
        { "CPU%c1", "c1", CELL_CPU, 7, 1 },
        { "Bzy_MHz", "bzy_mhz", CELL_CPU, 8, 0 },
        { "IRQ/s", "irq", CELL_RATE, 7, 0 },
        { "CoreTmp", "core_temp", CELL_CORE, 8, 0 },
};

static const Cell package_cells[] = {
        { "PkgWatt", "pkg_watts", CELL_PACKAGE, 8, 2 }, { "Pkg%pc6", "pc6", CELL_PACKAGE, 8, 1 },
        { "Busy%", "busy", CELL_PACKAGE, 6, 1 },        { "CPU%c6", "c6", CELL_PACKAGE, 7, 1 },
        { "Break/s", "break", CELL_WAKE, 8, 0 },        { "Wake/s", "total", CELL_WAKE, 7, 0 },
        { "RAMWatt", "ram_watts", CELL_PACKAGE, 8, 2 }, { "Pkg%pc2", "pc2", CELL_PACKAGE, 8, 1 },
        { "PkgTmp", "pkg_temp", CELL_PACKAGE, 7, 0 },
};

static const char *const sort_names[TOP_SORT_N] = {
        [TOP_SORT_HOT] = "hot",
        [TOP_SORT_BUSY] = "Busy%",
        [TOP_SORT_BREAK] = "Break/s",
        [TOP_SORT_WAKE] = "Wake/s",
        [TOP_SORT_C6] = "CPU%c6",
        [TOP_SORT_DEMOTION] = "Demo%",
        [TOP_SORT_CPU] = "CPU",
};

const char *top_sort_name(TopSort s) {
        return s < TOP_SORT_N ? sort_names[s] : "";
}

void top_frame_deinit(TopFrame *f) {
        free(f->lines);
        *f = (TopFrame){};
}

/* ---- lines ---- */

static TopLine *frame_add(TopFrame *f, TopAttr attr) {
        if (f->n == f->size) {
                size_t size = MAX(2 * f->size, (size_t) 32);
                TopLine *lines = reallocarray(f->lines, size, sizeof(*lines));

                if (!lines)
                        return NULL;
                f->lines = lines;
                f->size = size;
        }
        f->lines[f->n] = (TopLine){ .attr = attr };
        return &f->lines[f->n++];
}

static void line_put(TopLine *l, const char *format, ...) _printf_(2, 3);

/* Appends; what would not fit is cut. A line that could not be had swallows it. */
static void line_put(TopLine *l, const char *format, ...) {
        size_t n = l ? strlen(l->text) : 0;
        va_list ap;

        if (!l)
                return;
        va_start(ap, format);
        (void) vsnprintf(l->text + n, sizeof(l->text) - n, format, ap);
        va_end(ap);
}

static void line_number(TopLine *l, int width, int decimals, double v) {
        char text[32] = "-";

        if (isfinite(v))
                (void) num_format_fixed(v, decimals, text, sizeof(text));
        line_put(l, " %*s", width, text);
}

/* ---- cells ---- */

static double cell_value(const Cell *c, const json_t *entity, const json_t *core, double seconds) {
        switch (c->source) {
        case CELL_CORE:
                return top_value(core, c->key);
        case CELL_RATE:
                return top_value(entity, c->key) / seconds;
        case CELL_WAKE:
                return top_wakeups(entity, c->key, seconds);
        case CELL_CPU:
        case CELL_PACKAGE:
        default:
                return top_value(entity, c->key);
        }
}

/* ---- the frame ---- */

static void add_head(TopFrame *f, const TopView *v, json_t *snapshot, double seconds) {
        const json_t *system = json_object_get(snapshot, "system");
        time_t end = (time_t) (json_integer_value(json_object_get(snapshot, "end")) / 1000);
        double self = 100 * top_value(system, "self_cpu_seconds") / seconds;
        TopLine *l = frame_add(f, TOP_PLAIN);
        char clock[16] = "";
        struct tm tm;

        if (localtime_r(&end, &tm))
                (void) strftime(clock, sizeof(clock), "%T", &tm);
        line_put(l, "cstatectl top  %s %.2f s%s  %s", clock, seconds, v->paused ? "  PAUSED" : "",
                v->place ? v->place : "");
        line_put(l, "  cost:");
        if (isfinite(self))
                line_put(l, " sampler %.2f%% of a CPU, %.0f wakeups", self,
                        MAX(0.0, top_value(system, "self_wakeups_caused")));
        if (v->own_percent >= 0)
                line_put(l, "%s top %.2f%%", isfinite(self) ? "," : "", v->own_percent);
}

static void add_system(TopFrame *f, json_t *snapshot, double seconds) {
        static const struct {
                const char *name, *key;
                int decimals;
        } figures[] = { { "W", "node_watts", 2 }, { "busy%", "busy", 1 }, { "c6%", "c6", 1 },
                { "pc6%", "pc6", 1 } };
        const json_t *system = json_object_get(snapshot, "system"), *w = json_object_get(system, "wakeups");
        const char *method = json_string_value(json_object_get(w, "method"));
        TopLine *l = frame_add(f, TOP_PLAIN);

        for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
                double v = top_value(system, figures[i].key);
                char text[32];

                if (!isfinite(v))
                        continue;
                (void) num_format_fixed(v, figures[i].decimals, text, sizeof(text));
                line_put(l, "%s%s %s", l->text[0] ? "  " : "", figures[i].name, text);
        }
        if (isfinite(top_wakeups(system, "total", seconds)))
                line_put(l, "  wake/s %.0f", top_wakeups(system, "total", seconds));
        if (isfinite(top_wakeups(system, "break", seconds)))
                line_put(l, "  break/s %.0f (%s)", top_wakeups(system, "break", seconds),
                        method ? method : "?");
}

static bool cell_is_used(const Cell *c, json_t *array, double seconds) {
        json_t *e;
        size_t i;

        json_array_foreach(array, i, e)
                if (isfinite(cell_value(c, e, e, seconds)))
                        return true;
        return false;
}

static void add_packages(TopFrame *f, json_t *snapshot, double seconds) {
        json_t *packages = json_object_get(snapshot, "packages"), *p;
        bool used[ARRAY_SIZE(package_cells)];
        TopLine *l = frame_add(f, TOP_HEADER);
        size_t i;

        line_put(l, "%-6s", "PKG");
        for (size_t k = 0; k < ARRAY_SIZE(package_cells); k++) {
                used[k] = cell_is_used(&package_cells[k], packages, seconds);
                if (used[k])
                        line_put(l, " %*s", package_cells[k].width, package_cells[k].name);
        }
        json_array_foreach(packages, i, p) {
                char id[32];

                (void) snprintf(id, sizeof(id), "%lld",
                        (long long) json_integer_value(json_object_get(p, "package")));
                if (json_is_integer(json_object_get(p, "die")))
                        (void) snprintf(id + strlen(id), sizeof(id) - strlen(id), "/%lld",
                                (long long) json_integer_value(json_object_get(p, "die")));
                l = frame_add(f, TOP_PLAIN);
                line_put(l, "%-6s", id);
                for (size_t k = 0; k < ARRAY_SIZE(package_cells); k++)
                        if (used[k])
                                line_number(l, package_cells[k].width, package_cells[k].decimals,
                                        cell_value(&package_cells[k], p, NULL, seconds));
        }
}

typedef struct CpuColumns {
        bool used[ARRAY_SIZE(cpu_cells)];
        const char *states[STATES_MAX]; /* requested; POLL is no sleep */
        size_t n_states;
} CpuColumns;

static void find_states(json_t *snapshot, CpuColumns *ret) {
        json_t *cpu, *state;
        const char *name;
        size_t i;

        json_array_foreach(json_object_get(snapshot, "cpus"), i, cpu)
                json_object_foreach(json_object_get(cpu, "idle"), name, state) {
                        size_t k = 0;

                        while (k < ret->n_states && strcmp(ret->states[k], name) != 0)
                                k++;
                        if (k == ret->n_states && k < STATES_MAX && strcmp(name, "POLL") != 0)
                                ret->states[ret->n_states++] = name;
                }
}

static void add_cpu_header(TopFrame *f, json_t *snapshot, double seconds, CpuColumns *ret) {
        TopLine *l = frame_add(f, TOP_HEADER);

        *ret = (CpuColumns){};
        line_put(l, "%-6s", "CPU");
        for (size_t k = 0; k < ARRAY_SIZE(cpu_cells); k++) {
                json_t *array =
                        json_object_get(snapshot, cpu_cells[k].source == CELL_CORE ? "cores" : "cpus");

                ret->used[k] = cell_is_used(&cpu_cells[k], array, seconds);
                if (ret->used[k])
                        line_put(l, " %*s", cpu_cells[k].width, cpu_cells[k].name);
        }
        find_states(snapshot, ret);
        for (size_t k = 0; k < ret->n_states; k++)
                line_put(l, " %5.5s%%", ret->states[k]);
        line_put(l, " %5s %4s", "Core", "Pkg");
}

static void add_cpu(TopFrame *f, const CpuColumns *columns, const TopCpu *c, double seconds) {
        TopLine *l = frame_add(f, c->breaks >= TOP_STORM ? TOP_ALARM : TOP_PLAIN);

        line_put(l, "%-6lld", (long long) c->id);
        for (size_t k = 0; k < ARRAY_SIZE(cpu_cells); k++)
                if (columns->used[k])
                        line_number(l, cpu_cells[k].width, cpu_cells[k].decimals,
                                cell_value(&cpu_cells[k], c->cpu, c->core, seconds));
        for (size_t k = 0; k < columns->n_states; k++)
                line_number(l, 6, 1,
                        top_value(json_object_get(json_object_get(c->cpu, "idle"), columns->states[k]),
                                "time"));
        line_put(l, " %5lld %4lld", (long long) json_integer_value(json_object_get(c->cpu, "core")),
                (long long) json_integer_value(json_object_get(c->cpu, "package")));
}

static void add_foot(TopFrame *f, const TopView *v, const TopCpus *cpus) {
        TopLine *l = frame_add(f, TOP_FOOT);

        if (v->typing) {
                line_put(l, "filter (0-3,8  p1  >5, Enter): %s_", v->prompt);
                return;
        }
        line_put(l, "sort:%s%s", top_sort_name(v->sort), v->reverse ? " reversed" : "");
        if (v->filter[0])
                line_put(l, "  filter:%s (%zu of %zu)", v->filter, cpus->n, cpus->n_all);
        line_put(l, "  q quit  s sort  r reverse  / filter  space pause  up/down");
}

static void frame_cut(TopFrame *f, unsigned width) {
        for (size_t i = 0; i < f->n; i++)
                if (width < TOP_WIDTH_MAX)
                        f->lines[i].text[width] = '\0';
}

int top_render(TopView *v, json_t *snapshot, unsigned width, unsigned height, TopFrame *ret) {
        double ms = top_value(snapshot, "interval_ms");
        TopCpus cpus = { .seconds = ms > 0 ? ms / 1000 : 1 };
        CpuColumns columns;
        size_t room, last;
        int r;

        r = top_cpus_collect(v, snapshot, &cpus);
        if (r < 0)
                return r;
        ret->n = 0;
        add_head(ret, v, snapshot, cpus.seconds);
        add_system(ret, snapshot, cpus.seconds);
        add_packages(ret, snapshot, cpus.seconds);
        add_cpu_header(ret, snapshot, cpus.seconds, &columns);
        if (height > 0 && ret->n + 1 > height)
                ret->n = height > 1 ? height - 1 : 0;
        room = height > 0 ? height - MIN(ret->n + 1, (size_t) height) : cpus.n;
        v->scroll = MIN(v->scroll, cpus.n > room ? cpus.n - room : 0);
        last = MIN(cpus.n, v->scroll + room);
        for (size_t i = v->scroll; i < last; i++)
                add_cpu(ret, &columns, &cpus.list[i], cpus.seconds);
        while (height > 0 && ret->lines && ret->n + 1 < height && frame_add(ret, TOP_PLAIN))
                ;
        if (height > 0)
                add_foot(ret, v, &cpus);
        frame_cut(ret, width);
        free(cpus.list);
        return ret->lines ? 0 : -ENOMEM;
}
