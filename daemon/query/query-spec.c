/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One table of parameters, one small parser each. Nothing is guessed: a name that does not exist, a value
 * given twice, a scope narrower than what is measured are refused with the parameter's name, since a filter
 * that is silently ignored gives a wrong figure that looks right. Times go through timespan_parse_instant(),
 * which knows no TZ.
 */

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "cstated/macro.h"
#include "cstated/num.h"
#include "cstated/timespan.h"

#include "query/query-spec.h"

#define DEFAULT_WINDOW_US (15 * 60 * USEC_PER_SEC)
#define STEP_MIN_US       (100 * USEC_PER_MSEC) /* no tick is shorter */
#define STEP_MAX_US       (10ULL * 365 * 86400 * USEC_PER_SEC)
#define ID_MAX            65536 /* kernel ids of CPUs, cores and packages lie below */

typedef struct Parser {
        QuerySpec *q;
        QueryError *error;
        const char *name; /* the parameter, as written */
        uint64_t now_us;
        unsigned seen; /* of the table's rows that may stand once */
        bool has_start, has_end;
} Parser;

int query_error(QueryError *e, const char *param, const char *format, ...) {
        va_list ap;

        (void) snprintf(e->param, sizeof(e->param), "%s", param);
        va_start(ap, format);
        (void) vsnprintf(e->message, sizeof(e->message), format, ap);
        va_end(ap);
        return -EINVAL;
}

#define refuse(p, ...) query_error((p)->error, (p)->name, __VA_ARGS__)

void query_spec_deinit(QuerySpec *q) {
        free(q->packages);
        free(q->cores);
        free(q->cpus);
        *q = (QuerySpec){};
}

/* Calls fn for each element of a comma list. */
static int each_element(Parser *p, const char *value, int (*fn)(Parser *p, const char *element)) {
        char element[64];

        for (;;) {
                size_t n = strcspn(value, ",");
                int r;

                if (n == 0)
                        return refuse(p, "an empty element");
                if (n >= sizeof(element))
                        return refuse(p, "'%.40s...' is too long", value);
                memcpy(element, value, n);
                element[n] = '\0';
                r = fn(p, element);
                if (r < 0)
                        return r;
                if (!value[n])
                        return 0;
                value += n + 1;
        }
}

static int take_metric(Parser *p, const char *id) {
        const MetricSpec *m = metric_find(id);

        if (!m)
                return refuse(p, "no metric '%.63s'; /api/v1/catalogue lists them", id);
        for (size_t i = 0; i < p->q->n_metrics; i++)
                if (p->q->metrics[i] == m)
                        return 0;
        if (p->q->n_metrics == QUERY_METRICS_MAX)
                return refuse(p, "at most %d metrics", QUERY_METRICS_MAX);
        p->q->metrics[p->q->n_metrics++] = m;
        return 0;
}

static int parse_metric(Parser *p, const char *value) {
        return each_element(p, value, take_metric);
}

static int take_agg(Parser *p, const char *name) {
        static const struct {
                const char *name;
                QueryAgg agg;
        } aggs[] = {
                { "mean", AGG_MEAN },
                { "min", AGG_MIN },
                { "max", AGG_MAX },
                { "stddev", AGG_STDDEV },
                { "sum", AGG_SUM },
                { "count", AGG_COUNT },
        };

        for (size_t i = 0; i < ARRAY_SIZE(aggs); i++)
                if (strcmp(aggs[i].name, name) == 0) {
                        p->q->aggs |= aggs[i].agg;
                        return 0;
                }
        return refuse(p, "'%.63s' is none of mean, min, max, stddev, sum, count", name);
}

static int parse_agg(Parser *p, const char *value) {
        return each_element(p, value, take_agg);
}

static int parse_scope(Parser *p, const char *value) {
        if (scope_from_name(value, &p->q->scope) < 0)
                return refuse(p, "'%.40s' is none of node, package, die, module, core, cpu", value);
        p->q->has_scope = true;
        return 0;
}

static int parse_ids(Parser *p, const char *value, uint32_t **ids, size_t *n) {
        int r;

        /* The list parser counts modulo 2^64 as the kernel does; nobody means that here. */
        for (const char *s = value; *s; s += strspn(s, "0123456789")) {
                s += strcspn(s, "0123456789");
                if (strspn(s, "0123456789") > 9)
                        return refuse(p, "ids lie below %d", ID_MAX);
        }
        r = num_parse_cpulist(value, ID_MAX, ids, n);
        if (r == -ENOMEM)
                return r;
        if (r == -ERANGE)
                return refuse(p, "ids lie below %d", ID_MAX);
        if (r < 0)
                return refuse(p, "'%.40s' is no list of ids such as 0-3,8", value);
        return *n > 0 ? 0 : refuse(p, "an empty list");
}

static int parse_packages(Parser *p, const char *value) {
        return parse_ids(p, value, &p->q->packages, &p->q->n_packages);
}

static int parse_cores(Parser *p, const char *value) {
        return parse_ids(p, value, &p->q->cores, &p->q->n_cores);
}

