/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The HTTP room on its own: a loop, a server with made-up routes, and clients that are plain sockets of the
 * same process. Progress is driven turn by turn, so what is asserted are counts, not times.
 */

#include "tests/unit/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cstated/api.h"
#include "http/dashboard.h"
#include "http/http.h"
#include "http/listener.h"

#define TURN_USEC 20000
#define TURNS     500

/* ---- routes ---- */

typedef struct Pieces {
        ReplyStream base;
        unsigned n_left, n_empty;
        size_t size;
        int error;
} Pieces;

static unsigned n_streams_alive, n_pieces_made;
static bool last_local;
static char last_method[16], last_body[64];

static int pieces_next(ReplyStream *s, JsonWriter *j) {
        Pieces *p = (Pieces *) s;
        char block[1024];

        if (p->n_empty > 0) {
                p->n_empty--;
                return 2;
        }
        if (p->n_left == 0)
                return p->error;
        memset(block, 'x', sizeof(block));
        for (size_t n = 0; n < p->size; n += sizeof(block))
                jw_raw(j, block, sizeof(block));
        p->n_left--;
        n_pieces_made++;
        return p->n_left > 0 || p->error ? 1 : 0;
}

static void pieces_free(ReplyStream *s) {
        n_streams_alive--;
        free(s);
}

static ReplyStream *pieces_new(unsigned n, size_t size, unsigned n_empty, int error) {
        Pieces *p = calloc(1, sizeof(*p));

        assert_non_null(p);
        *p = (Pieces){ { pieces_next, pieces_free }, n, n_empty, size, error };
        n_streams_alive++;
        return &p->base;
}

void reply_deinit(Reply *r) {
        free(r->body);
        if (r->stream)
                r->stream->free(r->stream);
        *r = (Reply){};
}

int reply_error(Reply *ret, int status, const char *code, const char *param, const char *format, ...) {
        ret->status = status;
        ret->body = strdup("{\"error\":{}}");
        ret->n_body = strlen(ret->body);
        return 0;
}

int route_parse_query_string(char *s, QueryParam *params, size_t max, size_t *ret_n) {
        *ret_n = 0;
        return strstr(s, "%zz") ? -EINVAL : 0;
}

int route_handle(Service *service, const Request *q, Reply *ret) {
        ret->status = 200;
        last_local = q->local;
        (void) snprintf(last_method, sizeof(last_method), "%s", q->method);
        (void) snprintf(last_body, sizeof(last_body), "%.*s", (int) q->n_body, q->body ? q->body : "");
        if (strcmp(q->method, "PUT") == 0) {
                ret->allow = "GET";
                return reply_error(ret, 405, "method", NULL, "no");
        }
        if (strcmp(q->path, "/short") == 0)
                ret->stream = pieces_new(1, 2048, 0, 0);
        else if (strcmp(q->path, "/long") == 0)
                ret->stream = pieces_new(400, 32768, 2, 0);
        else if (strcmp(q->path, "/slow") == 0)
                ret->stream = pieces_new(3, 1024, 3, 0);
        else if (strcmp(q->path, "/broken") == 0)
                ret->stream = pieces_new(2, 1024, 0, -EIO);
        else if (strcmp(q->path, "/refused") == 0)
                ret->stream = pieces_new(0, 0, 0, -ETIME);
        else {
                ret->body = strdup("{}\n");
                ret->n_body = 3;
        }
        return 0;
}

/* ---- the bench ---- */

typedef struct Bench {
        sd_event *loop;
        Http *http;
        Service service;
        char dir[64], path[96];
        uint16_t port;
} Bench;

static void bench_open(Bench *b, const HttpConfig *c) {
        struct sockaddr_in sa = {};
        socklen_t n = sizeof(sa);
        const char *why;
        int fd;

        *b = (Bench){ .dir = "/tmp/test-http-XXXXXX" };
        assert_non_null(mkdtemp(b->dir));
        (void) snprintf(b->path, sizeof(b->path), "%s/s", b->dir);
        assert_return_code(sd_event_new(&b->loop), 0);
        assert_return_code(http_new(c, b->loop, &b->service, &b->http), 0);
        assert_return_code(http_listen(b->http, b->path, (unsigned) -1, &why), 0);
        assert_int_equal(listener_open("127.0.0.1:0", (uid_t) -1, (gid_t) -1, &fd, 1, &why), 1);
        assert_int_equal(getsockname(fd, (struct sockaddr *) &sa, &n), 0);
        b->port = ntohs(sa.sin_port);
        assert_return_code(http_add_listener(b->http, fd, false), 0);
}

