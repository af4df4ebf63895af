/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The answer of /api/v1/cpu, or of a dump, for a person. */

#include <jansson.h>
#include <stdio.h>

/* 0, or -ENOMEM. Keys that are missing or null are left out. */
int cpu_print(json_t *root, FILE *out);
