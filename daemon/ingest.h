/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * From the sampler's bytes to what the server serves: frames are checked, differenced, stored, and the
 * Service is kept current. Conditions (sources, errata, store) are logged when they change, never per
 * sample.
 */

#include "api/route.h"
#include "config.h"
#include "sampler/frame.h"

typedef struct Ingest Ingest;

/* All borrowed; [Events] of config is looked at anew with every sample, so that a reload counts at once.
 * -ENOMEM. */
int ingest_new(Store *store, Service *service, const Config *config, Ingest **ret);
Ingest *ingest_free(Ingest *i);
DEFINE_CLEANUP(Ingest *, ingest_free);
/* Bytes of the stream; *ret_ticks: how many ticks they completed. -EBADMSG: the stream is damaged for good;
 * -ENOMEM. */
int ingest_feed(Ingest *i, const void *data, size_t n, unsigned *ret_ticks);
/* Looks at the store's state and logs a change. */
void ingest_check_store(Ingest *i);
uint64_t ingest_n_ticks(const Ingest *i);
