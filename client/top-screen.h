/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A terminal for "top": the alternate screen, keys, and frames of which only what has changed goes out, in one
 * write.
 */

#include "client/top-view.h"
#include "cstated/macro.h"

enum {
        SCREEN_KEY_NONE = -1, /* the time is over */
        SCREEN_KEY_RESIZE = -2,
        SCREEN_KEY_UP = -3,
        SCREEN_KEY_DOWN = -4,
        SCREEN_KEY_PAGE_UP = -5,
        SCREEN_KEY_PAGE_DOWN = -6,
        SCREEN_KEY_HOME = -7,
        SCREEN_KEY_BACKSPACE = -8,
        SCREEN_KEY_OTHER = -9,
        SCREEN_KEY_END = -10, /* SIGTERM, SIGHUP, end of file */
};

typedef struct Screen Screen;

/* NULL where stdin or stdout is no terminal, or one that cannot move its cursor (TERM=dumb). */
Screen *screen_open(void);
/* The terminal is as it was. NULL ok. */
Screen *screen_close(Screen *s);
DEFINE_CLEANUP(Screen *, screen_close);
void screen_size(unsigned *ret_width, unsigned *ret_height);
/* 0, -errno. */
int screen_draw(Screen *s, const TopFrame *f);
/* A character, or one of the above; waits at most timeout_ms. */
int screen_key(Screen *s, int timeout_ms);
