/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sampler's process: a timer on an absolute grid of the monotonic clock (ticks fall on multiples of the
 * interval and do not drift), one turn of the sampler, frames into a bounded queue that is written without
 * waiting. The timer's accuracy is stated, since sd-event's 0 means 250 ms. EPOLLOUT is watched only while
 * frames wait, so an interval costs one wakeup. The server says nothing to us: a readable socket is its end,
 * and ours.
 */

#include <errno.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "cstated/timespan.h"

#include "sampler/frame-queue.h"
#include "sampler/sampler.h"

#define TIMER_ACCURACY_USEC 1000
#define FDS_MAX 65536u
#define MISSED_HOLD_USEC (60 * USEC_PER_SEC)
#define STATUS_WINDOW_USEC (60 * USEC_PER_SEC) /* a source that flaps is told of so often in so long */
#define STATUS_WINDOW_MAX 6

typedef struct SamplerProcess {
        SamplerConfig config;
        Sysfs *sysfs;
        Sampler *sampler;
        sd_event *event;
        sd_event_source *timer, *io;
        FrameQueue queue;
        int socket_fd, record_fd;
        bool is_waiting; /* for EPOLLOUT */
        SamplerStatus sent_status;
        uint64_t next_usec, missed_told_usec, status_window_usec;
        unsigned n_status; /* sent in the window */
        uint64_t n_missed, n_missed_told, n_dropped_told;
} SamplerProcess;

/* A recording that cannot be written ends; sampling goes on. */
static void record_write(SamplerProcess *p, const uint8_t *data, size_t n) {
        while (p->record_fd >= 0 && n > 0) {
                ssize_t k = write(p->record_fd, data, n);

                if (k < 0 && errno == EINTR)
                        continue;
                if (k <= 0) {
                        closep(&p->record_fd);
                        p->record_fd = -1;
                        return;
                }
                data += k;
                n -= (size_t) k;
        }
}

static void frame_send(SamplerProcess *p, FrameType type, uint8_t *frame, size_t n) {
        record_write(p, frame, n);
        frame_queue_push(&p->queue, type, frame, n);
}

static int event_send(SamplerProcess *p, const FrameEvent *e) {
        uint8_t *frame;
        size_t n;
        int r;

        r = frame_encode_event(e, &frame, &n);
        if (r == 0)
                frame_send(p, FRAME_EVENT, frame, n);
        return r;
}

static int machine_send(SamplerProcess *p) {
        uint8_t *frame;
        size_t n;
        int r;

        r = frame_encode_machine(sampler_machine(p->sampler), &frame, &n);
        if (r == 0)
                frame_send(p, FRAME_MACHINE, frame, n);
        return r;
}

static int status_send(SamplerProcess *p, uint64_t now_usec) {
        const SamplerStatus *status = sampler_status(p->sampler);
        uint8_t *frame;
        size_t n;
        int r;

        if (memcmp(status, &p->sent_status, sizeof(*status)) == 0)
                return 0;
        if (now_usec >= p->status_window_usec + STATUS_WINDOW_USEC) {
                p->status_window_usec = now_usec;
                p->n_status = 0;
        }
        if (p->n_status == STATUS_WINDOW_MAX)
                return 0;
        r = frame_encode_status(status, &frame, &n);
        if (r < 0)
                return r;
        p->sent_status = *status;
        p->n_status++;
        frame_send(p, FRAME_STATUS, frame, n);
        return 0;
}

static int tick_send(SamplerProcess *p, const Tick *t) {
        uint8_t *frame;
        size_t n;
        int r;

        r = frame_encode_tick(t, &frame, &n);
        if (r == 0)
                frame_send(p, FRAME_TICK, frame, n);
        return r;
}

static FrameEvent event_make(const char *kind, const char *what, uint64_t n) {
        FrameEvent e = { .cpu = -1 };
        struct timespec t;

        (void) clock_gettime(CLOCK_REALTIME, &t);
        e.time_us = (uint64_t) t.tv_sec * USEC_PER_SEC + (uint64_t) t.tv_nsec / NSEC_PER_USEC;
        (void) snprintf(e.kind, sizeof(e.kind), "%s", kind);
        (void) snprintf(e.text, sizeof(e.text), "%llu %s", (unsigned long long) n, what);
        return e;
}

/* Ticks the timer skipped, at most once a minute. */
static int missed_send(SamplerProcess *p, uint64_t now_usec) {
        FrameEvent e;

        if (p->n_missed == p->n_missed_told)
                return 0;
        if (p->n_missed_told > 0 && now_usec < p->missed_told_usec + MISSED_HOLD_USEC)
                return 0;
        e = event_make("missed", "ticks came too late and were skipped", p->n_missed - p->n_missed_told);
        p->n_missed_told = p->n_missed;
        p->missed_told_usec = now_usec;
        return event_send(p, &e);
}

/* Frames the queue dropped, told when it has room again. */
static int gap_send(SamplerProcess *p) {
        FrameEvent e;

        if (p->queue.n_dropped == p->n_dropped_told)
                return 0;
        e = event_make("gap", "frames were dropped, the server read too slowly",
                p->queue.n_dropped - p->n_dropped_told);
        p->n_dropped_told = p->queue.n_dropped;
        return event_send(p, &e);
}

