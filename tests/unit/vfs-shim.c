/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include <stdlib.h>

#include <sqlite3.h>

#include "cstated/macro.h"
#include "tests/unit/vfs-shim.h"

#define SECTOR      512
#define TRACKED_MAX 8

VfsShim vfs_shim;

typedef struct Write {
        sqlite3_int64 at; /* -1: a truncation to size n */
        size_t n;
        uint8_t *bytes;
} Write;

/* What the disk would hold: the image as of the last sync, and the writes since. */
typedef struct Tracked {
        char *name;
        uint8_t *image;
        size_t size;
        Write *writes;
        size_t n_writes;
} Tracked;

static Tracked tracked[TRACKED_MAX];
static sqlite3_vfs *base_vfs, shim_vfs;

typedef struct ShimFile {
        sqlite3_file file;
        Tracked *tracked;
        sqlite3_file *real; /* behind this struct */
} ShimFile;

static sqlite3_file *real_of(sqlite3_file *f) {
        return ((ShimFile *) (void *) f)->real;
}

static void image_apply(uint8_t **image, size_t *size, const Write *w, size_t n) {
        size_t end = w->at < 0 ? w->n : (size_t) w->at + n;

        if (w->at < 0 || end > *size) {
                *image = realloc(*image, end + 1);
                assert_non_null(*image);
                if (end > *size)
                        memset(*image + *size, 0, end - *size);
                *size = end;
        }
        if (w->at >= 0)
                memcpy(*image + w->at, w->bytes, n);
}

static void tracked_add(Tracked *t, sqlite3_int64 at, const void *bytes, size_t n) {
        Write *w;

        if (!t)
                return;
        t->writes = realloc(t->writes, (t->n_writes + 1) * sizeof(*t->writes));
        assert_non_null(t->writes);
        w = &t->writes[t->n_writes++];
        *w = (Write){.at = at, .n = n};
        if (bytes) {
                w->bytes = malloc(n);
                assert_non_null(w->bytes);
                memcpy(w->bytes, bytes, n);
        }
}

static void tracked_sync(Tracked *t) {
        if (!t)
                return;
        for (size_t i = 0; i < t->n_writes; i++) {
                image_apply(&t->image, &t->size, &t->writes[i], t->writes[i].n);
                free(t->writes[i].bytes);
        }
        t->n_writes = 0;
}

static Tracked *tracked_find(const char *name, bool add) {
        for (size_t i = 0; i < TRACKED_MAX; i++)
                if (tracked[i].name && strcmp(tracked[i].name, name) == 0)
                        return &tracked[i];
        for (size_t i = 0; add && i < TRACKED_MAX; i++)
                if (!tracked[i].name) {
                        tracked[i].name = strdup(name);
                        return &tracked[i];
                }
        return NULL;
}

static void tracked_forget(Tracked *t) {
        if (!t)
                return;
        for (size_t i = 0; i < t->n_writes; i++)
                free(t->writes[i].bytes);
        free(t->writes);
        free(t->image);
        free(t->name);
        *t = (Tracked){};
}

static uint64_t next_random(uint64_t *state) {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        return *state * 0x2545f4914f6cdd1dULL;
}

static void cut_file(const Tracked *t, const char *dir, uint64_t *state) {
        const char *name = strrchr(t->name, '/') ? strrchr(t->name, '/') + 1 : t->name;
        uint8_t *image = malloc(t->size + 1);
        size_t size = t->size;
        char *path;
        FILE *f;

        assert_non_null(image);
        memcpy(image, t->image ?: (const uint8_t *) "", t->size);
        for (size_t i = 0; i < t->n_writes; i++) {
                const Write *w = &t->writes[i];

                switch (next_random(state) % 3) {
                case 0: /* never arrived */
                        break;
                case 1: /* torn at a sector */
                        image_apply(&image, &size, w,
                                w->at < 0 ? w->n : next_random(state) % (w->n / SECTOR + 1) * SECTOR);
                        break;
                default:
                        image_apply(&image, &size, w, w->n);
                        break;
                }
        }
        assert_true(asprintf(&path, "%s/%s", dir, name) > 0);
        f = fopen(path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(image, 1, size, f), size);
        assert_int_equal(fclose(f), 0);
        free(path);
        free(image);
}

void vfs_shim_cut(const char *dir, uint64_t seed) {
        uint64_t state = seed * 0x9e3779b97f4a7c15ULL + 1;

        for (size_t i = 0; i < TRACKED_MAX; i++)
                if (tracked[i].name)
                        cut_file(&tracked[i], dir, &state);
}

/* ---- file methods ---- */

static int shim_close(sqlite3_file *f) {
        return real_of(f)->pMethods->xClose(real_of(f));
}

static int shim_read(sqlite3_file *f, void *buf, int n, sqlite3_int64 at) {
        vfs_shim.reads++;
        return real_of(f)->pMethods->xRead(real_of(f), buf, n, at);
}

static int shim_refuse(void) {
        if (!vfs_shim.fail_write)
                return SQLITE_OK;
        if (vfs_shim.fail_after > 0) {
                vfs_shim.fail_after--;
                return SQLITE_OK;
        }
        return vfs_shim.fail_write;
}

static void shim_tell(sqlite3_file *f) {
        if (vfs_shim.on_io && ((ShimFile *) (void *) f)->tracked)
                vfs_shim.on_io(vfs_shim.userdata);
}

