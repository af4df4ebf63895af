/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The server's life: everything is made, the loop runs, everything goes in the opposite order. It ends
 *
 *   when told to (SIGTERM, SIGINT): the sampler's socket is closed, its end awaited for a second at most, status 0;
 *   when the sampler ends by itself: the open minute is closed and the status is a failure, so that systemd starts
 *   both anew;
 *   when a frame is damaged, or systemd's watchdog says that no life sign came (SIGABRT), which means that the
 *   sampler hangs: as if it had ended; it is killed.
 */

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include "cstated/api.h"
#include "cstated/log.h"
#include "cstated/timespan.h"
#include "daemon-private.h"

#define STOP_GRACE_USEC USEC_PER_SEC
#define MIGRATION_USEC  (60 * USEC_PER_SEC) /* from one word of progress to the next */

static uint64_t clock_us(clockid_t id) {
        struct timespec t = {};

        (void) clock_gettime(id, &t);
        return (uint64_t) t.tv_sec * USEC_PER_SEC + (uint64_t) t.tv_nsec / NSEC_PER_USEC;
}

uint64_t daemon_now_us(void) {
        return clock_us(CLOCK_REALTIME);
}

uint64_t daemon_mono_us(void) {
        return clock_us(CLOCK_MONOTONIC);
}

void daemon_end(Daemon *d, int status) {
        if (status != EXIT_SUCCESS)
                d->status = status;
        (void) sd_event_exit(d->loop, 0);
}

/* ---- ends ---- */

static void begin_stop(Daemon *d, const char *why) {
        if (d->stopping)
                return;
        d->stopping = true;
        log_notice("stopping: %s", why);
        (void) sd_notify(0, "STOPPING=1\nSTATUS=Stopping");
        http_close_listeners(d->http);
        if (d->sampler == 0) {
                daemon_end(d, EXIT_SUCCESS);
                return;
        }
        d->frames = sd_event_source_disable_unref(d->frames);
        (void) close(d->socket_fd);
        d->socket_fd = -1;
        (void) sd_event_source_set_time_relative(d->grace, STOP_GRACE_USEC);
        (void) sd_event_source_set_enabled(d->grace, SD_EVENT_ONESHOT);
}

static int on_grace(sd_event_source *s, uint64_t usec, void *userdata) {
        Daemon *d = userdata;

        if (d->sampler == 0)
                return 0;
        log_warning("the sampler does not end: killed");
        (void) kill(d->sampler, SIGKILL);
        return 0;
}

/* SIGABRT is systemd's watchdog: we have sent no life signs because no frame came. */
static void end_hung(Daemon *d) {
        uint64_t since = d->frame_mono_us ? d->frame_mono_us : d->start_mono_us;

        log_event(LOG_LEVEL_ERROR, CSTATED_MESSAGE_SAMPLER_DIED, NULL,
                "no sample for %llu s, the sampler hangs: it is killed, and we end, for a fresh start",
                (daemon_mono_us() - since) / USEC_PER_SEC);
        daemon_end(d, EXIT_FAILURE);
}

static int on_signal(sd_event_source *s, const struct signalfd_siginfo *si, void *userdata) {
        Daemon *d = userdata;

        if (si->ssi_signo == SIGHUP)
                daemon_reload(d);
        else if (si->ssi_signo == SIGABRT)
                end_hung(d);
        else
                begin_stop(d, si->ssi_signo == SIGINT ? "interrupted" : "terminated");
        return 0;
}

static int on_child(sd_event_source *s, const siginfo_t *si, void *userdata) {
        bool killed = si->si_code == CLD_KILLED || si->si_code == CLD_DUMPED;
        Daemon *d = userdata;

        d->sampler = 0;
        if (d->stopping) {
                daemon_end(d, EXIT_SUCCESS);
                return 0;
        }
        log_event(LOG_LEVEL_ERROR, CSTATED_MESSAGE_SAMPLER_DIED, NULL,
                "the sampler ended (%s %d): so do we, for a fresh start",
                killed ? "killed by signal" : "exit status", si->si_status);
        (void) sd_notify(0, "STATUS=The sampler ended");
        daemon_end(d, EXIT_FAILURE);
        return 0;
}

/* ---- beginnings ---- */

void daemon_store_limits(const Config *c, StoreConfig *ret) {
        ret->raw_retention_usec = c->raw_retention_usec;
        ret->minute_retention_usec = c->minute_retention_usec;
        ret->hour_retention_usec = c->hour_retention_usec;
        ret->max_size_bytes = c->max_size_bytes;
        ret->durable_head_usec = c->durable_head_usec;
}

/* A long migration is no hang. */
static void on_migration(void *userdata) {
        (void) sd_notifyf(0, "STATUS=Bringing the database to this version's form\nEXTEND_TIMEOUT_USEC=%llu",
                MIGRATION_USEC);
}

