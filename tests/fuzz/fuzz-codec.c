/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two readers of packed bytes: a lone column (first two bytes say how many values), and a whole chunk. */

#include <stdlib.h>

#include "cstated/macro.h"
#include "store/chunk.h"
#include "tests/fuzz/fuzz.h"

static void run_column(const uint8_t *data, size_t n) {
        static int64_t values[2][CODEC_TICKS_MAX];
        static uint8_t reasons[2][CODEC_TICKS_MAX];
        CodecContext c = {};
        unsigned at = 0;
        const uint8_t *p, *end = data + n;
        size_t n_values;

        if (n < 2)
                return;
        n_values = (data[0] | (size_t) data[1] << 8) % (CODEC_TICKS_MAX + 2);
        for (p = data + 2; p < end; at ^= 1) {
                if (codec_decode(&p, end, n_values, &c, values[at], reasons[at]) < 0)
                        break;
                /* the last column is what the next one's may refer to, either way */
                c.beside = c.reference = (CodecNeighbour){values[at], reasons[at]};
        }
}

static void run_chunk(const uint8_t *data, size_t n) {
        _cleanup_free_ uint64_t *times = NULL;
        _cleanup_(chunk_deinit) Chunk c = {};

        if (chunk_open_memory(&c, data, n) < 0)
                return;
        times = calloc(3 * c.n, sizeof(*times));
        if (!times)
                return;
        (void) chunk_times(&c, times, times + c.n, times + 2 * c.n);
        for (size_t i = 1; i < c.n_columns; i++) {
                _cleanup_free_ int64_t *values = NULL;
                _cleanup_free_ uint8_t *reasons = NULL;
                FieldId field = c.columns[i].field;
                size_t n_entities = c.n_entities[field_spec(field)->scope];

                if (n_entities > 8192) /* a caller compares the counts with the machine's first */
                        continue;
                values = calloc(n_entities * c.n + 1, sizeof(*values));
                reasons = calloc(n_entities * c.n + 1, 1);
                if (values && reasons)
                        (void) chunk_column(&c, field, c.columns[i].instance, values, reasons);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        run_column(data, n);
        run_chunk(data, n);
        return 0;
}
