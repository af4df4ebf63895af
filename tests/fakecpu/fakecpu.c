/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * fakecpu SCENARIO [--set KEY=VALUE]... [--shim] -- CMD...: CMD on the scenario's machine, in a mount
 * namespace of its own.
 *
 * Two processes: we wait for CMD and pass its status on; a child serves the file system until our end of a
 * pipe closes, however we ended, and takes the mount point away with it. Exit status: CMD's, 125 ours,
 * 126/127 as env(1), 77 where this system cannot do it (no FUSE, no mount namespaces, no CPUID faulting for
 * --shim).
 */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "clock.h"
#include "fs.h"
#include "machine.h"
#include "mounts.h"

enum {
        EXIT_OURS = 125,
        EXIT_SKIP = 77,
};

static const char usage[] =
        "Usage: fakecpu [OPTION]... SCENARIO -- COMMAND [ARGUMENT]...\n"
        "Run COMMAND on a fake machine made of FUSE.\n\n"
        "  SCENARIO           name of a file in the scenarios' directory, or a path\n"
        "  -s, --set K=V      override a structural key, or set a rate at the start\n"
        "  -e, --event TEXT   add a statement (\"at 3s offline cpu=5\")\n"
        "      --shim         preload the shim that lets turbostat run\n"
        "      --scenarios D  directory of the scenarios\n"
        "      --check        read the scenario, build the machine, and say nothing more\n"
        "  -h, --help         this text\n";

typedef struct Arguments {
        const char *scenario, *scenarios, *shim;
        const char *sets[64], *events[64];
        size_t n_sets, n_events;
        bool check;
        char **command;
} Arguments;

static volatile sig_atomic_t command_pid;

static int read_text(const char *directory, const char *name, unsigned depth, Buf *b) {
        _cleanup_free_ char *path = NULL;
        char line[STATEMENT_TEXT_MAX], included[64];

        if (depth > 4)
                return -ELOOP;
        if (asprintf(&path, "%s%s%s", strchr(name, '/') ? "" : directory, strchr(name, '/') ? "" : "/",
                    name) < 0)
                return -ENOMEM;
        _cleanup_(fclosep) FILE *f = fopen(path, "re");
        if (!f)
                return -errno;
        while (fgets(line, sizeof(line), f)) {
                if (sscanf(line, "include %63s", included) != 1) {
                        buf_add(b, line, strlen(line));
                        continue;
                }
                int r = read_text(directory, included, depth + 1, b);
                if (r < 0)
                        return r;
        }
        return b->failed ? -ENOMEM : 0;
}

/* --set follow the text, so that they win; so do the events. */
static bool scenario_load(Scenario *s, const Arguments *a, char error[SCENARIO_ERROR_MAX]) {
        _cleanup_(buf_deinit) Buf b = {};
        int r = read_text(a->scenarios, a->scenario, 0, &b);

        if (r < 0) {
                (void) snprintf(error, SCENARIO_ERROR_MAX, "%s", strerror(-r));
                return false;
        }
        for (size_t i = 0; i < a->n_events; i++)
                buf_printf(&b, "\n%s\n", a->events[i]);
        buf_add(&b, "", 1);
        if (!scenario_parse(s, b.data, error))
                return false;
        for (size_t i = 0; i < a->n_sets; i++)
                if (!scenario_override(s, a->sets[i], error))
                        return false;
        return true;
}

static bool arguments_parse(Arguments *a, int argc, char **argv) {
        static const struct option options[] = {
                { "set", required_argument, NULL, 's' },
                { "event", required_argument, NULL, 'e' },
                { "shim", optional_argument, NULL, 1 },
                { "scenarios", required_argument, NULL, 2 },
                { "check", no_argument, NULL, 3 },
                { "help", no_argument, NULL, 'h' },
                {},
        };
        int c;

        *a = (Arguments){ .scenarios = "." };
        while (optind < argc) {
                c = getopt_long(argc, argv, "+s:e:h", options, NULL);
                if (c == 's' && a->n_sets < ARRAY_SIZE(a->sets))
                        a->sets[a->n_sets++] = optarg;
                else if (c == 'e' && a->n_events < ARRAY_SIZE(a->events))
                        a->events[a->n_events++] = optarg;
                else if (c == 1)
                        a->shim = optarg ? optarg : "";
                else if (c == 2)
                        a->scenarios = optarg;
                else if (c == 3)
                        a->check = true;
                else if (c == 'h') {
                        (void) fputs(usage, stdout);
                        exit(EXIT_SUCCESS);
                } else if (c != -1)
                        return false;
                else if (strcmp(argv[optind - 1], "--") == 0 || a->scenario)
                        break;
                else
                        a->scenario = argv[optind++];
        }
        a->command = argv + optind;
        return a->scenario && (a->check || *a->command);
}