static int parse_cpus(Parser *p, const char *value) {
        return parse_ids(p, value, &p->q->cpus, &p->q->n_cpus);
}

static int parse_instant(
        QueryError *error, const char *name, const char *value, uint64_t now_us, uint64_t *ret) {
        int r;

        /*
         * "-5" would be five seconds ago; who writes a bare negative number has an error in his arithmetic.
         */
        if (value[0] == '-' && value[1 + strspn(value + 1, "0123456789.")] == '\0')
                return query_error(
                        error, name, "'%.40s' is negative; relative times carry a unit, as -15m", value);
        r = timespan_parse_instant(value, now_us, ret);
        if (r == -ERANGE)
                return query_error(error, name, "'%.40s' is out of range (1970 to 9999)", value);
        if (r < 0)
                return query_error(error, name,
                        "'%.40s' is no time: RFC 3339 with offset, unix seconds or milliseconds, now, -15m",
                        value);
        return 0;
}

static int parse_start(Parser *p, const char *value) {
        p->has_start = true;
        return parse_instant(p->error, p->name, value, p->now_us, &p->q->start_us);
}

static int parse_end(Parser *p, const char *value) {
        p->has_end = true;
        return parse_instant(p->error, p->name, value, p->now_us, &p->q->end_us);
}

static int parse_step(Parser *p, const char *value) {
        int r = timespan_parse(value, &p->q->step_us);

        if (r == -EINVAL)
                return refuse(p, "'%.40s' is no duration such as 10s, 5m, 1h", value);
        if (r < 0 || p->q->step_us < STEP_MIN_US || p->q->step_us > STEP_MAX_US)
                return refuse(p, "from 100ms to 10y");
        return 0;
}

static int parse_points(Parser *p, const char *value) {
        if (num_parse_u32(value, &p->q->points) < 0 || p->q->points < 1 || p->q->points > QUERY_POINTS_MAX)
                return refuse(p, "a number from 1 to %d", QUERY_POINTS_MAX);
        return 0;
}

static int parse_format(Parser *p, const char *value) {
        if (strcmp(value, "rows") == 0)
                p->q->format = QUERY_ROWS;
        else if (strcmp(value, "columns") == 0)
                p->q->format = QUERY_COLUMNS;
        else if (strcmp(value, "csv") == 0)
                p->q->format = QUERY_CSV;
        else
                return refuse(p, "'%.40s' is none of rows, columns, csv", value);
        return 0;
}

static int parse_time_format(Parser *p, const char *value) {
        if (strcmp(value, "ms") == 0)
                p->q->time_format = QUERY_TIME_MS;
        else if (strcmp(value, "s") == 0)
                p->q->time_format = QUERY_TIME_S;
        else if (strcmp(value, "iso") == 0)
                p->q->time_format = QUERY_TIME_ISO;
        else
                return refuse(p, "'%.40s' is none of ms, s, iso", value);
        return 0;
}

static int parse_state(Parser *p, const char *value) {
        if (strlen(value) >= sizeof(p->q->state))
                return refuse(p, "idle states' names have at most %zu characters", sizeof(p->q->state) - 1);
        (void) snprintf(p->q->state, sizeof(p->q->state), "%s", value);
        return 0;
}

/* Read by the route itself. */
static int parse_nothing(Parser *p, const char *value) {
        return 0;
}

#define Q (1u << QUERY_FORM_QUERY)
#define S (1u << QUERY_FORM_SUMMARY)
#define C (1u << QUERY_FORM_COMPARE)
#define E (1u << QUERY_FORM_EVENTS)

static const struct Parameter {
        const char *names[3]; /* the first is the one in messages of what is missing */
        unsigned forms;
        bool repeatable;
        int (*parse)(Parser *p, const char *value);
} parameters[] = {
        { { "metric" }, Q | S | C, true, parse_metric },
        { { "scope" }, Q | S | C, false, parse_scope },
        { { "package" }, Q | S | C, false, parse_packages },
        { { "core" }, Q | S | C, false, parse_cores },
        { { "cpu" }, Q | S | C, false, parse_cpus },
        { { "state" }, Q | S | C, false, parse_state },
        { { "start", "from", "after" }, Q | S | E, false, parse_start },
        { { "end", "to", "before" }, Q | S | E, false, parse_end },
        { { "step" }, Q, false, parse_step },
        { { "points" }, Q, false, parse_points },
        { { "agg" }, Q, true, parse_agg },
        { { "format" }, Q, false, parse_format },
        { { "time_format" }, Q | S | E, false, parse_time_format },
        { { "label" }, S, false, parse_nothing },
        { { "a" }, C, false, parse_nothing },
        { { "b" }, C, false, parse_nothing },
        { { "kind" }, E, false, parse_nothing },
        { { "limit" }, E, false, parse_nothing },
};

#undef Q
#undef S
#undef C
#undef E

static const struct Parameter *find_parameter(QueryForm form, const char *name) {
        for (size_t i = 0; i < ARRAY_SIZE(parameters); i++)
                for (size_t k = 0; k < ARRAY_SIZE(parameters[i].names) && parameters[i].names[k]; k++)
                        if ((parameters[i].forms & (1u << form)) &&
                                strcmp(parameters[i].names[k], name) == 0)
                                return &parameters[i];
        return NULL;
}