static int shim_write(sqlite3_file *f, const void *buf, int n, sqlite3_int64 at) {
        int code = shim_refuse();

        if (code != SQLITE_OK)
                return code;
        shim_tell(f);
        vfs_shim.writes++;
        vfs_shim.bytes += (uint64_t) n;
        tracked_add(((ShimFile *) (void *) f)->tracked, at, buf, (size_t) n);
        return real_of(f)->pMethods->xWrite(real_of(f), buf, n, at);
}

static int shim_truncate(sqlite3_file *f, sqlite3_int64 size) {
        shim_tell(f);
        tracked_add(((ShimFile *) (void *) f)->tracked, -1, NULL, (size_t) size);
        return real_of(f)->pMethods->xTruncate(real_of(f), size);
}

static int shim_sync(sqlite3_file *f, int flags) {
        if (vfs_shim.fail_sync)
                return vfs_shim.fail_sync;
        shim_tell(f);
        vfs_shim.syncs++;
        tracked_sync(((ShimFile *) (void *) f)->tracked);
        return real_of(f)->pMethods->xSync(real_of(f), flags);
}

static int shim_size(sqlite3_file *f, sqlite3_int64 *ret) {
        return real_of(f)->pMethods->xFileSize(real_of(f), ret);
}

static int shim_lock(sqlite3_file *f, int level) {
        return real_of(f)->pMethods->xLock(real_of(f), level);
}

static int shim_unlock(sqlite3_file *f, int level) {
        return real_of(f)->pMethods->xUnlock(real_of(f), level);
}

static int shim_check_reserved(sqlite3_file *f, int *ret) {
        return real_of(f)->pMethods->xCheckReservedLock(real_of(f), ret);
}

static int shim_control(sqlite3_file *f, int op, void *arg) {
        return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}

static int shim_sector_size(sqlite3_file *f) {
        return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int shim_characteristics(sqlite3_file *f) {
        /* of a disk that promises nothing */
        return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f)) & ~SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static int shim_shm_map(sqlite3_file *f, int region, int size, int extend, void volatile **ret) {
        return real_of(f)->pMethods->xShmMap(real_of(f), region, size, extend, ret);
}

static int shim_shm_lock(sqlite3_file *f, int offset, int n, int flags) {
        return real_of(f)->pMethods->xShmLock(real_of(f), offset, n, flags);
}

static void shim_shm_barrier(sqlite3_file *f) {
        real_of(f)->pMethods->xShmBarrier(real_of(f));
}

static int shim_shm_unmap(sqlite3_file *f, int remove) {
        return real_of(f)->pMethods->xShmUnmap(real_of(f), remove);
}

static const sqlite3_io_methods shim_methods = {
        .iVersion = 2,
        .xClose = shim_close,
        .xRead = shim_read,
        .xWrite = shim_write,
        .xTruncate = shim_truncate,
        .xSync = shim_sync,
        .xFileSize = shim_size,
        .xLock = shim_lock,
        .xUnlock = shim_unlock,
        .xCheckReservedLock = shim_check_reserved,
        .xFileControl = shim_control,
        .xSectorSize = shim_sector_size,
        .xDeviceCharacteristics = shim_characteristics,
        .xShmMap = shim_shm_map,
        .xShmLock = shim_shm_lock,
        .xShmBarrier = shim_shm_barrier,
        .xShmUnmap = shim_shm_unmap,
};

static int shim_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *ret_flags) {
        ShimFile *s = (ShimFile *) (void *) f;
        int code;

        *s = (ShimFile){.real = (sqlite3_file *) (void *) (s + 1)};
        if (vfs_shim.read_only && flags & (SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE))
                return SQLITE_CANTOPEN;
        code = base_vfs->xOpen(base_vfs, name, s->real, flags, ret_flags);
        if (!s->real->pMethods)
                return code;
        f->pMethods = &shim_methods;
        if (vfs_shim.track && name &&
                flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL))
                s->tracked = tracked_find(name, true);
        return code;
}

static int shim_delete(sqlite3_vfs *vfs, const char *name, int sync_dir) {
        tracked_forget(tracked_find(name, false));
        return base_vfs->xDelete(base_vfs, name, sync_dir);
}

void vfs_shim_install(void) {
        base_vfs = sqlite3_vfs_find("unix");
        assert_non_null(base_vfs);
        shim_vfs = *base_vfs;
        shim_vfs.zName = "shim";
        shim_vfs.szOsFile = (int) sizeof(ShimFile) + base_vfs->szOsFile;
        shim_vfs.xOpen = shim_open;
        shim_vfs.xDelete = shim_delete;
        shim_vfs.pNext = NULL;
        vfs_shim = (VfsShim){};
        assert_int_equal(sqlite3_vfs_register(&shim_vfs, 1), SQLITE_OK);
}

void vfs_shim_remove(void) {
        for (size_t i = 0; i < TRACKED_MAX; i++)
                tracked_forget(&tracked[i]);
        assert_int_equal(sqlite3_vfs_unregister(&shim_vfs), SQLITE_OK);
        assert_int_equal(sqlite3_vfs_register(base_vfs, 1), SQLITE_OK);
        vfs_shim = (VfsShim){};
}
