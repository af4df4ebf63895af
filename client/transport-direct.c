/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A database file, or counters sampled in this process: both are a Service whose routes are called directly.
 */

#include <errno.h>
#include <string.h>
#include <time.h>

#include "api/route.h"
#include "client/transport.h"
#include "cstated/api.h"
#include "cstated/timespan.h"
#include "sampler/sampler.h"

typedef struct DirectTransport {
        Transport transport;
        Service service;
        StoreReader *reader;
        /* --local */
        Sysfs *sysfs;
        Sampler *sampler;
        SampleDelta *delta;
        TickHeader tick;
} DirectTransport;

static uint64_t now_us(void) {
        struct timespec t;

        (void) clock_gettime(CLOCK_REALTIME, &t);
        return (uint64_t) t.tv_sec * USEC_PER_SEC + (uint64_t) t.tv_nsec / NSEC_PER_USEC;
}

static int direct_stream(ReplyStream *stream, TransportSink *sink) {
        JsonWriter j = JSON_WRITER_INIT;
        int r, w = 0;

        do {
                j.n = 0;
                r = stream->next(stream, &j);
                if (r >= 0 && j.n > 0)
                        w = transport_sink_write(sink, j.buf, j.n);
        } while (r > 0 && w >= 0);
        jw_deinit(&j);
        return r < 0 ? r : w;
}

/* One turn of the sampler, as a sample. */
static int local_turn(DirectTransport *d) {
        const Tick *tick;
        const Sample *sample = NULL;
        int r;

        r = sampler_turn(d->sampler, &tick);
        if (r < 0)
                return r;
        if (r > 0 || !d->service.machine) {
                Machine *m = machine_copy(sampler_machine(d->sampler));

                r = m ? sample_delta_set_machine(d->delta, m) : -ENOMEM;
                if (r < 0)
                        return r;
        }
        r = sample_delta_push(d->delta, tick, &sample);
        if (r < 0)
                return r;
        d->tick = tick->h;
        d->service.machine = sample_delta_machine(d->delta);
        d->service.sampler = sampler_status(d->sampler);
        d->service.sample = sample;
        d->service.tick = &d->tick;
        return 0;
}

static int direct_request(Transport *t, const TransportRequest *q, TransportSink *sink) {
        DirectTransport *d = (DirectTransport *) t;
        Request request = {
                .method = q->method,
                .path = q->path,
                .params = q->params,
                .n_params = q->n,
                .body = q->body,
                .n_body = q->body ? strlen(q->body) : 0,
                .local = true,
        };
        Reply reply = {};
        int r;

        /* what needs no interval (the CPUs, the sources) is there after one turn */
        r = d->sampler && !d->service.machine ? local_turn(d) : 0;
        if (r >= 0)
                r = route_handle(&d->service, &request, &reply);
        if (r >= 0) {
                sink->status = reply.status;
                if (reply.stream)
                        r = direct_stream(reply.stream, sink);
                else if (reply.body)
                        r = transport_sink_write(sink, reply.body, reply.n_body);
        }
        reply_deinit(&reply);
        if (r == -EIO && errno == EPIPE)
                return CTL_EXIT_FAILURE;
        if (r < 0) {
                ctl_error("%s: %s", q->path, strerror(-r));
                return CTL_EXIT_FAILURE;
        }
        return CTL_EXIT_OK;
}

static int direct_turn(Transport *t) {
        int r = local_turn((DirectTransport *) t);

        if (r >= 0)
                return CTL_EXIT_OK;
        ctl_error("cannot sample this machine: %s", strerror(-r));
        return CTL_EXIT_FAILURE;
}

static void direct_free(Transport *t) {
        DirectTransport *d = (DirectTransport *) t;

        (void) store_reader_close(d->reader);
        (void) sample_delta_free(d->delta);
        (void) sampler_free(d->sampler);
        (void) sysfs_free(d->sysfs);
        free(d);
}

static DirectTransport *direct_new(const TransportOps *ops) {
        DirectTransport *d = calloc(1, sizeof(*d));

        if (!d)
                return NULL;
        d->transport.ops = ops;
        d->service.now_us = now_us;
        d->service.start_us = now_us();
        return d;
}

int transport_db_new(const char *path, Transport **ret) {
        static const TransportOps ops = { .request = direct_request, .free = direct_free };
        DirectTransport *d;
        int r;

        d = direct_new(&ops);
        if (!d)
                return CTL_EXIT_FAILURE;
        r = store_reader_open(path, NULL, &d->reader);
        if (r == 0)
                r = store_reader_machine(d->reader, &d->service.machine);
        if (r == 0) {
                d->service.reader = d->reader;
                *ret = &d->transport;
                return CTL_EXIT_OK;
        }
        if (r == STORE_E_NEWER)
                ctl_error("%s was written by a newer version of cstated", path);
        else if (r == STORE_E_FOREIGN)
                ctl_error("%s is not a database of cstated", path);
        else if (r == STORE_E_OLDER)
                ctl_error("%s was written by an older version: cstated brings it up to date when it starts",
                        path);
        else
                ctl_error("%s: %s", path, strerror(-r));
        direct_free(&d->transport);
        return CTL_EXIT_FAILURE;
}

int transport_local_new(uint64_t interval_usec, Transport **ret) {
        static const TransportOps ops = {
                .request = direct_request, .turn = direct_turn, .free = direct_free
        };
        SamplerConfig config = SAMPLER_CONFIG_INIT;
        DirectTransport *d;
        int r;

        d = direct_new(&ops);
        if (!d)
                return CTL_EXIT_FAILURE;
        config.interval_usec = interval_usec;
        /* A person waits and looks: every core, every interval, as turbostat does. */
        config.wake_policy = WAKE_ALWAYS;
        config.wake_policy_set = true;
        d->service.interval_usec = interval_usec;
        d->delta = sample_delta_new();
        r = d->delta ? sysfs_new("/", &d->sysfs) : -ENOMEM;
        if (r >= 0)
                r = sampler_new(&config, d->sysfs, &d->sampler);
        if (r >= 0) {
                *ret = &d->transport;
                return CTL_EXIT_OK;
        }
        ctl_error("cannot sample this machine: %s", strerror(-r));
        direct_free(&d->transport);
        return CTL_EXIT_FAILURE;
}
