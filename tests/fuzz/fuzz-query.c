/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A query string: split, decoded, checked by every form. What is taken must hold what a query may assume. */

#include <stdlib.h>
#include <string.h>

#include "api/route.h"
#include "cstated/api.h"
#include "tests/fuzz/fuzz.h"

#define NOW_US 1790000000000000ULL

static void check(const QuerySpec *q) {
        if (q->start_us >= q->end_us || q->n_metrics > QUERY_METRICS_MAX || q->aggs == 0)
                abort();
        if (q->step_us > 0 && (q->end_us - q->start_us) / q->step_us > QUERY_POINTS_MAX)
                abort();
        for (size_t i = 1; i < q->n_cpus; i++)
                if (q->cpus[i] <= q->cpus[i - 1])
                        abort();
        if (memchr(q->state, '\0', sizeof(q->state)) == NULL)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        QueryParam params[API_PARAMS_MAX];
        size_t n_params;
        char *text;

        if (n > API_HEAD_MAX)
                return 0;
        text = strndup((const char *) data, n);
        if (!text)
                return 0;
        if (route_parse_query_string(text, params, API_PARAMS_MAX, &n_params) == 0)
                for (unsigned form = QUERY_FORM_QUERY; form <= QUERY_FORM_EVENTS; form++) {
                        QueryError error = {};
                        QuerySpec q;

                        if (query_spec_parse_form((QueryForm) form, params, n_params, NOW_US, &q, &error) <
                                0) {
                                if (!error.message[0])
                                        abort();
                                continue;
                        }
                        check(&q);
                        query_spec_deinit(&q);
                }
        free(text);
        return 0;
}
