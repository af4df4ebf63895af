/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Private to config.c and config-file.c: the rows of the table. */

#include "config.h"

typedef struct ConfigKey ConfigKey;

typedef struct ConfigType {
        /* -EINVAL with a sentence in error, -ENOMEM; nothing is changed then. */
        int (*parse)(const ConfigKey *k, Config *c, const char *value, char *error, size_t size);
        void (*print)(const ConfigKey *k, const Config *c, FILE *f); /* "Key=value\n", repeated for lists */
        bool (*equal)(const ConfigKey *k, const Config *a, const Config *b);
        bool needs_value;
} ConfigType;

struct ConfigKey {
        const char *section, *name;
        const ConfigType *type;
        size_t offset;     /* of a uint64_t in Config, where the type is one */
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
