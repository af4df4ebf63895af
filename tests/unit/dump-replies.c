/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Real replies of every route over a made-up machine, as a JSON list on stdout:
 * {"method","path","query","status", "type","body"}, for whoever holds them against a schema, promtool, or
 * the same replies under another locale.
 */

#include "tests/unit/test.h"

#include <locale.h>
#include <stdlib.h>

#include <jansson.h>

#include "cstated/api.h"
#include "cstated/timespan.h"
#include "http/dashboard.h"
#include "tests/unit/machine-fixture.h"
#include "tests/unit/world.h"

#define BASE_US (1700000040ULL * USEC_PER_SEC)

static const struct Case {
        const char *method, *path, *query, *body;
        bool remote;
} cases[] = {
        { "GET", API_ROUTE_STATUS, "", NULL },
        { "GET", API_ROUTE_STATUS, "pretty=1", NULL },
        { "GET", API_ROUTE_CPU, "", NULL },
        { "GET", API_ROUTE_CATALOGUE, "", NULL },
        { "GET", API_ROUTE_SNAPSHOT, "", NULL },
        { "GET", API_ROUTE_QUERY,
                "metric=busy,irq,idle_time,pkg_watts,c6,core_temp&agg=mean,min,max,stddev,sum,count&step=5s",
                NULL },
        { "GET", API_ROUTE_QUERY, "metric=busy,node_watts&scope=node&start=-20s", NULL },
        { "GET", API_ROUTE_QUERY, "metric=busy,wakeups&points=4&format=columns&time_format=iso&start=-20s",
                NULL },
        { "GET", API_ROUTE_QUERY, "metric=busy&format=csv&time_format=s&start=-3s", NULL },
        { "GET", API_ROUTE_QUERY, "metric=busy&time_format=s&start=-3s", NULL },
        { "GET", API_ROUTE_QUERY, "", NULL },
        { "GET", API_ROUTE_QUERY, "metric=busy&start=-5", NULL },
        { "POST", API_ROUTE_LABELS, "",
                "{\"name\":\"one\",\"start\":\"-20s\",\"end\":\"-10s\",\"meta\":{\"cmd\":[\"make\",\"-j\"]}"
                "}" },
        { "POST", API_ROUTE_LABELS, "", "{\"name\":\"two\",\"start\":\"-10s\",\"end\":\"now\"}" },
        { "POST", API_ROUTE_LABELS, "", "{\"name\":\"open\"}" },
        { "POST", API_ROUTE_LABELS, "", "{\"name\":5}" },
        { "POST", API_ROUTE_LABELS, "", "{" },
        { "POST", API_ROUTE_LABELS, "", "{\"name\":\"one\"}", true },
        { "GET", API_ROUTE_LABELS, "", NULL },
        { "GET", API_ROUTE_LABELS, "name=one", NULL },
        { "GET", API_ROUTE_SUMMARY, "", NULL },
        { "GET", API_ROUTE_SUMMARY, "label=one&scope=cpu&cpu=0-1&time_format=iso", NULL },
        { "GET", API_ROUTE_SUMMARY, "label=none", NULL },
        { "GET", API_ROUTE_COMPARE, "a=one&b=two", NULL },
        { "GET", API_ROUTE_COMPARE, "a=-20s..-10s&b=-10s..now&metric=busy,smi&scope=package", NULL },
        { "GET", API_ROUTE_COMPARE, "a=one", NULL },
        { "GET", API_ROUTE_COMPARE, "a=one&b=none", NULL },
        { "DELETE", API_ROUTE_LABELS, "name=one", NULL },
        { "DELETE", API_ROUTE_LABELS, "name=one", NULL },
        { "DELETE", API_ROUTE_LABELS, "", NULL },
        { "GET", API_ROUTE_EVENTS, "", NULL },
        { "GET", API_ROUTE_EVENTS, "kind=gap&limit=1&time_format=iso", NULL },
        { "GET", API_ROUTE_EVENTS, "limit=many", NULL },
        { "GET", API_ROUTE_METRICS, "", NULL },
        { "GET", API_ROUTE_METRICS, "scope=cpu", NULL },
        { "GET", API_ROUTE_METRICS, "scope=all", NULL },
};

static void dump(json_t *list, Service *s, const struct Case *c) {
        char type[64] = "", *body;
        int status;

        body = world_get(s, c->method, c->path, c->query, c->body, !c->remote, &status, type);
        assert_int_equal(json_array_append_new(list,
                                 json_pack("{s:s,s:s,s:s,s:i,s:s,s:s}", "method", c->method, "path", c->path,
                                         "query", c->query, "status", status, "type", type, "body", body)),
                0);
        free(body);
}

/* The page is no route: it comes from the HTTP side. */
static void dump_page(json_t *list) {
        const DashboardFile *f = dashboard_find("/");

        assert_non_null(f);
        assert_int_equal(json_array_append_new(list,
                                 json_pack("{s:s,s:s,s:s,s:i,s:s,s:s%}", "method", "GET", "path", "/", "query", "",
                                         "status", 200, "type", f->content_type, "body", f->body, f->n_body)),
                0);
}

static void live(World *w) {
        for (unsigned i = 0; i < 20; i++) {
                for (uint32_t e = 0; e < 8; e++) {
                        world_busy(w, e, 1.5 + (i * 7 + e) % 10);
                        world_set(w, FIELD_IRQ, 0, e, (int64_t) (100 + i * e));
                        world_set(w, FIELD_IDLE_USAGE, 3, e, (int64_t) (90 + i));
                }
                for (uint32_t e = 0; e < 2; e++)
                        world_set(w, FIELD_ENERGY_PKG, 0, e, (int64_t) (16384 * 50 + i * 1000));
                world_ticks(w, 1);
        }
        world_null(w, FIELD_C6, 0, 1, REASON_ASLEEP);
        world_null(w, FIELD_ENERGY_RAM, 0, 1, REASON_ERROR);
        world_ticks(w, 1);
}

int main(void) {
        json_t *list = json_array();
        Service s;
        World w;

        /* whoever asks for a locale by the environment gets it, as a library that a program links might */
        (void) setlocale(LC_ALL, "");
        world_open(&w, NULL, BASE_US, USEC_PER_SEC);
        world_service(&w, &s);
        dump(list, &s, &(struct Case){ "GET", API_ROUTE_SNAPSHOT, "", NULL });
        live(&w);
        assert_int_equal(store_event(w.store, w.time_us - USEC_PER_SEC, "hotplug", 5, "CPU 5 went"), 0);
        assert_int_equal(
                store_event(w.store, w.time_us - 2 * USEC_PER_SEC, "gap", -1, "3 samples are missing"), 0);
        world_service(&w, &s);
        (void) strcpy(w.machine->idents[0].brand, "Intel(R) \"Xeon\" \\ 6130");
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                dump(list, &s, &cases[i]);
        dump_page(list);
        s.reader = NULL;
        dump(list, &s, &(struct Case){ "GET", API_ROUTE_QUERY, "metric=busy", NULL });
        assert_int_equal(json_dumpf(list, stdout, JSON_INDENT(1)), 0);
        json_decref(list);
        world_close(&w);
        return 0;
}
