/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The scenario language: one line is one thing, '#' begins a comment, a word is "key=value" or bare, quotes
 * protect blanks. */

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "scenario.h"
#include "text.h"

typedef struct Field {
        const char *key;
        size_t offset, size; /* size 0: a number */
} Field;

#define FIELD_NUMBER(name)                                                                                  \
        { #name, offsetof(Scenario, name), 0 }
#define FIELD_STRING(name)                                                                                  \
        { #name, offsetof(Scenario, name), sizeof(((Scenario *) NULL)->name) }

static const Field fields[] = {
        FIELD_STRING(model),
        FIELD_STRING(numbering),
        FIELD_STRING(cpus),
        FIELD_STRING(core_ids),
        FIELD_STRING(driver),
        FIELD_STRING(governor),
        FIELD_STRING(bugs),
        FIELD_STRING(brand),
        FIELD_STRING(zones),
        FIELD_STRING(offline),
        FIELD_STRING(story),
        FIELD_NUMBER(packages),
        FIELD_NUMBER(dies),
        FIELD_NUMBER(cores),
        FIELD_NUMBER(threads),
        FIELD_NUMBER(pcores),
        FIELD_NUMBER(ecores),
        FIELD_NUMBER(module_cores),
        FIELD_NUMBER(hypervisor),
        FIELD_NUMBER(tjmax),
        FIELD_NUMBER(base_mhz),
        FIELD_NUMBER(microcode),
        FIELD_NUMBER(stepping),
        FIELD_NUMBER(pkg_limit),
        FIELD_NUMBER(esu),
        FIELD_NUMBER(msr_zero),
};

static const char *const verbs[] = {
        "set",
        "offline",
        "online",
        "eio",
        "ok",
        "slow",
        "reset",
        "wrap",
        "preset",
        "sleep",
        "wake",
        "chmod",
        "fail",
        "hide",
        "show",
};

bool scenario_error(char error[SCENARIO_ERROR_MAX], int line, const char *what, const char *word) {
        if (line > 0)
                (void) snprintf(error, SCENARIO_ERROR_MAX, "line %d: %.80s: %.120s", line, what, word);
        else
                (void) snprintf(error, SCENARIO_ERROR_MAX, "%.80s: %.140s", what, word);
        return false;
}

/* Next word of *p, cut out in place with quotes removed; NULL at the end. A '#' that begins a word ends the
 * line. */
static char *next_word(char **p) {
        char *s = *p, *out, *word;

        while (isspace((unsigned char) *s))
                s++;
        if (*s == '\0' || *s == '#')
                return NULL;
        word = out = s;
        for (bool quoted = false; *s != '\0' && (quoted || !isspace((unsigned char) *s)); s++)
                if (*s == '"')
                        quoted = !quoted;
                else
                        *out++ = *s;
        *p = *s != '\0' ? s + 1 : s;
        *out = '\0';
        return word;
}

static bool word_known(const char *const *table, size_t n, const char *word) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(table[i], word) == 0)
                        return true;
        return false;
}

static void word_split(Word *w, char *text) {
        char *eq = strchr(text, '=');

        *w = (Word){ .key = text };
        if (eq) {
                *eq = '\0';
                w->value = eq + 1;
        }
}

/* "at 20s", "at +5s", "at story+1s", "every 10s": any number of them before the verb. */
static bool statement_parse_when(Statement *st, char **p, char **word, char *error) {
        char zero[] = "0";

        while (*word && (strcmp(*word, "at") == 0 || strcmp(*word, "every") == 0)) {
                bool every = (*word)[0] == 'e';
                int64_t ns;
                char *value = next_word(p);

                if (value && !every && strncmp(value, "story", 5) == 0) {
                        st->story = true;
                        value = value[5] == '\0' ? zero : value[5] == '+' ? value + 6 : value;
                } else if (value && !every && *value == '+') {
                        st->relative = true;
                        value++;
                }
                if (!value || !text_time_ns(value, &ns) || ns < 0 || (every && ns < 1000000))
                        return scenario_error(error, st->line, "bad time", value ? value : "(none)");
                if (every)
                        st->period_ns = ns;
                else
                        st->at_ns = ns;
                *word = next_word(p);
        }
        if (st->period_ns > 0 && st->at_ns == 0)
                st->at_ns = st->period_ns;
        return true;
}

