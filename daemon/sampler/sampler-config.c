/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The words of the sampler's configuration. */

#include <errno.h>
#include <string.h>

#include "sampler/sampler.h"

static const char *const policy_names[] = {
        [WAKE_LOCAL] = "local",
        [WAKE_LAZY] = "lazy",
        [WAKE_ALWAYS] = "always",
};

int wake_policy_from_name(const char *name, WakePolicy *ret) {
        for (unsigned i = 0; i < ARRAY_SIZE(policy_names); i++)
                if (strcmp(policy_names[i], name) == 0) {
                        *ret = (WakePolicy) i;
                        return 0;
                }
        return -EINVAL;
}

const char *wake_policy_name(WakePolicy p) {
        return (unsigned) p < ARRAY_SIZE(policy_names) ? policy_names[p] : NULL;
}

static int source_index(const char *name, size_t n) {
        for (size_t i = 0; i < source_table_n; i++)
                if (strlen(source_table[i]->name) == n && memcmp(source_table[i]->name, name, n) == 0)
                        return (int) i;
        return -1;
}

int sampler_parse_sources(const char *list, uint32_t *ret_disabled) {
        uint32_t all = (1u << source_table_n) - 1, without = 0, only = 0;

        while (*list) {
                size_t n = strcspn(list, ",");
                bool minus = *list == '-';
                int i = n > minus ? source_index(list + minus, n - minus) : -1;

                if (i < 0)
                        return -EINVAL;
                *(minus ? &without : &only) |= 1u << i;
                list += n;
                if (*list == ',' && !*++list)
                        return -EINVAL;
        }
        *ret_disabled = without | (only ? all & ~only : 0);
        return 0;
}
