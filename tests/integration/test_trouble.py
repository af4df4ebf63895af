# SPDX-License-Identifier: GPL-2.0-or-later
"""What went wrong on other people's machines, on the fake one and with the real daemon (cases by their ids)."""

import os
import signal
import subprocess
import time

from machinebed import Daemon, MachineTest, fakecpu, main, sanitized, until

NOBODY = 65534
# Two packages of four cores: CPUs 0-3 and 4-7, all of them at work.
SMALL = """model skx
packages 2
cores 4
threads 1
set busy=20 mhz=2500 c6=60 loc=100 C6.time=79.5 C6.usage=50 pkg_watts=40 ram_watts=6
"""


def package_watts(d):
    return [p.get("pkg_watts") for p in d.json("/api/v1/snapshot")["packages"]]


def c07_inside():
    with Daemon(sources="cpuidle,irq,stat,powercap", interval="100ms", user=NOBODY) as d:
        d.wait_samples(60)
        out = {"source": d.source("powercap"), "denied": d.json("/api/v1/snapshot"), "log": d.log()}
        fakecpu.set_("chmod energy_uj 0444")
        until(lambda: None not in package_watts(d), "watts after the files were opened to all", 60)
        out["watts"] = [p["pkg_watts"] for p in d.snapshot_after(2)["packages"]]
        out["sampler"] = [d.sampler, d.find_sampler()]
        return out


def c13_inside():
    with Daemon(interval="250ms") as d:
        d.wait_samples(8)
        fakecpu.set_("offline cpus=5")
        until(lambda: d.json("/api/v1/status")["cpus"] == 7, "the CPU to be missed")
        gone = d.snapshot_after(1)
        time.sleep(1)
        fakecpu.set_("online cpus=5")
        until(lambda: d.json("/api/v1/status")["cpus"] == 8, "the CPU to be back")
        back = d.snapshot_after(2)
        query = "/api/v1/query?start=-1m&format=rows&agg=mean"
        return {"gone": gone, "back": back, "watts": d.json(query + "&metric=pkg_watts"),
                "cpu": d.json(query + "&metric=busy,irq,avg_mhz,c1&cpu=5"), "other": d.json(query + "&metric=busy&cpu=4"),
                "log": d.log(), "events": d.json("/api/v1/events")}


def c15_inside():
    with Daemon(interval="500ms") as d:
        d.wait_samples(3)
        fakecpu.set_("slow reg=all cpus=3 ms=30000")
        time.sleep(2)
        answers = bool(d.json("/api/v1/status")["version"])
        sampler = d.sampler
        began = time.monotonic()
        d.server.send_signal(signal.SIGTERM)
        code = d.server.wait(20)
        took = time.monotonic() - began
        return {"answers": answers, "code": code, "took": took, "sampler_there": os.path.exists("/proc/%d/exe" % sampler)}


def idle_inside():
    """What is said of idle states."""
    with Daemon(interval="1s") as d:
        d.wait_samples(3)
        return {"snapshot": d.snapshot_after(1), "source": d.source("cpuidle")}


def no_driver_inside():
    fakecpu.set_("hide cpuidle-dir")
    return idle_inside()


def no_states_inside():
    fakecpu.set_("hide cpuidle")
    return idle_inside()


def big_inside():
    with Daemon(interval="1s") as d:
        d.wait_samples(12)
        out = {"snapshot": d.snapshot_after(1)}
        out["rows"] = len(d.json("/api/v1/query?metric=busy&scope=cpu&start=-8s&points=1")["rows"])
        out["table"] = d.ctl("snapshot").stdout.decode()
        out["status"] = d.json("/api/v1/status")
        out["rss"] = [rss(d.sampler), rss(d.server.pid)]
        return out


