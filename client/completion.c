/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Long options only: getopt's tables do not say which short ones mean the same. */

#include <errno.h>
#include <string.h>

#include "client/completion.h"
#include "cstated/catalogue.h"

typedef enum ValueKind { VALUE_WORDS, VALUE_METRICS, VALUE_COLUMNS, VALUE_FILE } ValueKind;

/* What an option's value is, wherever it stands; others take any text. */
static const struct {
        const char *option;
        ValueKind kind;
        const char *words;
} values[] = {
        { "metric", VALUE_METRICS, NULL },
        { "show", VALUE_COLUMNS, NULL },
        { "hide", VALUE_COLUMNS, NULL },
        { "scope", VALUE_WORDS, "system package core cpu" },
        { "agg", VALUE_WORDS, "mean min max stddev sum count" },
        { "time-format", VALUE_WORDS, "iso ms s" },
        { "format", VALUE_WORDS, "table tsv csv json rows columns openmetrics" },
        { "sort", VALUE_WORDS, "hot busy break wake c6 demotion cpu" },
        { "start", VALUE_WORDS, "-15m -1h -1d" },
        { "end", VALUE_WORDS, "now" },
        { "out", VALUE_FILE, NULL },
        { "dump", VALUE_FILE, NULL },
        { "db", VALUE_FILE, NULL },
        { "connect", VALUE_FILE, NULL },
};

static void print_words(ValueKind kind, const char *words, FILE *out) {
        if (kind == VALUE_WORDS)
                (void) fputs(words, out);
        if (kind == VALUE_COLUMNS)
                (void) fputs("all default topology idle frequency power thermal wake sysfs other", out);
        for (size_t i = 0; i < metric_catalogue_n; i++) {
                const MetricSpec *m = &metric_catalogue[i];

                if (kind == VALUE_METRICS)
                        (void) fprintf(out, "%s%s", i > 0 ? " " : "", m->id);
                else if (kind == VALUE_COLUMNS && m->column && strncmp(m->column, "%s", 2) != 0)
                        (void) fprintf(out, " %s", m->column);
        }
}

/* ---- bash ---- */

static void bash_values(FILE *out) {
        (void) fputs("        case $prev in\n", out);
        for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
                (void) fprintf(out, "        --%s)\n                ", values[i].option);
                if (values[i].kind == VALUE_FILE)
                        (void) fputs("mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n", out);
                else {
                        (void) fputs("mapfile -t COMPREPLY < <(compgen -P \"$head\" -W \"", out);
                        print_words(values[i].kind, values[i].words, out);
                        (void) fputs("\" -- \"$tail\")\n", out);
                }
                (void) fputs("                return ;;\n", out);
        }
        (void) fputs("        esac\n", out);
}

static void bash_verbs(const Verb *table, FILE *out) {
        (void) fputs("        case $verb in\n", out);
        for (const Verb *v = table; v->name; v++) {
                (void) fprintf(out, "        %s) words=\"", v->name);
                for (const struct option *o = v->options; o && o->name; o++)
                        (void) fprintf(out, "%s--%s", o == v->options ? "" : " ", o->name);
                (void) fputs("\"", out);
                if (v->words && strcmp(v->words, "label") == 0)
                        (void) fputs("; [[ $cur == -* ]] || words=$(cstatectl \"${where[@]}\" labels "
                                     "--names 2>/dev/null)",
                                out);
                (void) fputs(" ;;\n", out);
        }
        (void) fputs("        esac\n", out);
}

