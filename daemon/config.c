/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Configuration by table. A key has a type, and a type is three functions: parse, print, equal. What a value
 * may be is said once, in the row (bounds) or in the type (config-value.c); the file reader (config-file.c)
 * knows only lines.
 */

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "config-table.h"
#include "cstated/timespan.h"

#define HOUR_USEC (3600 * USEC_PER_SEC)
#define DAY_USEC  (24 * HOUR_USEC)
#define YEAR_USEC (365 * DAY_USEC)

/* ---- the table ---- */

#define AT(member) offsetof(Config, member)

const ConfigKey config_table[] = {
        { "Sampler", "Interval", &config_type_duration, AT(interval_usec), CONFIG_INTERVAL_MIN_USEC,
                CONFIG_INTERVAL_MAX_USEC, CONFIG_RELOAD_RESTART },
        { "Sampler", "WakePolicy", &config_type_policy, .reload = CONFIG_RELOAD_RESTART },
        { "Sampler", "Sources", &config_type_sources, .reload = CONFIG_RELOAD_RESTART },
        { "Store", "Path", &config_type_path, .reload = CONFIG_RELOAD_RESTART },
        { "Store", "RawRetention", &config_type_duration, AT(raw_retention_usec), HOUR_USEC, 100 * YEAR_USEC,
                CONFIG_RELOAD_NOW },
        { "Store", "MinuteRetention", &config_type_duration, AT(minute_retention_usec), HOUR_USEC,
                100 * YEAR_USEC, CONFIG_RELOAD_NOW },
        { "Store", "HourRetention", &config_type_duration, AT(hour_retention_usec), DAY_USEC,
                100 * YEAR_USEC, CONFIG_RELOAD_NOW },
        { "Store", "MaxSize", &config_type_bytes, AT(max_size_bytes), 16ULL << 20, 1ULL << 46,
                CONFIG_RELOAD_NOW },
        { "Store", "DurableHead", &config_type_duration, AT(durable_head_usec), USEC_PER_SEC,
                60 * USEC_PER_SEC, CONFIG_RELOAD_NOW, .zero_is_off = true },
        { "Http", "Listen", &config_type_listen, .reload = CONFIG_RELOAD_RESTART },
        { "Http", "MaxConnections", &config_type_number, AT(max_connections), 1, 4096, CONFIG_RELOAD_NOW },
        { "Http", "IdleTimeout", &config_type_duration, AT(idle_timeout_usec), USEC_PER_SEC, HOUR_USEC,
                CONFIG_RELOAD_NOW },
        { "Events", "BreakShare", &config_type_percent, AT(break_share_permyriad),
                .reload = CONFIG_RELOAD_NOW },
        { "Events", "BreakRate", &config_type_number, AT(break_rate), 0, 1000000000, CONFIG_RELOAD_NOW },
        { "Events", "DeepIdleShare", &config_type_percent, AT(deep_idle_share_permyriad),
                .reload = CONFIG_RELOAD_NOW },
        { "Events", "Intervals", &config_type_number, AT(intervals), 1, 10000, CONFIG_RELOAD_NOW },
};
const size_t config_table_n = ARRAY_SIZE(config_table);

int config_init(Config *c) {
        *c = (Config){
                .interval_usec = USEC_PER_SEC,
                .wake_policy = WAKE_LAZY,
                .raw_retention_usec = 3 * DAY_USEC,
                .minute_retention_usec = 30 * DAY_USEC,
                .hour_retention_usec = 2 * YEAR_USEC,
                .max_size_bytes = 2ULL << 30,
                .max_connections = 256,
                .idle_timeout_usec = 30 * USEC_PER_SEC,
                .break_share_permyriad = 1000,
                .break_rate = 100,
                .deep_idle_share_permyriad = 5000,
                .intervals = 3,
        };
        if (config_set_default_words(c) < 0) {
                config_deinit(c);
                return -ENOMEM;
        }
        return 0;
}

void config_deinit(Config *c) {
        config_listen_clear(c);
        free(c->sources);
        free(c->path);
        c->sources = c->path = NULL;
}

int config_key_set(const ConfigKey *k, Config *c, const char *value, char *error, size_t size) {
        if (!*value && k->type->needs_value)
                return config_refuse(error, size, "a value is needed");
        return k->type->parse(k, c, value, error, size);
}

const ConfigKey *config_key_find(const char *section, const char *key) {
        for (size_t i = 0; i < config_table_n; i++)
                if (strcmp(config_table[i].section, section) == 0 && strcmp(config_table[i].name, key) == 0)
                        return &config_table[i];
        return NULL;
}

bool config_section_exists(const char *section) {
        for (size_t i = 0; i < config_table_n; i++)
                if (strcmp(config_table[i].section, section) == 0)
                        return true;
        return false;
}

int config_set(Config *c, const char *what, const char *section, const char *key, const char *value,
        bool first, const ConfigReport *report) {
        const ConfigKey *k = config_key_find(section, key);
        char error[256], text[320];
        int r;

        assert(k);
        if (first && k->type == &config_type_listen)
                c->listen_set = false;
        r = *value ? config_key_set(k, c, value, error, sizeof(error))
                   : config_refuse(error, sizeof(error), "a value is needed");
        if (r == -EINVAL) {
                (void) snprintf(text, sizeof(text), "%s: %s", what, error);
                report->fn(report->userdata, true, NULL, 0, text);
        }
        return r;
}

int config_validate(const Config *c, const ConfigReport *report) {
        if (c->minute_retention_usec > c->hour_retention_usec) {
                report->fn(report->userdata, true, NULL, 0,
                        "[Store] MinuteRetention= is longer than HourRetention=");
                return -EINVAL;
        }
        if (c->raw_retention_usec > c->minute_retention_usec)
                report->fn(report->userdata, false, NULL, 0,
                        "[Store] RawRetention= is longer than MinuteRetention=, which is unusual");
        for (size_t i = 0; i < c->n_listen; i++)
                for (size_t j = 0; j < i; j++)
                        if (strcmp(c->listen[i], c->listen[j]) == 0) {
                                report->fn(report->userdata, true, NULL, 0,
                                        "[Http] Listen= names the same address twice");
                                return -EINVAL;
                        }
        return 0;
}

void config_print(const Config *c, FILE *f) {
        const char *section = NULL;

        for (size_t i = 0; i < config_table_n; i++) {
                const ConfigKey *k = &config_table[i];

                if (!section || strcmp(section, k->section) != 0)
                        (void) fprintf(f, "%s[%s]\n", section ? "\n" : "", k->section);
                section = k->section;
                k->type->print(k, c, f);
        }
}

void config_take_reloadable(Config *c, const Config *next) {
        for (size_t i = 0; i < config_table_n; i++) {
                const ConfigKey *k = &config_table[i];

                if (k->reload != CONFIG_RELOAD_NOW)
                        continue;
                assert(k->type->is_u64); /* no string has to be taken over so far */
                *config_u64(k, c) = *config_u64_const(k, next);
        }
}

size_t config_compare(const Config *a, const Config *b,
        void (*fn)(void *userdata, const char *section, const char *key, ConfigReload reload),
        void *userdata) {
        size_t n = 0;

        for (size_t i = 0; i < config_table_n; i++) {
                const ConfigKey *k = &config_table[i];

                if (k->type->equal(k, a, b))
                        continue;
                n++;
                if (fn)
                        fn(userdata, k->section, k->name, k->reload);
        }
        return n;
}
