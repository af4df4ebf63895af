#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The story of the regression scenario becomes one event and one line of the log; a healthy machine says nothing."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
RUN = os.path.join(HERE, "..", "fakecpu", "run")
CSTATED = os.environ.get("CSTATED", "cstated")
SKIP = 77


def events(socket):
    p = subprocess.run(["curl", "-sS", "--unix-socket", socket, "http://localhost/api/v1/events"], capture_output=True, timeout=30)
    try:
        return json.loads(p.stdout)["events"]
    except (ValueError, KeyError):
        return []


def inside(folder, wanted):
    """Runs the daemon until an event of that kind comes, or for 8 s where none is wanted."""
    socket = os.path.join(folder, "socket")
    with open(os.path.join(folder, "conf"), "w", encoding="utf-8") as f:
        f.write("[Sampler]\nSources=-idletrace,-perf\nInterval=500ms\n[Events]\nIntervals=3\n")
    with open(os.path.join(folder, "log"), "wb") as log:
        daemon = subprocess.Popen([CSTATED, "--config", os.path.join(folder, "conf"), "--db", os.path.join(folder, "db"),
                                   "--listen", socket], stdin=subprocess.DEVNULL, stderr=log)
        try:
            end = time.monotonic() + (8 if wanted == "-" else 40)
            found = []
            while time.monotonic() < end and not (wanted != "-" and any(e["kind"] == wanted for e in found)):
                time.sleep(0.5)
                found = events(socket)
            with open(os.path.join(folder, "events"), "w", encoding="utf-8") as f:
                json.dump(found, f)
        finally:
            daemon.terminate()
            daemon.wait(10)
    return 0


class Alarms(unittest.TestCase):
    def run_machine(self, scenario, wanted, *options):
        folder = tempfile.mkdtemp(prefix="cstated-alarms-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        p = subprocess.run([RUN, scenario, *options, "--", sys.executable, os.path.abspath(__file__), "--inside", folder, wanted],
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        if p.returncode == SKIP:
            self.skipTest(p.stderr.decode().strip())
        self.assertEqual(p.returncode, 0, p.stderr.decode() + p.stdout.decode())
        with open(os.path.join(folder, "events"), encoding="utf-8") as f, open(os.path.join(folder, "log"), encoding="utf-8") as log:
            return [e for e in json.load(f) if e["kind"] in ("break-storm", "deep-idle-lost")], log.read()

    def test_break_storm(self):
        told, log = self.run_machine("regression", "break-storm", "--set", "story=4s")
        self.assertEqual(len(told), 1, told)
        self.assertRegex(told[0]["text"], r"^CPU \d+: 3[3-9]\d breaks/s of (39|40|41)\d idle exits/s in C1 \(bound\); 32 CPUs$")
        self.assertEqual(log.count("break-storm"), 1, log)

    def test_deep_idle_lost(self):
        told, log = self.run_machine("skx-2s", "deep-idle-lost", "--event", "at 3s set cpus=0-3,16-19 c6=20")
        self.assertEqual([e["kind"] for e in told], ["deep-idle-lost"])
        self.assertRegex(told[0]["text"], r"C6 or deeper requested 9\d\.\d % of the time, granted \d\d\.\d %; \d cores?$")

    def test_healthy(self):
        told, log = self.run_machine("skx-2s", "-")
        self.assertEqual(told, [])
        self.assertNotIn("storm", log)


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "--inside":
        sys.exit(inside(sys.argv[2], sys.argv[3]))
    result = unittest.main(exit=False, verbosity=1).result
    if result.wasSuccessful() and len(result.skipped) == result.testsRun:
        print(result.skipped[0][1] if result.skipped else "nothing was run")
        sys.exit(SKIP)
    sys.exit(0 if result.wasSuccessful() else 1)
