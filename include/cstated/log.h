/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Messages of the programs' edges (main, daemon, http); libraries return errors instead. Under systemd
 * (JOURNAL_STREAM
 * names our stderr) they go to the journal with fields, else to stderr as "cstated: text". Never blocks the caller on
 * a full journal for long, never allocates more than a line.
 */

#include <stdbool.h>

#include "cstated/macro.h"

typedef enum LogLevel {
        LOG_LEVEL_ERROR = 3,
        LOG_LEVEL_WARNING = 4,
        LOG_LEVEL_NOTICE = 5,
        LOG_LEVEL_INFO = 6,
        LOG_LEVEL_DEBUG = 7,
} LogLevel;

/* Program name of the stderr prefix, and the least urgent level that is shown. */
void log_open(const char *program, LogLevel max_level);

void log_message(LogLevel level, const char *format, ...) _printf_(2, 3);
/*
 * The same with a journal MESSAGE_ID (32 hex digits, cstated/api.h names ours) and further "KEY=value" fields
 * (NULL-terminated array or NULL).
 */
void log_event(LogLevel level, const char *message_id, const char *const *fields, const char *format, ...)
        _printf_(4, 5);

#define log_error(...) log_message(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_message(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...) log_message(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) log_message(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_message(LOG_LEVEL_DEBUG, __VA_ARGS__)
