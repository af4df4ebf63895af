/* SPDX-License-Identifier: GPL-2.0-or-later */
/* /api/v1/snapshot: the last complete interval, as snapshot.c tells it. */

#include <errno.h>

#include "api/route-private.h"
#include "api/snapshot.h"

int route_snapshot(Service *s, const Request *q, Reply *ret) {
        JsonWriter j = JSON_WRITER_INIT;
        int r;

        r = request_only(q, (const char *const[]){ NULL }, ret);
        if (r != 0)
                return r < 0 ? r : 0;
        if (!s->sample) {
                r = reply_error(ret, 503, "no-data", NULL, "no interval is complete yet");
                ret->retry_after_s = 1;
                return r;
        }
        r = snapshot_write(&j, s->sample->machine, s->sample);
        if (r < 0) {
                jw_deinit(&j);
                return r;
        }
        return reply_json(ret, 200, &j);
}
