/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * /api/v1/labels: named windows. Reading is for everybody; writing only for who comes over the unix socket
 * (or runs in process), whose group says that he may. A body that is no JSON is a bad request; JSON that is
 * no label cannot be processed.
 */

#include <errno.h>
#include <string.h>

#include <jansson.h>

#include "cstated/timespan.h"

#include "api/route-private.h"

#define LABELS_MAX 10000
#define META_MAX   4096

typedef struct LabelList {
        JsonWriter *j;
        size_t n;
} LabelList;

static void write_meta(JsonWriter *j, const char *meta) {
        json_t *o = meta ? json_loads(meta, 0, NULL) : NULL;
        char *text = json_is_object(o) ? json_dumps(o, JSON_COMPACT) : NULL;

        /* parsed and printed anew: what lies in a file is never trusted to be JSON */
        if (text) {
                jw_raw(j, text, strlen(text));
                j->need_comma = true;
        } else
                jw_null(j);
        free(text);
        json_decref(o);
}

static void write_label(JsonWriter *j, const StoreLabel *l) {
        jw_begin_object(j);
        jw_key_string(j, "name", l->name);
        jw_key_u64(j, "start", l->start_us / USEC_PER_MSEC);
        jw_key(j, "end");
        if (l->end_us > 0)
                jw_u64(j, l->end_us / USEC_PER_MSEC);
        else
                jw_null(j);
        jw_key(j, "meta");
        write_meta(j, l->meta);
        jw_end_object(j);
}

static int take_label(void *userdata, const StoreLabel *l) {
        LabelList *list = userdata;

        if (list->n++ < LABELS_MAX)
                write_label(list->j, l);
        return jw_error(list->j);
}

int route_labels_get(Service *s, const Request *q, Reply *ret) {
        JsonWriter j = JSON_WRITER_INIT;
        LabelList list = { &j, 0 };
        int r;

        r = request_only(q, (const char *const[]){ "name", NULL }, ret);
        if (r == 0)
                r = reply_no_reader(s, ret);
        if (r != 0)
                return r < 0 ? r : 0;
        jw_begin_object(&j);
        jw_key(&j, "labels");
        jw_begin_array(&j);
        r = store_reader_labels(s->reader, request_param(q, "name"), take_label, &list);
        if (r < 0) {
                jw_deinit(&j);
                return reply_store_error(ret, r, NULL);
        }
        jw_end_array(&j);
        jw_key_bool(&j, "truncated", list.n > LABELS_MAX);
        jw_end_object(&j);
        return reply_json(ret, 200, &j);
}

/* 0, or 1 with the refusal of who may not write or where nothing can be written. */
static int refuse_write(Service *s, const Request *q, Reply *ret) {
        int r;

        if (!q->local) {
                r = reply_error(ret, 405, "read-only", NULL, "labels are written over the unix socket only");
                ret->allow = "GET, HEAD";
                return r ?: 1;
        }
        if (s->store)
                return 0;
        r = reply_error(ret, 503, "read-only", NULL, "there is no store to write to");
        return r ?: 1;
}

static int unprocessable(Reply *ret, const char *param, const char *message) {
        return reply_error(ret, 422, "bad-label", param, "%s", message) ?: 1;
}

static bool good_name(const char *name) {
        size_t n = name ? strlen(name) : 0;

        if (n == 0 || n >= sizeof(((StoreLabel *) NULL)->name) || strstr(name, "..") || strchr(name, '/'))
                return false; /* ".." and "/" mean a window where labels are asked for */
        for (; *name; name++)
                if ((unsigned char) *name < 0x20 || *name == 0x7f)
                        return false;
        return true;
}

/* A number (seconds or milliseconds, as everywhere), a text, or what is the default. */
static int take_instant(const json_t *o, uint64_t now_us, uint64_t fallback_us, uint64_t *ret_us) {
        char number[32];

        if (!o || json_is_null(o)) {
                *ret_us = fallback_us;
                return 0;
        }
        if (json_is_string(o))
                return timespan_parse_instant(json_string_value(o), now_us, ret_us);
        if (json_is_integer(o) && json_integer_value(o) >= 0) {
                (void) snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, json_integer_value(o));
                return timespan_parse_instant(number, now_us, ret_us);
        }
        if (!json_is_real(o) || json_real_value(o) < 0 || json_real_value(o) > 253402300799e3)
                return -EINVAL;
        *ret_us = (uint64_t) (json_real_value(o) *
                              (json_real_value(o) >= 1e11 ? USEC_PER_MSEC : USEC_PER_SEC));
        return 0;
}

