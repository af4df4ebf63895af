/* SPDX-License-Identifier: GPL-2.0-or-later */
/* /api/v1/cpu: what cpu-json.c writes of the machine now, or of the newest one in the store. */

#include <errno.h>

#include "api/cpu-json.h"
#include "api/route-private.h"

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
        r = cpu_json_write(&j, m);
        if (r == 0)
                r = reply_json(ret, 200, &j);
        jw_deinit(&j);
        return r;
}
