/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Views for people: v_cpu_1m and its kin, in percent, MHz, watts and events a second, a ratio always being a
 * sum over a sum. A view shows what the file knows and is made again when a metric comes.
 */

#include <errno.h>
#include <string.h>

#include "store/writer.h"

typedef struct ViewColumn {
        const char *name;
        FieldId numerator;
        FieldId denominator; /* FIELD_NONE: the row's dt */
        double factor;       /* of scaled numerator / scaled denominator */
} ViewColumn;

static const ViewColumn view_columns[] = {
        { "busy", FIELD_MPERF, FIELD_CPU_TSC, 100 },
        { "avg_mhz", FIELD_APERF, FIELD_CPU_NS, 1024e3 },
        { "tsc_mhz", FIELD_CPU_TSC, FIELD_CPU_NS, 1024e3 },
        { "irq_s", FIELD_IRQ, FIELD_NONE, 1e9 },
        { "smi_s", FIELD_SMI, FIELD_NONE, 1e9 },
        { "idle", FIELD_IDLE_TIME, FIELD_IDLE_NS, 1e5 },
        { "usage_s", FIELD_IDLE_USAGE, FIELD_NONE, 1e9 },
        { "above_s", FIELD_IDLE_ABOVE, FIELD_NONE, 1e9 },
        { "below_s", FIELD_IDLE_BELOW, FIELD_NONE, 1e9 },
        { "wake_interrupt_s", FIELD_WAKE_INTERRUPT, FIELD_NONE, 1e9 },
        { "wake_store_s", FIELD_WAKE_STORE, FIELD_NONE, 1e9 },
        { "wake_break_s", FIELD_WAKE_BREAK, FIELD_NONE, 1e9 },
        { "wake_immediate_s", FIELD_WAKE_IMMEDIATE, FIELD_NONE, 1e9 },
        { "c1", FIELD_C1, FIELD_C1_SPAN, 100 },
        { "c3", FIELD_C3, FIELD_CORE_TSC, 100 },
        { "c6", FIELD_C6, FIELD_CORE_TSC, 100 },
        { "c7", FIELD_C7, FIELD_CORE_TSC, 100 },
        { "mc6", FIELD_MC6, FIELD_MODULE_TSC, 100 },
        { "core_watts", FIELD_ENERGY_CORE, FIELD_CORE_NS, 1e9 },
        { "pc2", FIELD_PC2, FIELD_PKG_TSC, 100 },
        { "pc3", FIELD_PC3, FIELD_PKG_TSC, 100 },
        { "pc6", FIELD_PC6, FIELD_PKG_TSC, 100 },
        { "pc7", FIELD_PC7, FIELD_PKG_TSC, 100 },
        { "pc8", FIELD_PC8, FIELD_PKG_TSC, 100 },
        { "pc9", FIELD_PC9, FIELD_PKG_TSC, 100 },
        { "pc10", FIELD_PC10, FIELD_PKG_TSC, 100 },
        { "sleeps_s", FIELD_SLEEP_HIST, FIELD_NONE, 1e9 },
        { "pkg_watts", FIELD_ENERGY_PKG, FIELD_PKG_NS, 1e9 },
        { "ram_watts", FIELD_ENERGY_RAM, FIELD_PKG_NS, 1e9 },
        { "cor_watts", FIELD_ENERGY_COR, FIELD_PKG_NS, 1e9 },
        { "gfx_watts", FIELD_ENERGY_GFX, FIELD_PKG_NS, 1e9 },
        { "sys_watts", FIELD_ENERGY_SYS, FIELD_SYS_NS, 1e9 },
        { "stat_busy", FIELD_STAT_BUSY, FIELD_STAT_ALL, 100 },
        { "trace", FIELD_TRACE_NS, FIELD_NONE, 100 },
        { "self_cpu", FIELD_SELF_CPU_NS, FIELD_NONE, 100 },
        { "self_reads_s", FIELD_SELF_READS, FIELD_NONE, 1e9 },
        { "self_wakeups_s", FIELD_SELF_WAKEUPS, FIELD_NONE, 1e9 },
};

/* "name_state" as the column's own suffix has it. */
static void append_metric(sqlite3_str *text, const RollupTable *t, const RollupMetric *m) {
        size_t prefix = strlen(field_spec(m->field)->name);

        if (field_spec(m->field)->kind == FIELD_GAUGE)
                sqlite3_str_appendf(text, ", round(%!.17g * \"%w\" / coalesce(\"%w_n\", n), 2) AS \"%w\"",
                        m->scale, m->column, m->column, m->column);
        for (size_t i = 0; i < ARRAY_SIZE(view_columns); i++) {
                const ViewColumn *v = &view_columns[i];
                const char *den = "dt";
                int at;

                if (v->numerator != m->field)
                        continue;
                at = rollup_find(t, v->denominator, "", 1);
                if (v->denominator != FIELD_NONE) {
                        if (at < 0)
                                continue;
                        den = t->metrics[at].column;
                }
                sqlite3_str_appendf(text, ", round(%!.17g * \"%w\" / nullif(\"%w\", 0), 4) AS \"%w%w\"",
                        v->factor * m->scale, m->column, den, v->name, m->column + prefix);
        }
}

static int make_view(Store *s, RollupScope scope, StoreTier tier) {
        static const char *const keys[ROLLUP_SCOPES] = {
                [ROLLUP_CPU] = "cpu, ",
                [ROLLUP_PKG] = "package, nullif(die, -1) AS die, ",
                [ROLLUP_SYS] = "",
        };
        const RollupTable *t = &s->rollups.tables[scope];
        const char *name = rollup_table_name(scope, tier);
        sqlite3_str *text = sqlite3_str_new(s->db);
        char *sql;
        int r;

        sqlite3_str_appendf(text,
                "DROP VIEW IF EXISTS v_%s; CREATE VIEW v_%s AS SELECT"
                " strftime('%%Y-%%m-%%dT%%H:%%M:%%SZ', t / 1000000, 'unixepoch') AS time, %s n",
                name, name, keys[scope]);
        for (size_t i = 0; i < t->n; i++)
                append_metric(text, t, &t->metrics[i]);
        sqlite3_str_appendf(text, " FROM %s", name);
        sql = sqlite3_str_finish(text);
        if (!sql)
                return -ENOMEM;
        r = db_exec(s->db, sql);
        sqlite3_free(sql);
        return r;
}

int rollup_make_views(Store *s) {
        int r = 0;

        for (unsigned scope = 0; r == 0 && scope < ROLLUP_SCOPES; scope++)
                for (unsigned tier = TIER_1M; r == 0 && tier <= TIER_1H; tier++)
                        r = make_view(s, (RollupScope) scope, (StoreTier) tier);
        return r;
}