static int open_store(Daemon *d) {
        const Config *c = d->config;
        const char *runtime = getenv("RUNTIME_DIRECTORY");
        char dir[256] = "";
        StoreConfig sc = STORE_CONFIG_INIT;
        int r;

        /* systemd separates several by colons; the first is ours. */
        if (runtime && strcspn(runtime, ":") < sizeof(dir))
                (void) snprintf(dir, sizeof(dir), "%.*s", (int) strcspn(runtime, ":"), runtime);
        sc.path = c->path;
        sc.runtime_dir = dir[0] ? dir : NULL;
        daemon_store_limits(c, &sc);
        sc.progress = on_migration;
        (void) sd_notifyf(0, "STATUS=Opening %s", c->path);
        r = store_open(&sc, daemon_now_us(), &d->store);
        if (r == STORE_E_NEWER)
                log_error("%s was written by a newer version of cstated: left untouched", c->path);
        else if (r == STORE_E_FOREIGN)
                log_error("%s is no database of cstated: left untouched", c->path);
        if (r > 0)
                return CSTATED_EXIT_CONFIG;
        if (!d->store) {
                log_error("%s: %s", c->path, r == -EBUSY ? "another cstated keeps it" : strerror(-r));
                return EXIT_FAILURE;
        }
        d->service.store = d->store;
        return 0;
}

static int start_signals(Daemon *d) {
        static const int numbers[] = { SIGTERM, SIGINT, SIGHUP, SIGABRT };
        int r;

        for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
                r = sd_event_add_signal(d->loop, &d->signals[i], numbers[i], on_signal, d);
                if (r < 0)
                        return r;
                (void) sd_event_source_set_priority(d->signals[i], SD_EVENT_PRIORITY_IMPORTANT - 10);
        }
        r = sd_event_add_time(d->loop, &d->grace, CLOCK_MONOTONIC, 0, 10 * USEC_PER_MSEC, on_grace, d);
        if (r < 0)
                return r;
        (void) sd_event_source_set_enabled(d->grace, SD_EVENT_OFF);
        return d->sampler ? sd_event_add_child(d->loop, &d->child, d->sampler, WEXITED, on_child, d) : 0;
}

static int start_http(Daemon *d) {
        HttpConfig c = HTTP_CONFIG_INIT;
        Launch *l = d->options->launch;
        int r;

        c.max_connections = (unsigned) d->config->max_connections;
        c.idle_timeout_usec = d->config->idle_timeout_usec;
        r = http_new(&c, d->loop, &d->service, &d->http);
        for (size_t i = 0; r >= 0 && i < l->n_listeners; i++)
                r = http_add_listener(d->http, TAKE_FD(l->listeners[i]), l->unlink_at_end[i]);
        return r;
}

static int start_loop(Daemon *d) {
        int r;

        r = sd_event_new(&d->loop);
        if (r >= 0)
                r = start_signals(d);
        if (r >= 0)
                r = start_http(d);
        if (r >= 0)
                r = ingest_new(d->store, &d->service, d->config, &d->ingest);
        if (r >= 0)
                r = daemon_start_input(d);
        if (r >= 0)
                r = daemon_start_housekeeping(d);
        if (r >= 0)
                r = daemon_start_watchdog(d);
        if (r < 0)
                log_error("the server cannot be set up: %s", strerror(-r));
        return r;
}

static void daemon_deinit(Daemon *d) {
        if (d->sampler) {
                (void) kill(d->sampler, SIGKILL);
                (void) waitpid(d->sampler, NULL, 0);
        }
        http_free(d->http);
        ingest_free(d->ingest);
        store_reader_close(d->reader);
        store_close(d->store);
        for (size_t i = 0; i < ARRAY_SIZE(d->signals); i++)
                sd_event_source_disable_unref(d->signals[i]);
        sd_event_source_disable_unref(d->frames);
        sd_event_source_disable_unref(d->child);
        sd_event_source_disable_unref(d->maintain);
        sd_event_source_disable_unref(d->grace);
        sd_event_source_disable_unref(d->pinger);
        sd_event_unref(d->loop);
        if (d->socket_fd >= 0)
                (void) close(d->socket_fd);
        if (d->statm_fd >= 0)
                (void) close(d->statm_fd);
}

int daemon_run(const DaemonOptions *o) {
        Daemon d = {
                .options = o,
                .config = o->config,
                .socket_fd = TAKE_FD(o->launch->socket_fd),
                .statm_fd = -1,
                .sampler = o->launch->sampler,
                .start_mono_us = daemon_mono_us(),
                .service = { .start_us = daemon_now_us(),
                        .interval_usec = o->config->interval_usec,
                        .now_us = daemon_now_us },
        };
        int r;

        if (o->launch->user.note[0]) {
                d.service.notes[d.service.n_notes++] = o->launch->user.note;
                log_notice("%s", o->launch->user.note);
        }
        d.status = open_store(&d);
        if (d.status == 0) {
                d.status = start_loop(&d) < 0 ? EXIT_FAILURE : 0;
                if (d.status == 0) {
                        ingest_check_store(d.ingest);
                        (void) sd_notify(0, "STATUS=Waiting for the first sample");
                        r = sd_event_loop(d.loop);
                        if (r < 0) {
                                log_error("the loop failed: %s", strerror(-r));
                                d.status = EXIT_FAILURE;
                        }
                }
        }
        daemon_deinit(&d);
        return d.status;
}
