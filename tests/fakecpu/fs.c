/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Names, attributes, directories and opens. Inode numbers say everything, so there is nothing to look up but
 * the machine. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "fs-internal.h"
#include "machine-apply.h"

#define CACHE_FOR_EVER 86400.0
#define CLIENT_AGE_NS                                                                                       \
        200000000 /* a pid's name is looked at again after this; registers look at each open                \
                   */
#define CAP_SYS_RAWIO_BIT 17

/* Tells the kernel what changed since it was last told. */
static void fs_invalidate(Fs *fs) {
        static const char *const in_cpu[] = { "topology", "cpuidle", "cpufreq" };
        Machine *m = fs->m;
        char name[16];

        for (unsigned i = 0; i < m->n_cpus; i++) {
                unsigned id = m->cpus[i].id;

                (void) snprintf(name, sizeof(name), "%u", id);
                inval_add(fs->inval, node_ino((Node){ .kind = NODE_MSR, .a = id }), NULL);
                inval_add(fs->inval, node_ino((Node){ .kind = NODE_CPUID, .a = id }), NULL);
                inval_add(fs->inval, node_ino((Node){ .kind = NODE_DEV }), name);
                for (size_t k = 0; k < ARRAY_SIZE(in_cpu); k++)
                        inval_add(fs->inval, node_ino((Node){ .kind = NODE_CPU, .a = id }), in_cpu[k]);
                inval_add(fs->inval, node_ino((Node){ .kind = NODE_DEV_CPU, .a = id }), "msr");
                inval_add(fs->inval, node_ino((Node){ .kind = NODE_DEV_CPU, .a = id }), "cpuid");
        }
        inval_add(fs->inval, node_ino((Node){ .kind = NODE_SYS }), "cpuidle");
        for (unsigned i = 0; i < m->n_zones; i++) {
                inval_add(fs->inval,
                        node_ino((Node){ .kind = NODE_ZONE_FILE, .b = i, .c = ZONE_FILE_ENERGY }), NULL);
                inval_add(fs->inval, node_ino((Node){ .kind = NODE_CLASS }), m->zones[i].dir);
        }
        for (unsigned i = 0; i < powercap_controls(m); i++) {
                char control[64];

                powercap_control_name(m, i, control);
                inval_add(fs->inval, node_ino((Node){ .kind = NODE_CLASS }), control);
                inval_add(fs->inval, node_ino((Node){ .kind = NODE_VIRTUAL }), control);
        }
}

bool fs_collect(Fs *fs) {
        if (fs->generation == fs->m->generation)
                return false;
        fs->generation = fs->m->generation;
        fs_invalidate(fs);
        return true;
}

int64_t fs_now(Fs *fs) {
        int64_t now = clock_now_ns(fs->clock);

        machine_run(fs->m, now);
        if (fs_collect(fs))
                inval_send(fs->inval, NULL, 0);
        return now;
}

static void node_attributes(const Machine *m, Node n, struct stat *st) {
        *st = (struct stat){
                .st_ino = node_ino(n), .st_mode = node_mode(m, n), .st_nlink = node_is_dir(n) ? 2 : 1
        };
        if (S_ISREG(st->st_mode) && n.kind != NODE_MSR && n.kind != NODE_CPUID && n.kind != NODE_PROC_FILE &&
                n.kind != NODE_CTL_FILE)
                st->st_size = 4096;
        st->st_blksize = 4096;
        st->st_mtime = st->st_ctime = st->st_atime = 1700000000;
}

void fs_lookup(fuse_req_t req, fuse_ino_t parent, const char *name) {
        Fs *fs = fs_of(req);
        Node n;

        (void) fs_now(fs);
        n = node_lookup(fs->m, node_of_ino(parent), name);
        if (n.kind == NODE_NONE) {
                (void) fuse_reply_err(req, ENOENT);
                return;
        }
        struct fuse_entry_param entry = {
                .ino = node_ino(n), .attr_timeout = CACHE_FOR_EVER, .entry_timeout = CACHE_FOR_EVER
        };
        node_attributes(fs->m, n, &entry.attr);
        (void) fuse_reply_entry(req, &entry);
}

void fs_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
        Fs *fs = fs_of(req);
        Node n = node_of_ino(ino);
        struct stat st;

        (void) fs_now(fs);
        if (!node_present(fs->m, n)) {
                (void) fuse_reply_err(req, ENOENT);
                return;
        }
        node_attributes(fs->m, n, &st);
        (void) fuse_reply_attr(req, &st, CACHE_FOR_EVER);
}

/* chmod on a file is the scenario's chmod of its class; truncation of what may be written is nothing. */
void fs_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi) {
        Fs *fs = fs_of(req);
        Node n = node_of_ino(ino);

        if (to_set & FUSE_SET_ATTR_MODE) {
                FileClass class = n.kind == NODE_MSR                                    ? FILE_MSR
                                  : n.kind == NODE_CPUID                                ? FILE_CPUID
                                  : n.kind == NODE_ZONE_FILE && n.c == ZONE_FILE_ENERGY ? FILE_ENERGY
                                                                                        : FILE_CLASS_N;

                if (class == FILE_CLASS_N) {
                        (void) fuse_reply_err(req, EPERM);
                        return;
                }
                fs->m->files[class].mode = attr->st_mode & 0777;
                fs->m->generation++;
        } else if (to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) {
                (void) fuse_reply_err(req, EPERM);
                return;
        }
        fs_getattr(req, ino, fi);
}

