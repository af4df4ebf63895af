/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * /proc/cpuinfo as arch/x86/kernel/cpu/proc.c prints it: "key<tabs>: value" lines, a block a CPU, an empty
 * line behind each. Only keys that identify are read. Two traps: `monitor` among the flags is the MWAIT
 * instruction, on the bugs line it is the erratum; `dts` is the debug store, the thermal sensor is `dtherm`.
 */

#include <string.h>

#include "cstated/num.h"
#include "model/cpu-table.h"
#include "model/cpuid-cpuinfo.h"

/* Splits "key<blanks>: value"; false without a colon. The value keeps its blanks ("  Shanghai  "). */
static bool line_split(char *line, char **ret_value) {
        char *colon = strchr(line, ':'), *end = colon;

        if (!colon)
                return false;
        while (end > line && (end[-1] == ' ' || end[-1] == '\t'))
                end--;
        if (end == line)
                return false;
        *end = '\0';
        *ret_value = colon[1] == ' ' ? colon + 2 : colon + 1;
        return true;
}

bool cpuinfo_line_opens(const char *line) {
        static const char *const keys[] = { "processor", "vendor_id" };

        for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
                size_t n = strlen(keys[i]);

                if (strncmp(line, keys[i], n) == 0 && line[n + strspn(line + n, " \t")] == ':')
                        return true;
        }
        return false;
}

/* Twelve bytes; blanks that an editor took from the end come back. */
static void vendor_copy(char to[13], const char *value) {
        size_t n = strnlen(value, 12);

        memcpy(to, value, n);
        memset(to + n, ' ', 12 - n);
        to[12] = '\0';
}

static void brand_copy(char to[49], const char *value) {
        size_t n;

        value += strspn(value, " ");
        n = strnlen(value, 48);
        while (n > 0 && value[n - 1] == ' ')
                n--;
        memcpy(to, value, n);
        to[n] = '\0';
}

static void flags_read(CpuIdent *c, const char *flags) {
        static const struct {
                const char *name;
                size_t offset;
        } table[] = {
                { "hypervisor", offsetof(CpuIdent, hypervisor) },
                { "monitor", offsetof(CpuIdent, has_monitor) },
                { "clflush", offsetof(CpuIdent, has_clflush) },
                { "aperfmperf", offsetof(CpuIdent, has_aperfmperf) },
                { "dtherm", offsetof(CpuIdent, has_dts) },
                { "pts", offsetof(CpuIdent, has_pkg_dts) },
                { "arat", offsetof(CpuIdent, has_arat) },
                { "nonstop_tsc", offsetof(CpuIdent, invariant_tsc) },
        };

        while (*flags) {
                size_t n;

                flags += strspn(flags, " ");
                n = strcspn(flags, " ");
                for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                        if (strlen(table[i].name) == n && memcmp(flags, table[i].name, n) == 0)
                                *(bool *) ((char *) c + table[i].offset) = true;
                flags += n;
        }
}

const char *cpuinfo_line(CpuinfoBlock *b, char *line) {
        CpuIdent *c = &b->ident;
        char *value;
        int r = 0;

        if (!line_split(line, &value))
                return "no \"key: value\" line of /proc/cpuinfo";
        b->started = true;
        if (strcmp(line, "vendor_id") == 0) {
                vendor_copy(c->vendor, value);
                b->has_vendor = true;
        } else if (strcmp(line, "cpu family") == 0) {
                r = num_parse_u32(value, &c->family);
                b->has_family = true;
        } else if (strcmp(line, "model") == 0) {
                r = num_parse_u32(value, &c->model);
                b->has_model = true;
        } else if (strcmp(line, "model name") == 0)
                brand_copy(c->brand, value);
        else if (strcmp(line, "stepping") == 0) /* "unknown" on some CPUs without CPUID */
                (void) num_parse_u32(value, &c->stepping);
        else if (strcmp(line, "microcode") == 0)
                r = num_parse_u32(value, &c->microcode);
        else if (strcmp(line, "cpuid level") == 0) /* -1 on CPUs without CPUID */
                (void) num_parse_u32(value, &c->max_leaf);
        else if (strcmp(line, "flags") == 0) {
                flags_read(c, value);
                b->has_flags = true;
        } else if (strcmp(line, "bugs") == 0) {
                b->has_bugs = true;
                if (strlen(value) >= sizeof(b->bugs))
                        return "bugs line too long";
                (void) snprintf(b->bugs, sizeof(b->bugs), "%s", value);
        } else if (strcmp(line, "power management") == 0)
                b->has_end = true;
        return r < 0 ? "bad number" : NULL;
}

/* What leaf 1 would say in EAX. */
static uint32_t signature_of(const CpuIdent *c) {
        uint32_t base = c->family < 15 ? c->family : 15;

        return (c->family - base) << 20 | c->model >> 4 << 16 | base << 8 | (c->model & 0xf) << 4 |
                c->stepping;
}

const char *cpuinfo_block_finish(CpuinfoBlock *b, bool at_end) {
        CpuIdent *c = &b->ident;
        const CpuModel *model;

        if (!b->has_vendor || !b->has_family || !b->has_model || !b->has_flags)
                return at_end ? "the last CPU lacks vendor_id, family, model or flags: broken off" :
                                "a CPU without vendor_id, family, model or flags: not an x86 machine's";
        if (at_end && !b->has_end)
                return "the last CPU is broken off";
        if (c->family > 15 + 0xff || c->model > 0xff || c->stepping > 15)
                return "family, model or stepping out of range";
        c->signature = signature_of(c);
        model = cpu_table_find(c);
        if (model)
                (void) snprintf(c->uarch, sizeof(c->uarch), "%s", model->uarch);
        return NULL;
}
