/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The file: FileHead, layout (FileColumn each), the machine's JSON, then records from a page boundary on.
 * `count` is the last thing to be written for a tick and the first for a restart, so that a reader after a
 * kill sees the old minute, the new one, or nothing, never a mixture.
 *
 * Room is allocated as ticks come (a hole in a full tmpfs would be a SIGBUS) and kept; the whole is at most
 * about HEAD_BYTES, or HEAD_TICKS_MIN ticks of a very big machine: a minute that does not fit becomes two
 * chunks.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <zlib.h>

#include "store/head.h"

#define HEAD_MAGIC     0x44414548444f5453ULL /* "STODHEAD" */
#define HEAD_VERSION   1
#define HEAD_BYTES     (16u << 20)
#define HEAD_TICKS_MIN 64
#define HEAD_ALIGN     4096
#define HEAD_JSON_MAX  (16u << 20)

typedef struct FileColumn {
        uint16_t field;
        uint8_t instance, zero;
} FileColumn;

typedef struct FileHead {
        uint64_t magic;
        uint32_t version;
        uint32_t crc; /* of n_entities ... the JSON's end */
        _Atomic uint32_t count;
        uint32_t zero;
        HeadOwner owner;
        uint32_t n_entities[SCOPE_N];
        uint32_t n_columns;
        uint32_t n_values, capacity;
        uint64_t stride, records; /* offset of the first */
        uint64_t json_size;       /* with its NUL */
} FileHead;

struct Head {
        int fd; /* -1: memory */
        bool is_file;
        uint8_t *map;
        size_t map_size;
        size_t allocated; /* of the file, from its start */
        FileHead *file;   /* == map, NULL before head_begin */
};

static size_t align_up(size_t n) {
        return (n + HEAD_ALIGN - 1) & ~(size_t) (HEAD_ALIGN - 1);
}

static uint32_t head_crc(const uint8_t *map) {
        const FileHead *f = (const FileHead *) (const void *) map;
        size_t from = offsetof(FileHead, n_entities);
        size_t to = sizeof(*f) + f->n_columns * sizeof(FileColumn) + f->json_size;

        return (uint32_t) crc32_z(0, map + from, to - from);
}

int head_new(const char *path, Head **ret) {
        _cleanup_(head_freep) Head *h = NULL;
        int r = 0;

        h = calloc(1, sizeof(*h));
        if (!h)
                return -ENOMEM;
        h->fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
        if (path && h->fd < 0)
                r = -errno;
        else if (path && flock(h->fd, LOCK_EX | LOCK_NB) < 0) {
                if (errno == EWOULDBLOCK)
                        return -EBUSY;
                r = -errno;
                (void) close(h->fd);
                h->fd = -1;
        }
        *ret = TAKE_PTR(h);
        return r;
}

static void head_unmap(Head *h) {
        if (h->map)
                (void) munmap(h->map, h->map_size);
        h->map = NULL;
        h->file = NULL;
        h->map_size = h->allocated = 0;
}

Head *head_free(Head *h) {
        if (!h)
                return NULL;
        head_unmap(h);
        if (h->fd >= 0)
                (void) close(h->fd);
        free(h);
        return NULL;
}

/* ---- what was left ---- */

static bool file_head_ok(const FileHead *f, size_t size) {
        if (f->magic != HEAD_MAGIC || f->version != HEAD_VERSION)
                return false;
        if (f->n_columns > LAYOUT_COLUMNS_MAX || f->json_size == 0 || f->json_size > HEAD_JSON_MAX)
                return false;
        if (f->records > size || f->records < sizeof(*f) + f->n_columns * sizeof(FileColumn) + f->json_size)
                return false;
        if (f->stride != tick_rows_stride(f->n_values) || f->count > f->capacity ||
                f->count > CODEC_TICKS_MAX)
                return false;
        return f->count * f->stride <= size - f->records;
}

static int file_layout(const FileHead *f, Layout *ret) {
        const FileColumn *c = (const FileColumn *) (f + 1);

        *ret = (Layout){};
        memcpy(ret->n_entities, f->n_entities, sizeof(ret->n_entities));
        for (uint32_t i = 0; i < f->n_columns; i++)
                if (c[i].field == FIELD_NONE || c[i].field >= FIELD_N ||
                        !layout_add(ret, (FieldId) c[i].field, c[i].instance))
                        return -EBADMSG;
        layout_finish(ret);
        return ret->n_values == f->n_values ? 0 : -EBADMSG;
}

int head_left(Head *h, HeadOwner *ret_owner, const char **ret_json, Layout *ret_layout, TickRows *ret_rows) {
        const FileHead *f;
        const char *json;
        struct stat st;

        if (h->fd < 0 || fstat(h->fd, &st) < 0 || st.st_size == 0)
                return 0;
        if ((size_t) st.st_size < sizeof(FileHead))
                return -EBADMSG;
        head_unmap(h);
        h->map = mmap(NULL, (size_t) st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, h->fd, 0);
        if (h->map == MAP_FAILED) {
                h->map = NULL;
                return -errno;
        }
        h->map_size = (size_t) st.st_size;
        f = (const FileHead *) (const void *) h->map;
        if (f->magic == 0)
                return 0;
        if (!file_head_ok(f, h->map_size) || head_crc(h->map) != f->crc || file_layout(f, ret_layout) < 0)
                return -EBADMSG;
        json = (const char *) h->map + sizeof(*f) + f->n_columns * sizeof(FileColumn);
        if (json[f->json_size - 1] != '\0' || !memchr(f->owner.boot_id, '\0', sizeof(f->owner.boot_id)))
                return -EBADMSG;
        *ret_owner = f->owner;
        *ret_json = json;
        *ret_rows = (TickRows){
                .records = h->map + f->records,
                .stride = f->stride,
                .n = atomic_load_explicit(&f->count, memory_order_acquire),
                .n_values = f->n_values,
        };
        return ret_rows->n > 0;
}

