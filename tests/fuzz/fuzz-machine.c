/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whatever a frame or a database holds as a machine: refused, or a machine that survives its own round trip. */

#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "model/machine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        _cleanup_(machine_freep) Machine *m = NULL, *again = NULL;
        _cleanup_free_ char *json = NULL;

        if (machine_from_json((const char *) data, n, &m) < 0)
                return 0;
        json = machine_to_json(m);
        if (!json || machine_from_json(json, strlen(json), &again) < 0 || !layout_equal(&m->layout, &again->layout))
                abort();
        return 0;
}
