/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The types of values: how each is parsed, printed and compared. Bounds come from the key's row. A value
 * that is refused leaves the old one in place, so that a half-parsed configuration is still one; a value
 * that is accepted can be printed into a file and read back.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "config-table.h"
#include "cstated/api.h"
#include "cstated/num.h"
#include "cstated/timespan.h"
#include "sampler/sampler.h"

int config_refuse(char *error, size_t size, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(error, size, format, ap);
        va_end(ap);
        return -EINVAL;
}

static int replace_string(char **target, const char *value) {
        char *copy = NULL;

        if (value) {
                copy = strdup(value);
                if (!copy)
                        return -ENOMEM;
        }
        free(*target);
        *target = copy;
        return 0;
}

static bool string_equal(const char *a, const char *b) {
        return a && b ? strcmp(a, b) == 0 : a == b;
}

/* ---- durations ---- */

static int duration_parse(const ConfigKey *k, Config *c, const char *value, char *error, size_t size) {
        char min[64], max[64];
        uint64_t v;

        if (timespan_parse(value, &v) < 0)
                return config_refuse(
                        error, size, "'%s' is not a duration such as 250ms, 1s, 15m, 3d or 2y", value);
        if (v == 0 && k->zero_is_off)
                goto accept;
        if (v < k->min || v > k->max) {
                timespan_format(k->min, min, sizeof(min));
                timespan_format(k->max, max, sizeof(max));
                return config_refuse(error, size, "'%s' is not from %s to %s%s", value, min, max,
                        k->zero_is_off ? " or 0" : "");
        }
accept:
        *config_u64(k, c) = v;
        return 0;
}

static void duration_print(const ConfigKey *k, const Config *c, FILE *f) {
        uint64_t v = *config_u64_const(k, c);
        char text[64];

        timespan_format(v, text, sizeof(text));
        (void) fprintf(f, "%s=%s\n", k->name, v ? text : "0");
}

static bool u64_equal(const ConfigKey *k, const Config *a, const Config *b) {
        return *config_u64_const(k, a) == *config_u64_const(k, b);
}

/* ---- numbers ---- */

static int number_parse(const ConfigKey *k, Config *c, const char *value, char *error, size_t size) {
        uint64_t v;

        if (num_parse_u64(value, &v) < 0)
                return config_refuse(error, size, "'%s' is not a whole number", value);
        if (v < k->min || v > k->max)
                return config_refuse(
                        error, size, "'%s' is not from %" PRIu64 " to %" PRIu64, value, k->min, k->max);
        *config_u64(k, c) = v;
        return 0;
}

static void number_print(const ConfigKey *k, const Config *c, FILE *f) {
        (void) fprintf(f, "%s=%" PRIu64 "\n", k->name, *config_u64_const(k, c));
}

static int bytes_parse(const ConfigKey *k, Config *c, const char *value, char *error, size_t size) {
        uint64_t v;

        if (num_parse_bytes(value, &v) < 0)
                return config_refuse(error, size, "'%s' is not a size such as 512M or 2G", value);
        if (v < k->min || v > k->max)
                return config_refuse(error, size, "'%s' is not from %" PRIu64 "M to %" PRIu64 "T", value,
                        k->min >> 20, k->max >> 40);
        *config_u64(k, c) = v;
        return 0;
}

static void bytes_print(const ConfigKey *k, const Config *c, FILE *f) {
        static const char suffixes[] = "KMGT";
        uint64_t v = *config_u64_const(k, c);
        size_t i = 0;

        while (v && v % 1024 == 0 && i < strlen(suffixes)) {
                v /= 1024;
                i++;
        }
        if (i > 0)
                (void) fprintf(f, "%s=%" PRIu64 "%c\n", k->name, v, suffixes[i - 1]);
        else
                (void) fprintf(f, "%s=%" PRIu64 "\n", k->name, v);
}

/* "10%", "2.5%": kept in hundredths of a percent. */
static int percent_parse(const ConfigKey *k, Config *c, const char *value, char *error, size_t size) {
        char digits[32];
        size_t n = strlen(value);
        double v;

        if (n < 2 || n > sizeof(digits) || value[n - 1] != '%')
                return config_refuse(error, size, "'%s' is not a share such as 10%%", value);
        memcpy(digits, value, n - 1);
        digits[n - 1] = '\0';
        if (num_parse_double(digits, &v) < 0 || !(v >= 0 && v <= 100))
                return config_refuse(error, size, "'%s' is not from 0%% to 100%%", value);
        *config_u64(k, c) = (uint64_t) (v * 100 + 0.5);
        return 0;
}

static void percent_print(const ConfigKey *k, const Config *c, FILE *f) {
        uint64_t v = *config_u64_const(k, c);

        if (v % 100)
                (void) fprintf(f, "%s=%" PRIu64 ".%02" PRIu64 "%%\n", k->name, v / 100, v % 100);
        else
                (void) fprintf(f, "%s=%" PRIu64 "%%\n", k->name, v / 100);
}

/* ---- words ---- */

/* What could not be written into a file and read back. */
static bool unprintable(const char *value) {
        for (; *value; value++)
                if ((unsigned char) *value < ' ' || *value == '\\' || *value == 0x7f)
                        return true;
        return false;
}

