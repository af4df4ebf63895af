/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interrupts of each CPU from /proc/interrupts: all rows together, and NMI, RES (rescheduling), CAL
 * (function calls) and LOC (local timer) apart. The kernel counts in 32 bits a row and CPU; a sum modulo
 * 2^32 therefore has the right modular difference whichever row wrapped. Columns are named by the header,
 * never by position: ids have gaps. ERR and MIS have one number for the whole machine, which is not CPU 0's.
 * Where rows come or go the sum jumps: that interval is `reset`.
 *
 * The file is large (512 CPUs x 300 rows: 1.7 MB, most of it zeros), so it is parsed line by line out of one
 * buffer in a single pass, and a run of blanks and a zero is recognised at once.
 */

#include <errno.h>
#include <string.h>

#include "cstated/num.h"

#include "sampler/source.h"

#define IRQ_BUFFER_MIN (64u << 10)
#define IRQ_BUFFER_MAX (1u << 20) /* a line of 8192 CPUs has 90 KB */
#define ROWS_NONE 0xcbf29ce484222325ULL /* the hash of no label */
#define IRQ_CELL 11               /* "%10u " as the kernel writes it */

static const struct {
        FieldId field;
        const char *label; /* NULL: the sum of all rows */
} irq_rows[] = {
        { FIELD_IRQ, NULL },
        { FIELD_NMI, "NMI" },
        { FIELD_IRQ_RES, "RES" },
        { FIELD_IRQ_CAL, "CAL" },
        { FIELD_IRQ_LOC, "LOC" },
};
#define IRQ_ROWS ARRAY_SIZE(irq_rows)
#define IRQ_ROW_CAL 3

typedef struct IrqSource {
        Source base;
        int fd;
        char *buf;
        size_t size;
        uint32_t n_cpus, n_columns, n_slots;
        uint32_t *columns; /* machine index of each column, UINT32_MAX: not one of ours */
        uint32_t *sums[IRQ_ROWS];
        bool seen[IRQ_ROWS];
        uint32_t *previous, *previous_cal; /* sums of all rows and of CAL of the reading before */
        uint8_t *present;   /* the header names this CPU */
        uint8_t *known;     /* previous is a reading of this CPU */
        uint64_t rows, previous_rows; /* hash of the labels, 0: no reading yet */
} IrqSource;

static Source *irq_close(Source *source) {
        IrqSource *s = (IrqSource *) source;

        if (s) {
                closep(&s->fd);
                free(s->buf);
                free(s->columns);
                for (size_t i = 0; i < IRQ_ROWS; i++)
                        free(s->sums[i]);
                free(s->previous);
                free(s->previous_cal);
                free(s->present);
                free(s->known);
                free(s);
        }
        return NULL;
}

static const char *skip_blanks(const char *p, const char *end) {
        while (p < end && (*p == ' ' || *p == '\t'))
                p++;
        return p;
}

/* The header's "CPU0 CPU8 ...": where each column goes. */
static int header_parse(IrqSource *s, const Machine *m, const char *p, const char *end) {
        s->n_columns = 0;
        memset(s->present, 0, s->n_cpus);
        for (p = skip_blanks(p, end); end - p > 3 && memcmp(p, "CPU", 3) == 0; p = skip_blanks(p, end)) {
                uint64_t id;
                uint32_t i;

                p += 3;
                if (!num_scan_u64(&p, end, &id))
                        return -EBADMSG;
                if (s->n_columns == s->n_slots) {
                        uint32_t n = s->n_slots * 2;
                        uint32_t *grown = realloc(s->columns, n * sizeof(*grown));

                        if (!grown)
                                return -ENOMEM;
                        s->columns = grown;
                        s->n_slots = n;
                }
                i = id <= UINT32_MAX ? machine_cpu_index(m, (uint32_t) id) : UINT32_MAX;
                s->columns[s->n_columns++] = i;
                if (i != UINT32_MAX)
                        s->present[i] = 1;
        }
        return s->n_columns > 0 ? 0 : -EBADMSG;
}

/* Eight blanks, two more and a zero, then a blank or the line's end: most cells of most rows. */
static bool is_zero_cell(const char *p, const char *end) {
        static const char zero[IRQ_CELL] = { ' ', ' ', ' ', ' ', ' ', ' ', ' ', ' ', ' ', ' ', '0' };

        return end - p > IRQ_CELL && memcmp(p, zero, sizeof(zero)) == 0 && p[IRQ_CELL] == ' ';
}

/* How many numbers stand at p, at most n_columns; each is added where its column belongs, unless add is
 * false. */
