/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The contract between daemon and client: routes, limits, defaults, exit codes, message ids. */

#define API_PREFIX "/api/v1"
#define API_ROUTE_STATUS API_PREFIX "/status"
#define API_ROUTE_CPU API_PREFIX "/cpu"
#define API_ROUTE_CATALOGUE API_PREFIX "/catalogue"
#define API_ROUTE_SNAPSHOT API_PREFIX "/snapshot"
#define API_ROUTE_QUERY API_PREFIX "/query"
#define API_ROUTE_SUMMARY API_PREFIX "/summary"
#define API_ROUTE_COMPARE API_PREFIX "/compare"
#define API_ROUTE_LABELS API_PREFIX "/labels"
#define API_ROUTE_EVENTS API_PREFIX "/events"
#define API_ROUTE_METRICS "/metrics"

#define CSTATED_DEFAULT_SOCKET "/run/cstated/cstated.sock"
#define CSTATED_DEFAULT_DB "/var/lib/cstated/cstated.db"
#define CSTATED_DEFAULT_CONFIG "/etc/cstated/cstated.conf"
#define CSTATED_USER "cstated"
#define CSTATED_DEFAULT_TCP_PORT 9290

/* Limits of a request */
#define API_HEAD_MAX (16 * 1024)
#define API_BODY_MAX (64 * 1024)
#define API_PARAMS_MAX 64
#define API_REPLY_MAX (64u << 20)

/* cstatectl's exit statuses */
enum {
        CTL_EXIT_OK = 0,
        CTL_EXIT_FAILURE = 1,
        CTL_EXIT_USAGE = 2,
        CTL_EXIT_NO_DAEMON = 3,
        CTL_EXIT_NO_DATA = 4,
        CTL_EXIT_FINDINGS = 5,
};
/* cstated's: configuration errors, as systemd's RestartPreventExitStatus= wants them */
enum {
        CSTATED_EXIT_USAGE = 2,
        CSTATED_EXIT_CONFIG = 78,
};

/* Journal message ids (sd-id128, made once for us) */
#define CSTATED_MESSAGE_ERRATUM "aab7c14619b94fdd8e82dca2e3d20330" /* an erratum this kernel does not work around */
#define CSTATED_MESSAGE_SOURCE "f912cb0a2fc54c4a8552f141826505ff" /* a source came or went */
#define CSTATED_MESSAGE_STORE "f7501d27fc4742dd8c1f050c2d025f25" /* the store is degraded, or well again */
#define CSTATED_MESSAGE_SAMPLER_DIED "18b01a03629541daab41744c303fc7d6" /* the sampler ended */
#define CSTATED_MESSAGE_BREAK_STORM "a873a7efdb504a028ce8dfc641fed1ca" /* break wakeups above the limits */
/* granted deep idle fell under half of requested */
#define CSTATED_MESSAGE_DEEP_IDLE_LOST "71290b6b03c849559d082ccbf02be10c"
#define CSTATED_MESSAGE_GAP "285c10c6a4044e509153048b1fd4bd00" /* samples are missing */