static int path_parse(const ConfigKey *k, Config *c, const char *value, char *error, size_t size) {
        if (value[0] != '/' || strlen(value) > 200 || value[strlen(value) - 1] == '/' || unprintable(value))
                return config_refuse(error, size, "'%s' is not the absolute path of a file", value);
        return replace_string(&c->path, value);
}

static void path_print(const ConfigKey *k, const Config *c, FILE *f) {
        (void) fprintf(f, "%s=%s\n", k->name, c->path);
}

static bool path_equal(const ConfigKey *k, const Config *a, const Config *b) {
        return string_equal(a->path, b->path);
}

static int policy_parse(const ConfigKey *k, Config *c, const char *value, char *error, size_t size) {
        WakePolicy p = WAKE_LAZY;

        if (*value && wake_policy_from_name(value, &p) < 0)
                return config_refuse(error, size,
                        "'%s' is none of local, lazy, always (or empty for the best that can be had)",
                        value);
        c->wake_policy = p;
        c->wake_policy_set = *value != '\0';
        return 0;
}

static void policy_print(const ConfigKey *k, const Config *c, FILE *f) {
        (void) fprintf(f, "%s=%s\n", k->name, c->wake_policy_set ? wake_policy_name(c->wake_policy) : "");
}

static bool policy_equal(const ConfigKey *k, const Config *a, const Config *b) {
        return a->wake_policy_set == b->wake_policy_set &&
               (!a->wake_policy_set || a->wake_policy == b->wake_policy);
}

static int sources_parse(const ConfigKey *k, Config *c, const char *value, char *error, size_t size) {
        uint32_t disabled = 0;

        if (*value && sampler_parse_sources(value, &disabled) < 0)
                return config_refuse(error, size,
                        "'%s' is no list of sources such as cpuidle,irq or -perf,-idletrace", value);
        if (replace_string(&c->sources, *value ? value : NULL) < 0)
                return -ENOMEM;
        c->disabled_sources = disabled;
        return 0;
}

static void sources_print(const ConfigKey *k, const Config *c, FILE *f) {
        (void) fprintf(f, "%s=%s\n", k->name, c->sources ? c->sources : "");
}

static bool sources_equal(const ConfigKey *k, const Config *a, const Config *b) {
        return a->disabled_sources == b->disabled_sources;
}

void config_listen_clear(Config *c) {
        for (size_t i = 0; i < c->n_listen; i++)
                free(c->listen[i]);
        c->n_listen = 0;
}

static int listen_add(Config *c, const char *value) {
        char *copy = strdup(value);

        if (!copy)
                return -ENOMEM;
        c->listen[c->n_listen++] = copy;
        return 0;
}

/* A list: each line adds one, an empty one forgets the ones before; the first line of all replaces the
 * default. */
static int listen_parse(const ConfigKey *k, Config *c, const char *value, char *error, size_t size) {
        const char *colon = strrchr(value, ':');
        uint32_t port;

        if (*value && *value != '/' &&
                (!colon || num_parse_u32(colon + 1, &port) < 0 || port == 0 || port > 65535))
                return config_refuse(
                        error, size, "'%s' is neither the absolute path of a socket nor HOST:PORT", value);
        if (strlen(value) > 107 || unprintable(value))
                return config_refuse(error, size,
                        "an address has at most 107 characters, none of them a backslash or a control "
                        "character");
        if (!c->listen_set || !*value)
                config_listen_clear(c);
        c->listen_set = true;
        if (!*value)
                return 0;
        if (c->n_listen == CONFIG_LISTEN_MAX)
                return config_refuse(error, size, "at most %d listeners", CONFIG_LISTEN_MAX);
        return listen_add(c, value);
}

static void listen_print(const ConfigKey *k, const Config *c, FILE *f) {
        for (size_t i = 0; i < c->n_listen; i++)
                (void) fprintf(f, "%s=%s\n", k->name, c->listen[i]);
        if (c->n_listen == 0)
                (void) fprintf(f, "%s=\n", k->name);
}

static bool listen_equal(const ConfigKey *k, const Config *a, const Config *b) {
        if (a->n_listen != b->n_listen)
                return false;
        for (size_t i = 0; i < a->n_listen; i++)
                if (strcmp(a->listen[i], b->listen[i]) != 0)
                        return false;
        return true;
}

int config_set_default_words(Config *c) {
        int r = replace_string(&c->path, CSTATED_DEFAULT_DB);

        return r < 0 ? r : listen_add(c, CSTATED_DEFAULT_SOCKET);
}

const ConfigType config_type_duration = { duration_parse, duration_print, u64_equal, .is_u64 = true };
const ConfigType config_type_number = { number_parse, number_print, u64_equal, .is_u64 = true };
const ConfigType config_type_bytes = { bytes_parse, bytes_print, u64_equal, .is_u64 = true };
const ConfigType config_type_percent = { percent_parse, percent_print, u64_equal, .is_u64 = true };
const ConfigType config_type_path = { path_parse, path_print, path_equal, .needs_value = true };
const ConfigType config_type_policy = { policy_parse, policy_print, policy_equal };
const ConfigType config_type_sources = { sources_parse, sources_print, sources_equal };
const ConfigType config_type_listen = { listen_parse, listen_print, listen_equal };
