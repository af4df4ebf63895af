/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Completion for bash and zsh, written from the verb table and the catalogue, so that it cannot fall behind.
 */

#include <stdio.h>

#include "client/ctl.h"

/* shell: "bash" or "zsh". 0, or -EINVAL for another. */
int completion_print(const char *shell, const Verb *table, FILE *out);
