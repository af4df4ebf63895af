/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Between dashboard.c and what dashboard/embed.py writes. */

#include "http/dashboard.h"

extern const DashboardFile dashboard_embedded[];
extern const size_t dashboard_n_embedded;
