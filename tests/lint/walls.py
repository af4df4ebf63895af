#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Who may include whom, and the small rules that no compiler checks.

Usage: walls.py TOP. The table below is ARCHITECTURE.md's, in a form that fails.
"""
import os
import re
import sys
import unittest

TOP = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else os.getcwd()

# Rooms each room may include besides itself and "cstated/".
ROOMS = {
    "include/cstated": set(),
    "daemon/base": set(),
    "daemon/model": {"base"},
    "daemon/sampler": {"base", "model"},
    "daemon/store": {"base", "model"},
    "daemon/query": {"base", "model", "store"},
    "daemon/api": {"base", "model", "store", "query", "sampler/status.h"},
    "daemon/http": {"base", "model", "api", "query"},
    "daemon": {"base", "model", "sampler", "store", "query", "api", "http", "daemon"},
    "client": {"base", "model", "sampler", "store", "query", "api", "client"},
}

# header -> where it may stand
FORBIDDEN = {
    "sqlite3.h": r"^daemon/(store|query)/",
    "microhttpd.h": r"^daemon/http/",
    "cpuidle.h": r"^daemon/sampler/(source-cpuidle|cpuidle-discover)",
    "cpufreq.h": r"^$",
    "jansson.h": r"^(client/|daemon/model/machine-json|daemon/sampler/(status|frame)|daemon/(api|store)/)",
    "fuse.h": r"^tests/",
}
BPF = re.compile(r"^(bpf/|linux/bpf)")
BPF_AT = re.compile(r"^daemon/sampler/(source-idletrace|idle)")

C_STANDARD = set("""assert.h complex.h ctype.h errno.h fenv.h float.h inttypes.h iso646.h limits.h locale.h math.h
setjmp.h signal.h stdalign.h stdarg.h stdatomic.h stdbool.h stddef.h stdint.h stdio.h stdlib.h stdnoreturn.h string.h
tgmath.h threads.h time.h uchar.h wchar.h wctype.h""".split())
PURE = re.compile(r"^daemon/(model/|query/(query-spec|compare|stats)\.)")

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')


def sources(*roots):
    for root in roots:
        for folder, _, names in os.walk(os.path.join(TOP, root)):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(folder, name), TOP)


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        return f.read()


def room_of(path):
    folder = os.path.dirname(path)
    return folder if folder in ROOMS else None


class Walls(unittest.TestCase):
    def includes(self):
        for path in sources("include", "daemon", "client"):
            for line, text in enumerate(read(path).splitlines(), 1):
                m = INCLUDE.match(text)
                if m:
                    yield path, line, m.group(1), m.group(2)

    def test_rooms(self):
        for path, line, quote, header in self.includes():
            if quote != '"' or header.startswith("cstated/") or "/" not in header:
                continue
            room = room_of(path)
            self.assertIsNotNone(room, f"{path} stands in no room of ARCHITECTURE.md")
            first = header.split("/")[0]
            own = room.split("/")[-1]
            ok = first == own or first in ROOMS[room] or header in ROOMS[room]
            self.assertTrue(ok, f"{path}:{line}: {room} may not include {header}")

    def test_forbidden_headers(self):
        for path, line, _, header in self.includes():
            allowed = FORBIDDEN.get(header)
            if allowed:
                self.assertRegex(path, allowed, f"{path}:{line}: {header} does not belong here")
            if BPF.match(header):
                self.assertRegex(path, BPF_AT, f"{path}:{line}: {header} does not belong here")

    def test_pure_modules(self):
        for path, line, quote, header in self.includes():
            if not PURE.match(path) or quote != "<":
                continue
            if header == "jansson.h" and path.startswith("daemon/model/machine-json"):
                continue
            self.assertIn(header, C_STANDARD, f"{path}:{line}: a pure module includes <{header}>")

    def test_spdx_and_pragma(self):
        for path in sources("include", "daemon", "client", "tests"):
            text = read(path)
            self.assertTrue(text.startswith("/* SPDX-License-Identifier: GPL-2.0-or-later"), f"{path}: no SPDX line")
            if path.endswith(".h") and not path.endswith(".skel.h"):
                self.assertIn("#pragma once", text, path)

    def test_layout(self):
        for path in sources("include", "daemon", "client", "tests"):
            for line, text in enumerate(read(path).splitlines(), 1):
                self.assertNotIn("\t", text, f"{path}:{line}: a tab")
                if not path.startswith("tests/"):
                    self.assertLessEqual(len(text), 120, f"{path}:{line}: a long line")
                self.assertEqual(text, text.rstrip(), f"{path}:{line}: trailing blanks")

    def test_no_exit_in_libraries(self):
        for path in sources("daemon", "client"):
            if os.path.basename(path) in ("main.c",):
                continue
            for line, text in enumerate(read(path).splitlines(), 1):
                text = re.sub(r"/\*.*?(\*/|$)", "", text)
                self.assertNotRegex(text, r"(?<![\w_])(exit|abort)\s*\(", f"{path}:{line}: only main ends the process")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
