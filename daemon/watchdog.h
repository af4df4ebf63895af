/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * When to tell systemd that we live: with every frame of the sampler, and between frames by a
 * timer where systemd is less patient than the interval, for as long as the last frame is not too old. So a
 * stopped sampler is noticed, which sd-event's own watchdog, fed by any turn of the loop, would hide. Pure
 * arithmetic.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct Watchdog {
        bool enabled;
        uint64_t timeout_usec; /* WATCHDOG_USEC */
        uint64_t timer_usec;   /* ping this often between frames; 0: frames suffice */
        uint64_t max_age_usec; /* of the last frame, for a timer's ping to be allowed */
} Watchdog;

/*
 * From the texts of $WATCHDOG_USEC and $WATCHDOG_PID (NULL: unset), our pid and the interval. Unset, or
 * another's pid: 0 and disabled. -EINVAL for garbage or 0, and disabled.
 */
int watchdog_plan(const char *usec, const char *pid, pid_t self, uint64_t interval_usec, Watchdog *ret);
/* Whether the timer may ping now. last_frame_usec 0: none yet, which counts as fresh until max_age after
 * start_usec. */
bool watchdog_may_ping(const Watchdog *w, uint64_t now_usec, uint64_t start_usec, uint64_t last_frame_usec);
