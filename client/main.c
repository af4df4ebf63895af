/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cstatectl: one verb a file, found by this table. Options that say where the data comes from stand before
 * the verb; without a verb it is "snapshot", so that turbostat's habits work unchanged.
 */

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>

#include "client/completion.h"
#include "client/ctl.h"
#include "cstated/api.h"

const Verb verbs[] = {
        { "snapshot", "the last interval, a turbostat-like table (default)", cmd_snapshot, options_snapshot,
                NULL },
        { "top", "the last interval, live", cmd_top, options_top, NULL },
        { "run", "run a command and tell what it cost", cmd_run, options_run, "command" },
        { "mark", "give a window a name", cmd_mark, options_mark, "label" },
        { "labels", "the windows that have names", cmd_labels, options_labels, "label" },
        { "show", "a window in one table", cmd_show, options_show, "label" },
        { "compare", "two windows side by side", cmd_compare, options_compare, "label" },
        { "query", "history as rows, CSV or JSON", cmd_query, options_query, NULL },
        { "sql", "SQL on the database itself, read-only", cmd_sql, options_sql, NULL },
        { "export", "history for other programs: CSV, OpenMetrics", cmd_export, options_export, NULL },
        { "events", "what happened: hotplug, sources, storms, gaps", cmd_events, options_events, NULL },
        { "cpu", "CPUs, errata, topology and idle states", cmd_cpu, options_cpu, NULL },
        { "doctor", "what keeps this machine from idling, and what to do", cmd_doctor, options_doctor,
                NULL },
        { "status", "health, sources and what measuring costs", cmd_status, options_status, NULL },
        { NULL, NULL, NULL, NULL, NULL },
};

static void print_help(void) {
        puts("usage: cstatectl [WHERE] [VERB] [OPTION]...\n\n"
             "CPU idle states: what was requested, what was granted, what it cost.\n\n"
             "Verbs (cstatectl VERB --help says more):");
        for (const Verb *v = verbs; v->name; v++)
                printf("  %-10s %s\n", v->name, v->summary);
        puts("\nWhere the data comes from (before the verb):\n"
             "      --connect SOCKET|HOST:PORT  a daemon elsewhere than\n"
             "                      " CSTATED_DEFAULT_SOCKET " (or $CSTATED_CONNECT)\n"
             "      --db FILE       a database, no daemon needed\n"
             "      --local         sample here and now, no daemon, no database\n\n"
             "      --help          this text\n"
             "      --version       the version\n\n"
             "Exit status: 0 ok, 1 failure, 2 usage, 3 no daemon, 4 no data,\n"
             "5 doctor has findings.");
}

void ctl_error(const char *format, ...) {
        va_list ap;

        (void) fflush(stdout);
        (void) fputs("cstatectl: ", stderr);
        va_start(ap, format);
        (void) vfprintf(stderr, format, ap);
        va_end(ap);
        (void) fputc('\n', stderr);
}

int ctl_usage_error(const char *verb) {
        (void) fprintf(stderr, "Try \"cstatectl %s--help\".\n", verb);
        return CTL_EXIT_USAGE;
}

int ctl_finish_stdout(void) {
        if (fflush(stdout) == 0 && !ferror(stdout))
                return CTL_EXIT_OK;
        if (errno != EPIPE)
                ctl_error("cannot write to standard output: %s", strerror(errno));
        return CTL_EXIT_FAILURE;
}

int ctl_words(int argc, char **argv, int min, int max, const char *what) {
        if (argc - optind < min) {
                ctl_error("%s is missing", what);
                return -EINVAL;
        }
        if (argc - optind > max) {
                ctl_error("unexpected argument \"%s\"", argv[optind + max]);
                return -EINVAL;
        }
        return 0;
}

int ctl_needs_history(const Ctl *ctl, const char *verb) {
        if (!ctl->local)
                return CTL_EXIT_OK;
        ctl_error("%s needs history, and --local keeps none", verb);
        return CTL_EXIT_USAGE;
}

unsigned ctl_width(void) {
        struct winsize w;

        return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}

/* "--name VALUE" or "--name=VALUE" at argv[*i]; moves *i to its last word. 1 taken, 0 another word, <0 no
 * value. */
static int take_option(int argc, char **argv, int *i, const char *name, const char **ret) {
        size_t n = strlen(name);

        if (strncmp(argv[*i], name, n) != 0)
                return 0;
        if (argv[*i][n] == '=') {
                *ret = argv[*i] + n + 1;
                return 1;
        }
        if (argv[*i][n])
                return 0;
        if (*i + 1 >= argc) {
                ctl_error("%s needs a value", name);
                return -EINVAL;
        }
        *ret = argv[++*i];
        return 1;
}

/* Consumes options before the verb. Returns the index of the first other word, or <0 after an error. */
static int parse_where(int argc, char **argv, Ctl *ret) {
        int i, r;

        for (i = 1; i < argc; i++) {
                if (strcmp(argv[i], "--local") == 0) {
                        ret->local = true;
                        continue;
                }
                r = take_option(argc, argv, &i, "--connect", &ret->connect);
                if (r == 0)
                        r = take_option(argc, argv, &i, "--db", &ret->db);
                if (r < 0)
                        return r;
                if (r == 0)
                        break;
        }
        if (!!ret->connect + !!ret->db + ret->local > 1) {
                ctl_error("--connect, --db and --local exclude each other");
                return -EINVAL;
        }
        return i;
}

static int run_verb(const Ctl *ctl, int argc, char **argv) {
        static char program[] = "cstatectl"; /* what getopt() names in its complaints */

        if (argc > 0 && argv[0][0] != '-') {
                for (const Verb *v = verbs; v->name; v++)
                        if (strcmp(v->name, argv[0]) == 0) {
                                argv[0] = program;
                                return v->run(ctl, argc, argv);
                        }
                ctl_error("there is no verb \"%s\"", argv[0]);
                return ctl_usage_error("");
        }
        /* The verb may be left out; argv[-1] exists (a where-option or the program's name) and is ours to
         * overwrite. */
        argv[-1] = program;
        return cmd_snapshot(ctl, argc + 1, argv - 1);
}

int main(int argc, char **argv) {
        Ctl ctl = {};
        int first;

        (void) signal(SIGPIPE, SIG_IGN);
        (void) setlocale(LC_CTYPE, ""); /* what the terminal can show; numbers stay as they are */
        if (argc > 1 && strcmp(argv[1], "--help") == 0) {
                print_help();
                return ctl_finish_stdout();
        }
        if (argc > 1 && strcmp(argv[1], "--version") == 0) {
                puts("cstatectl " CSTATED_VERSION);
                return ctl_finish_stdout();
        }
        if (argc == 3 && strcmp(argv[1], "--completion") == 0) {
                if (completion_print(argv[2], verbs, stdout) == 0)
                        return ctl_finish_stdout();
                ctl_error("--completion: bash or zsh");
                return CTL_EXIT_USAGE;
        }
        first = parse_where(argc, argv, &ctl);
        if (first < 0)
                return ctl_usage_error("");
        return run_verb(&ctl, argc - first, argv + first);
}
