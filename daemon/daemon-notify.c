/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What systemd is told: readiness, state in a sentence, life signs, reloads. */

#include <inttypes.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "cstated/log.h"
#include "cstated/timespan.h"
#include "daemon-private.h"

static void compose(const Daemon *d, char *buf, size_t size) {
        const SamplerStatus *s = d->service.sampler;
        const Machine *m = d->service.machine;
        uint32_t n_ok = 0, n_faulty = 0;
        const char *problem = "";
        bool degraded = d->store && store_is_degraded(d->store, &problem);
        char interval[64];

        for (uint32_t i = 0; s && i < s->n_sources; i++) {
                n_ok += s->sources[i].state == SOURCE_OK;
                n_faulty += s->sources[i].state == SOURCE_DENIED || s->sources[i].state == SOURCE_ERROR;
        }
        timespan_format(d->service.interval_usec, interval, sizeof(interval));
        (void) snprintf(buf, size, "%s %u CPUs every %s; %u of %u sources give counters%s%s%s",
                d->options->replay_fd >= 0 ? "Replaying" : "Sampling", m ? m->n_cpus : 0, interval, n_ok,
                s ? s->n_sources : 0, n_faulty ? ", some are denied or faulty" : "",
                degraded ? "; store degraded: " : "", degraded ? problem : "");
}

static void say_status(Daemon *d) {
        char text[sizeof(d->said)];

        compose(d, text, sizeof(text));
        if (strcmp(text, d->said) == 0)
                return;
        (void) strcpy(d->said, text);
        (void) sd_notifyf(0, "STATUS=%s", text);
}

void daemon_notify_tick(Daemon *d) {
        if (!d->ready) {
                d->ready = true;
                (void) sd_notify(0, "READY=1");
        }
        say_status(d);
        if (d->watchdog.enabled)
                (void) sd_notify(0, "WATCHDOG=1");
}

static int on_pinger(sd_event_source *s, uint64_t usec, void *userdata) {
        Daemon *d = userdata;

        if (watchdog_may_ping(&d->watchdog, daemon_mono_us(), d->start_mono_us, d->frame_mono_us))
                (void) sd_notify(0, "WATCHDOG=1");
        (void) sd_event_source_set_time_relative(s, d->watchdog.timer_usec);
        return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

int daemon_start_watchdog(Daemon *d) {
        const char *usec = getenv("WATCHDOG_USEC");
        int r;

        if (watchdog_plan(usec, getenv("WATCHDOG_PID"), getpid(), d->config->interval_usec, &d->watchdog) <
                0)
                log_warning("WATCHDOG_USEC=%s is not understood: no watchdog", usec);
        if (!d->watchdog.timer_usec)
                return 0;
        r = sd_event_add_time_relative(d->loop, &d->pinger, CLOCK_MONOTONIC, d->watchdog.timer_usec,
                d->watchdog.timer_usec / 10 + 1, on_pinger, d);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(d->pinger, "watchdog");
        return sd_event_source_set_priority(d->pinger, SD_EVENT_PRIORITY_IMPORTANT);
}

/* ---- reload ---- */

static void log_change(void *userdata, const char *section, const char *key, ConfigReload reload) {
        if (reload == CONFIG_RELOAD_NOW)
                log_notice("reload: [%s] %s= applied", section, key);
        else
                log_warning(
                        "reload: [%s] %s= changed, takes effect when cstated is restarted", section, key);
}

static void apply(Daemon *d, const Config *next) {
        HttpConfig http = HTTP_CONFIG_INIT;
        StoreConfig limits = STORE_CONFIG_INIT;

        config_take_reloadable(d->config, next);
        http.max_connections = (unsigned) next->max_connections;
        http.idle_timeout_usec = next->idle_timeout_usec;
        http_reconfigure(d->http, &http);
        daemon_store_limits(next, &limits);
        store_set_limits(d->store, &limits);
}

void daemon_reload(Daemon *d) {
        Config next;

        (void) sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, daemon_mono_us());
        if (d->options->load(d->options->userdata, &next) < 0)
                log_error("reload: the configuration in force stays");
        else {
                if (config_compare(d->config, &next, log_change, NULL) == 0)
                        log_notice("reload: nothing changed");
                apply(d, &next);
                config_deinit(&next);
        }
        (void) sd_notify(0, d->ready ? "READY=1" : "STATUS=Waiting for the first sample");
}
