/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Statements at work: what a scenario or a test's `echo ... > set` does to the machine, now or at its time.
 */

#include "machine.h"

/*
 * Carries out a statement at time t, or only checks its words against this machine. False: error says why;
 * the machine may then be half changed: machine_submit() undoes that.
 */
bool machine_apply(
        Machine *m, const Statement *st, int64_t t_ns, bool check_only, char error[SCENARIO_ERROR_MAX]);

/* The two halves of machine_apply(): verbs of counters and CPUs (select, set, reset, sleep ...), verbs of
 * faults. */
bool machine_apply_counters(Machine *m, const Statement *st, int64_t t_ns, bool check_only, char *error);
bool machine_apply_cpus(Machine *m, const Statement *st, int64_t t_ns, bool check_only, char *error);
bool machine_apply_faults(Machine *m, const Statement *st, bool check_only, char *error);
/* The CPUs a statement's selectors mean; all of them where it names none. */
bool machine_select_cpus(const Machine *m, const Statement *st, IdSet *ret, char *error);

/* A word that chooses or qualifies and is no counter's name. */
bool machine_is_selector(const char *key);
void counters_clear(Counter *c, size_t first, size_t end);

/* Applies the scenario's statements of time 0 and keeps the rest for their time. */
bool machine_schedule(Machine *m, const Scenario *s, char error[SCENARIO_ERROR_MAX]);
/* A statement from outside: applied now, or kept where it has a time. Takes ownership either way. */
bool machine_submit(Machine *m, Statement *st, int64_t now_ns, char error[SCENARIO_ERROR_MAX]);
/* Applies what is due, each at its own time; errors go to stderr. */
void machine_run(Machine *m, int64_t now_ns);
/* When the next statement is due; INT64_MAX: never. */
int64_t machine_next_ns(const Machine *m);

/* Hotplug; a CPU that returns has its own counters and its idle states' at 0 unless `keep`. */
void machine_set_online(Machine *m, Cpu *cpu, bool online, bool keep, int64_t t_ns);
/* A remote read of one of its registers finds this CPU asleep: counted, and with wake_on_read felt. */
void machine_touch(Machine *m, Cpu *cpu, int64_t t_ns);
