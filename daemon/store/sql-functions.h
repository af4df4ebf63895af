/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Raw seconds in SQL: table-valued functions over the packed chunks, for a connection that reads.
 *
 *   cpu_raw    t, cpu, core, package, dt, then a column a field (idle_time_C6, ...): a row a tick and CPU.
 * Bounds on t and an equality on cpu are pushed down, only the columns used are decoded. t is the end of the
 * tick, us. cpu_agg(t_from, t_to)    cpu, core, package, n, dt, then the sums over ticks that end in
 * (t_from, t_to].
 *
 * Values of a core stand with each of its CPUs. Private to daemon/store.
 */

#include "store/db.h"

/* path: of the database that db has open; the functions read it through connections of their own. */
int sql_functions_register(sqlite3 *db, const char *path);
