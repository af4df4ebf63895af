/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Ends a program whose kernel lacks what it tests: the reason, as printf has it, on the last line. */

#include <stdio.h>
#include <unistd.h>

#define SKIP(...)                                                                                           \
        do {                                                                                                \
                (void) printf("SKIP: " __VA_ARGS__);                                                        \
                (void) printf("\n");                                                                        \
                (void) fflush(stdout);                                                                      \
                _exit(77);                                                                                  \
        } while (0)