/* Writes what waits; asks for EPOLLOUT only while the socket is full. */
static int queue_flush(SamplerProcess *p) {
        int r;

        r = frame_queue_write(&p->queue, p->socket_fd);
        if (r == 0 && p->queue.n_dropped != p->n_dropped_told) {
                r = gap_send(p);
                if (r == 0)
                        r = frame_queue_write(&p->queue, p->socket_fd);
        }
        if (r == -EPIPE || r == -ECONNRESET)
                return sd_event_exit(p->event, 0);
        if (r < 0)
                return r;
        if ((r == 1) == p->is_waiting)
                return 0;
        p->is_waiting = r == 1;
        return sd_event_source_set_io_events(p->io, EPOLLIN | (p->is_waiting ? EPOLLOUT : 0));
}

static int turn_send(SamplerProcess *p, uint64_t now_usec) {
        const Tick *tick;
        FrameEvent e;
        int r, changed;

        sampler_set_losses(p->sampler, p->n_missed, p->queue.n_dropped);
        changed = sampler_turn(p->sampler, &tick);
        if (changed < 0)
                return changed;
        r = changed > 0 ? machine_send(p) : 0;
        if (r == 0)
                r = status_send(p, now_usec);
        if (r == 0)
                r = tick_send(p, tick);
        while (r == 0 && sampler_take_event(p->sampler, &e) > 0)
                r = event_send(p, &e);
        if (r == 0)
                r = missed_send(p, now_usec);
        return r < 0 ? r : queue_flush(p);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        SamplerProcess *p = userdata;
        uint64_t interval = p->config.interval_usec, now;
        int r;

        r = sd_event_now(p->event, CLOCK_MONOTONIC, &now);
        if (r < 0)
                return r;
        if (now >= p->next_usec + interval)
                p->n_missed += (now - p->next_usec) / interval;
        r = turn_send(p, now);
        if (r < 0)
                return sd_event_exit(p->event, r);
        p->next_usec = (now / interval + 1) * interval;
        r = sd_event_source_set_time(source, p->next_usec);
        return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int on_socket(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        SamplerProcess *p = userdata;
        char buf[64];

        if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
                ssize_t n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);

                if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
                        return sd_event_exit(p->event, 0);
        }
        return events & EPOLLOUT ? queue_flush(p) : 0;
}

static int loop_prepare(SamplerProcess *p) {
        int r;

        r = sd_event_new(&p->event);
        if (r < 0)
                return r;
        r = sd_event_add_io(p->event, &p->io, p->socket_fd, EPOLLIN, on_socket, p);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(p->io, "sampler-socket");
        r = sd_event_now(p->event, CLOCK_MONOTONIC, &p->next_usec);
        if (r < 0)
                return r;
        r = sd_event_add_time(
                p->event, &p->timer, CLOCK_MONOTONIC, p->next_usec, TIMER_ACCURACY_USEC, on_timer, p);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(p->timer, "sampler-timer");
        return sd_event_source_set_priority(p->timer, SD_EVENT_PRIORITY_IMPORTANT);
}

/* The machine goes out first, so that the reader can make sense of all that follows. */
static int process_run(SamplerProcess *p) {
        int r;

        r = sysfs_new("/", &p->sysfs);
        if (r == 0)
                r = sampler_new(&p->config, p->sysfs, &p->sampler);
        if (r == 0)
                r = machine_send(p);
        if (r == 0)
                r = loop_prepare(p);
        return r < 0 ? r : sd_event_loop(p->event);
}

/* We do not log: the last word goes where all others went, if it still fits. */
static void last_word(SamplerProcess *p, int error) {
        FrameEvent e = event_make("sampler", "", (uint64_t) -error);

        (void) snprintf(e.text, sizeof(e.text), "the sampler ends: %s", strerror(-error));
        if (event_send(p, &e) == 0)
                (void) frame_queue_write(&p->queue, p->socket_fd);
}

/* Closes [from, to]; kernels before 5.9 want them one by one. */
static void fds_close_range(unsigned from, unsigned to) {
        if (from > to || close_range(from, to, 0) == 0)
                return;
        for (unsigned fd = from; fd <= MIN(to, FDS_MAX); fd++)
                (void) close((int) fd);
}

/* Only the two descriptors stay, and standard ones for a sanitizer's last words. */
static void fds_close(int a, int b) {
        int low = MIN(a, b), high = MAX(a, b);
        unsigned from = STDERR_FILENO + 1;

        for (unsigned i = 0; i < 2; i++) {
                int keep = i == 0 ? low : high;

                if (keep < (int) from)
                        continue;
                fds_close_range(from, (unsigned) keep - 1);
                from = (unsigned) keep + 1;
        }
        fds_close_range(from, UINT_MAX);
}

int sampler_main(const SamplerConfig *c, int socket_fd) {
        SamplerProcess p = { .config = *c, .socket_fd = socket_fd, .record_fd = c->record_fd };
        int r;

        fds_close(socket_fd, c->record_fd);
        (void) signal(SIGINT, SIG_IGN);
        (void) signal(SIGTERM, SIG_IGN);
        (void) signal(SIGHUP, SIG_IGN);
        (void) prctl(PR_SET_NAME, "cstated-sampler");
        r = process_run(&p);
        if (r < 0)
                last_word(&p, r);
        (void) sd_event_source_unref(p.timer);
        (void) sd_event_source_unref(p.io);
        (void) sd_event_unref(p.event);
        (void) sampler_free(p.sampler);
        (void) sysfs_free(p.sysfs);
        frame_queue_deinit(&p.queue);
        closep(&p.record_fd);
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