/* ---- the current minute ---- */

/* Maps `size` bytes of the file, of which `head` are allocated at once; -errno leaves nothing mapped. */
static int head_map_file(Head *h, size_t size, size_t head) {
        int r;

        if (h->fd < 0)
                return -EBADF;
        if (ftruncate(h->fd, 0) < 0 || ftruncate(h->fd, (off_t) size) < 0)
                return -errno;
        r = posix_fallocate(h->fd, 0, (off_t) head);
        if (r != 0)
                return -r;
        h->map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, h->fd, 0);
        if (h->map == MAP_FAILED) {
                h->map = NULL;
                return -errno;
        }
        h->allocated = head;
        return 0;
}

static int head_map_memory(Head *h, size_t size) {
        h->map =
                mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (h->map == MAP_FAILED) {
                h->map = NULL;
                return -ENOMEM;
        }
        h->allocated = size;
        return 0;
}

static void head_describe(Head *h, const FileHead *proto, const Layout *l, const char *json) {
        FileColumn *c = (FileColumn *) (void *) (h->map + sizeof(*proto));

        h->file = (FileHead *) (void *) h->map;
        memcpy(h->file, proto, sizeof(*proto));
        for (size_t i = 0; i < l->n_columns; i++)
                c[i] = (FileColumn){(uint16_t) l->columns[i].field, l->columns[i].instance, 0};
        memcpy(c + l->n_columns, json, proto->json_size);
        h->file->crc = head_crc(h->map);
        atomic_signal_fence(memory_order_release);
        h->file->magic = HEAD_MAGIC;
}

int head_begin(Head *h, const HeadOwner *owner, const Layout *l, const char *json) {
        FileHead proto = {
                .version = HEAD_VERSION,
                .owner = *owner,
                .n_columns = (uint32_t) l->n_columns,
                .n_values = (uint32_t) l->n_values,
                .stride = tick_rows_stride(l->n_values),
                .json_size = strlen(json) + 1,
        };
        size_t capacity =
                MIN((size_t) CODEC_TICKS_MAX, MAX(HEAD_BYTES / proto.stride, (size_t) HEAD_TICKS_MIN));
        size_t size;
        int r;

        if (proto.json_size > HEAD_JSON_MAX)
                return -EFBIG;
        memcpy(proto.n_entities, l->n_entities, sizeof(proto.n_entities));
        proto.capacity = (uint32_t) capacity;
        proto.records = align_up(sizeof(proto) + l->n_columns * sizeof(FileColumn) + proto.json_size);
        size = proto.records + align_up(capacity * proto.stride);
        head_unmap(h);
        /* a minute's worth at once: a tmpfs that is full says so now, when memory can still take its place
         */
        r = head_map_file(h, size, MIN(size, proto.records + align_up(HEAD_TICKS_MIN * proto.stride)));
        h->is_file = r == 0;
        if (r < 0 && head_map_memory(h, size) < 0)
                return -ENOMEM;
        h->map_size = size;
        head_describe(h, &proto, l, json);
        return r == -EBADF ? 0 : r;
}

void head_restart(Head *h, const HeadOwner *owner) {
        atomic_store_explicit(&h->file->count, 0, memory_order_release);
        h->file->owner = *owner;
}

void head_renumber(Head *h, uint64_t seq, uint64_t epoch) {
        h->file->owner.seq += seq;
        h->file->owner.epoch += epoch;
}

/* Makes sure that the record's pages exist. */
static int head_allocate(Head *h, size_t end) {
        size_t to = align_up(end + HEAD_ALIGN);

        if (end <= h->allocated)
                return 0;
        to = MIN(to, h->map_size);
        if (posix_fallocate(h->fd, (off_t) h->allocated, (off_t) (to - h->allocated)) != 0)
                return -ENOBUFS;
        h->allocated = to;
        return 0;
}

int head_append(Head *h, const TickRecord *record, const int64_t *values, const uint8_t *reasons) {
        uint32_t n = atomic_load_explicit(&h->file->count, memory_order_relaxed);
        size_t at = h->file->records + n * h->file->stride;

        if (n >= h->file->capacity || head_allocate(h, at + h->file->stride) < 0)
                return -ENOBUFS;
        tick_record_write(h->map + at, record, values, reasons, h->file->n_values);
        atomic_store_explicit(&h->file->count, n + 1, memory_order_release);
        return 0;
}

TickRows head_rows(const Head *h) {
        if (!h->file)
                return (TickRows){};
        return (TickRows){
                .records = h->map + h->file->records,
                .stride = h->file->stride,
                .n = atomic_load_explicit(&h->file->count, memory_order_acquire),
                .n_values = h->file->n_values,
        };
}

const HeadOwner *head_owner(const Head *h) {
        return &h->file->owner;
}

bool head_is_file(const Head *h) {
        return h->is_file;
}

bool head_has_fd(const Head *h) {
        return h->fd >= 0;
}
