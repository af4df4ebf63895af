/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Private to config*.c: the rows of the table. */

#include "config.h"

typedef struct ConfigKey ConfigKey;

typedef struct ConfigType {
        /* -EINVAL with a sentence in error, -ENOMEM; nothing is changed then. */
        int (*parse)(const ConfigKey *k, Config *c, const char *value, char *error, size_t size);
        void (*print)(const ConfigKey *k, const Config *c, FILE *f); /* "Key=value\n", repeated for lists */
        bool (*equal)(const ConfigKey *k, const Config *a, const Config *b);
        bool needs_value; /* "" is refused without asking parse */
        bool is_u64;      /* at the key's offset */
} ConfigType;

struct ConfigKey {
        const char *section, *name;
        const ConfigType *type;
        size_t offset; /* of a uint64_t in Config, where the type is one */
        uint64_t min, max;
        ConfigReload reload;
        bool zero_is_off;
};

extern const ConfigKey config_table[];
extern const size_t config_table_n;

/* NULL where there is none. */
const ConfigKey *config_key_find(const char *section, const char *key);
bool config_section_exists(const char *section);
/* Parses and sets; errors as ConfigType.parse. */
int config_key_set(const ConfigKey *k, Config *c, const char *value, char *error, size_t size);

static inline uint64_t *config_u64(const ConfigKey *k, Config *c) {
        return (uint64_t *) (void *) ((char *) c + k->offset);
}

static inline const uint64_t *config_u64_const(const ConfigKey *k, const Config *c) {
        return (const uint64_t *) (const void *) ((const char *) c + k->offset);
}

/* ---- config-value.c ---- */

extern const ConfigType config_type_duration, config_type_number, config_type_bytes, config_type_percent;
extern const ConfigType config_type_path, config_type_policy, config_type_sources, config_type_listen;

/* Writes the sentence, returns -EINVAL. */
int config_refuse(char *error, size_t size, const char *format, ...) _printf_(3, 4);
/* The default path and listener. -ENOMEM. */
int config_set_default_words(Config *c);
void config_listen_clear(Config *c);