static void bench_close(Bench *b) {
        http_free(b->http);
        sd_event_unref(b->loop);
        assert_int_equal(access(b->path, F_OK), -1);
        assert_int_equal(rmdir(b->dir), 0);
        assert_int_equal(n_streams_alive, 0);
}

static int client_unix(const Bench *b) {
        struct sockaddr_un sa = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

        (void) snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", b->path);
        assert_int_equal(connect(fd, (struct sockaddr *) &sa, sizeof(sa)), 0);
        return fd;
}

static int client_tcp(const Bench *b) {
        struct sockaddr_in sa = {
                .sin_family = AF_INET, .sin_port = htons(b->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
        };
        int fd = socket(AF_INET, SOCK_STREAM, 0);

        assert_int_equal(connect(fd, (struct sockaddr *) &sa, sizeof(sa)), 0);
        return fd;
}

static void say(int fd, const char *text) {
        assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t) strlen(text));
}

/* Runs turns until the client has what ends with `until`, or its end; returns the bytes in all, the first
 * ones in buf. */
static size_t hear(Bench *b, int fd, char *buf, size_t size, const char *until) {
        char piece[65536], tail[16] = "";
        size_t total = 0, n_until = until ? strlen(until) : 0;
        ssize_t n;

        assert_true(n_until <= sizeof(tail));
        buf[0] = '\0';
        for (unsigned i = 0; i < TURNS * 20; i++) {
                (void) sd_event_run(b->loop, TURN_USEC / 20);
                while ((n = recv(fd, piece, sizeof(piece), MSG_DONTWAIT)) > 0) {
                        size_t room = total < size - 1 ? size - 1 - total : 0,
                               k = (size_t) n < room ? (size_t) n : room;

                        memcpy(buf + total, piece, k);
                        total += (size_t) n;
                        buf[total < size - 1 ? total : size - 1] = '\0';
                        for (ssize_t p = 0; p < n; p++) {
                                memmove(tail, tail + 1, sizeof(tail) - 1);
                                tail[sizeof(tail) - 1] = piece[p];
                        }
                        if (until && memcmp(tail + sizeof(tail) - n_until, until, n_until) == 0)
                                return total;
                }
                if (n == 0 || (n < 0 && errno != EAGAIN))
                        return total;
        }
        fail_msg("no end of the reply after %zu bytes", total);
        return 0;
}

static unsigned n_connections(const Bench *b) {
        HttpFigures f;

        http_figures(b->http, &f);
        return f.n_connections;
}

static void run_until_connections(Bench *b, unsigned n) {
        for (unsigned i = 0; i < TURNS && n_connections(b) != n; i++)
                (void) sd_event_run(b->loop, TURN_USEC);
        assert_int_equal(n_connections(b), n);
}

/* ---- tests ---- */

