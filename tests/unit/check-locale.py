#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""C20: every reply is the same, byte for byte, under a locale whose numbers have commas."""

import os
import re
import subprocess
import sys
import tempfile

PROBE = "import locale; locale.setlocale(locale.LC_ALL, ''); print(locale.localeconv()['decimal_point'])"


def output(command, **env):
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**os.environ, **env}).stdout
    return re.sub(rb"cstated-test-\w{6}", b"folder", text)


with tempfile.TemporaryDirectory() as folder:
    made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", f"{folder}/de_DE.UTF-8"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    comma = {"LOCPATH": folder, "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"}
    try:
        works = output([sys.executable, "-c", PROBE], **comma).strip() == b","
    except subprocess.CalledProcessError:
        works = False
    if not works:
        print(f"skipped: localedef cannot make de_DE here (status {made.returncode}; package locales)")
        sys.exit(77)
    plain = output([sys.argv[1]], LC_ALL="C")
    german = output([sys.argv[1]], **comma)
    assert b"1.5," in plain
    if plain != german:
        for a, b in zip(plain.splitlines(), german.splitlines()):
            if a != b:
                print(a.decode(), b.decode(), sep="\n")
        sys.exit(1)
    print(f"{len(plain)} bytes of replies are the same")
