/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a fuzz target over every file of a corpus directory, each input also cut short at a few places. */

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "cstated/macro.h"
#include "tests/fuzz/fuzz.h"

/* A heap copy of exactly n bytes, so that a sanitizer sees one byte too far. */
static void run_exact(const uint8_t *data, size_t n) {
        _cleanup_free_ uint8_t *copy = malloc(n > 0 ? n : 1);

        if (!copy)
                return;
        if (n > 0)
                memcpy(copy, data, n);
        (void) LLVMFuzzerTestOneInput(copy, n);
}

static int run_file(const char *folder, const char *name) {
        _cleanup_free_ uint8_t *data = NULL;
        _cleanup_(fclosep) FILE *f = NULL;
        char path[4096];
        size_t n;
        long size;

        (void) snprintf(path, sizeof(path), "%s/%s", folder, name);
        f = fopen(path, "rb");
        if (!f || fseek(f, 0, SEEK_END) != 0 || (size = ftell(f)) < 0 || fseek(f, 0, SEEK_SET) != 0)
                return -1;
        data = malloc((size_t) size + 1);
        if (!data)
                return -1;
        n = fread(data, 1, (size_t) size, f);
        run_exact(data, n);
        for (size_t part = 1; part < 16; part++)
                run_exact(data, n * part / 16);
        return 0;
}

int main(int argc, char **argv) {
        struct dirent *e;
        unsigned n = 0;
        DIR *d;

        d = argc == 2 ? opendir(argv[1]) : NULL;
        if (!d) {
                (void) fprintf(stderr, "usage: %s CORPUS-DIRECTORY\n", argv[0]);
                return 2;
        }
        while ((e = readdir(d)))
                if (e->d_name[0] != '.' && run_file(argv[1], e->d_name) == 0)
                        n++;
        (void) closedir(d);
        run_exact((const uint8_t *) "", 0);
        (void) printf("%u inputs\n", n);
        return n > 0 ? 0 : 1;
}
