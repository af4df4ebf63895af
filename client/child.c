/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The signals we wait for are blocked and taken with sigtimedwait(), so that there is neither a handler nor
 * a global. The child gets back what a program expects: an empty mask of ours and default actions.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "client/child.h"
#include "cstated/macro.h"
#include "cstated/num.h"
#include "cstated/timespan.h"

#define LOOK_NS (250 * 1000 * 1000)
#define TASKS_MAX 4096 /* a count beyond says nothing more */

typedef struct Signals {
        sigset_t ours, before;
        struct sigaction interrupt, quit;
} Signals;

static uint64_t now_us(clockid_t clock) {
        struct timespec t;

        (void) clock_gettime(clock, &t);
        return (uint64_t) t.tv_sec * USEC_PER_SEC + (uint64_t) t.tv_nsec / NSEC_PER_USEC;
}

static void signals_take(Signals *s) {
        const struct sigaction ignore = { .sa_handler = SIG_IGN };

        (void) sigemptyset(&s->ours);
        (void) sigaddset(&s->ours, SIGCHLD);
        (void) sigaddset(&s->ours, SIGTERM);
        (void) sigaddset(&s->ours, SIGHUP);
        (void) sigprocmask(SIG_BLOCK, &s->ours, &s->before);
        (void) sigaction(SIGINT, &ignore, &s->interrupt);
        (void) sigaction(SIGQUIT, &ignore, &s->quit);
}

static void signals_restore(const Signals *s) {
        (void) sigaction(SIGINT, &s->interrupt, NULL);
        (void) sigaction(SIGQUIT, &s->quit, NULL);
        (void) sigprocmask(SIG_SETMASK, &s->before, NULL);
}

/* In the child; returns only by telling why not. */
static void child_exec(char **argv, const Signals *s, int pipe_fd) {
        int error;

        signals_restore(s);
        (void) signal(SIGPIPE, SIG_DFL); /* main() ignores it for itself */
        (void) execvp(argv[0], argv);
        error = errno;
        (void) !write(pipe_fd, &error, sizeof(error));
        _exit(error == ENOENT ? 127 : 126);
}

static unsigned tasks_of(pid_t pid, unsigned depth);

static unsigned tasks_of_children(pid_t pid, const char *tid, unsigned depth) {
        char path[64], text[4096];
        _cleanup_close_ int fd = -1;
        unsigned n = 0;
        uint64_t child;
        const char *p = text, *end;
        ssize_t size;

        (void) snprintf(path, sizeof(path), "/proc/%d/task/%.16s/children", (int) pid, tid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        size = fd < 0 ? 0 : read(fd, text, sizeof(text));
        end = text + MAX(size, 0);
        for (; p < end; p++)
                if (num_scan_u64(&p, end, &child))
                        n += tasks_of((pid_t) child, depth + 1);
        return n;
}

/* Threads of the process and its descendants. */
static unsigned tasks_of(pid_t pid, unsigned depth) {
        const struct dirent *e;
        unsigned n = 0;
        char path[32];
        DIR *dir;

        (void) snprintf(path, sizeof(path), "/proc/%d/task", (int) pid);
        dir = depth < 16 ? opendir(path) : NULL;
        if (!dir)
                return 0;
        while ((e = readdir(dir)) && n < TASKS_MAX)
                if (e->d_name[0] != '.')
                        n += 1 + tasks_of_children(pid, e->d_name, depth);
        (void) closedir(dir);
        return n;
}

static void take_end(int status, const struct rusage *usage, ChildResult *r) {
        r->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        if (WIFSIGNALED(status) || r->status == 128 + SIGINT)
                r->interrupted = true;
        r->cpu_seconds = (double) (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
                (double) (usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}

static void wait_for(pid_t pid, const Signals *s, ChildTick tick, void *userdata, ChildResult *r) {
        const struct timespec look = { .tv_nsec = LOOK_NS };
        uint64_t begin = now_us(CLOCK_MONOTONIC);
        struct rusage usage;
        int status;

        r->n_tasks = 1;
        while (wait4(pid, &status, WNOHANG, &usage) != pid) {
                int number = sigtimedwait(&s->ours, NULL, &look);
                unsigned n;

                if (number == SIGTERM || number == SIGHUP) {
                        r->interrupted = true;
                        (void) kill(pid, number);
                }
                if (number >= 0)
                        continue;
                n = tasks_of(pid, 0);
                r->n_tasks = MAX(r->n_tasks, n);
                if (tick)
                        tick(userdata, (double) (now_us(CLOCK_MONOTONIC) - begin) / (double) USEC_PER_SEC);
        }
        r->end_us = now_us(CLOCK_REALTIME);
        r->seconds = (double) (now_us(CLOCK_MONOTONIC) - begin) / (double) USEC_PER_SEC;
        take_end(status, &usage, r);
}

int child_run(char **argv, ChildTick tick, void *userdata, ChildResult *ret) {
        ChildResult r = {};
        Signals signals;
        int fds[2];
        pid_t pid;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        signals_take(&signals);
        (void) fflush(NULL);
        r.start_us = now_us(CLOCK_REALTIME);
        pid = fork();
        if (pid == 0)
                child_exec(argv, &signals, fds[1]);
        (void) close(fds[1]);
        if (pid < 0) {
                int error = errno;

                signals_restore(&signals);
                (void) close(fds[0]);
                return -error;
        }
        if (read(fds[0], &r.error, sizeof(r.error)) != (ssize_t) sizeof(r.error))
                r.error = 0; /* the end of file: exec has closed it */
        wait_for(pid, &signals, tick, userdata, &r);
        signals_restore(&signals);
        (void) close(fds[0]);
        *ret = r;
        return 0;
}
