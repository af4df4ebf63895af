/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "client/ctl.h"
#include "cstated/api.h"

void ctl_error(const char *format, ...) {
}

int ctl_usage_error(const char *verb) {
        return CTL_EXIT_USAGE;
}

int ctl_finish_stdout(void) {
        return CTL_EXIT_OK;
}

int ctl_words(int argc, char **argv, int min, int max, const char *what) {
        return 0;
}

int ctl_needs_history(const Ctl *ctl, const char *verb) {
        return CTL_EXIT_OK;
}

unsigned ctl_width(void) {
        return 0;
}
