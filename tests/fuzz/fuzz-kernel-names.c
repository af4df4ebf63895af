/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names and terms of sysfs: powercap zones and perf events. The first line is a name, the second a directory or format. */

#include <assert.h>
#include <string.h>

#include "sampler/perf-event.h"
#include "sampler/powercap-zone.h"
#include "tests/fuzz/fuzz.h"

static void try_zone(const char *name, const char *dir) {
        ZoneName z = zone_name_parse(name);

        assert(z.package >= -1 && z.die >= -1);
        assert(z.domain == ZONE_PACKAGE || (z.package == -1 && z.die == -1));
        assert((zone_field(z.domain) == FIELD_NONE) == (z.domain == ZONE_OPAQUE));
        if (zone_is_child(dir, name))
                assert(strlen(dir) > strlen(name));
        if (zone_is_dir(dir))
                assert(strchr(dir, ':'));
        (void) zone_control(dir);
}

static void try_event(const char *event, const char *format) {
        uint64_t config = 4711;
        double scale = -1;

        if (perf_event_parse(event, format, &config) < 0)
                assert(config == 4711);
        if (perf_scale_parse(event, &scale) == 0)
                assert(scale > 0);
        else
                assert(scale < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        char first[256], second[256];
        const uint8_t *newline = memchr(data, '\n', size);
        size_t n = newline ? (size_t) (newline - data) : size, m = newline ? size - n - 1 : 0;

        if (n >= sizeof(first) || m >= sizeof(second))
                return 0;
        memcpy(first, data, n);
        first[n] = '\0';
        if (m > 0)
                memcpy(second, newline + 1, m);
        second[m] = '\0';
        try_zone(first, second);
        try_event(first, second);
        return 0;
}
