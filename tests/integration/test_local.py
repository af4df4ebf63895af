# SPDX-License-Identifier: GPL-2.0-or-later
"""WakePolicy=local through the whole daemon: a fake machine whose PMU msr is this kernel's.

idletrace and perf see the real CPUs, so the machine has as few as this one. A virtual machine counts neither mperf nor
aperf: /sys shows two events of these names that both are the real tsc. Then MPERF and the clock beside it must agree.
"""

import os
import subprocess

from machinebed import Daemon, MachineTest, fakecpu, main

PMUS = "/sys/bus/event_source/devices"
MPERF, APERF = 0xE7, 0xE8
SAMPLES = 20


def read(*path):
    with open(os.path.join(*path), encoding="ascii") as f:
        return f.read()


def show_pmus(**files):
    """Only these files below the directory of PMUs ("msr/type" and so on)."""
    subprocess.run(["mount", "-t", "tmpfs", "none", PMUS], check=True)
    for name, text in files.items():
        path = os.path.join(PMUS, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as f:
            f.write(text)


def run(files):
    """A daemon that chooses its policy by itself: its status, two snapshots, and what it asked the MSR device."""
    show_pmus(**files)
    with Daemon(policy=None, sources=None) as d:
        d.wait_samples(4)
        fakecpu.reset_ledger()
        d.wait_samples(SAMPLES)
        reads = {}
        for key, row in fakecpu.ledger(d.sampler).items():
            if key[0] == "msr":
                reads["%x" % key[2]] = reads.get("%x" % key[2], 0) + row.count
        return {"status": d.json("/api/v1/status"), "snapshots": [d.snapshot_after(1), d.snapshot_after(1)], "reads": reads}


def local_inside():
    tsc = read(PMUS, "msr/events/tsc")
    return run({"msr/type": read(PMUS, "msr/type"), "msr/format/event": "config:0-63\n", "msr/events/mperf": tsc, "msr/events/aperf": tsc})


def without_inside():
    return run({})


class Local(MachineTest):
    def setUp(self):
        if not os.path.exists(PMUS + "/msr/events/tsc"):
            self.skipTest("this kernel has no PMU msr")
        self.machine = "model skx\npackages 1\ncores %d\nthreads 1\nset busy=10 c6=85 core_temp=42\n" % os.cpu_count()

    def result(self, function):
        r = self.on(self.machine, function)
        sources = {s["name"]: s for s in r["status"]["sources"]}
        if sources["idletrace"]["state"] != "ok":
            self.skipTest("no BPF tracing here: %s" % sources["idletrace"]["hint"])
        return r, sources

    def test_in_force_where_it_can_be_had(self):
        r, sources = self.result("local_inside")
        self.assertEqual(r["status"]["wake_policy"], "local")
        self.assertFalse([n for n in r["status"]["notes"] if "wake policy" in n])
        self.assertEqual((sources["perf"]["state"], sources["msr"]["state"]), ("ok", "ok"))
        self.assertIn("read by each CPU", sources["perf"]["detail"])
        self.assertEqual(r["status"]["self"]["wakeups_caused"], 0)
        # what CPUs read themselves is not asked of the device; what no event counts still is
        self.assertFalse({"%x" % MPERF, "%x" % APERF} & set(r["reads"]))
        self.assertIn("3fd", r["reads"])
        for snapshot in r["snapshots"]:
            for cpu in snapshot["cpus"]:
                self.assertIsNotNone(cpu["busy"], cpu)
                # MPERF is the TSC, and stands still in a sleep; a host may take a virtual CPU away between two reads
                self.assertLessEqual(cpu["busy"], 102)
                self.near(cpu["tsc_mhz"], snapshot["cpus"][0]["tsc_mhz"], 0.001)
                if cpu["busy"] > 0:
                    self.near(cpu["bzy_mhz"], cpu["tsc_mhz"], 0.02)

    def test_lazy_and_why_where_it_cannot(self):
        r, sources = self.result("without_inside")
        self.assertEqual(r["status"]["wake_policy"], "lazy")
        self.assertEqual(sources["perf"]["state"], "absent")
        self.assertIn("wake policy lazy: local cannot be had: this kernel's PMUs", "\n".join(r["status"]["notes"]))
        self.assertEqual(r["status"]["health"], "ok")
        self.assertIn("%x" % MPERF, r["reads"])


if __name__ == "__main__":
    main()
