/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Between plan.c, which keeps the lists, and plan-resolve.c, which fills them. */

#include "query/plan.h"

/* The ratio whose spread over ticks rollups keep, FIELD_NONE. */
FieldId plan_kept_ratio(const MetricSpec *m);
/* The series of that identity, made if it is new. Borrowed until the next call. PLAN_E_TOO_MANY, -ENOMEM. */
int plan_series(Plan *p, const Series *key, Series **ret);
/* Appends a member. -ENOMEM. */
int plan_member(Plan *p, const Member *m);