static bool statement_parse_into(Statement *st, const char *line, char *error) {
        char *p = st->text, *word;

        if (strlen(line) >= sizeof(st->text))
                return scenario_error(error, st->line, "line too long", "");
        (void) memcpy(st->text, line, strlen(line) + 1);

        word = next_word(&p);
        if (!statement_parse_when(st, &p, &word, error))
                return false;
        if (!word || !word_known(verbs, ARRAY_SIZE(verbs), word))
                return scenario_error(error, st->line, "unknown word", word ? word : "(none)");
        st->verb = word;
        while ((word = next_word(&p))) {
                if (st->n_words == STATEMENT_WORDS_MAX)
                        return scenario_error(error, st->line, "too many words", word);
                word_split(&st->words[st->n_words++], word);
        }
        return true;
}

Statement *statement_parse(const char *line, int number, char error[SCENARIO_ERROR_MAX]) {
        Statement *st = calloc(1, sizeof(*st));

        if (!st) {
                (void) scenario_error(error, number, "out of memory", line);
                return NULL;
        }
        st->line = number;
        if (!statement_parse_into(st, line, error)) {
                free(st);
                return NULL;
        }
        return st;
}

const char *statement_get(const Statement *st, const char *key) {
        for (size_t i = 0; i < st->n_words; i++)
                if (strcmp(st->words[i].key, key) == 0)
                        return st->words[i].value;
        return NULL;
}

static bool scenario_push(Scenario *s, const char *line, int number, char *error) {
        if (s->n_statements == SCENARIO_STATEMENTS_MAX)
                return scenario_error(error, number, "too many statements", line);
        Statement **p = realloc(s->statements, (s->n_statements + 1) * sizeof(Statement *));
        if (!p)
                return scenario_error(error, number, "out of memory", line);
        s->statements = p;

        Statement *st = statement_parse(line, number, error);
        if (!st)
                return false;
        s->statements[s->n_statements++] = st;
        return true;
}

static bool word_number(const Word *w, const char *key, uint64_t *ret) {
        return strcmp(w->key, key) == 0 && w->value && text_u64(w->value, ret);
}

static bool word_string(const Word *w, const char *key, char *ret, size_t size) {
        if (strcmp(w->key, key) != 0 || !w->value || strlen(w->value) >= size)
                return false;
        (void) memcpy(ret, w->value, strlen(w->value) + 1);
        return true;
}

static bool state_word(ScenarioState *state, const Word *w) {
        if (strcmp(w->key, "types") == 0 && w->value) {
                state->types = (strchr(w->value, 'P') ? 1U : 0) | (strchr(w->value, 'E') ? 2U : 0);
                return state->types != 0;
        }
        return word_number(w, "latency", &state->latency_us) ||
               word_number(w, "residency", &state->residency_us) ||
               word_string(w, "desc", state->desc, sizeof(state->desc));
}

static bool zone_word(ScenarioZone *zone, const Word *w) {
        if (strcmp(w->key, "watts") == 0 && w->value)
                return text_nano(w->value, &zone->watts_nano) && zone->watts_nano >= 0;
        return word_number(w, "range", &zone->range_uj) ||
               word_string(w, "parent", zone->parent, sizeof(zone->parent)) ||
               word_string(w, "name", zone->name, sizeof(zone->name));
}

/* "state C6 latency=133 residency=600", "zone intel-rapl:0 name=package-0 watts=3.93", "entry driver", "msr
 * 0x1a0=1". */
static bool scenario_parse_item(Scenario *s, const char *kind, char *p, int number, char *error) {
        const char *name = next_word(&p);
        char *text;

        if (!name || strlen(name) >= sizeof(s->zone[0].dir) || strchr(name, '/'))
                return scenario_error(error, number, "needs a name", kind);
        if (strcmp(kind, "entry") == 0) {
                if (s->n_entries == SCENARIO_ENTRIES_MAX)
                        return scenario_error(error, number, "too many entries", name);
                (void) strcpy(s->entries[s->n_entries++].name, name);
                return true;
        }
        if (strcmp(kind, "state") == 0) {
                if (s->n_states == SCENARIO_STATES_MAX || strlen(name) >= sizeof(s->states[0].name))
                        return scenario_error(error, number, "too many or too long", name);
                ScenarioState *state = &s->states[s->n_states++];
                *state = (ScenarioState){ .types = 3 };
                (void) strcpy(state->name, name);
                (void) strcpy(state->desc, name);
                while ((text = next_word(&p))) {
                        Word w;

                        word_split(&w, text);
                        if (!state_word(state, &w))
                                return scenario_error(error, number, "bad word of a state", text);
                }
                return true;
        }
        if (s->n_zones == SCENARIO_ZONES_MAX)
                return scenario_error(error, number, "too many zones", name);
        ScenarioZone *zone = &s->zone[s->n_zones++];
        *zone = (ScenarioZone){ .range_uj = UINT64_C(262143328850) };
        (void) strcpy(zone->dir, name);
        (void) strcpy(zone->name, name);
        while ((text = next_word(&p))) {
                Word w;

                word_split(&w, text);
                if (!zone_word(zone, &w))
                        return scenario_error(error, number, "bad word of a zone", text);
        }
        return true;
}

