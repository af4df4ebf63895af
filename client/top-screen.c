/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one file that knows ncurses (its state is a global of its own). */

#include <ncurses.h>
#include <term.h>
#undef lines /* term.h has macros for names anybody might use */

#include "client/top-screen.h"

bool screen_open(void) {
        SCREEN *s = newterm(NULL, stdout, stdin);

        if (!s)
                return false;
        if (!tigetstr("cup") || tigetstr("cup") == (char *) -1) {
                (void) endwin();
                delscreen(s);
                return false;
        }
        (void) cbreak();
        (void) noecho();
        (void) nonl();
        (void) keypad(stdscr, TRUE);
        (void) curs_set(0);
        (void) set_escdelay(25);
        (void) leaveok(stdscr, TRUE);
        return true;
}

void screen_close(void) {
        (void) endwin();
}

void screen_size(unsigned *ret_width, unsigned *ret_height) {
        *ret_width = (unsigned) getmaxx(stdscr);
        *ret_height = (unsigned) getmaxy(stdscr);
}

void screen_draw(const TopFrame *f) {
        static const chtype attrs[] = {
                [TOP_PLAIN] = A_NORMAL, [TOP_HEADER] = A_REVERSE, [TOP_ALARM] = A_BOLD, [TOP_FOOT] = A_DIM
        };

        (void) erase();
        for (size_t i = 0; i < f->n && (int) i < getmaxy(stdscr); i++) {
                (void) attrset((int) attrs[f->lines[i].attr]);
                (void) mvaddnstr((int) i, 0, f->lines[i].text, getmaxx(stdscr));
                if (f->lines[i].attr == TOP_HEADER)
                        (void) hline(' ' | A_REVERSE, getmaxx(stdscr));
        }
        (void) attrset(A_NORMAL);
        (void) refresh();
}

int screen_key(int timeout_ms) {
        int key;

        timeout(timeout_ms);
        key = getch();
        switch (key) {
        case ERR:
                return SCREEN_KEY_NONE;
        case KEY_RESIZE:
                return SCREEN_KEY_RESIZE;
        case KEY_UP:
                return SCREEN_KEY_UP;
        case KEY_DOWN:
                return SCREEN_KEY_DOWN;
        case KEY_PPAGE:
                return SCREEN_KEY_PAGE_UP;
        case KEY_NPAGE:
                return SCREEN_KEY_PAGE_DOWN;
        case KEY_HOME:
                return SCREEN_KEY_HOME;
        case KEY_BACKSPACE:
        case 127:
        case '\b':
                return SCREEN_KEY_BACKSPACE;
        case '\r':
        case KEY_ENTER:
                return '\n';
        default:
                return key >= 0 && key < 256 ? key : SCREEN_KEY_OTHER;
        }
}
