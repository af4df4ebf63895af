/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table itself is made by dashboard/embed.py; knows no libmicrohttpd. */

#include <string.h>

#include "http/dashboard-private.h"
#include "http/dashboard.h"

const DashboardFile *dashboard_files(size_t *ret_n) {
        *ret_n = dashboard_n_embedded;
        return dashboard_embedded;
}

const DashboardFile *dashboard_find(const char *path) {
        for (size_t i = 0; i < dashboard_n_embedded; i++)
                if (strcmp(dashboard_embedded[i].path, path) == 0)
                        return &dashboard_embedded[i];
        return NULL;
}