static uint32_t cells_scan(IrqSource *s, const char *p, const char *end, uint32_t *apart, bool add) {
        uint32_t n;

        for (n = 0; n < s->n_columns; n++) {
                uint64_t v;

                if (is_zero_cell(p, end)) {
                        p += IRQ_CELL;
                        continue;
                }
                p = skip_blanks(p, end);
                if (!num_scan_u64(&p, end, &v))
                        break;
                if (!add || s->columns[n] == UINT32_MAX)
                        continue;
                s->sums[0][s->columns[n]] += (uint32_t) v;
                if (apart)
                        apart[s->columns[n]] = (uint32_t) v;
        }
        return n;
}

/*
 * A row with fewer numbers than columns counts for the machine, not for its first CPUs. The kernel pads
 * cells, so on more than a few CPUs the line's length tells; else its numbers are counted.
 */
static bool row_is_per_cpu(IrqSource *s, const char *label, size_t n, const char *p, const char *end) {
        if (n == 3 && (memcmp(label, "ERR", 3) == 0 || memcmp(label, "MIS", 3) == 0))
                return false;
        if (s->n_columns >= 16 && end - p >= (ptrdiff_t) s->n_columns * IRQ_CELL)
                return true;
        return cells_scan(s, p, end, NULL, false) == s->n_columns;
}

static void row_parse(IrqSource *s, const char *line, const char *end) {
        const char *label = skip_blanks(line, end), *colon = memchr(label, ':', (size_t) (end - label));
        size_t n_label, row = 0;

        if (!colon)
                return;
        n_label = (size_t) (colon - label);
        for (size_t i = 0; i <= n_label; i++) /* FNV-1a, the colon parts them */
                s->rows = (s->rows ^ (unsigned char) label[i]) * 0x100000001b3ULL;
        if (!row_is_per_cpu(s, label, n_label, colon + 1, end))
                return;
        for (size_t i = 1; i < IRQ_ROWS; i++)
                if (strlen(irq_rows[i].label) == n_label && memcmp(irq_rows[i].label, label, n_label) == 0)
                        row = i;
        (void) cells_scan(s, colon + 1, end, row > 0 ? s->sums[row] : NULL, true);
        if (row > 0)
                s->seen[row] = true;
}

/* Parses the complete lines in buf[0, n); returns how many bytes they are. */
static size_t lines_parse(IrqSource *s, const Machine *m, size_t n, int *ret_error) {
        const char *p = s->buf, *end = s->buf + n, *eol;

        *ret_error = 0;
        while (*ret_error == 0 && p < end && (eol = memchr(p, '\n', (size_t) (end - p)))) {
                if (s->n_columns == 0)
                        *ret_error = header_parse(s, m, p, eol);
                else
                        row_parse(s, p, eol);
                p = eol + 1;
        }
        return (size_t) (p - s->buf);
}

static int buffer_grow(IrqSource *s) {
        size_t size = s->size * 2;
        char *grown;

        if (size > IRQ_BUFFER_MAX)
                return -EFBIG;
        grown = realloc(s->buf, size);
        if (!grown)
                return -ENOMEM;
        s->buf = grown;
        s->size = size;
        return 0;
}

static int file_parse(IrqSource *s, const Machine *m) {
        size_t n = 0;
        off_t at = 0;
        int r = 0;

        for (size_t i = 0; i < IRQ_ROWS; i++)
                memset(s->sums[i], 0, s->n_cpus * sizeof(uint32_t));
        memset(s->seen, 0, sizeof(s->seen));
        s->n_columns = 0;
        s->rows = ROWS_NONE;
        while (r == 0) {
                ssize_t k;
                size_t used;

                if (n == s->size && (r = buffer_grow(s)) < 0)
                        return r;
                k = pread(s->fd, s->buf + n, s->size - n, at);
                if (k < 0 && errno == EINTR)
                        continue;
                if (k < 0)
                        return -errno;
                if (k == 0)
                        break;
                at += k;
                n += (size_t) k;
                used = lines_parse(s, m, n, &r);
                memmove(s->buf, s->buf + used, n - used);
                n -= used;
        }
        return r < 0 ? r : s->n_columns == 0 || s->rows == ROWS_NONE ? -ENODATA : 0;
}

static int irq_alloc(IrqSource *s, uint32_t n_cpus) {
        s->n_cpus = n_cpus;
        s->n_slots = n_cpus + 8;
        s->size = IRQ_BUFFER_MIN;
        s->buf = malloc(s->size);
        s->columns = calloc(s->n_slots, sizeof(*s->columns));
        s->previous = calloc(n_cpus, sizeof(*s->previous));
        s->previous_cal = calloc(n_cpus, sizeof(*s->previous_cal));
        s->present = calloc(n_cpus, 1);
        s->known = calloc(n_cpus, 1);
        for (size_t i = 0; i < IRQ_ROWS; i++) {
                s->sums[i] = calloc(n_cpus, sizeof(uint32_t));
                if (!s->sums[i])
                        return -ENOMEM;
        }
        return s->buf && s->columns && s->previous && s->previous_cal && s->present && s->known ? 0
                                                                                                : -ENOMEM;
}

