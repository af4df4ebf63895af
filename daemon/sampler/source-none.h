/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What a source that was not built says of itself. */

#include "sampler/source.h"

#define SOURCE_NONE(name_, hint_) \
        static int none_probe(Sysfs *sysfs, Machine *m, uint8_t index, Source **ret, SourceStatus *status) { \
                status->state = SOURCE_ABSENT; \
                (void) snprintf(status->hint, sizeof(status->hint), "%s", hint_); \
                return 0; \
        } \
        const SourceOps source_ops_##name_ = { .name = #name_, .passive = true, .probe = none_probe }
