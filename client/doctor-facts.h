/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <jansson.h>

#include "client/doctor.h"

/* What to ask /api/v1/summary for: scope and metrics of each question. */
#define DOCTOR_QUESTIONS 3
extern const char *const doctor_questions[DOCTOR_QUESTIONS][2];

/* Facts from the answers of /api/v1/cpu, /status, and /summary to each of doctor_questions. -ENOMEM, -EBADMSG. */
int doctor_facts_from_json(
        json_t *cpu, json_t *status, json_t *const summaries[DOCTOR_QUESTIONS], DoctorFacts *ret);