static void test_exchange(void **state) {
        const HttpConfig c = HTTP_CONFIG_INIT;
        char buf[4096];
        Bench b;
        int fd;

        bench_open(&b, &c);
        fd = client_unix(&b);
        say(fd, "GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
        (void) hear(&b, fd, buf, sizeof(buf), "{}\n");
        assert_memory_equal(buf, "HTTP/1.1 200 ", 13);
        assert_true(last_local);
        /* the same connection goes on */
        say(fd, "HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n");
        (void) hear(&b, fd, buf, sizeof(buf), "\r\n\r\n");
        assert_memory_equal(buf, "HTTP/1.1 200 ", 13);
        assert_non_null(strstr(buf, "Content-Length: 3"));
        assert_string_equal(last_method, "GET");
        say(fd, "PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
        (void) hear(&b, fd, buf, sizeof(buf), "{}}");
        assert_memory_equal(buf, "HTTP/1.1 405 ", 13);
        assert_non_null(strstr(buf, "Allow: GET"));
        say(fd, "GET /x?a=%zz HTTP/1.1\r\nHost: a\r\n\r\n");
        (void) hear(&b, fd, buf, sizeof(buf), "{}}");
        assert_memory_equal(buf, "HTTP/1.1 400 ", 13);
        say(fd, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello");
        (void) hear(&b, fd, buf, sizeof(buf), "{}\n");
        assert_string_equal(last_method, "POST");
        assert_string_equal(last_body, "hello");
        assert_true(last_local);
        /* a page of another site, through a bridge to the socket */
        say(fd, "POST /x HTTP/1.1\r\nHost: a\r\nSec-Fetch-Site: cross-site\r\nContent-Length: 5\r\n\r\nhello");
        (void) hear(&b, fd, buf, sizeof(buf), "{}\n");
        assert_false(last_local);
        say(fd, "POST /x HTTP/1.1\r\nHost: a\r\nSec-Fetch-Site: same-origin\r\nContent-Length: 5\r\n\r\nhello");
        (void) hear(&b, fd, buf, sizeof(buf), "{}\n");
        assert_true(last_local);
        (void) close(fd);
        run_until_connections(&b, 0);
        fd = client_tcp(&b);
        say(fd, "GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        (void) hear(&b, fd, buf, sizeof(buf), NULL);
        assert_memory_equal(buf, "HTTP/1.1 200 ", 13);
        assert_false(last_local);
        (void) close(fd);
        run_until_connections(&b, 0);
        bench_close(&b);
}

#define PAGE_MAX (300 * 1024) /* all files of the dashboard together */

/* Everything a browser needs is here, small, and what the page refers to exists. */
static void test_dashboard_files(void **state) {
        const DashboardFile *files;
        size_t n, total = 0;

        files = dashboard_files(&n);
        assert_string_equal(files[0].path, "/");
        for (size_t i = 0; i < n; i++) {
                const char *bodies = (const char *) files[i].body;

                total += files[i].n_body;
                assert_ptr_equal(dashboard_find(files[i].path), &files[i]);
                assert_true(files[i].etag[0] == '"' && strlen(files[i].etag) == 18);
                /* the library's licence and source map are all that names another host */
                if (!strstr(files[i].path, "dygraph"))
                        assert_null(memmem(bodies, files[i].n_body, "https://", 8));
        }
        print_message("%zu files, %zu bytes\n", n, total);
        assert_true(total > 30000 && total <= PAGE_MAX);
        assert_null(dashboard_find("/dashboard"));
        assert_null(dashboard_find("/dashboard/../main.c"));
        for (const char *p = (const char *) files[0].body, *end = p + files[0].n_body;
                (p = memmem(p, (size_t) (end - p), "\"dashboard/", 11)); p++) {
                char path[64];

                (void) snprintf(path, sizeof(path), "/%.*s", (int) strcspn(p + 1, "\""), p + 1);
                assert_non_null(dashboard_find(path));
        }
}

static void test_dashboard(void **state) {
        const DashboardFile *page = dashboard_find("/"), *script = dashboard_find("/dashboard/main.js");
        const HttpConfig c = HTTP_CONFIG_INIT;
        char buf[4096], text[256];
        size_t n;
        Bench b;
        int fd;

        assert_non_null(page);
        assert_non_null(script);
        bench_open(&b, &c);
        fd = client_tcp(&b);
        say(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        n = hear(&b, fd, buf, sizeof(buf), "</html>\n");
        assert_memory_equal(buf, "HTTP/1.1 200 ", 13);
        assert_non_null(strstr(buf, "Content-Type: text/html; charset=utf-8\r\n"));
        assert_non_null(strstr(buf, "Content-Security-Policy: default-src 'self'; "));
        assert_null(strstr(buf, "unsafe"));
        assert_non_null(strstr(buf, "X-Content-Type-Options: nosniff\r\n"));
        assert_non_null(strstr(buf, "Cache-Control: no-cache\r\n"));
        assert_non_null(strstr(buf, page->etag));
        assert_true(n > page->n_body && n < page->n_body + 700);
        say(fd, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
        n = hear(&b, fd, buf, sizeof(buf), "\r\n\r\n");
        assert_memory_equal(buf, "HTTP/1.1 200 ", 13);
        (void) snprintf(text, sizeof(text), "Content-Length: %zu\r\n", page->n_body);
        assert_non_null(strstr(buf, text));
        assert_true(n < 700);
        say(fd, "GET /dashboard/main.js?v=1 HTTP/1.1\r\nHost: a\r\n\r\n");
        n = hear(&b, fd, buf, sizeof(buf), "main();\n");
        assert_non_null(strstr(buf, "Content-Type: text/javascript; charset=utf-8\r\n"));
        assert_true(n > script->n_body);
        /* what a browser has already */
        (void) snprintf(text, sizeof(text),
                "GET / HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"x\", W/%s\r\n\r\n", page->etag);
        say(fd, text);
        n = hear(&b, fd, buf, sizeof(buf), "\r\n\r\n");
        assert_memory_equal(buf, "HTTP/1.1 304 ", 13);
        assert_non_null(strstr(buf, page->etag));
        assert_true(n < 700);
        say(fd, "GET / HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"x\"\r\n\r\n");
        (void) hear(&b, fd, buf, sizeof(buf), "</html>\n");
        assert_memory_equal(buf, "HTTP/1.1 200 ", 13);
        say(fd, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
        (void) hear(&b, fd, buf, sizeof(buf), "{}}");
        assert_memory_equal(buf, "HTTP/1.1 405 ", 13);
        assert_non_null(strstr(buf, "Allow: GET, HEAD\r\n"));
        (void) close(fd);
        run_until_connections(&b, 0);
        bench_close(&b);
}

static void test_caps(void **state) {
        const HttpConfig c = HTTP_CONFIG_INIT;
        char buf[4096], *large;
        Bench b;
        int fd;

        bench_open(&b, &c);
        fd = client_unix(&b);
        say(fd, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n");
        (void) hear(&b, fd, buf, sizeof(buf), "{}}");
        assert_memory_equal(buf, "HTTP/1.1 413 ", 13);
        (void) close(fd);
        /* a body that does not say its size */
        fd = client_unix(&b);
        large = malloc(70010);
        assert_non_null(large);
        memset(large, 'y', 70010);
        say(fd, "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n11170\r\n");
        for (size_t done = 0; done < 70000;) {
                ssize_t n = send(fd, large, 70000 - done, MSG_DONTWAIT | MSG_NOSIGNAL);

                if (n > 0)
                        done += (size_t) n;
                (void) sd_event_run(b.loop, 1000);
        }
        say(fd, "\r\n0\r\n\r\n");
        (void) hear(&b, fd, buf, sizeof(buf), "{}}");
        assert_memory_equal(buf, "HTTP/1.1 413 ", 13);
        (void) close(fd);
        /* a head without end */
        fd = client_unix(&b);
        say(fd, "GET /x HTTP/1.1\r\nX: ");
        for (unsigned i = 0; i < 8; i++) {
                (void) send(fd, large, 8192, MSG_DONTWAIT | MSG_NOSIGNAL);
                (void) sd_event_run(b.loop, 1000);
        }
        (void) hear(&b, fd, buf, sizeof(buf), NULL);
        assert_true(strstr(buf, " 431 ") || strstr(buf, " 413 "));
        (void) close(fd);
        free(large);
        run_until_connections(&b, 0);
        bench_close(&b);
}

static void test_streams(void **state) {
        const HttpConfig c = HTTP_CONFIG_INIT;
        char buf[4096];
        HttpFigures f;
        size_t n;
        Bench b;
        int fd;

        bench_open(&b, &c);
        fd = client_unix(&b);
        /* complete with its first piece: an ordinary reply */
        say(fd, "GET /short HTTP/1.1\r\nHost: a\r\n\r\n");
        n = hear(&b, fd, buf, sizeof(buf), "xxx");
        assert_true(n > 2048 && n < 2600);
        assert_non_null(strstr(buf, "Content-Length: 2048"));
        /* pieces that take several turns to come */
        say(fd, "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
        n = hear(&b, fd, buf, sizeof(buf), "\r\n0\r\n\r\n");
        assert_non_null(strstr(buf, "chunked"));
        assert_true(n > 3 * 1024 && n < 3 * 1024 + 600);
        /* 13 MB, more than any socket buffer */
        say(fd, "GET /long HTTP/1.1\r\nHost: a\r\n\r\n");
        n = hear(&b, fd, buf, sizeof(buf), "\r\n0\r\n\r\n");
        assert_true(n > 400 * 32768 && n < 400 * 32768 + 40000);
        http_figures(b.http, &f);
        assert_int_equal(f.n_streams, 0);
        /* a stream that fails before its first piece is an error reply, later a connection that ends */
        say(fd, "GET /refused HTTP/1.1\r\nHost: a\r\n\r\n");
        (void) hear(&b, fd, buf, sizeof(buf), "{}}");
        assert_memory_equal(buf, "HTTP/1.1 503 ", 13);
        assert_non_null(strstr(buf, "Retry-After: "));
        say(fd, "GET /broken HTTP/1.1\r\nHost: a\r\n\r\n");
        n = hear(&b, fd, buf, sizeof(buf), NULL);
        assert_null(strstr(buf, "\r\n0\r\n\r\n"));
        (void) close(fd);
        run_until_connections(&b, 0);
        bench_close(&b);
}

/* One expensive reply at a time; the second is told when to come again. */
static void test_expensive(void **state) {
        const HttpConfig c = HTTP_CONFIG_INIT;
        char buf[4096];
        int fd[2];
        Bench b;

        bench_open(&b, &c);
        fd[0] = client_unix(&b);
        fd[1] = client_unix(&b);
        say(fd[0], "GET /long HTTP/1.1\r\nHost: a\r\n\r\n");
        while (n_streams_alive == 0)
                (void) sd_event_run(b.loop, TURN_USEC);
        say(fd[1], "GET /long HTTP/1.1\r\nHost: a\r\n\r\n");
        (void) hear(&b, fd[1], buf, sizeof(buf), "{}}");
        assert_memory_equal(buf, "HTTP/1.1 503 ", 13);
        assert_non_null(strstr(buf, "Retry-After: 1"));
        /* cheap ones are not kept out */
        say(fd[1], "GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
        (void) hear(&b, fd[1], buf, sizeof(buf), "{}\n");
        assert_memory_equal(buf, "HTTP/1.1 200 ", 13);
        (void) hear(&b, fd[0], buf, sizeof(buf), "\r\n0\r\n\r\n");
        (void) close(fd[0]);
        (void) close(fd[1]);
        run_until_connections(&b, 0);
        bench_close(&b);
}

/* Clients that go in the middle leave nothing behind, and end nothing. */
static void test_gone(void **state) {
        const HttpConfig c = HTTP_CONFIG_INIT;
        const struct linger reset = { .l_onoff = 1 };
        Bench b;

        bench_open(&b, &c);
        for (unsigned i = 0; i < 20; i++) {
                char buf[1024];
                int fd = client_tcp(&b);
                ssize_t n = 0;

                say(fd, "GET /long HTTP/1.1\r\nHost: a\r\n\r\n");
                for (unsigned k = 0; k < TURNS && n < (ssize_t) sizeof(buf); k++) {
                        (void) sd_event_run(b.loop, 1000);
                        n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT | MSG_PEEK);
                }
                assert_int_equal(n, (ssize_t) sizeof(buf));
                assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
                (void) close(fd);
                run_until_connections(&b, 0);
                assert_int_equal(n_streams_alive, 0);
        }
        bench_close(&b);
}

/* A server that is stopped while replies are under way. */
static void test_stop_in_the_middle(void **state) {
        const HttpConfig c = HTTP_CONFIG_INIT;
        int fd[3];
        Bench b;

        bench_open(&b, &c);
        for (unsigned i = 0; i < 3; i++)
                fd[i] = client_unix(&b);
        say(fd[0], "GET /long HTTP/1.1\r\nHost: a\r\n\r\n");
        say(fd[1], "GET /lo");
        while (n_streams_alive == 0)
                (void) sd_event_run(b.loop, TURN_USEC);
        bench_close(&b);
        for (unsigned i = 0; i < 3; i++)
                (void) close(fd[i]);
}

/* Beyond the cap the one that has been idle for longest goes. */
static void test_eviction(void **state) {
        HttpConfig c = HTTP_CONFIG_INIT;
        char buf[1024];
        HttpFigures f;
        int fd[4];
        Bench b;

        c.max_connections = 3;
        bench_open(&b, &c);
        for (unsigned i = 0; i < 3; i++) {
                fd[i] = client_unix(&b);
                run_until_connections(&b, i + 1);
        }
        say(fd[0], "GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
        (void) hear(&b, fd[0], buf, sizeof(buf), "{}\n");
        fd[3] = client_unix(&b);
        say(fd[3], "GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
        (void) hear(&b, fd[3], buf, sizeof(buf), "{}\n");
        http_figures(b.http, &f);
        assert_int_equal(f.evicted, 1);
        assert_int_equal(f.n_connections, 3);
        /* fd[1] was it; fd[0] still answers */
        assert_int_equal(recv(fd[1], buf, sizeof(buf), MSG_DONTWAIT), 0);
        say(fd[0], "GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
        (void) hear(&b, fd[0], buf, sizeof(buf), "{}\n");
        for (unsigned i = 0; i < 4; i++)
                (void) close(fd[i]);
        run_until_connections(&b, 0);
        bench_close(&b);
}

/* Beyond the cap with nobody idle: told so, by a reply whose length is right. */
static void test_refusal(void **state) {
        HttpConfig c = HTTP_CONFIG_INIT;
        const char *body, *length;
        char buf[1024];
        HttpFigures f;
        int busy, fd;
        Bench b;

        c.max_connections = 1;
        bench_open(&b, &c);
        busy = client_unix(&b);
        say(busy, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf");
        run_until_connections(&b, 1);
        for (unsigned i = 0; i < 10; i++)
                (void) sd_event_run(b.loop, TURN_USEC / 20);
        fd = client_unix(&b);
        (void) hear(&b, fd, buf, sizeof(buf), NULL);
        http_figures(b.http, &f);
        assert_int_equal(f.refused, 1);
        assert_memory_equal(buf, "HTTP/1.1 503 ", 13);
        body = strstr(buf, "\r\n\r\n");
        length = strstr(buf, "Content-Length: ");
        assert_true(body && length && length < body);
        assert_int_equal(strtoul(length + strlen("Content-Length: "), NULL, 10), strlen(body + 4));
        (void) close(fd);
        (void) close(busy);
        run_until_connections(&b, 0);
        bench_close(&b);
}

/* Deadlines: an unfinished head, an idle connection, a reader that does not read. */
static void test_deadlines(void **state) {
        HttpConfig c = HTTP_CONFIG_INIT;
        char buf[1024];
        HttpFigures f;
        int fd[3];
        Bench b;

        c.head_timeout_usec = 50000;
        c.idle_timeout_usec = 60000;
        bench_open(&b, &c);
        for (unsigned i = 0; i < 3; i++)
                fd[i] = client_unix(&b);
        say(fd[0], "GET /x HT");
        say(fd[1], "GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
        (void) hear(&b, fd[1], buf, sizeof(buf), "{}\n");
        say(fd[2], "GET /long HTTP/1.1\r\nHost: a\r\n\r\n");
        run_until_connections(&b, 0);
        http_figures(b.http, &f);
        assert_int_equal(f.timed_out, 3);
        for (unsigned i = 0; i < 3; i++)
                (void) close(fd[i]);
        bench_close(&b);
}

static int on_stop(sd_event_source *s, uint64_t usec, void *userdata) {
        return sd_event_exit(userdata, 0);
}

/*
 * The loop sleeps while clients idle: fed with milliseconds as an absolute time, libmicrohttpd's timeout
 * would make it spin, tens of thousands of turns a second.
 */
static void test_no_spinning(void **state) {
        const HttpConfig c = HTTP_CONFIG_INIT;
        HttpFigures before, after;
        char buf[1024];
        unsigned turns = 0;
        int fd[2];
        Bench b;

        bench_open(&b, &c);
        fd[0] = client_unix(&b);
        fd[1] = client_tcp(&b);
        say(fd[0], "GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
        (void) hear(&b, fd[0], buf, sizeof(buf), "{}\n");
        say(fd[1], "GET /x HT");
        run_until_connections(&b, 2);
        for (unsigned i = 0; i < 10; i++)
                (void) sd_event_run(b.loop, 1000);
        http_figures(b.http, &before);
        assert_return_code(
                sd_event_add_time_relative(b.loop, NULL, CLOCK_MONOTONIC, 300000, 1, on_stop, b.loop), 0);
        while (sd_event_get_state(b.loop) != SD_EVENT_FINISHED) {
                (void) sd_event_run(b.loop, UINT64_MAX);
                turns++;
        }
        http_figures(b.http, &after);
        assert_true(turns <= 6);
        assert_true(after.turns - before.turns <= 2);
        (void) close(fd[0]);
        (void) close(fd[1]);
        bench_close(&b);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_exchange),
                cmocka_unit_test(test_dashboard_files),
                cmocka_unit_test(test_dashboard),
                cmocka_unit_test(test_caps),
                cmocka_unit_test(test_streams),
                cmocka_unit_test(test_expensive),
                cmocka_unit_test(test_gone),
                cmocka_unit_test(test_stop_in_the_middle),
                cmocka_unit_test(test_eviction),
                cmocka_unit_test(test_refusal),
                cmocka_unit_test(test_deadlines),
                cmocka_unit_test(test_no_spinning),
        };

        (void) signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