void fs_readlink(fuse_req_t req, fuse_ino_t ino) {
        Fs *fs = fs_of(req);
        _cleanup_(buf_deinit) Buf b = {};
        uint64_t value;
        bool counts;

        (void) node_render(fs->m, node_of_ino(ino), 0, &b, &value, &counts);
        buf_add(&b, "", 1);
        (void) fuse_reply_readlink(req, b.failed ? "" : b.data);
}

typedef struct DirFill {
        fuse_req_t req;
        const Machine *m;
        Buf b;
} DirFill;

/* An entry's offset is where the next one begins, so that a reader can go on behind any of them. */
static bool dir_emit(void *userdata, const char *name, Node child) {
        DirFill *d = userdata;
        struct stat st = { .st_ino = node_ino(child), .st_mode = node_mode(d->m, child) };
        char entry[512];
        size_t len = fuse_add_direntry(d->req, NULL, 0, name, NULL, 0);

        if (len <= sizeof(entry)) {
                (void) fuse_add_direntry(d->req, entry, sizeof(entry), name, &st, (off_t) (d->b.len + len));
                buf_add(&d->b, entry, len);
        }
        return true;
}

void fs_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
        Fs *fs = fs_of(req);
        Buf *kept = calloc(1, sizeof(*kept));
        DirFill d = { .req = req, .m = fs->m };

        if (!kept) {
                (void) fuse_reply_err(req, ENOMEM);
                return;
        }
        (void) fs_now(fs);
        (void) dir_emit(&d, ".", node_of_ino(ino));
        (void) dir_emit(&d, "..", (Node){ .kind = NODE_ROOT });
        node_list(fs->m, node_of_ino(ino), dir_emit, &d);
        *kept = d.b;
        fi->fh = (uint64_t) (uintptr_t) kept;
        (void) fuse_reply_open(req, fi);
}

/* Only whole entries may be given. */
void fs_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi) {
        const Buf *b = (const Buf *) (uintptr_t) fi->fh;
        size_t from = MIN((size_t) off, b->len), end = from;

        while (end < b->len) {
                uint32_t name_len;

                /* struct fuse_dirent: ino, off, namelen, type, name; padded to 8. */
                memcpy(&name_len, b->data + end + 16, sizeof(name_len));
                size_t len = (24 + name_len + 7) & ~(size_t) 7;
                if (end + len - from > size)
                        break;
                end += len;
        }
        (void) fuse_reply_buf(req, b->data + from, end - from);
}

void fs_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
        Buf *b = (Buf *) (uintptr_t) fi->fh;

        buf_deinit(b);
        free(b);
        (void) fuse_reply_err(req, 0);
}

static LedgerClass class_of(Node n) {
        switch ((int) n.kind) {
        case NODE_MSR:
                return CLASS_MSR;
        case NODE_CPUID:
                return CLASS_CPUID;
        case NODE_SYS_FILE:
        case NODE_CPU_FILE:
        case NODE_SMT_FILE:
                return CLASS_CPU;
        case NODE_TOPOLOGY_FILE:
        case NODE_NUMA_FILE:
                return CLASS_TOPOLOGY;
        case NODE_SYS_IDLE_FILE:
        case NODE_STATE_FILE:
        case NODE_S2IDLE_FILE:
                return CLASS_CPUIDLE;
        case NODE_ZONE_FILE:
        case NODE_CONTROL_FILE:
                return CLASS_POWERCAP;
        case NODE_PROC_FILE:
                return CLASS_CPUINFO + (LedgerClass) n.c;
        default:
                return CLASS_OTHER;
        }
}

/* 0, or what open(2) of this file gives now. */
static int open_verdict(Fs *fs, Node n, const Client *client, int flags) {
        bool writes = (flags & O_ACCMODE) != O_RDONLY;

        if (n.kind != NODE_MSR && n.kind != NODE_CPUID)
                return node_present(fs->m, n) ? 0 : ENOENT;
        if (n.kind == NODE_MSR)
                fs->ledger.write_opens += writes;
        if (!node_present(fs->m, n))
                return ENXIO;
        if (n.kind == NODE_MSR && !(client->caps >> CAP_SYS_RAWIO_BIT & 1))
                return EPERM;
        return fs->m->files[n.kind == NODE_MSR ? FILE_MSR : FILE_CPUID].open_errno;
}

void fs_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
        Fs *fs = fs_of(req);
        Node n = node_of_ino(ino);
        int64_t now = fs_now(fs);
        OpenFile *f = calloc(1, sizeof(*f));

        if (!f) {
                (void) fuse_reply_err(req, ENOMEM);
                return;
        }
        f->class = class_of(n);
        if (n.kind != NODE_CTL_FILE) {
                bool device = n.kind == NODE_MSR || n.kind == NODE_CPUID;

                f->client =
                        ledger_client(&fs->ledger, fuse_req_ctx(req)->pid, now, device ? 0 : CLIENT_AGE_NS);
                ledger_open(&fs->ledger, f->class, f->client);
        }
        int r = open_verdict(fs, n, &fs->ledger.clients[f->client], fi->flags);
        if (r != 0) {
                free(f);
                (void) fuse_reply_err(req, r);
                return;
        }
        fi->fh = (uint64_t) (uintptr_t) f;
        fi->direct_io = 1;
        (void) fuse_reply_open(req, fi);
}

void fs_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi) {
        OpenFile *f = (OpenFile *) (uintptr_t) fi->fh;

        buf_deinit(&f->text);
        free(f);
        (void) fuse_reply_err(req, 0);
}
