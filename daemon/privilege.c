/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Users and capabilities. Dropping works in this order: bounding set (needs CAP_SETPCAP), groups and user
 * (need CAP_SETUID, CAP_SETGID), then the sets themselves; leaving uid 0 clears the permitted set by itself,
 * staying does not.
 */

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cstated/api.h"
#include "cstated/macro.h"
#include "privilege.h"

static void note(ServerUser *u, const char *format, ...) _printf_(2, 3);

static void note(ServerUser *u, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(u->note, sizeof(u->note), format, ap);
        va_end(ap);
}

/* "/a/b/c.db" -> "/a/b"; false where it does not fit. */
static bool directory_of(const char *path, char *buf, size_t size) {
        const char *slash = strrchr(path, '/');
        size_t n = slash ? (size_t) (slash - path) : 0;

        if (!slash || n >= size)
                return false;
        if (n == 0)
                n = 1;
        memcpy(buf, path, n);
        buf[n] = '\0';
        return true;
}

/* mkdir -p of parents with 0755; 1 where the last one was made here. */
static int make_directories(const char *dir, mode_t mode) {
        char buf[4096];

        if (strlen(dir) >= sizeof(buf))
                return -ENAMETOOLONG;
        (void) strcpy(buf, dir);
        for (char *p = strchr(buf + 1, '/'); p; p = strchr(p + 1, '/')) {
                *p = '\0';
                if (mkdir(buf, 0755) < 0 && errno != EEXIST)
                        return -errno;
                *p = '/';
        }
        if (mkdir(buf, mode) == 0)
                return 1;
        return errno == EEXIST ? 0 : -errno;
}

/* In a user namespace a file can belong to somebody who does not exist there. */
static bool user_is_mapped(uid_t uid) {
        _cleanup_(fclosep) FILE *f = fopen("/proc/self/uid_map", "re");
        unsigned first, outside, n;

        if (!f)
                return true;
        while (fscanf(f, "%u %u %u", &first, &outside, &n) == 3)
                if (uid >= first && uid - first < n)
                        return true;
        return false;
}

#define GID_NOBODY 65534

/* The directory's group, but for root's, which a chown(1) of the user alone leaves behind: then the user's own. */
static gid_t group_of(const struct stat *st) {
        const struct passwd *pw;

        if (st->st_gid != 0)
                return st->st_gid;
        pw = getpwuid(st->st_uid);
        return pw ? pw->pw_gid : GID_NOBODY;
}

static void find_owner(const char *dir, ServerUser *u) {
        struct stat st;

        if (stat(dir, &st) < 0) {
                note(u, "runs as uid 0 with empty capability sets: the database's directory is not there");
                return;
        }
        if (st.st_uid == 0) {
                note(u, "runs as uid 0 with empty capability sets: root owns the database's directory");
                return;
        }
        if (!user_is_mapped(st.st_uid)) {
                note(u, "runs as uid 0 with empty capability sets: the owner of the database's directory "
                        "is nobody here");
                return;
        }
        u->change = true;
        u->uid = st.st_uid;
        u->gid = group_of(&st);
}

/* The default directory belongs to our own user; what root made before that user existed is handed over. */
static void take_default_user(const char *dir, const struct passwd *pw, ServerUser *u) {
        struct stat st;

        u->change = true;
        u->uid = pw->pw_uid;
        u->gid = pw->pw_gid;
        if (stat(dir, &st) == 0 && st.st_uid != pw->pw_uid)
                (void) chown(dir, pw->pw_uid, pw->pw_gid);
}

int privilege_find_user(const char *db_path, ServerUser *ret) {
        char dir[4096], default_dir[sizeof(dir)];
        ServerUser u = { .uid = geteuid(), .gid = getegid(), .socket_group = (gid_t) -1 };
        const struct passwd *pw = getpwnam(CSTATED_USER);
        const struct group *gr = getgrnam(CSTATED_USER);

        if (gr)
                u.socket_group = gr->gr_gid;
        if (!directory_of(db_path, dir, sizeof(dir)) ||
                !directory_of(CSTATED_DEFAULT_DB, default_dir, sizeof(default_dir)))
                return -ENAMETOOLONG;
        (void) make_directories(dir, 0750);
        if (u.uid == 0 && pw && strcmp(dir, default_dir) == 0)
                take_default_user(dir, pw, &u);
        else if (u.uid == 0)
                find_owner(dir, &u);
        *ret = u;
        return 0;
}

int privilege_make_socket_directory(const ServerUser *u, const char *socket_path) {
        char dir[4096];
        int r;

        if (!directory_of(socket_path, dir, sizeof(dir)))
                return -ENAMETOOLONG;
        r = make_directories(dir, 0755);
        if (r > 0 && u->change)
                (void) chown(dir, u->uid, u->gid);
        return r < 0 ? r : 0;
}

static void drop_bounding_set(const cap_value_t *keep, size_t n_keep) {
        for (cap_value_t c = 0; c < (cap_value_t) cap_max_bits(); c++) {
                bool kept = false;

                for (size_t i = 0; i < n_keep; i++)
                        kept |= keep[i] == c;
                if (!kept && cap_get_bound(c) > 0)
                        (void) cap_drop_bound(c);
        }
}

/* Sets of exactly those of `keep` that are permitted now. */
static int set_capabilities(const cap_value_t *keep, size_t n_keep) {
        cap_t now = cap_get_proc(), next = cap_init();
        int r = now && next ? 0 : -errno;

        for (size_t i = 0; r == 0 && i < n_keep; i++) {
                cap_flag_value_t have = CAP_CLEAR;

                if (cap_get_flag(now, keep[i], CAP_PERMITTED, &have) < 0 || have == CAP_CLEAR)
                        continue;
                if (cap_set_flag(next, CAP_PERMITTED, 1, &keep[i], CAP_SET) < 0 ||
                        cap_set_flag(next, CAP_EFFECTIVE, 1, &keep[i], CAP_SET) < 0)
                        r = -errno;
        }
        if (r == 0 && cap_set_proc(next) < 0)
                r = -errno;
        if (now)
                (void) cap_free(now);
        if (next)
                (void) cap_free(next);
        return r;
}

/* The socket's group stays with us as a supplementary one, so that the server can be asked by what it
 * serves. */
static int change_user(const ServerUser *u) {
        size_t n = u->socket_group != (gid_t) -1 && u->socket_group != u->gid ? 1 : 0;

        if (setgroups(n, &u->socket_group) < 0 || setresgid(u->gid, u->gid, u->gid) < 0 ||
                setresuid(u->uid, u->uid, u->uid) < 0)
                return -errno;
        return 0;
}

int privilege_drop(ServerUser *u) {
        int r;

        drop_bounding_set(NULL, 0);
        if (u->change) {
                r = change_user(u);
                if (r < 0 && geteuid() == 0) {
                        u->change = false;
                        note(u, "runs as uid 0 with empty capability sets: uid %u cannot be taken (%s)",
                                (unsigned) u->uid, strerror(-r));
                } else if (r < 0)
                        return r;
        }
        (void) prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        r = set_capabilities(NULL, 0);
        if (r < 0)
                return r;
        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

int privilege_limit_sampler(void) {
        static const cap_value_t keep[] = { CAP_SYS_RAWIO, CAP_DAC_READ_SEARCH, CAP_PERFMON, CAP_BPF };
        int r;

        drop_bounding_set(keep, ARRAY_SIZE(keep));
        (void) prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        r = set_capabilities(keep, ARRAY_SIZE(keep));
        if (r < 0)
                return r;
        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}
