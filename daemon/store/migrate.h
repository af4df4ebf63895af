/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Steps from an older user_version to ours, each in one transaction. Private to daemon/store. */

#include "store/db.h"

int migrate(sqlite3 *db, int64_t version, void (*progress)(void *userdata), void *userdata);
