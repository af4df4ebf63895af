/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A dozen ECMA-48 sequences that every terminal of the last decades knows. (ncurses 6 flushes at each jump of the
 * cursor: a frame took some 200 writes, one line redrawn after another. Here a frame is one write.)
 *
 * SIGWINCH, SIGTERM and SIGHUP are blocked and read from a descriptor, so that there is no handler and the terminal is
 * always put back.
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>

#include "client/top-screen.h"

#define ESCAPE 27
#define ESCAPE_MS 25 /* what comes sooner after ESC belongs to it */
#define ENTER "\033[?1049h\033[?25l\033[2J" /* alternate screen, no cursor, empty */
#define LEAVE "\033[0m\033[?25h\033[?1049l"
#define BEGIN "\033[?2026h" /* show nothing before END; unknown to some, who ignore it */
#define END "\033[0m\033[?2026l"

struct Screen {
        struct termios before;
        sigset_t mask;
        int signals;
        unsigned char keys[64]; /* read and not yet taken */
        size_t n_keys;
        TopFrame shown;
        unsigned width, height; /* of what is shown */
};

static int write_all(const char *data, size_t n) {
        while (n > 0) {
                ssize_t w = write(STDOUT_FILENO, data, n);

                if (w < 0 && errno != EINTR)
                        return -errno;
                data += MAX(w, 0);
                n -= (size_t) MAX(w, 0);
        }
        return 0;
}

Screen *screen_close(Screen *s) {
        if (!s)
                return NULL;
        (void) write_all(LEAVE, strlen(LEAVE));
        (void) tcsetattr(STDIN_FILENO, TCSAFLUSH, &s->before);
        if (s->signals >= 0)
                (void) close(s->signals);
        (void) sigprocmask(SIG_SETMASK, &s->mask, NULL);
        top_frame_deinit(&s->shown);
        free(s);
        return NULL;
}

Screen *screen_open(void) {
        const char *term = getenv("TERM");
        struct termios raw;
        sigset_t set;
        Screen *s;

        if (!isatty(STDOUT_FILENO) || !term || !term[0] || strcmp(term, "dumb") == 0)
                return NULL;
        s = calloc(1, sizeof(*s));
        if (!s || tcgetattr(STDIN_FILENO, &s->before) < 0) {
                free(s);
                return NULL;
        }
        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGWINCH);
        (void) sigaddset(&set, SIGTERM);
        (void) sigaddset(&set, SIGHUP);
        (void) sigprocmask(SIG_BLOCK, &set, &s->mask);
        s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        raw = s->before;
        raw.c_iflag &= ~(tcflag_t) (ICRNL | IXON);
        raw.c_lflag &= ~(tcflag_t) (ICANON | ECHO | ISIG | IEXTEN);
        raw.c_cc[VMIN] = 1;
        raw.c_cc[VTIME] = 0;
        (void) tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
        (void) fflush(stdout);
        if (s->signals < 0 || write_all(ENTER, strlen(ENTER)) < 0)
                return screen_close(s);
        return s;
}

void screen_size(unsigned *ret_width, unsigned *ret_height) {
        struct winsize w = {};

        (void) ioctl(STDOUT_FILENO, TIOCGWINSZ, &w);
        *ret_width = w.ws_col > 0 ? MIN(w.ws_col, TOP_WIDTH_MAX) : 80;
        *ret_height = w.ws_row > 0 ? w.ws_row : 24;
}

/* ---- frames ---- */

static bool line_is_shown(const Screen *s, const TopFrame *f, size_t i) {
        const TopLine *a, *b;

        if (i >= s->shown.n)
                return false;
        a = &s->shown.lines[i];
        b = &f->lines[i];
        return a->attr == b->attr && strcmp(a->text, b->text) == 0;
}

/* Padded to the width rather than erased: what follows the last column of a line differs among terminals. */
static void put_line(FILE *out, size_t row, const TopLine *l, unsigned width) {
        static const char *const attrs[] = {
                [TOP_PLAIN] = "", [TOP_HEADER] = "\033[7m", [TOP_ALARM] = "\033[1m", [TOP_FOOT] = "\033[2m",
        };

        (void) fprintf(out, "\033[%zu;1H\033[0m%s%-*s", row + 1, attrs[l->attr], (int) width, l->text);
}

