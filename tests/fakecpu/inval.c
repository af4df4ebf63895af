/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The one other thread: takes lists of names to forget from the serving thread, in order. */

#define FUSE_USE_VERSION 312

#include <fuse_lowlevel.h>
#include <pthread.h>
#include <string.h>

#include "fs.h"

typedef struct Item {
        uint64_t ino;
        char name[64];
} Item;

typedef struct Job {
        struct Job *next;
        Item *items;
        size_t n, size;
        fuse_req_t reply;
        size_t reply_size;
} Job;

struct Inval {
        struct fuse_session *session;
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t wake;
        Job *head, **tail;
        Job *open; /* being filled */
        bool stop;
};

static void job_run(Inval *inval, Job *job) {
        for (size_t i = 0; i < job->n; i++) {
                const Item *item = &job->items[i];

                /* Not known to the kernel: nothing to forget. */
                if (item->name[0] != '\0')
                        (void) fuse_lowlevel_notify_inval_entry(
                                inval->session, item->ino, item->name, strlen(item->name));
                else
                        (void) fuse_lowlevel_notify_inval_inode(inval->session, item->ino, -1, 0);
        }
        if (job->reply)
                (void) fuse_reply_write(job->reply, job->reply_size);
        free(job->items);
        free(job);
}

static void *inval_thread(void *userdata) {
        Inval *inval = userdata;

        (void) pthread_mutex_lock(&inval->lock);
        for (;;) {
                while (!inval->head && !inval->stop)
                        (void) pthread_cond_wait(&inval->wake, &inval->lock);
                Job *job = inval->head;
                if (!job)
                        break;
                inval->head = job->next;
                if (!inval->head)
                        inval->tail = &inval->head;
                (void) pthread_mutex_unlock(&inval->lock);
                job_run(inval, job);
                (void) pthread_mutex_lock(&inval->lock);
        }
        (void) pthread_mutex_unlock(&inval->lock);
        return NULL;
}

Inval *inval_new(struct fuse_session *session) {
        Inval *inval = calloc(1, sizeof(*inval));

        if (!inval)
                return NULL;
        inval->session = session;
        inval->tail = &inval->head;
        (void) pthread_mutex_init(&inval->lock, NULL);
        (void) pthread_cond_init(&inval->wake, NULL);
        if (pthread_create(&inval->thread, NULL, inval_thread, inval) != 0) {
                free(inval);
                return NULL;
        }
        return inval;
}

void inval_add(Inval *inval, uint64_t ino, const char *name) {
        Job *job = inval->open;

        if (!job && !(job = inval->open = calloc(1, sizeof(*job))))
                return;
        if (job->n == job->size) {
                size_t size = MAX((size_t) 64, job->size * 2);
                Item *items = realloc(job->items, size * sizeof(*items));

                if (!items)
                        return;
                job->items = items;
                job->size = size;
        }
        Item *item = &job->items[job->n++];
        *item = (Item){ .ino = ino };
        if (name)
                (void) snprintf(item->name, sizeof(item->name), "%s", name);
}

void inval_send(Inval *inval, struct fuse_req *reply, size_t reply_size) {
        Job *job = inval->open;

        if (!job && reply)
                job = calloc(1, sizeof(*job));
        if (!job) {
                if (reply)
                        (void) fuse_reply_write(reply, reply_size);
                return;
        }
        inval->open = NULL;
        job->reply = reply;
        job->reply_size = reply_size;
        (void) pthread_mutex_lock(&inval->lock);
        *inval->tail = job;
        inval->tail = &job->next;
        (void) pthread_cond_signal(&inval->wake);
        (void) pthread_mutex_unlock(&inval->lock);
}

Inval *inval_free(Inval *inval) {
        if (!inval)
                return NULL;
        (void) pthread_mutex_lock(&inval->lock);
        inval->stop = true;
        (void) pthread_cond_signal(&inval->wake);
        (void) pthread_mutex_unlock(&inval->lock);
        (void) pthread_join(inval->thread, NULL);
        free(inval);
        return NULL;
}
