#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What systemd thinks of the units, and what the files beside them must agree with.

Usage: units.py TOP CSTATED SERVICE (as configured). Tests for which systemd lacks here are skipped.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP, CSTATED, SERVICE = map(os.path.abspath, sys.argv[1:4])
UNIT = os.path.join(TOP, "unit")
EXPOSURE = 20  # tenths


def have(tool):
    return unittest.skipUnless(shutil.which(tool), "%s is not installed" % tool)


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return f.read()


def run(*argv):
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


class Units(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="cstated-units-")
        self.addCleanup(shutil.rmtree, self.dir)
        # the program as it is built, since verify looks for it
        self.service = os.path.join(self.dir, "cstated.service")
        with open(self.service, "w", encoding="utf-8") as f:
            f.write(re.sub(r"^ExecStart=\S+", "ExecStart=" + CSTATED, read(SERVICE), flags=re.M))
        self.socket = shutil.copy(os.path.join(UNIT, "cstated.socket"), self.dir)

    @have("systemd-analyze")
    def test_verify(self):
        r = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", self.service, self.socket)
        self.assertEqual((r.returncode, r.stdout, r.stderr), (0, "", ""))

    @have("systemd-analyze")
    def test_verify_with_tcp(self):
        dropins = self.socket + ".d"
        os.mkdir(dropins)
        shutil.copy(os.path.join(UNIT, "tcp.conf.example"), os.path.join(dropins, "tcp.conf"))
        r = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", self.service, self.socket)
        self.assertEqual((r.returncode, r.stdout, r.stderr), (0, "", ""))

    @have("systemd-analyze")
    def test_security(self):
        r = run("systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=%d" % EXPOSURE, self.service)
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
        self.assertRegex(r.stdout, r"Overall exposure level")
        print([l for l in r.stdout.splitlines() if "Overall" in l][0].strip())

    @have("systemd-sysusers")
    def test_user(self):
        os.mkdir(os.path.join(self.dir, "etc"))
        r = run("systemd-sysusers", "--root=" + self.dir, os.path.join(UNIT, "cstated.sysusers"))
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("cstated:", read(self.dir, "etc", "passwd"))
        self.assertIn("cstated:", read(self.dir, "etc", "group"))
        for what in ("User", "Group"):
            self.assertRegex(read(SERVICE), "(?m)^%s=cstated$" % what)

    @have("journalctl")
    def test_catalogue_parses(self):
        where = os.path.join(self.dir, "usr", "lib", "systemd", "catalog")
        os.makedirs(where)
        os.makedirs(os.path.join(self.dir, "var", "lib", "systemd", "catalog"))
        shutil.copy(os.path.join(UNIT, "cstated.catalog"), where)
        r = run("journalctl", "--root=" + self.dir, "--update-catalog")
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        r = run("journalctl", "--root=" + self.dir, "--list-catalog")
        self.assertEqual(len(r.stdout.splitlines()), len(self.ids()), r.stdout + r.stderr)

    def ids(self):
        return set(re.findall(r'#define CSTATED_MESSAGE_\w+ "([0-9a-f]{32})"', read(TOP, "include", "cstated", "api.h")))

    def test_catalogue_is_complete(self):
        told = re.findall(r"^-- ([0-9a-f]{32})$", read(UNIT, "cstated.catalog"), flags=re.M)
        self.assertEqual(len(told), len(set(told)))
        self.assertEqual(set(told), self.ids())

    def test_configuration_has_every_key(self):
        """cstated.conf with its keys uncommented is what is in force without a file; as shipped it says nothing."""
        text = read(UNIT, "cstated.conf")
        plain = run(CSTATED, "--config", os.devnull, "--print-config")
        self.assertEqual((plain.returncode, plain.stderr), (0, ""))
        keys = [l for l in plain.stdout.splitlines() if "=" in l]
        self.assertGreater(len(keys), 10)
        self.assertEqual(sorted(re.findall(r"^#(\w+=.*)$", text, flags=re.M)), sorted(keys))
        for edited in (text, re.sub(r"^#(\w+=)", r"\1", text, flags=re.M)):
            path = os.path.join(self.dir, "cstated.conf")
            with open(path, "w", encoding="utf-8") as f:
                f.write(edited)
            r = run(CSTATED, "--config", path, "--print-config")
            self.assertEqual((r.stdout, r.stderr), (plain.stdout, ""))
        # each key, or the group it stands in, has a comment right before it
        self.assertEqual(re.findall(r"(?m)^\[\w+\]\n#\w+=|^\n#\w+=", text), [])


if __name__ == "__main__":
    outcome = unittest.main(argv=[sys.argv[0]], verbosity=1, exit=False).result
    for test, why in outcome.skipped:
        print("%s: %s" % (test, why))
    sys.exit(0 if outcome.wasSuccessful() and len(outcome.skipped) < outcome.testsRun else 77 if outcome.wasSuccessful() else 1)
