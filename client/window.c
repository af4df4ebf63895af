/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <errno.h>
#include <string.h>

#include "client/ctl.h"
#include "client/window.h"
#include "cstated/timespan.h"

int params_add(Params *p, const char *key, const char *value) {
        if (p->n >= ARRAY_SIZE(p->params)) {
                ctl_error("more than %d options", API_PARAMS_MAX);
                return -E2BIG;
        }
        p->params[p->n++] = (QueryParam){ .key = key, .value = value };
        return 0;
}

bool params_has(const Params *p, const char *key) {
        for (size_t i = 0; i < p->n; i++)
                if (strcmp(p->params[i].key, key) == 0)
                        return true;
        return false;
}

static bool is_span(const char *word) {
        uint64_t usec;

        /* a bare number is rather a label than seconds */
        return strpbrk(word, "smhdwy") && timespan_parse(word, &usec) == 0 && usec > 0;
}

int window_operands(int argc, char **argv) {
        for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
                if (argv[i][0] != '-' || !strchr("0123456789.", argv[i][1]) || argv[i][1] == '\0')
                        continue;
                if (is_span(argv[i] + 1))
                        argv[i]++;
                else if (strstr(argv[i], "..") && asprintf(&argv[i], "now%s", argv[i]) < 0)
                        return -ENOMEM;
        }
        return 0;
}

int window_params(int n_words, char **words, WindowWords *w, Params *ret) {
        const char *word = words[n_words - 1], *dots;
        int r;

        if (n_words == 2 && (strcmp(words[0], "last") != 0 || !is_span(word))) {
                ctl_error("\"%s %s\" is no window: last SPAN, START..END or a label", words[0], word);
                return -EINVAL;
        }
        if (is_span(word)) {
                (void) snprintf(w->start, sizeof(w->start), "-%s", word);
                return params_add(ret, "start", w->start);
        }
        dots = strstr(word, "..");
        if (!dots)
                return params_add(ret, "label", word);
        if ((size_t) (dots - word) >= sizeof(w->start) || strlen(dots + 2) >= sizeof(w->end)) {
                ctl_error("\"%s\" is no window START..END", word);
                return -EINVAL;
        }
        (void) snprintf(w->start, sizeof(w->start), "%.*s", (int) (dots - word), word);
        (void) snprintf(w->end, sizeof(w->end), "%s", dots + 2);
        r = w->start[0] ? params_add(ret, "start", w->start) : 0;
        return r < 0 || !w->end[0] ? r : params_add(ret, "end", w->end);
}

const char *window_side(const char *word, char *buf, size_t size) {
        if (!is_span(word))
                return word;
        (void) snprintf(buf, size, "-%s..now", word);
        return buf;
}
