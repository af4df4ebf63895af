/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A scenario's text, read but not yet applied: structure (model, topology, idle states, zones) and
 * statements, each with the time at which it takes effect. What a statement's words mean is checked against
 * the built machine (machine-apply.h), since names of states and zones are known only there. README.md
 * documents the language.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCENARIO_STATES_MAX     12
#define SCENARIO_ZONES_MAX      64
#define SCENARIO_ENTRIES_MAX    16
#define SCENARIO_MSRS_MAX       32
#define SCENARIO_STATEMENTS_MAX 1024
#define STATEMENT_WORDS_MAX     40
#define STATEMENT_TEXT_MAX      1024
#define SCENARIO_ERROR_MAX      256

typedef struct Word {
        const char *key;   /* "c6", or the bare word */
        const char *value; /* NULL for a bare word */
} Word;

typedef struct Statement {
        int64_t at_ns;     /* since start; 0: before anybody looks */
        int64_t period_ns; /* > 0: again each period */
        bool story;        /* "at story+5s": at_ns counts from the scenario's `story` */
        bool relative;     /* "at +5s": at_ns counts from the moment of writing */
        bool owned;        /* by the machine, which frees it when it is done */
        int line;
        const char *verb;
        Word words[STATEMENT_WORDS_MAX];
        size_t n_words;
        char text[STATEMENT_TEXT_MAX]; /* what the pointers above point into: never copied */
} Statement;

typedef struct ScenarioState {
        char name[32], desc[64];
        uint64_t latency_us, residency_us;
        unsigned types; /* bit 0: P (or only) core type, bit 1: E */
} ScenarioState;

typedef struct ScenarioZone {
        char dir[64], parent[64], name[64];
        int64_t watts_nano;
        uint64_t range_uj;
} ScenarioZone;

typedef struct ScenarioEntry {
        char name[64]; /* an odd directory beside stateN in each cpuN/cpuidle */
} ScenarioEntry;

typedef struct Scenario {
        char model[32], numbering[16], cpus[512], core_ids[256], driver[32], governor[32], bugs[128],
                brand[64], zones[16];
        char offline[256], story[32];
        uint64_t packages, dies, cores, threads, pcores, ecores, module_cores;
        uint64_t hypervisor, tjmax, base_mhz, microcode, stepping, pkg_limit, esu, msr_zero;
        ScenarioState states[SCENARIO_STATES_MAX];
        size_t n_states;
        ScenarioZone zone[SCENARIO_ZONES_MAX];
        size_t n_zones;
        ScenarioEntry entries[SCENARIO_ENTRIES_MAX];
        size_t n_entries;
        struct {
                uint64_t reg, value;
        } msrs[SCENARIO_MSRS_MAX];
        size_t n_msrs;
        Statement **statements; /* in the order of the text */
        size_t n_statements;
} Scenario;

/* Absent structural numbers hold this, so that a model's own default can be told from a given 0. */
#define SCENARIO_UNSET UINT64_MAX

/* Reads a whole text. False: error holds "line N: why". Free with scenario_free() either way. */
bool scenario_parse(Scenario *s, const char *text, char error[SCENARIO_ERROR_MAX]);
/* One "key=value" of the command line: a structural key or a `set` of the start. */
bool scenario_override(Scenario *s, const char *assignment, char error[SCENARIO_ERROR_MAX]);
/* One statement ("at 3s offline cpu=5"), also used for what is written to the control file; NULL: error says
 * why. free() it. */
Statement *statement_parse(const char *line, int number, char error[SCENARIO_ERROR_MAX]);
/* Writes "line N: what: word" (N > 0), shortened to fit; returns false. */
bool scenario_error(char error[SCENARIO_ERROR_MAX], int line, const char *what, const char *word);
/* The value of a word, NULL where it is absent or bare. */
const char *statement_get(const Statement *st, const char *key);
void scenario_free(Scenario *s);
