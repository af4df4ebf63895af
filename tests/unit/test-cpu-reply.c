/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/unit/test.h"

#include "api/route.h"
#include "cstated/api.h"

static Reply ask(Service *s, const char *method, const QueryParam *params, size_t n) {
        Request q = { .method = method, .path = API_ROUTE_CPU, .params = params, .n_params = n };
        Reply reply = {};

        assert_int_equal(route_handle(s, &q, &reply), 0);
        return reply;
}

static void test_route(void **state) {
        const QueryParam param = { .key = "cpu", .value = "0" };
        Service s = {};
        CpuIdent ident = { .vendor = "GenuineIntel", .uarch = "Alder Lake", .family = 6, .model = 0x97 };
        Machine m = { .idents = &ident, .n_idents = 1 };
        Reply reply;

        reply = ask(&s, "GET", NULL, 0);
        assert_int_equal(reply.status, 503);
        reply_deinit(&reply);
        s.machine = &m;
        reply = ask(&s, "GET", NULL, 0);
        assert_int_equal(reply.status, 200);
        assert_string_equal(reply.content_type, "application/json");
        assert_non_null(strstr(reply.body, "\"uarch\":\"Alder Lake\""));
        reply_deinit(&reply);
        reply = ask(&s, "GET", &param, 1);
        assert_int_equal(reply.status, 400);
        reply_deinit(&reply);
        reply = ask(&s, "POST", NULL, 0);
        assert_int_equal(reply.status, 405);
        reply_deinit(&reply);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_route),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
