/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages to the journal or stderr. The choice is made once: under systemd our stderr is the journal's stream, and
 * JOURNAL_STREAM holds its device and inode; only then are structured fields worth sending. State is two words set by
 * main() before anything else runs.
 */

#define SD_JOURNAL_SUPPRESS_LOCATION

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>

#include "cstated/log.h"

#define LOG_LINE_MAX 1024
#define LOG_FIELDS_MAX 12

static const char *log_program = "cstated";
static LogLevel log_max_level = LOG_LEVEL_INFO;
static bool log_to_journal;

static bool stderr_is_journal(void) {
        const char *e = getenv("JOURNAL_STREAM");
        unsigned long long dev, ino;
        struct stat st;

        if (!e || sscanf(e, "%llu:%llu", &dev, &ino) != 2 || fstat(STDERR_FILENO, &st) < 0)
                return false;
        return st.st_dev == dev && st.st_ino == ino;
}

void log_open(const char *program, LogLevel max_level) {
        log_program = program;
        log_max_level = max_level;
        log_to_journal = stderr_is_journal();
}

static bool journal_send(LogLevel level, const char *message_id, const char *const *fields, const char *text) {
        char message[LOG_LINE_MAX + 16], priority[16], id[64], identifier[64];
        struct iovec iov[4 + LOG_FIELDS_MAX];
        int n = 0;

        (void) snprintf(message, sizeof(message), "MESSAGE=%s", text);
        (void) snprintf(priority, sizeof(priority), "PRIORITY=%d", (int) level);
        (void) snprintf(identifier, sizeof(identifier), "SYSLOG_IDENTIFIER=%s", log_program);
        iov[n++] = (struct iovec){ message, strlen(message) };
        iov[n++] = (struct iovec){ priority, strlen(priority) };
        iov[n++] = (struct iovec){ identifier, strlen(identifier) };
        if (message_id) {
                (void) snprintf(id, sizeof(id), "MESSAGE_ID=%s", message_id);
                iov[n++] = (struct iovec){ id, strlen(id) };
        }
        for (size_t i = 0; fields && fields[i] && i < LOG_FIELDS_MAX; i++)
                iov[n++] = (struct iovec){ (char *) fields[i], strlen(fields[i]) };
        return sd_journal_sendv(iov, n) >= 0;
}

static _printf_(4, 0) void log_write(LogLevel level, const char *message_id, const char *const *fields,
        const char *format, va_list ap) {
        char text[LOG_LINE_MAX];

        if (level > log_max_level)
                return;
        (void) vsnprintf(text, sizeof(text), format, ap);
        if (log_to_journal && journal_send(level, message_id, fields, text))
                return;
        (void) fprintf(stderr, "%s: %s\n", log_program, text);
}

void log_message(LogLevel level, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        log_write(level, NULL, NULL, format, ap);
        va_end(ap);
}

void log_event(LogLevel level, const char *message_id, const char *const *fields, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        log_write(level, message_id, fields, format, ap);
        va_end(ap);
}