def rss(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        fields = dict(line.split(":", 1) for line in f)
    return int(fields["VmRSS"].split()[0]) * 1024


class Trouble(MachineTest):
    def test_c07_energy_is_for_root_only(self):
        r = self.on(SMALL, "c07_inside")
        self.assertEqual(r["source"]["state"], "denied")
        self.assertIn("CAP_DAC_READ_SEARCH", r["source"]["hint"])
        for p in r["denied"]["packages"]:
            self.assertIsNone(p["pkg_watts"])
            self.assertEqual(p["reasons"]["pkg_watts"], "denied")
        self.assertTrue(all(c["idle"]["C6"]["usage"] > 0 for c in r["denied"]["cpus"]))  # idle states go on
        self.assertLessEqual(sum("powercap" in line for line in r["log"].splitlines()), 1, r["log"])
        for watts in r["watts"]:
            self.near(watts, 40, 0.02, "PkgWatt")
        self.assertEqual(r["sampler"][0], r["sampler"][1], "it was restarted")

    def test_c13_a_cpu_leaves_and_returns_with_lower_counters(self):
        r = self.on(SMALL + "set cpus=5 busy=60 c6=10 C6.time=39.5\n", "c13_inside")  # the busiest reads for its package
        left = [c for c in r["gone"]["cpus"] if c["cpu"] == 5]
        self.assertTrue(not left or left[0]["busy"] is None and left[0]["reasons"]["busy"] == "offline", left)
        self.assertEqual(sum(c["busy"] is not None for c in r["gone"]["cpus"]), 7)
        self.near(next(c for c in r["back"]["cpus"] if c["cpu"] == 5)["busy"], 60, 0.1, "Busy% after the return")
        rows = [row for row in r["cpu"]["rows"] if row["mean"] is not None]
        self.assertTrue(rows)
        for row in rows:
            self.assertGreaterEqual(row["mean"], 0, row)
            if row["metric"] == "busy":
                self.near(row["mean"], 60, 0.1, "Busy%% at %d" % row["time"])
        times = sorted({row["time"] for row in r["other"]["rows"] if row["mean"] is not None})
        seen = {row["time"] for row in rows if row["metric"] == "busy"}
        away = [t for t in times if t not in seen]
        self.assertGreaterEqual(len(away), 4)  # a second and more of absence, and it was before and after
        self.assertTrue(min(seen) < min(away) and max(away) < max(seen))
        # its package's power goes on, whoever reads it: a number in each interval in which any CPU has one
        for package in (0, 1):
            watts = {row["time"]: row["mean"] for row in r["watts"]["rows"] if row["package"] == package}
            for t in times:
                self.near(watts.get(t), 40, 0.1, "PkgWatt of package %d at %d" % (package, t))
        self.assertEqual(sum(e["kind"] == "hotplug" for e in r["events"]["events"]), 2, r["events"])

    def test_c15_a_cpu_that_does_not_answer(self):
        r = self.on(SMALL, "c15_inside")
        self.assertTrue(r["answers"])
        self.assertEqual(r["code"], 0)
        self.assertLess(r["took"], 2)
        self.assertFalse(r["sampler_there"])

    def test_c16_ten_states_and_odd_entries(self):
        r = self.on("odd-idle", "idle_inside")
        names = ["POLL", "C1_ACPI", "C1E", "C2_ACPI", "C3_ACPI", "C3", "C6-SKX", "C7s", "C8", "C9", "C10"]
        self.assertEqual(r["source"]["state"], "ok")
        for c in r["snapshot"]["cpus"]:
            self.assertEqual(list(c["idle"]), names)
            self.near(c["idle"]["C10"]["time"], 80, 0.1, "C10%")
            self.near(c["idle"]["C6-SKX"]["time"], 16.5, 0.1, "C6-SKX%")

    def test_c16_no_driver(self):
        r = self.on("vm", "idle_inside")
        self.assertEqual(r["source"]["state"], "absent")
        self.assertIn("virtual machine", r["source"]["hint"])
        self.bare(r)

    def test_c16_states_without_the_drivers_directory(self):
        r = self.on(SMALL, "no_driver_inside")
        self.assertEqual(r["source"]["state"], "ok")
        for c in r["snapshot"]["cpus"]:
            self.near(c["idle"]["C6"]["time"], 79.5, 0.1, "C6%")

    def test_c16_no_states(self):
        r = self.on(SMALL, "no_states_inside")
        self.assertEqual(r["source"]["state"], "absent")
        self.assertTrue(r["source"]["hint"])
        self.bare(r)

    def bare(self, r):
        """No idle state, and yet each CPU's busy share and interrupts from real counters; nothing else is 0."""
        self.assertTrue(r["snapshot"]["cpus"])
        for c in r["snapshot"]["cpus"]:
            self.assertFalse(c.get("idle"))
            self.assertIsNotNone(c["busy"])
            self.assertGreater(c["irq"], 0)

    def test_512_cpus(self):
        r = self.on("skx-512", "big_inside", timeout=220)
        self.assertEqual(len(r["snapshot"]["cpus"]), 512)
        self.assertEqual(len(r["snapshot"]["cores"]), 256)
        self.assertEqual(r["rows"], 512)
        self.assertEqual(len(r["table"].splitlines()), 2 + 512)
        if not sanitized():
            self.assertLessEqual(sum(r["rss"]), 48 << 20)
        self.assertEqual(r["status"]["store"]["ticks_lost"], 0)
        print("512 CPUs: %d ticks missed, RSS %.1f and %.1f MiB" % (
            r["status"]["self"]["missed_ticks"], r["rss"][0] / 2**20, r["rss"][1] / 2**20))


if __name__ == "__main__":
    main()
