/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sampler's word on its sources as JSON. Written with our own writer, read with jansson: the text
 * crosses from the privileged process to the other, so the reader checks types and lengths and takes nothing
 * on trust.
 */

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cstated/macro.h"

#include "base/json-writer.h"
#include "sampler/status.h"

#define ERRNO_MAX 4095

static const char *const state_names[] = {
        [SOURCE_OK] = "ok",
        [SOURCE_ABSENT] = "absent",
        [SOURCE_DENIED] = "denied",
        [SOURCE_ERROR] = "error",
        [SOURCE_DISABLED] = "disabled",
};

const char *source_state_name(SourceState s) {
        return (unsigned) s < ARRAY_SIZE(state_names) ? state_names[s] : NULL;
}

int source_state_from_name(const char *name, SourceState *ret) {
        for (unsigned i = 0; i < ARRAY_SIZE(state_names); i++)
                if (strcmp(state_names[i], name) == 0) {
                        *ret = (SourceState) i;
                        return 0;
                }
        return -EINVAL;
}

static void source_to_json(JsonWriter *j, const SourceStatus *s) {
        jw_begin_object(j);
        jw_key_string(j, "name", s->name);
        jw_key_string(j, "state", source_state_name(s->state));
        jw_key_i64(j, "errno", s->error);
        jw_key_string(j, "hint", s->hint);
        jw_key_string(j, "detail", s->detail);
        jw_key_u64(j, "counters", s->n_counters);
        jw_end_object(j);
}

char *sampler_status_to_json(const SamplerStatus *s) {
        JsonWriter j = JSON_WRITER_INIT;
        char *text;

        jw_begin_object(&j);
        jw_key_string(&j, "wake_policy", s->wake_policy);
        jw_key_string(&j, "wake_policy_hint", s->wake_policy_hint);
        jw_key_string(&j, "capabilities", s->capabilities);
        jw_key(&j, "sources");
        jw_begin_array(&j);
        for (uint32_t i = 0; i < s->n_sources; i++)
                source_to_json(&j, &s->sources[i]);
        jw_end_array(&j);
        jw_end_object(&j);
        text = jw_take(&j, NULL);
        jw_deinit(&j);
        return text;
}

/* A string member that fits the buffer. */
static int get_text(const json_t *object, const char *key, char *buf, size_t size) {
        const json_t *v = json_object_get(object, key);

        if (!json_is_string(v) || json_string_length(v) >= size || strlen(json_string_value(v)) >= size)
                return -EBADMSG;
        memcpy(buf, json_string_value(v), strlen(json_string_value(v)) + 1);
        return 0;
}

static int get_number(const json_t *object, const char *key, json_int_t max, json_int_t *ret) {
        const json_t *v = json_object_get(object, key);

        if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) > max)
                return -EBADMSG;
        *ret = json_integer_value(v);
        return 0;
}

static int source_from_json(const json_t *o, SourceStatus *ret) {
        json_int_t error, n_counters;
        char state[16];
        int r;

        r = get_text(o, "name", ret->name, sizeof(ret->name));
        if (r == 0)
                r = get_text(o, "state", state, sizeof(state));
        if (r == 0)
                r = get_text(o, "hint", ret->hint, sizeof(ret->hint));
        if (r == 0)
                r = get_text(o, "detail", ret->detail, sizeof(ret->detail));
        if (r == 0)
                r = get_number(o, "errno", ERRNO_MAX, &error);
        if (r == 0)
                r = get_number(o, "counters", UINT32_MAX, &n_counters);
        if (r < 0 || source_state_from_name(state, &ret->state) < 0)
                return -EBADMSG;
        ret->error = (int) error;
        ret->n_counters = (uint32_t) n_counters;
        return 0;
}

static int status_from_object(const json_t *root, SamplerStatus *ret) {
        const json_t *sources = json_object_get(root, "sources");
        SamplerStatus s = {};
        int r;

        r = get_text(root, "wake_policy", s.wake_policy, sizeof(s.wake_policy));
        if (r == 0 && json_object_get(root, "wake_policy_hint")) /* recordings of before have none */
                r = get_text(root, "wake_policy_hint", s.wake_policy_hint, sizeof(s.wake_policy_hint));
        if (r == 0)
                r = get_text(root, "capabilities", s.capabilities, sizeof(s.capabilities));
        if (r < 0)
                return r;
        if (!json_is_array(sources) || json_array_size(sources) > SOURCES_MAX)
                return -EBADMSG;
        s.n_sources = (uint32_t) json_array_size(sources);
        for (uint32_t i = 0; i < s.n_sources; i++) {
                r = source_from_json(json_array_get(sources, i), &s.sources[i]);
                if (r < 0)
                        return r;
        }
        *ret = s;
        return 0;
}

int sampler_status_from_json(const char *json, size_t n, SamplerStatus *ret) {
        _cleanup_(json_decrefp) json_t *root = json_loadb(json, n, JSON_REJECT_DUPLICATES, NULL);

        return root ? status_from_object(root, ret) : -EBADMSG;
}