static void bash_print(const Verb *table, FILE *out) {
        (void) fputs("# bash completion for cstatectl, made by \"cstatectl --completion bash\"\n"
                     "_cstatectl() {\n"
                     "        local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} "
                     "verb='' words i\n"
                     "        local tail=${cur##*,}\n"
                     "        local head=${cur%\"$tail\"}\n"
                     "        local -a where=()\n"
                     "        for ((i = 1; i < COMP_CWORD; i++)); do\n"
                     "                case ${COMP_WORDS[i]} in\n"
                     "                --connect | --db) where+=(\"${COMP_WORDS[i]}\" \"${COMP_WORDS[i + "
                     "1]}\"); ((i++)) ;;\n"
                     "                --local) where+=(--local) ;;\n"
                     "                -*) verb=snapshot; break ;;\n"
                     "                *) verb=${COMP_WORDS[i]}; break ;;\n"
                     "                esac\n"
                     "        done\n",
                out);
        for (const Verb *v = table; v->name; v++)
                if (v->words && strcmp(v->words, "command") == 0)
                        (void) fprintf(out,
                                "        if [[ $verb == %s && $cur != -* && $prev != -[lro] && $prev != "
                                "--[lro]* ]]; then\n"
                                "                mapfile -t COMPREPLY < <(compgen -c -- \"$cur\")\n"
                                "                return\n"
                                "        fi\n",
                                v->name);
        bash_values(out);
        (void) fputs("        words=\"--connect --db --local --help --version", out);
        for (const Verb *v = table; v->name; v++)
                (void) fprintf(out, " %s", v->name);
        (void) fputs("\"\n", out);
        bash_verbs(table, out);
        (void) fputs("        mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
                     "}\n"
                     "complete -F _cstatectl cstatectl\n",
                out);
}

/* ---- zsh ---- */

static void zsh_value(const char *option, FILE *out) {
        for (size_t i = 0; i < ARRAY_SIZE(values); i++)
                if (strcmp(values[i].option, option) == 0) {
                        if (values[i].kind == VALUE_FILE) {
                                (void) fputs(":file:_files", out);
                                return;
                        }
                        (void) fprintf(out, ":%s:%s", option,
                                values[i].kind == VALUE_WORDS ? "(" : "_sequence compadd - ");
                        print_words(values[i].kind, values[i].words, out);
                        (void) fputs(values[i].kind == VALUE_WORDS ? ")" : "", out);
                        return;
                }
        (void) fprintf(out, ":%s: ", option);
}

static void zsh_verb(const Verb *v, FILE *out) {
        (void) fprintf(out, "        %s) _arguments", v->name);
        for (const struct option *o = v->options; o && o->name; o++) {
                (void) fprintf(out, " '--%s%s", o->name, o->has_arg == required_argument ? "=" : "");
                if (o->has_arg == required_argument)
                        zsh_value(o->name, out);
                (void) fputs("'", out);
        }
        if (v->words && strcmp(v->words, "label") == 0)
                (void) fputs(" '*:label:(${(f)\"$(cstatectl labels --names 2>/dev/null)\"})'", out);
        else if (v->words && strcmp(v->words, "command") == 0)
                (void) fputs(" '(-)1:command:_command_names -e' '*::arguments:_normal'", out);
        (void) fputs(" ;;\n", out);
}

static void zsh_print(const Verb *table, FILE *out) {
        (void) fputs("#compdef cstatectl\n# zsh completion for cstatectl, made by \"cstatectl --completion "
                     "zsh\"\n"
                     "local context state line\nlocal -a verbs\ntypeset -A opt_args\nverbs=(\n",
                out);
        for (const Verb *v = table; v->name; v++)
                (void) fprintf(out, "        '%s:%s'\n", v->name, v->summary);
        (void) fputs(")\n_arguments -C '--connect=:socket or host:_files' '--db=:file:_files' '--local' "
                     "'--help' '--version' \\\n"
                     "        '1:verb:->verb' '*::options:->options'\n"
                     "case $state in\n"
                     "verb) _describe verb verbs ;;\n"
                     "options)\n"
                     "        case $words[1] in\n",
                out);
        for (const Verb *v = table; v->name; v++)
                zsh_verb(v, out);
        (void) fputs("        esac ;;\nesac\n", out);
}

int completion_print(const char *shell, const Verb *table, FILE *out) {
        if (strcmp(shell, "bash") == 0)
                bash_print(table, out);
        else if (strcmp(shell, "zsh") == 0)
                zsh_print(table, out);
        else
                return -EINVAL;
        return 0;
}
