/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The configuration: one table {section, key, type, offset, bounds, reload class} from which parsing,
 * printing, comparing and the documentation of reload follow. Command-line options go through the same
 * parsers.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cstated/macro.h"
#include "sampler/source.h"

#define CONFIG_LISTEN_MAX        16
#define CONFIG_FILE_MAX          (256u * 1024)
#define CONFIG_INTERVAL_MIN_USEC (100 * 1000ULL)
#define CONFIG_INTERVAL_MAX_USEC (60 * 1000000ULL)

typedef struct Config {
        /* [Sampler] */
        uint64_t interval_usec;
        bool wake_policy_set; /* false: local where it can be had, else lazy */
        WakePolicy wake_policy;
        char *sources;             /* as given, NULL: all */
        uint32_t disabled_sources; /* bit i: source_table[i] */
        /* [Store] */
        char *path;
        uint64_t raw_retention_usec, minute_retention_usec, hour_retention_usec;
        uint64_t max_size_bytes;
        uint64_t durable_head_usec; /* 0: off */
        /* [Http] */
        char *listen[CONFIG_LISTEN_MAX];
        size_t n_listen;
        bool listen_set; /* by somebody, not the default */
        uint64_t max_connections;
        uint64_t idle_timeout_usec;
        /* [Events] */
        uint64_t break_share_permyriad, deep_idle_share_permyriad;
        uint64_t break_rate; /* per second and CPU */
        uint64_t intervals;
} Config;

/* Where problems go. fatal: the value is refused; else a warning. file is NULL and line 0 for options. */
typedef struct ConfigReport {
        void (*fn)(void *userdata, bool fatal, const char *file, unsigned line, const char *text);
        void *userdata;
} ConfigReport;

/* Fills in the defaults. -ENOMEM. */
int config_init(Config *c);
void config_deinit(Config *c);

/*
 * Pure: applies one file's text. Unknown sections and keys are reported as warnings, invalid values as
 * fatal; the whole text is read either way. 0, -EINVAL where anything was fatal, -ENOMEM.
 */
int config_parse_text(Config *c, const char *file, const char *text, size_t n, const ConfigReport *report);
/* The file and file.d/ *.conf in the order of their names. A missing file is -ENOENT if must_exist, else
 * nothing. */
int config_load(Config *c, const char *file, bool must_exist, const ConfigReport *report);
/* One key, by an option named `what` ("--interval"). first: an earlier list is forgotten. -EINVAL is
 * reported. */
int config_set(Config *c, const char *what, const char *section, const char *key, const char *value,
        bool first, const ConfigReport *report);
/* What no single key can tell. -EINVAL is reported. */
int config_validate(const Config *c, const ConfigReport *report);

/* All keys as a file that parses back to the same configuration. */
void config_print(const Config *c, FILE *f);

typedef enum ConfigReload {
        CONFIG_RELOAD_NOW,     /* applied on SIGHUP */
        CONFIG_RELOAD_RESTART, /* takes effect at the next start */
} ConfigReload;

/* Copies the values of all keys that a reload applies. */
void config_take_reloadable(Config *c, const Config *next);
/* Calls fn for each key in which a and b differ: "[Http] IdleTimeout=". Returns how many. */
size_t config_compare(const Config *a, const Config *b,
        void (*fn)(void *userdata, const char *section, const char *key, ConfigReload reload),
        void *userdata);
