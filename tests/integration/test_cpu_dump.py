#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cstatectl cpu --dump: other machines from text; bad text is one clear message, exit 1, in little memory.

Usage: test_cpu_dump.py CSTATECTL CORPUS
"""
import json
import os
import resource
import subprocess
import sys
import tempfile
import unittest

CSTATECTL = os.path.abspath(sys.argv[1])
CORPUS = os.path.abspath(sys.argv[2])
MEMORY_MAX = 64 << 20  # address space would not do: libraries alone map more


def run(*arguments, **kwargs):
    return subprocess.run([CSTATECTL, "cpu", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=120, text=True, **kwargs)


def corpus(name):
    return os.path.join(CORPUS, name)


def status_of(cpu, erratum):
    return next(e["status"] for e in cpu["errata"] if e["id"] == erratum)


class Dump(unittest.TestCase):
    def cpus(self, name):
        done = run("--json", "--dump", corpus(name))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)["cpus"]

    def test_raw(self):
        cpu, = self.cpus("e7-4807.txt")
        self.assertEqual((cpu["family"], cpu["model"], cpu["stepping"], cpu["count"]), (6, 47, 2, 1))
        self.assertEqual(cpu["uarch"], "Westmere-EX")
        self.assertEqual(status_of(cpu, "clflush_monitor"), "unknown")
        self.assertEqual([c["count"] for c in self.cpus("hybrid.txt")], [2, 1])

    def test_cpuinfo(self):
        cpu, = self.cpus("cpuinfo-westmere-ex.txt")
        self.assertEqual((status_of(cpu, "clflush_monitor"), cpu["count"]), ("mitigated", 2))
        cpu, = self.cpus("cpuinfo-old-kernel.txt")
        self.assertEqual(status_of(cpu, "clflush_monitor"), "unknown")

    def test_standard_input(self):
        with open(corpus("e7-4807.txt"), encoding="ascii") as f:
            done = run("--dump", "-", stdin=f)
        self.assertEqual(done.returncode, 0)
        self.assertIn("Westmere-EX, GenuineIntel family 6 model 47 (0x2f) stepping 2", done.stdout)

    def check_refused(self, done, message):
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(message, done.stderr)

    def test_bad(self):
        for name in ("empty.txt", "binary.bin", "broken-off-in-a-line.txt", "broken-off-between-lines.txt",
                     "cpuinfo-broken-off.txt", "cpuinfo-arm.txt", "decoded.txt"):
            with self.subTest(name):
                self.check_refused(run("--dump", corpus(name)), f"{name}: line ")
        self.check_refused(run("--dump", corpus("no-such-file")), "No such file")
        self.check_refused(run("--dump", CORPUS), "Is a directory")

    def test_usage(self):
        self.assertEqual(run("--dump").returncode, 2)
        self.assertEqual(run("--no-such-option").returncode, 2)
        self.assertEqual(run("word").returncode, 2)

    def test_100_mb(self):
        """Of blanks, of one endless line, and of a CPU that is repeated for ever."""
        with open(corpus("e7-4807.txt"), encoding="ascii") as f:
            dump = f.read()
        for piece, message in ((" " * 79 + "\n", "longer than 64 MiB"), ("x" * 80, "longer than 16384 bytes"),
                               (dump, "longer than 64 MiB")):
            with tempfile.TemporaryFile("w+") as f:
                for _ in range((100 << 20) // len(piece) // 1000 + 1):
                    f.write(piece * 1000)
                f.seek(0)
                self.check_refused(run("--dump", "-", stdin=f), message)
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024, MEMORY_MAX)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