static bool scenario_parse_msr(Scenario *s, char *p, int number, char *error) {
        for (char *text; (text = next_word(&p));) {
                Word w;

                word_split(&w, text);
                if (s->n_msrs == SCENARIO_MSRS_MAX || !w.value ||
                        !text_u64(w.key, &s->msrs[s->n_msrs].reg) ||
                        !text_u64(w.value, &s->msrs[s->n_msrs].value))
                        return scenario_error(error, number, "bad register", text);
                s->n_msrs++;
        }
        return true;
}

static const Field *field_find(const char *key) {
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
                if (strcmp(fields[i].key, key) == 0)
                        return &fields[i];
        return NULL;
}

static bool field_set(Scenario *s, const Field *f, const char *value, int number, char *error) {
        char *at = (char *) s + f->offset;

        if (!value)
                return scenario_error(error, number, "needs a value", f->key);
        if (f->size == 0)
                return text_u64(value, (uint64_t *) (void *) at)
                               ? true
                               : scenario_error(error, number, "not a number", value);
        if (strlen(value) >= f->size)
                return scenario_error(error, number, "too long", value);
        (void) memcpy(at, value, strlen(value) + 1);
        return true;
}

static bool scenario_parse_line(Scenario *s, const char *line, int number, char *error) {
        char copy[STATEMENT_TEXT_MAX], *p = copy;

        if (strlen(line) >= sizeof(copy))
                return scenario_error(error, number, "line too long", "");
        (void) memcpy(copy, line, strlen(line) + 1);
        char *word = next_word(&p);
        if (!word)
                return true;
        if (strcmp(word, "state") == 0 || strcmp(word, "zone") == 0 || strcmp(word, "entry") == 0)
                return scenario_parse_item(s, word, p, number, error);
        if (strcmp(word, "msr") == 0)
                return scenario_parse_msr(s, p, number, error);

        /* `offline` is a structural key in "offline 3-5" and a statement in "offline cpu=3". */
        const Field *f = field_find(word);
        char *value = f ? next_word(&p) : NULL;
        if (f && !(f->size > 0 && value && strchr(value, '=')))
                return field_set(s, f, value, number, error);
        return scenario_push(s, line, number, error);
}

bool scenario_parse(Scenario *s, const char *text, char error[SCENARIO_ERROR_MAX]) {
        char line[STATEMENT_TEXT_MAX];
        int number = 0;

        *s = (Scenario){};
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
                if (fields[i].size == 0)
                        *(uint64_t *) (void *) ((char *) s + fields[i].offset) = SCENARIO_UNSET;
        while (*text != '\0') {
                size_t n = strcspn(text, "\n");

                number++;
                if (n >= sizeof(line))
                        return scenario_error(error, number, "line too long", "");
                memcpy(line, text, n);
                line[n] = '\0';
                if (!scenario_parse_line(s, line, number, error))
                        return false;
                text += n + (text[n] == '\n');
        }
        return true;
}

bool scenario_override(Scenario *s, const char *assignment, char error[SCENARIO_ERROR_MAX]) {
        char line[STATEMENT_TEXT_MAX];
        const char *eq = strchr(assignment, '=');
        int n;

        if (!eq)
                return scenario_error(error, 0, "needs key=value", assignment);
        (void) snprintf(line, sizeof(line), "%.*s", (int) (eq - assignment), assignment);
        const Field *f = field_find(line);
        if (f)
                return field_set(s, f, eq + 1, 0, error);
        n = snprintf(line, sizeof(line), "set %s", assignment);
        return n < (int) sizeof(line) ? scenario_push(s, line, 0, error)
                                      : scenario_error(error, 0, "too long", assignment);
}

void scenario_free(Scenario *s) {
        for (size_t i = 0; i < s->n_statements; i++)
                free(s->statements[i]);
        free(s->statements);
        *s = (Scenario){};
}
