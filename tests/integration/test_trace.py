# SPDX-License-Identifier: GPL-2.0-or-later
"""idletrace through the whole daemon: where BPF cannot be had, a CPU that sleeps through, and how often we wake."""

import os
import shutil
import subprocess
import tempfile
import time
import unittest

from daemonbed import CSTATED, DaemonTest, main, status_field, until

NOBODY = 65534
WITHOUT_BPF = ["setpriv", "--bounding-set", "-bpf,-sys_admin", "--inh-caps", "-bpf,-sys_admin"]
SLEEP = 3.0  # seconds a CPU has to sleep through


def works(*argv):
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


def names_hidden(*names):
    """Shell text that covers directories in a mount namespace of its own."""
    return "".join("mount -t tmpfs none %s\n" % n for n in names)


@unittest.skipUnless(os.geteuid() == 0 and works("unshare", "-m", "true") and works(*WITHOUT_BPF, "true"),
                     "needs root, mount namespaces and setpriv")
class NoBpf(DaemonTest):
    def start_in(self, script, *prefix):
        """cstated in a mount namespace in which script ran first, under prefix."""
        argv = ["unshare", "-m", "sh", "-ec", script + 'exec "$@"', "sh", *prefix, os.path.abspath(CSTATED),
                "--config", os.devnull, "--db", self.db, "--listen", self.sock, "--interval", "200ms"]
        with open(self.log, "ab") as log:
            p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.running.append(p)
        self.wait_ready(p)
        return p

    def others_run_on(self):
        """Everything that needs no BPF gives values; idletrace and nothing else is missed."""
        status = self.json("/api/v1/status")
        sources = {s["name"]: s for s in status["sources"]}
        for name in ("stat", "irq"):
            self.assertEqual(sources[name]["state"], "ok")
        snapshot = until(lambda: self.get("/api/v1/snapshot")[0] == 200 and
                         (s := self.json("/api/v1/snapshot"))["system"]["busy"] is not None and s, "a snapshot")
        for c in snapshot["cpus"]:
            self.assertIsNotNone(c["irq"])
            self.assertIsNotNone(c["busy"])
        return sources, snapshot

    def check_bound(self, snapshot):
        """Without tracing no cause is known, and a break is a bound or not applicable."""
        for c in snapshot["cpus"]:
            w = c.get("wakeups")
            if w is None:
                continue
            self.assertEqual(w["method"], "bound")
            for cause in ("interrupt", "store", "break_immediate"):
                self.assertIsNone(w[cause])
                self.assertEqual(w["reasons"][cause], "absent")
            if w["break"] is None:
                self.assertIn(w["reasons"]["break"], ("not-applicable", "absent", "first"))
        for p in snapshot["packages"]:
            self.assertNotIn("sleep_length", p)

    def test_without_cap_bpf(self):
        self.start_in("", *WITHOUT_BPF)
        sources, snapshot = self.others_run_on()
        self.assertEqual(sources["idletrace"]["state"], "denied")
        self.assertIn("CAP_BPF", sources["idletrace"]["hint"])
        self.check_bound(snapshot)
        self.assertEqual(self.messages().count("source idletrace: denied"), 1)

    def test_without_btf(self):
        if not os.path.exists("/sys/kernel/btf"):
            self.skipTest("this kernel has no BTF to hide")
        self.start_in(names_hidden("/sys/kernel/btf"))
        sources, snapshot = self.others_run_on()
        self.assertEqual(sources["idletrace"]["state"], "absent")
        self.assertIn("CONFIG_DEBUG_INFO_BTF", sources["idletrace"]["hint"])
        self.check_bound(snapshot)

    def test_ordinary_user(self):
        try:
            with open("/proc/sys/kernel/unprivileged_bpf_disabled", encoding="ascii") as f:
                disabled = f.read().strip()
        except FileNotFoundError:
            disabled = "absent"
        print("kernel.unprivileged_bpf_disabled: " + disabled)
        os.chmod(self.dir, 0o777)
        self.start_in("", "setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups")
        sources, snapshot = self.others_run_on()
        self.assertIn(sources["idletrace"]["state"], ("denied", "absent"))
        self.assertIn("CAP_BPF", sources["idletrace"]["hint"])
        self.check_bound(snapshot)

    def test_perf_counts_instead(self):
        """No BPF and no cpuidle: perf tells how often a CPU went idle, and the value says so."""
        hide = names_hidden(*("/sys/devices/system/cpu/%s" % n for d, n in self.cpuidle_directories()))
        tracefs = ("mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null || true\n"
                   "test -r /sys/kernel/tracing/events/power/cpu_idle/id\n")
        if not works("unshare", "-m", "sh", "-ec", tracefs):
            self.skipTest("no tracefs here")
        self.start_in(hide + tracefs, *WITHOUT_BPF)
        sources, snapshot = self.others_run_on()
        self.assertEqual(sources["cpuidle"]["state"], "absent")
        self.assertEqual(sources["idletrace"]["state"], "denied")
        self.assertIn("perf counts power:cpu_idle", sources["idletrace"]["detail"])
        self.assertEqual(sources["idletrace"]["counters"], 2)
        self.check_bound(snapshot)
        seen = until(lambda: [c for c in self.json("/api/v1/snapshot")["cpus"] if c["wakeups"]["total"] is not None], "a count")
        for c in seen:
            self.assertEqual(c["wakeups"]["total_method"], "perf")
            self.assertNotIn("time", c["idle"]["IDLE"])
            self.assertEqual(c["wakeups"]["reasons"]["break"], "not-applicable")

    def cpuidle_directories(self):
        base = "/sys/devices/system/cpu"
        found = [(base, "%s/cpuidle" % n) for n in os.listdir(base) if n[3:].isdigit()]
        return [(d, n) for d, n in found + [(base, "cpuidle")] if os.path.isdir(os.path.join(d, n))]