static int parse_param(Parser *p, QueryForm form, const QueryParam *param) {
        const struct Parameter *spec = find_parameter(form, param->key);
        unsigned bit;

        p->name = param->key;
        if (!spec)
                return refuse(p, "no such parameter here");
        bit = 1u << (unsigned) (spec - parameters);
        if ((p->seen & bit) && !spec->repeatable)
                return refuse(p, "given twice");
        p->seen |= bit;
        if (!param->value || !param->value[0])
                return refuse(p, "has no value");
        return spec->parse(p, param->value);
}

/* Where the window is not given: the last 15 minutes, or those before the end. */
static int settle_window(Parser *p) {
        QuerySpec *q = p->q;

        if (!p->has_end)
                q->end_us = p->now_us;
        if (!p->has_start)
                q->start_us = q->end_us > DEFAULT_WINDOW_US ? q->end_us - DEFAULT_WINDOW_US : 0;
        p->name = "start";
        if (q->start_us >= q->end_us)
                return refuse(p, p->has_end ? "start must lie before end" : "start lies in the future");
        if (q->points > 0 && q->step_us > 0) {
                p->name = "points";
                return refuse(p, "give step or points, not both");
        }
        if (q->points > 0)
                q->step_us = (q->end_us - q->start_us + q->points - 1) / q->points;
        if (q->step_us > 0 && (q->end_us - q->start_us) / q->step_us > QUERY_POINTS_MAX) {
                p->name = "step";
                return refuse(p, "%llu points a series, at most %d: ask with points=%d or a longer step",
                        (unsigned long long) ((q->end_us - q->start_us) / q->step_us), QUERY_POINTS_MAX,
                        1000);
        }
        return 0;
}

/* Some machines count finer than others (AMD's energy by core). */
static Scope narrowest_scope(const MetricSpec *m) {
        Scope alternative = m->alt_numerator != FIELD_NONE && !(m->flags & METRIC_SUM_FIELDS)
                                    ? field_spec(m->alt_numerator)->scope
                                    : m->scope;

        return MAX(m->scope, alternative);
}

static int settle_metrics(Parser *p, QueryForm form) {
        QuerySpec *q = p->q;
        bool by_state = q->n_metrics == 0;

        p->name = "metric";
        if (q->n_metrics == 0 && form == QUERY_FORM_QUERY)
                return refuse(p, "which metric? /api/v1/catalogue lists them");
        for (size_t i = 0; i < q->n_metrics; i++) {
                p->name = "scope";
                if (q->has_scope && q->scope > narrowest_scope(q->metrics[i]))
                        return refuse(p, "%s is measured by %s, not by %s", q->metrics[i]->id,
                                scope_name(q->metrics[i]->scope), scope_name(q->scope));
                by_state |= q->metrics[i]->instance == INSTANCE_STATE;
        }
        p->name = "state";
        if (q->state[0] && !by_state)
                return refuse(p, "none of these metrics is counted by idle state");
        if (q->aggs == 0)
                q->aggs = AGG_MEAN;
        return 0;
}

int query_spec_parse_form(QueryForm form, const QueryParam *params, size_t n, uint64_t now_us,
        QuerySpec *ret, QueryError *ret_error) {
        QuerySpec q = { .now_us = now_us };
        Parser p = { .q = &q, .error = ret_error, .now_us = now_us };
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++)
                r = parse_param(&p, form, &params[i]);
        if (r == 0)
                r = settle_window(&p);
        if (r == 0)
                r = settle_metrics(&p, form);
        if (r < 0) {
                query_spec_deinit(&q);
                return r;
        }
        *ret = q;
        return 0;
}

int query_spec_parse(
        const QueryParam *params, size_t n, uint64_t now_us, QuerySpec *ret, QueryError *ret_error) {
        return query_spec_parse_form(QUERY_FORM_QUERY, params, n, now_us, ret, ret_error);
}

int query_window_parse(const char *param, const char *text, uint64_t now_us, uint64_t *ret_start_us,
        uint64_t *ret_end_us, QueryError *ret_error) {
        const char *separator = strstr(text, ".."), *rest;
        uint64_t start, end;
        char first[64];
        int r;

        rest = separator ? separator + 2 : NULL;
        if (!separator) {
                separator = strchr(text, '/');
                rest = separator ? separator + 1 : NULL;
        }
        if (!separator || (size_t) (separator - text) >= sizeof(first))
                return query_error(
                        ret_error, param, "'%.40s' is neither a label nor a window START..END", text);
        (void) snprintf(first, sizeof(first), "%.*s", (int) (separator - text), text);
        r = parse_instant(ret_error, param, first, now_us, &start);
        if (r == 0)
                r = parse_instant(ret_error, param, rest, now_us, &end);
        if (r < 0)
                return r;
        if (start >= end)
                return query_error(ret_error, param, "start must lie before end");
        *ret_start_us = start;
        *ret_end_us = end;
        return 0;
}
