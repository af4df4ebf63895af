/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The dashboard's files, which the build puts into the binary: nothing is read from disk, no other host asked. */

#include <stddef.h>

typedef struct DashboardFile {
        const char *path; /* "/", "/dashboard/main.js" */
        const char *content_type;
        const char *etag; /* quoted */
        const unsigned char *body;
        size_t n_body;
} DashboardFile;

/* What a browser may do with them: load from here alone, run no inline script, be framed by nobody. */
#define DASHBOARD_POLICY                                                                                    \
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"

/* By the path of a request; NULL: none of these. */
const DashboardFile *dashboard_find(const char *path);
/* All, "/" first; *ret_n: how many. */
const DashboardFile *dashboard_files(size_t *ret_n);
