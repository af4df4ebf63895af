/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A terminal for "top", by ncurses: the alternate screen, and only what has changed is written, at once. */

#include "client/top-view.h"

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
};

/* False where the terminal cannot be used that way (TERM=dumb, no terminfo). */
bool screen_open(void);
void screen_close(void);
void screen_size(unsigned *ret_width, unsigned *ret_height);
void screen_draw(const TopFrame *f);
/* A character, or one of the above; waits at most timeout_ms. */
int screen_key(int timeout_ms);
