/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two line formats. `cpuid -r` prints "CPU 0:" ("CPU:" with -1) and then lines
 *
 *     0x00000004 0x01: eax=0x04000122 ebx=0x01c0003f ecx=0x0000003f edx=0x00000000
 *
 * in rising order of leaves, where old versions leave the subleaf out. All registers have eight digits, so a
 * line that broke off is seen; a CPU that broke off between lines lacks its last extended leaf.
 * /proc/cpuinfo is read by cpuid-cpuinfo.c. Memory: one line, one CPU's leaves, the groups; whatever the
 * input.
 */

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "model/cpuid-dump.h"

#define LEAVES_MAX 512

typedef enum DumpFormat {
        DUMP_UNKNOWN,
        DUMP_RAW,
        DUMP_CPUINFO,
} DumpFormat;

typedef struct DumpLeaf {
        uint32_t leaf;
        CpuidRegs regs;
} DumpLeaf;

struct CpuidDump {
        DumpFormat format;
        unsigned line_number;
        size_t n_bytes, n_line, n_leaves, n_groups;
        bool in_cpu, failed;
        CpuinfoBlock block;
        DumpLeaf leaves[LEAVES_MAX]; /* subleaf 0 of the CPU at hand */
        CpuidDumpGroup groups[CPUID_DUMP_GROUPS_MAX];
        char error[160];
        char line[CPUID_DUMP_LINE_MAX];
};

CpuidDump *cpuid_dump_new(void) {
        return calloc(1, sizeof(CpuidDump));
}

CpuidDump *cpuid_dump_free(CpuidDump *d) {
        free(d);
        return NULL;
}

const char *cpuid_dump_error(const CpuidDump *d) {
        return d->failed ? d->error : NULL;
}

const CpuidDumpGroup *cpuid_dump_groups(const CpuidDump *d, size_t *ret_n) {
        *ret_n = d->n_groups;
        return d->groups;
}

static int dump_fail(CpuidDump *d, const char *why) {
        (void) snprintf(d->error, sizeof(d->error), "line %u: %s", d->line_number, why);
        d->failed = true;
        return -EBADMSG;
}

static int group_add(CpuidDump *d, const CpuIdent *c, const CpuinfoBlock *block) {
        CpuidDumpGroup new;

        memset(&new, 0, sizeof(new)); /* groups are compared as bytes */
        memcpy(&new.ident, c, sizeof(new.ident));
        if (block) {
                new.has_bugs = block->has_bugs;
                memcpy(new.bugs, block->bugs, sizeof(new.bugs));
        }
        for (size_t i = 0; i < d->n_groups; i++) {
                new.ident.n_cpus = d->groups[i].ident.n_cpus;
                if (memcmp(&d->groups[i], &new, sizeof(new)) == 0) {
                        d->groups[i].ident.n_cpus++;
                        return 0;
                }
        }
        if (d->n_groups == CPUID_DUMP_GROUPS_MAX)
                return dump_fail(d, "too many CPUs that differ from one another");
        new.ident.n_cpus = 1;
        memcpy(&d->groups[d->n_groups++], &new, sizeof(new));
        return 0;
}

static const CpuidRegs *leaf_find(const CpuidDump *d, uint32_t leaf) {
        for (size_t i = 0; i < d->n_leaves; i++)
                if (d->leaves[i].leaf == leaf)
                        return &d->leaves[i].regs;
        return NULL;
}

static int dump_read_leaf(void *userdata, uint32_t leaf, uint32_t subleaf, CpuidRegs *ret) {
        const CpuidRegs *regs = subleaf == 0 ? leaf_find(userdata, leaf) : NULL;

        if (!regs)
                return -ENODATA;
        *ret = *regs;
        return 0;
}

static int raw_cpu_finish(CpuidDump *d) {
        const CpuidRegs *extended = leaf_find(d, 0x80000000);
        CpuIdent c;

        if (!d->in_cpu)
                return 0;
        if (!leaf_find(d, 0) || !leaf_find(d, 1))
                return dump_fail(d, "the CPU that ends here lacks leaf 0 or 1: broken off, or made with -l");
        if (!extended || (extended->eax >> 16 == 0x8000 && !leaf_find(d, extended->eax)))
                return dump_fail(d, "the CPU that ends here lacks its last leaves: broken off");
        cpuid_decode(dump_read_leaf, d, &c);
        d->n_leaves = 0;
        d->in_cpu = false;
        return group_add(d, &c, NULL);
}

/* Hexadecimal after 0x; digits: how many there must be, 0: one to eight. */
static bool scan_hex(const char **p, unsigned digits, uint32_t *ret) {
        const char *s = *p;
        uint32_t v = 0;
        unsigned n = 0;

        if (s[0] != '0' || (s[1] != 'x' && s[1] != 'X'))
                return false;
        for (s += 2; n < 9; s++, n++) {
                if (*s >= '0' && *s <= '9')
                        v = v << 4 | (uint32_t) (*s - '0');
                else if ((*s | 0x20) >= 'a' && (*s | 0x20) <= 'f')
                        v = v << 4 | (uint32_t) ((*s | 0x20) - 'a' + 10);
                else
                        break;
        }
        if (n == 0 || n > 8 || (digits != 0 && n != digits))
                return false;
        *p = s;
        *ret = v;
        return true;
}

