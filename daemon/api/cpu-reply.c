/* SPDX-License-Identifier: GPL-2.0-or-later */
/* /api/v1/cpu: what cpu-json.c writes of the machine now, or of the newest one in the store. */

#include <errno.h>
#include <string.h>

#include "api/cpu-json.h"
#include "api/route-private.h"

/* Whether registers can be read at all is the source's answer, not the machine's. */
static Reason unread_reason(const Service *s) {
        for (uint32_t i = 0; s->sampler && i < s->sampler->n_sources; i++)
                if (strcmp(s->sampler->sources[i].name, "msr") == 0)
                        return s->sampler->sources[i].state == SOURCE_DENIED  ? REASON_DENIED
                               : s->sampler->sources[i].state == SOURCE_ERROR ? REASON_ERROR
                                                                              : REASON_NONE;
        return REASON_NONE;
}

int route_cpu(Service *s, const Request *q, Reply *ret) {
        const Machine *m = service_machine(s);
        JsonWriter j = JSON_WRITER_INIT;
        int r;

        r = request_only(q, (const char *const[]){ NULL }, ret);
        if (r != 0)
                return r < 0 ? r : 0;
        if (!m) {
                r = reply_error(ret, 503, "no-data", NULL, "the machine has not been read yet");
                ret->retry_after_s = 1;
                return r;
        }
        r = cpu_json_write(&j, m, unread_reason(s));
        if (r == 0)
                r = reply_json(ret, 200, &j);
        jw_deinit(&j);
        return r;
}
