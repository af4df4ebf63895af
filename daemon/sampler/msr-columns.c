/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A scope that has a column has its clocks too (span fields), read beside the registers. Another source may
 * have given a clock or a column before; then it is that one's, and nothing is written to it.
 */

#include "cstated/macro.h"
#include "sampler/msr-columns.h"

static const struct {
        Scope scope;
        FieldId tsc, ns; /* FIELD_NONE: the scope has no such clock */
} span_fields[] = {
        { SCOPE_CPU, FIELD_CPU_TSC, FIELD_CPU_NS },
        { SCOPE_CORE, FIELD_CORE_TSC, FIELD_CORE_NS },
        { SCOPE_MODULE, FIELD_MODULE_TSC, FIELD_NONE },
        { SCOPE_PACKAGE, FIELD_PKG_TSC, FIELD_PKG_NS },
        { SCOPE_SYSTEM, FIELD_NONE, FIELD_SYS_NS },
};

static LayoutColumn *add(Layout *l, FieldId field, uint8_t index) {
        LayoutColumn *c = field == FIELD_NONE ? NULL : layout_add(l, field, 0);

        if (c)
                c->source = index;
        return c;
}

uint32_t msr_columns_add(const MsrSet *set, Layout *l, uint8_t index) {
        uint32_t added = 0;

        for (size_t i = 0; i < ARRAY_SIZE(span_fields); i++) {
                if (set->first[span_fields[i].scope] == set->first[span_fields[i].scope + 1])
                        continue;
                added += add(l, span_fields[i].tsc, index) != NULL;
                added += add(l, span_fields[i].ns, index) != NULL;
        }
        for (size_t i = 0; i < set->n_columns; i++) {
                LayoutColumn *c = add(l, set->columns[i].r.field, index);

                if (!c)
                        continue;
                c->scale = set->columns[i].scale;
                if (set->columns[i].width)
                        c->width = set->columns[i].width;
                added++;
        }
        return added;
}

/* The slots of a field in the tick, NULL where it is not this source's. */
static uint64_t *own_values(const SourceTurn *turn, FieldId field, uint8_t index, uint8_t **ret_reasons) {
        const LayoutColumn *c = field == FIELD_NONE ? NULL : layout_find(&turn->machine->layout, field, 0);

        if (!c || c->source != index)
                return NULL;
        *ret_reasons = turn->tick->reasons + c->offset;
        return turn->tick->values + c->offset;
}

static void publish_spans(const MsrSweep *s, const SourceTurn *turn, uint8_t index) {
        for (size_t i = 0; i < ARRAY_SIZE(span_fields); i++) {
                const MsrStamp *stamps = s->stamps[span_fields[i].scope];
                uint32_t n = machine_n_entities(turn->machine, span_fields[i].scope);
                uint8_t *tsc_reasons, *ns_reasons;
                uint64_t *tscs = own_values(turn, span_fields[i].tsc, index, &tsc_reasons);
                uint64_t *times = own_values(turn, span_fields[i].ns, index, &ns_reasons);

                for (uint32_t e = 0; tscs && e < n; e++) {
                        tscs[e] = stamps[e].tsc;
                        tsc_reasons[e] = stamps[e].tsc_reason;
                }
                for (uint32_t e = 0; times && e < n; e++) {
                        times[e] = stamps[e].ns;
                        ns_reasons[e] = stamps[e].ns_reason;
                }
        }
}

void msr_columns_publish(const MsrSweep *s, const SourceTurn *turn, uint8_t index) {
        for (size_t i = 0; i < s->set.n_columns; i++) {
                const MsrColumn *c = &s->set.columns[i];
                uint8_t *reasons;
                uint64_t *values = own_values(turn, c->r.field, index, &reasons);

                for (uint32_t e = 0; values && e < c->n; e++) {
                        values[e] = c->slots[e].value;
                        reasons[e] = c->slots[e].reason;
                }
        }
        publish_spans(s, turn, index);
}