def interrupts():
    """Interrupts of every kind by CPU."""
    with open("/proc/interrupts", encoding="ascii") as f:
        n = len(f.readline().split())
        sums = [0] * n
        for line in f:
            words = line.split()[1:1 + n]
            if len(words) == n and all(w.isdigit() for w in words):
                sums = [a + int(w) for a, w in zip(sums, words)]
    return sums


class LongSleep(DaemonTest):
    def test_never_under_99(self):
        """A CPU that sleeps 3 s through is idle, in every interval of 500 ms of them."""
        self.start("--sources", "-cpuidle,-msr,-perf", interval="500ms")
        idletrace = next(s for s in self.json("/api/v1/status")["sources"] if s["name"] == "idletrace")
        if idletrace["state"] != "ok":
            self.skipTest("no BPF tracing here: " + idletrace["hint"])
        found = self.watch(40)
        if not found:
            self.skipTest("no CPU of this machine slept %g s through within 40 s" % SLEEP)
        time.sleep(1)
        for position, begin, end in found:
            cpu = self.json("/api/v1/snapshot")["cpus"][position]["cpu"]
            reply = self.json("/api/v1/query?metric=idle_time&cpu=%d&start=%.3f&end=%.3f&step=500ms" % (cpu, begin, end))
            idle = {}
            for row in reply["rows"]:
                idle[row["time"]] = idle.get(row["time"], 0) + row["mean"]
            whole = {t: v for t, v in idle.items() if t >= begin * 1000 + 500 and t + 1000 <= end * 1000}
            print("cpu%d slept %.1f s: idle %s" % (cpu, end - begin, sorted(round(v, 2) for v in whole.values())))
            self.assertGreaterEqual(len(whole), 2)
            for v in whole.values():
                self.assertGreaterEqual(v, 99)

    def watch(self, patience):
        """Spans in which a CPU took no interrupt at all: it cannot have been awake, or the tick would have come."""
        end = time.time() + patience
        last, since, found = interrupts(), [time.time()] * len(interrupts()), {}
        while time.time() < end:
            time.sleep(0.1)
            now, t = interrupts(), time.time()
            for i, (a, b) in enumerate(zip(last, now)):
                if a != b:
                    since[i] = t
                elif t - since[i] >= SLEEP:
                    found[(i, since[i])] = t
            last = now
            if found and len({k[0] for k in found}) == len(last):
                break
        return [(i, begin, t) for (i, begin), t in found.items()]


class Quiet(DaemonTest):
    def test_a_minute(self):
        """
        Interval=10s: at most 2 wakeups an interval and 2 a minute, both processes together, over 60 s. The database lies in
        memory: what the one transaction of the minute waits for its disk is the disk's.
        """
        runtime = tempfile.mkdtemp(dir="/dev/shm")
        self.addCleanup(shutil.rmtree, runtime, ignore_errors=True)
        self.db = os.path.join(runtime, "idle.db")
        p = self.start(interval="10s", env={"RUNTIME_DIRECTORY": runtime})
        pids = [p.pid, self.sampler(p)]
        until(lambda: self.json("/api/v1/status")["last_sample"], "a sample", 30)
        time.sleep(1)
        before = [int(status_field(pid, "voluntary_ctxt_switches")) for pid in pids]
        time.sleep(60)
        each = [int(status_field(pid, "voluntary_ctxt_switches")) - b for pid, b in zip(pids, before)]
        print("voluntary context switches in 60 s at Interval=10s: server %d, sampler %d" % tuple(each))
        self.assertLessEqual(sum(each), 2 * 6 + 2)
        self.assertGreaterEqual(sum(each), 2 * 5)


if __name__ == "__main__":
    main()
