# SPDX-License-Identifier: GPL-2.0-or-later
"""This very machine: what it lacks is named, what it has is real, and watching it costs next to nothing."""

import shutil
import tempfile
import time

from daemonbed import DaemonTest, main, status_field, until

INTERVAL = 2


class Here(DaemonTest):
    def test_missing_sources_are_named(self):
        self.start()
        status = self.json("/api/v1/status")
        names = [s["name"] for s in status["sources"]]
        for name in ("cpuidle", "irq", "stat", "msr", "perf", "powercap", "idletrace"):
            self.assertIn(name, names)
        for s in status["sources"]:
            self.assertIn(s["state"], ("ok", "absent", "denied", "error", "disabled"))
            if s["state"] != "ok":
                self.assertTrue(s["hint"], "%s is %s and does not say why" % (s["name"], s["state"]))

    def test_real_counters(self):
        self.start()
        snapshot = until(lambda: self.get("/api/v1/snapshot")[0] == 200 and self.json("/api/v1/snapshot"), "a snapshot")
        with open("/sys/devices/system/cpu/online") as f:
            ranges = [r.split("-") for r in f.read().strip().split(",")]
        online = [cpu for r in ranges for cpu in range(int(r[0]), int(r[-1]) + 1)]
        self.assertEqual([c["cpu"] for c in snapshot["cpus"]], online)
        self.assertTrue(any(c.get("busy") is not None for c in snapshot["cpus"]))
        self.assertTrue(any(c.get("irq") for c in snapshot["cpus"]), snapshot["cpus"])

    def test_nothing_unavailable_is_zero(self):
        """What no source gives is null with a reason, or not there; never 0."""
        self.start()
        until(lambda: self.get("/api/v1/snapshot")[0] == 200, "a snapshot")
        sources = {s["name"]: s["state"] for s in self.json("/api/v1/status")["sources"]}
        snapshot = self.json("/api/v1/snapshot")
        lacking = []
        if sources["powercap"] != "ok" and sources["msr"] != "ok" and sources["perf"] != "ok":
            lacking += [("packages", m) for m in ("pkg_watts", "ram_watts", "cor_watts", "gfx_watts")]
        if sources["msr"] != "ok" and sources["perf"] != "ok":
            lacking += [("packages", m) for m in ("pc2", "pc3", "pc6", "pc7", "pc8", "pc9", "pc10")]
            lacking += [("cores", m) for m in ("c3", "c6", "c7", "core_temp")]
            lacking += [("cpus", m) for m in ("c1", "smi", "avg_mhz", "bzy_mhz")]
        for group, metric in lacking:
            for entity in snapshot[group]:
                self.assertIsNone(entity.get(metric), "%s %s" % (group, metric))
                if metric in entity:
                    self.assertTrue(entity["reasons"][metric])

    def test_permanent_conditions_are_logged_once(self):
        """C17."""
        p = self.start()
        until(lambda: self.json("/api/v1/status")["store"]["ticks"] >= 50, "50 samples", 30)
        self.assertLess(len(self.messages().splitlines()), 15)
        for line in set(self.messages().splitlines()):
            self.assertEqual(self.messages().count(line + "\n"), 1, line)
        self.stop(p)

    def test_wakeups(self):
        """At most 2 an interval and 2 a minute, both processes together, once the start is over."""
        # as in the service: the open minute lies in memory, and no disk is waited for
        runtime = tempfile.mkdtemp(dir="/dev/shm")
        self.addCleanup(shutil.rmtree, runtime, ignore_errors=True)
        p = self.start(interval="%ds" % INTERVAL, env={"RUNTIME_DIRECTORY": runtime})
        pids = [p.pid, self.sampler(p)]
        until(lambda: self.json("/api/v1/status")["last_sample"], "a sample")
        # away from the turn of the minute, when the store commits
        if time.time() % 60 > 44:
            time.sleep(61 - time.time() % 60)
        time.sleep(0.5)
        before, began = self.switches(pids), time.monotonic()
        time.sleep(6 * INTERVAL)
        intervals = (time.monotonic() - began) / INTERVAL
        each = [b - a for a, b in zip(before, self.switches(pids))]
        self.assertLessEqual(sum(each), 2 * (intervals + 1) + 2, "server, sampler: %s" % each)
        self.assertGreaterEqual(sum(each), intervals - 1)

    def switches(self, pids):
        return [int(status_field(p, "voluntary_ctxt_switches")) for p in pids]


if __name__ == "__main__":
    main()
