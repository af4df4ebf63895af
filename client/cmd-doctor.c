/* SPDX-License-Identifier: GPL-2.0-or-later */
/* cstatectl doctor: what keeps this machine from idling, heaviest first, each with evidence and what to do. */

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "client/conn.h"
#include "client/doctor-facts.h"
#include "client/text.h"
#include "cstated/api.h"

static void print_help(void) {
        puts("usage: cstatectl [WHERE] doctor [--start TIME] [--end TIME] [--json]\n\n"
             "Looks at the CPU, its errata, idle states, the sources and the last hour, and\n"
             "prints what keeps the machine from idling, heaviest first, each with the\n"
             "evidence and what to do. Exit status 0 healthy, 5 findings.\n\n"
             "      --start TIME  begin of the window (default -1h)\n"
             "      --end TIME    end of the window (default now)\n"
             "      --json        the findings as JSON");
}

typedef struct DoctorOptions {
        const char *start, *end;
        bool json;
} DoctorOptions;

const struct option options_doctor[] = {
        { "start", required_argument, NULL, 's' }, { "end", required_argument, NULL, 'e' },
        { "json", no_argument, NULL, 'j' }, { "help", no_argument, NULL, 'h' }, {},
};

/* 0 go on, 1 help was printed, <0 wrong. */
static int parse_options(int argc, char **argv, DoctorOptions *o) {
        int c;

        optind = 0;
        while ((c = getopt_long(argc, argv, "", options_doctor, NULL)) >= 0)
                switch (c) {
                case 's':
                        o->start = optarg;
                        break;
                case 'e':
                        o->end = optarg;
                        break;
                case 'j':
                        o->json = true;
                        break;
                case 'h':
                        print_help();
                        return 1;
                default:
                        return -EINVAL;
                }
        if (optind == argc)
                return 0;
        ctl_error("unexpected argument \"%s\"", argv[optind]);
        return -EINVAL;
}

static int print_json(const DoctorFinding *findings, size_t n) {
        json_t *list = json_array();

        for (size_t i = 0; i < n; i++)
                (void) json_array_append_new(
                        list, json_pack("{s:s, s:i, s:s, s:s, s:s}", "id", findings[i].id, "weight",
                                      (int) findings[i].weight, "title", findings[i].title, "evidence",
                                      findings[i].evidence, "advice", findings[i].advice));
        (void) json_dumpf(list, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(list);
        return ctl_finish_stdout();
}

#define COLUMNS 78

static int print_findings(const DoctorFacts *f, const DoctorFinding *findings, size_t n) {
        for (size_t i = 0; i < n; i++) {
                printf("%s%zu. %s\n", i > 0 ? "\n" : "", i + 1, findings[i].title);
                text_wrapped(stdout, "   ", COLUMNS, findings[i].evidence);
                text_wrapped(stdout, "   -> ", COLUMNS, findings[i].advice);
        }
        if (n == 0 && !doctor_saw_idle(f))
                puts("nothing found, but neither idle states nor wakeups are counted here, so little\n"
                     "could be looked at: cstatectl status says why");
        else if (n == 0)
                printf("healthy: nothing keeps the %zu CPUs from idling\n", f->n_cpus);
        return ctl_finish_stdout();
}

static int ask(Conn *conn, const DoctorOptions *o, size_t question, json_t **ret) {
        const QueryParam params[] = {
                { "scope", doctor_questions[question][0] },
                { "metric", doctor_questions[question][1] },
                { "start", o->start ? o->start : "-1h" },
                { "end", o->end ? o->end : "now" },
        };

        return conn_get_json(conn, API_ROUTE_SUMMARY, params, ARRAY_SIZE(params), ret);
}

static int gather(Conn *conn, const DoctorOptions *o, DoctorFacts *ret) {
        json_t *cpu = NULL, *status = NULL, *summaries[DOCTOR_QUESTIONS] = {};
        int r, code = 0;

        r = conn_get_json(conn, API_ROUTE_CPU, NULL, 0, &cpu);
        if (r == CTL_EXIT_OK)
                r = conn_get_json(conn, API_ROUTE_STATUS, NULL, 0, &status);
        for (size_t i = 0; i < DOCTOR_QUESTIONS && r == CTL_EXIT_OK; i++)
                r = ask(conn, o, i, &summaries[i]);
        if (r == CTL_EXIT_OK)
                code = doctor_facts_from_json(cpu, status, summaries, ret);
        json_decref(cpu);
        json_decref(status);
        for (size_t i = 0; i < DOCTOR_QUESTIONS; i++)
                json_decref(summaries[i]);
        if (code < 0) {
                ctl_error("the daemon's answers make no sense: %s", strerror(-code));
                r = CTL_EXIT_FAILURE;
        }
        return r;
}

int cmd_doctor(const Ctl *ctl, int argc, char **argv) {
        _cleanup_(conn_closep) Conn *conn = NULL;
        DoctorFinding findings[DOCTOR_FINDINGS_MAX];
        DoctorOptions o = {};
        DoctorFacts facts = {};
        size_t n;
        int r;

        r = parse_options(argc, argv, &o);
        if (r < 0)
                return ctl_usage_error("doctor ");
        if (r > 0)
                return ctl_finish_stdout();
        if (ctl->local) {
                ctl_error("the doctor needs history: --local has none");
                return CTL_EXIT_USAGE;
        }
        r = conn_open(ctl, 0, &conn);
        if (r == CTL_EXIT_OK)
                r = gather(conn, &o, &facts);
        if (r != CTL_EXIT_OK)
                return r;
        if (facts.n_cpus == 0) {
                ctl_error("there is no history in that window yet");
                r = CTL_EXIT_NO_DATA;
        } else {
                n = doctor_examine(&facts, findings);
                r = o.json ? print_json(findings, n) : print_findings(&facts, findings, n);
                if (r == CTL_EXIT_OK && n > 0)
                        r = CTL_EXIT_FINDINGS;
        }
        doctor_facts_deinit(&facts);
        return r;
}
