/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames from the sampler's socket, before everything else in the loop, or from a file, between everything
 * else; and the housekeeping of the store in idle moments.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "cstated/log.h"
#include "cstated/timespan.h"
#include "daemon-private.h"

#define READ_SIZE   (256 * 1024)
#define REPLAY_SIZE (64 * 1024)

/* Our own cost, for status. */
static void take_self_figures(Daemon *d) {
        struct timespec t = {};
        unsigned long long resident;
        char buf[64];
        ssize_t n;

        (void) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        d->service.server_cpu_ns = (uint64_t) t.tv_sec * NSEC_PER_SEC + (uint64_t) t.tv_nsec;
        n = pread(d->statm_fd, buf, sizeof(buf) - 1, 0);
        if (n <= 0)
                return;
        buf[n] = '\0';
        if (sscanf(buf, "%*s %llu", &resident) == 1)
                d->service.server_rss_bytes = resident * (uint64_t) sysconf(_SC_PAGESIZE);
}

/* The reader cannot be had before the file is there, which a degraded store may bring later. */
static void open_reader(Daemon *d) {
        if (d->store && !d->reader && store_reader_open(d->config->path, d->store, &d->reader) == 0)
                d->service.reader = d->reader;
}

static void after_ticks(Daemon *d) {
        uint64_t minute = daemon_now_us() / (60 * USEC_PER_SEC);

        d->frame_mono_us = daemon_mono_us();
        take_self_figures(d);
        ingest_check_store(d->ingest);
        daemon_notify_tick(d);
        if (minute == d->minute)
                return;
        d->minute = minute;
        open_reader(d);
        if (d->maintain)
                (void) sd_event_source_set_enabled(d->maintain, SD_EVENT_ONESHOT);
}

static int feed(Daemon *d, const char *buf, size_t n) {
        unsigned n_ticks = 0;
        int r;

        r = ingest_feed(d->ingest, buf, n, &n_ticks);
        if (r == -EBADMSG)
                log_error("a damaged frame: the stream cannot be trusted any more");
        else if (r < 0)
                log_error("a frame cannot be taken in: %s", strerror(-r));
        if (r < 0)
                daemon_end(d, EXIT_FAILURE);
        else if (n_ticks > 0)
                after_ticks(d);
        return r;
}

/* All that is there, so that one tick is one turn of the loop. */
static int on_frames(sd_event_source *s, int fd, uint32_t events, void *userdata) {
        static char buf[READ_SIZE];
        Daemon *d = userdata;

        for (unsigned i = 0; i < 16; i++) {
                ssize_t n = read(fd, buf, sizeof(buf));

                if (n > 0) {
                        if (feed(d, buf, (size_t) n) < 0)
                                break;
                        if ((size_t) n == sizeof(buf))
                                continue;
                        break;
                }
                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        break;
                /* Its end will be told by the kernel in a moment; if not, the grace timer acts. */
                (void) sd_event_source_set_enabled(s, SD_EVENT_OFF);
                (void) sd_event_source_set_time_relative(d->grace, USEC_PER_SEC);
                (void) sd_event_source_set_enabled(d->grace, SD_EVENT_ONESHOT);
                break;
        }
        return 0;
}

static int on_replay(sd_event_source *s, void *userdata) {
        Daemon *d = userdata;
        char buf[REPLAY_SIZE];
        ssize_t n = read(d->options->replay_fd, buf, sizeof(buf));

        if (n > 0)
                return feed(d, buf, (size_t) n) < 0 ? 0 : sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
        if (n < 0)
                log_error("replay: %s", strerror(errno));
        else
                log_notice(
                        "replay: %" PRIu64 " ticks read; serving until stopped", ingest_n_ticks(d->ingest));
        if (d->store)
                (void) store_flush(d->store);
        open_reader(d);
        return 0;
}

int daemon_start_input(Daemon *d) {
        int r;

        d->statm_fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
        open_reader(d);
        if (d->options->replay_fd >= 0) {
                r = sd_event_add_defer(d->loop, &d->frames, on_replay, d);
                if (r < 0)
                        return r;
                return sd_event_source_set_priority(d->frames, SD_EVENT_PRIORITY_NORMAL + 20);
        }
        r = sd_event_add_io(d->loop, &d->frames, d->socket_fd, EPOLLIN, on_frames, d);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(d->frames, "frames");
        return sd_event_source_set_priority(d->frames, SD_EVENT_PRIORITY_IMPORTANT);
}

static int on_maintain(sd_event_source *s, void *userdata) {
        Daemon *d = userdata;

        if (store_maintain(d->store, daemon_now_us()) > 0)
                (void) sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
        return 0;
}

/* A replayed file is of the past: nothing of it is to expire under the reader's eyes. */
int daemon_start_housekeeping(Daemon *d) {
        int r;

        if (!d->store || d->options->replay_fd >= 0)
                return 0;
        r = sd_event_add_defer(d->loop, &d->maintain, on_maintain, d);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(d->maintain, "store-maintain");
        return sd_event_source_set_priority(d->maintain, SD_EVENT_PRIORITY_IDLE);
}
