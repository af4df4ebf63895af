/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>

#include "cstated/macro.h"
#include "cstated/num.h"
#include "watchdog.h"

#define TIMER_MIN_USEC UINT64_C(10000)

int watchdog_plan(const char *usec, const char *pid, pid_t self, uint64_t interval_usec, Watchdog *ret) {
        uint64_t timeout, owner;

        *ret = (Watchdog){};
        if (!usec)
                return 0;
        if (pid && num_parse_u64(pid, &owner) < 0)
                return -EINVAL;
        if (pid && owner != (uint64_t) self)
                return 0;
        if (num_parse_u64(usec, &timeout) < 0 || timeout == 0 || timeout == UINT64_MAX)
                return -EINVAL;
        *ret = (Watchdog){
                .enabled = true,
                .timeout_usec = timeout,
                .timer_usec = timeout / 2 < interval_usec ? MAX(timeout / 2, TIMER_MIN_USEC) : 0,
                .max_age_usec = MAX(3 * interval_usec, timeout),
        };
        return 0;
}

bool watchdog_may_ping(const Watchdog *w, uint64_t now_usec, uint64_t start_usec, uint64_t last_frame_usec) {
        uint64_t since = last_frame_usec ? last_frame_usec : start_usec;

        return w->enabled && (now_usec < since || now_usec - since < w->max_age_usec);
}
