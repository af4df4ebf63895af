/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

#include "model/cpuid-dump.h"
#include "model/errata.h"

/* How the text is cut into pieces must not matter for the verdict. */
static int run(const uint8_t *data, size_t n, size_t piece) {
        _cleanup_(cpuid_dump_freep) CpuidDump *d = cpuid_dump_new();
        const CpuidDumpGroup *groups;
        size_t n_groups;
        int r = 0;

        if (!d)
                return 0;
        for (size_t i = 0; i < n && r == 0; i += piece)
                r = cpuid_dump_feed(d, (const char *) data + i, MIN(piece, n - i));
        if (r == 0)
                r = cpuid_dump_finish(d);
        if ((r < 0) != (cpuid_dump_error(d) != NULL))
                abort();
        groups = cpuid_dump_groups(d, &n_groups);
        for (size_t i = 0; i < n_groups; i++)
                for (unsigned e = 0; e < ERRATUM_N; e++) {
                        const char *bugs = groups[i].has_bugs ? groups[i].bugs : NULL;
                        ErratumStatus s = erratum_classify((ErratumId) e, &groups[i].ident, bugs);

                        if (!erratum_advice((ErratumId) e, s))
                                abort();
                }
        return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        int whole = run(data, n, n > 0 ? n : 1);

        if (run(data, n, n > 0 ? 1 + data[0] % 64u : 1) != whole)
                abort();
        return 0;
}
