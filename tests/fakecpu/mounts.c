/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Bind mounts over what exists. A directory that the running kernel does not have (no powercap: no
 * /sys/class/powercap) is made by a read-only overlay of its parent with an empty one of that name, and then
 * bound over like the others.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "cstated/macro.h"
#include "mounts.h"

static int write_file(const char *path, const char *text) {
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

        return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text) ? 0 : -errno;
}

static int become_root(void) {
        char map[64];
        uid_t uid = geteuid();
        gid_t gid = getegid();

        if (unshare(CLONE_NEWUSER) < 0)
                return -errno;
        (void) write_file("/proc/self/setgroups", "deny");
        (void) snprintf(map, sizeof(map), "0 %u 1", uid);
        int r = write_file("/proc/self/uid_map", map);
        if (r < 0)
                return r;
        (void) snprintf(map, sizeof(map), "0 %u 1", gid);
        return write_file("/proc/self/gid_map", map);
}

int mounts_isolate(const char **ret_what) {
        int r = geteuid() == 0 ? 0 : become_root();

        *ret_what = "a user namespace";
        if (r < 0)
                return r;
        *ret_what = "a mount namespace";
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                return -errno;
        return 0;
}

typedef struct Place {
        const char *from, *to;
        const char *point, *parent; /* where `to` may be missing: overlay `points/<point>` over `parent` */
        bool powercap;              /* needed only if the machine has zones */
} Place;

static const Place places[] = {
        { .from = "dev", .to = "/dev/cpu" },
        { .from = "cpu", .to = "/sys/devices/system/cpu" },
        { .from = "proc/cpuinfo", .to = "/proc/cpuinfo" },
        { .from = "proc/interrupts", .to = "/proc/interrupts" },
        { .from = "proc/stat", .to = "/proc/stat" },
        { .from = "virtual",
                .to = "/sys/devices/virtual/powercap",
                .point = "virtual",
                .parent = "/sys/devices/virtual",
                .powercap = true },
        { .from = "class",
                .to = "/sys/class/powercap",
                .point = "class",
                .parent = "/sys/class",
                .powercap = true },
        { .from = "module", .to = "/sys/module/intel_idle", .point = "module", .parent = "/sys/module" },
};

static int place_missing(const char *root, const Place *p) {
        char options[512];

        if (!p->point)
                return mkdir(p->to, 0755) < 0 ? -errno : 0;
        int n = snprintf(options, sizeof(options), "lowerdir=%s/points/%s:%s", root, p->point, p->parent);
        if (n >= (int) sizeof(options))
                return -ENAMETOOLONG;
        return mount("overlay", p->parent, "overlay", MS_RDONLY, options) < 0 ? -errno : 0;
}

int mounts_place(const char *root, bool need_powercap, const char **ret_what) {
        char from[512];

        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                const Place *p = &places[i];
                bool optional = p->powercap ? !need_powercap : p->point != NULL;
                struct stat st;

                *ret_what = p->to;
                if (stat(p->to, &st) < 0) {
                        int r = optional && p->powercap ? -ENOENT : place_missing(root, p);

                        if (r < 0 && optional)
                                continue;
                        if (r < 0)
                                return r;
                }
                (void) snprintf(from, sizeof(from), "%s/%s", root, p->from);
                if (mount(from, p->to, NULL, MS_BIND, NULL) < 0)
                        return -errno;
        }
        return 0;
}