static void columns_add(IrqSource *s, Machine *m, uint8_t index, SourceStatus *status) {
        for (size_t i = 0; i < IRQ_ROWS; i++) {
                LayoutColumn *c;

                if (i > 0 && !s->seen[i])
                        continue;
                c = layout_add(&m->layout, irq_rows[i].field, 0);
                if (!c)
                        continue;
                c->source = index;
                status->n_counters++;
        }
}

static int irq_probe(Sysfs *sysfs, Machine *m, uint8_t index, Source **ret, SourceStatus *status) {
        IrqSource *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        s->base = (Source){ .ops = &source_ops_irq, .index = index };
        s->fd = sysfs_open(sysfs, "proc/interrupts");
        r = irq_alloc(s, m->n_cpus);
        if (r == 0)
                r = s->fd < 0 ? s->fd : file_parse(s, m);
        if (r < 0) {
                source_status_set_error(status, r, "/proc/interrupts");
                (void) irq_close(&s->base);
                return r == -ENOMEM ? r : 0;
        }
        columns_add(s, m, index, status);
        *ret = &s->base;
        return 0;
}

static void irq_adopt(Source *source, const Machine *m, Source *source_old, const Machine *m_old) {
        IrqSource *s = (IrqSource *) source, *old = (IrqSource *) source_old;

        for (uint32_t i = 0; i < m->n_cpus; i++) {
                uint32_t k = machine_cpu_index(m_old, m->cpus[i].id);

                s->known[i] = k != UINT32_MAX && old->known[k];
                if (!s->known[i])
                        continue;
                s->previous[i] = old->previous[k];
                s->previous_cal[i] = old->previous_cal[k];
        }
        s->previous_rows = old->previous_rows;
}

static int irq_open(Source *source, const Machine *m) {
        return 0;
}

static void row_store(const IrqSource *s, SourceTurn *turn, size_t row, Reason all) {
        uint8_t *reasons;
        uint64_t *values = source_values(turn, irq_rows[row].field, 0, &reasons);

        if (!values)
                return;
        for (uint32_t i = 0; i < s->n_cpus; i++) {
                Reason r = all;

                if (r == REASON_NONE && !s->present[i])
                        r = REASON_OFFLINE;
                if (r == REASON_NONE && row > 0 && !s->seen[row])
                        r = REASON_ABSENT;
                values[i] = s->sums[row][i];
                reasons[i] = (uint8_t) r;
        }
}

/* An interrupt that our own asking does not explain. Differences of rows are modulo 2^32, as the kernel's
 * are. */
static bool took_interrupt(const IrqSource *s, uint32_t cpu, uint32_t asked) {
        uint32_t all = s->sums[0][cpu] - s->previous[cpu],
                 calls = s->sums[IRQ_ROW_CAL][cpu] - s->previous_cal[cpu];

        return all != calls || calls > asked;
}

static void activity_note(IrqSource *s, SourceTurn *turn) {
        for (uint32_t i = 0; i < s->n_cpus; i++) {
                CpuActivity *a = &turn->activity[i];

                if (s->present[i] && s->known[i] && s->previous_rows == s->rows)
                        a->evidence |=
                                ACTIVITY_IRQ_KNOWN | (took_interrupt(s, i, a->asked) ? ACTIVITY_IRQ : 0);
                s->known[i] = s->present[i];
                s->previous[i] = s->sums[0][i];
                s->previous_cal[i] = s->sums[IRQ_ROW_CAL][i];
        }
}

static int irq_read(Source *source, SourceTurn *turn, SourceStatus *status) {
        IrqSource *s = (IrqSource *) source;
        Reason all = REASON_NONE;
        int r;

        r = file_parse(s, turn->machine);
        if (r < 0) {
                all = source_reason(-r);
                source_status_set_error(status, r, "/proc/interrupts");
        } else {
                source_status_set_ok(status);
                if (s->previous_rows != 0 && s->previous_rows != s->rows)
                        all = REASON_RESET;
                activity_note(s, turn);
                s->previous_rows = s->rows;
        }
        for (size_t i = 0; i < IRQ_ROWS; i++)
                row_store(s, turn, i, all);
        return r;
}

const SourceOps source_ops_irq = {
        .name = "irq",
        .passive = true,
        .probe = irq_probe,
        .adopt = irq_adopt,
        .open = irq_open,
        .read = irq_read,
        .close = irq_close,
};
