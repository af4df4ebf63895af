/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <stdio.h>
#include <time.h>

#include "client/text.h"
#include "cstated/timespan.h"

void text_time(json_int_t ms, char buf[TEXT_TIME]) {
        time_t s = (time_t) (ms / 1000);
        struct tm tm;

        if (ms <= 0 || !localtime_r(&s, &tm) || strftime(buf, TEXT_TIME, "%F %T%z", &tm) == 0)
                (void) snprintf(buf, TEXT_TIME, "-");
}

void text_span(json_int_t ms, char *buf, size_t size) {
        if (ms > 60000)
                ms = (ms + 500) / 1000 * 1000;
        timespan_format(ms > 0 ? (uint64_t) ms * USEC_PER_MSEC : 0, buf, size);
}
