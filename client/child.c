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

typedef struct Tasks {
        unsigned n;
        uint64_t wait_ns; /* ready, and waiting for a CPU */
} Tasks;

static void look_at(pid_t pid, unsigned depth, Tasks *t);

/* Reads a small file of a task; the number of bytes. */
static size_t read_task(pid_t pid, const char *tid, const char *name, char *buf, size_t size) {
        _cleanup_close_ int fd = -1;
        char path[80];
        ssize_t n;

        (void) snprintf(path, sizeof(path), "/proc/%d/task/%.16s/%s", (int) pid, tid, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? 0 : read(fd, buf, size);
        return n > 0 ? (size_t) n : 0;
}

static bool next_number(const char **p, const char *end, uint64_t *ret) {
        while (*p < end && **p == ' ')
                (*p)++;
        return num_scan_u64(p, end, ret);
}

static void look_at_task(pid_t pid, const char *tid, unsigned depth, Tasks *t) {
        char text[4096];
        const char *p = text, *end;
        uint64_t run_ns, wait_ns, child;

        t->n++;
        end = text + read_task(pid, tid, "schedstat", text, sizeof(text));
        if (next_number(&p, end, &run_ns) && next_number(&p, end, &wait_ns))
                t->wait_ns += wait_ns;
        p = text;
        end = text + read_task(pid, tid, "children", text, sizeof(text));
        for (; p < end; p++)
                if (num_scan_u64(&p, end, &child))
                        look_at((pid_t) child, depth + 1, t);
}

/* Threads of the process and its descendants. */
static void look_at(pid_t pid, unsigned depth, Tasks *t) {
        const struct dirent *e;
        char path[32];
        DIR *dir;

        (void) snprintf(path, sizeof(path), "/proc/%d/task", (int) pid);
        dir = depth < 16 ? opendir(path) : NULL;
        if (!dir)
                return;
        while ((e = readdir(dir)) && t->n < TASKS_MAX)
                if (e->d_name[0] != '.')
                        look_at_task(pid, e->d_name, depth, t);
        (void) closedir(dir);
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
                Tasks tasks = {};

                if (number == SIGTERM || number == SIGHUP) {
                        r->interrupted = true;
                        (void) kill(pid, number);
                }
                if (number >= 0)
                        continue;
                look_at(pid, 0, &tasks);
                r->n_tasks = MAX(r->n_tasks, tasks.n);
                r->wait_seconds = MAX(r->wait_seconds, (double) tasks.wait_ns / (double) NSEC_PER_SEC);
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