static int remember(Screen *s, const TopFrame *f) {
        if (s->shown.size < f->n) {
                TopLine *lines = reallocarray(s->shown.lines, f->n, sizeof(*lines));

                if (!lines)
                        return -ENOMEM;
                s->shown.lines = lines;
                s->shown.size = f->n;
        }
        s->shown.n = f->n;
        if (f->n > 0)
                memcpy(s->shown.lines, f->lines, f->n * sizeof(*f->lines));
        return 0;
}

int screen_draw(Screen *s, const TopFrame *f) {
        _cleanup_free_ char *text = NULL;
        unsigned width, height;
        size_t size = 0;
        FILE *out;
        int r;

        screen_size(&width, &height);
        out = open_memstream(&text, &size);
        if (!out)
                return -errno;
        (void) fputs(BEGIN, out);
        if (width != s->width || height != s->height) {
                (void) fputs("\033[0m\033[2J", out);
                s->shown.n = 0;
        }
        for (size_t i = 0; i < MIN(f->n, (size_t) height); i++)
                if (!line_is_shown(s, f, i))
                        put_line(out, i, &f->lines[i], width);
        (void) fputs(END, out);
        if (fclose(out) != 0)
                return -ENOMEM;
        s->width = width;
        s->height = height;
        r = write_all(text, size);
        return r < 0 ? r : remember(s, f);
}

/* ---- keys ---- */

/* Reads what there is. -1: end of file. */
static int read_keys(Screen *s) {
        ssize_t n = read(STDIN_FILENO, s->keys + s->n_keys, sizeof(s->keys) - s->n_keys);

        if (n <= 0)
                return n < 0 && errno == EINTR ? 0 : -1;
        s->n_keys += (size_t) n;
        return 0;
}

static void drop_keys(Screen *s, size_t n) {
        s->n_keys -= n;
        memmove(s->keys, s->keys + n, s->n_keys);
}

static const struct {
        const char *text; /* behind ESC */
        int key;
} sequences[] = {
        { "[A", SCREEN_KEY_UP },
        { "OA", SCREEN_KEY_UP },
        { "[B", SCREEN_KEY_DOWN },
        { "OB", SCREEN_KEY_DOWN },
        { "[5~", SCREEN_KEY_PAGE_UP },
        { "[6~", SCREEN_KEY_PAGE_DOWN },
        { "[H", SCREEN_KEY_HOME },
        { "OH", SCREEN_KEY_HOME },
        { "[1~", SCREEN_KEY_HOME },
};

/* A sequence ends with its first byte from '@' on, after '[' or 'O'. */
static int take_sequence(Screen *s) {
        size_t n = 2;
        int key = SCREEN_KEY_OTHER;

        while (n < s->n_keys && s->keys[n] < '@' && s->keys[n] >= ' ')
                n++;
        n = MIN(n + 1, s->n_keys);
        for (size_t i = 0; i < ARRAY_SIZE(sequences); i++)
                if (strlen(sequences[i].text) == n - 1 && memcmp(sequences[i].text, s->keys + 1, n - 1) == 0)
                        key = sequences[i].key;
        drop_keys(s, n);
        return key;
}

static int take_key(Screen *s) {
        int key = s->keys[0];

        if (key == ESCAPE && s->n_keys > 1 && (s->keys[1] == '[' || s->keys[1] == 'O'))
                return take_sequence(s);
        drop_keys(s, 1);
        if (key == 127 || key == '\b')
                return SCREEN_KEY_BACKSPACE;
        return key == '\r' ? '\n' : key;
}

static int take_signal(Screen *s) {
        struct signalfd_siginfo info;
        int key = SCREEN_KEY_OTHER;

        while (read(s->signals, &info, sizeof(info)) == (ssize_t) sizeof(info))
                if (info.ssi_signo != SIGWINCH)
                        return SCREEN_KEY_END;
                else
                        key = SCREEN_KEY_RESIZE;
        return key;
}

int screen_key(Screen *s, int timeout_ms) {
        struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
                { .fd = s->signals, .events = POLLIN } };

        if (s->n_keys == 0) {
                int n = poll(fds, ARRAY_SIZE(fds), timeout_ms);

                if (n <= 0)
                        return SCREEN_KEY_NONE;
                if (fds[1].revents)
                        return take_signal(s);
                if (read_keys(s) < 0)
                        return SCREEN_KEY_END;
        }
        if (s->n_keys == 1 && s->keys[0] == ESCAPE && poll(fds, 1, ESCAPE_MS) > 0 && read_keys(s) < 0)
                return SCREEN_KEY_END;
        return s->n_keys > 0 ? take_key(s) : SCREEN_KEY_NONE;
}
