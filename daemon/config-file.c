/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Configuration files: lines, sections, and drop-ins. "[Section]", "Key=Value", comments by # or ; at the
 * start of a line; a backslash at the end joins the next line, as in systemd's files. Blanks around names
 * and values are dropped.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "config-table.h"

#define LINE_SIZE 4096

typedef struct Parser {
        Config *config;
        const ConfigReport *report;
        const char *file;
        unsigned line; /* where the current logical line began */
        char section[64];
        bool unknown_section;
        bool fatal;
} Parser;

static void parser_report(Parser *p, bool fatal, const char *format, ...) _printf_(3, 4);

static void parser_report(Parser *p, bool fatal, const char *format, ...) {
        char text[512];
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        if (fatal)
                p->fatal = true;
        p->report->fn(p->report->userdata, fatal, p->file, p->line, text);
}

static char *strip(char *s) {
        size_t n;

        s += strspn(s, " \t\r");
        n = strlen(s);
        while (n > 0 && strchr(" \t\r", s[n - 1]))
                s[--n] = '\0';
        return s;
}

static void parse_section(Parser *p, char *s) {
        size_t n = strlen(s);

        p->unknown_section = true;
        if (n < 3 || s[n - 1] != ']' || n - 2 >= sizeof(p->section)) {
                parser_report(p, true, "'%.60s' is no section such as [Sampler]", s);
                return;
        }
        memcpy(p->section, s + 1, n - 2);
        p->section[n - 2] = '\0';
        p->unknown_section = !config_section_exists(p->section);
        if (p->unknown_section)
                parser_report(p, false, "unknown section [%s], ignored", p->section);
}

static int parse_assignment(Parser *p, char *s) {
        const ConfigKey *k;
        char *eq = strchr(s, '='), *key, error[320];
        int r;

        if (!eq) {
                parser_report(p, true, "'%.60s' is neither [Section] nor Key=Value", s);
                return 0;
        }
        if (p->unknown_section)
                return 0;
        *eq = '\0';
        key = strip(s);
        if (!p->section[0]) {
                parser_report(p, true, "%.60s= stands before any [Section]", key);
                return 0;
        }
        k = config_key_find(p->section, key);
        if (!k) {
                parser_report(p, false, "unknown key %.60s= in [%s], ignored", key, p->section);
                return 0;
        }
        r = config_key_set(k, p->config, strip(eq + 1), error, sizeof(error));
        if (r == -EINVAL)
                parser_report(p, true, "[%s] %s=: %s", k->section, k->name, error);
        return r == -ENOMEM ? r : 0;
}

static int parse_line(Parser *p, char *s) {
        s = strip(s);
        if (*s == '\0' || *s == '#' || *s == ';')
                return 0;
        if (*s == '[') {
                parse_section(p, s);
                return 0;
        }
        return parse_assignment(p, s);
}

/* Takes one logical line from text into buf; false where it does not fit or holds a NUL (*pos is behind it
 * either way). */
static bool take_line(const char *text, size_t n, size_t *pos, unsigned *n_lines, char buf[LINE_SIZE]) {
        size_t used = 0;
        bool fits = true;

        for (;;) {
                const char *start = text + *pos, *end = memchr(start, '\n', n - *pos);
                size_t length = end ? (size_t) (end - start) : n - *pos;
                bool joined;

                *pos += length + (end ? 1 : 0);
                (*n_lines)++;
                joined = length > 0 && start[length - 1] == '\\' && *pos < n && start[0] != '#' &&
                         start[0] != ';';
                if (joined)
                        length--;
                if (used + length + 1 >= LINE_SIZE || memchr(start, '\0', length))
                        fits = false;
                else {
                        memcpy(buf + used, start, length);
                        used += length;
                }
                if (!joined)
                        break;
                if (fits)
                        buf[used++] = ' ';
        }
        buf[used] = '\0';
        return fits;
}

int config_parse_text(Config *c, const char *file, const char *text, size_t n, const ConfigReport *report) {
        Parser p = { .config = c, .report = report, .file = file };
        unsigned next = 1;
        char buf[LINE_SIZE];
        size_t pos = 0;

        while (pos < n) {
                unsigned n_lines = 0;
                int r;

                p.line = next;
                if (take_line(text, n, &pos, &n_lines, buf)) {
                        r = parse_line(&p, buf);
                        if (r < 0)
                                return r;
                } else
                        parser_report(
                                &p, true, "a line of more than %d characters, or with a NUL", LINE_SIZE - 2);
                next += n_lines;
        }
        return p.fatal ? -EINVAL : 0;
}

static int read_whole(const char *path, char **ret, size_t *ret_n) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        _cleanup_free_ char *text = NULL;
        struct stat st;
        size_t n = 0;

        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (S_ISDIR(st.st_mode))
                return -EISDIR;
        text = malloc(CONFIG_FILE_MAX + 1);
        if (!text)
                return -ENOMEM;
        for (;;) {
                ssize_t k = read(fd, text + n, CONFIG_FILE_MAX + 1 - n);

                if (k < 0 && errno == EINTR)
                        continue;
                if (k < 0)
                        return -errno;
                if (k == 0)
                        break;
                n += (size_t) k;
                if (n > CONFIG_FILE_MAX)
                        return -EFBIG;
        }
        *ret = TAKE_PTR(text);
        *ret_n = n;
        return 0;
}

static int load_one(Config *c, const char *path, bool must_exist, const ConfigReport *report) {
        _cleanup_free_ char *text = NULL;
        char message[160];
        size_t n = 0;
        int r;

        r = read_whole(path, &text, &n);
        if (r == -ENOENT && !must_exist)
                return 0;
        if (r < 0) {
                (void) snprintf(message, sizeof(message), "cannot be read: %s", strerror(-r));
                report->fn(report->userdata, true, path, 0, message);
                return r;
        }
        return config_parse_text(c, path, text, n, report);
}

static int is_conf(const struct dirent *d) {
        size_t n = strlen(d->d_name);

        return n > 5 && d->d_name[0] != '.' && strcmp(d->d_name + n - 5, ".conf") == 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b) {
        return strcmp((*a)->d_name, (*b)->d_name);
}

/* A broken drop-in does not keep the next one from being read: all problems are told at once. */
static int load_drop_ins(Config *c, const char *file, const ConfigReport *report) {
        struct dirent **entries = NULL;
        char dir[4096], path[sizeof(dir) + 257];
        int n, result = 0;

        if (snprintf(dir, sizeof(dir), "%s.d", file) >= (int) sizeof(dir))
                return -ENAMETOOLONG;
        n = scandir(dir, &entries, is_conf, by_bytes);
        if (n < 0)
                return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
        for (int i = 0; i < n; i++) {
                int r;

                (void) snprintf(path, sizeof(path), "%s/%s", dir, entries[i]->d_name);
                free(entries[i]);
                r = load_one(c, path, true, report);
                if (r < 0)
                        result = r;
        }
        free(entries);
        return result;
}

int config_load(Config *c, const char *file, bool must_exist, const ConfigReport *report) {
        int r, q;

        r = load_one(c, file, must_exist, report);
        if (r < 0 && r != -EINVAL)
                return r;
        q = load_drop_ins(c, file, report);
        return r < 0 ? r : q;
}
