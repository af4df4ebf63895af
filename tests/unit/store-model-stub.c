/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Stand-ins for the model while it is not there: weak, so that the real ones win. To be removed with its
 * arrival. */

#include "tests/unit/test.h"

#include <errno.h>

#include "tests/unit/store-fixture.h"

__attribute__((weak)) Machine *machine_new(void) {
        return calloc(1, sizeof(Machine));
}

__attribute__((weak)) Machine *machine_free(Machine *m) {
        if (m) {
                free(m->cpus);
                free(m->cores);
                free(m->packages);
                free(m->idle_sets);
                free(m->idents);
                free(m);
        }
        return NULL;
}

__attribute__((weak)) char *machine_to_json(const Machine *m) {
        char *text = NULL;

        return asprintf(&text, "%u %u %u", m->n_cpus, m->n_packages, m->generation) > 0 ? text : NULL;
}

__attribute__((weak)) int machine_from_json(const char *json, size_t n, Machine **ret) {
        unsigned cpus, packages, generation;

        if (sscanf(json, "%u %u %u", &cpus, &packages, &generation) != 3)
                return -EBADMSG;
        *ret = fixture_machine(cpus, packages, generation);
        return 0;
}

__attribute__((weak)) void sample_layout(const Machine *m, Layout *ret) {
        *ret = m->layout;
        (void) layout_add(ret, FIELD_C1, 0);
        (void) layout_add(ret, FIELD_C1_SPAN, 0);
        (void) layout_add(ret, FIELD_SELF_READS, 0);
        layout_finish(ret);
}