static bool scan_text(const char **p, const char *text) {
        size_t n = strlen(text);

        if (strncmp(*p, text, n) != 0)
                return false;
        *p += n;
        return true;
}

static void skip_blanks(const char **p) {
        *p += strspn(*p, " \t");
}

static bool scan_register(const char **p, const char *name, uint32_t *ret) {
        skip_blanks(p);
        return scan_text(p, name) && scan_hex(p, 8, ret);
}

static bool scan_leaf(const char *p, uint32_t *ret_leaf, uint32_t *ret_subleaf, CpuidRegs *ret_regs) {
        uint32_t subleaf = 0;

        if (!scan_hex(&p, 0, ret_leaf))
                return false;
        skip_blanks(&p);
        if (*p == '0' && !scan_hex(&p, 0, &subleaf))
                return false;
        *ret_subleaf = subleaf;
        return scan_text(&p, ":") && scan_register(&p, "eax=", &ret_regs->eax) &&
                scan_register(&p, "ebx=", &ret_regs->ebx) && scan_register(&p, "ecx=", &ret_regs->ecx) &&
                scan_register(&p, "edx=", &ret_regs->edx) && *p == '\0';
}

/* "CPU:", "CPU 17:" */
static bool is_cpu_header(const char *p) {
        if (!scan_text(&p, "CPU"))
                return false;
        skip_blanks(&p);
        p += strspn(p, "0123456789");
        return strcmp(p, ":") == 0;
}

static int raw_line(CpuidDump *d, const char *line) {
        uint32_t leaf, subleaf;
        CpuidRegs regs;
        int r;

        if (is_cpu_header(line)) {
                r = raw_cpu_finish(d);
                d->in_cpu = true;
                return r;
        }
        if (!scan_leaf(line, &leaf, &subleaf, &regs))
                return dump_fail(d, "no line of `cpuid -r` (broken off, or decoded output?)");
        if (leaf == 0 && subleaf == 0 && leaf_find(d, 0)) {
                r = raw_cpu_finish(d);
                if (r < 0)
                        return r;
        }
        d->in_cpu = true;
        if (subleaf != 0)
                return 0;
        if (d->n_leaves == LEAVES_MAX)
                return dump_fail(d, "too many leaves of one CPU");
        d->leaves[d->n_leaves++] = (DumpLeaf){ leaf, regs };
        return 0;
}

static int cpuinfo_finish(CpuidDump *d, bool at_end) {
        const char *why;
        int r;

        if (!d->block.started)
                return 0;
        why = cpuinfo_block_finish(&d->block, at_end);
        if (why)
                return dump_fail(d, why);
        r = group_add(d, &d->block.ident, &d->block);
        memset(&d->block, 0, sizeof(d->block));
        return r;
}

static int dump_line(CpuidDump *d) {
        const char *why, *p = d->line;

        d->line_number++;
        for (size_t i = 0; i < d->n_line; i++)
                if ((unsigned char) d->line[i] < ' ' && d->line[i] != '\t' && d->line[i] != '\r')
                        return dump_fail(d, "not text");
        while (d->n_line > 0 && d->line[d->n_line - 1] == '\r')
                d->n_line--;
        d->line[d->n_line] = '\0';
        skip_blanks(&p);
        if (*p == '\0')
                return d->format == DUMP_CPUINFO ? cpuinfo_finish(d, false) : 0;
        if (d->format == DUMP_UNKNOWN) {
                if (is_cpu_header(p) || strncmp(p, "0x", 2) == 0)
                        d->format = DUMP_RAW;
                else if (cpuinfo_line_opens(p))
                        d->format = DUMP_CPUINFO;
                else
                        return dump_fail(d, "neither the output of `cpuid -r` nor an x86 /proc/cpuinfo");
        }
        if (d->format == DUMP_RAW) {
                for (size_t i = d->n_line; i > 0 && strchr(" \t", d->line[i - 1]); i--)
                        d->line[i - 1] = '\0';
                return raw_line(d, p);
        }
        why = cpuinfo_line(&d->block, d->line);
        return why ? dump_fail(d, why) : 0;
}

int cpuid_dump_feed(CpuidDump *d, const char *text, size_t n) {
        int r;

        if (d->failed)
                return -EBADMSG;
        for (size_t i = 0; i < n; i++) {
                if (++d->n_bytes > CPUID_DUMP_BYTES_MAX)
                        return dump_fail(d, "longer than 64 MiB: no dump of one machine");
                if (text[i] == '\n') {
                        r = dump_line(d);
                        if (r < 0)
                                return r;
                        d->n_line = 0;
                } else if (d->n_line == sizeof(d->line) - 1) {
                        d->line_number++;
                        return dump_fail(d, "longer than 16384 bytes");
                } else
                        d->line[d->n_line++] = text[i];
        }
        return 0;
}

int cpuid_dump_finish(CpuidDump *d) {
        int r = 0;

        if (d->failed)
                return -EBADMSG;
        if (d->n_line > 0)
                r = dump_line(d);
        if (r < 0)
                return r;
        d->n_line = 0;
        r = d->format == DUMP_CPUINFO ? cpuinfo_finish(d, true) : raw_cpu_finish(d);
        if (r < 0)
                return r;
        if (d->n_groups == 0) {
                d->line_number = d->line_number > 0 ? d->line_number : 1;
                return dump_fail(d, "empty: no CPU in it");
        }
        return 0;
}
