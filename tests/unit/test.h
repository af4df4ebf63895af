/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What every cmocka program needs, in the order cmocka wants it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
