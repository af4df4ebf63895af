/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From totals to lines: units, which entities are shown, and sums by package. */

#include <math.h>
#include <string.h>

#include "api/om-view.h"
#include "api/route-private.h"

bool om_view_begin(OmView *v, Service *s) {
        *v = (OmView){ .t = s->totals, .m = service_machine(s), .s = s };
        return v->t && v->m;
}

/* Native units to seconds, joules or counts; NAN where the clock of the unit is not known. */
double om_view_value(const OmView *v, const TotalsColumn *c, int64_t n) {
        switch (field_spec(c->field)->unit) {
        case FIELD_UNIT_TICK:
                return v->m->tsc_hz > 0 ? (double) n * (1 << FIELD_TICK_SHIFT) / (double) v->m->tsc_hz : NAN;
        case FIELD_UNIT_NS:
                return (double) n * 1e-9;
        case FIELD_UNIT_USEC:
                return (double) n * 1e-6;
        case FIELD_UNIT_JIFFY:
                return v->m->user_hz > 0 ? (double) n / v->m->user_hz : NAN;
        case FIELD_UNIT_ENERGY:
        case FIELD_UNIT_TIME:
                return (double) n * c->scale;
        case FIELD_UNIT_COUNT:
        case FIELD_UNIT_CELSIUS:
        case FIELD_UNIT_BYTE:
        default:
                return (double) n;
        }
}

bool om_view_is_online(const OmView *v, Scope scope, const TotalsEntity *e) {
        switch (scope) {
        case SCOPE_CPU:
                return machine_cpu_index(v->m, (uint32_t) e->cpu) != UINT32_MAX;
        case SCOPE_CORE:
                return machine_core_index(v->m, (int32_t) e->package, (int32_t) e->die, (int32_t) e->core) !=
                       UINT32_MAX;
        case SCOPE_SYSTEM:
        case SCOPE_PACKAGE:
        case SCOPE_MODULE:
        default:
                return true;
        }
}

static void label_entity(OpenMetrics *o, Scope scope, const TotalsEntity *e) {
        if (scope == SCOPE_CPU) {
                om_label_id(o, "cpu", e->cpu);
                return;
        }
        om_label_id(o, "package", e->package);
        om_label_id(o, "die", e->die);
        om_label_id(o, "module", e->module);
        om_label_id(o, "core", e->core);
}

void om_view_put(OpenMetrics *o, const OmView *v, const TotalsColumn *c, double value) {
        if (field_spec(c->field)->unit == FIELD_UNIT_COUNT)
                om_count(o, (int64_t) value);
        else
                om_value(o, value);
}

/* One line an entity of the column's own scope. */
void om_lines_by_entity(
        OpenMetrics *o, const OmView *v, FieldId field, const char *label, const char *value) {
        const TotalsEntity *entities;
        Scope scope = field_spec(field)->scope;
        size_t n = totals_entities(v->t, scope, &entities);
        TotalsColumn c;

        if (!totals_column(v->t, field, 0, &c))
                return;
        for (size_t i = 0; i < n; i++) {
                if (!c.seen[i] || !om_view_is_online(v, scope, &entities[i]) ||
                        isnan(om_view_value(v, &c, c.values[i])))
                        continue;
                om_line(o);
                label_entity(o, scope, &entities[i]);
                if (label)
                        om_label(o, label, value);
                om_view_put(o, v, &c, om_view_value(v, &c, c.values[i]));
        }
}

static void sum_add(PackageSums *sums, const TotalsEntity *e, double value) {
        for (size_t i = 0; i < sums->n; i++)
                if (sums->list[i].package == e->package && sums->list[i].die == e->die) {
                        sums->list[i].value += value;
                        return;
                }
        if (sums->n < PACKAGES_MAX)
                sums->list[sums->n++] = (PackageSum){ e->package, e->die, value };
}

bool om_is_poll(const char *state) {
        return strcmp(state, "POLL") == 0;
}

/* Adds a field's totals up by package. state: only that one of the idle states; NULL: all (that sleep). */
void om_sum_field(const OmView *v, FieldId field, const char *state, PackageSums *sums) {
        const TotalsEntity *entities;
        size_t n = totals_entities(v->t, field_spec(field)->scope, &entities);
        bool by_state = field_is_by_state(field);

        for (uint8_t k = 0; k < (by_state ? IDLE_STATES_MAX : 1); k++) {
                TotalsColumn c;

                if (!totals_column(v->t, field, k, &c))
                        continue;
                for (size_t i = 0; i < n; i++) {
                        const char *name = by_state ? totals_state_name(v->t, i, k) : NULL;

                        if (!c.seen[i])
                                continue;
                        if (by_state && state ? !name || strcmp(name, state) != 0
                                              : by_state && name && om_is_poll(name))
                                continue;
                        sum_add(sums, &entities[i], om_view_value(v, &c, c.values[i]));
                }
        }
}

void om_lines_by_package(OpenMetrics *o, const OmView *v, FieldId field, const char *state,
        const char *label, const char *value) {
        PackageSums sums = {};

        om_sum_field(v, field, state, &sums);
        for (size_t i = 0; i < sums.n; i++) {
                if (isnan(sums.list[i].value))
                        continue;
                om_line(o);
                om_label_id(o, "package", sums.list[i].package);
                om_label_id(o, "die", sums.list[i].die);
                if (label)
                        om_label(o, label, value);
                if (field_spec(field)->unit == FIELD_UNIT_COUNT)
                        om_count(o, (int64_t) sums.list[i].value);
                else
                        om_value(o, sums.list[i].value);
        }
}

/* Is there any column of the field? */
bool om_view_has(const OmView *v, FieldId field) {
        TotalsColumn c;

        for (uint8_t k = 0; k < field_n_instances(field); k++)
                if (totals_column(v->t, field, k, &c))
                        return true;
        return false;
}
