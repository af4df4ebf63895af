#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The doctor finds exactly the fault that was planted in the fake machine, and nothing on the healthy one."""

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
CSTATECTL = os.environ.get("CSTATECTL", "cstatectl")
SKIP = 77

# The healthy machine (scenario skx-rates), said again after every fault.
HEALTHY = """set busy=2.0 mhz=2800 c6=94.0 loc=20 res=4 cal=2 nmi=0 dev=14
set POLL.time=0.01 C1.time=0.6 C1E.time=1.2 C6.time=95.6
set POLL.usage=2 C1.usage=8 C1E.usage=6 C6.usage=24
set C1.above=0 C1E.above=1 C6.above=2 C1.below=3 C1E.below=2
set pc2=12.5 pc6=61.25"""

# name: (statements, findings)
FAULTS = {
    "healthy": ("", []),
    "break-storm": ("set cpus=3 C1.usage=600", ["break-storm"]),
    "demotion": ("set cpus=0-3,16-19 c6=40", ["demotion"]),
    "interrupts": ("set cpus=5 dev=900", ["interrupts"]),
    "exit-latency": ("set cpus=2 C6.usage=100 dev=120", ["exit-latency"]),
    "too-short": ("set cpus=4 C6.above=20", ["too-short"]),
    "never-deep": ("set C6.usage=0 C6.time=0 C1.time=96 C1.usage=30 C1.below=25 c6=0", ["never-deep"]),
    "one-busy-core": ("set cpus=0,16 busy=95 c6=0 C6.time=2 C1.time=1; set packages=0 pc6=0 pc2=0", ["one-busy-core"]),
    "states-disabled": ("disable 3 1", ["states-disabled"]),
    "counters-denied": ("fail msr EPERM", ["counters-denied"]),
    "power-denied": ("fail msr EPERM; fail energy_uj EACCES", ["power-denied"]),
    "healthy again": ("", []),
}


def doctor(socket, start):
    p = subprocess.run([CSTATECTL, "--connect", socket, "doctor", "--json", "--start", start], capture_output=True, timeout=60)
    try:
        return p.returncode, json.loads(p.stdout), p.stderr.decode()
    except ValueError:
        return p.returncode, None, p.stderr.decode()


def apply(statements):
    for line in statements.replace(";", "\n").splitlines():
        line = line.strip()
        if line.startswith("disable"):
            _, state, value = line.split()
            for cpu in range(32):
                with open("/sys/devices/system/cpu/cpu%d/cpuidle/state%s/disable" % (cpu, state), "w") as f:
                    f.write(value)
        elif line:
            with open(os.path.join(os.environ["FAKECPU_CTL"], "set"), "w") as f:
                f.write(line + "\n")


def start_daemon(folder, name):
    socket = os.path.join(folder, name + ".socket")
    conf = os.path.join(folder, "conf")
    with open(conf, "w", encoding="utf-8") as f:
        f.write("[Sampler]\nSources=-idletrace,-perf\nInterval=200ms\nWakePolicy=always\n")
    daemon = subprocess.Popen([CSTATED, "--config", conf, "--db", os.path.join(folder, name + ".db"), "--listen", socket],
                              stdin=subprocess.DEVNULL, stderr=open(os.path.join(folder, name + ".log"), "wb"))
    end = time.monotonic() + 20
    while not os.path.exists(socket) and time.monotonic() < end:
        time.sleep(0.05)
    return daemon, socket


def inside(folder, names):
    results = {}
    for i, name in enumerate(names):
        statements, _ = FAULTS.get(name, ("", []))
        apply(HEALTHY)
        apply(statements)
        # The inventory (disabled states, denied sources) is read at start: every case has a daemon of its own.
        daemon, socket = start_daemon(folder, "d%d" % i)
        try:
            time.sleep(2.5)
            results[name] = doctor(socket, "-1s")
        finally:
            daemon.terminate()
            daemon.wait(10)
        if statements.startswith("disable"):
            apply("disable 3 0")
        if statements.startswith("fail"):
            apply("ok")
            apply("fail msr ok; fail energy_uj ok")
    with open(os.path.join(folder, "results"), "w", encoding="utf-8") as f:
        json.dump(results, f)
    return 0


class Doctor(unittest.TestCase):
    def run_machine(self, scenario, names, *options):
        folder = tempfile.mkdtemp(prefix="cstated-doctor-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        p = subprocess.run([RUN, scenario, *options, "--", sys.executable, os.path.abspath(__file__), "--inside", folder, *names],
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=200)
        if p.returncode == SKIP:
            self.skipTest(p.stderr.decode().strip())
        self.assertEqual(p.returncode, 0, p.stderr.decode() + p.stdout.decode())
        with open(os.path.join(folder, "results"), encoding="utf-8") as f:
            return json.load(f)

    def check(self, name, result, want):
        code, findings, errors = result
        self.assertIsNotNone(findings, "%s: %s" % (name, errors))
        self.assertEqual([f["id"] for f in findings], want, "%s: %s" % (name, json.dumps(findings, indent=1)))
        self.assertEqual(code, 5 if want else 0, name)

    def test_planted_faults(self):
        results = self.run_machine("skx-rates", list(FAULTS))
        for name, (_, want) in FAULTS.items():
            with self.subTest(name):
                self.check(name, results[name], want)

    def test_firmware_limit(self):
        self.check("limit", self.run_machine("skx-rates", ["limit"], "--set", "pkg_limit=1")["limit"], ["package-limit"])

    def test_unmitigated_erratum(self):
        self.check("erratum", self.run_machine("wsm-ex-4s", ["erratum"], "--set", "bugs=none", "--set", "packages=2")["erratum"],
                   ["erratum"])


if __name__ == "__main__":
    if len(sys.argv) > 3 and sys.argv[1] == "--inside":
        sys.exit(inside(sys.argv[2], sys.argv[3:]))
    result = unittest.main(exit=False, verbosity=1).result
    if result.wasSuccessful() and len(result.skipped) == result.testsRun:
        print(result.skipped[0][1] if result.skipped else "nothing was run")
        sys.exit(SKIP)
    sys.exit(0 if result.wasSuccessful() else 1)