static bool cpuid_faults(void) {
        _cleanup_(fclosep) FILE *f = fopen("/proc/cpuinfo", "re");
        _cleanup_free_ char *line = NULL;
        size_t size = 0;

        while (f && getline(&line, &size, f) > 0)
                if (strncmp(line, "flags", 5) == 0)
                        return strstr(line, " cpuid_fault") != NULL;
        return false;
}

/* The serving process. It leaves our session, so that Ctrl-C ends CMD and not the machine under it. */
static int serve(Machine *m, Clock *clock, const char *directory, int stop_fd, int ready_fd) {
        Fs *fs;
        int r = 0;

        (void) setsid();
        (void) signal(SIGPIPE, SIG_IGN);
        (void) dup2(STDERR_FILENO, STDOUT_FILENO);
        fs = fs_new(m, clock, directory);
        if (fs && write(ready_fd, "1", 1) == 1)
                r = fs_serve(fs, stop_fd);
        (void) close(ready_fd);
        (void) fs_free(fs);
        (void) rmdir(directory);
        return fs && r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void forward(int sig) {
        if (command_pid > 0)
                (void) kill((pid_t) command_pid, sig);
}

static int run_command(const Arguments *a, const char *directory) {
        char text[512];
        int status;
        pid_t pid;

        (void) snprintf(text, sizeof(text), "%s/ctl", directory);
        (void) setenv("FAKECPU_CTL", text, 1);
        pid = fork();
        if (pid < 0)
                return EXIT_OURS;
        if (pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (a->shim)
                        (void) setenv("LD_PRELOAD", a->shim, 1);
                (void) execvp(a->command[0], a->command);
                (void) fprintf(stderr, "fakecpu: %s: %s\n", a->command[0], strerror(errno));
                _exit(errno == ENOENT ? 127 : 126);
        }
        command_pid = pid;
        (void) signal(SIGTERM, forward);
        (void) signal(SIGHUP, forward);
        (void) signal(SIGINT, SIG_IGN);
        (void) signal(SIGQUIT, SIG_IGN);
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return EXIT_OURS;
        command_pid = 0;
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int skip(const char *what, int error) {
        (void) fprintf(stderr, "fakecpu: SKIP: no %s here: %s\n", what, strerror(error));
        return EXIT_SKIP;
}

/* Starts the server, waits until it is mounted, puts the tree in place and runs the command. */
static int run_on(Machine *m, Clock *clock, const Arguments *a, const char *directory) {
        int stop[2], ready[2], r;
        const char *what;
        char byte;
        pid_t server;

        if (pipe2(stop, O_CLOEXEC) < 0 || pipe2(ready, O_CLOEXEC) < 0)
                return EXIT_OURS;
        server = fork();
        if (server < 0)
                return EXIT_OURS;
        if (server == 0) {
                (void) close(stop[1]);
                (void) close(ready[0]);
                r = serve(m, clock, directory, stop[0], ready[1]);
                _exit(r);
        }
        (void) close(stop[0]);
        (void) close(ready[1]);
        if (read(ready[0], &byte, 1) != 1)
                r = skip("FUSE mount", ENODEV);
        else {
                r = mounts_place(directory, m->n_zones > 0, &what);
                r = r < 0 ? skip(what, -r) : run_command(a, directory);
        }
        (void) close(stop[1]);
        (void) waitpid(server, NULL, 0);
        return r;
}

static int run(Machine *m, Clock *clock, const Arguments *a) {
        char directory[] = "/tmp/fakecpu.XXXXXX";
        const char *what;
        int r;

        if (a->shim && !cpuid_faults())
                return skip("CPUID faulting (flag cpuid_fault)", EOPNOTSUPP);
        if (access("/dev/fuse", R_OK | W_OK) < 0)
                return skip("/dev/fuse", errno);
        r = mounts_isolate(&what);
        if (r < 0)
                return skip(what, -r);
        if (!mkdtemp(directory) || chmod(directory, 0755) < 0)
                return EXIT_OURS;
        r = run_on(m, clock, a, directory);
        (void) rmdir(directory); /* the server did; unless it was killed */
        return r;
}

int main(int argc, char **argv) {
        char error[SCENARIO_ERROR_MAX] = "";
        Arguments a;
        Scenario s = {};
        Machine *m = calloc(1, sizeof(*m));
        Clock clock;
        int r = EXIT_OURS;

        if (!m)
                return EXIT_OURS;
        if (!arguments_parse(&a, argc, argv)) {
                (void) fputs(usage, stderr);
                free(m);
                return EXIT_OURS;
        }
        clock_start(&clock);
        if (!scenario_load(&s, &a, error) || !machine_build(m, &s, clock.tsc_hz, error))
                (void) fprintf(stderr, "fakecpu: %s: %s\n", a.scenario, error);
        else
                r = a.check ? EXIT_SUCCESS : run(m, &clock, &a);
        machine_deinit(m);
        free(m);
        scenario_free(&s);
        return r;
}