/* 0, or 1 with a reply that says what is wrong. */
static int parse_label(json_t *o, uint64_t now_us, StoreLabel *l, Reply *ret) {
        static const char *const known[] = { "name", "start", "end", "meta" };
        const char *name = json_string_value(json_object_get(o, "name")), *key;
        json_t *meta = json_object_get(o, "meta"), *value;

        json_object_foreach(o, key, value) {
                bool found = false;

                for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                        found |= strcmp(known[i], key) == 0;
                if (!found)
                        return unprocessable(ret, key, "no such member");
        }
        if (!good_name(name))
                return unprocessable(ret, "name", "1 to 64 characters, no '/', '..' or control characters");
        (void) snprintf(l->name, sizeof(l->name), "%s", name);
        if (take_instant(json_object_get(o, "start"), now_us, now_us, &l->start_us) < 0)
                return unprocessable(ret, "start", "no time");
        if (take_instant(json_object_get(o, "end"), now_us, 0, &l->end_us) < 0)
                return unprocessable(ret, "end", "no time");
        if (l->end_us > 0 && l->end_us <= l->start_us)
                return unprocessable(ret, "end", "must lie after start");
        if (meta && !json_is_null(meta) && !json_is_object(meta))
                return unprocessable(ret, "meta", "must be an object");
        l->meta = json_is_object(meta) ? json_dumps(meta, JSON_COMPACT) : NULL;
        if (l->meta && strlen(l->meta) > META_MAX)
                return unprocessable(ret, "meta", "too long");
        return json_is_object(meta) && !l->meta ? -ENOMEM : 0;
}

static int add_label(Service *s, json_t *o, Reply *ret) {
        JsonWriter j = JSON_WRITER_INIT;
        StoreLabel l = {};
        int r;

        r = parse_label(o, s->now_us(), &l, ret);
        if (r == 0) {
                r = store_label_add(s->store, &l);
                if (r < 0)
                        r = reply_store_error(ret, r, NULL);
                else {
                        write_label(&j, &l);
                        r = reply_json(ret, 201, &j);
                }
        }
        free(l.meta);
        return r < 0 ? r : 0;
}

int route_labels_post(Service *s, const Request *q, Reply *ret) {
        json_error_t error;
        json_t *o;
        int r;

        r = request_only(q, (const char *const[]){ NULL }, ret);
        if (r == 0)
                r = refuse_write(s, q, ret);
        if (r != 0)
                return r < 0 ? r : 0;
        o = json_loadb(q->body ? q->body : "", q->n_body, JSON_REJECT_DUPLICATES, &error);
        if (!o)
                return reply_error(ret, 400, "bad-json", NULL, "the body is no JSON: %s", error.text);
        if (!json_is_object(o))
                r = reply_error(ret, 422, "bad-label", NULL, "the body must be an object with a name");
        else
                r = add_label(s, o, ret);
        json_decref(o);
        return r;
}

int route_labels_delete(Service *s, const Request *q, Reply *ret) {
        const char *name = request_param(q, "name");
        JsonWriter j = JSON_WRITER_INIT;
        int r;

        r = request_only(q, (const char *const[]){ "name", NULL }, ret);
        if (r == 0)
                r = refuse_write(s, q, ret);
        if (r != 0)
                return r < 0 ? r : 0;
        if (!name || !name[0])
                return reply_error(ret, 400, "bad-parameter", "name", "which label?");
        r = store_label_remove(s->store, name);
        if (r == -ENOENT)
                return reply_error(ret, 404, "no-label", "name", "no label '%.64s'", name);
        if (r < 0)
                return reply_store_error(ret, r, NULL);
        jw_begin_object(&j);
        jw_key_string(&j, "removed", name);
        jw_end_object(&j);
        return reply_json(ret, 200, &j);
}
