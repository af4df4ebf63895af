#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The daemon on fake machines: who the CPUs are, and how it tells of an erratum that the kernel does not know.

The same file runs twice: as the test, and ("inside DIR [STATEMENT...]") on the fake machine, where it starts cstated and
writes down what it answers.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
RUN = os.path.join(HERE, "..", "fakecpu", "run")
CSTATED = os.environ.get("CSTATED", "cstated")
CSTATECTL = os.environ.get("CSTATECTL", "cstatectl")


class Answers:
    """What the daemon said on that machine."""

    def __init__(self, directory):
        def read(name):
            with open(os.path.join(directory, name), encoding="utf-8") as f:
                return f.read()

        self.cpu = json.loads(read("cpu"))
        self.status = json.loads(read("status"))
        self.events = json.loads(read("events"))["events"]
        self.metrics = read("metrics")
        self.person = read("person")
        self.log = read("log")


def machine(scenario, *options, statements=()):
    with tempfile.TemporaryDirectory() as d:
        p = subprocess.run([RUN, scenario, *options, "--", sys.executable, os.path.abspath(__file__), "inside", d, *statements],
                           timeout=100, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, encoding="utf-8")
        if p.returncode == 77:
            print("skipped: " + p.stderr.strip())
            raise unittest.SkipTest(p.stderr.strip())
        if p.returncode != 0:
            raise AssertionError(p.stderr)
        return Answers(d)


def small(*options):
    return ["--set", "packages=1", "--set", "cores=2", "--set", "core_ids=0-1", *options]


def status_of(cpu, erratum):
    return next(e["status"] for e in cpu["errata"] if e["id"] == erratum)


class Errata(unittest.TestCase):
    def test_unmitigated_is_told_everywhere_once(self):
        """Also when the machine changes under it: a CPU goes and comes."""
        a = machine("wsm-ex-4s", *small("--set", "bugs=cpu_meltdown spectre_v1"),
                    statements=["offline cpu=3", "online cpu=3"])
        self.assertEqual(status_of(a.cpu["cpus"][0], "clflush_monitor"), "unmitigated")
        self.assertEqual(a.cpu["bugs"], ["cpu_meltdown", "spectre_v1"])
        self.assertEqual(len([p for p in a.status["problems"] if "clflush_monitor" in p]), 1)
        self.assertEqual(len([e for e in a.events if e["kind"] == "erratum"]), 1)
        self.assertTrue(any(e["kind"] == "hotplug" for e in a.events), a.events)
        self.assertEqual(a.log.count("erratum clflush_monitor of Westmere-EX (06_2FH)"), 1, a.log)
        self.assertIn('cstated_erratum_info{erratum="clflush_monitor",status="unmitigated"} 1', a.metrics)
        self.assertIn("erratum clflush_monitor: UNMITIGATED\n", a.person)

    def test_mitigated_is_no_news(self):
        a = machine("wsm-ex-4s", *small())
        cpu, = a.cpu["cpus"]
        self.assertEqual((cpu["family"], cpu["model"], cpu["stepping"], cpu["uarch"]), (6, 47, 2, "Westmere-EX"))
        self.assertEqual(cpu["count"], 4)
        self.assertEqual(status_of(cpu, "clflush_monitor"), "mitigated")
        self.assertFalse(any("erratum" in p for p in a.status["problems"]))
        self.assertFalse([e for e in a.events if e["kind"] == "erratum"])
        self.assertNotIn("erratum", a.log)


class Inventory(unittest.TestCase):
    def test_idle_states(self):
        a = machine("wsm-ex-4s", *small())
        self.assertEqual((a.cpu["idle"]["driver"], a.cpu["idle"]["governor"]), ("intel_idle", "menu"))
        states = a.cpu["idle"]["sets"][0]["states"]
        self.assertEqual([s["name"] for s in states], ["POLL", "C1", "C1E", "C3", "C6"])
        self.assertEqual([s["mwait_hint"] for s in states], [None, 0x00, 0x01, 0x10, 0x20])
        self.assertEqual((states[4]["exit_latency_us"], states[4]["target_residency_us"]), (200, 800))
        self.assertFalse(any(s["disabled"] for s in states))
        self.assertIsNotNone(a.cpu["pkg_cst"], a.cpu.get("reasons"))

    def test_hybrid(self):
        a = machine("hybrid")
        self.assertEqual({c["core_type"] for c in a.cpu["cpus"]}, {"performance", "efficient"})
        self.assertTrue(all(c["hybrid"] and c["uarch"].startswith("Alder Lake") for c in a.cpu["cpus"]))
        self.assertEqual(sum(c["count"] for c in a.cpu["cpus"]), a.cpu["topology"]["cpus"])
        self.assertEqual({s["core_type"] for s in a.cpu["idle"]["sets"]}, {"performance", "efficient"})

    def test_virtual_machine(self):
        a = machine("vm")
        self.assertTrue(a.cpu["cpus"][0]["hypervisor"])
        self.assertIsNone(a.cpu["pkg_cst"])
        self.assertIn(a.cpu["reasons"]["pkg_cst"], ("vm", "not-applicable", "absent"))


def inside(directory, *statements):
    """On the fake machine."""
    socket, log = os.path.join(directory, "s"), os.path.join(directory, "log")

    def ask(path):
        done = subprocess.run(["curl", "-sf", "--unix-socket", socket, "http://localhost" + path],
                              stdout=subprocess.PIPE, check=False, timeout=20)
        return done.stdout if done.returncode == 0 else b""

    def until(condition):
        end = time.monotonic() + 20
        while not condition():
            if time.monotonic() > end:
                sys.exit(open(log, encoding="utf-8").read())
            time.sleep(0.05)

    def n_cpus():
        body = ask("/api/v1/snapshot")
        return len(json.loads(body)["cpus"]) if body else 0

    with open(log, "wb") as f:
        daemon = subprocess.Popen([CSTATED, "--config", "/dev/null", "--db", os.path.join(directory, "db"), "--listen", socket,
                                   "--interval", "200ms"], stdout=f, stderr=f)
    try:
        until(n_cpus)
        for s in statements:
            before = n_cpus()
            with open(os.path.join(os.environ["FAKECPU_CTL"], "set"), "w", encoding="ascii") as f:
                f.write(s + "\n")
            until(lambda: n_cpus() not in (0, before))
        for name, path in (("cpu", "/api/v1/cpu"), ("status", "/api/v1/status"), ("events", "/api/v1/events"),
                           ("metrics", "/metrics")):
            with open(os.path.join(directory, name), "wb") as f:
                f.write(ask(path))
        with open(os.path.join(directory, "person"), "wb") as f:
            subprocess.run([CSTATECTL, "--connect", socket, "cpu"], stdout=f, check=True, timeout=20)
    finally:
        daemon.terminate()
        daemon.wait(20)


if __name__ == "__main__":
    if sys.argv[1:2] == ["inside"]:
        inside(*sys.argv[2:])
    else:
        program = unittest.main(verbosity=2, exit=False)
        result = program.result
        if not result.wasSuccessful():
            sys.exit(1)
        sys.exit(77 if len(result.skipped) == result.testsRun else 0)
