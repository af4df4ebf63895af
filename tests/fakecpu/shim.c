/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Preloaded into a tool that needs more than files to believe in the machine: the CPUID instruction (made to
 * fault, answered from /dev/cpu/N/cpuid of the CPU the tool last "moved" to), affinity to CPUs that are not
 * there, a limit of open files it may not raise, and perf events, which would come from the real kernel and
 * are therefore refused. For peers only: our own programs run without it.
 */

#include <asm/prctl.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "cstated/macro.h"

#define EXPORT __attribute__((visibility("default")))

/* Not in every libc header; the syscall's own numbers. */
#ifndef ARCH_SET_CPUID
#define ARCH_SET_CPUID 0x1012
#endif

static _Atomic int current_cpu;
static long (*real_syscall)(long number, ...);
static int (*real_setrlimit)(__rlimit_resource_t resource, const struct rlimit *limit);

static void write_number(char *p, unsigned v) {
        char digits[12];
        int n = 0;

        do {
                digits[n++] = (char) ('0' + v % 10);
                v /= 10;
        } while (v > 0);
        while (n > 0)
                *p++ = digits[--n];
        *p = '\0';
}

/* Only functions that a signal handler may call. */
static bool cpuid_ask(uint32_t leaf, uint32_t subleaf, uint32_t regs[4]) {
        char path[64] = "/dev/cpu/";

        write_number(path + strlen(path), (unsigned) atomic_load(&current_cpu));
        (void) memcpy(path + strlen(path), "/cpuid", sizeof("/cpuid"));
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return false;
        /* Most leaves ignore ECX and callers leave anything in it; an offset must not be negative. */
        ssize_t n = pread(fd, regs, 16, (off_t) ((uint64_t) (subleaf & INT32_MAX) << 32 | leaf));
        (void) close(fd);
        return n == 16;
}

static void on_fault(int sig, siginfo_t *info, void *context) {
        greg_t *g = ((ucontext_t *) context)->uc_mcontext.gregs;
        const unsigned char *at = (const unsigned char *) (uintptr_t) g[REG_RIP];
        int saved = errno;
        uint32_t regs[4];

        if (at[0] != 0x0f || at[1] != 0xa2 ||
                !cpuid_ask((uint32_t) g[REG_RAX], (uint32_t) g[REG_RCX], regs)) {
                /* A fault of the tool's own, or no answer: let it happen again, for good. */
                (void) signal(SIGSEGV, SIG_DFL);
                return;
        }
        g[REG_RAX] = regs[0];
        g[REG_RBX] = regs[1];
        g[REG_RCX] = regs[2];
        g[REG_RDX] = regs[3];
        g[REG_RIP] += 2;
        errno = saved;
}

static int first_online(void) {
        char text[16] = "";
        int fd = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);

        if (fd >= 0) {
                (void) !read(fd, text, sizeof(text) - 1);
                (void) close(fd);
        }
        return atoi(text);
}

__attribute__((constructor)) static void shim_start(void) {
        struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER };
        struct rlimit limit;

        real_syscall = (long (*)(long, ...)) dlsym(RTLD_NEXT, "syscall");
        real_setrlimit = (int (*)(__rlimit_resource_t, const struct rlimit *)) dlsym(RTLD_NEXT, "setrlimit");
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
                limit.rlim_cur = limit.rlim_max;
                (void) real_setrlimit(RLIMIT_NOFILE, &limit);
        }
        atomic_store(&current_cpu, first_online());
        (void) sigaction(SIGSEGV, &action, NULL);
        if (real_syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0) < 0)
                (void) !write(STDERR_FILENO, "fakecpu shim: CPUID does not fault here\n", 40);
}

EXPORT int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set) {
        for (size_t i = 0; i < size * 8; i++)
                if (CPU_ISSET_S(i, size, set)) {
                        atomic_store(&current_cpu, (int) i);
                        break;
                }
        return 0;
}

EXPORT int sched_getcpu(void) {
        return atomic_load(&current_cpu);
}

static int limit_set(__rlimit_resource_t resource, const struct rlimit *limit) {
        int r = real_setrlimit(resource, limit);

        return resource == RLIMIT_NOFILE ? 0 : r;
}

/* Under both of the C library's names: the headers turn one into the other when files are 64 bits wide. */
EXPORT int shim_setrlimit(__rlimit_resource_t resource, const struct rlimit *limit) __asm__("setrlimit");
EXPORT int shim_setrlimit64(__rlimit_resource_t resource, const struct rlimit *limit) __asm__("setrlimit64");

int shim_setrlimit(__rlimit_resource_t resource, const struct rlimit *limit) {
        return limit_set(resource, limit);
}

int shim_setrlimit64(__rlimit_resource_t resource, const struct rlimit *limit) {
        return limit_set(resource, limit);
}

EXPORT long syscall(long number, ...) {
        long a[6];
        va_list ap;

        va_start(ap, number);
        for (size_t i = 0; i < ARRAY_SIZE(a); i++)
                a[i] = va_arg(ap, long);
        va_end(ap);
        if (number == SYS_perf_event_open) {
                errno = ENOENT;
                return -1;
        }
        return real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
